#include "framework/job_plan.h"

struct job_measure {
    char *model, *live, *dataset;
    int64_t batch_size;
    double alpha;
};

static const struct weir_option options[] = {
    WEIR_OPT_JSON(job_measure, model, "model", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Model: NAME, NAME@v3 or NAME@ALIAS; the version is chosen when the job is made"),
    WEIR_OPT_JSON(job_measure, live, "live", TEXT, 0, NULL, 0, 0,
                  "A second one, of the same classes, that the first is compared with"),
    WEIR_OPT_JSON(job_measure, dataset, "dataset", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Dataset of a folder per class: NAME, for its newest version, or NAME@v2"),
    WEIR_OPT_JSON(job_measure, batch_size, "batch-size", INT, 0, "16", 1, 1024,
                  "Pictures that are computed together"),
    WEIR_OPT_JSON(job_measure, alpha, "alpha", F64, 0, "0.05", 0.000001, 0.5,
                  "Of a comparison: how likely a difference may be by chance, to be called one"),
};

/* What model and dataset are, the control plane looks up. */
static weir_status check_measure(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct weir_configured read;
    return weir_kind_read(&weir_job_measure, spec, "$.spec", arena, &read, err);
}

static weir_status plan_measure(struct job_plan *plan, struct weir_error *err)
{
    WEIR_TRY(job_plan_room(plan, 1, err));
    json_t *spec = job_plan_spec(plan);
    json_object_set_new(spec, "threads", json_integer((json_int_t)job_plan_threads(plan)));
    job_plan_add(plan, "worker", 0, 1000, WEIGHT_WORKER, job_plan_worker(plan, "measure", spec));
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "nodes", "replicas", "workers", "processes"), NULL,
     "a measurement is one task"},
};

static const struct weir_job_ops ops = {
    .has_known_exits = true,
    .pins_model = true,
    .max_restarts = 3,
    .check = check_measure,
    .plan = plan_measure,
};

const struct weir_kind weir_job_measure = {
    .name = "measure",
    .doc = "How right a classifier is on the labelled pictures of a dataset version, and with a "
           "second one, which is better: figures of its run (accuracy, loss; difference, p_value, "
           "better).",
    WEIR_KIND_OPTIONS(job_measure, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
