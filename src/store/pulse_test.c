#include "store/pulse.h"

#include "base/test_seed.h"
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

/* ---- a law: it is told if, and only if, what was acknowledged is gone ------------------------- */

#define N_IMAGES WEIR_TEST_TIMES(24, 12)
#define N_PAIRS  WEIR_TEST_TIMES(40, 20)

/* What lay on the disk after a commit: the rows that were acknowledged, and the files. */
struct image {
    int64_t n_rows;

    struct {
        char *data;
        size_t len;
    } files[3];
};

static const char *const suffixes[] = {"", "-wal", "-end"};

static char *suffixed(const char *path, const char *suffix)
{
    return weir_arena_printf(&fixture.arena, "%s%s", path, suffix);
}

static void keep_image(struct image *image, int64_t n_rows)
{
    image->n_rows = n_rows;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(suffixes); i++) {
        ck_assert_int_eq(weir_file_read(suffixed(fixture.path, suffixes[i]), 64 << 20,
                                        &fixture.arena, &image->files[i].data, &image->files[i].len,
                                        NULL),
                         WEIR_OK);
    }
}

static weir_status put_and_count(struct weir_txn *txn, void *context, struct weir_error *err)
{
    WEIR_TRY(count_up(txn, NULL, err));
    return put(txn, context, err);
}

static weir_status put_and_fail(struct weir_txn *txn, void *context, struct weir_error *err)
{
    WEIR_TRY(put_and_count(txn, context, err));
    return weir_error_set(err, WEIR_ERR_CONFLICT, "no");
}

static weir_status count_rows(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(txn, "SELECT count(*) FROM settings WHERE key LIKE 'row %'",
                              WEIR_NO_BINDS, 0, context, err);
}

/* One more row, or none, in one of the ways there are. */
static void store_row(struct weir_rng *rng, int64_t *n_rows)
{
    char *key = weir_arena_printf(&fixture.arena, "row %lld", (long long)*n_rows);
    switch (weir_rng_below(rng, 5)) {
    case 0:
        ck_assert_int_eq(weir_store_write(fixture.store, put_and_fail, key, NULL),
                         WEIR_ERR_CONFLICT);
        break;
    case 1:
        ck_assert_int_eq(weir_store_try(fixture.store, put_and_count, key, NULL), WEIR_OK);
        break;
    case 2:
        fixture_write(&fixture, put_and_count, key);
        (*n_rows)++;
        break;
    default: /* moves no counter of its own */
        fixture_write(&fixture, put, key);
        (*n_rows)++;
    }
}

/* Open a database of one time beside the note of another. @return Its rows. */
static int64_t open_image(const struct image *of, bool has_log, const struct image *noted)
{
    int64_t n_rows;
    const char *path = suffixed(fixture.dir, "/image.db");
    (void)unlink(suffixed(path, "-wal"));
    (void)unlink(suffixed(path, "-shm"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(suffixes); i++) {
        const struct image *from = i == 2 ? noted : of;
        if (i != 1 || has_log) {
            ck_assert_int_eq(weir_file_write(suffixed(path, suffixes[i]), from->files[i].data,
                                             from->files[i].len, 0600, NULL),
                             WEIR_OK);
        }
    }
    const struct weir_store_config config = {.path = path, .n_readers = 1};
    ck_assert_int_eq(weir_store_open(&config, &fixture.store, &fixture.err), WEIR_OK);
    fixture_read(&fixture, count_rows, &n_rows);
    return n_rows;
}

START_TEST(it_is_told_when_rows_are_gone_and_never_else)
{
    static struct image images[N_IMAGES];
    struct weir_rng rng;
    int64_t n_rows = 0;
    int n_told = 0;
    uint64_t seed = test_seed(&rng);
    fixture_open(&fixture, (struct weir_store_config){0});
    for (size_t i = 0; i < N_IMAGES; i++) {
        store_row(&rng, &n_rows);
        keep_image(&images[i], n_rows);
    }
    weir_store_close(fixture.store);
    for (size_t i = 0; i < N_PAIRS; i++) {
        const struct image *of = &images[weir_rng_below(&rng, N_IMAGES)];
        const struct image *noted = &images[weir_rng_below(&rng, N_IMAGES)];
        bool has_log = weir_rng_below(&rng, 8) > 0;
        int64_t n_left = open_image(of, has_log, noted);
        bool is_told = look().damaged_mono_ms != 0;
        n_told += is_told;
        ck_assert_msg(is_told == (n_left < noted->n_rows),
                      "seed %llu, pair %zu: %lld rows, noted with %lld: %s",
                      (unsigned long long)seed, i, (long long)n_left, (long long)noted->n_rows,
                      is_told ? look().damage : "not told");
        weir_store_close(fixture.store);
    }
    fixture.store = NULL;
    ck_assert_int_gt(n_told, 0);
    ck_assert_int_lt(n_told, N_PAIRS);
}

END_TEST

WEIR_TEST_MAIN_WITH("pulse", set_up, tear_down, a_commit_that_fails_is_told_until_one_goes_through,
                    damage_is_found_by_the_check_and_told_without_sql,
                    a_database_that_has_lost_its_last_commits_says_so_once,
                    it_is_told_when_rows_are_gone_and_never_else)
