/* Between a stream and three descriptors, at a terminal or not. */
#include "cli/job/inside.h"

#include "base/clock.h"
#include "visit/visit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#define PIPE_BYTES  4096  /* what a pipe or a terminal that is ready takes without waiting */
#define SILENCE_MS  60000 /* without an answer to what is said every WEIR_VISIT_PING_MS */
#define PAUSED_MS   30000 /* this process itself was stopped for so long */
#define BROKEN_PIPE 141

/* Modes that a program may have left on: the mouse, pasting, other screens and keys, colours, no cursor. */
#define MODES_OFF                                                                                  \
    "\033[?1000l\033[?1002l\033[?1003l\033[?1005l\033[?1006l\033[?1015l\033[?2004l\033[?1004l"     \
    "\033[?1047l\033[?1l\033>\033[?7h\033[?25h\033[0m"

/* ---- the terminal ------------------------------------------------------------------------------------ */

static struct termios before;
static int raw_fd = -1;

static void restore(void)
{
    if (raw_fd >= 0) {
        (void)tcsetattr(raw_fd, TCSAFLUSH, &before);
        if (isatty(STDOUT_FILENO)) {
            (void)!write(STDOUT_FILENO, MODES_OFF, sizeof MODES_OFF - 1);
        }
        raw_fd = -1;
    }
}

static void make_raw(int fd)
{
    static bool is_registered;
    struct termios raw;
    if (tcgetattr(fd, &before) != 0) {
        return;
    }
    if (!is_registered) {
        is_registered = true;
        (void)atexit(restore);
    }
    raw = before;
    cfmakeraw(&raw);
    raw_fd = tcsetattr(fd, TCSAFLUSH, &raw) == 0 ? fd : -1;
}

static void send_size(struct inside_mover *m)
{
    struct winsize size;
    char payload[4];
    if (ioctl(m->ends.in_fd, TIOCGWINSZ, &size) == 0) {
        weir_frame_set_u16(payload, size.ws_row);
        weir_frame_set_u16(payload + 2, size.ws_col);
        (void)weir_frame_put(&m->line->box, WEIR_FRAME_WINDOW, payload, sizeof payload);
    }
}

/* ---- to the task ---------------------------------------------------------------------------------------- */

static bool wants_input(const struct inside_mover *m)
{
    return m->ends.in_fd >= 0 && !m->is_input_over &&
           m->in_flight + WEIR_FRAME_MAX_BYTES <= WEIR_VISIT_WINDOW &&
           weir_frame_room(&m->line->box) == WEIR_FRAME_MAX_BYTES;
}

static void read_input(struct inside_mover *m)
{
    char bytes[WEIR_FRAME_MAX_BYTES];
    ssize_t n = read(m->ends.in_fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        m->is_input_over = true;
        (void)weir_frame_put(&m->line->box, WEIR_FRAME_INPUT_END, NULL, 0);
        return;
    }
    (void)weir_frame_put(&m->line->box, WEIR_FRAME_INPUT, bytes, (size_t)n);
    m->in_flight += (size_t)n;
}

static void cut(struct inside_mover *m, const char *why)
{
    m->is_over = true;
    (void)snprintf(m->end.message, sizeof m->end.message, "%.500s", why);
}

/* ---- from the task --------------------------------------------------------------------------------------- */

static void take_exit(struct inside_mover *m)
{
    int status = (unsigned char)m->line->payload[0], number = (unsigned char)m->line->payload[1];
    m->end.has_exit = true;
    m->end.exit_status = number != 0 ? 128 + number : status;
    m->is_over = true;
}

static void take_frame(struct inside_mover *m)
{
    struct weir_line *line = m->line;
    switch (line->frames.type) {
    case WEIR_FRAME_OUTPUT:
    case WEIR_FRAME_ERRORS:
        m->to_fd = line->frames.type == WEIR_FRAME_OUTPUT ? m->ends.out_fd : m->ends.errors_fd;
        m->n_written = 0;
        break;
    case WEIR_FRAME_TAKEN:
        m->in_flight -= WEIR_MIN((size_t)weir_frame_u32(line->payload), m->in_flight);
        break;
    case WEIR_FRAME_EXIT:
        take_exit(m);
        break;
    case WEIR_FRAME_FAILED:
        weir_frame_disarm(line->payload);
        cut(m, line->payload);
        break;
    case WEIR_FRAME_OUTPUT_END:
        if (m->ends.is_connection) {
            (void)shutdown(m->ends.out_fd, SHUT_WR);
        }
        break;
    default:
        break;
    }
}

/* A piece that is taken at once, so that this process goes on to answer. */
static void write_output(struct inside_mover *m)
{
    size_t left = m->line->frames.len - m->n_written;
    ssize_t n =
        write(m->to_fd, m->line->payload + m->n_written, WEIR_MIN(left, (size_t)PIPE_BYTES));
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        m->is_over = m->end.has_exit = true; /* nobody reads it: as after SIGPIPE */
        m->end.exit_status = BROKEN_PIPE;
        return;
    }
    m->n_written += n > 0 ? (size_t)n : 0;
    if (m->n_written == m->line->frames.len) {
        m->to_fd = -1;
    }
}

static void read_frames(struct inside_mover *m)
{
    while (m->to_fd < 0 && !m->is_over && weir_line_next(m->line)) {
        m->heard_ms = weir_mono_ms();
        take_frame(m);
    }
    if (m->line->is_over && m->to_fd < 0 && !m->is_over) {
        m->is_over = true; /* without a word */
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------- */

static void look_at_time(struct inside_mover *m)
{
    int64_t now_ms = weir_mono_ms();
    if (now_ms - m->looked_ms > PAUSED_MS || m->to_fd >= 0) {
        m->heard_ms = now_ms; /* it was this side that did not listen */
    }
    m->looked_ms = now_ms;
    if (now_ms - m->said_ms >= WEIR_VISIT_PING_MS) {
        m->said_ms = now_ms;
        (void)weir_frame_put(&m->line->box, WEIR_FRAME_PING, NULL, 0);
    }
    if (now_ms - m->heard_ms >= SILENCE_MS) {
        cut(m, "the visit was cut: the task's node has not answered for a minute");
    }
}

void inside_mover_init(struct inside_mover *m, struct weir_line *line,
                       const struct inside_ends *ends)
{
    int64_t now_ms = weir_mono_ms();
    *m = (struct inside_mover){.ends = *ends,
                               .line = line,
                               .to_fd = -1,
                               .said_ms = now_ms,
                               .heard_ms = now_ms,
                               .looked_ms = now_ms};
    if (ends->in_fd < 0) {
        m->is_input_over = true;
        (void)weir_frame_put(&line->box, WEIR_FRAME_INPUT_END, NULL, 0);
    }
}

int inside_mover_prepare(struct inside_mover *m, struct pollfd fds[INSIDE_MOVER_FDS])
{
    look_at_time(m);
    (void)weir_line_flush(m->line);
    read_frames(m);
    fds[0] = weir_line_poll(m->line, m->to_fd < 0);
    fds[1] = (struct pollfd){.fd = wants_input(m) ? m->ends.in_fd : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = m->to_fd, .events = POLLOUT};
    int64_t left_ms = m->is_over ? 0 : m->said_ms + WEIR_VISIT_PING_MS - weir_mono_ms();
    return (int)WEIR_MAX(left_ms, (int64_t)0);
}

void inside_mover_move(struct inside_mover *m, const struct pollfd fds[INSIDE_MOVER_FDS])
{
    if (fds[1].revents != 0 && !m->is_over) {
        read_input(m);
    }
    if (fds[2].revents != 0 && !m->is_over) {
        write_output(m);
    }
}

/* ---- of a command ---------------------------------------------------------------------------------------- */

static void take_signals(struct inside_mover *m, int signal_fd, int *n_interrupts)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        char number = (char)info.ssi_signo;
        if (info.ssi_signo == SIGWINCH) {
            send_size(m);
        } else if (info.ssi_signo == SIGHUP || info.ssi_signo == SIGTERM ||
                   (*n_interrupts)++ >= 2) {
            cut(m, "interrupted here: what the visit began is ended");
        } else {
            (void)weir_frame_put(&m->line->box, WEIR_FRAME_SIGNAL, &number, 1);
        }
    }
}

static int block_signals(sigset_t *out_old)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(numbers); i++) {
        sigaddset(&set, numbers[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, out_old);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void inside_run(const struct inside *inside, struct weir_line *line, const struct inside_ends *ends,
                struct inside_end *out)
{
    sigset_t old;
    struct inside_mover m;
    int n_interrupts = 0, signal_fd = block_signals(&old);
    inside_mover_init(&m, line, ends);
    if (ends->has_terminal) {
        make_raw(ends->in_fd);
        send_size(&m);
    }
    while (!m.is_over) {
        struct pollfd fds[INSIDE_MOVER_FDS + 1] = {{.fd = signal_fd, .events = POLLIN}};
        int wait_ms = inside_mover_prepare(&m, fds + 1);
        if (m.is_over) {
            break;
        }
        (void)poll(fds, WEIR_ARRAY_LEN(fds), wait_ms);
        if (fds[0].revents != 0) {
            take_signals(&m, signal_fd, &n_interrupts);
        }
        inside_mover_move(&m, fds + 1);
    }
    restore();
    weir_line_close(line);
    close(signal_fd);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    *out = m.end;
    if (!out->has_exit && out->message[0] == '\0') {
        inside_explain_cut(inside, out->message, sizeof out->message);
    }
}
