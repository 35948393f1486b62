#include "blob/blob.h"
#include "blob/damage.h"

#include "base/test_main.h"
#include "blob/verify.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `printf abc | sha256sum` and sha256sum of nothing. */
#define SHA_ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char dir[] = "/tmp/weir-blob-XXXXXX";
static struct weir_blobs *blobs;
static struct weir_arena arena;

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(weir_blobs_open(dir, &blobs, NULL), WEIR_OK);
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_blobs_close(blobs);
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
}

static int n_folder_syncs;

/* In the place of libc's: counts the folders that are made durable. */
int fsync(int fd)
{
    struct stat info;
    n_folder_syncs += fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    return (int)syscall(SYS_fsync, fd);
}

static char *path_of(const char *sha256)
{
    return weir_arena_printf(&arena, "%s/%.2s/%s", dir, sha256, sha256);
}

static void overwrite(const char *sha256, const char *bytes, size_t len)
{
    ck_assert_int_eq(chmod(path_of(sha256), 0600), 0);
    ck_assert_int_eq(weir_file_write(path_of(sha256), bytes, len, 0600, NULL), WEIR_OK);
}

/* Cut, changed, made longer, emptied: of no size and of the same. */
START_TEST(damaged_bytes_are_given_to_nobody_and_replaced_by_good_ones)
{
    static const struct {
        const char *bytes;
        size_t len;
    } damages[] = {{"ab", 2}, {"abd", 3}, {"abcc", 4}, {"", 0}};

    char name[WEIR_SHA256_TEXT_BYTES], *path, *data;
    size_t len;
    struct weir_error err;
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(damages); i++) {
        ck_assert(weir_blob_exists(blobs, SHA_ABC));
        overwrite(SHA_ABC, damages[i].bytes, damages[i].len);
        ck_assert(!weir_blob_exists(blobs, SHA_ABC));
        ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, NULL, &err),
                         WEIR_ERR_CORRUPT);
        ck_assert(weir_blob_error_is_damage(&err));
        ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, SHA_ABC, name, NULL), WEIR_OK);
        ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, NULL, &err), WEIR_OK);
        ck_assert_int_eq(weir_blob_read(blobs, SHA_ABC, 100, &arena, &data, &len, &err), WEIR_OK);
        ck_assert_mem_eq(data, "abc", 3);
    }
}

END_TEST

static size_t n_damaged(void)
{
    struct weir_blobs_damage damage;
    weir_blobs_damage(blobs, &damage);
    ck_assert_int_eq(damage.n > 0, strcmp(damage.sha256, SHA_ABC) == 0);
    return damage.n;
}

/* Whatever ends it: good bytes by whoever, setting it aside, removing it. */
START_TEST(damage_that_was_met_is_told_until_it_is_over)
{
    char name[WEIR_SHA256_TEXT_BYTES], *path, *good = weir_arena_printf(&arena, "%s/good", dir);
    ck_assert_int_eq(weir_file_write(good, "abc", 3, 0600, NULL), WEIR_OK);
    for (int end = 0; end < 4; end++) {
        ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
        overwrite(SHA_ABC, "abd", 3);
        ck_assert_uint_eq(n_damaged(), 0); /* nobody has met it */
        ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, NULL, NULL),
                         WEIR_ERR_CORRUPT);
        ck_assert_uint_eq(n_damaged(), 1);
        overwrite(SHA_ABC, "ab", 2);
        ck_assert_uint_eq(n_damaged(), 1); /* damaged otherwise */
        ck_assert_int_eq(end == 0   ? weir_blob_put(blobs, "abc", 3, NULL, name, NULL)
                         : end == 1 ? weir_blob_mend(dir, SHA_ABC, good, NULL)
                         : end == 2 ? weir_blob_set_aside(dir, SHA_ABC, NULL)
                                    : weir_blob_remove(blobs, SHA_ABC, NULL),
                         WEIR_OK);
        ck_assert_uint_eq(n_damaged(), 0);
    }
    weir_blob_note_missing(blobs, SHA_ABC);
    ck_assert_uint_eq(n_damaged(), 1);
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
    ck_assert_uint_eq(n_damaged(), 0);
}

END_TEST

START_TEST(a_blob_is_mended_by_its_own_bytes_alone_or_set_aside)
{
    char name[WEIR_SHA256_TEXT_BYTES], *path, *good = weir_arena_printf(&arena, "%s/good", dir);
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
    overwrite(SHA_ABC, "abd", 3);
    ck_assert_int_eq(weir_file_write(good, "abe", 3, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_mend(dir, SHA_ABC, good, NULL), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(weir_file_write(good, "abc", 3, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_mend(dir, SHA_ABC, good, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, NULL, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_set_aside(dir, SHA_ABC, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, NULL, NULL), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_blob_set_aside(dir, SHA_ABC, NULL), WEIR_OK);
}

END_TEST

START_TEST(a_removed_blob_is_gone_from_the_disk)
{
    char name[WEIR_SHA256_TEXT_BYTES];
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
    n_folder_syncs = 0;
    ck_assert_int_eq(weir_blob_remove(blobs, SHA_ABC, NULL), WEIR_OK);
    ck_assert(!weir_blob_exists(blobs, SHA_ABC));
    ck_assert_int_eq(n_folder_syncs, 1);
    ck_assert_int_eq(weir_blob_remove(blobs, SHA_ABC, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_remove(blobs, SHA_EMPTY, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_remove(blobs, "../lock", NULL), WEIR_ERR_INVALID);
}

END_TEST

static bool tmp_is_empty(void)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/tmp", dir);
    return rmdir(path) == 0 && mkdir(path, 0700) == 0;
}

START_TEST(bytes_are_found_under_the_hash_that_sha256sum_prints)
{
    char name[WEIR_SHA256_TEXT_BYTES], *data, *path;
    size_t len;
    uint64_t n_bytes;
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
    ck_assert_str_eq(name, SHA_ABC);
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, SHA_ABC, name, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_put(blobs, "", 0, SHA_EMPTY, name, NULL), WEIR_OK);
    ck_assert(weir_blob_exists(blobs, SHA_ABC));
    ck_assert_int_eq(weir_blob_read(blobs, SHA_ABC, 3, &arena, &data, &len, NULL), WEIR_OK);
    ck_assert_uint_eq(len, 3);
    ck_assert_str_eq(data, "abc");
    ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, &n_bytes, NULL), WEIR_OK);
    ck_assert_uint_eq(n_bytes, 3);
    ck_assert_str_eq(path + strlen(dir), "/ba/" SHA_ABC);
    ck_assert_int_eq(weir_blob_read(blobs, SHA_ABC, 2, &arena, &data, &len, NULL), WEIR_ERR_LIMIT);
    ck_assert(tmp_is_empty());
}

END_TEST

START_TEST(other_bytes_than_expected_are_refused_and_leave_nothing)
{
    char name[WEIR_SHA256_TEXT_BYTES] = "untouched";
    struct weir_error err;
    ck_assert_int_eq(weir_blob_put(blobs, "abd", 3, SHA_ABC, name, &err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, SHA_ABC));
    ck_assert_str_eq(name, "untouched");
    ck_assert(!weir_blob_exists(blobs, SHA_ABC));
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, "BA78", name, &err), WEIR_ERR_INVALID);
    ck_assert(tmp_is_empty());
}

END_TEST

START_TEST(a_stream_of_pieces_equals_the_whole)
{
    static char bytes[300000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 7 + i / 251);
    }
    char whole[WEIR_SHA256_TEXT_BYTES], pieces[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(bytes, sizeof(bytes), whole);
    struct weir_blob_writer *writer;
    ck_assert_int_eq(weir_blob_writer_open(blobs, sizeof(bytes), &writer, NULL), WEIR_OK);
    for (size_t i = 0; i < sizeof(bytes);) {
        size_t n = WEIR_MIN(sizeof(bytes) - i, 1 + i % 7919);
        ck_assert_int_eq(weir_blob_writer_write(writer, bytes + i, n, NULL), WEIR_OK);
        i += n;
    }
    uint64_t n_bytes;
    ck_assert_int_eq(weir_blob_writer_finish(writer, NULL, pieces, &n_bytes, NULL), WEIR_OK);
    ck_assert_str_eq(pieces, whole);
    ck_assert_uint_eq(n_bytes, sizeof(bytes));
}

END_TEST

START_TEST(a_file_becomes_the_blob_without_a_copy)
{
    char file[128], *data, *path;
    size_t len;
    struct stat before, after;
    struct weir_error err;
    (void)snprintf(file, sizeof file, "%s/upload", dir);
    ck_assert_int_eq(weir_file_write(file, "abc", 3, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(stat(file, &before), 0);
    ck_assert_int_eq(weir_blob_take_file(blobs, file, SHA_ABC, SHA_EMPTY, &err), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(weir_blob_take_file(blobs, file, SHA_ABC, "../abc", &err), WEIR_ERR_INVALID);
    ck_assert(weir_path_exists(file));
    ck_assert_int_eq(weir_blob_take_file(blobs, file, SHA_ABC, SHA_ABC, &err), WEIR_OK);
    ck_assert(!weir_path_exists(file));
    ck_assert_int_eq(weir_blob_read(blobs, SHA_ABC, 3, &arena, &data, &len, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, NULL, NULL), WEIR_OK);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(after.st_ino, before.st_ino);
    ck_assert_uint_eq(after.st_mode & 0777, 0400);
    /* The same once more: it is there, and the file stays its owner's. */
    ck_assert_int_eq(weir_file_write(file, "abc", 3, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_take_file(blobs, file, SHA_ABC, SHA_ABC, &err), WEIR_OK);
    ck_assert(weir_path_exists(file));
}

END_TEST

START_TEST(a_stream_over_its_limit_is_refused)
{
    struct weir_blob_writer *writer;
    ck_assert_int_eq(weir_blob_writer_open(blobs, 4, &writer, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_writer_write(writer, "abc", 3, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_writer_write(writer, "de", 2, NULL), WEIR_ERR_LIMIT);
    weir_blob_writer_abort(writer);
    ck_assert(tmp_is_empty());
}

END_TEST

START_TEST(names_that_are_no_hash_never_reach_the_file_system)
{
    static const char *const wrong[] = {
        "",          "../../etc/passwd",
        "ba78",      "..",
        SHA_ABC "0", "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"};
    char *path;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert(!weir_blob_exists(blobs, wrong[i]));
        ck_assert_int_eq(weir_blob_path(blobs, wrong[i], &arena, &path, NULL, NULL),
                         WEIR_ERR_INVALID);
    }
    ck_assert_int_eq(weir_blob_path(blobs, SHA_ABC, &arena, &path, NULL, NULL), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(a_damaged_blob_is_not_given_out)
{
    char name[WEIR_SHA256_TEXT_BYTES], *path, *data;
    size_t len;
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_path(blobs, name, &arena, &path, NULL, NULL), WEIR_OK);
    ck_assert_int_eq(chmod(path, 0600), 0);
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputc('x', file), 'x');
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(weir_blob_read(blobs, name, 100, &arena, &data, &len, NULL), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(opening_again_drops_unfinished_writes_and_keeps_blobs)
{
    char name[WEIR_SHA256_TEXT_BYTES];
    struct weir_blobs *second;
    ck_assert_int_eq(weir_blob_put(blobs, "abc", 3, NULL, name, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blobs_open(dir, &second, NULL), WEIR_ERR_CONFLICT);
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/tmp/left-over", dir);
    ck_assert_int_eq(weir_file_write_atomic(path, "half", 4, 0600, NULL), WEIR_OK);
    weir_blobs_close(blobs);
    ck_assert_int_eq(weir_blobs_open(dir, &blobs, NULL), WEIR_OK);
    ck_assert(tmp_is_empty());
    ck_assert(weir_blob_exists(blobs, SHA_ABC));
}

END_TEST

WEIR_TEST_MAIN_WITH("blob", set_up, tear_down, bytes_are_found_under_the_hash_that_sha256sum_prints,
                    other_bytes_than_expected_are_refused_and_leave_nothing,
                    a_stream_of_pieces_equals_the_whole, a_file_becomes_the_blob_without_a_copy,
                    a_stream_over_its_limit_is_refused,
                    names_that_are_no_hash_never_reach_the_file_system,
                    a_damaged_blob_is_not_given_out,
                    opening_again_drops_unfinished_writes_and_keeps_blobs,
                    a_removed_blob_is_gone_from_the_disk,
                    damaged_bytes_are_given_to_nobody_and_replaced_by_good_ones,
                    damage_that_was_met_is_told_until_it_is_over,
                    a_blob_is_mended_by_its_own_bytes_alone_or_set_aside)
