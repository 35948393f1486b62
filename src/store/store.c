#include "store/store.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "store/store_private.h"
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READERS_DEFAULT 4
#define READERS_MAX     64
#define QUEUE_DEFAULT   1024

/** Owned by whoever opened it; reader connections are lent to the reading thread. */
struct weir_store {
    int lock_fd;
    struct writer *writer;
    pthread_mutex_t mutex; /**< Protects the two members below. */
    pthread_cond_t freed;  /**< A reader came back. */
    size_t free_readers[READERS_MAX];
    size_t n_free;
    struct connection *readers;
    size_t n_readers;
};

static weir_status open_lock(struct weir_store *store, const char *path, struct weir_error *err)
{
    char lock_path[4096];
    int len = snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
    if (len < 0 || (size_t)len >= sizeof(lock_path)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "database path is longer than %zu bytes",
                              sizeof(lock_path));
    }
    weir_status status = weir_file_lock(lock_path, &store->lock_fd, err);
    if (status == WEIR_ERR_CONFLICT) {
        return weir_error_set(err, status, "database %s: another server has it open", path);
    }
    return status;
}

static weir_status open_connections(struct weir_store *store,
                                    const struct weir_store_config *config, struct weir_error *err)
{
    struct connection writer;
    WEIR_TRY(connection_open(config->path, config->max_bytes, false, &writer, err));
    weir_status status = migrate(&writer, store_migrations, store_n_migrations, err);
    if (status != WEIR_OK) {
        connection_close(&writer);
        (void)weir_error_prefix(err, "database %s: ", config->path);
        return status;
    }
    /* The writer owns its connection from here on, also when starting it fails. */
    WEIR_TRY(writer_start(&writer, config->max_queue != 0 ? config->max_queue : QUEUE_DEFAULT,
                          &store->writer, err));
    size_t n_readers = config->n_readers != 0 ? config->n_readers : READERS_DEFAULT;
    n_readers = WEIR_MIN(n_readers, (size_t)READERS_MAX);
    store->readers = calloc(n_readers, sizeof(*store->readers));
    if (store->readers == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "opening the database: out of memory");
    }
    for (; store->n_readers < n_readers; store->n_readers++) {
        WEIR_TRY(connection_open(config->path, 0, true, &store->readers[store->n_readers], err));
        store->free_readers[store->n_free++] = store->n_readers;
    }
    return WEIR_OK;
}

weir_status weir_store_open(const struct weir_store_config *config, struct weir_store **out,
                            struct weir_error *err)
{
    struct weir_store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "opening the database: out of memory");
    }
    store->lock_fd = -1;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->freed, NULL);
    weir_status status = open_lock(store, config->path, err);
    if (status == WEIR_OK) {
        status = open_connections(store, config, err);
    }
    if (status != WEIR_OK) {
        weir_store_close(store);
        return status;
    }
    *out = store;
    return WEIR_OK;
}

void weir_store_close(struct weir_store *store)
{
    if (store == NULL) {
        return;
    }
    assert(store->n_free == store->n_readers);
    /* Readers first: the last connection to close folds the log back into the file. */
    for (size_t i = 0; i < store->n_readers; i++) {
        connection_close(&store->readers[i]);
    }
    free(store->readers);
    writer_stop(store->writer);
    if (store->lock_fd >= 0) {
        close(store->lock_fd);
    }
    pthread_cond_destroy(&store->freed);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static weir_status refuse_nested(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INTERNAL, "a transaction was begun inside another one");
}

weir_status weir_store_write(struct weir_store *store, weir_txn_fn fn, void *context,
                             struct weir_error *err)
{
    if (txn_is_running()) {
        return refuse_nested(err);
    }
    return writer_submit(store->writer, fn, context, err);
}

weir_status weir_store_read(struct weir_store *store, weir_txn_fn fn, void *context,
                            struct weir_error *err)
{
    if (txn_is_running()) {
        return refuse_nested(err);
    }
    pthread_mutex_lock(&store->mutex);
    while (store->n_free == 0) {
        pthread_cond_wait(&store->freed, &store->mutex);
    }
    size_t i_reader = store->free_readers[--store->n_free];
    pthread_mutex_unlock(&store->mutex);

    struct connection *connection = &store->readers[i_reader];
    struct weir_txn txn = {.connection = connection};
    weir_status status = connection_exec(connection, "BEGIN", err);
    if (status == WEIR_OK) {
        status = txn_run(&txn, fn, context, err);
        (void)sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    }

    pthread_mutex_lock(&store->mutex);
    store->free_readers[store->n_free++] = i_reader;
    pthread_cond_signal(&store->freed);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

uint64_t weir_store_change(struct weir_store *store)
{
    return writer_change(store->writer);
}

uint64_t weir_store_wait(struct weir_store *store, uint64_t after, int64_t timeout_ms)
{
    return writer_wait(store->writer, after, timeout_ms);
}

void weir_store_wake(struct weir_store *store)
{
    writer_wake(store->writer);
}

weir_status weir_store_watch(struct weir_store *store, weir_store_watch_fn fn, void *context,
                             int *out_watch, struct weir_error *err)
{
    return writer_watch(store->writer, fn, context, out_watch, err);
}

void weir_store_unwatch(struct weir_store *store, int watch)
{
    writer_unwatch(store->writer, watch);
}
