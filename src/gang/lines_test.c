/* A law: whatever the pieces in which programs print, every line goes on whole, and each program's in its order. */
#include "gang/lines.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_PROGRAMS 5
#define N_LINES    300

static struct weir_error err;

/* A program, as a thread: it prints "I K xxx…" for each K, in pieces. */
struct printer {
    int index, fd;
    uint64_t seed;
    bool is_good; /* all was written */
    pthread_t thread;
};

static size_t make_line(int index, int number, size_t len, char *out)
{
    size_t n = (size_t)snprintf(out, 64, "%d %d ", index, number);
    memset(out + n, 'x', len);
    out[n + len] = '\n';
    return n + len + 1;
}

static void *print(void *arg)
{
    struct printer *printer = arg;
    struct weir_rng rng;
    char line[4096];
    weir_rng_init(&rng, printer->seed, (uint64_t)printer->index);
    for (int k = 0; k < N_LINES; k++) {
        size_t len = make_line(printer->index, k, weir_rng_below(&rng, 60), line);
        for (size_t at = 0, n; at < len; at += n) {
            n = 1 + weir_rng_below(&rng, 9);
            n = WEIR_MIN(n, len - at);
            printer->is_good = write(printer->fd, line + at, n) == (ssize_t)n && printer->is_good;
        }
    }
    (void)close(printer->fd);
    return NULL;
}

/* All that a file has, with a NUL behind it. */
static char *content(int fd, size_t *out_len)
{
    off_t len = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)len + 1);
    ck_assert_int_eq(pread(fd, text, (size_t)len, 0), len);
    text[len] = '\0';
    *out_len = (size_t)len;
    return text;
}

static int open_file(void)
{
    char path[] = "/tmp/weir-lines-XXXXXX";
    int fd = mkostemp(path, O_APPEND | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    (void)unlink(path);
    return fd;
}

START_TEST(every_line_goes_on_whole_and_in_order)
{
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    struct gang_lines *lines;
    struct printer printers[N_PROGRAMS];
    int fd = open_file(), said, next[N_PROGRAMS] = {0};
    ck_assert_int_eq(gang_lines_open(fd, fd, N_PROGRAMS, &lines, &err), WEIR_OK);
    for (int i = 0; i < N_PROGRAMS; i++) {
        int out;
        gang_lines_streams(lines, (size_t)i, &out, &said);
        ck_assert_int_eq(out, said); /* both are one file: the order of a program's streams stays */
        printers[i] = (struct printer){.index = i, .fd = dup(out), .seed = seed, .is_good = true};
    }
    ck_assert_int_eq(gang_lines_start(lines, &err), WEIR_OK);
    for (int i = 0; i < N_PROGRAMS; i++) {
        ck_assert_int_eq(pthread_create(&printers[i].thread, NULL, print, &printers[i]), 0);
    }
    for (int i = 0; i < N_PROGRAMS; i++) {
        ck_assert_int_eq(pthread_join(printers[i].thread, NULL), 0);
        ck_assert(printers[i].is_good);
    }
    gang_lines_close(lines);
    size_t len;
    char *text = content(fd, &len), *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        int index, number, end = 0;
        ck_assert_msg(sscanf(line, "%d %d %n", &index, &number, &end) == 2, "%s", line);
        ck_assert_int_lt(index, N_PROGRAMS);
        ck_assert_int_eq(number, next[index]++);
        ck_assert_msg(strspn(line + end, "x") == strlen(line + end), "%s", line);
    }
    for (int i = 0; i < N_PROGRAMS; i++) {
        ck_assert_int_eq(next[i], N_LINES);
    }
    free(text);
    (void)close(fd);
}

END_TEST

START_TEST(what_does_not_end_is_not_lost)
{
    struct gang_lines *lines;
    int fd = open_file(), other = open_file(), out, said;
    size_t len;
    char *long_line = malloc(3 * LINES_MAX_BYTES);
    ck_assert_int_eq(gang_lines_open(fd, other, 1, &lines, &err), WEIR_OK);
    gang_lines_streams(lines, 0, &out, &said);
    out = dup(out); /* a child that was left behind: it holds the pipe after the end */
    said = dup(said);
    ck_assert_int_eq(gang_lines_start(lines, &err), WEIR_OK);
    memset(long_line, 'y', 3 * LINES_MAX_BYTES);
    ck_assert_int_eq(write(out, long_line, 3 * LINES_MAX_BYTES), 3 * LINES_MAX_BYTES);
    ck_assert_int_eq(write(said, "10%\r20%", 7), 7);
    gang_lines_close(lines);
    char *text = content(fd, &len);
    ck_assert_uint_eq(len, 3 * LINES_MAX_BYTES);
    free(text);
    text = content(other, &len);
    ck_assert_str_eq(text, "10%\r20%");
    free(text);
    free(long_line);
    (void)close(out);
    (void)close(said);
    (void)close(fd);
    (void)close(other);
}

END_TEST

START_TEST(a_question_without_an_end_of_line_is_seen)
{
    struct gang_lines *lines;
    int ends[2], out, said;
    char got[8];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(gang_lines_open(ends[1], ends[1], 2, &lines, &err), WEIR_OK);
    gang_lines_streams(lines, 1, &out, &said);
    out = dup(out);
    ck_assert_int_eq(gang_lines_start(lines, &err), WEIR_OK);
    ck_assert_int_eq(write(out, "name? ", 6), 6);
    ck_assert_int_eq(read(ends[0], got, sizeof got),
                     6); /* the pipe is open: only the quiet brings it */
    gang_lines_close(lines);
    (void)close(out);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

END_TEST

START_TEST(a_program_learns_that_nobody_reads)
{
    struct gang_lines *lines;
    int ends[2], out, said;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(gang_lines_open(ends[1], ends[1], 2, &lines, &err), WEIR_OK);
    gang_lines_streams(lines, 0, &out, &said);
    out = dup(out);
    ck_assert_int_eq(gang_lines_start(lines, &err), WEIR_OK);
    (void)close(ends[0]);
    sigset_t broken; /* of the program alone: the reading thread has a mask of its own */
    (void)sigemptyset(&broken);
    (void)sigaddset(&broken, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &broken, NULL);
    while (write(out, "y\n", 2) == 2) {
    }
    ck_assert_int_eq(errno, EPIPE);
    gang_lines_close(lines);
    (void)close(out);
    (void)close(ends[1]);
}

END_TEST

WEIR_TEST_MAIN("lines", every_line_goes_on_whole_and_in_order, what_does_not_end_is_not_lost,
               a_question_without_an_end_of_line_is_seen, a_program_learns_that_nobody_reads)
