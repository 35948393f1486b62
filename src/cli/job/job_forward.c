/** weir job forward: a port of a task, at a port of this machine's loopback. */
#include "cli/job/inside.h"

#include "base/listen.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 63

struct connection {
    struct inside_mover mover;
    struct weir_line line;
    int fd;
};

struct forwarding {
    struct inside inside;
    int listen_fd, signal_fd;
    struct inside_mover mover; /* of the visit itself */
    struct weir_line *line;
    struct connection *connections[CONNECTIONS_MAX];
    size_t n;
};

static weir_status read_port(const char *text, int64_t min, int64_t *out, struct weir_error *err)
{
    char *end;
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *out >= min && *out <= UINT16_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%.40s\": expected PORT or LOCAL:PORT, as 8888 or 9000:8888",
                                text);
}

static void close_connection(struct forwarding *f, size_t i)
{
    struct connection *c = f->connections[i];
    if (!c->mover.end.has_exit && c->mover.end.message[0] != '\0') {
        (void)fprintf(stderr, "weir: %s\n", c->mover.end.message);
    }
    weir_line_close(&c->line);
    close(c->fd);
    free(c);
    f->connections[i] = f->connections[--f->n];
}

static void take_in(struct forwarding *f)
{
    struct weir_error err;
    int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    struct connection *c = weir_xalloc(sizeof *c);
    c->fd = fd;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (inside_open(&f->inside, &c->line, &err) != WEIR_OK) {
        (void)fprintf(stderr, "weir: %s\n", err.message);
        close(fd);
        free(c);
        return;
    }
    const struct inside_ends ends = {fd, fd, -1, false, true};
    inside_mover_init(&c->mover, &c->line, &ends);
    f->connections[f->n++] = c;
}

/* False: it ends. */
static bool turn(struct forwarding *f)
{
    struct pollfd fds[2 + INSIDE_MOVER_FDS * (CONNECTIONS_MAX + 1)];
    fds[0] = (struct pollfd){.fd = f->signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = f->n < CONNECTIONS_MAX ? f->listen_fd : -1, .events = POLLIN};
    int wait_ms = inside_mover_prepare(&f->mover, fds + 2);
    for (size_t i = 0; i < f->n; i++) {
        int left_ms =
            inside_mover_prepare(&f->connections[i]->mover, fds + 2 + INSIDE_MOVER_FDS * (i + 1));
        wait_ms = WEIR_MIN(wait_ms, left_ms);
    }
    if (f->mover.is_over) {
        return false;
    }
    size_t n = f->n;
    (void)poll(fds, 2 + INSIDE_MOVER_FDS * (n + 1), wait_ms);
    inside_mover_move(&f->mover, fds + 2);
    for (size_t i = 0; i < n; i++) {
        inside_mover_move(&f->connections[i]->mover, fds + 2 + INSIDE_MOVER_FDS * (i + 1));
    }
    for (size_t i = f->n; i-- > 0;) {
        if (f->connections[i]->mover.is_over) {
            close_connection(f, i);
        }
    }
    if (fds[1].revents != 0) {
        take_in(f);
    }
    return fds[0].revents == 0;
}

static void block_signals(struct forwarding *f)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    f->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static weir_status run_forward(struct cli_call *call, struct weir_error *err)
{
    struct forwarding *f = weir_arena_alloc(call->arena, sizeof *f);
    const char *word = call->words[1], *colon = strchr(word, ':');
    int64_t port, local;
    int bound;
    memset(f, 0, sizeof *f);
    WEIR_TRY(read_port(colon != NULL ? colon + 1 : word, 1, &port, err));
    WEIR_TRY(read_port(colon != NULL ? weir_arena_memdup(call->arena, word, (size_t)(colon - word))
                                     : word,
                       0, &local, err));
    WEIR_TRY(weir_listen_open(weir_arena_printf(call->arena, "127.0.0.1:%lld", (long long)local),
                              "LOCAL", &f->listen_fd, &bound, err));
    f->line = weir_arena_alloc(call->arena, sizeof *f->line);
    json_t *body = json_pack("{s:s,s:I}", "kind", "forward", "port", (json_int_t)port);
    weir_status status = inside_begin(call, call->words[0], body, &f->inside, err);
    if (status == WEIR_OK) {
        status = inside_open(&f->inside, f->line, err);
    }
    if (status != WEIR_OK) {
        close(f->listen_fd);
        return status;
    }
    block_signals(f);
    const struct inside_ends ends = {-1, -1, -1, false, false};
    inside_mover_init(&f->mover, f->line, &ends);
    printf("127.0.0.1:%d is port %lld of %s, until this command ends (Ctrl-C)\n", bound,
           (long long)port, call->words[0]);
    (void)fflush(stdout);
    while (turn(f)) {
    }
    while (f->n > 0) {
        close_connection(f, f->n - 1);
    }
    if (f->mover.is_over) {
        if (f->mover.end.message[0] == '\0') {
            inside_explain_cut(&f->inside, f->mover.end.message, sizeof f->mover.end.message);
        }
        inside_tell(call, &f->mover.end);
    }
    weir_line_close(f->line);
    close(f->listen_fd);
    close(f->signal_fd);
    return WEIR_OK;
}

const struct cli_command cli_job_forward = {
    .name = "job forward",
    .usage = "JOB[/TASK] [LOCAL:]PORT",
    .summary = "Reach a port of a task that runs at this machine's 127.0.0.1",
    .help =
        "PORT is one on which a program of the task listens, on its 127.0.0.1; LOCAL is the port "
        "here,\n"
        "the same if it is not given, any free one if it is 0. Up to 63 connections at once go "
        "through\n"
        "the server: no port of the node is opened. It goes on until Ctrl-C, or the task ends.",
    CLI_WORDS(2, 2),
    CLI_PLAIN,
    .run = run_forward,
};
