#include "serve/serve_spec.h"

#include "base/json.h"

#include <stddef.h>

#define SPEC_MAX_BYTES ((size_t)1 << 20)

static const struct {
    const char *key;
    size_t offset;
    bool is_required;
} members[] = {
    {"deployment", offsetof(struct serve_spec, deployment), true},
    {"replica", offsetof(struct serve_spec, replica), true},
    {"dir", offsetof(struct serve_spec, dir), true},
    {"server", offsetof(struct serve_spec, server), false},
    {"token_file", offsetof(struct serve_spec, token_file), false},
    {"ca_file", offsetof(struct serve_spec, ca_file), false},
    {"listen", offsetof(struct serve_spec, listen), false},
    {"secret", offsetof(struct serve_spec, secret), true},
};

static weir_status read_spec(const json_t *root, struct weir_arena *arena, struct serve_spec *out,
                             struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        const json_t *value = json_object_get(root, members[i].key);
        bool is_absent = value == NULL || json_is_null(value);
        if (is_absent ? members[i].is_required
                      : !json_is_string(value) || json_string_length(value) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected text", members[i].key);
        }
        char **at = (char **)(void *)((char *)out + members[i].offset);
        *at = is_absent ? NULL : weir_arena_strdup(arena, json_string_value(value));
    }
    if (out->listen == NULL) {
        out->listen = weir_arena_strdup(arena, "0.0.0.0:0");
    }
    return WEIR_OK;
}

weir_status serve_spec_load(const char *path, struct weir_arena *arena, struct serve_spec *out,
                            struct weir_error *err)
{
    json_t *root;
    struct serve_spec spec = {0};
    WEIR_TRY(weir_json_load(path, SPEC_MAX_BYTES, &root, err));
    weir_status status = read_spec(root, arena, &spec, err);
    json_decref(root);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "%s: ", path);
    }
    *out = spec;
    return WEIR_OK;
}
