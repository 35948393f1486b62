#include "host/spec.h"

#include <stddef.h>

#define SPEC_MAX_BYTES ((size_t)1 << 20)

static const struct weir_host_text texts[] = {
    {"replica", offsetof(struct weir_host_spec, replica), true},
    {"dir", offsetof(struct weir_host_spec, dir), true},
    {"server", offsetof(struct weir_host_spec, server), false},
    {"token_file", offsetof(struct weir_host_spec, token_file), false},
    {"ca_file", offsetof(struct weir_host_spec, ca_file), false},
};

static weir_status read_texts(const json_t *root, const struct weir_host_text *rows, size_t n_rows,
                              struct weir_arena *arena, void *out, struct weir_error *err)
{
    for (size_t i = 0; i < n_rows; i++) {
        const json_t *value = json_object_get(root, rows[i].key);
        bool is_absent = value == NULL || json_is_null(value);
        if (is_absent ? rows[i].is_required
                      : !json_is_string(value) || json_string_length(value) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected text", rows[i].key);
        }
        char **at = (char **)(void *)((char *)out + rows[i].offset);
        *at = is_absent ? NULL : weir_arena_strdup(arena, json_string_value(value));
    }
    return WEIR_OK;
}

static weir_status read_root(json_t *root, const struct weir_host_spec_form *form,
                             struct weir_arena *arena, void *out, struct weir_error *err)
{
    WEIR_TRY(read_texts(root, form->texts, form->n_texts, arena, out, err));
    WEIR_TRY(read_texts(root, texts, WEIR_ARRAY_LEN(texts), arena, out, err));
    return form->read != NULL ? form->read(root, arena, out, err) : WEIR_OK;
}

weir_status weir_host_spec_load(const char *path, const struct weir_host_spec_form *form,
                                struct weir_arena *arena, void *out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *root = NULL;
    WEIR_TRY(weir_json_load(path, SPEC_MAX_BYTES, &root, err));
    weir_status status = read_root(root, form, arena, out, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", path);
}

weir_status weir_host_client_open(const struct weir_host_spec *spec, int64_t timeout_ms,
                                  struct weir_client **out, struct weir_error *err)
{
    const struct weir_client_config config = {.server = spec->server,
                                              .token_file = spec->token_file,
                                              .ca_file = spec->ca_file,
                                              .timeout_ms = timeout_ms};
    return weir_client_open(&config, out, err);
}

weir_status weir_host_read_ints(const json_t *object, const char *where,
                                const struct weir_host_int *rows, size_t n_rows, void *out,
                                struct weir_error *err)
{
    for (size_t i = 0; i < n_rows; i++) {
        const struct weir_host_int *row = &rows[i];
        const json_t *value = json_object_get(object, row->key);
        int64_t *at = (int64_t *)(void *)((char *)out + row->offset);
        *at = json_is_integer(value) ? json_integer_value(value) : row->fallback;
        bool is_absent = value == NULL || json_is_null(value);
        if (!is_absent && (!json_is_integer(value) || *at < row->lo || *at > row->hi)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.%s: expected an integer from %lld to %lld", where, row->key,
                                  (long long)row->lo, (long long)row->hi);
        }
    }
    return WEIR_OK;
}
