/* One rank's process: here with an environment of its own, elsewhere with it on standard input. */
#include "bench/spawn/spawn_private.h"

#include "base/buf.h"
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COMMAND_MAX_BYTES ((size_t)96 << 10) /* a word of a command line may have 128 KiB */
#define ENV_MAX_BYTES     ((size_t)64 << 10)
#define PATH_BYTES        4096

extern char **environ;

/* ---- environment ---------------------------------------------------------------------------- */

static bool is_same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return strncmp(a, b, len) == 0 && b[len] == '=';
}

static bool is_in(const char *entry, const char *const *env)
{
    while (*env != NULL && !is_same_name(entry, *env)) {
        env++;
    }
    return *env != NULL;
}

static bool goes_along(const char *entry)
{
    return strncmp(entry, "WEIR_", 5) == 0 || strncmp(entry, "UCX_", 4) == 0;
}

/** The own environment with the rank's over it. @return NULL if memory is out; free() it. */
static char **merge_env(const char *const *env)
{
    size_t n = 1;
    for (size_t i = 0; environ[i] != NULL; i++) {
        n++;
    }
    for (size_t i = 0; env[i] != NULL; i++) {
        n++;
    }
    char **out = calloc(n, sizeof *out);
    n = 0;
    for (size_t i = 0; out != NULL && environ[i] != NULL; i++) {
        if (!is_in(environ[i], env)) {
            out[n++] = environ[i];
        }
    }
    for (size_t i = 0; out != NULL && env[i] != NULL; i++) {
        out[n++] = (char *)(uintptr_t)env[i];
    }
    return out;
}

/** Lines for the script's loop, and the empty one that ends it. */
static weir_status send_env(int fd, const char *const *env, struct weir_error *err)
{
    WEIR_AUTO(weir_buf_fini) struct weir_buf text;
    weir_buf_init(&text, ENV_MAX_BYTES);
    for (size_t i = 0; environ[i] != NULL; i++) {
        if (goes_along(environ[i]) && !is_in(environ[i], env) && strchr(environ[i], '\n') == NULL) {
            (void)weir_buf_printf(&text, "%s\n", environ[i]);
        }
    }
    for (size_t i = 0; env[i] != NULL; i++) {
        (void)weir_buf_printf(&text, "%s\n", env[i]);
    }
    (void)weir_buf_puts(&text, "\n");
    if (text.status != WEIR_OK) {
        return weir_error_set(err, text.status, "the environment of a rank has more than %zu bytes",
                              ENV_MAX_BYTES);
    }
    for (size_t at = 0; at < text.len;) {
        ssize_t n = send(fd, text.data + at, text.len - at, MSG_NOSIGNAL);
        at += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno != EINTR) {
            break; /* it is gone already: its exit status says why */
        }
    }
    return WEIR_OK;
}

/* ---- command line --------------------------------------------------------------------------- */

static void put_quoted(struct weir_buf *out, const char *text)
{
    (void)weir_buf_puts(out, "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)weir_buf_puts(out, "'\\''");
        } else {
            (void)weir_buf_append(out, text, 1);
        }
    }
    (void)weir_buf_puts(out, "'");
}

/** What sh does on the other host. It reads its input byte by byte, so the program has the rest. */
static weir_status write_script(const struct spawn_start *start, struct weir_buf *out)
{
    char folder[PATH_BYTES];
    if (getcwd(folder, sizeof folder) != NULL) {
        (void)weir_buf_puts(out, "cd ");
        put_quoted(out, folder);
        (void)weir_buf_puts(out, " 2>/dev/null; ");
    }
    (void)weir_buf_puts(out,
                        "while IFS= read -r l && [ -n \"$l\" ]; do export \"$l\"; done; exec ");
    put_quoted(out, start->program);
    for (size_t i = 1; start->argv[i] != NULL; i++) {
        (void)weir_buf_puts(out, " ");
        put_quoted(out, start->argv[i]);
    }
    return out->status;
}

/* The user's shell over there may be none that understands the script: it starts one that does. */
static weir_status write_command(const struct spawn_start *start, struct weir_buf *script,
                                 struct weir_buf *command)
{
    WEIR_TRY(write_script(start, script));
    (void)weir_buf_puts(command, "exec sh -c ");
    put_quoted(command, script->data);
    return command->status;
}

/* ---- process -------------------------------------------------------------------------------- */

struct channels {
    int in[2], err[2];
};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

static weir_status open_channels(struct channels *channels, struct weir_error *err)
{
    *channels = (struct channels){{-1, -1}, {-1, -1}};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channels->in) != 0 ||
        pipe2(channels->err, O_CLOEXEC) != 0) {
        return weir_error_set_errno(err, errno, "no channels to a rank");
    }
    (void)fcntl(channels->err[0], F_SETFL, O_NONBLOCK);
    return WEIR_OK;
}

static weir_status not_started(const struct spawn_start *start, struct weir_error *err)
{
    bool is_ssh = strcmp(start->by, "ssh") == 0;
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "%s is not in PATH, and starts the ranks %s; install %s", start->by,
                          is_ssh ? "on other hosts" : "of a Slurm allocation",
                          is_ssh ? "openssh-client" : "slurm-client");
}

static weir_status launch(const struct spawn_start *start, char *const *argv,
                          const struct channels *channels, int *out_pid, struct weir_error *err)
{
    const char *const none[] = {NULL};
    char **env = merge_env(start->by == NULL ? start->env : none);
    if (env == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to start a rank");
    }
    const struct weir_spawn spawn = {.program = start->by != NULL ? start->by : start->program,
                                     .argv = argv,
                                     .env = env,
                                     .in = channels->in[1],
                                     .out = WEIR_SPAWN_OWN,
                                     .said = channels->err[1],
                                     .place = WEIR_SPAWN_GROUP};
    weir_status status = weir_spawn_start(&spawn, out_pid, err);
    free(env);
    return status == WEIR_ERR_NOT_FOUND && start->by != NULL ? not_started(start, err) : status;
}

/** As launch, with the command line of ssh or srun around the program's. */
static weir_status launch_over(const struct spawn_start *start, const struct channels *channels,
                               int *out_pid, struct weir_error *err)
{
    struct weir_buf script, command;
    bool is_ssh = strcmp(start->by, "ssh") == 0;
    weir_buf_init(&script, COMMAND_MAX_BYTES);
    weir_buf_init(&command, COMMAND_MAX_BYTES);
    weir_status status = write_command(start, &script, &command);
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "the command line of a rank is too long");
    } else if (is_ssh) {
        char *argv[] = {
            "ssh",        "-x", "-T", "-o", "BatchMode=yes", (char *)(uintptr_t)start->host,
            command.data, NULL};
        status = launch(start, argv, channels, out_pid, err);
    } else {
        char *argv[] = {"srun",
                        "--nodes=1",
                        "--ntasks=1",
                        "--nodelist",
                        (char *)(uintptr_t)start->host,
                        "--overlap",
                        "--mpi=none",
                        "--cpu-bind=none",
                        "sh",
                        "-c",
                        script.data,
                        NULL};
        status = launch(start, argv, channels, out_pid, err);
    }
    weir_buf_fini(&script);
    weir_buf_fini(&command);
    return status;
}

weir_status spawn_start(const struct spawn_start *start, int *out_pid, int *out_in_fd,
                        int *out_err_fd, struct weir_error *err)
{
    struct channels channels;
    weir_status status = open_channels(&channels, err);
    if (status == WEIR_OK) {
        status = start->by == NULL ? launch(start, start->argv, &channels, out_pid, err)
                                   : launch_over(start, &channels, out_pid, err);
    }
    close_fd(&channels.in[1]);
    close_fd(&channels.err[1]);
    if (status == WEIR_OK && start->by != NULL) {
        status = send_env(channels.in[0], start->env, err);
    }
    if (status != WEIR_OK) {
        close_fd(&channels.in[0]);
        close_fd(&channels.err[0]);
        return status;
    }
    *out_in_fd = channels.in[0];
    *out_err_fd = channels.err[0];
    return WEIR_OK;
}
