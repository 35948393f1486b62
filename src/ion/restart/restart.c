#include "ion/restart.h"

static const struct weir_kind *const restarts[] = {
#define WEIR_KIND(name) &weir_restart_##name,
#include "ion/restarts.def"
#undef WEIR_KIND
};

const struct weir_registry weir_restarts = {
    .noun = "restart",
    .plural = "restarts",
    .doc =
        "Whether a pipeline of an ION runs again after a run has ended. What a person ends is not "
        "run again.",
    .kinds = restarts,
    .n_kinds = WEIR_ARRAY_LEN(restarts),
};

weir_status weir_restart_read(const json_t *json, const char *where, struct weir_arena *arena,
                              struct weir_restart *out, struct weir_error *err)
{
    struct weir_configured read;
    json_t *unsaid = json == NULL || json_is_null(json) ? json_string("never") : NULL;
    weir_status status = weir_registry_read_named(&weir_restarts, unsaid != NULL ? unsaid : json,
                                                  where, arena, &read, NULL, err);
    json_decref(unsaid);
    WEIR_TRY(status);
    *out = (struct weir_restart){.kind = read.kind, .options = read.options};
    return WEIR_OK;
}

bool weir_restart_decide(const struct weir_restart *restart,
                         const struct weir_restart_inputs *inputs, int64_t *out_delay_ms)
{
    const struct weir_restart_ops *ops = restart->kind != NULL ? restart->kind->ops : NULL;
    return ops != NULL && ops->decide(inputs, restart->options, out_delay_ms);
}
