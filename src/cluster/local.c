/*
 * The driver of the server's own machine. The agent is a detached process, which outlives the
 * server: `PROGRAM agent --dir=DIR --server=URL --node=NAME --cpu-slots=N [--ca-file=FILE]
 * [--task-users=N] [--onnxruntime=PATH] [--share=DIR …]`, where PROGRAM is the one that runs now. It holds the lock of its
 * folder while it runs (is_running takes and frees the lock for a moment if none does), its log is
 * DIR/agent.log, its options are noted in DIR/options, the server's address in DIR/server.url.
 */
#include "cluster/cluster.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS_MAX_BYTES ((size_t)1 << 20)

/* What the grandchild needs; made before the fork, after which only system calls are safe. */
struct exec_plan {
    char *const *argv;
    const char *log_path;
    int status_fd; /* closed by a successful exec; else gets its errno */
};

static _Noreturn void exec_agent(const struct exec_plan *plan)
{
    sigset_t none;
    int log_fd = open(plan->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (log_fd >= 0 && null_fd >= 0 && dup2(null_fd, 0) >= 0 && dup2(log_fd, 1) >= 0 &&
        dup2(log_fd, 2) >= 0) {
        /* Nothing of the server's stays open in the agent: sockets, the database. */
        if (plan->status_fd > 3) {
            (void)close_range(3, (unsigned)plan->status_fd - 1, 0);
        }
        (void)close_range((unsigned)plan->status_fd + 1, ~0U, 0);
        (void)execv("/proc/self/exe", plan->argv);
    }
    int errno_value = errno;
    (void)!write(plan->status_fd, &errno_value, sizeof errno_value);
    _exit(127);
}

/* Two forks: the agent must be nobody's child, so that nobody's end reaps or signals it. */
static weir_status spawn_detached(const char *log_path, char *const *argv, struct weir_error *err)
{
    int status_fds[2];
    if (pipe2(status_fds, O_CLOEXEC) != 0) {
        return weir_error_set_errno(err, errno, "cannot start the agent");
    }
    struct exec_plan plan = {.argv = argv, .log_path = log_path, .status_fd = status_fds[1]};
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            exec_agent(&plan);
        }
        int errno_value = errno;
        if (grandchild < 0) {
            (void)!write(plan.status_fd, &errno_value, sizeof errno_value);
        }
        _exit(0);
    }
    int errno_value = child < 0 ? errno : 0;
    close(status_fds[1]);
    if (child > 0) {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
        ssize_t n;
        do {
            n = read(status_fds[0], &errno_value, sizeof errno_value); /* 0: it runs */
        } while (n < 0 && errno == EINTR);
    }
    close(status_fds[0]);
    return errno_value == 0 ? WEIR_OK
                            : weir_error_set_errno(err, errno_value, "cannot start the agent");
}

static bool is_running(const char *dir)
{
    char path[4096];
    int fd = -1;
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    weir_status status = weir_file_lock(path, &fd, NULL);
    if (status == WEIR_OK) {
        (void)close(fd);
    }
    return status == WEIR_ERR_CONFLICT;
}

static size_t count_lines(const char *text)
{
    size_t n = text != NULL;
    for (const char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL; at++) {
        n++;
    }
    return n;
}

static char **make_argv(const struct weir_cluster_agent *agent, const char *node,
                        struct weir_arena *arena)
{
    char **argv = WEIR_ARENA_ARRAY(arena, count_lines(agent->shares) + 10, char *);
    size_t n = 0;
    argv[n++] = weir_arena_strdup(arena, "weir");
    argv[n++] = weir_arena_strdup(arena, "agent");
    argv[n++] = weir_arena_printf(arena, "--dir=%s", agent->dir);
    argv[n++] = weir_arena_printf(arena, "--server=%s", agent->server);
    argv[n++] = weir_arena_printf(arena, "--node=%s", node);
    argv[n++] = weir_arena_printf(arena, "--cpu-slots=%lld", (long long)agent->cpu_slots);
    if (agent->ca_file != NULL) {
        argv[n++] = weir_arena_printf(arena, "--ca-file=%s", agent->ca_file);
    }
    if (agent->task_users > 0) {
        argv[n++] = weir_arena_printf(arena, "--task-users=%lld", (long long)agent->task_users);
    }
    if (agent->onnxruntime != NULL) {
        argv[n++] = weir_arena_printf(arena, "--onnxruntime=%s", agent->onnxruntime);
    }
    for (const char *at = agent->shares; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "\n");
        argv[n++] = weir_arena_printf(arena, "--share=%.*s", (int)len, at);
        at += len;
        at += *at == '\n';
    }
    return argv;
}

/* What an agent is started with, but for its folder and server: in lines. */
static char *options_text(char *const *argv, struct weir_arena *arena)
{
    char *text = weir_arena_strdup(arena, "");
    for (size_t i = 4; argv[i] != NULL; i++) {
        text = weir_arena_printf(arena, "%s%s\n", text, argv[i]);
    }
    return text;
}

static char **argv_of(const struct weir_cluster_agent *agent, struct weir_arena *arena)
{
    return make_argv(agent, agent->node != NULL ? agent->node : weir_cluster_node_name(arena),
                     arena);
}

static bool differs_from_noted(const struct weir_cluster_agent *agent)
{
    struct weir_arena arena;
    char *noted;
    size_t len;
    weir_arena_init(&arena, 0);
    char *path = weir_arena_printf(&arena, "%s/options", agent->dir);
    bool differs = weir_file_read(path, OPTIONS_MAX_BYTES, &arena, &noted, &len, NULL) == WEIR_OK &&
                   strcmp(noted, options_text(argv_of(agent, &arena), &arena)) != 0;
    weir_arena_fini(&arena);
    return differs;
}

/* Write down what it is given, and start it. */
static weir_status start_agent(const struct weir_cluster_agent *agent, struct weir_arena *arena,
                               struct weir_error *err)
{
    char **argv = argv_of(agent, arena);
    char *options = options_text(argv, arena);
    WEIR_TRY(weir_file_write_atomic(weir_arena_printf(arena, "%s/options", agent->dir), options,
                                    strlen(options), 0600, err));
    return spawn_detached(weir_arena_printf(arena, "%s/agent.log", agent->dir), argv, err);
}

static weir_status start(const struct weir_cluster_agent *agent, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *url_path = weir_arena_printf(&arena, "%s/server.url", agent->dir);
    weir_status status = weir_dir_make(agent->dir, 0700, err);
    if (status == WEIR_OK) {
        status = weir_file_write_atomic(url_path, agent->server, strlen(agent->server), 0600, err);
    }
    if (status == WEIR_ERR_NOSPACE && weir_path_exists(url_path)) {
        /* No inode for a new file may be free: the old one has its own. */
        status = weir_file_write(url_path, agent->server, strlen(agent->server), 0600, err);
    }
    if (status == WEIR_OK && !is_running(agent->dir)) {
        status = start_agent(agent, &arena, err);
    }
    weir_arena_fini(&arena);
    return status;
}

static const struct weir_cluster_driver driver = {
    .start = start,
    .is_running = is_running,
    .differs = differs_from_noted,
};

const struct weir_kind weir_driver_local = {
    .name = "local",
    .doc = "The server's own machine: the agent is a process that outlives the server.",
    .ops = &driver,
};
