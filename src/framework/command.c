#include "framework/program.h"

struct job_command {
    struct program program;
    const json_t *tasks;
    int64_t array, parallel;
};

static const struct weir_option options[] = {
    PROGRAM_OPTIONS(job_command),
    WEIR_OPT_JSON(job_command, tasks, "tasks", JSON, 0, NULL, 0, 0,
                  "Tasks of the gang, 1 to 1024; each has its number in WEIR_RANK, theirs in "
                  "WEIR_SIZE. {min, max}: it runs with as many of max as there is room for, and "
                  "with min at least. Else 1"),
    WEIR_OPT_JSON(
        job_command, array, "array", INT, 0, "0", 0, WEIR_FRAMEWORK_TASKS_MAX,
        "Tasks that are independent of each other, in place of a gang: each starts, fails "
        "and is tried again on its own, and has its number, from 0, in WEIR_ARRAY_INDEX and "
        "JOB_COMPLETION_INDEX"),
    WEIR_OPT_JSON(job_command, parallel, "parallel", INT, 0, "0", 0, WEIR_FRAMEWORK_TASKS_MAX,
                  "So many tasks of an array at once; 0: as many as there is room for"),
};

static weir_status read(const json_t *spec, struct weir_arena *arena,
                        const struct job_command **out, int64_t *out_n_tasks,
                        struct weir_error *err)
{
    struct weir_configured read;
    WEIR_TRY(weir_kind_read(&weir_job_command, spec, "$.spec", arena, &read, err));
    const struct job_command *command = *out = read.options;
    WEIR_TRY(program_check(&command->program, spec, err));
    if (command->array > 0 && command->tasks != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.array: an array has no tasks that start together: leave out "
                              "one of array and tasks");
    }
    if (command->array == 0 && command->parallel > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.parallel: says how many tasks of an array run at once; there "
                              "is no array");
    }
    WEIR_TRY(program_read_tasks(command->tasks, "tasks", out_n_tasks, err));
    *out_n_tasks = command->array > 0 ? command->array : *out_n_tasks;
    return WEIR_OK;
}

static weir_status check_command(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    const struct job_command *command;
    int64_t n_tasks;
    return read(spec, arena, &command, &n_tasks, err);
}

/* Each task of an array is alone. */
static json_t *part_of_array(const struct job_plan *plan, int64_t index, int64_t n_tasks)
{
    json_t *definition = program_definition(plan, 0, 1);
    program_env(definition, "WEIR_ARRAY_INDEX", "%lld", (long long)index);
    program_env(definition, "WEIR_ARRAY_SIZE", "%lld", (long long)n_tasks);
    program_env(definition, "JOB_COMPLETION_INDEX", "%lld", (long long)index); /* Kubernetes' */
    return definition;
}

static weir_status plan_command(struct job_plan *plan, struct weir_error *err)
{
    const struct job_command *command;
    int64_t n_tasks;
    WEIR_TRY(read(plan->job->spec, plan->arena, &command, &n_tasks, err));
    WEIR_TRY(job_plan_room(plan, n_tasks, err));
    plan->request.is_array = command->array > 0;
    plan->request.parallel = command->parallel;
    for (int64_t rank = 0; rank < n_tasks; rank++) {
        job_plan_add(plan, "command", rank, program_cpu_millis(plan, &command->program),
                     WEIGHT_WORKER,
                     plan->request.is_array ? part_of_array(plan, rank, n_tasks)
                                            : program_definition(plan, rank, n_tasks));
    }
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("nodes", "replicas", "workers", "processes"), "tasks", "weir job run --tasks N"},
};

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .is_tracked = true,
    .check = check_command,
    .plan = plan_command,
};

const struct weir_kind weir_job_command = {
    .name = "command",
    .doc = "Any program, as one task, as a gang of equal ones that start together or not at all, "
           "or as "
           "an array of independent ones.",
    WEIR_KIND_OPTIONS(job_command, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
