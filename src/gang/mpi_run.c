/* Rank 0 of a job of the kind "mpi": become mpirun. */
#include "gang/mpi.h"

#include "base/file.h"
#include "base/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const mpi_names[MPI_N] = {"openmpi", "mpich", "none"};

int mpi_from_text(const char *text)
{
    for (int i = 0; i < MPI_N; i++) {
        if (strcmp(mpi_names[i], text) == 0) {
            return i;
        }
    }
    return -1;
}

/* What each launcher is called where several are installed, then by itself; and its package. */
static const struct {
    const char *names[4];
    const char *package;
} launchers[MPI_N] = {{{"mpirun.openmpi", "orterun", "mpirun", NULL}, "openmpi-bin"},
                      {{"mpiexec.mpich", "mpiexec.hydra", "mpiexec", NULL}, "mpich"},
                      {{NULL}, ""}};

char **mpi_launch_words(const struct mpi_launch *launch, const char *launcher,
                        struct weir_arena *arena)
{
    size_t n_own = 0, n = 0;
    while (launch->argv[n_own] != NULL) {
        n_own++;
    }
    char **words = WEIR_ARENA_ARRAY(arena, n_own + 8, char *);
    if (launch->mpi != MPI_OWN) {
        words[n++] = weir_arena_strdup(arena, launcher);
        words[n++] = "-n";
        words[n++] = weir_arena_printf(arena, "%d", launch->n_processes);
    }
    if (launch->mpi ==
        MPI_MPICH) { /* in the folder of each task: that of rank 0 is not elsewhere */
        words[n++] = "-wdir";
        words[n++] = ".";
    }
    memcpy(words + n, launch->argv, (n_own + 1) * sizeof *words);
    return words;
}

char **mpi_launch_environment(const struct mpi_launch *launch, struct weir_arena *arena)
{
    const char *folder = launch->folder;

    const struct {
        const char *name, *value;
    } variables[] = {
        {"WEIR_TOKEN_FILE", weir_arena_printf(arena, "%s/token", folder)},
        /* Open MPI 4: orte/mca/plm/rsh, orte/runtime/orte_mca_params.c. Each daemon is started from
         * here, and stays a child of the one that started it. They too look whether there is such a
         * program, so that it goes by its name in PATH. */
        {"OMPI_MCA_plm", "rsh"},
        {"OMPI_MCA_plm_rsh_agent", "weir-worker mpi-agent"},
        {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
        {"OMPI_MCA_orte_leave_session_attached", "1"},
        {"OMPI_MCA_orte_default_hostfile",
         weir_arena_printf(arena, "%s/mpi.hosts.openmpi", folder)},
        /* Where there are no sandboxes tasks may be root's. */
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        /* MPICH 4: pm/hydra/tools/bootstrap, ui/mpich/utils.c. */
        {"HYDRA_LAUNCHER", "rsh"},
        {"HYDRA_LAUNCHER_EXEC", weir_arena_printf(arena, "%s/mpi-agent", folder)},
        {"HYDRA_HOST_FILE", weir_arena_printf(arena, "%s/mpi.hosts.mpich", folder)},
    };

    char **environment = WEIR_ARENA_ARRAY(arena, WEIR_ARRAY_LEN(variables) + 1, char *);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(variables); i++) {
        environment[i] = weir_arena_printf(arena, "%s=%s", variables[i].name, variables[i].value);
    }
    return environment;
}

/* The first launcher in PATH. */
static const char *find_launcher(enum mpi mpi, struct weir_arena *arena)
{
    for (size_t i = 0; launchers[mpi].names[i] != NULL; i++) {
        const char *rest = getenv("PATH");
        while (rest != NULL && *rest != '\0') {
            int len = (int)strcspn(rest, ":");
            char *path = weir_arena_printf(arena, "%.*s/%s", len, rest, launchers[mpi].names[i]);
            if (access(path, X_OK) == 0) {
                return path;
            }
            rest += len + (rest[len] == ':');
        }
    }
    return NULL;
}

/* MPICH wants one program, without arguments. */
static weir_status write_agent(const char *folder, struct weir_arena *arena, struct weir_error *err)
{
    static const char text[] = "#!/bin/sh\nexec weir-worker mpi-agent \"$@\"\n";
    return weir_file_write_atomic(weir_arena_printf(arena, "%s/mpi-agent", folder), text,
                                  sizeof text - 1, 0700, err);
}

struct run_options {
    char *mpi;
    int64_t processes;
    bool is_help;
};

static const struct weir_option run_options[] = {
    WEIR_OPT(run_options, mpi, "mpi", 0, TEXT, "openmpi", 0, 0, "NAME",
             "Whose launcher: openmpi, mpich, or none: the program calls one itself"),
    WEIR_OPT(run_options, processes, "processes", 'n', INT, "1", 1, 1 << 20, "N",
             "Processes, over all hosts"),
    WEIR_OPT(run_options, is_help, "help", 'h', BOOL, NULL, 0, 0, NULL, "Show this help"),
};

static int complain(const char *what, int status)
{
    (void)fprintf(stderr, "weir-worker mpi-run: %s\n", what);
    return status;
}

static weir_status prepare(struct mpi_launch *launch, const char *mpi, struct weir_arena *arena,
                           struct weir_error *err)
{
    char folder[PATH_MAX];
    int which = mpi_from_text(mpi);
    if (which < 0 || launch->argv[0] == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "usage: weir-worker mpi-run [--mpi openmpi|mpich|none] -n N -- "
                              "PROGRAM [ARGUMENT …]");
    }
    launch->mpi = (enum mpi)which;
    if (getcwd(folder, sizeof folder) == NULL) {
        return weir_error_set(err, WEIR_ERR_IO, "the working folder is not known");
    }
    launch->folder = weir_arena_strdup(arena, folder);
    WEIR_TRY(write_agent(folder, arena, err));
    mpi_add_to_path(arena);
    char **environment = mpi_launch_environment(launch, arena);
    for (size_t i = 0; environment[i] != NULL; i++) {
        char *equals = strchr(environment[i], '=');
        *equals = '\0';
        (void)setenv(environment[i], equals + 1, 0); /* what the user gave stays */
    }
    return WEIR_OK;
}

int weir_mpi_run_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err;
    struct run_options options = {0};
    struct mpi_launch launch = {0};
    char **words;
    size_t n_words;
    weir_arena_init(&arena, 0);
    weir_status status = weir_options_parse(run_options, WEIR_ARRAY_LEN(run_options), argc - 1,
                                            argv + 1, &arena, &options, &words, &n_words, &err);
    if (status == WEIR_OK && options.is_help) {
        (void)printf("usage: weir-worker mpi-run [option …] -- PROGRAM [ARGUMENT …]\n\n");
        weir_options_print(run_options, WEIR_ARRAY_LEN(run_options), stdout);
        return 0;
    }
    char **own = WEIR_ARENA_ARRAY(&arena, status == WEIR_OK ? n_words + 1 : 1, char *);
    if (status == WEIR_OK && n_words > 0) {
        memcpy(own, words, n_words * sizeof *own);
    }
    launch.argv = own;
    launch.n_processes = (int)options.processes;
    status = status == WEIR_OK ? prepare(&launch, options.mpi, &arena, &err) : status;
    if (status != WEIR_OK) {
        return complain(err.message, weir_status_exit(status));
    }
    const char *launcher = find_launcher(launch.mpi, &arena);
    if (launcher == NULL && launch.mpi != MPI_OWN) {
        return complain(weir_arena_printf(&arena, "this node has no %s: apt-get install %s",
                                          launchers[launch.mpi].names[0],
                                          launchers[launch.mpi].package),
                        WEIR_EXIT_NOT_FOUND);
    }
    char **all = mpi_launch_words(&launch, launcher, &arena);
    (void)execvp(all[0], all);
    return complain(weir_arena_printf(&arena, "cannot start \"%s\"", all[0]), WEIR_EXIT_NOT_RUN);
}
