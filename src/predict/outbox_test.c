/*
 * The outbox under truncation at every byte, kill -9 at random moments, and a full disk: what was
 * acknowledged is there, once, and nothing else is.
 */
#include "predict/outbox.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "predict/intake.h"
#include "predict/outbox_log.h"
#include "predict/test_support.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

static struct test_dir dir;
static struct weir_error err;

static void put(struct outbox *outbox, const char *camera, int64_t frame)
{
    char id[WEIR_UUID_BYTES];
    (void)snprintf(id, sizeof id, "id-%s-%lld", camera, (long long)frame);
    test_outbox_put(outbox, id, camera, frame, (void *)(intptr_t)(frame + 1));
}

static json_t *find(struct outbox *outbox, const char *camera, int64_t frame)
{
    char key[FRAME_KEY_BYTES];
    return outbox_find(outbox, frame_key_of(camera, frame, key));
}

static void forget(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

static struct outbox *open_outbox(outbox_durable_fn on_durable, void *context)
{
    struct outbox *outbox;
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"),
                                         .segment_bytes = 8192,
                                         .n_remembered = 1000,
                                         .on_durable = on_durable,
                                         .context = context};
    weir_status status = outbox_open(&config, &outbox, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return outbox;
}

/* ---- the log --------------------------------------------------------------------------------- */

static size_t append(struct outbox_log *log, int i)
{
    char text[64];
    struct weir_buf group;
    uint64_t position;
    int n = snprintf(text, sizeof text, "record %d %.*s", i, i % 7, "xxxxxxx");
    weir_buf_init(&group, 1 << 16);
    ck_assert_int_eq(outbox_log_frame(&group, text, (size_t)n), WEIR_OK);
    ck_assert_int_eq(outbox_log_append(log, group.data, group.len, &position, &err), WEIR_OK);
    size_t len = group.len;
    weir_buf_fini(&group);
    return len;
}

/* How many records there are; asserts that they are record 0, 1, 2 …. */
static int count_records(struct outbox_log *log)
{
    struct weir_buf text;
    uint64_t position = 0, at, next;
    int n = 0;
    char wanted[64];
    weir_buf_init(&text, 1 << 16);
    while (outbox_log_read(log, position, &text, &at, &next, &err) == WEIR_OK) {
        (void)snprintf(wanted, sizeof wanted, "record %d %.*s", n, n % 7, "xxxxxxx");
        ck_assert_str_eq(text.data, wanted);
        weir_buf_reset(&text);
        position = next;
        n++;
    }
    weir_buf_fini(&text);
    return n;
}

START_TEST(a_log_cut_at_any_byte_keeps_every_whole_record_and_goes_on)
{
    enum { N = 12 };

    size_t ends[N + 1] = {0};
    struct outbox_log *log;
    char *data;
    size_t len;
    struct weir_arena arena;
    test_dir_make(&dir);
    ck_assert_int_eq(outbox_log_open(test_path(&dir, "whole"), 0, &log, &err), WEIR_OK);
    for (int i = 0; i < N; i++) {
        ends[i + 1] = ends[i] + append(log, i);
    }
    outbox_log_close(log);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_file_read(test_path(&dir, "whole/0000000000000000.log"), 1 << 20, &arena,
                                    &data, &len, &err),
                     WEIR_OK);
    ck_assert_uint_eq(len, ends[N]);
    ck_assert_int_eq(weir_dir_make(test_path(&dir, "cut"), 0755, &err), WEIR_OK);
    for (size_t cut = 0; cut <= len; cut++) {
        int n_whole = 0;
        while (n_whole < N && ends[n_whole + 1] <= cut) {
            n_whole++;
        }
        test_write_file(test_path(&dir, "cut/0000000000000000.log"), data, cut);
        ck_assert_int_eq(outbox_log_open(test_path(&dir, "cut"), 0, &log, &err), WEIR_OK);
        ck_assert_int_eq(count_records(log), n_whole);
        (void)append(log, n_whole);
        ck_assert_int_eq(count_records(log), n_whole + 1);
        outbox_log_close(log);
    }
    weir_arena_fini(&arena);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(a_flipped_bit_at_the_end_is_not_taken_for_a_record)
{
    struct outbox_log *log;
    char *data;
    size_t len;
    struct weir_arena arena;
    test_dir_make(&dir);
    ck_assert_int_eq(outbox_log_open(test_path(&dir, "log"), 0, &log, &err), WEIR_OK);
    (void)append(log, 0);
    size_t last = append(log, 1);
    outbox_log_close(log);
    weir_arena_init(&arena, 0);
    const char *path = test_path(&dir, "log/0000000000000000.log");
    ck_assert_int_eq(weir_file_read(path, 1 << 20, &arena, &data, &len, &err), WEIR_OK);
    for (size_t bit = 0; bit < last * 8; bit++) {
        size_t at = len - last + bit / 8;
        data[at] ^= (char)(1 << (bit % 8));
        test_write_file(path, data, len);
        ck_assert_int_eq(outbox_log_open(test_path(&dir, "log"), 0, &log, &err), WEIR_OK);
        ck_assert_int_eq(count_records(log), 1);
        outbox_log_close(log);
        path = test_path(&dir, "log/0000000000000000.log");
        data[at] ^= (char)(1 << (bit % 8));
    }
    weir_arena_fini(&arena);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(positions_go_on_over_segments_and_trimming)
{
    struct outbox_log *log;
    uint64_t start, at, next;
    struct weir_buf text;
    test_dir_make(&dir);
    ck_assert_int_eq(outbox_log_open(test_path(&dir, "log"), 100, &log, &err), WEIR_OK);
    for (int i = 0; i < 50; i++) {
        (void)append(log, i);
    }
    ck_assert_int_eq(count_records(log), 50);
    uint64_t end = outbox_log_end(log);
    outbox_log_close(log);
    ck_assert_int_eq(outbox_log_open(test_path(&dir, "log"), 100, &log, &err), WEIR_OK);
    ck_assert_uint_eq(outbox_log_end(log), end);
    ck_assert_int_eq(count_records(log), 50);
    ck_assert(outbox_log_segment_before(log, end, &start));
    outbox_log_trim(log, start);
    ck_assert_uint_eq(outbox_log_begin(log), start);
    weir_buf_init(&text, 1 << 16);
    ck_assert_int_eq(outbox_log_read(log, 0, &text, &at, &next, &err), WEIR_OK);
    ck_assert_uint_eq(at, start); /* A position that is gone means the first one kept. */
    weir_buf_fini(&text);
    outbox_log_trim(log, UINT64_MAX);
    ck_assert_uint_eq(outbox_log_begin(log), start); /* The last segment stays. */
    outbox_log_close(log);
    test_dir_drop(&dir);
}

END_TEST

/* ---- readers and memory ---------------------------------------------------------------------- */

static size_t read_all(struct outbox_reader *reader, int64_t first)
{
    json_t *batch;
    size_t n = 0;
    while (outbox_reader_next(reader, 7, 0, &batch, &err) == WEIR_OK) {
        for (size_t i = 0; i < json_array_size(batch); i++) {
            const json_t *item = json_array_get(batch, i);
            ck_assert_int_eq(json_integer_value(json_object_get(item, "frame")),
                             first + (int64_t)n++);
        }
        json_decref(batch);
        outbox_reader_done(reader);
    }
    return n;
}

START_TEST(readers_go_on_where_they_were)
{
    struct outbox_reader *fast, *slow;
    json_t *batch;
    test_dir_make(&dir);
    struct outbox *outbox = open_outbox(forget, NULL);
    ck_assert_int_eq(outbox_reader_open(outbox, "fast", &fast, &err), WEIR_OK);
    ck_assert_int_eq(outbox_reader_open(outbox, "slow", &slow, &err), WEIR_OK);
    for (int64_t i = 0; i < 100; i++) {
        put(outbox, "c", i);
    }
    ck_assert(outbox_flush(outbox, 10000));
    ck_assert_uint_eq(read_all(fast, 0), 100);
    ck_assert_int_eq(outbox_reader_next(fast, 7, 0, &batch, &err), WEIR_ERR_TIMEOUT);
    outbox_reader_save(fast, 17);
    /* Not done: the same again. */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(outbox_reader_next(slow, 3, 0, &batch, &err), WEIR_OK);
        ck_assert_uint_eq(json_array_size(batch), 3);
        json_decref(batch);
    }
    outbox_reader_close(fast);
    outbox_reader_close(slow);
    outbox_close(outbox);
    outbox = open_outbox(forget, NULL);
    ck_assert_int_eq(outbox_reader_open(outbox, "fast", &fast, &err), WEIR_OK);
    ck_assert_int_eq(outbox_reader_open(outbox, "slow", &slow, &err), WEIR_OK);
    ck_assert_int_eq(outbox_reader_note(fast), 17);
    put(outbox, "c", 100);
    ck_assert(outbox_flush(outbox, 10000));
    ck_assert_uint_eq(read_all(fast, 100), 1);
    ck_assert_uint_eq(read_all(slow, 0), 101);
    outbox_reader_cancel(slow);
    ck_assert_int_eq(outbox_reader_next(slow, 3, 60000, &batch, &err), WEIR_ERR_CANCELLED);
    outbox_reader_close(fast);
    outbox_reader_close(slow);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(the_newest_decisions_are_found_by_camera_and_frame_also_after_a_restart)
{
    struct outbox_reader *reader;
    test_dir_make(&dir);
    struct outbox *outbox = open_outbox(forget, NULL);
    for (int64_t i = 0; i < 1500; i++) {
        put(outbox, i % 2 == 0 ? "even" : "odd", i);
    }
    ck_assert(outbox_flush(outbox, 20000));
    for (int restart = 0; restart < 2; restart++) {
        for (int64_t i = 0; i < 1500; i++) {
            json_t *found = find(outbox, i % 2 == 0 ? "even" : "odd", i);
            ck_assert_msg((found != NULL) == (i >= 500), "frame %lld", (long long)i);
            ck_assert_int_eq(json_integer_value(json_object_get(found, "frame")), i >= 500 ? i : 0);
            /* When it was durable is known only by the process that saw it. */
            ck_assert(found == NULL ||
                      (json_object_get(found, "durable_us") != NULL) == (restart == 0));
            json_decref(found);
            ck_assert_ptr_null(find(outbox, i % 2 == 0 ? "odd" : "even", i));
        }
        outbox_close(outbox);
        outbox = open_outbox(forget, NULL);
    }
    /* Segments that nobody needs go, when the next decision is written. */
    ck_assert_int_eq(outbox_reader_open(outbox, "r", &reader, &err), WEIR_OK);
    ck_assert_uint_eq(read_all(reader, 0), 1500);
    outbox_reader_save(reader, 0);
    ck_assert(weir_path_exists(test_path(&dir, "outbox/0000000000000000.log")));
    put(outbox, "x", 1);
    ck_assert(outbox_flush(outbox, 10000));
    put(outbox, "x", 2); /* The trim of the first is over when the second is durable. */
    ck_assert(outbox_flush(outbox, 10000));
    ck_assert(!weir_path_exists(test_path(&dir, "outbox/0000000000000000.log")));
    outbox_reader_close(reader);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

END_TEST

/* As a replica wrote them before frames had keys: two segments, byte for byte. */
START_TEST(a_log_of_the_version_before_is_known_and_read)
{
    static const char line[] =
        "{\"id\":\"%d\",\"camera\":\"c%d\",\"frame\":%d,\"verdict\":\"grant\"}";
    struct outbox_reader *reader;
    uint64_t position = 0;
    char path[32];
    test_dir_make(&dir);
    ck_assert_int_eq(weir_dir_make(test_path(&dir, "outbox"), 0700, &err), WEIR_OK);
    for (int segment = 0; segment < 2; segment++) {
        struct weir_buf bytes;
        weir_buf_init(&bytes, 1 << 20);
        for (int i = segment * 50; i < segment * 50 + 50; i++) {
            char text[128];
            unsigned char head[8];
            int n = snprintf(text, sizeof text, line, i, i % 3, i);
            for (int b = 0; b < 4; b++) {
                head[b] = (unsigned char)(n >> 8 * b);
            }
            uLong crc = crc32(crc32(0, head, 4), (const unsigned char *)text, (uInt)n);
            for (int b = 0; b < 4; b++) {
                head[4 + b] = (unsigned char)(crc >> 8 * b);
            }
            ck_assert_int_eq(weir_buf_append(&bytes, head, 8), WEIR_OK);
            ck_assert_int_eq(weir_buf_append(&bytes, text, (size_t)n), WEIR_OK);
        }
        (void)snprintf(path, sizeof path, "outbox/%016" PRIx64 ".log", position);
        test_write_file(test_path(&dir, "%s", path), bytes.data, bytes.len);
        position += bytes.len;
        weir_buf_fini(&bytes);
    }
    struct outbox *outbox = open_outbox(forget, NULL);
    for (int i = 0; i < 100; i++) {
        char camera[8];
        (void)snprintf(camera, sizeof camera, "c%d", i % 3);
        json_t *found = find(outbox, camera, i);
        ck_assert_int_eq(atoll(test_text(found, "id")), i);
        json_decref(found);
        ck_assert_ptr_null(find(outbox, "c3", i));
    }
    ck_assert_int_eq(outbox_reader_open(outbox, "r", &reader, &err), WEIR_OK);
    ck_assert_uint_eq(read_all(reader, 0), 100);
    outbox_reader_close(reader);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(one_process_has_the_outbox)
{
    struct outbox *second;
    test_dir_make(&dir);
    struct outbox *outbox = open_outbox(forget, NULL);
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"), .on_durable = forget};
    ck_assert_int_eq(outbox_open(&config, &second, &err), WEIR_ERR_CONFLICT);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

END_TEST

/* ---- kill -9 --------------------------------------------------------------------------------- */

/* Acknowledged frames are told to the parent through a pipe, before they can be forgotten. */
static void tell(void *context, void *const *tickets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t frame = (int64_t)(intptr_t)tickets[i] - 1;
        (void)!write(*(int *)context, &frame, sizeof frame);
    }
}

static _Noreturn void child_main(int fd, int64_t first)
{
    struct outbox *outbox = open_outbox(tell, &fd);
    for (int64_t i = first;; i++) {
        put(outbox, "c", i);
    }
}

/* Kill the child after `n_wanted` acknowledgements and some microseconds. Highest acknowledged. */
static int64_t run_and_kill(int64_t first, size_t n_wanted, uint64_t delay_us)
{
    int fds[2];
    int64_t frame, highest = first - 1;
    size_t n = 0;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(fds[0]);
        child_main(fds[1], first);
    }
    close(fds[1]);
    while (read(fds[0], &frame, sizeof frame) == (ssize_t)sizeof frame) {
        ck_assert_int_eq(frame, highest + 1); /* In order, each once. */
        highest = frame;
        if (++n == n_wanted) {
            uint64_t until_ns = weir_mono_ns() + delay_us * 1000;
            while (weir_mono_ns() < until_ns) {
            }
            ck_assert_int_eq(kill(child, SIGKILL), 0);
        }
    }
    close(fds[0]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return highest;
}

START_TEST(kill_9_loses_nothing_acknowledged_and_doubles_nothing)
{
    const uint64_t seed = 99;
    struct weir_rng rng;
    int64_t next = 0;
    weir_rng_init(&rng, seed, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    test_dir_make(&dir);
    for (int round = 0; round < 15; round++) {
        int64_t acknowledged =
            run_and_kill(next, 1 + weir_rng_below(&rng, 200), weir_rng_below(&rng, 3000));
        /* Everything from 0 to some frame ≥ the last acknowledged, each once, in order. */
        struct outbox_reader *reader;
        struct outbox *outbox = open_outbox(forget, NULL);
        ck_assert_int_eq(outbox_reader_open(outbox, "check", &reader, &err), WEIR_OK);
        size_t n = read_all(reader, 0);
        ck_assert_int_ge((int64_t)n, acknowledged + 1);
        next = (int64_t)n;
        outbox_reader_close(reader);
        outbox_close(outbox);
    }
    test_dir_drop(&dir);
}

END_TEST

/* ---- a full disk ----------------------------------------------------------------------------- */

static void count(void *context, void *const *tickets, size_t n)
{
    (void)tickets;
    atomic_fetch_add((atomic_size_t *)context, n);
}

START_TEST(while_the_disk_is_full_nothing_is_acknowledged_and_nothing_is_lost)
{
    struct rlimit limit;
    struct stat st;
    struct outbox_reader *reader;
    atomic_size_t n_durable;
    atomic_init(&n_durable, 0);
    test_dir_make(&dir);
    /* A limit on file size is what a test may impose; to the outbox it is a disk that is full. */
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct outbox *outbox = open_outbox(count, &n_durable);
    for (int64_t i = 0; i < 10; i++) {
        put(outbox, "c", i);
    }
    ck_assert(outbox_flush(outbox, 10000));
    ck_assert_int_eq(stat(test_path(&dir, "outbox/0000000000000000.log"), &st), 0);
    struct rlimit tight = {.rlim_cur = (rlim_t)st.st_size + 700, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int64_t i = 10; i < 110; i++) {
        put(outbox, "c", i);
    }
    ck_assert(!outbox_flush(outbox, 500));
    size_t n_before = atomic_load(&n_durable);
    ck_assert_uint_lt(n_before, 110);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert(outbox_flush(outbox, 10000));
    outbox_close(outbox);
    ck_assert_uint_eq(atomic_load(&n_durable), 110);
    outbox = open_outbox(forget, NULL);
    ck_assert_int_eq(outbox_reader_open(outbox, "check", &reader, &err), WEIR_OK);
    ck_assert_uint_eq(read_all(reader, 0), 110);
    outbox_reader_close(reader);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

END_TEST

WEIR_TEST_MAIN("outbox", a_log_of_the_version_before_is_known_and_read,
               a_log_cut_at_any_byte_keeps_every_whole_record_and_goes_on,
               a_flipped_bit_at_the_end_is_not_taken_for_a_record,
               positions_go_on_over_segments_and_trimming, readers_go_on_where_they_were,
               the_newest_decisions_are_found_by_camera_and_frame_also_after_a_restart,
               one_process_has_the_outbox, kill_9_loses_nothing_acknowledged_and_doubles_nothing,
               while_the_disk_is_full_nothing_is_acknowledged_and_nothing_is_lost)
