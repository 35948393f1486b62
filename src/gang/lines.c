#include "gang/lines.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe of a program. */
struct stream {
    int to;      /* where its lines go */
    int program; /* the end that the program has; -1: closed here */
    char *text;  /* the beginning of a line; LINES_MAX_BYTES of room */
    size_t len;
    int64_t heard_ms;
    bool is_broken; /* nobody reads its lines any more */
};

struct gang_lines {
    size_t n_each; /* pipes of a program: 1 or 2 */
    size_t n;
    struct stream *streams;
    struct pollfd *pipes; /* the ends that are read; behind them that of `stop` */
    int stop;             /* closed: it is over */
    pthread_t thread;
    bool is_started;
};

static bool are_same(int a, int b)
{
    struct stat first, second;
    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* What cannot be written is lost. */
static void pass_on(struct stream *stream, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(stream->to, stream->text + done, len - done);
        if (n < 0 &&
            errno == EAGAIN) { /* other processes have the stream too, and may have made it so */
            struct pollfd room = {.fd = stream->to, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            stream->is_broken = true;
            break;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    stream->len -= len;
    memmove(stream->text, stream->text + len, stream->len);
}

static size_t whole_lines(const struct stream *stream)
{
    size_t len = stream->len;
    while (len > 0 && stream->text[len - 1] != '\n' && stream->text[len - 1] != '\r') {
        len--;
    }
    return len > 0 || stream->len < LINES_MAX_BYTES ? len : stream->len;
}

/* @return Bytes, or -1: none are there. A pipe that has ended is read no more. */
static ssize_t hear(struct stream *stream, struct pollfd *pipe)
{
    ssize_t n = read(pipe->fd, stream->text + stream->len, LINES_MAX_BYTES - stream->len);
    if (n > 0) {
        stream->len += (size_t)n;
        stream->heard_ms = weir_mono_ms();
        pass_on(stream, whole_lines(stream));
    }
    bool is_over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (is_over) {
        pass_on(stream, stream->len);
    }
    if (is_over || stream->is_broken) { /* the program is told by the pipe */
        (void)close(pipe->fd);
        pipe->fd = -1;
    }
    return n > 0 ? n : -1;
}

/* @return how long none of them need be looked at, or -1. */
static int pass_on_quiet(struct gang_lines *lines)
{
    int64_t now = weir_mono_ms(), least = -1;
    for (size_t i = 0; i < lines->n; i++) {
        struct stream *stream = &lines->streams[i];
        int64_t left = stream->heard_ms + LINES_QUIET_MS - now;
        if (stream->len > 0 && left <= 0) {
            pass_on(stream, stream->len);
        } else if (stream->len > 0 && (least < 0 || left < least)) {
            least = left;
        }
    }
    return (int)least;
}

/* What is in the pipe by now goes on; one that was left behind may print more, for as long as it likes. */
static void drain(struct stream *stream, struct pollfd *pipe)
{
    int left = 0;
    if (pipe->fd < 0 || ioctl(pipe->fd, FIONREAD, &left) != 0) {
        return;
    }
    for (ssize_t n = 1; left > 0 && n > 0; left -= (int)n) {
        n = hear(stream, pipe);
    }
    pass_on(stream, stream->len);
}

static void *lines_main(void *arg)
{
    struct gang_lines *lines = arg;
    sigset_t broken; /* write says it */
    (void)sigemptyset(&broken);
    (void)sigaddset(&broken, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &broken, NULL);
    const struct pollfd *stop = &lines->pipes[lines->n];
    while (poll(lines->pipes, lines->n + 1, pass_on_quiet(lines)) < 0 || stop->revents == 0) {
        for (size_t i = 0; i < lines->n; i++) {
            if (lines->pipes[i].revents != 0) {
                (void)hear(&lines->streams[i], &lines->pipes[i]);
            }
        }
    }
    for (size_t i = 0; i < lines->n; i++) {
        drain(&lines->streams[i], &lines->pipes[i]);
    }
    return NULL;
}

static bool open_pipe(int *out_read, int *out_write, int flags)
{
    int ends[2];
    bool is_open = pipe2(ends, O_CLOEXEC) == 0;
    if (is_open) {
        (void)fcntl(ends[0], F_SETFL, flags);
        *out_read = ends[0];
        *out_write = ends[1];
    }
    return is_open;
}

static bool open_pipes(struct gang_lines *lines, int out, int said)
{
    bool is_open = open_pipe(&lines->pipes[lines->n].fd, &lines->stop, 0);
    for (size_t i = 0; i < lines->n && is_open; i++) {
        struct stream *stream = &lines->streams[i];
        stream->to = i % lines->n_each == 0 ? out : said;
        stream->text = malloc(LINES_MAX_BYTES);
        is_open =
            stream->text != NULL && open_pipe(&lines->pipes[i].fd, &stream->program, O_NONBLOCK);
    }
    return is_open;
}

weir_status gang_lines_open(int out, int said, size_t n, struct gang_lines **out_lines,
                            struct weir_error *err)
{
    struct gang_lines *lines = calloc(1, sizeof *lines);
    size_t n_each = are_same(out, said) ? 1 : 2;
    if (lines != NULL) {
        *lines = (struct gang_lines){.n_each = n_each, .stop = -1};
        lines->streams = calloc(n * n_each, sizeof *lines->streams);
        lines->pipes = calloc(n * n_each + 1, sizeof *lines->pipes);
    }
    if (lines == NULL || lines->streams == NULL || lines->pipes == NULL) {
        gang_lines_close(lines);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the lines of %zu programs", n);
    }
    lines->n = n * n_each;
    for (size_t i = 0; i <= lines->n; i++) {
        lines->pipes[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    for (size_t i = 0; i < lines->n; i++) {
        lines->streams[i].program = -1;
    }
    if (!open_pipes(lines, out, said)) {
        int reason = errno;
        gang_lines_close(lines);
        return weir_error_set_errno(
            err, reason,
            "no pipes for what %zu programs print: fewer programs, or a higher ulimit -n", n);
    }
    *out_lines = lines;
    return WEIR_OK;
}

void gang_lines_streams(const struct gang_lines *lines, size_t i, int *out, int *said)
{
    *out = lines->streams[i * lines->n_each].program;
    *said = lines->streams[i * lines->n_each + lines->n_each - 1].program;
}

static void close_programs(struct gang_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++) {
        if (lines->streams[i].program >= 0) {
            (void)close(lines->streams[i].program);
            lines->streams[i].program = -1;
        }
    }
}

weir_status gang_lines_start(struct gang_lines *lines, struct weir_error *err)
{
    close_programs(lines);
    int reason = pthread_create(&lines->thread, NULL, lines_main, lines);
    lines->is_started = reason == 0;
    return reason == 0 ? WEIR_OK : weir_error_set_errno(err, reason, "cannot start a thread");
}

void gang_lines_close(struct gang_lines *lines)
{
    if (lines == NULL) {
        return;
    }
    if (lines->n > 0 && lines->stop >= 0) {
        (void)close(lines->stop);
    }
    if (lines->is_started) {
        (void)pthread_join(lines->thread, NULL);
    }
    close_programs(lines);
    for (size_t i = 0; i < lines->n; i++) {
        if (lines->pipes[i].fd >= 0) {
            (void)close(lines->pipes[i].fd);
        }
        free(lines->streams[i].text);
    }
    if (lines->n > 0 && lines->pipes[lines->n].fd >= 0) {
        (void)close(lines->pipes[lines->n].fd);
    }
    free(lines->pipes);
    free(lines->streams);
    free(lines);
}
