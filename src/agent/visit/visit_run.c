/* The runner of a visit: between its stream and what it started in the task's sandbox. */
#include "agent/visit/visit.h"

#include "base/clock.h"
#include "base/log.h"
#include "visit/line.h"
#include "visit/visit.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define TICK_MS      1000
#define SEND_LAST_MS 5000 /* for the last frames */
#define PIECES_MAX   16   /* pieces of output, before input is looked at again */

struct runner {
    const struct visit_host *host;
    const struct visit_order *order;
    struct process_id task;
    struct visit_inside inside;
    int pid_fd; /* readable: it has ended; -1: there is none */
    bool has_ended;
    int wait_status;
    char *input; /* a ring's worth, WEIR_VISIT_WINDOW bytes */
    size_t in_begin, in_end;
    uint32_t n_taken; /* not told yet */
    bool is_input_over, is_output_over, is_errors_over;
    bool is_broken;     /* the visitor broke the rules */
    int64_t hung_up_ms; /* when the visitor was found gone; 0: not */
    struct weir_line line;
};

/* ---- input --------------------------------------------------------------------------------------------- */

static void end_input(struct runner *r)
{
    struct visit_inside *inside = &r->inside;
    if (inside->is_connection) {
        (void)shutdown(inside->in_fd, SHUT_WR);
    } else if (inside->is_terminal) {
        (void)!write(inside->in_fd, "\4", 1); /* what ends input at a terminal */
    } else if (inside->in_fd >= 0) {
        close(inside->in_fd);
        inside->in_fd = -1;
    }
}

static void drop_input(struct runner *r)
{
    r->n_taken += (uint32_t)(r->in_end - r->in_begin);
    r->in_begin = r->in_end = 0;
}

static void write_input(struct runner *r)
{
    struct visit_inside *inside = &r->inside;
    while (r->in_begin < r->in_end && inside->in_fd >= 0) {
        ssize_t n = write(inside->in_fd, r->input + r->in_begin, r->in_end - r->in_begin);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        }
        if (n < 0) { /* nobody reads it any more */
            drop_input(r);
            break;
        }
        r->in_begin += (size_t)n;
        r->n_taken += (uint32_t)n;
    }
    if (inside->in_fd < 0) {
        drop_input(r);
    }
    if (r->in_begin == r->in_end) {
        r->in_begin = r->in_end = 0;
        if (r->is_input_over && inside->in_fd >= 0 && r->input != NULL) {
            end_input(r);
            free(r->input);
            r->input = NULL;
        }
    }
}

static void take_input(struct runner *r)
{
    size_t len = r->line.frames.len;
    if (r->input == NULL || r->is_input_over || r->in_end - r->in_begin + len > WEIR_VISIT_WINDOW) {
        r->is_broken = true;
        return;
    }
    if (r->in_end + len > WEIR_VISIT_WINDOW) {
        memmove(r->input, r->input + r->in_begin, r->in_end - r->in_begin);
        r->in_end -= r->in_begin;
        r->in_begin = 0;
    }
    memcpy(r->input + r->in_end, r->line.payload, len);
    r->in_end += len;
}

static void send_signal(const struct runner *r, int number)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGKILL};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passed); i++) {
        if (passed[i] == number && r->inside.pid > 0 && !r->has_ended) {
            (void)kill(-r->inside.pid, number);
        }
    }
}

static void take_frame(struct runner *r)
{
    const char *payload = r->line.payload;
    struct winsize size = {0};
    switch (r->line.frames.type) {
    case WEIR_FRAME_INPUT:
        take_input(r);
        break;
    case WEIR_FRAME_INPUT_END:
        r->is_input_over = true;
        break;
    case WEIR_FRAME_WINDOW:
        size.ws_row = weir_frame_u16(payload);
        size.ws_col = weir_frame_u16(payload + 2);
        if (r->inside.is_terminal) {
            (void)ioctl(r->inside.in_fd, TIOCSWINSZ, &size);
        }
        break;
    case WEIR_FRAME_SIGNAL:
        send_signal(r, (unsigned char)payload[0]);
        break;
    case WEIR_FRAME_PING:
        (void)weir_frame_put(&r->line.box, WEIR_FRAME_PONG, NULL, 0);
        break;
    default:
        break;
    }
}

/* ---- output -------------------------------------------------------------------------------------------- */

/* Is there room for bytes, and for what else is to be said behind them? */
static bool has_room(const struct runner *r)
{
    return r->line.box.end - r->line.box.begin < WEIR_FRAME_MAX_BYTES;
}

/* One piece. False: there is nothing now, or it is over. */
static bool read_output(struct runner *r, int fd, enum weir_frame_type type, bool *is_over)
{
    char bytes[WEIR_FRAME_MAX_BYTES];
    if (*is_over || fd < 0 || !has_room(r)) {
        return false;
    }
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0) {
        return weir_frame_put(&r->line.box, type, bytes, (size_t)n);
    }
    bool is_later = n < 0 && (errno == EAGAIN || errno == EINTR);
    *is_over = !is_later || r->has_ended; /* what it left behind may hold it open for ever */
    return false;
}

static void move_output(struct runner *r)
{
    bool goes_on = true;
    for (int i = 0; i < PIECES_MAX && goes_on; i++) {
        goes_on = read_output(r, r->inside.out_fd, WEIR_FRAME_OUTPUT, &r->is_output_over);
        goes_on =
            read_output(r, r->inside.errors_fd, WEIR_FRAME_ERRORS, &r->is_errors_over) || goes_on;
        (void)weir_line_flush(&r->line);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* All that is still of the session that it began, whichever process is its parent now. */
static void kill_session(pid_t leader)
{
    DIR *dir = opendir("/proc");
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        pid_t pid =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        struct process_id id;
        if (pid > 0 && pid != leader && getsid(pid) == leader && process_identify(pid, &id) &&
            getsid(pid) == leader) {
            (void)process_signal(&id, SIGKILL);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static void note_end(struct runner *r)
{
    siginfo_t info = {0};
    if (r->pid_fd < 0 || r->has_ended ||
        waitid(P_PID, (id_t)r->inside.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return;
    }
    if (r->hung_up_ms != 0) {
        kill_session(r->inside.pid); /* its number is not free before it is waited for */
    }
    r->has_ended = waitpid(r->inside.pid, &r->wait_status, WNOHANG) == r->inside.pid;
}

/* Nobody is there any more, or nobody who keeps the rules. */
static void look_at_visitor(struct runner *r)
{
    if (!r->line.is_over && !r->is_broken) {
        return;
    }
    int64_t now_ms = weir_mono_ms();
    if (r->hung_up_ms == 0) {
        r->hung_up_ms = now_ms;
        r->line.is_over = true;
        if (r->inside.pid > 0 && !r->has_ended) {
            (void)kill(-r->inside.pid, SIGHUP);
            (void)kill(-r->inside.pid, SIGCONT);
        }
        if (r->inside.is_terminal) { /* the program in front is told too */
            close(r->inside.in_fd);
            r->inside.in_fd = r->inside.out_fd = -1;
        }
    } else if (now_ms - r->hung_up_ms >= VISIT_GRACE_MS && r->inside.pid > 0 && !r->has_ended) {
        kill_session(r->inside.pid);
        (void)kill(-r->inside.pid, SIGKILL);
    }
}

/* Until it was sent, or nobody takes it. */
static void send_last(struct runner *r)
{
    int64_t due_ms = weir_mono_ms() + SEND_LAST_MS;
    while (weir_line_flush(&r->line) && r->line.box.begin < r->line.box.end) {
        struct pollfd fd = weir_line_poll(&r->line, false);
        int64_t left_ms = due_ms - weir_mono_ms();
        if (left_ms <= 0 || poll(&fd, 1, (int)left_ms) <= 0) {
            break;
        }
    }
    weir_line_close(&r->line);
}

static void send_exit(struct runner *r, int status, int number)
{
    const char payload[2] = {(char)status, (char)number};
    if (r->inside.is_connection || r->inside.out_fd >= 0) {
        (void)weir_frame_put(&r->line.box, WEIR_FRAME_OUTPUT_END, NULL, 0);
    }
    (void)weir_frame_put(&r->line.box, WEIR_FRAME_EXIT, payload, sizeof payload);
    send_last(r);
}

/* Killed with its task: how it ended says nothing then. */
static bool ended_with_task(const struct runner *r)
{
    bool is_killed = WIFSIGNALED(r->wait_status) &&
                     (WTERMSIG(r->wait_status) == SIGKILL || WTERMSIG(r->wait_status) == SIGTERM);
    return !r->inside.is_connection && is_killed &&
           (task_has(r->host->dir, "stop") || (!r->host->is_held && !process_is_alive(&r->task)));
}

static void tell_end(struct runner *r)
{
    bool is_signal = !r->inside.is_connection && WIFSIGNALED(r->wait_status);
    if (ended_with_task(r)) {
        (void)weir_frame_put_failed(&r->line.box, "the visit ended with its task, which has ended "
                                                  "or is being stopped");
        send_last(r);
        return;
    }
    send_exit(r, is_signal || r->inside.is_connection ? 0 : WEXITSTATUS(r->wait_status),
              is_signal ? WTERMSIG(r->wait_status) : 0);
}

/* ---- the loop -------------------------------------------------------------------------------------------- */

static void wait_event(const struct runner *r)
{
    const struct visit_inside *inside = &r->inside;
    bool has_input = r->in_begin < r->in_end;
    bool is_reading = has_room(r) && r->hung_up_ms == 0;
    struct pollfd fds[] = {
        weir_line_poll(&r->line, true),
        {.fd = has_input ? inside->in_fd : -1, .events = POLLOUT},
        {.fd = is_reading && !r->is_output_over ? inside->out_fd : -1, .events = POLLIN},
        {.fd = is_reading && !r->is_errors_over ? inside->errors_fd : -1, .events = POLLIN},
        {.fd = r->has_ended ? -1 : r->pid_fd, .events = POLLIN}};
    (void)poll(fds, WEIR_ARRAY_LEN(fds), r->hung_up_ms != 0 ? TICK_MS : -1);
}

/* All is said and done: the program has ended and what it printed is on its way. */
static bool is_done(const struct runner *r)
{
    bool is_quiet = (r->is_output_over || r->inside.out_fd < 0) &&
                    (r->is_errors_over || r->inside.errors_fd < 0);
    if (r->hung_up_ms != 0) {
        return r->inside.pid <= 0 || r->has_ended;
    }
    if (r->inside.is_connection) {
        return is_quiet;
    }
    return r->inside.pid > 0 && r->has_ended && is_quiet;
}

static void turn(struct runner *r)
{
    while (!r->is_broken && weir_line_next(&r->line)) {
        take_frame(r);
    }
    note_end(r);
    write_input(r);
    char number[4];
    weir_frame_set_u32(number, r->n_taken);
    if (r->n_taken > 0 && weir_frame_put(&r->line.box, WEIR_FRAME_TAKEN, number, sizeof number)) {
        r->n_taken = 0;
    }
    if (r->hung_up_ms == 0) {
        move_output(r);
    }
    (void)weir_line_flush(&r->line);
    look_at_visitor(r);
}

static _Noreturn void refuse(struct runner *r, int code, const struct weir_error *err)
{
    char text[WEIR_FRAME_TEXT_BYTES];
    if (code != 0) { /* a command's: as a shell says it */
        int len = snprintf(text, sizeof text, "%s\n", err->message);
        (void)weir_frame_put(&r->line.box, WEIR_FRAME_ERRORS, text,
                             WEIR_MIN((size_t)len, sizeof text - 1));
        send_exit(r, code, 0);
    } else {
        (void)weir_frame_put_failed(&r->line.box, err->message);
        send_last(r);
    }
    _exit(0);
}

static bool starts_something(const struct visit_order *order)
{
    return strcmp(order->kind, "top") != 0 &&
           (strcmp(order->kind, "forward") != 0 || order->stream > 0);
}

static void connect_server(struct runner *r, const struct visit_order *order)
{
    struct weir_arena arena;
    struct weir_client *client;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    const struct weir_client_config config = {
        .server = order->server, .ca_file = order->ca_file, .timeout_ms = VISIT_PATIENCE_MS};
    weir_status status = weir_client_open(&config, &client, &err);
    if (status == WEIR_OK) {
        const char *path = weir_arena_printf(&arena, "/api/v1/visits/%s/place?stream=%lld",
                                             order->id, (long long)order->stream);
        status = weir_line_open(&r->line, client, path, order->secret, &err);
        weir_client_close(client);
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "visit_not_begun", WEIR_KV_STR("error", err.message));
        _exit(1);
    }
    weir_arena_fini(&arena);
}

_Noreturn void visit_run(const struct visit_host *host, const struct visit_order *order)
{
    struct runner *r = weir_xalloc(sizeof *r);
    struct weir_arena arena;
    struct weir_error err;
    int code = 0;
    memset(r, 0, sizeof *r);
    r->host = host;
    r->order = order;
    (void)process_identify(host->pid, &r->task);
    r->pid_fd = -1;
    r->inside = (struct visit_inside){.in_fd = -1, .out_fd = -1, .errors_fd = -1};
    weir_arena_init(&arena, 0);
    connect_server(r, order);
    if (strcmp(order->kind, "top") == 0) {
        visit_top(host, &r->line);
    }
    if (starts_something(order)) {
        if (visit_inside_start(host, order, &arena, &r->inside, &code, &err) != WEIR_OK) {
            refuse(r, code, &err);
        }
        r->input = weir_xalloc(WEIR_VISIT_WINDOW);
        r->pid_fd = r->inside.pid > 0 ? (int)syscall(SYS_pidfd_open, r->inside.pid, 0) : -1;
    }
    (void)weir_frame_put(&r->line.box, WEIR_FRAME_READY, NULL, 0);
    do {
        turn(r);
        if (is_done(r)) {
            break;
        }
        wait_event(r);
    } while (true);
    if (r->hung_up_ms == 0) {
        tell_end(r);
    }
    _exit(0);
}
