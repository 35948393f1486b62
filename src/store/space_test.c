#include "store/space.h"

#include "store/store_fixture.h"

#include <sys/stat.h>

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_make(&fixture, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* 2000 events of a kilobyte each. */
static weir_status fill(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int i = 0; i < 2000; i++) {
        WEIR_TRY(
            weir_txn_exec(txn,
                          "INSERT INTO events (seq, time_ms, topic, kind, message, data) VALUES"
                          " (:seq, 1, 't', 'k', hex(zeroblob(500)), NULL)",
                          WEIR_BINDS(WEIR_BIND_INT("seq", i)), NULL, err));
    }
    return WEIR_OK;
}

static weir_status empty(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "DELETE FROM events", WEIR_NO_BINDS, NULL, err);
}

static weir_status look(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_space(txn, context, err);
}

static weir_status shrink(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_shrink(txn, *(const int64_t *)context, err);
}

START_TEST(free_pages_are_counted_used_again_and_given_back)
{
    struct weir_store_space fresh, full, freed, again, small;
    struct stat info;
    int64_t some = 10, all = 1 << 20;
    fixture_read(&fixture, look, &fresh);
    fixture_write(&fixture, fill, NULL);
    fixture_read(&fixture, look, &full);
    ck_assert(full.can_shrink);
    ck_assert_int_gt(full.bytes, 2000000);
    fixture_write(&fixture, empty, NULL);
    fixture_read(&fixture, look, &freed);
    ck_assert_int_eq(freed.bytes, full.bytes);
    ck_assert_int_gt(freed.free_bytes, 2000000);
    fixture_write(&fixture, fill, NULL);
    fixture_read(&fixture, look, &again);
    ck_assert_int_le(again.bytes, full.bytes + full.bytes / 50);
    fixture_write(&fixture, empty, NULL);
    fixture_read(&fixture, look, &freed);
    fixture_write(&fixture, shrink, &some);
    fixture_read(&fixture, look, &small);
    ck_assert_int_eq(freed.bytes - small.bytes, some * freed.page_bytes);
    fixture_write(&fixture, shrink, &all);
    fixture_read(&fixture, look, &small);
    ck_assert_int_eq(small.free_bytes, 0);
    weir_store_close(fixture.store); /* writes the log into the file */
    fixture.store = NULL;
    ck_assert_int_eq(stat(fixture.path, &info), 0);
    ck_assert_int_eq(info.st_size, small.bytes);
    ck_assert_int_lt(info.st_size, fresh.bytes + 100000);
}

END_TEST

WEIR_TEST_MAIN_WITH("space", set_up, tear_down, free_pages_are_counted_used_again_and_given_back)
