#include "framework/program.h"

#include <string.h>

#define PROCESSES_MAX 1024

struct job_mpi {
    struct program program;
    int64_t nodes, processes_per_node;
    const char *mpi;
};

static const struct weir_option options[] = {
    PROGRAM_OPTIONS(job_mpi),
    WEIR_OPT_JSON(
        job_mpi, nodes, "nodes", INT, 0, "1", 1, WEIR_FRAMEWORK_TASKS_MAX,
        "Tasks of the gang, MPI's hosts rank-0, rank-1 and so on; they may share a machine"),
    WEIR_OPT_JSON(job_mpi, processes_per_node, "processes-per-node", INT, 0, "0", 0, PROCESSES_MAX,
                  "Processes of MPI on each of them; 0: one for each accelerator, or one"),
    {.name = "mpi",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct job_mpi, mpi),
     .fallback = "openmpi",
     .words = WEIR_WORDS("openmpi", "mpich", "none"),
     .doc = "Whose launcher starts the program: openmpi, mpich, or none: the program runs once, on "
            "rank-0, and calls mpirun or mpiexec itself"},
};

static weir_status read(const json_t *spec, struct weir_arena *arena, const struct job_mpi **out,
                        struct weir_error *err)
{
    struct weir_configured read;
    WEIR_TRY(weir_kind_read(&weir_job_mpi, spec, "$.spec", arena, &read, err));
    *out = read.options;
    WEIR_TRY(program_check(&(*out)->program, spec, err));
    if ((*out)->program.image != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.spec.image: MPI's daemons are started outside of images: a job of "
                              "the kind mpi runs with what its nodes have");
    }
    return strcmp((*out)->program.network, "none") != 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "$.spec.network: tasks of the kind mpi start each other's programs "
                                "through the server: they need a network");
}

static weir_status check_mpi(const json_t *spec, struct weir_arena *arena, struct weir_error *err)
{
    const struct job_mpi *mpi;
    return read(spec, arena, &mpi, err);
}

static json_t *first_of(const struct job_plan *plan, const struct job_mpi *mpi, int64_t n_processes)
{
    json_t *definition = program_definition(plan, 0, mpi->nodes);
    program_meet(definition, 1, 1);
    program_add_hosts(definition, mpi->nodes, n_processes);
    /* By which of its addresses daemons call back to mpiexec: it would give the host's name. */
    program_meet_env(definition, "HYDRA_IFACE", "{{interface}}");
    program_meet_launcher(definition, "weir-worker");
    program_meet_launcher(definition, "mpi-run");
    program_meet_launcher(definition, "--mpi=%s", mpi->mpi);
    program_meet_launcher(definition, "--processes=%lld", (long long)(n_processes * mpi->nodes));
    program_meet_launcher(definition, "--");
    return definition;
}

static json_t *other_of(const struct job_plan *plan, const struct job_mpi *mpi, int64_t rank)
{
    json_t *definition = program_definition(plan, rank, mpi->nodes);
    json_object_set_new(definition, "argv", json_pack("[s,s]", "weir-worker", "mpi-serve"));
    return definition;
}

static weir_status plan_mpi(struct job_plan *plan, struct weir_error *err)
{
    const struct job_mpi *mpi;
    WEIR_TRY(read(plan->job->spec, plan->arena, &mpi, err));
    WEIR_TRY(job_plan_room(plan, mpi->nodes, err));
    int64_t n_processes = mpi->processes_per_node > 0
                              ? mpi->processes_per_node
                              : WEIR_MAX(plan->request.accelerators.n, (int64_t)1);
    for (int64_t rank = 0; rank < mpi->nodes; rank++) {
        job_plan_add(plan, rank == 0 ? "worker" : "server", rank,
                     program_cpu_millis(plan, &mpi->program), WEIGHT_WORKER,
                     rank == 0 ? first_of(plan, mpi, n_processes) : other_of(plan, mpi, rank));
    }
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "replicas", "workers"), "nodes", "weir job run --nodes N"},
    {WEIR_WORDS("processes"), "processes_per_node", "weir job run --set processes_per_node=N"},
};

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .is_tracked = true,
    .check = check_mpi,
    .plan = plan_mpi,
};

const struct weir_kind weir_job_mpi = {
    .name = "mpi",
    .doc =
        "A program of MPI over tasks that start together: mpirun of Open MPI, or MPICH's mpiexec, "
        "starts its daemons on them through Weir, without ssh and without a list of hosts.",
    WEIR_KIND_OPTIONS(job_mpi, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
