#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct prepared {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
};

/* One standard stream. */
static int set_stream(posix_spawn_file_actions_t *files, int stream, int fd)
{
    if (fd == WEIR_SPAWN_OWN) {
        return 0;
    }
    return fd == WEIR_SPAWN_NULL
               ? posix_spawn_file_actions_addopen(files, stream, "/dev/null",
                                                  stream == 0 ? O_RDONLY : O_WRONLY, 0)
               : posix_spawn_file_actions_adddup2(files, fd, stream);
}

static int set_files(const struct weir_spawn *spawn, posix_spawn_file_actions_t *files)
{
    int rc = set_stream(files, 0, spawn->in);
    if (spawn->log != NULL) {
        rc = rc != 0 ? rc
                     : posix_spawn_file_actions_addopen(files, 1, spawn->log,
                                                        O_WRONLY | O_CREAT | O_APPEND, 0600);
        rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(files, 1, 2);
    } else {
        rc = rc != 0 ? rc : set_stream(files, 1, spawn->out);
        rc = rc != 0 ? rc : set_stream(files, 2, spawn->said);
    }
    return rc != 0 ? rc : posix_spawn_file_actions_addclosefrom_np(files, 3);
}

static void set_attributes(const struct weir_spawn *spawn, posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    (void)sigemptyset(&none);
    (void)sigemptyset(&usual);
    (void)sigaddset(&usual, SIGPIPE);
    if (spawn->place == WEIR_SPAWN_GROUP) {
        flags |= POSIX_SPAWN_SETPGROUP; /* 0: its own */
    } else if (spawn->place != WEIR_SPAWN_HERE) {
        flags |= spawn->place == WEIR_SPAWN_SESSION ? POSIX_SPAWN_SETSID : 0;
        (void)sigfillset(&usual);
    }
    (void)posix_spawnattr_setflags(attributes, flags);
    (void)posix_spawnattr_setsigmask(attributes, &none);
    (void)posix_spawnattr_setsigdefault(attributes, &usual);
}

static int execute(const struct weir_spawn *spawn, const struct prepared *prepared, pid_t *out_pid)
{
    const char *program = spawn->program != NULL ? spawn->program : spawn->argv[0];
    return posix_spawnp(out_pid, program, &prepared->files, &prepared->attributes, spawn->argv,
                        spawn->env != NULL ? spawn->env : environ);
}

static pid_t wait_for(pid_t pid, int *out_status)
{
    pid_t ended;
    do {
        ended = waitpid(pid, out_status, 0);
    } while (ended < 0 && errno == EINTR);
    return ended;
}

/* By a child that ends at once: what it starts has no parent left. The pipe brings the error number; nothing comes if
 * it runs. Between fork and its end the child makes nothing but system calls, for which all was prepared before. */
static int execute_detached(const struct weir_spawn *spawn, const struct prepared *prepared)
{
    int fds[2], rc = 0;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t between = fork();
    if (between == 0) {
        pid_t ignored;
        (void)setsid(); /* it leads the session, so that what it starts could get no terminal */
        rc = execute(spawn, prepared, &ignored);
        if (rc != 0) {
            (void)!write(fds[1], &rc, sizeof rc);
        }
        _exit(0);
    }
    rc = between < 0 ? errno : 0;
    (void)close(fds[1]);
    if (between > 0) {
        int status;
        ssize_t n;
        (void)wait_for(between, &status);
        do {
            n = read(fds[0], &rc, sizeof rc);
        } while (n < 0 && errno == EINTR);
    }
    (void)close(fds[0]);
    return rc;
}

weir_status weir_spawn_start(const struct weir_spawn *spawn, pid_t *out_pid, struct weir_error *err)
{
    struct prepared prepared;
    *out_pid = 0;
    int rc = posix_spawn_file_actions_init(&prepared.files);
    if (rc != 0) {
        return weir_error_set_errno(err, rc, "cannot start %s", spawn->argv[0]);
    }
    (void)posix_spawnattr_init(&prepared.attributes);
    set_attributes(spawn, &prepared.attributes);
    rc = set_files(spawn, &prepared.files);
    if (rc == 0) {
        rc = spawn->place == WEIR_SPAWN_DETACHED ? execute_detached(spawn, &prepared)
                                                 : execute(spawn, &prepared, out_pid);
    }
    (void)posix_spawnattr_destroy(&prepared.attributes);
    (void)posix_spawn_file_actions_destroy(&prepared.files);
    if (rc != 0) {
        *out_pid = 0;
    }
    return rc == 0 ? WEIR_OK : weir_error_set_errno(err, rc, "cannot start %s", spawn->argv[0]);
}

int weir_spawn_wait(pid_t pid)
{
    int status;
    if (wait_for(pid, &status) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
