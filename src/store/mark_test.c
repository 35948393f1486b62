/* Whoever watches for marks is told those of what was committed: none is missed, and none comes of what was undone. */
#include "store/store.h"

#include "base/rng.h"
#include "store/store_fixture.h"
#include "store/test_gate.h"

#include <pthread.h>

#define N_ROUNDS  WEIR_TEST_TIMES(60, 20)
#define N_WRITERS 12
#define LOW_HALF  ((uint64_t)0xffffffff)

static const char sql_put[] = "INSERT INTO settings (key, value, updated_ms) VALUES (:key, '1', 0)";

static struct store_fixture fixture;

enum fate { COMMITS, FAILS, IS_TRIED, BREAKS_ITS_GROUP, N_FATES };

/* Each run of its function marks other bits. */
struct writer_of_marks {
    char key[24];
    enum fate fate;
    uint64_t marks[8], last;
    size_t n_runs;
};

static weir_status put_marked(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct writer_of_marks *writer = context;
    writer->last = writer->marks[writer->n_runs++ % 8];
    weir_txn_mark(txn, writer->last & LOW_HALF);
    WEIR_TRY(
        weir_txn_exec(txn, sql_put, WEIR_BINDS(WEIR_BIND_TEXT("key", writer->key)), NULL, err));
    weir_txn_mark(txn, writer->last & ~LOW_HALF);
    if (writer->fate == BREAKS_ITS_GROUP) { /* as a full disk does: the others are run again */
        WEIR_TRY(weir_txn_exec(txn, "ROLLBACK", WEIR_NO_BINDS, NULL, err));
    }
    return writer->fate == FAILS ? weir_error_set(err, WEIR_ERR_CONFLICT, "no") : WEIR_OK;
}

static void *write_marked(void *context)
{
    struct writer_of_marks *writer = context;
    weir_status status = writer->fate == IS_TRIED
                             ? weir_store_try(fixture.store, put_marked, writer, NULL)
                             : weir_store_write(fixture.store, put_marked, writer, NULL);
    ck_assert_int_eq(status == WEIR_OK, writer->fate == COMMITS || writer->fate == IS_TRIED);
    return NULL;
}

static void note_marks(void *context, uint64_t change, uint64_t marks)
{
    (void)change;
    *(uint64_t *)context |= marks;
}

static weir_status do_nothing(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)txn;
    (void)context;
    (void)err;
    return WEIR_OK;
}

static void play_round(struct weir_rng *rng, int round, uint64_t *told)
{
    struct gate gate;
    struct writer_of_marks writers[N_WRITERS] = {0};
    pthread_t threads[N_WRITERS];
    uint64_t expected = 0;
    size_t n = 1 + (size_t)weir_rng_below(rng, N_WRITERS);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(writers[i].key, sizeof writers[i].key, "%d/%zu", round, i);
        writers[i].fate =
            weir_rng_below(rng, 2) == 0 ? COMMITS : (enum fate)weir_rng_below(rng, N_FATES);
        for (size_t k = 0; k < WEIR_ARRAY_LEN(writers[i].marks); k++) {
            writers[i].marks[k] = (uint64_t)1 << weir_rng_below(rng, 64);
        }
    }
    *told = 0;
    gate_shut(&gate, fixture.store);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_marked, &writers[i]), 0);
    }
    gate_open(&gate);
    for (size_t i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        expected |= writers[i].fate == COMMITS ? writers[i].last : 0;
    }
    fixture_write(&fixture, do_nothing, NULL); /* behind the watches of those before */
    ck_assert_msg(*told == expected, "seed %d, round %d: told %llx, committed %llx", 1, round,
                  (unsigned long long)*told, (unsigned long long)expected);
}

START_TEST(marks_are_told_of_what_is_committed_alone)
{
    struct weir_rng rng;
    uint64_t told = 0;
    int watch;
    fixture_make(&fixture, NULL);
    weir_rng_init(&rng, 1, 0);
    ck_assert_int_eq(weir_store_watch(fixture.store, note_marks, &told, &watch, NULL), WEIR_OK);
    for (int round = 0; round < N_ROUNDS; round++) {
        play_round(&rng, round, &told);
    }
    weir_store_unwatch(fixture.store, watch);
    fixture_fini(&fixture);
}

END_TEST

WEIR_TEST_MAIN("mark", marks_are_told_of_what_is_committed_alone)
