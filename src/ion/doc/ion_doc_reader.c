#include "ion/doc/ion_doc_reader.h"

#include <stdint.h>

struct triggers {
    bool manual, new_data;
    char *schedule;
};

// clang-format off
static const struct weir_field triggers_fields[] = {
    WEIR_FIELD(triggers, manual,   BOOL, 0, "", "by hand"),
    WEIR_FIELD(triggers, new_data, BOOL, 0, "", "on a new version of the dataset"),
    WEIR_FIELD(triggers, schedule, TEXT, 0, "", "cron with a seconds field, UTC"),
};
// clang-format on

static const struct weir_resource triggers_resource =
    WEIR_RESOURCE("triggers object", "", triggers, triggers_fields);

struct doc_reader doc_reader_at(const struct doc_reader *parent, const char *key, size_t index)
{
    struct doc_reader child = *parent;
    child.path = index == SIZE_MAX
                     ? weir_arena_printf(parent->arena, "%s.%s", parent->path, key)
                     : weir_arena_printf(parent->arena, "%s.%s[%zu]", parent->path, key, index);
    return child;
}

weir_status doc_read_object(const struct doc_reader *reader, const struct weir_resource *resource,
                            const json_t *object, void *out)
{
    struct weir_error cause = {0};
    weir_status status =
        weir_record_from_json(resource, object, WEIR_RECORD_CREATE, reader->arena, out, &cause);
    if (status == WEIR_OK) {
        return WEIR_OK;
    }
    const char *rest = cause.message[0] == '$' ? cause.message + 1 : cause.message;
    return weir_error_set(reader->err, status, "%s%s", reader->path, rest);
}

weir_status doc_check_range(const struct doc_reader *reader, const char *key, int64_t value,
                            int64_t min, int64_t max)
{
    if (value < min || value > max) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID, "%s.%s: %lld is not in %lld to %lld",
                              reader->path, key, (long long)value, (long long)min, (long long)max);
    }
    return WEIR_OK;
}

/** The old form, {manual, new_data, schedule}, as a list; a new reference. */
static weir_status list_of_object(const struct doc_reader *reader, const json_t *json, json_t **out)
{
    struct triggers triggers = {.manual = true};
    struct weir_cron cron;
    struct weir_error cause = {0};
    if (json != NULL && !json_is_null(json)) {
        WEIR_TRY(doc_read_object(reader, &triggers_resource, json, &triggers));
    }
    weir_status status =
        triggers.schedule != NULL ? weir_cron_parse(triggers.schedule, &cron, &cause) : WEIR_OK;
    if (status != WEIR_OK) {
        return weir_error_set(reader->err, status, "%s.schedule: %s", reader->path, cause.message);
    }
    *out = triggers.manual ? json_pack("[{s:s}]", "kind", "manual")
                           : json_pack("[{s:s,s:b}]", "kind", "manual", "allowed", 0);
    if (triggers.new_data) {
        json_array_append_new(*out, json_pack("{s:s}", "kind", "new-data"));
    }
    if (triggers.schedule != NULL) {
        json_array_append_new(
            *out, json_pack("{s:s,s:s}", "kind", "schedule", "cron", triggers.schedule));
    }
    return WEIR_OK;
}

weir_status doc_read_triggers(const struct doc_reader *parent, const json_t *json,
                              struct weir_ion_doc_pipeline *out)
{
    struct doc_reader reader = doc_reader_at(parent, "triggers", SIZE_MAX);
    json_t *made = NULL;
    if (!json_is_array(json)) {
        WEIR_TRY(list_of_object(&reader, json, &made));
    }
    weir_status status = weir_triggers_read(made != NULL ? made : json, reader.path, reader.arena,
                                            &out->triggers, reader.err);
    json_decref(made);
    return status;
}
