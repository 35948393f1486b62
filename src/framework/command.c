#include "framework/program.h"

struct job_command {
    struct program program;
    const json_t *tasks;
};

static const struct weir_option options[] = {
    PROGRAM_OPTIONS(job_command),
    WEIR_OPT_JSON(job_command, tasks, "tasks", JSON, 0, NULL, 0, 0,
                  "Tasks of the gang, 1 to 1024; each has its number in WEIR_RANK, theirs in "
                  "WEIR_SIZE. {min, max}: it runs with as many of max as there is room for, and "
                  "with min at least. Else 1"),
};

static weir_status check_command(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct weir_configured read;
    int64_t n_tasks;
    WEIR_TRY(weir_kind_read(&weir_job_command, spec, "$.spec", arena, &read, err));
    const struct job_command *command = read.options;
    WEIR_TRY(program_check(&command->program, spec, err));
    return program_read_tasks(command->tasks, "tasks", &n_tasks, err);
}

static weir_status plan_command(struct job_plan *plan, struct weir_error *err)
{
    struct weir_configured read;
    int64_t n_tasks;
    WEIR_TRY(weir_kind_read(plan->kind, plan->job->spec, "$.spec", plan->arena, &read, err));
    const struct job_command *command = read.options;
    WEIR_TRY(program_check(&command->program, plan->job->spec, err));
    WEIR_TRY(program_read_tasks(command->tasks, "tasks", &n_tasks, err));
    WEIR_TRY(job_plan_room(plan, n_tasks, err));
    for (int64_t rank = 0; rank < n_tasks; rank++) {
        job_plan_add(plan, "command", rank, command->program.cpu_slots, WEIGHT_WORKER,
                     program_definition(plan, rank, n_tasks));
    }
    return WEIR_OK;
}

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .is_tracked = true,
    .check = check_command,
    .plan = plan_command,
};

const struct weir_kind weir_job_command = {
    .name = "command",
    .doc = "Any program, as one task or as a gang of equal ones that start together or not at all.",
    WEIR_KIND_OPTIONS(job_command, options),
    .ops = &ops,
};
