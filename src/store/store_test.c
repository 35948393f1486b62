#include "store/store.h"

#include "base/clock.h"
#include "base/test_seed.h"
#include "store/store_fixture.h"
#include "store/test_gate.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static const char sql_put[] = "INSERT INTO settings (key, value, updated_ms) VALUES (:key, '1', 0)";
static const char sql_count[] = "SELECT count(*) FROM settings";

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){.max_queue = 40});
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/** Insert a row; with fails, only to have it undone. */
struct put {
    const char *key;
    bool fails;
};

static weir_status put(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct put *row = context;
    WEIR_TRY(weir_txn_exec(txn, sql_put, WEIR_BINDS(WEIR_BIND_TEXT("key", row->key)), NULL, err));
    return row->fails ? weir_error_set(err, WEIR_ERR_CONFLICT, "changed my mind") : WEIR_OK;
}

static weir_status clear(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "DELETE FROM settings", WEIR_NO_BINDS, NULL, err);
}

static weir_status count(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_count, WEIR_NO_BINDS, -1, context, err);
}

static int64_t rows(void)
{
    int64_t n;
    fixture_read(&fixture, count, &n);
    return n;
}

START_TEST(what_was_written_is_there_after_opening_again)
{
    fixture_write(&fixture, put, &(struct put){.key = "a"});
    ck_assert_int_eq(rows(), 1);
    weir_store_close(fixture.store);
    fixture_open(&fixture, (struct weir_store_config){0});
    ck_assert_int_eq(rows(), 1);
}

END_TEST

START_TEST(a_transaction_that_fails_leaves_nothing_and_says_why)
{
    weir_status status = weir_store_write(fixture.store, put,
                                          &(struct put){.key = "a", .fails = true}, &fixture.err);
    ck_assert_int_eq(status, WEIR_ERR_CONFLICT);
    ck_assert_str_eq(fixture.err.message, "changed my mind");
    ck_assert_int_eq(rows(), 0);
    ck_assert_uint_eq(weir_store_change(fixture.store), 0);
}

END_TEST

struct rewrite {
    int n;
    char letter;
    bool fails;
};

/* Rows of a page each. */
static weir_status write_pages(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql[] =
        "INSERT INTO settings (key, value, updated_ms) VALUES (:key, :value, 0)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    const struct rewrite *rewrite = context;
    char value[3001];
    memset(value, rewrite->letter, sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < rewrite->n; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%d", i);
        WEIR_TRY(weir_txn_exec(
            txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("key", key), WEIR_BIND_TEXT("value", value)), NULL,
            err));
    }
    return rewrite->fails ? weir_error_set(err, WEIR_ERR_CONFLICT, "changed my mind") : WEIR_OK;
}

static weir_status count_old(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(txn, "SELECT count(*) FROM settings WHERE value LIKE 'a%a'",
                              WEIR_NO_BINDS, -1, context, err);
}

START_TEST(a_transaction_is_undone_however_much_it_has_changed)
{
    static const int sizes[] = {1, 20, 31, 32, 33, 200, 2200};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sizes); i++) {
        struct rewrite rewrite = {.n = sizes[i], .letter = 'a'};
        int64_t n;
        fixture_write(&fixture, write_pages, &rewrite);
        rewrite = (struct rewrite){.n = sizes[i], .letter = 'b', .fails = true};
        ck_assert_int_eq(weir_store_write(fixture.store, write_pages, &rewrite, &fixture.err),
                         WEIR_ERR_CONFLICT);
        ck_assert_str_eq(fixture.err.message, "changed my mind");
        fixture_read(&fixture, count_old, &n);
        ck_assert_int_eq(n, sizes[i]);
    }
}

END_TEST

/* Temporary files of SQLite that this process has open: they are unlinked at once. */
static int n_temporary_files(void)
{
    int n = 0;
    char path[64], target[512];
    for (int fd = 0; fd < 256; fd++) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, target, sizeof target - 1);
        if (len > 0) {
            target[len] = '\0';
            n += strstr(target, "etilqs") != NULL;
        }
    }
    return n;
}

static weir_status write_and_look(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const struct rewrite rewrite = {.n = 200, .letter = 'b'};
    WEIR_TRY(write_pages(txn, (void *)&rewrite, err));
    *(int *)context = n_temporary_files();
    return WEIR_OK;
}

START_TEST(pages_are_not_copied_before_they_change_unless_one_is_to_be_undone)
{
    int n = 0;
    fixture_write(&fixture, write_pages, &(struct rewrite){.n = 200, .letter = 'a'});
    fixture_write(&fixture, write_and_look, &n);
    ck_assert_int_eq(n, 0);
}

END_TEST

START_TEST(what_is_tried_is_undone_and_nobody_is_told)
{
    ck_assert_int_eq(weir_store_try(fixture.store, put, &(struct put){.key = "a"}, &fixture.err),
                     WEIR_OK);
    ck_assert_int_eq(
        weir_store_try(fixture.store, put, &(struct put){.key = "a", .fails = true}, &fixture.err),
        WEIR_ERR_CONFLICT);
    ck_assert_str_eq(fixture.err.message, "changed my mind");
    ck_assert_int_eq(rows(), 0);
    ck_assert_uint_eq(weir_store_change(fixture.store), 0);
    fixture_write(&fixture, put, &(struct put){.key = "a"});
    ck_assert_int_eq(rows(), 1);
}

END_TEST

#define N_THREADS 8
#define N_EACH    50

static void *put_many(void *context)
{
    size_t i_thread = (size_t)context;
    for (size_t i = 0; i < N_EACH; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "%zu/%zu", i_thread, i);
        bool fails = i % 3 == 0;
        weir_status status =
            weir_store_write(fixture.store, put, &(struct put){.key = key, .fails = fails}, NULL);
        ck_assert_int_eq(status, fails ? WEIR_ERR_CONFLICT : WEIR_OK);
    }
    return NULL;
}

START_TEST(threads_that_write_at_once_each_get_their_own_result)
{
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, put_many, (void *)i), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_eq(rows(), N_THREADS * (N_EACH - (N_EACH + 2) / 3));
}

END_TEST

struct putter {
    char key[16];
    weir_status status;
};

static void *put_one(void *context)
{
    struct putter *putter = context;
    struct put row = {.key = putter->key};
    putter->status = weir_store_write(fixture.store, put, &row, NULL);
    return NULL;
}

START_TEST(transactions_that_wait_together_share_commits_and_a_full_queue_refuses)
{
    struct gate gate;
    pthread_t threads[60];
    struct putter putters[60];
    gate_shut(&gate, fixture.store);
    for (size_t i = 0; i < 60; i++) {
        (void)snprintf(putters[i].key, sizeof(putters[i].key), "%zu", i);
        pthread_create(&threads[i], NULL, put_one, &putters[i]);
    }
    /* The queue holds 40, so 20 of the 60 must come back while the writer is held. */
    uint64_t deadline_ms = (uint64_t)weir_mono_ms() + 20000;
    size_t n_refused = 0;
    bool is_joined[60] = {false};
    while (n_refused < 20 && (uint64_t)weir_mono_ms() < deadline_ms) {
        for (size_t i = 0; i < 60; i++) {
            if (!is_joined[i] && pthread_tryjoin_np(threads[i], NULL) == 0) {
                is_joined[i] = true;
                ck_assert_int_eq(putters[i].status, WEIR_ERR_UNAVAILABLE);
                n_refused++;
            }
        }
        sched_yield();
    }
    ck_assert_uint_eq(n_refused, 20);
    gate_open(&gate);
    for (size_t i = 0; i < 60; i++) {
        if (!is_joined[i]) {
            pthread_join(threads[i], NULL);
            ck_assert_int_eq(putters[i].status, WEIR_OK);
        }
    }
    ck_assert_int_eq(rows(), 40);
    ck_assert_uint_eq(weir_store_change(fixture.store), 1);
}

END_TEST

enum ending { ENDS_WELL, FAILS_AFTER_WRITING, FAILS_BEFORE, IS_TRIED, N_ENDINGS };

/* One of many that wait together, and what it found to be there when it last ran. */
struct ender {
    enum ending ending;
    int64_t n_rows;
    weir_status status;
};

static weir_status end_as_told(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct ender *ender = context;
    char key[32];
    (void)snprintf(key, sizeof key, "%p", context);
    struct put row = {.key = key, .fails = ender->ending == FAILS_AFTER_WRITING};
    WEIR_TRY(count(txn, &ender->n_rows, err));
    return ender->ending == FAILS_BEFORE ? WEIR_ERR_NOT_FOUND : put(txn, &row, err);
}

static void *end_one(void *context)
{
    struct ender *ender = context;
    ender->status = ender->ending == IS_TRIED
                        ? weir_store_try(fixture.store, end_as_told, ender, NULL)
                        : weir_store_write(fixture.store, end_as_told, ender, NULL);
    return NULL;
}

/* Whoever ends well finds only those that did before it: each sees another number of rows. */
START_TEST(those_that_wait_together_end_as_if_alone)
{
    static const weir_status expected[] = {WEIR_OK, WEIR_ERR_CONFLICT, WEIR_ERR_NOT_FOUND, WEIR_OK};
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int round = 0; round < 20; round++) {
        int64_t n_well = 0;
        struct gate gate;
        struct ender enders[16];
        pthread_t threads[16];
        const uint64_t n_endings = 1 + weir_rng_below(&rng, N_ENDINGS);
        bool is_seen[16] = {false};
        gate_shut(&gate, fixture.store);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(enders); i++) {
            enders[i].ending = (enum ending)weir_rng_below(&rng, n_endings);
            pthread_create(&threads[i], NULL, end_one, &enders[i]);
        }
        gate_open(&gate);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(enders); i++) {
            pthread_join(threads[i], NULL);
            ck_assert_int_eq(enders[i].status, expected[enders[i].ending]);
            if (enders[i].ending == ENDS_WELL) {
                const int64_t place = enders[i].n_rows;
                ck_assert(place >= 0 && place < 16 && !is_seen[place]);
                is_seen[place] = true;
                n_well++;
            }
        }
        ck_assert_int_eq(rows(), n_well);
        fixture_write(&fixture, clear, NULL);
    }
}

END_TEST

static void *put_late(void *context)
{
    (void)context;
    ck_assert_int_eq(weir_store_write(fixture.store, put, &(struct put){.key = "late"}, NULL),
                     WEIR_OK);
    return NULL;
}

static weir_status count_around_a_write(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t *counts = context;
    MUST(count(txn, &counts[0], err));
    pthread_t thread;
    pthread_create(&thread, NULL, put_late, NULL);
    pthread_join(thread, NULL);
    return count(txn, &counts[1], err);
}

START_TEST(a_reader_keeps_its_snapshot_while_others_write)
{
    int64_t counts[2];
    fixture_read(&fixture, count_around_a_write, counts);
    ck_assert_int_eq(counts[0], 0);
    ck_assert_int_eq(counts[1], 0);
    ck_assert_int_eq(rows(), 1);
}

END_TEST

static weir_status nest(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)txn;
    (void)context;
    return weir_store_read(fixture.store, count, NULL, err);
}

START_TEST(writing_while_reading_and_nesting_are_refused)
{
    ck_assert_int_eq(weir_store_read(fixture.store, put, &(struct put){.key = "a"}, &fixture.err),
                     WEIR_ERR_DENIED);
    ck_assert_int_eq(weir_store_write(fixture.store, nest, NULL, &fixture.err), WEIR_ERR_INTERNAL);
    ck_assert_int_eq(weir_store_read(fixture.store, nest, NULL, &fixture.err), WEIR_ERR_INTERNAL);
    ck_assert_int_eq(rows(), 0);
}

END_TEST

static void *wait_for_change(void *context)
{
    *(uint64_t *)context = weir_store_wait(fixture.store, 0, 60000);
    return NULL;
}

static void note_change(void *context, uint64_t change, uint64_t marks)
{
    (void)marks;
    *(uint64_t *)context = change;
}

START_TEST(waiters_and_watches_are_told_of_commits_that_changed_something)
{
    int watch;
    uint64_t seen = 0, waited = 0;
    ck_assert_int_eq(weir_store_watch(fixture.store, note_change, &seen, &watch, NULL), WEIR_OK);
    ck_assert_uint_eq(weir_store_wait(fixture.store, 0, 0), 0);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_change, &waited);
    int64_t n;
    fixture_write(&fixture, count, &n); /* Changes nothing. */
    ck_assert_uint_eq(weir_store_change(fixture.store), 0);
    fixture_write(&fixture, put, &(struct put){.key = "a"});
    pthread_join(thread, NULL);
    ck_assert_uint_eq(waited, 1);
    weir_store_unwatch(fixture.store, watch);
    ck_assert_uint_eq(seen, 1);
    fixture_write(&fixture, put, &(struct put){.key = "b"});
    ck_assert_uint_eq(weir_store_change(fixture.store), 2);
    ck_assert_uint_eq(seen, 1);
}

END_TEST

START_TEST(there_is_a_limit_to_watches)
{
    int watch;
    uint64_t seen;
    for (int i = 0; i < WEIR_STORE_WATCHES_MAX; i++) {
        ck_assert_int_eq(weir_store_watch(fixture.store, note_change, &seen, &watch, NULL),
                         WEIR_OK);
    }
    ck_assert_int_eq(weir_store_watch(fixture.store, note_change, &seen, &watch, NULL),
                     WEIR_ERR_LIMIT);
}

END_TEST

START_TEST(a_second_server_on_the_same_file_is_refused)
{
    struct weir_store *second;
    ck_assert_int_eq(
        weir_store_open(&(struct weir_store_config){.path = fixture.path}, &second, &fixture.err),
        WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, fixture.path));
}

END_TEST

static weir_status many_statements(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    /* More than the cache holds, some left open: all of them must still work. */
    for (int i = 0; i < 600; i++) {
        char sql[64];
        struct weir_stmt *stmt;
        bool has_row;
        (void)snprintf(sql, sizeof(sql), "SELECT %d", i);
        WEIR_TRY(weir_stmt_open(txn, sql, WEIR_NO_BINDS, &stmt, err));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        ck_assert_int_eq(weir_stmt_int(stmt, 0), i);
        if (i % 50 != 0) {
            weir_stmt_close(stmt);
        }
    }
    return WEIR_OK;
}

START_TEST(the_statement_cache_has_a_bound_and_survives_what_is_left_open)
{
    fixture_write(&fixture, many_statements, NULL);
    fixture_write(&fixture, many_statements, NULL);
    fixture_write(&fixture, put, &(struct put){.key = "a"});
    ck_assert_int_eq(rows(), 1);
}

END_TEST

static weir_status many_texts(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql[] = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE"
                              " i < :last) SELECT CASE i WHEN 7 THEN NULL ELSE 'x' || i END FROM n"
                              " WHERE :last >= 0 ORDER BY i";
    char **texts;
    size_t n;
    (void)context;
    MUST(weir_txn_query_texts(txn, sql, WEIR_BINDS(WEIR_BIND_INT("last", 99)), &fixture.arena,
                              &texts, &n, err));
    ck_assert_uint_eq(n, 100);
    for (size_t i = 0; i < n; i++) {
        char expected[32];
        (void)snprintf(expected, sizeof expected, "x%zu", i);
        ck_assert_pstr_eq(texts[i], i == 7 ? NULL : expected);
    }
    MUST(weir_txn_query_texts(txn, sql, WEIR_BINDS(WEIR_BIND_INT("last", -1)), &fixture.arena,
                              &texts, &n, err));
    ck_assert_uint_eq(n, 0);
    return WEIR_OK;
}

START_TEST(a_column_of_texts_comes_whole_and_in_order)
{
    fixture_read(&fixture, many_texts, NULL);
}

END_TEST

static weir_status wrong_parameter(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, sql_put, WEIR_BINDS(WEIR_BIND_TEXT("kay", "a")), NULL, err);
}

static weir_status take_numbers(struct weir_txn *txn, void *context, struct weir_error *err)
{
    for (int64_t i = 1; i <= 3; i++) {
        int64_t number;
        MUST(weir_txn_next(txn, "tickets", &number, err));
        ck_assert_int_eq(number, *(int64_t *)context + i);
    }
    return WEIR_OK;
}

START_TEST(unknown_parameters_are_refused_and_counters_count_on)
{
    ck_assert_int_eq(weir_store_write(fixture.store, wrong_parameter, NULL, &fixture.err),
                     WEIR_ERR_INTERNAL);
    fixture_write(&fixture, take_numbers, &(int64_t){0});
    fixture_write(&fixture, take_numbers, &(int64_t){3});
}

END_TEST

WEIR_TEST_MAIN_WITH("store", set_up, tear_down, what_was_written_is_there_after_opening_again,
                    a_transaction_that_fails_leaves_nothing_and_says_why,
                    what_is_tried_is_undone_and_nobody_is_told,
                    pages_are_not_copied_before_they_change_unless_one_is_to_be_undone,
                    those_that_wait_together_end_as_if_alone,
                    a_transaction_is_undone_however_much_it_has_changed,
                    threads_that_write_at_once_each_get_their_own_result,
                    transactions_that_wait_together_share_commits_and_a_full_queue_refuses,
                    a_reader_keeps_its_snapshot_while_others_write,
                    writing_while_reading_and_nesting_are_refused,
                    waiters_and_watches_are_told_of_commits_that_changed_something,
                    there_is_a_limit_to_watches, a_second_server_on_the_same_file_is_refused,
                    a_column_of_texts_comes_whole_and_in_order,
                    the_statement_cache_has_a_bound_and_survives_what_is_left_open,
                    unknown_parameters_are_refused_and_counters_count_on)
