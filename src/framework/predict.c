#include "endpoint/door.h"
#include "framework/job_plan.h"

#include <string.h>

/* Of each sink of an ION that is tried. */
#define SANDBOX_FILE_MB    16
#define SANDBOX_FILES_KEPT 3

struct job_predict {
    char *ion, *pipeline;
    int64_t replicas;
    const json_t *source, *sinks, *doors, *health;
    bool sandbox, pictures;
    char *dir, *sandbox_dir;
};

static const struct weir_option options[] = {
    WEIR_OPT_JSON(job_predict, ion, "ion", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "ION that it serves; `weir apply` starts it"),
    WEIR_OPT_JSON(job_predict, pipeline, "pipeline", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Prediction pipeline of that ION"),
    WEIR_OPT_JSON(job_predict, replicas, "replicas", INT, 0, "1", 1, WEIR_FRAMEWORK_TASKS_MAX,
                  "Processes"),
    WEIR_OPT_JSON(job_predict, source, "source", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Where frames come from: a source"),
    WEIR_OPT_JSON(job_predict, sinks, "sinks", JSON, 0, NULL, 0, 0,
                  "Where decisions go: a list of sinks"),
    WEIR_OPT_JSON(job_predict, doors, "doors", JSON, 0, NULL, 0, 0,
                  "What is opened for whom it lets in: a list of doors"),
    WEIR_OPT_JSON(job_predict, health, "health", JSON, 0, NULL, 0, 0,
                  "Watching for drift: {window, interval_ms, frozen_after_ms}"),
    WEIR_OPT_JSON(job_predict, pictures, "pictures", BOOL, 0, "true", 0, 0,
                  "Keep pictures of decisions"),
    WEIR_OPT_JSON(
        job_predict, sandbox, "sandbox", BOOL, 0, NULL, 0, 0,
        "Try it: decisions go to a folder of the job's own instead of the sinks, and frames "
        "stay where they are"),
    WEIR_OPT_JSON(job_predict, sandbox_dir, "sandbox-dir", TEXT,
                  WEIR_OPTION_INTERNAL | WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, NULL, 0, 0,
                  "That folder"),
    WEIR_OPT_JSON(job_predict, dir, "dir", TEXT,
                  WEIR_OPTION_INTERNAL | WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, NULL, 0, 0,
                  "The replica's durable folder"),
};

/* Only an ION has what a replica serves: a job of this kind belongs to one. */
static weir_status check_predict(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct weir_configured read, source, sinks[WEIR_ENDPOINT_SINKS_MAX];
    size_t n_sinks;
    if (!json_is_string(json_object_get(spec, "ion")) ||
        !json_is_string(json_object_get(spec, "pipeline"))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec: a predict job needs ion and pipeline; an ION's are "
                              "started by `weir apply`");
    }
    WEIR_TRY(weir_kind_read(&weir_job_predict, spec, "$.spec", arena, &read, err));
    const struct job_predict *predict = read.options;
    WEIR_TRY(weir_endpoints_read(predict->source, predict->sinks, "$.spec", arena, &source, sinks,
                                 &n_sinks, err));
    return weir_doors_read(predict->doors, "$.spec", predict->replicas, arena,
                           WEIR_ARENA_ARRAY(arena, WEIR_DOORS_MAX, struct weir_door), &n_sinks,
                           err);
}

/* In place of each sink a file in the job's own folder, and no doors: nothing that the document names is written or
 * opened. */
static void put_sandbox(const struct job_plan *plan, const struct job_predict *predict,
                        int64_t rank, json_t *spec)
{
    const char *dir =
        weir_arena_printf(plan->arena, "%s/sandbox/%s", plan->job->shared_dir, plan->job->id);
    json_t *sinks = json_array();
    for (size_t i = 0; i < json_array_size(predict->sinks); i++) {
        json_array_append_new(
            sinks, json_pack("{s:s,s:i,s:i,s:o}", "kind", weir_sink_jsonl_kind.name, "max_mb",
                             SANDBOX_FILE_MB, "keep", SANDBOX_FILES_KEPT, "path",
                             json_sprintf("%s/%s-%lld-%zu.jsonl", dir, predict->pipeline,
                                          (long long)rank, i)));
    }
    json_object_set_new(spec, "sinks", sinks);
    (void)json_object_del(spec, "doors");
    json_object_set_new(spec, "sandbox_dir", json_string(dir));
}

/* Folders of replicas before it, which the server has found (control/job/start.c), by their names: its agent lets it in there. */
static json_t *name_left(const json_t *spec)
{
    const json_t *dirs = json_object_get(spec, "left");
    json_t *names = json_array();
    for (size_t i = 0; i < json_array_size(dirs); i++) {
        const char *dir = json_string_value(json_array_get(dirs, i)), *slash = strrchr(dir, '/');
        json_array_append_new(names, json_string(slash != NULL ? slash + 1 : dir));
    }
    return names;
}

static void add_secret(void *context, const struct weir_endpoint_secret *secret)
{
    json_array_append_new(context, json_sprintf("%s=%s", secret->variable, secret->name));
}

/* Those that its source, sinks and doors name: as any job's they come by the environment. */
static json_t *name_secrets(const json_t *spec)
{
    json_t *list = json_array();
    weir_endpoints_secrets(json_object_get(spec, "source"), json_object_get(spec, "sinks"),
                           add_secret, list);
    weir_doors_secrets(json_object_get(spec, "doors"), add_secret, list);
    return list;
}

static weir_status plan_predict(struct job_plan *plan, struct weir_error *err)
{
    struct weir_configured read;
    const struct weir_launch_job *job = plan->job;
    WEIR_TRY(weir_kind_read(plan->kind, job->spec, "$.spec", plan->arena, &read, err));
    const struct job_predict *predict = read.options;
    int64_t n_replicas = predict->replicas;
    WEIR_TRY(job_plan_room(plan, n_replicas, err));
    for (int64_t rank = 0; rank < n_replicas; rank++) {
        json_t *spec = job_plan_spec(plan);
        json_object_set_new(spec, "project", json_string(job->project));
        json_object_set_new(spec, "replica", json_sprintf("%s-%lld", job->id, (long long)rank));
        json_object_set_new(
            spec, "dir",
            json_sprintf("%s/replicas/%s-%lld", job->shared_dir, job->id, (long long)rank));
        if (predict->sandbox) {
            put_sandbox(plan, predict, rank, spec);
        }
        json_t *left = name_left(spec), *secrets = name_secrets(spec);
        json_t *definition = job_plan_worker(plan, "predict", spec);
        json_object_set_new(definition, "secrets", secrets);
        json_object_set_new(definition, "left", left);
        job_plan_add(plan, "replica", rank, 0, WEIGHT_REPLICA, definition);
    }
    return WEIR_OK;
}

static weir_status visit_paths(const json_t *spec, const char *where, weir_option_path_fn fn,
                               void *context)
{
    WEIR_TRY(weir_endpoints_paths(json_object_get(spec, "source"), json_object_get(spec, "sinks"),
                                  where, fn, context));
    return weir_doors_paths(json_object_get(spec, "doors"), where, fn, context);
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "nodes", "workers", "processes"), "replicas",
     "of the pipeline in the document of the ION"},
    {WEIR_WORDS("argv"), NULL, "an ION starts its own replicas: weir apply"},
};

static const struct weir_job_ops ops = {
    .is_service = true,
    .has_known_exits = true,
    .max_restarts = 3,
    .check = check_predict,
    .plan = plan_predict,
    .paths = visit_paths,
};

const struct weir_kind weir_job_predict = {
    .name = "predict",
    .doc = "The replicas of an ION's prediction pipeline: each is placed and restarted on its own, "
           "for ever. An ION starts its own; people do not.",
    WEIR_KIND_OPTIONS(job_predict, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
