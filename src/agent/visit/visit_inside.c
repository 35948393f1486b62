/* What a visitor starts in a task's sandbox. */
#include "agent/visit/visit.h"

#include "agent/supervise/launch.h"
#include "agent/supervise/pass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ENVIRON_MAX_BYTES ((size_t)2 << 20)
#define ENTRIES_MAX       8192

extern char **environ;

/* What the child says before it goes on as what was asked for. */
struct said {
    int errno_value; /* 0: it goes on */
    bool is_exec;    /* it was the program that could not be executed */
    char step[64];
};

struct inside_plan {
    const struct visit_host *host;
    const struct visit_order *order;
    char **env;
    char work[TASK_PATH_BYTES];
    uid_t user;      /* to become; 0: stay */
    int barrier_fd;  /* the parent's word comes here */
    int said_fd;     /* a socket: what it says, and with it a terminal or a connection */
    int stdio[3];    /* -1: the terminal */
    int terminal_fd; /* the machine's, where the task has none: master and slave */
    int slave_fd;
};

/* ---- the variables ---------------------------------------------------------------------------------- */

/* What the task's program has, which may have got more by what ran in front of it; else what it was given. */
static char **find_environment(const struct visit_host *host, const struct visit_order *order,
                               struct weir_arena *arena)
{
    char path[64], **env = WEIR_ARENA_ARRAY(arena, ENTRIES_MAX + 3, char *);
    size_t n = 0, len = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)host->pid);
    char *text = weir_arena_alloc(arena, ENVIRON_MAX_BYTES + 1);
    /* What has ended has none, and its number may be another's. */
    int fd = host->pid > 0 && !host->is_held ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    for (ssize_t got = 1; fd >= 0 && got > 0 && len < ENVIRON_MAX_BYTES;) {
        got = read(fd, text + len, ENVIRON_MAX_BYTES - len);
        len += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    text[len] = '\0';
    for (size_t at = 0; at < len && n < ENTRIES_MAX; at += strlen(text + at) + 1) {
        if (strncmp(text + at, "TERM=", 5) != 0) {
            env[n++] = text + at;
        }
    }
    if (n == 0) {
        char **given = launch_environment(host->dir, host->task, arena);
        for (; given[n] != NULL && n < ENTRIES_MAX; n++) {
            env[n] = given[n];
        }
    }
    env[n++] = weir_arena_printf(arena, "WEIR_VISIT=%s", order->id);
    if (order->term != NULL) {
        env[n++] = weir_arena_printf(arena, "TERM=%s", order->term);
    }
    env[n] = NULL;
    return env;
}

/* ---- in the child -------------------------------------------------------------------------------------- */

/* Say it, with a descriptor if there is one. */
static bool say(const struct inside_plan *plan, const struct said *said, int fd)
{
    return pass_send(plan->said_fd, said, sizeof *said, &fd, fd >= 0 ? 1 : 0);
}

static _Noreturn void fail(const struct inside_plan *plan, const char *step, bool is_exec)
{
    struct said said = {.errno_value = errno != 0 ? errno : EIO, .is_exec = is_exec};
    (void)snprintf(said.step, sizeof said.step, "%s", step);
    (void)say(plan, &said, -1);
    _exit(127);
}

/* The task's own, which it finds by its name, if it has some. */
static void take_terminal(struct inside_plan *plan)
{
    int zero = 0;
    struct winsize size = {.ws_row = (unsigned short)plan->order->rows,
                           .ws_col = (unsigned short)plan->order->columns};
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int slave = -1;
    if (master >= 0 && ioctl(master, TIOCSPTLCK, &zero) == 0) {
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    if (slave < 0) {
        master = plan->terminal_fd;
        slave = plan->slave_fd;
    }
    if (slave < 0) {
        fail(plan, "no terminal", false);
    }
    if (plan->user != 0 && fchown(slave, plan->user, plan->user) != 0) {
        fail(plan, "its terminal", false);
    }
    (void)ioctl(slave, TIOCSWINSZ, &size);
    if (!say(plan, &(struct said){0}, master) || ioctl(slave, TIOCSCTTY, 0) != 0) {
        fail(plan, "no terminal", false);
    }
    for (int i = 0; i < 3; i++) {
        plan->stdio[i] = slave;
    }
}

/* As a shell of the task's own: bash if it is there, else sh. */
static void execute(const struct inside_plan *plan)
{
    static char *const shells[][2] = {
        {"/bin/bash", NULL}, {"/usr/bin/bash", NULL}, {"/bin/sh", NULL}};
    environ = plan->env;
    if (plan->order->command != NULL) {
        (void)execvp(plan->order->command[0], plan->order->command);
        return;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(shells); i++) {
        (void)execv(shells[i][0], shells[i]);
    }
}

static int connect_port(const struct inside_plan *plan)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET,
                                   .sin_addr = {htonl(INADDR_LOOPBACK)},
                                   .sin_port = htons((uint16_t)plan->order->port)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                    .sin6_port = htons((uint16_t)plan->order->port)};
    const struct timeval patience = {.tv_sec = VISIT_PATIENCE_MS / 1000}; /* a full backlog */
    for (int i = 0; i < 2; i++) {
        int fd = socket(i == 0 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        int rc = i == 0 ? connect(fd, (const struct sockaddr *)&v4, sizeof v4)
                        : connect(fd, (const struct sockaddr *)&v6, sizeof v6);
        if (fd >= 0 && rc == 0) {
            return fd;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return -1;
}

static _Noreturn void connect_and_give(const struct inside_plan *plan)
{
    int fd = connect_port(plan);
    if (fd < 0) {
        fail(plan, "the port", false);
    }
    (void)say(plan, &(struct said){0}, fd);
    _exit(0);
}

static void arrange(const struct inside_plan *plan)
{
    /* None of the three is among the numbers it goes to: they were open before. */
    for (int i = 0; i < 3; i++) {
        if (dup2(plan->stdio[i], i) != i) {
            fail(plan, "standard input and output", false);
        }
    }
    int said = fcntl(plan->said_fd, F_DUPFD_CLOEXEC, 3);
    if (said < 0 || dup3(said, 3, O_CLOEXEC) != 3 || close_range(4, ~0U, 0) != 0) {
        fail(plan, "descriptors", false);
    }
}

static _Noreturn void be_inside(struct inside_plan *plan)
{
    char word;
    const struct visit_order *order = plan->order;
    if (read(plan->barrier_fd, &word, 1) != 1) {
        _exit(0);
    }
    (void)prctl(PR_SET_DUMPABLE, 0); /* what this process still knows is no neighbour's */
    (void)setsid();
    weir_isolation_limit_self(plan->host->limits);
    launch_be_expendable();
    if (order->has_tty) {
        take_terminal(plan);
    }
    if (strcmp(order->kind, "forward") != 0) {
        arrange(plan);
        plan->said_fd = 3;
    }
    if (chdir(plan->work) != 0 && chdir("/") != 0) {
        fail(plan, "its folder", false);
    }
    if (!launch_give_up_privileges(plan->host->task, plan->user)) {
        fail(plan, "its user", false);
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* becoming the user has undone it */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    if (strcmp(order->kind, "forward") == 0) {
        connect_and_give(plan);
    }
    if (strcmp(order->kind, "read") == 0 || strcmp(order->kind, "write") == 0) {
        close(plan->said_fd); /* it goes on */
        _exit(strcmp(order->kind, "read") == 0 ? visit_file_read(order->path)
                                               : visit_file_write(order->path));
    }
    execute(plan);
    fail(plan, order->command != NULL ? order->command[0] : "a shell", true);
}

/* ---- in the runner ----------------------------------------------------------------------------------- */

/* Wait for what it says; a descriptor may come with it, at once or before. False: it ended, or goes on. */
static bool hear(int fd, struct said *said, int *out_fd)
{
    int fds[PASS_MAX];
    if (pass_receive(fd, said, sizeof *said, fds) != (ssize_t)sizeof *said) {
        return false;
    }
    *out_fd = fds[0] >= 0 ? fds[0] : *out_fd;
    return true;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static bool make_pipes(int pipes[3][2])
{
    for (int i = 0; i < 3; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0) {
            return false;
        }
    }
    return true;
}

/* Where the task has no terminals, as in a container without them: one of the machine. */
static void make_terminal(struct inside_plan *plan)
{
    int zero = 0;
    plan->terminal_fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    plan->slave_fd = plan->terminal_fd >= 0 && ioctl(plan->terminal_fd, TIOCSPTLCK, &zero) == 0
                         ? ioctl(plan->terminal_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
                         : -1;
}

static weir_status explain(const struct visit_order *order, const struct said *said, int *out_code,
                           struct weir_error *err)
{
    if (strcmp(order->kind, "forward") == 0) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "nobody listens on port %lld of the task: %s", (long long)order->port,
                              strerror(said->errno_value));
    }
    if (said->is_exec) {
        *out_code = said->errno_value == ENOENT ? WEIR_EXIT_NOT_FOUND : WEIR_EXIT_NOT_RUN;
    }
    return weir_error_set(err, WEIR_ERR_IO, "cannot start \"%.60s\" in the task: %s", said->step,
                          strerror(said->errno_value));
}

/* What it said until it went on; its terminal or connection is in out->in_fd. */
static weir_status await(const struct visit_order *order, int fd, struct visit_inside *out,
                         int *out_code, struct weir_error *err)
{
    struct said said;
    int given = -1;
    while (hear(fd, &said, &given)) {
        if (said.errno_value != 0) {
            close_fd(&given);
            (void)waitpid(out->pid, NULL, 0);
            return explain(order, &said, out_code, err);
        }
    }
    if (given >= 0) {
        out->in_fd = out->out_fd = given;
        out->is_connection = strcmp(order->kind, "forward") == 0;
        out->is_terminal = !out->is_connection;
    }
    if (out->is_connection) {
        (void)waitpid(out->pid, NULL, 0);
        out->pid = 0;
    } else if (given < 0 && order->has_tty) {
        return weir_error_set(err, WEIR_ERR_IO, "the task ended");
    }
    return WEIR_OK;
}

static weir_status fork_inside(struct inside_plan *plan, int pipes[3][2], struct visit_inside *out,
                               int *out_code, struct weir_error *err)
{
    int barrier[2] = {-1, -1}, said[2] = {-1, -1};
    weir_status status = WEIR_OK;
    if (pipe2(barrier, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, said) != 0) {
        return weir_error_set_errno(err, errno, "cannot start a process");
    }
    plan->barrier_fd = barrier[0];
    plan->said_fd = said[1];
    pid_t pid = namespaces_fork(plan->host->ns);
    if (pid == 0) {
        close(barrier[1]);
        be_inside(plan);
    }
    int errno_value = errno;
    close(barrier[0]);
    close_fd(&said[1]);
    close_fd(&pipes[0][0]);
    close_fd(&pipes[1][1]);
    close_fd(&pipes[2][1]);
    close_fd(&plan->slave_fd);
    close_fd(&plan->terminal_fd);
    if (pid < 0) {
        status = weir_error_set_errno(err, errno_value,
                                      "cannot enter the task's place: it may have just ended");
    } else {
        out->pid = pid;
        if (plan->host->group->n_dirs > 0) {
            status = weir_group_add(plan->host->group, pid, err);
        }
        if (status == WEIR_OK) {
            (void)!write(barrier[1], "", 1);
        }
    }
    close(barrier[1]);
    if (status == WEIR_OK) {
        status = await(plan->order, said[0], out, out_code, err);
    }
    close(said[0]);
    return status;
}

static void unblock(int fd)
{
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
}

weir_status visit_inside_start(const struct visit_host *host, const struct visit_order *order,
                               struct weir_arena *arena, struct visit_inside *out, int *out_code,
                               struct weir_error *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    bool is_root = geteuid() == 0;
    struct inside_plan plan = {.host = host,
                               .order = order,
                               .env = find_environment(host, order, arena),
                               .user = is_root ? host->task->sandbox.user : 0,
                               .terminal_fd = -1,
                               .slave_fd = -1};
    *out = (struct visit_inside){.in_fd = -1, .out_fd = -1, .errors_fd = -1};
    (void)task_path(plan.work, host->dir, "work");
    if (!make_pipes(pipes)) {
        return weir_error_set_errno(err, errno, "cannot start a process");
    }
    plan.stdio[0] = pipes[0][0];
    plan.stdio[1] = pipes[1][1];
    plan.stdio[2] = pipes[2][1];
    if (order->has_tty) {
        make_terminal(&plan);
    }
    weir_status status = fork_inside(&plan, pipes, out, out_code, err);
    if (status == WEIR_OK && out->in_fd < 0) {
        out->in_fd = pipes[0][1];
        out->out_fd = pipes[1][0];
        out->errors_fd = pipes[2][0];
    } else {
        close_fd(&pipes[0][1]);
        close_fd(&pipes[1][0]);
        close_fd(&pipes[2][0]);
    }
    unblock(out->in_fd);
    unblock(out->out_fd);
    unblock(out->errors_fd);
    return status;
}
