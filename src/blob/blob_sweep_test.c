#include "blob/blob.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HOUR_MS ((int64_t)3600000)

static char dir[] = "/tmp/weir-sweep-XXXXXX";
static struct weir_blobs *blobs;
static struct weir_arena arena;
static char old[WEIR_SHA256_TEXT_BYTES], named[WEIR_SHA256_TEXT_BYTES],
    fresh[WEIR_SHA256_TEXT_BYTES];

/* The time of a blob's file, hours ago. */
static void age(const char *name, int hours)
{
    char *path;
    struct timespec times[2] = {{.tv_sec = weir_time_ms() / 1000 - hours * 3600L}};
    times[1] = times[0];
    ck_assert_int_eq(weir_blob_path(blobs, name, &arena, &path, NULL, NULL), WEIR_OK);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool has(const char *name)
{
    char *path; /* weir_blob_exists would make it young */
    return weir_blob_path(blobs, name, &arena, &path, NULL, NULL) == WEIR_OK;
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(weir_blobs_open(dir, &blobs, NULL), WEIR_OK);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_blob_put(blobs, "old", 3, NULL, old, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_put(blobs, "named", 5, NULL, named, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_put(blobs, "fresh", 5, NULL, fresh, NULL), WEIR_OK);
    age(old, 3);
    age(named, 3);
}

static void tear_down(void)
{
    weir_blobs_close(blobs);
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
}

static bool is_the_named_one(void *context, const unsigned char *hash)
{
    unsigned char wanted[WEIR_BLOB_HASH_BYTES];
    (void)context;
    return weir_blob_hash_read(named, wanted) && memcmp(hash, wanted, sizeof wanted) == 0;
}

static struct weir_blobs_count sweep(weir_blob_is_named_fn is_named, bool is_dry)
{
    struct weir_blobs_count count;
    ck_assert_int_eq(
        weir_blobs_sweep(blobs, is_named, NULL, weir_time_ms() - HOUR_MS, is_dry, &count, NULL),
        WEIR_OK);
    return count;
}

START_TEST(what_nothing_names_goes_once_it_is_old)
{
    struct weir_blobs_count count = sweep(is_the_named_one, true);
    ck_assert_int_eq(count.n_swept, 1);
    ck_assert(has(old));
    count = sweep(is_the_named_one, false);
    ck_assert_int_eq(count.n, 3);
    ck_assert_int_eq(count.n_named, 1);
    ck_assert_int_eq(count.n_swept, 1);
    ck_assert_int_gt(count.bytes_swept, 0);
    ck_assert(!has(old));
    ck_assert(has(named));
    ck_assert(has(fresh));
    ck_assert_int_eq(sweep(is_the_named_one, false).n_swept, 0);
}

END_TEST

START_TEST(storing_it_again_or_asking_for_it_makes_it_young)
{
    char again[WEIR_SHA256_TEXT_BYTES];
    ck_assert_int_eq(weir_blob_put(blobs, "old", 3, NULL, again, NULL), WEIR_OK);
    ck_assert_str_eq(again, old);
    ck_assert_int_eq(sweep(is_the_named_one, false).n_swept, 0);
    age(old, 3);
    ck_assert(weir_blob_exists(blobs, old));
    ck_assert_int_eq(sweep(is_the_named_one, false).n_swept, 0);
    age(old, 3);
    ck_assert_int_eq(sweep(is_the_named_one, false).n_swept, 1);
}

END_TEST

/* As a put that comes between the look at a file and its removal. */
static bool puts_it_again(void *context, const unsigned char *hash)
{
    char again[WEIR_SHA256_TEXT_BYTES];
    ck_assert_int_eq(weir_blob_put(blobs, "old", 3, NULL, again, NULL), WEIR_OK);
    return is_the_named_one(context, hash);
}

START_TEST(one_that_is_stored_during_the_sweep_stays)
{
    struct weir_blobs_count count = sweep(puts_it_again, false);
    ck_assert_int_eq(count.n_swept, 0);
    ck_assert(has(old));
}

END_TEST

START_TEST(files_that_are_no_blobs_are_left_alone)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%.2s/README", dir, old);
    ck_assert_int_eq(weir_file_write(path, "x", 1, 0600, NULL), WEIR_OK);
    struct weir_blobs_count count;
    ck_assert_int_eq(
        weir_blobs_sweep(blobs, is_the_named_one, NULL, INT64_MAX, false, &count, NULL), WEIR_OK);
    ck_assert_int_eq(count.n_swept, 2);
    ck_assert(weir_path_exists(path));
    ck_assert(has(named));
}

END_TEST

START_TEST(a_name_is_read_as_bytes)
{
    unsigned char hash[WEIR_BLOB_HASH_BYTES];
    char text[80];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    text[1] = '0';
    ck_assert(weir_blob_hash_read(text, hash)); /* whatever follows */
    ck_assert_uint_eq(hash[0], 0xa0);
    text[63] = 'A';
    ck_assert(!weir_blob_hash_read(text, hash));
    text[63] = '\0';
    ck_assert(!weir_blob_hash_read(text, hash));
}

END_TEST

WEIR_TEST_MAIN_WITH("blob_sweep", set_up, tear_down, what_nothing_names_goes_once_it_is_old,
                    storing_it_again_or_asking_for_it_makes_it_young,
                    one_that_is_stored_during_the_sweep_stays,
                    files_that_are_no_blobs_are_left_alone, a_name_is_read_as_bytes)
