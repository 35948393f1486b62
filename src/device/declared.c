/* Devices that somebody declares, for hardware that nothing here finds: {"devices": [{"model",
 * "count", "memory"}]} in YAML or JSON. They are as well as the file says. */
#include "look.h"

#include "base/file.h"
#include "base/macros.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)64 << 10)

/* "80GiB", "512 MiB", or bytes. -1: neither. */
static int64_t parse_bytes(const json_t *value)
{
    static const struct {
        const char *unit;
        int64_t bytes;
    } units[] = {{"KiB", 1LL << 10}, {"MiB", 1LL << 20}, {"GiB", 1LL << 30}, {"TiB", 1LL << 40}};

    if (value == NULL) {
        return 0;
    }
    if (json_is_integer(value)) {
        return json_integer_value(value);
    }
    char *end;
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    double number = strtod(text, &end);
    end += strspn(end, " ");
    for (size_t i = 0; end != text && i < WEIR_ARRAY_LEN(units); i++) {
        if (strcmp(end, units[i].unit) == 0 && number >= 0 && number < 1e6) {
            return (int64_t)(number * (double)units[i].bytes);
        }
    }
    return -1;
}

static weir_status check_keys(const json_t *item, size_t i, struct weir_error *err)
{
    static const char *const known[] = {"model", "count", "memory"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)item, key, value)
    {
        bool is_known = false;
        for (size_t k = 0; k < WEIR_ARRAY_LEN(known); k++) {
            is_known = is_known || strcmp(known[k], key) == 0;
        }
        if (!is_known) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.devices[%zu].%.40s: there is no such setting; there are "
                                  "model, count, memory",
                                  i, key);
        }
    }
    return WEIR_OK;
}

static weir_status add_item(struct look *look, const json_t *item, size_t i, struct weir_error *err)
{
    const char *model = json_string_value(json_object_get(item, "model"));
    const json_t *given = json_object_get(item, "count");
    int64_t count = given != NULL ? json_integer_value(given) : 1;
    int64_t memory = parse_bytes(json_object_get(item, "memory"));
    if (model == NULL || model[0] == '\0' || strlen(model) > 60) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.devices[%zu].model: expected a text of 1 to 60 bytes", i);
    }
    if (count < 1 || count > WEIR_FOUND_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.devices[%zu].count: expected 1 to %d", i,
                              WEIR_FOUND_MAX);
    }
    if (memory < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.devices[%zu].memory: expected bytes, or a text as 80GiB", i);
    }
    WEIR_TRY(check_keys(item, i, err));
    for (int64_t k = 0; k < count; k++) {
        char id[96];
        (void)snprintf(id, sizeof id, "declared-%zu-%s-%lld", i, model, (long long)k);
        struct weir_found *found = look_add(look, "declared", id);
        if (found != NULL) {
            (void)snprintf(found->model, sizeof found->model, "%s", model);
            found->memory_bytes = memory;
        }
    }
    return WEIR_OK;
}

static weir_status find(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err)
{
    struct look look = {.context = context, .list = list};
    const char *path = context->config.declared;
    char text[FILE_MAX_BYTES];
    size_t len, i;
    if (path == NULL) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_json_auto_free) json_t *document = NULL;
    WEIR_TRY(weir_file_read_into(path, text, sizeof text, &len, err));
    WEIR_TRY(weir_yaml_parse(text, len, path, false, &document, err));
    const json_t *items = json_object_get(document, "devices"), *item;
    if (!json_is_array(items)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: $.devices: expected a list of {model, count, memory}", path);
    }
    json_array_foreach(items, i, item)
    {
        weir_status status = add_item(&look, item, i, err);
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "%s: ", path);
        }
    }
    return look_end(&look, "declared devices", err);
}

static const struct weir_device_provider provider = {.find = find};

const struct weir_kind weir_device_declared = {
    .name = "declared",
    .doc = "What a file declares that nothing else finds: models, how many, how much memory.",
    .ops = &provider};
