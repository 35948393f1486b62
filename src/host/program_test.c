/* A program of a replica: how it starts, ends and fails. */
#include "host/program.h"

#include "base/test_main.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct options {
    struct weir_host_options host;
    int64_t n;
};

static const struct weir_option options[] = {
    WEIR_HOST_OPTIONS(options, "What to do"),
    WEIR_OPT(options, n, "n", 0, INT, "3", 0, 9, "N", "How much"),
    WEIR_HOST_OPTION_HELP(options),
};

static int n_started, n_stopped;
static weir_status fault;    /* of start */
static const char *breaking; /* start breaks with it; NULL: it is told to end */

static weir_status start(struct weir_host_run *run, const void *given, struct weir_arena *arena,
                         void **out, struct weir_error *err)
{
    const struct options *chosen = given;
    struct weir_host_spec spec = {.server = "http://of-spec", .ca_file = "/of-spec"};
    n_started++;
    ck_assert_int_eq(chosen->n, 5);
    ck_assert_str_eq(chosen->host.spec, "s.json");
    weir_host_options_apply(&chosen->host, &spec);
    ck_assert_str_eq(spec.server, "http://of-flag");
    ck_assert_str_eq(spec.ca_file, "/of-spec");
    if (fault != WEIR_OK) {
        return weir_error_set(err, fault, "s.json is not there");
    }
    if (breaking != NULL) {
        weir_host_run_break(run, breaking);
    } else {
        ck_assert_int_eq(kill(getpid(), SIGTERM), 0); /* it is blocked, or this would be the end */
    }
    *out = weir_arena_strdup(arena, "hosted");
    return WEIR_OK;
}

static void stop(void *hosted)
{
    n_stopped++;
    ck_assert_str_eq(hosted, "hosted");
}

static bool fits(const void *given)
{
    return ((const struct options *)given)->host.spec != NULL;
}

/* Exit status; what it says on `fd` (1 or 2) in `said`. */
static int run(char **words, int n_words, int fd, char said[4096])
{
    static const struct weir_host_program program = {.name = "role",
                                                     .usage = "--spec FILE",
                                                     .options = options,
                                                     .n_options = WEIR_ARRAY_LEN(options),
                                                     .options_bytes = sizeof(struct options),
                                                     .fits = fits,
                                                     .start = start,
                                                     .stop = stop,
                                                     .stopping_event = "role_stopping",
                                                     .stopped_event = "role_stopped"};
    int file = memfd_create("said", MFD_CLOEXEC), kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    n_started = n_stopped = 0;
    (void)fflush(NULL);
    ck_assert_int_eq(dup2(file, fd), fd);
    int status = weir_host_main(&program, n_words, words);
    (void)fflush(NULL);
    ck_assert_int_eq(dup2(kept, fd), fd);
    ssize_t n = pread(file, said, 4095, 0);
    said[n > 0 ? n : 0] = '\0';
    (void)close(file);
    (void)close(kept);
    return status;
}

static char *good[] = {"role", "--spec", "s.json", "--server=http://of-flag", "--n", "5"};

START_TEST(a_signal_ends_it_in_order)
{
    char said[4096];
    ck_assert_int_eq(run(good, 6, 2, said), 0);
    ck_assert(n_started == 1 && n_stopped == 1);
    const char *stopping = strstr(said, "role_stopping signal=15");
    ck_assert_ptr_nonnull(stopping);
    ck_assert_ptr_nonnull(strstr(stopping, "role_stopped"));
}

END_TEST

START_TEST(what_goes_wrong_are_its_last_words)
{
    char said[4096];
    fault = WEIR_ERR_NOT_FOUND;
    ck_assert_int_eq(run(good, 6, 2, said), weir_status_exit(WEIR_ERR_NOT_FOUND));
    ck_assert_str_eq(said, "weir-worker role: s.json is not there\n");
    ck_assert(n_started == 1 && n_stopped == 0);
    fault = WEIR_OK;
    breaking = "the GPU is gone";
    ck_assert_int_eq(run(good, 6, 2, said), weir_status_exit(WEIR_ERR_INTERNAL));
    ck_assert(n_started == 1 && n_stopped == 1);
    ck_assert_ptr_nonnull(strstr(said, "\nweir-worker role: the GPU is gone\n"));
}

END_TEST

START_TEST(flags_that_make_no_sense_start_nothing)
{
    char said[4096];
    char *unknown[] = {"role", "--specs", "s.json"}, *none[] = {"role"};
    char *word[] = {"role", "--spec", "s.json", "more"}, *help[] = {"role", "--help"};
    int invalid = weir_status_exit(WEIR_ERR_INVALID);
    ck_assert_int_eq(run(unknown, 3, 2, said), invalid);
    ck_assert_ptr_nonnull(strstr(said, "--spec"));
    ck_assert_int_eq(run(none, 1, 2, said), invalid);
    ck_assert_str_eq(said, "weir-worker role: usage: weir-worker role --spec FILE\n");
    ck_assert_int_eq(run(word, 4, 2, said), invalid);
    ck_assert_int_eq(run(help, 2, 1, said), 0);
    ck_assert_ptr_nonnull(strstr(said, "usage: weir-worker role --spec FILE\n\n"));
    ck_assert_ptr_nonnull(strstr(said, "--ca-file"));
    ck_assert_int_eq(n_started, 0);
}

END_TEST

WEIR_TEST_MAIN("program", a_signal_ends_it_in_order, what_goes_wrong_are_its_last_words,
               flags_that_make_no_sense_start_nothing)
