#include "agent/supervise/log_sink.h"

#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define LOG_MAX_BYTES ((int64_t)256 << 10)
#define STREAM_BYTES  ((size_t)2 << 20)

static char dir[WEIR_DIR_TEMPORARY_BYTES], path[512];
static char stream[STREAM_BYTES]; /* what the task writes */
static struct weir_rng rng;

static void start(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("log-sink", dir, NULL), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/log", dir);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)test_seed(&rng);
    size_t n = 0;
    for (unsigned i = 0; n + 300 < sizeof stream; i++) {
        n += (size_t)snprintf(stream + n, 300, "%u %0*d\n", i, (int)weir_rng_below(&rng, 200) + 1,
                              0);
    }
    memset(stream + n, '\n', sizeof stream - n);
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

/* No file takes more than that: a write is short, and the next one fails, as on a full disk. */
static void set_room(rlim_t bytes)
{
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
}

/* All of the log: true bytes, whole lines behind what is left out, and all of the last `kept`. Returns how
 * many there are. */
static int64_t read_all(int64_t kept)
{
    static char bytes[50000];
    struct weir_rolling_part part;
    int64_t position = 0, sum = 0;
    do {
        ck_assert_int_eq(weir_rolling_read(path, position, bytes, sizeof bytes, &part, NULL),
                         WEIR_OK);
        ck_assert_int_eq(memcmp(bytes, stream + part.from, part.n), 0);
        ck_assert(part.from == position || stream[part.from - 1] == '\n');
        ck_assert(part.from == position || part.from <= part.end - kept);
        position = part.from + (int64_t)part.n;
        sum += (int64_t)part.n;
    } while (part.n > 0);
    return sum;
}

START_TEST(a_full_disk_leaves_out_no_more_than_it_must)
{
    struct log_sink sink;
    size_t at = 0;
    rlim_t room = RLIM_INFINITY;
    ck_assert_int_eq(log_sink_open(&sink, path, LOG_MAX_BYTES, NULL), WEIR_OK);
    while (at < sizeof stream) {
        if (weir_rng_below(&rng, 30) == 0) {
            bool has_room = weir_rng_below(&rng, 2) == 0;
            room = has_room ? RLIM_INFINITY : (rlim_t)weir_rng_below(&rng, LOG_MAX_BYTES);
        }
        size_t some = (size_t)weir_rng_below(&rng, 20000) + 1;
        size_t len = WEIR_MIN(some, sizeof stream - at);
        set_room(room);
        log_sink_write(&sink, stream + at, len);
        set_room(RLIM_INFINITY); /* for what this test itself writes */
        at += len;
        ck_assert_int_eq(sink.end, (int64_t)at);
        if (room == RLIM_INFINITY) {
            ck_assert_uint_eq(sink.n_waiting, 0);
            ck_assert_int_le(read_all(WEIR_MIN(LOG_MAX_BYTES / 40, (int64_t)at)), LOG_MAX_BYTES);
        }
    }
    ck_assert_int_eq(log_sink_close(&sink), (int64_t)sizeof stream);
    (void)read_all(LOG_MAX_BYTES / 40);
}

END_TEST

START_TEST(a_log_goes_on_behind_what_is_there)
{
    struct log_sink sink;
    for (size_t i = 0; i < 200; i++) {
        ck_assert_int_eq(log_sink_open(&sink, path, LOG_MAX_BYTES, NULL), WEIR_OK);
        log_sink_write(&sink, stream + i * 5000, 5000);
        ck_assert_int_eq(log_sink_close(&sink), (int64_t)(i + 1) * 5000);
    }
    ck_assert_int_ge(read_all(LOG_MAX_BYTES / 40), LOG_MAX_BYTES * 6 / 8);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("log sink");
    TCase *tcase = tcase_create("sink");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, a_full_disk_leaves_out_no_more_than_it_must);
    tcase_add_test(tcase, a_log_goes_on_behind_what_is_there);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
