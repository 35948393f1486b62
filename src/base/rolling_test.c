#include "base/rolling.h"

#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STREAM_BYTES ((size_t)512 << 10)
#define LINE_BYTES   300
#define N_READERS    4
#define N_GAPS       64

static char dir[WEIR_DIR_TEMPORARY_BYTES], path[512];
static char stream[STREAM_BYTES]; /* of which the file has what was written of it */
static struct weir_rng rng;

static void start(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("rolling", dir, NULL), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/log", dir);
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

static int64_t below(int64_t n)
{
    return (int64_t)weir_rng_below(&rng, (uint64_t)n);
}

/* Numbered lines of many lengths. */
static void make_stream(void)
{
    size_t n = 0;
    for (unsigned i = 0; n + LINE_BYTES < sizeof stream; i++) {
        n += (size_t)snprintf(stream + n, LINE_BYTES, "%u %0*d\n", i, (int)below(200) + 1, 0);
    }
    memset(stream + n, '\n', sizeof stream - n);
}

static int64_t bytes_in(const char *name)
{
    char child[1024];
    struct stat info;
    int64_t sum = stat(name, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : 0;
    DIR *folder = opendir(name);
    for (struct dirent *at = folder != NULL ? readdir(folder) : NULL; at != NULL;
         at = readdir(folder)) {
        if (at->d_name[0] != '.') {
            (void)snprintf(child, sizeof child, "%s/%s", name, at->d_name);
            sum += bytes_in(child);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return sum;
}

/* What was never written. */
static struct {
    int64_t from, to;
} gaps[N_GAPS];

static size_t n_gaps;

static bool is_never_written(int64_t from, int64_t to)
{
    for (size_t i = 0; i < n_gaps; i++) {
        if (gaps[i].from <= from && to <= gaps[i].to) {
            return true;
        }
    }
    return false;
}

/* One read of a follower: true bytes, and what is left out is gone. */
static int64_t follow(int64_t position, int64_t end, int64_t kept)
{
    static char bytes[20000];
    struct weir_rolling_part part;
    size_t size = (size_t)below(sizeof bytes) + 1;
    ck_assert_int_eq(weir_rolling_read(path, position, bytes, size, &part, NULL), WEIR_OK);
    ck_assert_int_eq(part.end, end);
    ck_assert_int_ge(part.from, position);
    ck_assert_uint_le(part.n, size);
    ck_assert(part.n > 0 || position >= end);
    ck_assert_int_eq(memcmp(bytes, stream + part.from, part.n), 0);
    if (part.from > position) {
        ck_assert_int_eq(stream[part.from - 1], '\n'); /* a whole line follows */
        ck_assert(part.from <= end - kept || is_never_written(position, part.from));
    }
    return part.from + (int64_t)part.n;
}

/* When the line came that begins there; 0: none does. */
static int64_t line_times[STREAM_BYTES];
static int64_t now_ms, newest_ms;

/* Of a write: a clock that mostly stands, sometimes goes on, and is set back now and then. */
static int64_t note_times(int64_t position, size_t len)
{
    now_ms += below(3) == 0 ? below(below(30) == 0 ? 1000000 : 5) : 0;
    int64_t time_ms = below(100) == 0 ? now_ms - below(5000) : now_ms;
    for (int64_t at = position; at < position + (int64_t)len; at++) {
        if (at == 0 || stream[at - 1] == '\n') {
            newest_ms = WEIR_MAX(newest_ms, time_ms);
            line_times[at] = newest_ms;
        }
    }
    return time_ms;
}

/* Some bytes, sometimes behind a gap, sometimes by another process. */
static void write_some(struct weir_rolling *file, int64_t max, int64_t *position)
{
    size_t n;
    if (below(40) == 0) {
        weir_rolling_close(file);
        ck_assert_int_eq(weir_rolling_open(file, path, max, NULL), WEIR_OK);
        ck_assert_int_le(weir_rolling_end(file), *position);
    }
    if (*position > 0 && below(200) == 0 && n_gaps < N_GAPS) {
        const char *line = memchr(stream + *position + below(3000), '\n', 4000);
        gaps[n_gaps].from = *position;
        *position = (line - stream) + 1;
        gaps[n_gaps++].to = *position;
    }
    size_t len = (size_t)below(below(20) == 0 ? 6000 : 400);
    int64_t time_ms = note_times(*position, len);
    ck_assert_int_eq(
        weir_rolling_write(file, *position, time_ms, stream + *position, len, &n, NULL), WEIR_OK);
    ck_assert_uint_eq(n, len);
    *position += (int64_t)len;
}

START_TEST(readers_see_true_lines_in_order_and_always_the_newest)
{
    (void)test_seed(&rng);
    make_stream();
    struct weir_rolling file;
    int64_t max = WEIR_ROLLING_MIN_BYTES + below(1 << 16), position = 0, end = 0;
    int64_t kept = max / 40, readers[N_READERS] = {0};
    n_gaps = 0;
    ck_assert_int_eq(weir_rolling_open(&file, path, max, NULL), WEIR_OK);
    while (position + 16000 < (int64_t)sizeof stream) {
        size_t had_gaps = n_gaps;
        write_some(&file, max, &position);
        end = weir_rolling_end(&file);
        for (size_t i = 0; i < N_READERS; i++) {
            if (below((int64_t)1 << (3 * i)) == 0) { /* the first follows, the last is late */
                readers[i] = follow(readers[i], end, kept);
            }
        }
        if (below(20) == 0 || n_gaps > had_gaps) {
            ck_assert_int_le(bytes_in(dir), max);
            (void)follow(below(end + 1), end, kept);
            (void)follow(0, end, kept);
        }
    }
    char head[1000];
    struct weir_rolling_part part;
    weir_rolling_sync(&file);
    weir_rolling_close(&file);
    ck_assert_int_eq(weir_rolling_read(path, 0, head, sizeof head, &part, NULL), WEIR_OK);
    ck_assert_int_eq(part.from, 0);
    ck_assert(bytes_in(dir) > max / 2 || n_gaps > 0);
}

END_TEST

START_TEST(a_reader_of_the_beginning_is_told_how_much_is_left_out)
{
    struct weir_rolling file;
    struct weir_rolling_part part;
    char bytes[4096];
    size_t n;
    weir_rng_init(&rng, 1, 0);
    make_stream();
    ck_assert_int_eq(weir_rolling_open(&file, path, 1 << 16, NULL), WEIR_OK);
    ck_assert_int_eq(weir_rolling_write(&file, 0, 1, stream, 500000, &n, NULL), WEIR_OK);
    ck_assert_int_eq(weir_rolling_write(&file, 499999, 1, stream, 1, &n, NULL), WEIR_ERR_INVALID);
    weir_rolling_close(&file);
    int64_t position = 0, n_left_out = 0, n_read = 0;
    do {
        ck_assert_int_eq(weir_rolling_read(path, position, bytes, sizeof bytes, &part, NULL),
                         WEIR_OK);
        n_left_out += part.from - position;
        n_read += (int64_t)part.n;
        position = part.from + (int64_t)part.n;
    } while (part.n > 0);
    ck_assert_int_eq(position, 500000);
    ck_assert_int_eq(n_left_out + n_read, 500000);
    int64_t n_times = bytes_in(dir) - n_read; /* each part has one, and what that is counted from */
    ck_assert(n_times % 16 == 0 && n_times >= 32 && n_times <= 64);
    ck_assert_int_gt(n_read, (1 << 16) * 7 / 8 - 700 + (1 << 16) / 40);
    ck_assert_int_eq(weir_rolling_read("/nonexistent/x", 5, bytes, 1, &part, NULL), WEIR_OK);
    ck_assert_uint_eq(part.n, 0);
    ck_assert_int_eq(part.end, 0);
}

END_TEST

START_TEST(a_stream_without_its_first_byte_has_an_end_and_no_beginning)
{
    struct weir_rolling file;
    struct weir_rolling_part part;
    char bytes[4096];
    size_t n;
    weir_rng_init(&rng, 1, 0);
    make_stream();
    ck_assert_int_eq(weir_rolling_open(&file, path, WEIR_ROLLING_MIN_BYTES, NULL), WEIR_OK);
    ck_assert_int_eq(weir_rolling_write(&file, 7, 1, stream + 7, 1000, &n, NULL), WEIR_OK);
    ck_assert_int_eq(weir_rolling_read(path, 0, bytes, sizeof bytes, &part, NULL), WEIR_OK);
    ck_assert_int_eq(part.from, 7);
    ck_assert_uint_eq(part.n, 1000);
    ck_assert_int_eq(memcmp(bytes, stream + 7, part.n), 0);
    ck_assert_int_eq(weir_rolling_write(&file, 1007, 1, stream + 1007, 300000, &n, NULL), WEIR_OK);
    weir_rolling_close(&file);
    ck_assert_int_eq(weir_rolling_read(path, 0, bytes, sizeof bytes, &part, NULL), WEIR_OK);
    ck_assert_int_ge(part.from, part.end - WEIR_ROLLING_MIN_BYTES / 8);
    ck_assert_int_le(part.from, part.end - WEIR_ROLLING_MIN_BYTES / 40);
    ck_assert_int_le(bytes_in(dir), WEIR_ROLLING_MIN_BYTES / 8);
}

END_TEST

/* What is kept of the lines and their times, read in pieces, each with few of the times. */
static void read_times(int64_t *out, size_t *out_n)
{
    static char bytes[20000];
    struct weir_rolling_time times[20];
    struct weir_rolling_part part = {0};
    for (int64_t position = 0, end = 1; position < end; position = part.from + (int64_t)part.n) {
        size_t size = (size_t)below(sizeof bytes) + 1, i = 0, max = (size_t)below(20) + 1;
        ck_assert_int_eq(weir_rolling_read(path, position, bytes, size, &part, NULL), WEIR_OK);
        size_t n = weir_rolling_times(path, &part, times, max);
        ck_assert_uint_le(n, max);
        end = part.end;
        for (int64_t at = part.from; at < part.from + (int64_t)part.n; at++) {
            while (i < n && times[i].position <= at) {
                i++;
            }
            if (line_times[at] != 0) {
                ck_assert_uint_gt(i, 0);
                ck_assert_int_eq(times[i - 1].time_ms, line_times[at]);
                out[(*out_n)++] = at;
            }
        }
    }
}

/* A log's history, of a few parts or many; the answer for random times. Returns how many lines are kept of it. */
static size_t ask_for_times_of_a_log(void)
{
    static int64_t kept[STREAM_BYTES];
    make_stream();
    struct weir_rolling file;
    int64_t max = WEIR_ROLLING_MIN_BYTES + below(1 << 18), position = 0;
    size_t n_kept = 0;
    n_gaps = 0;
    now_ms = 1790000000000;
    newest_ms = 0; /* No line has come: the first may come after the clock was set back. */
    memset(line_times, 0, sizeof line_times);
    int64_t first_ms = now_ms;
    ck_assert_int_eq(weir_rolling_open(&file, path, max, NULL), WEIR_OK);
    while (position + 16000 < (int64_t)sizeof stream) {
        write_some(&file, max, &position);
    }
    weir_rolling_close(&file);
    ck_assert_int_le(bytes_in(dir), max);
    read_times(kept, &n_kept);
    ck_assert_uint_gt(n_kept, 0);
    for (int i = 0; i < 2000; i++) {
        int64_t since = below(2) == 0 ? line_times[kept[below((int64_t)n_kept)]] + below(3) - 1
                                      : first_ms - 5 + below(newest_ms - first_ms + 10);
        size_t k = 0;
        int64_t found;
        bool has_times;
        while (k < n_kept && line_times[kept[k]] < since) {
            k++;
        }
        ck_assert_int_eq(weir_rolling_find_time(path, since, &found, &has_times, NULL), WEIR_OK);
        ck_assert(has_times);
        /* Of the last line there may be no byte yet: then it begins at the end. */
        ck_assert_int_eq(found, k < n_kept ? kept[k] : position);
    }
    return n_kept;
}

START_TEST(lines_since_a_time_are_those_that_are_as_young_and_kept)
{
    (void)test_seed(&rng);
    size_t n_kept = ask_for_times_of_a_log();
    while (n_kept < 1000) { /* A gap near its beginning leaves few lines of a log. */
        stop();
        start();
        n_kept += ask_for_times_of_a_log();
    }
}

END_TEST

static void write_all(uint64_t seed)
{
    struct weir_rolling file;
    size_t n;
    weir_rng_init(&rng, seed, 1);
    if (weir_rolling_open(&file, path, 1 << 16, NULL) != WEIR_OK) {
        _exit(1);
    }
    for (size_t at = 0; at < sizeof stream; at += n) {
        size_t some = (size_t)below(2000) + 1, len = WEIR_MIN(some, sizeof stream - at);
        if (weir_rolling_write(&file, (int64_t)at, (int64_t)at, stream + at, len, &n, NULL) !=
            WEIR_OK) {
            _exit(1);
        }
    }
    _exit(0);
}

START_TEST(a_reader_beside_the_writer_misses_nothing_that_is_there)
{
    static char bytes[8192];
    uint64_t seed = test_seed(&rng);
    struct weir_rolling_part part = {0};
    int status;
    make_stream();
    pid_t writer = fork();
    if (writer == 0) {
        write_all(seed);
    }
    for (int64_t position = 0; position < (int64_t)sizeof stream;) {
        ck_assert_int_eq(weir_rolling_read(path, position, bytes, sizeof bytes, &part, NULL),
                         WEIR_OK);
        ck_assert_int_eq(memcmp(bytes, stream + part.from, part.n), 0);
        ck_assert(part.from == position || part.from <= part.end - (1 << 16) / 40);
        position = part.from + (int64_t)part.n;
    }
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    ck_assert_int_eq(status, 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("base rolling");
    TCase *tcase = tcase_create("rolling");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, readers_see_true_lines_in_order_and_always_the_newest);
    tcase_add_test(tcase, lines_since_a_time_are_those_that_are_as_young_and_kept);
    tcase_add_test(tcase, a_reader_beside_the_writer_misses_nothing_that_is_there);
    tcase_add_test(tcase, a_stream_without_its_first_byte_has_an_end_and_no_beginning);
    tcase_add_test(tcase, a_reader_of_the_beginning_is_told_how_much_is_left_out);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
