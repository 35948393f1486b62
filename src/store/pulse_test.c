#include "store/pulse.h"

#include "store/store_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_init(&fixture);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status put(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn,
                         "INSERT INTO settings (key, value, updated_ms) VALUES (:key, :key, 0)",
                         WEIR_BINDS(WEIR_BIND_TEXT("key", context)), NULL, err);
}

static struct weir_store_pulse look(void)
{
    struct weir_store_pulse pulse;
    weir_store_pulse(fixture.store, &pulse);
    return pulse;
}

#define LARGE_BYTES 8000000
static char large[LARGE_BYTES];

START_TEST(a_commit_that_fails_is_told_until_one_goes_through)
{
    memset(large, 'x', sizeof large - 1);
    fixture_open(&fixture, (struct weir_store_config){.max_bytes = 4 << 20});
    ck_assert_int_eq(look().failing_mono_ms, 0);
    ck_assert_int_eq(weir_store_write(fixture.store, put, large, NULL), WEIR_ERR_NOSPACE);
    ck_assert_int_gt(look().failing_mono_ms, 0);
    ck_assert_int_eq(look().failure, WEIR_ERR_NOSPACE);
    ck_assert_ptr_null(strstr(look().failed, "INSERT"));
    ck_assert_int_eq(weir_store_probe(fixture.store, NULL), WEIR_OK);
    ck_assert_int_eq(look().failing_mono_ms, 0);
}

END_TEST

/* All pages but the first, which says where the others are. */
static void overwrite_pages(void)
{
    char page[4096];
    struct stat info;
    memset(page, 0x5a, sizeof page);
    int fd = open(fixture.path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(fstat(fd, &info), 0);
    for (off_t at = 4096 * 20; at < info.st_size; at += 4096) {
        ck_assert_int_eq(pwrite(fd, page, sizeof page, at), (ssize_t)sizeof page);
    }
    ck_assert_int_eq(close(fd), 0);
}

static void reopen(void)
{
    const struct weir_store_config config = {.path = fixture.path};
    ck_assert_msg(weir_store_open(&config, &fixture.store, &fixture.err) == WEIR_OK, "%s",
                  fixture.err.message);
}

START_TEST(damage_is_found_by_the_check_and_told_without_sql)
{
    fixture_open(&fixture, (struct weir_store_config){0});
    ck_assert_int_eq(weir_store_check_start(fixture.store, NULL), WEIR_OK);
    while (!look().is_checked) {
        (void)sched_yield();
    }
    ck_assert_int_eq(look().damaged_mono_ms, 0);
    weir_store_close(fixture.store);
    overwrite_pages();
    fixture.store = NULL;
    const struct weir_store_config config = {.path = fixture.path};
    weir_status status = weir_store_open(&config, &fixture.store, &fixture.err);
    if (status == WEIR_OK) {
        ck_assert_int_eq(weir_store_check_start(fixture.store, NULL), WEIR_OK);
        while (look().damaged_mono_ms == 0) {
            (void)sched_yield();
        }
        (void)snprintf(fixture.err.message, sizeof fixture.err.message, "%s", look().damage);
    } else {
        ck_assert(weir_store_error_is_damage(&fixture.err));
        ck_assert_ptr_nonnull(strstr(fixture.err.message, "restore"));
    }
    ck_assert_ptr_null(strstr(fixture.err.message, "SELECT"));
}

END_TEST

static weir_status count_up(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t ignored;
    (void)context;
    return weir_txn_next(txn, "t", &ignored, err);
}

static void copy_file(const char *from, const char *to)
{
    char *data;
    size_t len;
    ck_assert_int_eq(weir_file_read(from, 64 << 20, &fixture.arena, &data, &len, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write(to, data, len, 0600, NULL), WEIR_OK);
}

START_TEST(a_database_that_has_lost_its_last_commits_says_so_once)
{
    char old[128];
    (void)snprintf(old, sizeof old, "%s/old", fixture.dir);
    fixture_open(&fixture, (struct weir_store_config){0});
    fixture_write(&fixture, count_up, NULL);
    weir_store_close(fixture.store);
    copy_file(fixture.path, old);
    reopen();
    ck_assert_int_eq(look().damaged_mono_ms, 0);
    fixture_write(&fixture, count_up, NULL);
    weir_store_close(fixture.store);
    copy_file(old, fixture.path);
    reopen();
    ck_assert_int_gt(look().damaged_mono_ms, 0);
    ck_assert_ptr_nonnull(strstr(look().damage, "has lost"));
    fixture_write(&fixture, count_up, NULL);
    fixture_write(&fixture, count_up, NULL);
    weir_store_close(fixture.store);
    reopen();
    ck_assert_int_eq(look().damaged_mono_ms, 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("pulse", set_up, tear_down, a_commit_that_fails_is_told_until_one_goes_through,
                    damage_is_found_by_the_check_and_told_without_sql,
                    a_database_that_has_lost_its_last_commits_says_so_once)
