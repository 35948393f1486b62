/** Tests: a transaction that holds the store's writer, so that others pile up behind it. */
#ifndef WEIR_STORE_TEST_GATE_H
#define WEIR_STORE_TEST_GATE_H

#include "base/test_main.h"
#include "store/store.h"

#include <pthread.h>
#include <semaphore.h>

struct gate {
    struct weir_store *store;
    pthread_t thread;
    sem_t is_inside, may_leave;
};

static inline weir_status gate_hold(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)txn;
    (void)err;
    struct gate *gate = context;
    sem_post(&gate->is_inside);
    sem_wait(&gate->may_leave);
    return WEIR_OK;
}

static inline void *gate_main(void *context)
{
    struct gate *gate = context;
    ck_assert_int_eq(weir_store_write(gate->store, gate_hold, gate, NULL), WEIR_OK);
    return NULL;
}

/** Returns when the writer is held. */
static inline void gate_shut(struct gate *gate, struct weir_store *store)
{
    gate->store = store;
    sem_init(&gate->is_inside, 0, 0);
    sem_init(&gate->may_leave, 0, 0);
    ck_assert_int_eq(pthread_create(&gate->thread, NULL, gate_main, gate), 0);
    sem_wait(&gate->is_inside);
}

static inline void gate_open(struct gate *gate)
{
    sem_post(&gate->may_leave);
    pthread_join(gate->thread, NULL);
    sem_destroy(&gate->is_inside);
    sem_destroy(&gate->may_leave);
}

#endif
