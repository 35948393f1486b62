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
    .planned = WEIR_WORDS("ray"),
    .instead = "use a \"command\" job",
    .common = weir_job_common_options,
    .n_common = WEIR_JOB_N_COMMON_OPTIONS,
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
    struct weir_job_request request;
    WEIR_TRY(weir_kind_check_members(&weir_job_kinds, found, spec, "$.spec", err));
    WEIR_AUTO(weir_json_auto_free) json_t *own = weir_job_request_strip(spec);
    WEIR_TRY(ops->check(own, arena, err));
    return weir_job_request_read(spec, ops->is_service, ops->save_signal, arena, &request, err);
}

weir_status weir_framework_plan(const struct weir_launch_job *job, struct weir_arena *arena,
                                struct weir_launch **out, size_t *out_n,
                                struct weir_job_request *out_request, struct weir_error *err)
{
    struct weir_launch_job own = *job;
    struct job_plan plan = {.job = &own, .arena = arena};
    WEIR_TRY(weir_registry_find(&weir_job_kinds, job->kind, "$.kind", &plan.kind, err));
    const struct weir_reach reach = {job->shared_dir, job->project, job->datasets};
    WEIR_TRY(weir_framework_paths_check(&reach, job->kind, "$.spec", job->spec, err));
    const struct weir_job_ops *ops = plan.kind->ops;
    WEIR_TRY(weir_job_request_read(job->spec, ops->is_service, ops->save_signal, arena,
                                   &plan.request, err));
    WEIR_AUTO(weir_json_auto_free) json_t *spec = weir_job_request_strip(job->spec);
    own.spec = spec;
    WEIR_TRY(ops->plan(&plan, err));
    *out = plan.launches;
    *out_n = plan.n;
    *out_request = plan.request;
    return WEIR_OK;
}
