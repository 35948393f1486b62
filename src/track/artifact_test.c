#include "track/artifact.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/track.h"

#include <stdlib.h>
#include <string.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    for (const char *id = "r\0s\0"; *id != '\0'; id += 2) {
        MUST(weir_txn_insert(txn, &weir_run_resource,
                             &(struct weir_run){.id = (char *)id,
                                                .name = (char *)id,
                                                .project = "default",
                                                .kind = "train",
                                                .status = "RUNNING"},
                             err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status put(struct weir_txn *txn, const char *run, const char *path, int64_t bytes,
                       struct weir_error *err)
{
    const struct weir_artifact artifact = {.run = (char *)run,
                                           .path = (char *)path,
                                           .blob = "abc",
                                           .bytes = bytes,
                                           .created_by = "ann",
                                           .created_ms = 7};
    return weir_artifact_put(txn, &artifact, err);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const char *const bad_paths[] = {
    "",         "/",         "/a",           "a/",     "a//b",   ".",          "..",     "a/..",
    "../a",     "a/./b",     "./a",          "a/../b", "%2e%2e", "a/%2E%2e/b", "..%2fb", "%2fa",
    "a%2f%2fb", "a%2f",      "%252e%252e",   "a\\b",   "..\\b",  "a%5c..%5cb", "a#b",    "a%23b",
    "a%00",     "a\nb",      "a%0ab",        "\x7f",   "C:/a",   "c:a",        "%43:/a", "a\xff",
    "a%ff",     "file:///a", "%25252e%252e", "#",
};

START_TEST(a_path_that_may_lead_elsewhere_is_refused)
{
    struct weir_error err = {0};
    ck_assert_msg(weir_artifact_path_check(bad_paths[_i], &err) == WEIR_ERR_INVALID, "%s",
                  bad_paths[_i]);
    ck_assert_ptr_nonnull(strstr(err.message, "Invalid path"));
}

END_TEST

static const char *const good_paths[] = {
    "a", "a/b/c.txt", "50%.txt", "a%20b", "..a/b..", "...", "größe/ß", "a b", "a%2", "model/%zz",
};

START_TEST(a_path_of_names_is_taken)
{
    struct weir_error err = {0};
    ck_assert_msg(weir_artifact_path_check(good_paths[_i], &err) == WEIR_OK, "%s: %s",
                  good_paths[_i], err.message);
}

END_TEST

/* ---- rows ------------------------------------------------------------------------------------ */

static weir_status put_twice(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_artifact found;
    MUST(put(txn, "r", "model/a.bin", 1, err));
    MUST(put(txn, "r", "model/a.bin", 2, err));
    MUST(put(txn, "s", "model", 3, err));
    MUST(weir_artifact_get(txn, "r", "model/a.bin", &fixture.arena, &found, err));
    ck_assert_int_eq(found.bytes, 2);
    ck_assert_str_eq(found.created_by, "ann");
    ck_assert_int_eq(put(txn, "r", "model", 1, err), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(put(txn, "r", "model/a.bin/b", 1, err), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(put(txn, "nobody", "a", 1, err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_artifact_get(txn, "r", "model", &fixture.arena, &found, err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err->message, "is a folder"));
    return WEIR_OK;
}

START_TEST(a_path_names_what_was_put_there_last_and_is_a_file_or_a_folder)
{
    fixture_write(&fixture, put_twice, NULL);
}

END_TEST

/* Paths of few letters, so that folders and files meet; "a-b" sorts before "a/b", and "a0" behind. */
#define N_PATHS 300
static char paths[N_PATHS][16];
static size_t n_paths;

static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return len == 0 || (strncmp(path, folder, len) == 0 && path[len] == '/');
}

/* What the list should be, by looking at every path for every entry. */
static size_t count_children(const char *folder, char seen[N_PATHS][16])
{
    size_t n = 0;
    for (size_t i = 0; i < n_paths; i++) {
        if (!is_below(paths[i], folder)) {
            continue;
        }
        char name[16];
        size_t at = strlen(folder) + (folder[0] != '\0');
        size_t len = at + strcspn(paths[i] + at, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, paths[i]);
        bool is_new = true;
        for (size_t k = 0; k < n; k++) {
            is_new = is_new && strcmp(seen[k], name) != 0;
        }
        if (is_new) {
            memcpy(seen[n++], name, sizeof name);
        }
    }
    return n;
}

static void expect_list(struct weir_txn *txn, const char *folder, size_t limit,
                        struct weir_error *err)
{
    char seen[N_PATHS][16];
    size_t n_expected = count_children(folder, seen), n_got = 0;
    char *next = NULL, *last = NULL;
    do {
        struct weir_artifact_entry *entries;
        size_t n;
        MUST(weir_artifact_list(txn, "r", folder, next, limit, &fixture.arena, &entries, &n, &next,
                                err));
        ck_assert_uint_le(n, limit);
        for (size_t i = 0; i < n; i++) {
            bool is_expected = false;
            for (size_t k = 0; k < n_expected; k++) {
                is_expected = is_expected || strcmp(seen[k], entries[i].path) == 0;
            }
            ck_assert_msg(is_expected, "\"%s\" of \"%s\"", entries[i].path, folder);
            char *key = weir_arena_printf(&fixture.arena, "%s%s", entries[i].path,
                                          entries[i].is_folder ? "/" : "");
            ck_assert(last == NULL || strcmp(last, key) < 0);
            last = key;
            n_got++;
        }
    } while (next != NULL);
    ck_assert_msg(n_got == n_expected, "\"%s\": %zu of %zu", folder, n_got, n_expected);
}

static weir_status list_random(struct weir_txn *txn, void *context, struct weir_error *err)
{
    unsigned seed = *(unsigned *)context;
    static const char *const names[] = {"a", "a-b", "a0", "b", "b.c", "\xc3\xa4"};
    n_paths = 0;
    for (int i = 0; i < N_PATHS; i++) {
        char path[16] = "";
        int depth = 1 + (int)(rand_r(&seed) % 3);
        for (int k = 0; k < depth; k++) {
            (void)snprintf(path + strlen(path), sizeof path - strlen(path), "%s%s",
                           k > 0 ? "/" : "", names[(size_t)rand_r(&seed) % WEIR_ARRAY_LEN(names)]);
        }
        bool is_there = false;
        for (size_t k = 0; k < n_paths; k++) {
            is_there = is_there || strcmp(paths[k], path) == 0;
        }
        if (put(txn, "r", path, 1, err) == WEIR_OK && !is_there) {
            memcpy(paths[n_paths++], path, sizeof path);
        }
    }
    MUST(put(txn, "s", "b/of another run", 1, err));
    static const char *const folders[] = {"", "a", "a-b", "b", "a/b", "a/a0", "none", "b/\xc3\xa4"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(folders); i++) {
        bool is_file = false;
        for (size_t k = 0; k < n_paths; k++) {
            is_file = is_file || strcmp(paths[k], folders[i]) == 0;
        }
        if (!is_file) {
            expect_list(txn, folders[i], 1000, err);
            expect_list(txn, folders[i], 2, err);
        }
    }
    return WEIR_OK;
}

START_TEST(a_list_of_a_folder_is_what_lies_directly_in_it_page_by_page)
{
    unsigned seed = 41 + (unsigned)_i;
    fixture_write(&fixture, list_random, &seed);
}

END_TEST

static weir_status delete_some(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_artifact *files;
    size_t n_files;
    int64_t n;
    static const char *const put_paths[] = {"m/a", "m/b/c", "m/b/d", "m-x", "m0"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(put_paths); i++) {
        MUST(put(txn, "r", put_paths[i], 1, err));
    }
    MUST(weir_artifact_list_files(txn, "r", "m", 10, &fixture.arena, &files, &n_files, err));
    ck_assert_uint_eq(n_files, 3);
    ck_assert_str_eq(files[1].path, "m/b/c");
    MUST(weir_artifact_list_files(txn, "r", "m/a", 10, &fixture.arena, &files, &n_files, err));
    ck_assert_uint_eq(n_files, 1);
    MUST(weir_artifact_delete(txn, "r", "m", &n, err));
    ck_assert_int_eq(n, 3);
    MUST(weir_artifact_list_files(txn, "r", NULL, 10, &fixture.arena, &files, &n_files, err));
    ck_assert_uint_eq(n_files, 2);
    ck_assert_int_eq(weir_artifact_delete(txn, "r", "m", &n, err), WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_folder_goes_with_all_below_it_and_nothing_beside_it)
{
    fixture_write(&fixture, delete_some, NULL);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("artifact");
    TCase *rule = tcase_create("path");
    tcase_add_loop_test(rule, a_path_that_may_lead_elsewhere_is_refused, 0,
                        WEIR_ARRAY_LEN(bad_paths));
    tcase_add_loop_test(rule, a_path_of_names_is_taken, 0, WEIR_ARRAY_LEN(good_paths));
    suite_add_tcase(suite, rule);
    TCase *tcase = tcase_create("rows");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_path_names_what_was_put_there_last_and_is_a_file_or_a_folder);
    tcase_add_loop_test(tcase, a_list_of_a_folder_is_what_lies_directly_in_it_page_by_page, 0, 8);
    tcase_add_test(tcase, a_folder_goes_with_all_below_it_and_nothing_beside_it);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
