#include "framework/program.h"

#include <string.h>

#define PROCESSES_MAX 64

struct job_pytorch {
    struct program program;
    const json_t *nodes;
    int64_t processes_per_node;
    const char *launcher;
};

static const struct weir_option options[] = {
    PROGRAM_OPTIONS(job_pytorch),
    WEIR_OPT_JSON(
        job_pytorch, nodes, "nodes", JSON, 0, NULL, 0, 0,
        "Tasks of the gang, 1 to 1024, each with its processes; they may share a machine. "
        "{min, max}: torchrun goes on with those that are left, and takes in others as "
        "there is room. Else 1"),
    WEIR_OPT_JSON(
        job_pytorch, processes_per_node, "processes-per-node", INT, 0, "0", 0, PROCESSES_MAX,
        "Processes of each task, started by torchrun if they are several; 0: one for each "
        "of its accelerators, or one"),
    {.name = "launcher",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct job_pytorch, launcher),
     .fallback = "torchrun",
     .words = WEIR_WORDS("torchrun", "own"),
     .doc =
         "Who starts a task's processes: torchrun, or the program itself (own): it is started "
         "once in each task, as Kubeflow's operator does, and told by PET_* what torchrun is told "
         "by flags; RANK is then the task's"},
};

/* What one rank is, and of how many. */
struct ranks {
    int64_t rank, n_nodes, n_processes;
    bool is_elastic;
    bool is_own;   /* the program starts its processes itself */
    int64_t n_all; /* processes of all tasks, as far as a number was given; of is_own */
};

/* The environment that torchrun gives to a worker, where each task is one: torch 1.13,
 * distributed/elastic/agent/server/local_elastic_agent.py. Rank 0 opens the store itself, which
 * TORCHELASTIC_USE_AGENT_STORE says. */
static void set_environment(const struct job_plan *plan, const struct ranks *ranks,
                            json_t *definition)
{
    long long rank = ranks->rank, size = ranks->n_nodes;
    program_env(definition, "LOCAL_RANK", "0");
    program_env(definition, "RANK", "%lld", rank);
    program_env(definition, "GROUP_RANK", "%lld", rank);
    program_env(definition, "ROLE_RANK", "%lld", rank);
    program_env(definition, "ROLE_NAME", "default");
    program_env(definition, "LOCAL_WORLD_SIZE", "1");
    program_env(definition, "WORLD_SIZE", "%lld", size);
    program_env(definition, "GROUP_WORLD_SIZE", "%lld", size);
    program_env(definition, "ROLE_WORLD_SIZE", "%lld", size);
    program_env(definition, "TORCHELASTIC_MAX_RESTARTS", "%lld",
                (long long)plan->job->max_restarts);
    program_env(definition, "TORCHELASTIC_RUN_ID", "%s", plan->job->id);
    program_env(definition, "TORCHELASTIC_USE_AGENT_STORE", "False");
    program_meet_env(definition, "TORCHELASTIC_RESTART_COUNT", "{{restarts}}");
    program_meet_env(definition, "NCCL_ASYNC_ERROR_HANDLING", "1");
}

/* "2", or "2:4" of an elastic gang. */
static const char *node_count_text(const struct job_plan *plan, const struct ranks *ranks)
{
    return ranks->is_elastic
               ? weir_arena_printf(plan->arena, "%lld:%lld", (long long)plan->request.min_tasks,
                                   (long long)ranks->n_nodes)
               : weir_arena_printf(plan->arena, "%lld", (long long)ranks->n_nodes);
}

static int64_t elastic_restarts(const struct job_plan *plan, const struct ranks *ranks)
{
    return WEIR_MAX(plan->job->max_restarts, ranks->n_nodes);
}

/* What Kubeflow's operator tells its pods (training-operator, pkg/controller.v1/pytorch/envvar.go): torchrun takes each of
 * its flags from a variable PET_ too. */
static void set_own(const struct job_plan *plan, const struct ranks *ranks, json_t *definition)
{
    program_env(definition, "PET_NNODES", "%s", node_count_text(plan, ranks));
    program_env(definition, "PET_NPROC_PER_NODE", "%lld", (long long)ranks->n_processes);
    if (ranks->is_elastic) {
        program_env(definition, "PET_RDZV_BACKEND", "c10d");
        program_env(definition, "PET_RDZV_ID", "%s", plan->job->id);
        program_env(definition, "PET_RDZV_CONF", "is_host=%s", ranks->rank == 0 ? "true" : "false");
        program_env(definition, "PET_MAX_RESTARTS", "%lld",
                    (long long)elastic_restarts(plan, ranks));
        program_meet_env(definition, "PET_RDZV_ENDPOINT", "{{0|@address:@port}}");
        program_meet_env(definition, "PET_LOCAL_ADDR", "{{address}}");
        return;
    }
    program_env(definition, "RANK", "%lld", (long long)ranks->rank);
    program_env(definition, "WORLD_SIZE", "%lld", (long long)ranks->n_all);
    program_env(definition, "PET_NODE_RANK", "%lld", (long long)ranks->rank);
    program_meet_env(definition, "PET_MASTER_ADDR", "{{0|@address}}");
    program_meet_env(definition, "PET_MASTER_PORT", "{{0|@port}}");
    program_meet_env(definition, "MASTER_ADDR", "{{0|@address}}");
    program_meet_env(definition, "MASTER_PORT", "{{0|@port}}");
}

/* The interpreter that the program is for. */
static const char *interpreter_of(const struct program *program)
{
    const char *first = json_string_value(json_array_get(program->argv, 0));
    const char *slash = strrchr(first, '/');
    return strncmp(slash != NULL ? slash + 1 : first, "python", 6) == 0 ? first : "python3";
}

/* torchrun. That of torch 1.13 under Python 3.11, which is what Debian 12 has, does not understand
 * the default of its own flag --redirects: Std's value 0 is no longer among those that it looks
 * through. And an elastic gang's node tells the others its host's name, which need not lead to it:
 * in place of that stands the address by which the others have met it. */
static const char torchrun[] =
    "import os\n"
    "import torch.distributed.elastic.agent.server.api as a\n"
    "import torch.distributed.elastic.multiprocessing as m\n"
    "if m.Std.from_str('0') is None: m.Std.from_str = staticmethod(lambda v: m.Std(int(v)))\n"
    "if 'WEIR_ADDRESS' in os.environ and hasattr(a, '_get_fq_hostname'):\n"
    "    a._get_fq_hostname = lambda *_: os.environ['WEIR_ADDRESS']\n"
    "from torch.distributed.run import main\n"
    "main()\n";

/* torchrun's own flags, with underscores: torch before 2.0 knows no others. */
static void set_launcher(const struct job_plan *plan, const struct program *program,
                         const struct ranks *ranks, json_t *definition)
{
    program_meet_launcher(definition, "%s", interpreter_of(program));
    program_meet_launcher(definition, "-c");
    program_meet_launcher(definition, "%s", torchrun);
    program_meet_launcher(definition, "--nproc_per_node=%lld", (long long)ranks->n_processes);
    if (ranks->is_elastic) {
        program_meet_launcher(definition, "--nnodes=%s", node_count_text(plan, ranks));
        program_meet_launcher(definition, "--rdzv_backend=c10d");
        program_meet_launcher(definition, "--rdzv_endpoint={{0|@address:@port}}");
        program_meet_launcher(definition, "--rdzv_id=%s", plan->job->id);
        program_meet_launcher(definition, "--rdzv_conf=is_host=%s",
                              ranks->rank == 0 ? "true" : "false");
        program_meet_launcher(definition, "--max_restarts=%lld",
                              (long long)elastic_restarts(plan, ranks));
    } else {
        program_meet_launcher(definition, "--nnodes=%lld", (long long)ranks->n_nodes);
        program_meet_launcher(definition, "--node_rank=%lld", (long long)ranks->rank);
        program_meet_launcher(definition, "--master_addr={{0|@address}}");
        program_meet_launcher(definition, "--master_port={{0|@port}}");
    }
    program_meet_launcher(definition, "--no_python");
}

/* As torchrun does, Python runs a script of the task's folder. What is a path from "./" or "/" on runs itself. */
static void set_interpreter(json_t *definition)
{
    json_t *argv = json_object_get(definition, "argv");
    const char *first = json_string_value(json_array_get(argv, 0));
    size_t len = strlen(first);
    if (first[0] != '/' && strncmp(first, "./", 2) != 0 && len > 3 &&
        strcmp(first + len - 3, ".py") == 0) {
        json_array_insert_new(argv, 0, json_string("python3"));
    }
}

static json_t *definition_of(const struct job_plan *plan, const struct program *program,
                             const struct ranks *ranks)
{
    json_t *definition = program_definition(plan, ranks->rank, ranks->n_nodes);
    set_interpreter(definition);
    program_meet(definition, ranks->n_nodes, 1);
    /* Gloo looks for an address by the host's name, which on many machines leads to loopback. */
    program_meet_env(definition, "GLOO_SOCKET_IFNAME", "{{interface}}");
    program_meet_env(definition, "WEIR_ADDRESS", "{{address}}");
    if (ranks->is_own) {
        set_own(plan, ranks, definition);
    } else if (ranks->n_processes > 1 || ranks->is_elastic) {
        set_launcher(plan, program, ranks, definition);
    } else {
        program_meet_env(definition, "MASTER_ADDR", "{{0|@address}}");
        program_meet_env(definition, "MASTER_PORT", "{{0|@port}}");
        set_environment(plan, ranks, definition);
    }
    return definition;
}

static weir_status check_pytorch(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct weir_configured read;
    int64_t n;
    WEIR_TRY(weir_kind_read(&weir_job_pytorch, spec, "$.spec", arena, &read, err));
    const struct job_pytorch *pytorch = read.options;
    WEIR_TRY(program_check(&pytorch->program, spec, err));
    return program_read_tasks(pytorch->nodes, "nodes", &n, err);
}

static weir_status plan_pytorch(struct job_plan *plan, struct weir_error *err)
{
    struct weir_configured read;
    struct ranks ranks = {0};
    WEIR_TRY(weir_kind_read(plan->kind, plan->job->spec, "$.spec", plan->arena, &read, err));
    const struct job_pytorch *pytorch = read.options;
    const struct program *program = &pytorch->program;
    WEIR_TRY(program_check(program, plan->job->spec, err));
    WEIR_TRY(program_read_tasks(pytorch->nodes, "nodes", &ranks.n_nodes, err));
    WEIR_TRY(job_plan_room(plan, ranks.n_nodes, err));
    plan->request.min_tasks = json_integer_value(json_object_get(pytorch->nodes, "min"));
    ranks.is_elastic = plan->request.min_tasks > 0;
    ranks.n_processes = pytorch->processes_per_node > 0
                            ? pytorch->processes_per_node
                            : WEIR_MAX(plan->request.accelerators.n, (int64_t)1);
    ranks.is_own = strcmp(pytorch->launcher, "own") == 0;
    ranks.n_all = ranks.n_nodes * WEIR_MAX(pytorch->processes_per_node, (int64_t)1);
    for (ranks.rank = 0; ranks.rank < ranks.n_nodes; ranks.rank++) {
        job_plan_add(plan, "worker", ranks.rank, program_cpu_millis(plan, program), WEIGHT_WORKER,
                     definition_of(plan, program, &ranks));
    }
    return WEIR_OK;
}

static const struct weir_kind_words words[] = {
    {WEIR_WORDS("tasks", "replicas", "workers"), "nodes", "weir job run --nodes N"},
    {WEIR_WORDS("processes", "nproc_per_node"), "processes_per_node",
     "weir job run --set processes_per_node=N"},
};

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .is_tracked = true,
    .check = check_pytorch,
    .plan = plan_pytorch,
};

const struct weir_kind weir_job_pytorch = {
    .name = "pytorch",
    .doc =
        "A program of PyTorch as a gang of tasks that start together, each told what torchrun "
        "tells it: MASTER_ADDR, MASTER_PORT, RANK, LOCAL_RANK, WORLD_SIZE. A script (train.py) is "
        "run by python3. One that is started "
        "again finds what it saved in the folder WEIR_CHECKPOINT.",
    WEIR_KIND_OPTIONS(job_pytorch, options),
    WEIR_KIND_WORDS(words),
    .ops = &ops,
};
