#include "framework/program.h"

#include "base/numbers.h"
#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>

#define MB ((int64_t)1 << 20)

struct job_sbatch {
    struct program program;
    int64_t nodes, tasks, tasks_per_node, cpus_per_task, gpus_per_task, parallel;
    const char *array, *job_name, *signal_for;
};

static const struct weir_option options[] = {
    PROGRAM_OPTIONS(job_sbatch),
    WEIR_OPT_JSON(job_sbatch, nodes, "nodes", INT, 0, "1", 1, WEIR_FRAMEWORK_TASKS_MAX,
                  "Nodes of the gang; they may share a machine. The script runs on the first"),
    WEIR_OPT_JSON(job_sbatch, tasks_per_node, "tasks-per-node", INT, 0, "1", 1,
                  WEIR_FRAMEWORK_TASKS_MAX, "Tasks that srun starts on each node"),
    WEIR_OPT_JSON(job_sbatch, tasks, "tasks", INT, 0, "0", 0,
                  (double)WEIR_FRAMEWORK_TASKS_MAX *WEIR_FRAMEWORK_TASKS_MAX,
                  "Tasks that srun starts on all of them; 0: tasks_per_node on each"),
    WEIR_OPT_JSON(job_sbatch, cpus_per_task, "cpus-per-task", INT, 0, "0", 0,
                  WEIR_FRAMEWORK_CPUS_MAX, "What SLURM_CPUS_PER_TASK says; 0: it is not set"),
    WEIR_OPT_JSON(job_sbatch, gpus_per_task, "gpus-per-task", INT, 0, "0", 0,
                  WEIR_REQUEST_ACCELERATORS_MAX,
                  "Of a node's accelerators each of its tasks sees so many; 0: all"),
    WEIR_OPT_JSON(job_sbatch, array, "array", TEXT, 0, NULL, 0, 0,
                  "Numbers of independent parts in place of a gang, as 0-9 or 1,3,5-9:2; each has "
                  "its own in SLURM_ARRAY_TASK_ID"),
    WEIR_OPT_JSON(job_sbatch, parallel, "parallel", INT, 0, "0", 0, WEIR_FRAMEWORK_TASKS_MAX,
                  "So many parts of an array at once; 0: as many as there is room for"),
    WEIR_OPT_JSON(job_sbatch, job_name, "job-name", TEXT, 0, NULL, 0, 0,
                  "What SLURM_JOB_NAME says"),
    {.name = "signal-for",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct job_sbatch, signal_for),
     .fallback = "steps",
     .words = WEIR_WORDS("steps", "script"),
     .doc = "Who gets save_signal: what the script has started (steps), or the script alone"},
};

/** What the specification says, and the numbers of the parts. */
struct batch {
    const struct job_sbatch *options;
    int64_t n_tasks; /* tasks as Slurm counts them, over all nodes */
    int64_t *parts;
    size_t n_parts; /* 0: no array */
};

static weir_status wrong(struct weir_error *err, const char *what)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.%s", what);
}

static weir_status check_numbers(const struct job_sbatch *sbatch, struct batch *out,
                                 struct weir_error *err)
{
    int64_t most = sbatch->nodes * sbatch->tasks_per_node;
    out->n_tasks = sbatch->tasks > 0 ? sbatch->tasks : most;
    if (out->n_tasks > most || out->n_tasks < sbatch->nodes) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.tasks: expected from nodes (%lld) to nodes times "
                              "tasks_per_node (%lld)",
                              (long long)sbatch->nodes, (long long)most);
    }
    if (sbatch->array == NULL && sbatch->parallel > 0) {
        return wrong(err,
                     "parallel: says how many parts of an array run at once; there is no array");
    }
    return sbatch->array == NULL || sbatch->nodes == 1
               ? WEIR_OK
               : wrong(err, "array: each part of an array has one node: leave nodes out");
}

static weir_status read(const json_t *spec, struct weir_arena *arena, struct batch *out,
                        struct weir_error *err)
{
    struct weir_configured read;
    WEIR_TRY(weir_kind_read(&weir_job_sbatch, spec, "$.spec", arena, &read, err));
    const struct job_sbatch *sbatch = out->options = read.options;
    WEIR_TRY(program_check(&sbatch->program, spec, err));
    WEIR_TRY(check_numbers(sbatch, out, err));
    if (sbatch->program.image != NULL) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "$.spec.image: a batch script has srun of its node, which images have "
            "not: a job of the kind command runs in an image");
    }
    if (sbatch->nodes > 1 && strcmp(sbatch->program.network, "none") == 0) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "$.spec.network: srun reaches other nodes through the server: it needs "
            "a network");
    }
    if (sbatch->array == NULL) {
        return WEIR_OK;
    }
    weir_status status = weir_numbers_parse(sbatch->array, WEIR_FRAMEWORK_TASKS_MAX, arena,
                                            &out->parts, &out->n_parts, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "$.spec.array: ");
}

static weir_status check_sbatch(const json_t *spec, struct weir_arena *arena,
                                struct weir_error *err)
{
    struct batch batch = {0};
    return read(spec, arena, &batch, err);
}

/* ---- SLURM_* -------------------------------------------------------------------------------------- */

static void set(json_t *definition, const char *name, int64_t value)
{
    program_env(definition, name, "%lld", (long long)value);
}

/* The same under its two names. */
static void set_twice(json_t *definition, const char *name, const char *other, int64_t value)
{
    set(definition, name, value);
    set(definition, other, value);
}

/* Scripts reckon with it: the last eight digits of the job's identifier, by which weir knows it too, as a
 * decimal number. */
static int64_t number_of(const char *id)
{
    size_t len = strlen(id);
    return strtoll(id + (len > 8 ? len - 8 : 0), NULL, 16);
}

/* "4(x2)", as Slurm writes that each of two nodes has four. */
static void set_each(json_t *definition, const char *name, int64_t value, int64_t n_nodes)
{
    if (n_nodes > 1) {
        program_env(definition, name, "%lld(x%lld)", (long long)value, (long long)n_nodes);
    } else {
        set(definition, name, value);
    }
}

static void set_resources(const struct job_plan *plan, const struct job_sbatch *sbatch,
                          json_t *definition)
{
    int64_t millis = plan->request.cpu_millis >= 0 ? plan->request.cpu_millis
                                                   : program_cpu_millis(plan, &sbatch->program);
    int64_t cpus = WEIR_MAX(weir_cpus_whole(millis), (int64_t)1);
    int64_t memory = plan->request.memory_bytes > 0 ? plan->request.memory_bytes
                                                    : sbatch->program.memory_max_bytes;
    set(definition, "SLURM_CPUS_ON_NODE", cpus);
    set_each(definition, "SLURM_JOB_CPUS_PER_NODE", cpus, sbatch->nodes);
    if (sbatch->cpus_per_task > 0) {
        set(definition, "SLURM_CPUS_PER_TASK", sbatch->cpus_per_task);
    }
    if (memory > 0) {
        set(definition, "SLURM_MEM_PER_NODE", memory / MB);
    }
    if (plan->request.accelerators.n > 0) {
        set(definition, "SLURM_GPUS_ON_NODE", plan->request.accelerators.n);
        set(definition, "SLURM_GPUS", plan->request.accelerators.n * sbatch->nodes);
    }
    if (sbatch->gpus_per_task > 0) {
        set(definition, "SLURM_GPUS_PER_TASK", sbatch->gpus_per_task);
    }
}

static void set_job(const struct job_plan *plan, const struct batch *batch, int64_t job,
                    json_t *definition)
{
    const struct job_sbatch *sbatch = batch->options;
    set_twice(definition, "SLURM_JOB_ID", "SLURM_JOBID", job);
    set_twice(definition, "SLURM_JOB_NUM_NODES", "SLURM_NNODES", sbatch->nodes);
    set_twice(definition, "SLURM_NTASKS", "SLURM_NPROCS", batch->n_tasks);
    set(definition, "SLURM_NTASKS_PER_NODE", sbatch->tasks_per_node);
    if (sbatch->job_name != NULL) {
        program_env(definition, "SLURM_JOB_NAME", "%s", sbatch->job_name);
    }
    set_resources(plan, sbatch, definition);
}

/* How far two numbers that follow each other are apart, where all are: SLURM_ARRAY_TASK_STEP. 0: they are not. */
static int64_t step_of(const struct batch *batch)
{
    int64_t step = batch->n_parts > 1 ? batch->parts[1] - batch->parts[0] : 1;
    for (size_t i = 2; i < batch->n_parts; i++) {
        step = batch->parts[i] - batch->parts[i - 1] == step ? step : 0;
    }
    return step;
}

static void set_part(const struct batch *batch, size_t i, int64_t job, json_t *definition)
{
    int64_t step = step_of(batch);
    set(definition, "SLURM_ARRAY_JOB_ID", job);
    set(definition, "SLURM_ARRAY_TASK_ID", batch->parts[i]);
    set(definition, "SLURM_ARRAY_TASK_COUNT", (int64_t)batch->n_parts);
    set(definition, "SLURM_ARRAY_TASK_MIN", batch->parts[0]);
    set(definition, "SLURM_ARRAY_TASK_MAX", batch->parts[batch->n_parts - 1]);
    if (step > 0) {
        set(definition, "SLURM_ARRAY_TASK_STEP", step);
    }
}

/* ---- tasks ---------------------------------------------------------------------------------------- */

/* Becomes the script, with srun and scontrol in its PATH; mpi-run lets it call mpirun. */
static void set_launcher(const struct job_plan *plan, const struct batch *batch, json_t *definition)
{
    const struct job_sbatch *sbatch = batch->options;
    program_add_hosts(definition, sbatch->nodes, sbatch->tasks_per_node);
    program_meet_launcher(definition, "weir-worker");
    program_meet_launcher(definition, "mpi-run");
    program_meet_launcher(definition, "--mpi=none");
    program_meet_launcher(definition, "--");
    program_meet_launcher(definition, "weir-worker");
    program_meet_launcher(definition, "sbatch-run");
    program_meet_launcher(definition, "--hosts={{0-%lld|@address|,}}",
                          (long long)sbatch->nodes - 1);
    program_meet_launcher(definition, "--tasks=%lld", (long long)batch->n_tasks);
    program_meet_launcher(definition, "--tasks-per-node=%lld", (long long)sbatch->tasks_per_node);
    program_meet_launcher(definition, "--restarts={{restarts}}");
    program_meet_launcher(definition, "--signal-for=%s", sbatch->signal_for);
    if (plan->request.save_signal != NULL) {
        program_meet_launcher(definition, "--save-signal=%s", plan->request.save_signal);
    }
    program_meet_launcher(definition, "--");
}

static json_t *node_of(const struct job_plan *plan, const struct batch *batch, int64_t rank)
{
    int64_t n_nodes = batch->options->nodes;
    json_t *definition = program_definition(plan, rank, n_nodes);
    set_job(plan, batch, number_of(plan->job->id), definition);
    program_meet(definition, n_nodes, n_nodes);
    if (rank == 0) {
        set_launcher(plan, batch, definition);
    } else {
        json_object_set_new(definition, "argv",
                            json_pack("[s,s,s+]", "weir-worker", "mpi-serve",
                                      "--pass-signals=", batch->options->signal_for));
    }
    return definition;
}

/* Each has a number of its own, as in Slurm. */
static json_t *part_of(const struct job_plan *plan, const struct batch *batch, size_t i)
{
    int64_t job = number_of(plan->job->id);
    json_t *definition = program_definition(plan, 0, 1);
    program_env(definition, "WEIR_ARRAY_INDEX", "%zu", i);
    program_env(definition, "WEIR_ARRAY_SIZE", "%zu", batch->n_parts);
    set_job(plan, batch, job + (int64_t)i, definition);
    set_part(batch, i, job, definition);
    program_meet(definition, 1, 1);
    set_launcher(plan, batch, definition);
    return definition;
}

static weir_status plan_sbatch(struct job_plan *plan, struct weir_error *err)
{
    struct batch batch = {0};
    WEIR_TRY(read(plan->job->spec, plan->arena, &batch, err));
    plan->request.is_array = batch.n_parts > 0;
    plan->request.parallel = batch.options->parallel;
    int64_t n = plan->request.is_array ? (int64_t)batch.n_parts : batch.options->nodes;
    WEIR_TRY(job_plan_room(plan, n, err));
    for (int64_t i = 0; i < n; i++) {
        bool is_first = plan->request.is_array || i == 0;
        job_plan_add(plan, is_first ? "worker" : "server", i,
                     program_cpu_millis(plan, &batch.options->program), WEIGHT_WORKER,
                     plan->request.is_array ? part_of(plan, &batch, (size_t)i)
                                            : node_of(plan, &batch, i));
    }
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("ntasks", "processes", "workers", "replicas"), "tasks", "weir job run --tasks N"},
    {WEIR_WORDS("ntasks_per_node", "processes_per_node"), "tasks_per_node",
     "weir job run --set tasks_per_node=N"},
};

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .is_tracked = true,
    .check = check_sbatch,
    .plan = plan_sbatch,
};

const struct weir_kind weir_job_sbatch = {
    .name = "sbatch",
    .doc =
        "A batch script of Slurm, as `weir job run SCRIPT` makes it of its lines #SBATCH. It runs "
        "once, on the first of its nodes, and has the variables SLURM_* that are true here; srun "
        "in it starts programs in all its tasks.",
    WEIR_KIND_OPTIONS(job_sbatch, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
