#include "framework/program.h"

#include <string.h>

struct job_tensorflow {
    struct program program;
    int64_t workers, parameter_servers;
    bool chief, evaluator;
};

static const struct weir_option options[] = {
    PROGRAM_OPTIONS(job_tensorflow),
    WEIR_OPT_JSON(job_tensorflow, workers, "workers", INT, 0, "1", 1, WEIR_FRAMEWORK_TASKS_MAX,
                  "Tasks of the type worker; without a chief, worker 0 is it"),
    WEIR_OPT_JSON(
        job_tensorflow, parameter_servers, "parameter-servers", INT, 0, "0", 0,
        WEIR_FRAMEWORK_TASKS_MAX,
        "Tasks of the type ps. With some, the chief coordinates: when it ends, the job does, "
        "and workers and servers are stopped"),
    WEIR_OPT_JSON(
        job_tensorflow, chief, "chief", BOOL, 0, NULL, 0, 0,
        "A task of the type chief beside the workers; with parameter servers there is one "
        "always"),
    WEIR_OPT_JSON(job_tensorflow, evaluator, "evaluator", BOOL, 0, NULL, 0, 0,
                  "A task of the type evaluator, which is stopped when the others have ended"),
};

#define N_TYPES 4

/* Tasks of one type have ranks that follow each other. TF_CONFIG's names of them: TensorFlow,
 * tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py. */
struct type {
    const char *name, *role;
    int64_t first, n;
    bool is_in_cluster; /* the evaluator is not: it meets nobody */
};

struct cluster {
    struct type types[N_TYPES];
    int64_t n_tasks, n_met;
};

static struct cluster cluster_of(const struct job_tensorflow *given)
{
    bool has_servers = given->parameter_servers > 0;
    struct cluster cluster = {
        .types = {{"chief", "worker", 0, given->chief || has_servers, true},
                  {"worker", has_servers ? "server" : "worker", 0, given->workers, true},
                  {"ps", "parameter_server", 0, given->parameter_servers, true},
                  {"evaluator", "evaluator", 0, given->evaluator, false}}};
    for (size_t i = 0; i < N_TYPES; i++) {
        struct type *type = &cluster.types[i];
        type->first = cluster.n_tasks;
        cluster.n_tasks += type->n;
        cluster.n_met += type->is_in_cluster ? type->n : 0;
    }
    return cluster;
}

/* {"cluster":{"worker":["10.0.0.1:20001",…]},"task":{"type":"worker","index":0}}, but for the
 * addresses, which stand there as one place to be filled in for each type. */
static const char *config_text(const struct cluster *cluster, const struct type *own, int64_t index,
                               struct weir_arena *arena)
{
    const char *lists = "";
    for (size_t i = 0; i < N_TYPES; i++) {
        const struct type *type = &cluster->types[i];
        if (type->is_in_cluster && type->n > 0) {
            lists =
                weir_arena_printf(arena, "%s%s\"%s\":[{{%lld-%lld|\"@address:@port\"|,}}]", lists,
                                  lists[0] != '\0' ? "," : "", type->name, (long long)type->first,
                                  (long long)(type->first + type->n - 1));
        }
    }
    return weir_arena_printf(arena, "{\"cluster\":{%s},\"task\":{\"type\":\"%s\",\"index\":%lld}}",
                             lists, own->name, (long long)index);
}

static weir_status read(const json_t *spec, struct weir_arena *arena,
                        const struct job_tensorflow **out, struct cluster *out_cluster,
                        struct weir_error *err)
{
    struct weir_configured read;
    WEIR_TRY(weir_kind_read(&weir_job_tensorflow, spec, "$.spec", arena, &read, err));
    *out = read.options;
    *out_cluster = cluster_of(*out);
    WEIR_TRY(program_check(&(*out)->program, spec, err));
    return out_cluster->n_tasks <= WEIR_FRAMEWORK_TASKS_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "$.spec.workers: at most %d tasks in all",
                                WEIR_FRAMEWORK_TASKS_MAX);
}

static weir_status check_tensorflow(const json_t *spec, struct weir_arena *arena,
                                    struct weir_error *err)
{
    const struct job_tensorflow *given;
    struct cluster cluster;
    return read(spec, arena, &given, &cluster, err);
}

static weir_status plan_tensorflow(struct job_plan *plan, struct weir_error *err)
{
    const struct job_tensorflow *given;
    struct cluster cluster;
    WEIR_TRY(read(plan->job->spec, plan->arena, &given, &cluster, err));
    WEIR_TRY(job_plan_room(plan, cluster.n_tasks, err));
    for (size_t i = 0; i < N_TYPES; i++) {
        const struct type *type = &cluster.types[i];
        for (int64_t index = 0; index < type->n; index++) {
            int64_t rank = type->first + index;
            bool is_server = strcmp(type->role, "parameter_server") == 0;
            json_t *definition = program_definition(plan, rank, cluster.n_tasks);
            program_meet(definition, cluster.n_tasks, cluster.n_met);
            program_meet_env(definition, "TF_CONFIG",
                             config_text(&cluster, type, index, plan->arena));
            job_plan_add(plan, type->role, rank,
                         is_server ? 0 : program_cpu_millis(plan, &given->program),
                         is_server ? WEIGHT_PARAMETER_SERVER : WEIGHT_WORKER, definition);
        }
    }
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "nodes", "replicas", "processes"), "workers",
     "weir job run --set workers=N"},
    {WEIR_WORDS("ps", "servers"), "parameter_servers", "weir job run --set parameter_servers=N"},
};

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .is_tracked = true,
    .check = check_tensorflow,
    .plan = plan_tensorflow,
};

const struct weir_kind weir_job_tensorflow = {
    .name = "tensorflow",
    .doc = "A program of TensorFlow as a gang of tasks that start together, each told by TF_CONFIG "
           "who it is and where the others are: for MultiWorkerMirroredStrategy, "
           "ParameterServerStrategy and estimators.",
    WEIR_KIND_OPTIONS(job_tensorflow, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
