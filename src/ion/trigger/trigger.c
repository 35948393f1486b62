#include "ion/trigger.h"

#include <inttypes.h>
#include <string.h>

static const struct weir_kind *const triggers[] = {
#define WEIR_KIND(name) &weir_trigger_kind_##name,
#include "ion/triggers.def"
#undef WEIR_KIND
};

const struct weir_registry weir_triggers = {
    .noun = "trigger",
    .plural = "triggers",
    .doc =
        "When a pipeline of an ION runs. A pipeline may have several; what fires while it runs is "
        "one further run.",
    .kinds = triggers,
    .n_kinds = WEIR_ARRAY_LEN(triggers),
};

// clang-format off
static const struct weir_field inputs_fields[] = {
    WEIR_FIELD(weir_trigger_inputs, trigger,      JSON, WEIR_FIELD_REQUIRED, "", "Trigger with its options"),
    WEIR_FIELD(weir_trigger_inputs, now_ms,       INT,  WEIR_FIELD_REQUIRED, "ms", "When it was asked"),
    WEIR_FIELD(weir_trigger_inputs, armed_ms,     INT,  0, "ms", "Since when the document has it"),
    WEIR_FIELD(weir_trigger_inputs, started_ms,   INT,  0, "ms", "When the pipeline's last run began; 0: never"),
    WEIR_FIELD(weir_trigger_inputs, by,           TEXT, 0, "", "Who wants a run"),
    WEIR_FIELD(weir_trigger_inputs, next_ms,      INT,  0, "ms", "The schedule's time; 0: never"),
    WEIR_FIELD(weir_trigger_inputs, dataset,      TEXT, 0, "", "Dataset"),
    WEIR_FIELD(weir_trigger_inputs, version,      INT,  0, "", "Its newest version"),
    WEIR_FIELD(weir_trigger_inputs, n_files,      INT,  0, "", "Files in it"),
    WEIR_FIELD(weir_trigger_inputs, n_bytes,      INT,  0, "bytes", "Its size"),
    WEIR_FIELD(weir_trigger_inputs, n_rows,       INT,  0, "", "Rows of tables in it"),
    WEIR_FIELD(weir_trigger_inputs, used_version, INT,  0, "", "Version that the last run began with"),
    WEIR_FIELD(weir_trigger_inputs, used_files,   INT,  0, "", "Files in that"),
    WEIR_FIELD(weir_trigger_inputs, used_bytes,   INT,  0, "bytes", "Size of that"),
    WEIR_FIELD(weir_trigger_inputs, used_rows,    INT,  0, "", "Rows of tables in that"),
    WEIR_FIELD(weir_trigger_inputs, windows,      JSON, 0, "", "Health windows, newest first, by signal and pipeline"),
    WEIR_FIELD(weir_trigger_inputs, has_value,    BOOL, 0, "", "There is a value"),
    WEIR_FIELD(weir_trigger_inputs, value,        F64,  0, "", "Figure that is compared"),
    WEIR_FIELD(weir_trigger_inputs, value_ms,     INT,  0, "ms", "Its time"),
    WEIR_FIELD(weir_trigger_inputs, n_values,     INT,  0, "", "From how many it was made"),
    WEIR_FIELD(weir_trigger_inputs, alert,        TEXT, 0, "", "Newest open alert of the kind"),
    WEIR_FIELD(weir_trigger_inputs, alert_ms,     INT,  0, "ms", "When it was raised last"),
    WEIR_FIELD(weir_trigger_inputs, model_ms,     INT,  0, "ms", "When the newest version of the model came; 0: never"),
};
// clang-format on

const struct weir_resource weir_trigger_inputs_resource =
    WEIR_RESOURCE("trigger's inputs", "trigger_inputs", weir_trigger_inputs, inputs_fields);

static weir_status read_trigger(const json_t *json, const char *where, struct weir_arena *arena,
                                struct weir_trigger *out, struct weir_error *err)
{
    struct weir_configured read;
    char *text;
    WEIR_TRY(weir_registry_read_named(&weir_triggers, json, where, arena, &read, &text, err));
    const struct weir_trigger_ops *ops = read.kind->ops;
    if (ops->check != NULL) {
        WEIR_TRY(ops->check(read.options, where, err));
    }
    *out = (struct weir_trigger){.kind = read.kind, .options = read.options, .text = text};
    return WEIR_OK;
}

const struct weir_trigger *weir_trigger_of_kind(const struct weir_trigger_list *list,
                                                const struct weir_kind *kind)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].kind == kind) {
            return &list->items[i];
        }
    }
    return NULL;
}

static size_t n_manual(const struct weir_trigger_list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        n += list->items[i].kind == &weir_trigger_kind_manual;
    }
    return n;
}

weir_status weir_triggers_read(const json_t *list, const char *where, struct weir_arena *arena,
                               struct weir_trigger_list *out, struct weir_error *err)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > WEIR_TRIGGERS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected a list of at most %d triggers",
                              where, WEIR_TRIGGERS_MAX);
    }
    struct weir_trigger_list read = {.items = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_trigger)};
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(read_trigger(json_array_get(list, i),
                              weir_arena_printf(arena, "%s[%zu]", where, i), arena, &read.items[i],
                              err));
        read.n++;
    }
    if (n_manual(&read) > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: there are two manual triggers", where);
    }
    if (n_manual(&read) == 0) {
        json_t *manual = json_string(weir_trigger_kind_manual.name);
        weir_status status = read_trigger(manual, where, arena, &read.items[read.n++], err);
        json_decref(manual);
        WEIR_TRY(status);
    }
    *out = read;
    return WEIR_OK;
}

int64_t weir_trigger_until_ms(const struct weir_trigger *trigger,
                              const struct weir_trigger_inputs *inputs)
{
    const struct weir_trigger_common *common = trigger->options;
    int64_t started_ms = weir_trigger_past_ms(inputs, inputs->started_ms);
    int64_t until_ms = started_ms + common->least_interval_s * 1000;
    return started_ms > 0 && until_ms > inputs->now_ms ? until_ms : 0;
}

struct weir_trigger_verdict weir_trigger_decide(const struct weir_trigger *trigger,
                                                const struct weir_trigger_inputs *inputs,
                                                struct weir_arena *arena)
{
    const struct weir_trigger_common *common = trigger->options;
    struct weir_trigger_verdict told =
        weir_trigger_ops(trigger)->decide(inputs, trigger->options, arena);
    int64_t until_ms = weir_trigger_until_ms(trigger, inputs);
    if (!told.fires || until_ms == 0) {
        return told;
    }
    return (struct weir_trigger_verdict){
        false,
        weir_arena_printf(arena, "%s, but the last run began less than %" PRId64 " s ago",
                          told.reason, common->least_interval_s),
        until_ms};
}

char *weir_trigger_inputs_text(const struct weir_trigger_inputs *inputs, struct weir_arena *arena)
{
    return weir_record_text(&weir_trigger_inputs_resource, inputs, arena);
}

static weir_status replay(const json_t *json, struct weir_arena *arena,
                          struct weir_trigger_verdict *out, struct weir_error *err)
{
    struct weir_trigger_inputs inputs = {0};
    struct weir_trigger trigger;
    WEIR_TRY(weir_record_from_json(&weir_trigger_inputs_resource, json, WEIR_RECORD_REPORT, arena,
                                   &inputs, err));
    WEIR_TRY(weir_record_check_times(&weir_trigger_inputs_resource, &inputs, err));
    WEIR_TRY(read_trigger(json_object_get(json, "trigger"), "$.trigger", arena, &trigger, err));
    *out = weir_trigger_decide(&trigger, &inputs, arena);
    return WEIR_OK;
}

weir_status weir_trigger_replay(const char *inputs, struct weir_arena *arena,
                                struct weir_trigger_verdict *out, struct weir_error *err)
{
    json_t *json;
    WEIR_TRY(weir_json_parse(inputs, strlen(inputs), "inputs", &json, err));
    weir_status status = replay(json, arena, out, err);
    json_decref(json);
    return status;
}
