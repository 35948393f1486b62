#include "framework/job_plan.h"

#include <string.h>

struct job_batch {
    char *model, *dataset, *split, *format, *output;
    int64_t tasks, top, batch_size, shard_size;
    bool values;
};

static const struct weir_option options[] = {
    WEIR_OPT_JSON(job_batch, model, "model", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Model: NAME, NAME@v3 or NAME@ALIAS; the version is chosen when the job is made"),
    WEIR_OPT_JSON(job_batch, dataset, "dataset", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Dataset: NAME, for its newest version, or NAME@v2"),
    WEIR_OPT_JSON(job_batch, split, "split", TEXT, 0, "train", 0, 0,
                  "Which pictures of a dataset of the kind idx: train or test"),
    WEIR_OPT_JSON(job_batch, tasks, "tasks", INT, 0, "1", 1, WEIR_FRAMEWORK_TASKS_MAX,
                  "Tasks that share the work; the results are the same for any number"),
    WEIR_OPT_JSON(job_batch, top, "top", INT, 0, "1", 1, 1000,
                  "Classes that each row has, likeliest first"),
    WEIR_OPT_JSON(job_batch, values, "values", BOOL, 0, NULL, 0, 0,
                  "Rows of a classifier have the values of its outputs too; other models' always "
                  "do"),
    WEIR_OPT_JSON(job_batch, format, "format", TEXT, 0, "jsonl", 0, 0,
                  "Of the shards: jsonl, one JSON object a line, or csv, for classifiers"),
    WEIR_OPT_JSON(job_batch, batch_size, "batch-size", INT, 0, "16", 1, 1024,
                  "Pictures that are computed together"),
    WEIR_OPT_JSON(job_batch, shard_size, "shard-size", INT, 0, "1000", 1, 1000000,
                  "Pictures of one file of results"),
    WEIR_OPT_JSON(job_batch, output, "output", TEXT, WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, NULL,
                  0, 0,
                  "Folder for the results, which every task's node must see; else the server keeps "
                  "them with the job"),
};

static weir_status check_word(const char *place, const char *text, const char *const *words,
                              struct weir_error *err)
{
    return strcmp(text, words[0]) == 0 || strcmp(text, words[1]) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "$.spec.%s: expected \"%s\" or \"%s\"",
                                place, words[0], words[1]);
}

/* What model and dataset are, the control plane looks up. */
static weir_status check_batch(const json_t *spec, struct weir_arena *arena, struct weir_error *err)
{
    struct weir_configured read;
    WEIR_TRY(weir_kind_read(&weir_job_batch, spec, "$.spec", arena, &read, err));
    const struct job_batch *batch = read.options;
    WEIR_TRY(check_word("format", batch->format, WEIR_WORDS("jsonl", "csv"), err));
    WEIR_TRY(check_word("split", batch->split, WEIR_WORDS("train", "test"), err));
    if (batch->output != NULL && batch->output[0] != '/') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.output: %.200s: expected the absolute path of a folder that "
                              "every node sees",
                              batch->output);
    }
    return WEIR_OK;
}

static weir_status plan_batch(struct job_plan *plan, struct weir_error *err)
{
    struct weir_configured read;
    const struct weir_launch_job *job = plan->job;
    WEIR_TRY(weir_kind_read(plan->kind, job->spec, "$.spec", plan->arena, &read, err));
    int64_t n_tasks = ((const struct job_batch *)read.options)->tasks;
    WEIR_TRY(job_plan_room(plan, n_tasks, err));
    plan->request.is_array =
        n_tasks > 1; /* each has shards of its own, and needs none of the others */
    for (int64_t rank = 0; rank < n_tasks; rank++) {
        json_t *spec = job_plan_spec(plan);
        json_object_set_new(spec, "rank", json_integer((json_int_t)rank));
        json_object_set_new(spec, "threads", json_integer((json_int_t)job_plan_threads(plan)));
        job_plan_add(plan, "worker", rank, 1000, WEIGHT_WORKER,
                     job_plan_worker(plan, "batch-predict", spec));
    }
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("nodes", "replicas", "workers", "processes"), "tasks", "weir batch --tasks N"},
};

static const struct weir_job_ops ops = {
    .has_known_exits = true,
    .pins_model = true,
    .max_restarts = 3,
    .check = check_batch,
    .plan = plan_batch,
};

const struct weir_kind weir_job_batch = {
    .name = "batch",
    .doc = "The answers of a model for every picture of a dataset version, as files: tasks share "
           "them, each of which starts when there is room for it. It is tracked as a run, and one "
           "that is started again goes on from the shards that are there.",
    WEIR_KIND_OPTIONS(job_batch, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
