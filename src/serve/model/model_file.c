#include "serve/model_file.h"

weir_status model_file_load(const char *path, const struct model_name *name, size_t batch,
                            struct weir_arena *arena, struct serve_model **out,
                            struct weir_signature *out_signature, struct weir_error *err)
{
    struct executor_options options =
        name->executor != NULL ? *name->executor : (struct executor_options){0};
    options.n_threads = 1;
    options.batch_max = (int32_t)batch;
    const char *kind = json_string_value(json_object_get(name->signature, "executor"));
    char why[EXECUTOR_WHY_BYTES];
    if (name->signature != NULL && kind != NULL) {
        WEIR_TRY(
            weir_signature_read(name->signature, "$.model.signature", arena, out_signature, err));
        options.shapes = out_signature->inputs;
        options.n_shapes = out_signature->n_inputs;
        return executor_load(kind, path, &options, out, err);
    }
    WEIR_TRY(executor_choose(path, &options, out, why, err));
    return weir_signature_make(*out, serve_model_format(*out), why, &(struct signature_extras){0},
                               arena, out_signature, err);
}
