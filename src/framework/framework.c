#include "framework/framework.h"

#include "framework/job_plan.h"
#include "framework/paths.h"

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_job_##name,
#include "framework/job_kinds.def"
#undef WEIR_KIND
};

const struct weir_registry weir_job_kinds = {
    .noun = "job-kind",
    .plural = "job-kinds",
    .doc = "What a job starts.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
    .planned = WEIR_WORDS("pytorch", "tensorflow", "mpi"),
    .instead = "use a \"command\" job",
};

const struct weir_job_ops *weir_job_ops_of(const char *kind)
{
    const struct weir_kind *found = weir_registry_get(&weir_job_kinds, kind);
    return found != NULL ? found->ops : NULL;
}

weir_status weir_framework_check(const char *kind, const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    const struct weir_kind *found;
    WEIR_TRY(weir_registry_find(&weir_job_kinds, kind, "$.kind", &found, err));
    const struct weir_job_ops *ops = found->ops;
    return ops->check(spec, arena, err);
}

weir_status weir_framework_plan(const struct weir_launch_job *job, struct weir_arena *arena,
                                struct weir_launch **out, size_t *out_n, struct weir_error *err)
{
    struct job_plan plan = {.job = job, .arena = arena};
    WEIR_TRY(weir_registry_find(&weir_job_kinds, job->kind, "$.kind", &plan.kind, err));
    WEIR_TRY(weir_framework_paths_check(job->shared_dir, job->kind, "$.spec", job->spec, err));
    const struct weir_job_ops *ops = plan.kind->ops;
    WEIR_TRY(ops->plan(&plan, err));
    *out = plan.launches;
    *out_n = plan.n;
    return WEIR_OK;
}
