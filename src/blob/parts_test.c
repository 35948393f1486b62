#include "blob/parts.h"

#include "blob/blob_private.h"

#include "base/test_main.h"
#include "base/uuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char dir[] = "/tmp/weir-parts-XXXXXX";
static char parts_dir[64], id[WEIR_UUID_BYTES];
static struct weir_blobs *blobs;
static struct weir_arena arena;
static struct weir_error err;

static void set_up(void)
{
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/blobs", dir);
    (void)snprintf(parts_dir, sizeof parts_dir, "%s/parts", dir);
    ck_assert_int_eq(weir_blobs_open(path, &blobs, NULL), WEIR_OK);
    weir_arena_init(&arena, 0);
    weir_uuid_make(id);
}

static void tear_down(void)
{
    weir_blobs_close(blobs);
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
}

/* As an upload has left it. */
static weir_status take(int64_t number, const char *bytes, uint64_t max_bytes)
{
    char path[96], sha256[WEIR_SHA256_TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/upload", dir);
    ck_assert_int_eq(weir_file_write(path, bytes, strlen(bytes), 0600, NULL), WEIR_OK);
    weir_sha256(bytes, strlen(bytes), sha256);
    return weir_part_take(parts_dir, id, number, path, strlen(bytes), sha256, max_bytes, &err);
}

static void expect_joined(int64_t n_parts, const char *expected)
{
    char sha256[WEIR_SHA256_TEXT_BYTES], *data;
    uint64_t n_bytes;
    size_t len;
    weir_status status =
        weir_parts_join(parts_dir, id, n_parts, blobs, 100, sha256, &n_bytes, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(weir_blob_read(blobs, sha256, 100, &arena, &data, &len, NULL), WEIR_OK);
    ck_assert_uint_eq(n_bytes, strlen(expected));
    ck_assert_str_eq(data, expected);
}

START_TEST(parts_join_by_number_whatever_order_they_came_in)
{
    struct weir_part *parts;
    size_t n;
    ck_assert_int_eq(take(10, "j", 100), WEIR_OK);
    for (int64_t i = 9; i >= 1; i--) {
        ck_assert_int_eq(take(i, (char[]){(char)('a' + i - 1), '\0'}, 100), WEIR_OK);
    }
    ck_assert_int_eq(take(2, "second", 100), WEIR_OK); /* sent again, as other bytes */
    ck_assert_int_eq(weir_parts_list(parts_dir, id, &arena, &parts, &n, NULL), WEIR_OK);
    ck_assert_uint_eq(n, 10);
    ck_assert_int_eq(parts[1].number, 2);
    ck_assert_uint_eq(parts[1].bytes, 6);
    expect_joined(10, "asecondcdefghij");
    ck_assert_int_eq(weir_parts_remove(parts_dir, id, NULL), WEIR_OK);
    ck_assert_int_eq(weir_parts_list(parts_dir, id, &arena, &parts, &n, NULL), WEIR_OK);
    ck_assert_uint_eq(n, 0);
}

END_TEST

START_TEST(a_part_that_is_missing_is_named)
{
    char sha256[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    ck_assert_int_eq(take(1, "a", 100), WEIR_OK);
    ck_assert_int_eq(take(3, "c", 100), WEIR_OK);
    ck_assert_int_eq(weir_parts_join(parts_dir, id, 3, blobs, 100, sha256, &n_bytes, &err),
                     WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.message, "part 2 of 3"));
    ck_assert_int_eq(weir_parts_join(parts_dir, id, 1, blobs, 100, sha256, &n_bytes, &err),
                     WEIR_ERR_CONFLICT);
}

END_TEST

START_TEST(all_parts_together_have_a_bound)
{
    ck_assert_int_eq(take(1, "12345", 10), WEIR_OK);
    ck_assert_int_eq(take(2, "123456", 10), WEIR_ERR_LIMIT);
    ck_assert_int_eq(take(2, "12345", 10), WEIR_OK);
    ck_assert_int_eq(take(1, "54321", 10), WEIR_OK); /* in the place of the first */
    expect_joined(2, "5432112345");
}

END_TEST

START_TEST(what_is_no_number_or_no_identifier_makes_no_file)
{
    ck_assert_int_eq(take(0, "a", 10), WEIR_ERR_INVALID);
    ck_assert_int_eq(take(WEIR_PARTS_MAX + 1, "a", 10), WEIR_ERR_INVALID);
    (void)snprintf(id, sizeof id, "../../x");
    ck_assert_int_eq(take(1, "a", 10), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_parts_remove(parts_dir, id, NULL), WEIR_ERR_INVALID);
    ck_assert(!weir_path_exists(parts_dir));
}

END_TEST

START_TEST(more_than_a_few_at_a_time_are_not_joined)
{
    char sha256[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    ck_assert_int_eq(take(1, "a", 100), WEIR_OK);
    atomic_store(&blobs->n_joins, WEIR_PARTS_JOINS_MAX);
    ck_assert_int_eq(weir_parts_join(parts_dir, id, 1, blobs, 100, sha256, &n_bytes, &err),
                     WEIR_ERR_UNAVAILABLE);
    ck_assert_int_eq(atomic_load(&blobs->n_joins), WEIR_PARTS_JOINS_MAX);
    atomic_store(&blobs->n_joins, WEIR_PARTS_JOINS_MAX - 1);
    expect_joined(1, "a");
    ck_assert_int_eq(atomic_load(&blobs->n_joins), WEIR_PARTS_JOINS_MAX - 1);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *tcase = tcase_create("parts");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, parts_join_by_number_whatever_order_they_came_in);
    tcase_add_test(tcase, a_part_that_is_missing_is_named);
    tcase_add_test(tcase, all_parts_together_have_a_bound);
    tcase_add_test(tcase, what_is_no_number_or_no_identifier_makes_no_file);
    tcase_add_test(tcase, more_than_a_few_at_a_time_are_not_joined);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
