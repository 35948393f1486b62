/* What mpirun starts in place of ssh. */
#include "gang/mpi.h"
#include "gang/wire.h"

#include "base/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

weir_status mpi_agent_parse(int argc, char *const *argv, struct weir_arena *arena, int *out_rank,
                            char **out_command, struct weir_error *err)
{
    static const char prefix[] = "rank-";
    int i = 0;
    while (i < argc && argv[i][0] == '-') {
        i++;
    }
    char *end = NULL;
    bool is_rank = i + 1 < argc && strncmp(argv[i], prefix, sizeof prefix - 1) == 0;
    long rank = is_rank ? strtol(argv[i] + sizeof prefix - 1, &end, 10) : -1;
    if (!is_rank || end == argv[i] + sizeof prefix - 1 || *end != '\0' || rank < 0 || rank > 9999) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected a host \"rank-N\" of the job and a command, not \"%.60s\": "
                              "hosts of a job are those of its hosts' file",
                              i < argc ? argv[i] : "");
    }
    const char *command = argv[i + 1];
    for (int k = i + 2; k < argc; k++) {
        command = weir_arena_printf(arena, "%s %s", command, argv[k]);
    }
    if (strlen(command) > WIRE_COMMAND_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a command of more than %zu bytes",
                              WIRE_COMMAND_MAX_BYTES);
    }
    *out_rank = (int)rank;
    *out_command = weir_arena_strdup(arena, command);
    return WEIR_OK;
}

void mpi_add_to_path(struct weir_arena *arena)
{
    char self[PATH_MAX];
    const char *path = getenv("PATH");
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
        (void)setenv("PATH",
                     weir_arena_printf(arena, "%s%s%s", path != NULL ? path : "",
                                       path != NULL && path[0] != '\0' ? ":" : "", self),
                     1);
    }
}

/* A folder below `base` that no other task has, as a variable. */
static void set_own_folder(const char *variable, const char *base, int64_t rank)
{
    char folder[128];
    const char *job = getenv("WEIR_JOB");
    size_t len = job != NULL ? strlen(job) : 0;
    (void)snprintf(folder, sizeof folder, "%s/weir-mpi-%s-%lld", base,
                   len > 12 ? job + len - 12 : "", (long long)rank);
    if (weir_dir_make(folder, 0700, NULL) == WEIR_OK) {
        (void)setenv(variable, folder, 0);
    }
}

void mpi_settle(int64_t rank)
{
    char work[PATH_MAX];
    set_own_folder("OMPI_MCA_btl_vader_backing_directory", "/dev/shm", rank);
    set_own_folder("OMPI_MCA_orte_tmpdir_base", "/tmp", rank);
    if (getcwd(work, sizeof work) != NULL) {
        (void)setenv("HOME", work, 1); /* where orted begins a program whose folder is not there */
    }
}

/* mpirun starts a daemon on its own host too: here. Comes back if that cannot be. */
static int run_here(int rank, const char *command)
{
    const char *own = getenv("WEIR_RANK");
    char text[16];
    (void)snprintf(text, sizeof text, "%d", rank);
    if (own != NULL && strcmp(own, text) == 0) {
        mpi_settle(rank);
        (void)execlp("sh", "sh", "-c", command, NULL);
        return WEIR_EXIT_NOT_RUN;
    }
    return -1;
}

int weir_mpi_agent_main(int argc, char **argv)
{
    struct weir_arena arena;
    struct weir_error err;
    struct wire_place place;
    int rank, exit_status = 0;
    char *command;
    const char *token_file = getenv("WEIR_TOKEN_FILE");
    weir_arena_init(&arena, 0);
    weir_status status = mpi_agent_parse(argc - 1, argv + 1, &arena, &rank, &command, &err);
    exit_status = status == WEIR_OK ? run_here(rank, command) : 0;
    if (exit_status > 0) {
        return exit_status;
    }
    if (status == WEIR_OK) {
        status = wire_find(token_file != NULL ? token_file : "token", &place, &err);
    }
    if (status == WEIR_OK) {
        status = wire_run(&place, rank, command, &arena, &exit_status, &err);
    }
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-worker mpi-agent: %s\n", err.message);
        exit_status = weir_status_exit(status);
    }
    weir_arena_fini(&arena);
    return exit_status;
}
