/* srun in a batch script: a program in all tasks of the job, on this node and on the others. */
#include "gang/mpi.h"
#include "gang/slurm.h"
#include "gang/wire.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRONMENT_MAX_BYTES ((size_t)8 << 20)

extern char **environ;

/* ---- options -------------------------------------------------------------------------------------- */

/* What becomes of an option. */
enum effect {
    NODES,
    TASKS,
    TASKS_PER_NODE,
    GPUS_PER_TASK,
    NODELIST,
    CHDIR,
    OVERCOMMIT,
    KILL,
    AS_IT_IS,
    NOTED,
    REFUSED
};

static const struct {
    const char *name;
    int letter;
    int takes; /* getopt_long has a word for it */
    enum effect effect;
    const char *say;
} options[] = {
    {"nodes", 'N', required_argument, NODES, NULL},
    {"ntasks", 'n', required_argument, TASKS, NULL},
    {"ntasks-per-node", 0, required_argument, TASKS_PER_NODE, NULL},
    {"gpus-per-task", 0, required_argument, GPUS_PER_TASK, NULL},
    {"nodelist", 'w', required_argument, NODELIST, NULL},
    {"chdir", 'D', required_argument, CHDIR, NULL},
    {"overcommit", 'O', no_argument, OVERCOMMIT, NULL},
    {"kill-on-bad-exit", 'K', optional_argument, KILL, NULL},
    {"unbuffered", 'u', no_argument, AS_IT_IS, NULL},
    {"quiet", 'Q', no_argument, AS_IT_IS, NULL},
    {"overlap", 0, no_argument, AS_IT_IS, NULL},
    {"export", 0, required_argument, NOTED, "all variables of the script go along"},
    {"label", 'l', no_argument, NOTED, "weir logs says whose line each is"},
    {"job-name", 'J', required_argument, NOTED, "steps have no names"},
    {"exclusive", 0, optional_argument, NOTED, "steps share the job's nodes"},
    {"exact", 0, no_argument, NOTED, "steps share the job's nodes"},
    {"cpus-per-task", 'c', required_argument, NOTED, "tasks share their node's CPUs"},
    {"cpu-bind", 0, required_argument, NOTED, "tasks share their node's CPUs"},
    {"hint", 0, required_argument, NOTED, "tasks share their node's CPUs"},
    {"distribution", 'm', required_argument, NOTED, "tasks are laid out node by node"},
    {"mem", 0, required_argument, NOTED, "steps share their node's memory"},
    {"mem-per-cpu", 0, required_argument, NOTED, "steps share their node's memory"},
    {"mem-bind", 0, required_argument, NOTED, "steps share their node's memory"},
    {"gres", 0, required_argument, NOTED,
     "tasks see their node's GPUs: --gpus-per-task N divides them"},
    {"gpus", 'G', required_argument, NOTED,
     "tasks see their node's GPUs: --gpus-per-task N divides them"},
    {"gpus-per-node", 0, required_argument, NOTED,
     "tasks see their node's GPUs: --gpus-per-task N divides them"},
    {"gpu-bind", 0, required_argument, NOTED,
     "tasks see their node's GPUs: --gpus-per-task N divides them"},
    {"time", 't', required_argument, NOTED, "the job's time limit holds"},
    {"wait", 'W', required_argument, NOTED, "it waits for all tasks; --kill-on-bad-exit ends them"},
    {"verbose", 'v', no_argument, AS_IT_IS, NULL},
    {"mpi", 0, required_argument, REFUSED, "call mpirun in place of srun"},
    {"output", 'o', required_argument, REFUSED, "redirect it in the script, or see weir logs"},
    {"error", 'e', required_argument, REFUSED, "redirect it in the script, or see weir logs"},
    {"input", 'i', required_argument, REFUSED, "redirect it in the script"},
    {"multi-prog", 0, no_argument, REFUSED, "start a script that looks at SLURM_PROCID"},
    {"pty", 0, no_argument, REFUSED, "weir job shell JOB has a terminal"},
    {"exclude", 'x', required_argument, REFUSED, "name those that it is for: --nodelist"},
    {"relative", 'r', required_argument, REFUSED, "name those that it is for: --nodelist"},
};

#define N_OPTIONS WEIR_ARRAY_LEN(options)

struct srun {
    struct weir_arena arena;
    struct slurm_asked asked;
    char **hosts;
    size_t n_hosts;
    int64_t gpus_per_task;
    const char *dir, *nodelist;
    bool is_killing; /* the others, once one has failed */
    char **argv;
    size_t n_argv;
};

static weir_status refuse(struct weir_error *err, const char *option, const char *why)
{
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "--%s is not supported in a job of Weir: %s",
                          option, why);
}

static weir_status read_count(const char *name, const char *text, int64_t *out,
                              struct weir_error *err)
{
    bool is_good =
        text[0] != '\0' && strlen(text) < 7 && strspn(text, "0123456789") == strlen(text);
    *out = is_good ? strtoll(text, NULL, 10) : 0;
    return *out > 0 ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_INVALID,
                                     "--%s: expected a number, got \"%.40s\"", name, text);
}

static weir_status take(struct srun *srun, size_t i, const char *value, struct weir_error *err)
{
    const char *name = options[i].name;
    switch (options[i].effect) {
    case NODES:
        return read_count(name, value, &srun->asked.nodes, err);
    case TASKS:
        return read_count(name, value, &srun->asked.tasks, err);
    case TASKS_PER_NODE:
        return read_count(name, value, &srun->asked.tasks_per_node, err);
    case GPUS_PER_TASK:
        return read_count(name, value, &srun->gpus_per_task, err);
    case NODELIST:
        srun->nodelist = value;
        return WEIR_OK;
    case CHDIR:
        srun->dir = value;
        return WEIR_OK;
    case OVERCOMMIT:
        srun->asked.is_overcommitted = true;
        return WEIR_OK;
    case KILL:
        srun->is_killing = value == NULL || strcmp(value, "0") != 0;
        return WEIR_OK;
    case NOTED:
        if (strcmp(name, "export") != 0 || strcmp(value, "ALL") != 0) {
            (void)fprintf(stderr, "srun: --%s has no effect here: %s\n", name, options[i].say);
        }
        return WEIR_OK;
    case REFUSED:
        return strcmp(name, "mpi") == 0 && strcmp(value, "none") == 0
                   ? WEIR_OK
                   : refuse(err, name, options[i].say);
    case AS_IT_IS:
        break;
    }
    return WEIR_OK;
}

static weir_status read_options(struct srun *srun, int argc, char **argv, struct weir_error *err)
{
    struct option longs[N_OPTIONS + 1] = {0};
    char shorts[2 + 3 * N_OPTIONS] = "+", *end = shorts + 1;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        longs[i] = (struct option){options[i].name, options[i].takes, NULL, 256 + (int)i};
        if (options[i].letter != 0) {
            *end++ = (char)options[i].letter;
            memset(end, ':', (size_t)options[i].takes);
            end += options[i].takes;
        }
    }
    for (int got; (got = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        size_t i = 0;
        while (i < N_OPTIONS && got != 256 + (int)i && got != options[i].letter) {
            i++;
        }
        if (i == N_OPTIONS) { /* getopt_long has said what it is */
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "an option that is not supported in a job of Weir");
        }
        WEIR_TRY(take(srun, i, optarg, err));
    }
    srun->argv = argv + optind;
    srun->n_argv = (size_t)(argc - optind);
    return srun->n_argv > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "what is to run? srun [OPTION …] PROGRAM [ARGUMENT …]");
}

/* ---- the job -------------------------------------------------------------------------------------- */

static int64_t number_in(const char *name)
{
    const char *text = getenv(name);
    long long value = text != NULL ? strtoll(text, NULL, 10) : 0;
    return WEIR_MAX(value, 1LL);
}

/* Each name is the first node of that name that is not taken yet. */
static weir_status choose_nodes(struct srun *srun, struct weir_error *err)
{
    char **names;
    size_t n;
    if (srun->nodelist == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(slurm_hosts_expand(srun->nodelist, &srun->arena, &names, &n, err));
    int64_t *on = WEIR_ARENA_ARRAY(&srun->arena, n, int64_t);
    bool *is_taken = WEIR_ARENA_ARRAY(&srun->arena, srun->n_hosts, bool);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < srun->n_hosts && (is_taken[k] || strcmp(srun->hosts[k], names[i]) != 0)) {
            k++;
        }
        if (k == srun->n_hosts) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "--nodelist: %.60s is none of the job's nodes, which are %.120s",
                                  names[i], getenv("SLURM_JOB_NODELIST"));
        }
        is_taken[k] = true;
        on[i] = (int64_t)k;
    }
    srun->asked.on = on;
    srun->asked.n_on = n;
    return WEIR_OK;
}

static weir_status look_at_job(struct srun *srun, struct weir_error *err)
{
    const char *list = getenv("SLURM_JOB_NODELIST");
    if (list == NULL || getenv("WEIR_SLURM") == NULL) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "it is for scripts that `weir job run SCRIPT` has started, on the first "
            "of their nodes");
    }
    WEIR_TRY(slurm_hosts_expand(list, &srun->arena, &srun->hosts, &srun->n_hosts, err));
    srun->asked.job_nodes = (int64_t)srun->n_hosts;
    srun->asked.job_tasks = number_in("SLURM_NTASKS");
    srun->asked.job_tasks_per_node = number_in("SLURM_NTASKS_PER_NODE");
    if (srun->gpus_per_task == 0 && getenv("SLURM_GPUS_PER_TASK") != NULL) {
        srun->gpus_per_task = number_in("SLURM_GPUS_PER_TASK");
    }
    return choose_nodes(srun, err);
}

/* Steps are numbered by a file that each makes one byte longer. */
static int64_t next_step(struct srun *srun)
{
    char *path = weir_arena_printf(&srun->arena, "%s/steps", getenv("WEIR_SLURM"));
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    off_t end = fd >= 0 && write(fd, ".", 1) == 1 ? lseek(fd, 0, SEEK_CUR) : 1;
    if (fd >= 0) {
        close(fd);
    }
    return (int64_t)end - 1;
}

/* What the script has set, changed and removed since it was started. */
static weir_status add_environment(struct srun *srun, json_t *step, struct weir_error *err)
{
    static const char *const own[] = {"PWD", "OLDPWD", "SHLVL", "_", "WEIR_SLURM"};
    char *path = weir_arena_printf(&srun->arena, "%s/environment", getenv("WEIR_SLURM"));
    WEIR_AUTO(weir_json_auto_free) json_t *before = NULL;
    json_t *env = json_object(), *unset = json_array(), *value;
    const char *name;
    json_object_set_new(step, "env", env);
    json_object_set_new(step, "unset", unset);
    WEIR_TRY(weir_json_load(path, ENVIRONMENT_MAX_BYTES, &before, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        (void)json_object_del(before, own[i]);
    }
    for (char **at = environ; *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        if (equals == NULL) {
            continue;
        }
        name = weir_arena_memdup(&srun->arena, *at, (size_t)(equals - *at));
        bool is_own = false;
        for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
            is_own = is_own || strcmp(own[i], name) == 0;
        }
        const char *old = json_string_value(json_object_get(before, name));
        if (!is_own && (old == NULL || strcmp(old, equals + 1) != 0)) {
            json_object_set_new(env, name, json_string(equals + 1));
        }
        (void)json_object_del(before, name);
    }
    json_object_foreach(before, name, value)
    {
        json_array_append_new(unset, json_string(name));
    }
    return WEIR_OK;
}

static char *text_of_hosts(struct srun *srun, const struct slurm_layout *layout)
{
    char *text = "";
    for (int64_t i = 0; i < layout->n_nodes; i++) {
        text = weir_arena_printf(&srun->arena, "%s%s%s", text, i > 0 ? "," : "",
                                 srun->hosts[layout->nodes[i]]);
    }
    return text;
}

/* The step without what differs from node to node; a new reference. */
static weir_status make_step(struct srun *srun, const struct slurm_layout *layout, json_t **out,
                             struct weir_error *err)
{
    char here[PATH_MAX];
    const char *slurm = getenv("WEIR_SLURM");
    if ((srun->dir != NULL && chdir(srun->dir) != 0) || getcwd(here, sizeof here) == NULL) {
        return weir_error_set_errno(err, errno, "cannot go to %s",
                                    srun->dir != NULL ? srun->dir : "the folder");
    }
    size_t folder_len = strlen(slurm) - strlen("/" SLURM_FOLDER);
    json_t *step =
        json_pack("{s:I,s:I,s:I,s:s,s:s,s:I,s:o,s:s}", "step", (json_int_t)next_step(srun), "tasks",
                  (json_int_t)layout->n_tasks, "nodes", (json_int_t)layout->n_nodes, "hosts",
                  text_of_hosts(srun, layout), "layout", slurm_layout_text(layout, &srun->arena),
                  "gpus_per_task", (json_int_t)srun->gpus_per_task, "folder",
                  json_sprintf("%.*s", (int)folder_len, slurm), "dir", here);
    json_t *argv = json_array();
    bool is_text = step != NULL;
    for (size_t i = 0; i < srun->n_argv; i++) {
        is_text = json_array_append_new(argv, json_string(srun->argv[i])) == 0 && is_text;
    }
    if (!is_text) {
        json_decref(step);
        json_decref(argv);
        return weir_error_set(err, WEIR_ERR_INVALID, "a word of the program is no UTF-8");
    }
    json_object_set_new(step, "argv", argv);
    json_object_set_new(step, "is_killing", json_boolean(srun->is_killing));
    weir_status status = add_environment(srun, step, err);
    if (status != WEIR_OK) {
        json_decref(step);
        return status;
    }
    *out = step;
    return WEIR_OK;
}

static void set_node(const struct srun *srun, const struct slurm_layout *layout, int64_t i,
                     int64_t first, json_t *step)
{
    json_object_set_new(step, "node", json_integer(i));
    json_object_set_new(step, "first", json_integer(first));
    json_object_set_new(step, "count", json_integer(layout->counts[i]));
    json_object_set_new(step, "host", json_string(srun->hosts[layout->nodes[i]]));
    json_object_set_new(step, "is_here", json_boolean(layout->nodes[i] == 0));
}

/* ---- other nodes ---------------------------------------------------------------------------------- */

/* One of them, with the thread that waits for it. */
struct remote {
    struct wire_place place;
    int rank;
    char *command;
    int exit_status;
    atomic_bool is_over;
};

static void *remote_main(void *context)
{
    struct remote *remote = context;
    struct weir_arena arena;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    weir_status status =
        wire_run(&remote->place, remote->rank, remote->command, &arena, &remote->exit_status, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "srun: node %d: %s\n", remote->rank, err.message);
        remote->exit_status = weir_status_exit(status);
    }
    weir_arena_fini(&arena);
    atomic_store(&remote->is_over, true);
    (void)kill(getpid(), SIGCHLD); /* as the end of a task here is told */
    return NULL;
}

/* A word of a shell's command. */
static char *quote(const char *text, struct weir_arena *arena)
{
    size_t n = 3;
    for (const char *at = text; *at != '\0'; at++) {
        n += *at == '\'' ? 4 : 1;
    }
    char *out = weir_arena_alloc(arena, n), *end = out;
    *end++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            memcpy(end, "'\\''", 4);
            end += 4;
        } else {
            *end++ = *text;
        }
    }
    *end++ = '\'';
    *end = '\0';
    return out;
}

static weir_status start_remote(struct srun *srun, int rank, const json_t *step,
                                struct remote *remote, struct weir_error *err)
{
    pthread_t thread;
    const char *token_file = getenv("WEIR_TOKEN_FILE");
    remote->rank = rank;
    remote->command = weir_arena_printf(&srun->arena, "exec weir-worker srun-step %s",
                                        quote(weir_json_text(step, &srun->arena), &srun->arena));
    if (strlen(remote->command) > WIRE_COMMAND_MAX_BYTES) {
        return weir_error_set(
            err, WEIR_ERR_LIMIT,
            "the program's words and what the script has put into its environment "
            "have more than %zu bytes",
            WIRE_COMMAND_MAX_BYTES);
    }
    WEIR_TRY(wire_find(token_file != NULL ? token_file : "token", &remote->place, err));
    int errno_value = pthread_create(&thread, NULL, remote_main, remote);
    return errno_value == 0 ? WEIR_OK
                            : weir_error_set_errno(err, errno_value, "cannot start a thread");
}

/* ---- all of it ------------------------------------------------------------------------------------ */

/* What runs. */
struct running {
    pid_t *pids; /* 0: it has ended */
    size_t n_pids;
    struct gang_lines *lines; /* what they print */
    struct remote *remotes;
    size_t n_remotes;
    int worst;
    bool is_ended_early;
};

static void signal_all(const struct running *running, int number)
{
    for (size_t i = 0; i < running->n_pids; i++) {
        if (running->pids[i] > 0) {
            (void)kill(-running->pids[i], number);
        }
    }
}

/* @return how many still run. */
static size_t collect(struct running *running)
{
    size_t n = 0;
    int status;
    for (size_t i = 0; i < running->n_pids; i++) {
        if (running->pids[i] > 0 &&
            waitpid(running->pids[i], &status, WNOHANG) == running->pids[i]) {
            int own = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            running->worst =
                running->is_ended_early ? running->worst : WEIR_MAX(running->worst, own);
            running->pids[i] = 0;
        }
        n += running->pids[i] > 0;
    }
    for (size_t i = 0; i < running->n_remotes; i++) {
        bool is_over = atomic_load(&running->remotes[i].is_over);
        running->worst =
            is_over ? WEIR_MAX(running->worst, running->remotes[i].exit_status) : running->worst;
        n += !is_over && !running->is_ended_early;
    }
    return n;
}

static int wait_all(const struct srun *srun, const sigset_t *signals, struct running *running)
{
    while (collect(running) > 0) {
        if (srun->is_killing && running->worst != 0 && !running->is_ended_early) {
            running->is_ended_early = true; /* those on other nodes end with the job */
            signal_all(running, SIGTERM);
            continue;
        }
        int got = sigwaitinfo(signals, NULL);
        if (got > 0 && got != SIGCHLD) {
            signal_all(running, got);
        }
    }
    gang_lines_close(running->lines);
    return running->worst;
}

static weir_status start(struct srun *srun, const struct slurm_layout *layout, json_t *step,
                         struct running *running, struct weir_error *err)
{
    int64_t first = 0, here = -1, here_first = 0;
    running->remotes = WEIR_ARENA_ARRAY(&srun->arena, (size_t)layout->n_nodes, struct remote);
    for (int64_t i = 0; i < layout->n_nodes; i++) {
        set_node(srun, layout, i, first, step);
        if (layout->nodes[i] == 0) {
            here = i;
            here_first = first;
        } else {
            WEIR_TRY(start_remote(srun, (int)layout->nodes[i], step,
                                  &running->remotes[running->n_remotes], err));
            running->n_remotes++;
        }
        first += layout->counts[i];
    }
    if (here < 0) {
        return WEIR_OK;
    }
    set_node(srun, layout, here, here_first, step);
    return slurm_step_start(step, &srun->arena, &running->pids, &running->n_pids, &running->lines,
                            err);
}

static weir_status begin(struct srun *srun, int argc, char **argv, sigset_t *out_signals,
                         struct running *out, struct weir_error *err)
{
    struct slurm_layout layout;
    WEIR_AUTO(weir_json_auto_free) json_t *step = NULL;
    WEIR_TRY(read_options(srun, argc, argv, err));
    WEIR_TRY(look_at_job(srun, err));
    WEIR_TRY(slurm_layout_make(&srun->asked, &srun->arena, &layout, err));
    WEIR_TRY(make_step(srun, &layout, &step, err));
    slurm_signals_block(out_signals);
    return start(srun, &layout, step, out, err);
}

int weir_srun_main(int argc, char **argv)
{
    static struct srun srun; /* threads may outlive main's wait */
    static struct running running;
    struct weir_error err;
    sigset_t signals;
    weir_arena_init(&srun.arena, 0);
    argv[0] = "srun";
    weir_status status = begin(&srun, argc, argv, &signals, &running, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "srun: %s\n", err.message);
        return status == WEIR_ERR_NOT_FOUND ? WEIR_EXIT_NOT_FOUND : weir_status_exit(status);
    }
    return wait_all(&srun, &signals, &running);
}
