#include "base/command.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INPUT_MAX_BYTES ((size_t)60 << 10) /* a pipe takes them at once */
#define OUT_MAX_BYTES   ((size_t)1 << 20)
#define SAID_MAX_BYTES  ((size_t)16 << 10)
#define READ_BYTES      65536

enum { OUT, SAID, N_STREAMS };

/* A command that runs. */
struct running {
    pid_t pid;
    int streams[N_STREAMS]; /* -1: at its end */
    int end;                /* a descriptor that is readable when it has ended */
    struct weir_buf text[N_STREAMS];
};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

/* The end of a pipe from which all the input can be read; 0: there is none. */
static int input_fd(const char *input)
{
    int fds[2];
    size_t len = input != NULL ? strlen(input) : 0;
    if (len == 0) {
        return WEIR_SPAWN_NULL;
    }
    if (len > INPUT_MAX_BYTES || pipe2(fds, O_CLOEXEC) != 0) {
        return -1;
    }
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
    bool is_written = write(fds[1], input, len) == (ssize_t)len;
    (void)close(fds[1]);
    if (!is_written) {
        (void)close(fds[0]);
    }
    return is_written ? fds[0] : -1;
}

static weir_status start(const struct weir_command *command, struct running *running,
                         struct weir_error *err)
{
    const char *name = command->words[0];
    int in = input_fd(command->input), ends[N_STREAMS][2] = {{-1, -1}, {-1, -1}};
    bool has_pipes =
        in >= 0 && pipe2(ends[OUT], O_CLOEXEC) == 0 && pipe2(ends[SAID], O_CLOEXEC) == 0;
    const struct weir_spawn spawn = {.program = command->program,
                                     .argv = (char *const *)(uintptr_t)command->words,
                                     .env = (char *const *)(uintptr_t)command->env,
                                     .in = in,
                                     .out = ends[OUT][1],
                                     .said = ends[SAID][1],
                                     .place = WEIR_SPAWN_SESSION};
    weir_status status = has_pipes ? weir_spawn_start(&spawn, &running->pid, err)
                                   : weir_error_set(err, WEIR_ERR_IO,
                                                    "%s cannot be started: there is no pipe", name);
    if (in > 0) {
        (void)close(in);
    }
    for (int i = 0; i < N_STREAMS; i++) {
        close_fd(&ends[i][1]);
        running->streams[i] = ends[i][0];
        if (status != WEIR_OK) {
            close_fd(&running->streams[i]);
        }
    }
    WEIR_TRY(status);
    running->end = (int)syscall(SYS_pidfd_open, running->pid, 0);
    return WEIR_OK;
}

/* ---- what it prints -------------------------------------------------------------------------- */

/* Standard error is cut silently; too much on standard output is an error. */
static bool read_stream(struct running *running, int i)
{
    char bytes[READ_BYTES];
    ssize_t n = read(running->streams[i], bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EINTR)) {
        close_fd(&running->streams[i]);
        return true;
    }
    size_t room = running->text[i].max_bytes - running->text[i].len;
    size_t len = n < 0 ? 0 : (size_t)n;
    bool is_cut = len > room;
    (void)weir_buf_append(&running->text[i], bytes, WEIR_MIN(len, room));
    return !is_cut || i == SAID;
}

/* Read until it has ended. What a child of its own leaves open is not waited for. @return False: too late. */
static bool read_all(struct running *running, int64_t timeout_ms, bool *out_is_full)
{
    int64_t until_ms = weir_mono_ms() + timeout_ms;
    bool has_ended = false;
    *out_is_full = false;
    while (!*out_is_full &&
           (!has_ended || running->streams[OUT] >= 0 || running->streams[SAID] >= 0)) {
        struct pollfd fds[] = {{.fd = running->streams[OUT], .events = POLLIN},
                               {.fd = running->streams[SAID], .events = POLLIN},
                               {.fd = has_ended ? -1 : running->end, .events = POLLIN}};
        int64_t left_ms = has_ended ? 0 : until_ms - weir_mono_ms();
        int n = left_ms < 0 ? 0 : poll(fds, WEIR_ARRAY_LEN(fds), (int)left_ms);
        if (n == 0) {
            return has_ended;
        }
        for (int i = 0; n > 0 && i < N_STREAMS; i++) {
            *out_is_full = *out_is_full || (fds[i].revents != 0 && !read_stream(running, i));
        }
        has_ended = has_ended || (n > 0 && fds[N_STREAMS].revents != 0);
    }
    return true;
}

static size_t most(size_t said, size_t otherwise)
{
    return said > 0 ? said : otherwise;
}

weir_status weir_command_run(const struct weir_command *command, struct weir_arena *arena,
                             struct weir_command_answer *out, struct weir_error *err)
{
    struct running running = {.streams = {-1, -1}, .end = -1};
    const char *name = command->words[0];
    bool is_full = false;
    WEIR_TRY(start(command, &running, err));
    weir_buf_init(&running.text[OUT], most(command->out_max_bytes, OUT_MAX_BYTES));
    weir_buf_init(&running.text[SAID], most(command->said_max_bytes, SAID_MAX_BYTES));
    bool is_over = running.end >= 0 && read_all(&running, command->timeout_ms, &is_full);
    if (!is_over || is_full) {
        (void)kill(-running.pid, SIGKILL);
    }
    out->exit_status = weir_spawn_wait(running.pid);
    out->out = weir_arena_memdup(arena, running.text[OUT].data, running.text[OUT].len);
    out->said = weir_arena_memdup(arena, running.text[SAID].data, running.text[SAID].len);
    for (int i = 0; i < N_STREAMS; i++) {
        close_fd(&running.streams[i]);
        weir_buf_fini(&running.text[i]);
    }
    close_fd(&running.end);
    if (is_full) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s prints more than %zu KiB", name,
                              most(command->out_max_bytes, OUT_MAX_BYTES) >> 10);
    }
    return is_over ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_TIMEOUT, "%s did not end within %lld s", name,
                                    (long long)command->timeout_ms / 1000);
}
