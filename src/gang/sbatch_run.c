/* The first node of a job of the kind "sbatch": run its script. */
#include "gang/slurm.h"

#include "base/file.h"
#include "base/options.h"
#include "base/spawn.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct run_options {
    char *hosts, *signal_for, *save_signal;
    int64_t tasks, tasks_per_node, restarts;
    bool is_help;
};

static const struct weir_option run_options[] = {
    WEIR_OPT(run_options, hosts, "hosts", 0, TEXT, NULL, 0, 0, "LIST",
             "Addresses of the job's nodes, with commas between them"),
    WEIR_OPT(run_options, tasks, "tasks", 0, INT, "1", 1, 1 << 20, "N", "Tasks on all of them"),
    WEIR_OPT(run_options, tasks_per_node, "tasks-per-node", 0, INT, "1", 1, 1024, "N",
             "Most tasks of a node"),
    WEIR_OPT(run_options, restarts, "restarts", 0, INT, "0", 0, 1 << 30, "N",
             "How often it was started before"),
    WEIR_OPT(run_options, signal_for, "signal-for", 0, TEXT, "steps", 0, 0, "steps|script",
             "Who gets the signal to save"),
    WEIR_OPT(run_options, save_signal, "save-signal", 0, TEXT, NULL, 0, 0, "NAME",
             "The signal to save: USR1, USR2, HUP, INT or TERM"),
    WEIR_OPT(run_options, is_help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this help"),
};

static int number_of_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"INT", SIGINT}};

    for (size_t i = 0; name != NULL && i < WEIR_ARRAY_LEN(signals); i++) {
        if (strcmp(signals[i].name, name) == 0) {
            return signals[i].number;
        }
    }
    return 0; /* TERM is for all in any case */
}

static void set_number(const char *name, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    (void)setenv(name, text, 1);
}

/* srun and scontrol, as programs in front of PATH. */
static weir_status write_programs(const char *folder, struct weir_arena *arena,
                                  struct weir_error *err)
{
    static const char *const names[] = {"srun", "scontrol"};
    WEIR_TRY(weir_dir_make(folder, 0700, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        char *path = weir_arena_printf(arena, "%s/%s", folder, names[i]);
        char *text = weir_arena_printf(arena, "#!/bin/sh\nexec weir-worker %s \"$@\"\n", names[i]);
        WEIR_TRY(weir_file_write_atomic(path, text, strlen(text), 0700, err));
    }
    const char *path = getenv("PATH");
    (void)setenv("PATH", weir_arena_printf(arena, "%s:%s", folder, path != NULL ? path : "/bin"),
                 1);
    (void)setenv("WEIR_SLURM", folder, 1);
    return WEIR_OK;
}

/* The environment as it is, for srun to see what the script has changed. */
static weir_status keep_environment(const char *folder, struct weir_arena *arena,
                                    struct weir_error *err)
{
    json_t *kept = json_object();
    for (char **at = environ; *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        json_t *value = equals != NULL ? json_string(equals + 1) : NULL;
        if (value != NULL) {
            json_object_set_new(kept, weir_arena_memdup(arena, *at, (size_t)(equals - *at)), value);
        }
    }
    const char *text = weir_json_text(kept, arena);
    json_decref(kept);
    return weir_file_write_atomic(weir_arena_printf(arena, "%s/environment", folder), text,
                                  strlen(text), 0600, err);
}

/* What is known only here; the rest is in the job's environment (framework/sbatch.c). */
static weir_status set_variables(const struct run_options *options, const char *work,
                                 struct weir_arena *arena, struct weir_error *err)
{
    char **hosts;
    size_t n_hosts;
    WEIR_TRY(slurm_hosts_expand(options->hosts != NULL ? options->hosts : "", arena, &hosts,
                                &n_hosts, err));
    const struct slurm_asked all = {.job_nodes = (int64_t)n_hosts,
                                    .job_tasks = options->tasks,
                                    .job_tasks_per_node = options->tasks_per_node};
    struct slurm_layout layout;
    WEIR_TRY(slurm_layout_make(&all, arena, &layout, err));
    (void)setenv("SLURM_JOB_NODELIST", options->hosts, 1);
    (void)setenv("SLURM_NODELIST", options->hosts, 1);
    (void)setenv("SLURMD_NODENAME", hosts[0], 1);
    (void)setenv("SLURM_TASKS_PER_NODE", slurm_layout_text(&layout, arena), 1);
    (void)setenv("SLURM_SUBMIT_DIR", work, 1);
    set_number("SLURM_RESTART_COUNT", options->restarts);
    set_number("SLURM_PROCID", 0);
    set_number("SLURM_LOCALID", 0);
    set_number("SLURM_NODEID", 0);
    return WEIR_OK;
}

static weir_status prepare(const struct run_options *options, struct weir_arena *arena,
                           struct weir_error *err)
{
    char work[PATH_MAX];
    if (getcwd(work, sizeof work) == NULL) {
        return weir_error_set_errno(err, errno, "the working folder is not known");
    }
    char *folder = weir_arena_printf(arena, "%s/" SLURM_FOLDER, work);
    WEIR_TRY(write_programs(folder, arena, err));
    WEIR_TRY(keep_environment(folder, arena, err));
    return set_variables(options, work, arena, err);
}

void slurm_signals_block(sigset_t *out)
{
    static const int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    sigemptyset(out);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passed); i++) {
        (void)sigaddset(out, passed[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, out, NULL);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passed); i++) {
        (void)signal(passed[i], SIG_DFL); /* a shell cannot catch what it finds ignored */
    }
}

/* Until the script's end: its signals are passed on to it and what it has started. The signal to save ends no shell
 * that has not asked for it: the script ignores it where it is meant for the steps. */
static weir_status run(const struct run_options *options, char *const *argv, int *out_status,
                       struct weir_error *err)
{
    sigset_t signals;
    pid_t pid;
    bool is_for_script = strcmp(options->signal_for, "script") == 0;
    int save = number_of_signal(options->save_signal), status = 0;
    slurm_signals_block(&signals);
    if (save != 0 && !is_for_script) {
        (void)signal(save, SIG_IGN);
    }
    const struct weir_spawn spawn = {.argv = argv,
                                     .in = WEIR_SPAWN_OWN,
                                     .out = WEIR_SPAWN_OWN,
                                     .said = WEIR_SPAWN_OWN,
                                     .place = WEIR_SPAWN_GROUP};
    WEIR_TRY(weir_spawn_start(&spawn, &pid, err));
    if (save != 0) {
        (void)signal(save, SIG_DFL);
    }
    for (;;) {
        int got = sigwaitinfo(&signals, NULL);
        if (got == SIGCHLD && waitpid(pid, &status, WNOHANG) == pid) {
            *out_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            return WEIR_OK;
        }
        if (got > 0 && got != SIGCHLD) {
            (void)kill(got == save && is_for_script ? pid : -pid, got);
        }
    }
}

static weir_status run_words(const struct run_options *options, char **words, size_t n,
                             struct weir_arena *arena, int *out_status, struct weir_error *err)
{
    if (n == 0 || options->hosts == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "usage: weir-worker sbatch-run --hosts LIST [option …] -- SCRIPT");
    }
    WEIR_TRY(prepare(options, arena, err));
    char **script = WEIR_ARENA_ARRAY(arena, n + 1, char *);
    memcpy(script, words, n * sizeof *script);
    return run(options, script, out_status, err);
}

static weir_status read_and_run(int argc, char **argv, struct weir_arena *arena, int *out_status,
                                struct weir_error *err)
{
    struct run_options options = {0};
    char **words;
    size_t n_words;
    WEIR_TRY(weir_options_parse(run_options, WEIR_ARRAY_LEN(run_options), argc - 1, argv + 1, arena,
                                &options, &words, &n_words, err));
    if (options.is_help) {
        (void)printf("usage: weir-worker sbatch-run [option …] -- SCRIPT [ARGUMENT …]\n\n");
        weir_options_print(run_options, WEIR_ARRAY_LEN(run_options), stdout);
        return WEIR_OK;
    }
    return run_words(&options, words, n_words, arena, out_status, err);
}

int weir_sbatch_run_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err;
    int exit_status = 0;
    weir_arena_init(&arena, 0);
    weir_status status = read_and_run(argc, argv, &arena, &exit_status, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker sbatch-run: %s\n", err.message);
        exit_status = status == WEIR_ERR_NOT_FOUND ? WEIR_EXIT_NOT_FOUND : weir_status_exit(status);
    }
    weir_arena_fini(&arena);
    return exit_status;
}
