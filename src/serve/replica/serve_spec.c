#include "serve/replica/serve_spec.h"

static const struct weir_host_text texts[] = {
    {"deployment", offsetof(struct serve_spec, deployment), true},
    {"listen", offsetof(struct serve_spec, listen), false},
    {"secret", offsetof(struct serve_spec, secret), true},
};

weir_status serve_spec_load(const char *path, struct weir_arena *arena, struct serve_spec *out,
                            struct weir_error *err)
{
    static const struct weir_host_spec_form form = {texts, WEIR_ARRAY_LEN(texts), NULL};
    struct serve_spec spec = {0};
    WEIR_TRY(weir_host_spec_load(path, &form, arena, &spec, err));
    if (spec.listen == NULL) {
        spec.listen = weir_arena_strdup(arena, "0.0.0.0:0");
    }
    *out = spec;
    return WEIR_OK;
}
