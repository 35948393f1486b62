#include "framework/job_plan.h"

struct job_serve {
    char *deployment, *replica, *listen, *secret, *dir;
};

static const struct weir_option options[] = {
    WEIR_OPT_JSON(job_serve, deployment, "deployment", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Deployment that it serves; `weir deploy` starts it"),
    WEIR_OPT_JSON(job_serve, replica, "replica", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Which of its replicas it is"),
    WEIR_OPT_JSON(job_serve, listen, "listen", TEXT, 0, "0.0.0.0:0", 0, 0,
                  "Address and port that it takes requests at; port 0: any"),
    WEIR_OPT_JSON(job_serve, secret, "secret", TEXT, WEIR_OPTION_REQUIRED | WEIR_OPTION_SECRET,
                  NULL, 0, 0, "What it demands of who calls it"),
    WEIR_OPT_JSON(job_serve, dir, "dir", TEXT,
                  WEIR_OPTION_INTERNAL | WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, NULL, 0, 0,
                  "Its folder, where it keeps the files of models"),
};

/* What it loads the deployment says: a job of this kind belongs to one. */
static weir_status check_serve(const json_t *spec, struct weir_arena *arena, struct weir_error *err)
{
    struct weir_configured read;
    if (!json_is_string(json_object_get(spec, "deployment")) ||
        !json_is_string(json_object_get(spec, "secret"))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec: a serve job needs deployment, replica and secret; a "
                              "deployment's are started by `weir deploy`");
    }
    return weir_kind_read(&weir_job_serve, spec, "$.spec", arena, &read, err);
}

static weir_status plan_serve(struct job_plan *plan, struct weir_error *err)
{
    const struct weir_launch_job *job = plan->job;
    WEIR_TRY(job_plan_room(plan, 1, err));
    json_t *spec = job_plan_spec(plan);
    json_object_set_new(spec, "dir", json_sprintf("%s/replicas/%s-0", job->shared_dir, job->id));
    if (json_object_get(spec, "listen") == NULL) {
        json_object_set_new(spec, "listen", json_string("0.0.0.0:0"));
    }
    job_plan_add(plan, "replica", 0, 0, WEIGHT_REPLICA, job_plan_worker(plan, "serve", spec));
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "nodes", "replicas", "workers", "processes"), NULL,
     "each replica of a deployment is a job of its own: weir deploy --replicas N"},
    {WEIR_WORDS("argv"), NULL, "a deployment starts its own replicas: weir deploy"},
};

static const struct weir_job_ops ops = {
    .is_service = true,
    .has_known_exits = true,
    .max_restarts = 3,
    .check = check_serve,
    .plan = plan_serve,
};

const struct weir_kind weir_job_serve = {
    .name = "serve",
    .doc = "A replica of a deployment: it loads the deployment's versions and answers requests. It "
           "is placed and restarted on its own. A deployment starts its own; people do not.",
    WEIR_KIND_OPTIONS(job_serve, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
