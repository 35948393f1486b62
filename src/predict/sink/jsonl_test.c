/* The file of JSON lines within its bound: begun anew in time, and each decision once across it. */
#include "predict/sink/jsonl.h"

#include "base/file.h"
#include "endpoint/sink/jsonl.h"
#include "predict/consumer.h"
#include "predict/test_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES 10000 /* some 28 decisions */
#define N_KEPT_MAX 200

static struct test_dir dir;
static struct weir_error err;
static struct outbox *outbox;
static struct consumer *sink;
static struct rotated_file file;
static struct weir_sink_jsonl options;
static struct sink_ops ops;

static void forget(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

/* With a bound in bytes. */
static weir_status open_small(const struct sink_config *config, struct sink **out,
                              struct weir_error *error)
{
    return sink_jsonl_open(&file, config->reader, out, error);
}

static void open_all(int64_t max_bytes, int64_t n_kept)
{
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"), .on_durable = forget};
    ck_assert_msg(outbox_open(&config, &outbox, &err) == WEIR_OK, "%s", err.message);
    file = (struct rotated_file){strdup(test_path(&dir, "out.jsonl")), max_bytes, n_kept};
    options.path = (char *)file.path;
    ops = sink_jsonl;
    ops.open = open_small;
    const struct consumer_config consumer = {
        .name = "jsonl", .ops = &ops, .options = &options, .outbox = outbox};
    ck_assert_msg(consumer_start(&consumer, &sink, &err) == WEIR_OK, "%s", err.message);
}

static void close_all(void)
{
    consumers_stop(&sink, 1, 20000); /* writes what is durable */
    outbox_close(outbox);
    free((char *)file.path);
}

static void put(int first, int n)
{
    for (int i = first; i < first + n; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id-%d", i);
        test_outbox_put(outbox, id, "c", i, NULL);
    }
    ck_assert(outbox_flush(outbox, 10000));
}

/* Ten at a time, so that no single write is larger than the bound. */
static void put_all(int n, int64_t n_kept)
{
    for (int first = 0; first < n; first += 10) {
        open_all(FILE_BYTES, n_kept);
        put(first, 10);
        close_all();
    }
}

/* Frames in one file, counted up in `seen`; they grow from line to line. */
static int count_frames(const char *path, int *seen, int after)
{
    FILE *stream = fopen(path, "re");
    char line[512];
    int frame = after;
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL) {
        json_t *decision = json_loads(line, 0, NULL);
        int next = (int)json_integer_value(json_object_get(decision, "frame"));
        ck_assert_ptr_nonnull(decision);
        ck_assert_int_gt(next, frame);
        frame = next;
        seen[frame]++;
        json_decref(decision);
    }
    if (stream != NULL) {
        (void)fclose(stream);
    }
    return frame;
}

/* All files, oldest first. Returns how many there are; none is larger than the bound. */
static int count_all(int64_t max_bytes, int *seen)
{
    char path[ROTATED_PATH_BYTES];
    const struct rotated_file out = {test_path(&dir, "out.jsonl"), max_bytes, 0};
    struct stat info;
    int n_files = 0, after = -1;
    for (int64_t i = N_KEPT_MAX; i >= 0; i--) {
        const char *name = i > 0 ? rotated_file_older(&out, i, path) : out.path;
        if (stat(name, &info) == 0) {
            ck_assert_int_le(info.st_size, max_bytes);
            after = count_frames(name, seen, after);
            n_files++;
        }
    }
    return n_files;
}

static void set_up(void)
{
    test_dir_make(&dir);
}

static void tear_down(void)
{
    test_dir_drop(&dir);
}

START_TEST(the_file_is_begun_anew_and_each_decision_is_in_one_of_them)
{
    int seen[300] = {0};
    put_all(300, N_KEPT_MAX);
    ck_assert_int_gt(count_all(FILE_BYTES, seen), 5);
    for (int i = 0; i < 300; i++) {
        ck_assert_int_eq(seen[i], 1);
    }
}

END_TEST

START_TEST(the_oldest_file_goes_and_the_newest_lines_stay)
{
    int seen[300] = {0}, first = 0;
    put_all(300, 3);
    ck_assert_int_le(count_all(FILE_BYTES, seen), 4);
    while (seen[first] == 0) {
        first++;
    }
    ck_assert_int_gt(first, 100);
    for (int i = first; i < 300; i++) {
        ck_assert_int_eq(seen[i], 1);
    }
}

END_TEST

START_TEST(without_older_files_the_file_begins_anew)
{
    int seen[300] = {0};
    put_all(300, 0);
    ck_assert_int_eq(count_all(FILE_BYTES, seen), 1);
    ck_assert_int_eq(seen[299], 1);
}

END_TEST

/* As after a kill: the place was saved before another replica began a new file. */
START_TEST(a_decision_that_lies_in_an_older_file_behind_the_place_is_not_written_again)
{
    int seen[100] = {0};
    struct weir_arena arena;
    char *text, older[ROTATED_PATH_BYTES];
    size_t len;
    open_all(1 << 20, 3);
    put(0, 50);
    close_all();
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(
        weir_file_read(test_path(&dir, "out.jsonl"), 1 << 20, &arena, &text, &len, &err), WEIR_OK);
    char *half = strstr(text, "{\"id\":\"id-30\"");
    ck_assert_ptr_nonnull(half);
    /* The place: behind 30 lines; position 0 of the outbox, so that all come again. */
    const char *command = test_path(&dir, "outbox");
    char name[512], place[64];
    FILE *list;
    (void)snprintf(name, sizeof name, "ls %s/jsonl-*.position", command);
    list = popen(name, "r");
    ck_assert_ptr_nonnull(fgets(name, sizeof name, list));
    (void)pclose(list);
    name[strcspn(name, "\n")] = '\0';
    (void)snprintf(place, sizeof place, "0 %d\n", (int)(half - text));
    test_write_file(name, place, strlen(place));
    const struct rotated_file out = {test_path(&dir, "out.jsonl"), 1 << 20, 3};
    ck_assert_int_eq(rename(out.path, rotated_file_older(&out, 1, older)), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, older, NULL, 0),
                     0); /* written after the place was saved */
    open_all(1 << 20, 3);
    put(50, 10);
    close_all();
    (void)count_frames(older, seen, -1);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(seen[i], 1);
    }
    (void)count_frames(test_path(&dir, "out.jsonl"), seen, -1);
    for (int i = 30; i < 60; i++) {
        ck_assert_int_eq(seen[i], 1);
    }
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN_WITH("sink_jsonl", set_up, tear_down,
                    the_file_is_begun_anew_and_each_decision_is_in_one_of_them,
                    the_oldest_file_goes_and_the_newest_lines_stay,
                    without_older_files_the_file_begins_anew,
                    a_decision_that_lies_in_an_older_file_behind_the_place_is_not_written_again)
