/* Files that are no frames: each file of a random folder is either a frame or counted. */
#include "predict/ignored.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "predict/camera_list.h"
#include "predict/source.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SEED           45
#define N_TREES        WEIR_TEST_TIMES(40, 8)
#define PATH_MAX_BYTES 500

static char root[WEIR_DIR_TEMPORARY_BYTES + 16];

static void set_up(void)
{
    struct weir_error err;
    ck_assert(weir_dir_make_temporary("ignored", root, &err) == WEIR_OK);
}

static void tear_down(void)
{
    struct weir_error err;
    ck_assert(weir_dir_remove(root, &err) == WEIR_OK);
}

/* An empty file, of now or of a minute ago, with the folders above it. */
static void put(const char *path, bool is_new)
{
    char full[2 * PATH_MAX_BYTES];
    struct weir_error err;
    (void)snprintf(full, sizeof full, "%s/%s", root, path);
    char *slash = strrchr(full, '/');
    *slash = '\0';
    ck_assert(weir_dir_make(full, 0755, &err) == WEIR_OK);
    *slash = '/';
    ck_assert(weir_file_write_atomic(full, "", 0, 0600, &err) == WEIR_OK);
    struct timespec times[2] = {{.tv_sec = weir_time_ms() / 1000 - 60},
                                {.tv_sec = weir_time_ms() / 1000 - 60}};
    if (!is_new) {
        ck_assert(utimensat(AT_FDCWD, full, times, 0) == 0);
    }
}

static bool is_of(void *context, const char *camera)
{
    const char *first = context;
    return first == NULL || camera[0] == *first;
}

static size_t n_found;

static void count_place(void *context, const struct ignored_place *place)
{
    (void)context;
    ck_assert_uint_gt(place->n, 0);
    ck_assert_uint_gt(strlen(place->why), 0);
    n_found += place->n;
}

static size_t count(const char *first_letter, bool is_first, char why[IGNORED_TEXT_BYTES])
{
    const struct ignored_look look = {.path = root,
                                      .now_ms = weir_time_ms(),
                                      .is_ours = is_of,
                                      .found = count_place,
                                      .context = (void *)first_letter,
                                      .is_first = is_first};
    n_found = 0;
    size_t n = ignored_count(&look, why);
    ck_assert_uint_eq(n, n_found);
    return n;
}

static const struct {
    const char *path, *why; /* NULL: it is a frame, or nobody's */
} files[] = {
    {"cam/000123.jpg", NULL},
    {"cam/7", NULL},
    {"cam/.000124.jpg", NULL},
    {".hidden/x.jpg", NULL},
    {"cam/014b2a1b-77.jpg", "cam/014b2a1b-77.jpg: its name is no number; call frames by their"},
    {"cam/IMG_0001.jpg", "its name is no number"},
    {"cam/1234567890123456789.jpg", "its name is no number"},
    {"cam/1.0000000000000000000000000000000000000000000000000000000000000.jpg", "too long"},
    {"top.jpg", "top.jpg: it lies beside the cameras' folders; put it into one"},
    {"cam/2026-11-28/1.jpg", "not in folders below it"},
    {"cam/a/b/c/1.jpg", "not in folders below it"},
    {"a-name-of-a-camera-that-is-longer-than-a-name-of-a-camera-may-be/1.jpg", "is no camera's"},
};

START_TEST(what_is_no_frame_is_counted_with_the_reason)
{
    char why[IGNORED_TEXT_BYTES];
    put(files[_i].path, false);
    ck_assert_uint_eq(count(NULL, true, why), files[_i].why != NULL);
    ck_assert_msg(files[_i].why == NULL ? why[0] == '\0' : strstr(why, files[_i].why) != NULL, "%s",
                  why);
}

END_TEST

START_TEST(what_is_still_written_is_not_counted_yet)
{
    char why[IGNORED_TEXT_BYTES];
    put("cam/upload.part", true);
    ck_assert_uint_eq(count(NULL, true, why), 0);
    put("cam/upload.part", false);
    ck_assert_uint_eq(count(NULL, true, why), 1);
    const struct ignored_look look = {.path = "/nothing/there"};
    ck_assert_uint_eq(ignored_count(&look, why), 0);
}

END_TEST

START_TEST(each_file_is_a_frame_or_counted_by_one_replica)
{
    static const char *const cameras[] = {"apple", "axe", "bee", "bus"};
    static const char *const names[] = {"%llu.jpg", "%llu",         "0%llu.png", "IMG_%llu.jpg",
                                        "x%llu",    "sub/%llu.jpg", "a/b/%llu"};
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 0);
    size_t n_all = 0, n_ignored = 0;
    for (int i = 0; i < N_TREES; i++) {
        size_t n_files = 1 + weir_rng_below(&rng, 20), n_frames = 0, n_beside = 0;
        for (size_t k = 0; k < n_files; k++) {
            char path[PATH_MAX_BYTES], name[64];
            unsigned long long number = 1000 * (unsigned long long)i + k;
            size_t i_name = weir_rng_below(&rng, WEIR_ARRAY_LEN(names));
            bool is_beside = weir_rng_below(&rng, 6) == 0 && i_name < 5;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            (void)snprintf(name, sizeof name, names[i_name], number);
#pragma GCC diagnostic pop
            (void)snprintf(path, sizeof path, "%s%s%s",
                           is_beside ? "" : cameras[weir_rng_below(&rng, 4)], is_beside ? "" : "/",
                           name);
            put(path, false);
            n_frames += !is_beside && i_name < 3;
            n_beside += is_beside;
        }
        char why[IGNORED_TEXT_BYTES];
        size_t n = count(NULL, true, why), n_of_a = count("a", true, why),
               n_of_b = count("b", false, why);
        ck_assert_msg(n == n_files - n_frames,
                      "seed %d, tree %d: %zu of %zu files are ignored, "
                      "%zu are frames",
                      SEED, i, n, n_files, n_frames);
        ck_assert_uint_eq(n_of_a + n_of_b, n);
        ck_assert_uint_ge(n_of_a, n_beside);
        n_all += n_files;
        n_ignored += n;
        tear_down();
        set_up();
    }
    printf("seed %d: %zu of %zu files are ignored\n", SEED, n_ignored, n_all);
    ck_assert_uint_gt(n_ignored, n_all / 5);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ignored");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, what_is_no_frame_is_counted_with_the_reason, 0,
                        WEIR_ARRAY_LEN(files));
    tcase_add_test(tcase, what_is_still_written_is_not_counted_yet);
    tcase_add_test(tcase, each_file_is_a_frame_or_counted_by_one_replica);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
