#include "store/writer.h"

#include "base/deadline.h"
#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/** Transactions made durable together. */
#define GROUP_MAX 128

/** A transaction that waits; lies on its caller's stack until it is done. */
struct request {
    weir_txn_fn fn;
    void *context;
    const struct weir_row_scope *scope; /**< NULL: it sees all. */
    bool is_trial;
    struct weir_error *err;
    weir_status status;
    uint64_t marks; /**< Of its last run. */
    bool is_done;
    pthread_cond_t done;
    struct request *next;
};

struct watch {
    weir_store_watch_fn fn; /**< NULL: free. */
    void *context;
};

/** `connection` belongs to the thread; everything else is protected by `mutex`. */
struct writer {
    struct connection connection;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t submitted; /**< The queue is not empty, or is_stopping. */
    pthread_cond_t changed;   /**< `change` or n_wakes has grown. */
    pthread_cond_t notified;  /**< is_notifying has become false. */
    struct request *head, *tail;
    size_t n_queued, max_queue;
    bool is_stopping;
    uint64_t change;
    uint64_t n_wakes;
    struct watch watches[WEIR_STORE_WATCHES_MAX];
    bool is_notifying; /**< Watch functions are running. */
};

static bool is_in_transaction(const struct connection *connection)
{
    return connection->ops->is_in_transaction(connection->db);
}

static int64_t n_changes(const struct connection *connection)
{
    return connection->ops->n_changes(connection->db);
}

/* Of a group that came to nothing: is it the database's fault, and not that of what was asked? */
static void note_failure(const struct connection *connection, const struct weir_error *error)
{
    bool is_disk = error->status == WEIR_ERR_NOSPACE || error->status == WEIR_ERR_IO ||
                   error->status == WEIR_ERR_CORRUPT;
    if (is_disk && connection->pulse != NULL) {
        pulse_failed(connection->pulse, error);
    }
}

static void fail_all(struct request **group, size_t n, const struct weir_error *error)
{
    for (size_t i = 0; i < n; i++) {
        group[i]->status = error->status;
        if (group[i]->err != NULL) {
            *group[i]->err = *error;
        }
    }
}

static void run_fn(struct connection *connection, struct request *request)
{
    struct weir_txn txn = {.connection = connection, .scope = request->scope};
    request->status = txn_run(&txn, request->fn, request->context, request->err);
    request->marks = txn.marks;
}

static bool is_to_be_undone(const struct request *request)
{
    return request->status != WEIR_OK || request->is_trial;
}

/** What became of the database transaction that a group runs in. */
enum group_end {
    GROUP_GOES_ON,
    GROUP_COMMITTED,
    GROUP_UNDONE, /**< One that is to be undone has written, behind no savepoint. */
    GROUP_FAILED, /**< The database failed: the statuses are undefined. */
};

/** Run one transaction behind a savepoint, and undo it alone if it is to be. */
static enum group_end run_behind_savepoint(struct connection *connection, struct request *request)
{
    request->status = connection_run(connection, DB_SAVE, request->err);
    if (request->status != WEIR_OK) {
        return GROUP_FAILED;
    }
    run_fn(connection, request);
    if (!is_in_transaction(connection)) {
        return GROUP_FAILED;
    }
    if (!is_to_be_undone(request)) {
        request->status = connection_run(connection, DB_RELEASE, request->err);
        return request->status == WEIR_OK ? GROUP_GOES_ON : GROUP_FAILED;
    }
    return connection->ops->run(connection->db, DB_UNDO) == DB_OK ? GROUP_GOES_ON : GROUP_FAILED;
}

/** Run one transaction. It cannot be undone alone; but then most of those that fail have written nothing. */
static enum group_end run_plain(struct connection *connection, struct request *request)
{
    int64_t n_before = n_changes(connection);
    run_fn(connection, request);
    if (!is_in_transaction(connection)) {
        return GROUP_FAILED;
    }
    bool has_written = n_changes(connection) != n_before;
    return is_to_be_undone(request) && has_written ? GROUP_UNDONE : GROUP_GOES_ON;
}

/**
 * Run a group in one database transaction and commit it.
 * @param has_savepoints  Each can be undone alone, for a copy of every page that it changes.
 * @return GROUP_COMMITTED; or it came to nothing: GROUP_UNDONE, and for GROUP_FAILED `error` says why.
 */
static enum group_end run_group(struct connection *connection, struct request **group, size_t n,
                                bool has_savepoints, struct weir_error *error)
{
    int64_t n_before = n_changes(connection);
    *error = (struct weir_error){0};
    if (connection_run(connection, DB_WRITE, error) != WEIR_OK) {
        return GROUP_FAILED;
    }
    enum group_end end = GROUP_GOES_ON;
    for (size_t i = 0; i < n && end == GROUP_GOES_ON; i++) {
        if (group[i]->err != NULL) {
            *group[i]->err = (struct weir_error){0};
        }
        end = has_savepoints ? run_behind_savepoint(connection, group[i])
                             : run_plain(connection, group[i]);
        if (end == GROUP_FAILED) {
            if (group[i]->status != WEIR_OK && group[i]->err != NULL) {
                *error = *group[i]->err;
            }
            if (error->status == WEIR_OK) {
                (void)weir_error_set(error,
                                     group[i]->status != WEIR_OK ? group[i]->status : WEIR_ERR_IO,
                                     "the database undid the transaction");
            }
        }
    }
    if (end == GROUP_GOES_ON) {
        bool has_changed = n_changes(connection) != n_before;
        bool is_counted = !has_changed || pulse_count_commit(connection, error) == WEIR_OK;
        end = is_counted && connection_run(connection, DB_COMMIT, error) == WEIR_OK
                  ? GROUP_COMMITTED
                  : GROUP_FAILED;
    }
    if (end != GROUP_COMMITTED) {
        connection_rollback(connection);
    }
    return end;
}

/** A group of one needs no savepoint: to undo it is to undo all. */
static void run_alone(struct connection *connection, struct request *request)
{
    struct weir_error error;
    if (run_group(connection, &request, 1, false, &error) == GROUP_FAILED) {
        note_failure(connection, &error);
        fail_all(&request, 1, &error);
    }
}

/**
 * All at once, without savepoints. If one that is to be undone has written, all again behind savepoints; if the
 * database fails, one by one, so that one too large does not fail its neighbours.
 */
static void run_all(struct connection *connection, struct request **group, size_t n)
{
    struct weir_error error;
    if (n == 1) {
        run_alone(connection, group[0]);
        return;
    }
    enum group_end end = run_group(connection, group, n, false, &error);
    if (end == GROUP_UNDONE) {
        end = run_group(connection, group, n, true, &error);
    }
    if (end != GROUP_COMMITTED) {
        weir_log(WEIR_LOG_DEBUG, "store_group_failed", WEIR_KV_STR("error", error.message));
        for (size_t i = 0; i < n; i++) {
            run_alone(connection, group[i]);
        }
    }
}

/** Call the watches, under no lock. Enters and leaves with the mutex held. */
static void notify(struct writer *writer, uint64_t marks)
{
    struct watch watches[WEIR_STORE_WATCHES_MAX];
    uint64_t change = writer->change;
    memcpy(watches, writer->watches, sizeof(watches));
    writer->is_notifying = true;
    pthread_mutex_unlock(&writer->mutex);
    for (size_t i = 0; i < WEIR_STORE_WATCHES_MAX; i++) {
        if (watches[i].fn != NULL) {
            watches[i].fn(watches[i].context, change, marks);
        }
    }
    pthread_mutex_lock(&writer->mutex);
    writer->is_notifying = false;
    pthread_cond_broadcast(&writer->notified);
}

static size_t take_group(struct writer *writer, struct request *group[GROUP_MAX])
{
    size_t n = 0;
    while (writer->head != NULL && n < GROUP_MAX) {
        group[n++] = writer->head;
        writer->head = writer->head->next;
        writer->n_queued--;
    }
    if (writer->head == NULL) {
        writer->tail = NULL;
    }
    return n;
}

static void *writer_main(void *context)
{
    struct writer *writer = context;
    struct request *group[GROUP_MAX];
    pthread_mutex_lock(&writer->mutex);
    for (;;) {
        while (writer->head == NULL && !writer->is_stopping) {
            pthread_cond_wait(&writer->submitted, &writer->mutex);
        }
        if (writer->head == NULL) {
            break;
        }
        size_t n = take_group(writer, group);
        pthread_mutex_unlock(&writer->mutex);

        int64_t n_before = n_changes(&writer->connection);
        run_all(&writer->connection, group, n);
        bool has_committed = false;
        uint64_t marks = 0;
        for (size_t i = 0; i < n; i++) {
            bool is_committed = group[i]->status == WEIR_OK && !group[i]->is_trial;
            has_committed = has_committed || is_committed;
            marks |= is_committed ? group[i]->marks : 0;
        }
        /* Rows that were written and undone count too: a watch may look and find nothing new. */
        bool has_changed = has_committed && n_changes(&writer->connection) != n_before;

        if (has_changed && writer->connection.pulse != NULL) {
            pulse_wrote(writer->connection.pulse);
            pulse_note_end(writer->connection.pulse, &writer->connection);
        }
        pthread_mutex_lock(&writer->mutex);
        if (has_changed) {
            writer->change++;
            pthread_cond_broadcast(&writer->changed);
        }
        for (size_t i = 0; i < n; i++) {
            group[i]->is_done = true;
            pthread_cond_signal(&group[i]->done);
        }
        if (has_changed) {
            notify(writer, marks);
        }
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

weir_status writer_start(struct connection *connection, size_t max_queue, struct writer **out,
                         struct weir_error *err)
{
    struct writer *writer = calloc(1, sizeof(*writer));
    if (writer == NULL) {
        connection_close(connection);
        return weir_error_set(err, WEIR_ERR_NOMEM, "starting the writer: out of memory");
    }
    writer->connection = *connection;
    writer->max_queue = max_queue;
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->submitted, NULL);
    pthread_cond_init(&writer->notified, NULL);
    pthread_cond_init(&writer->changed, NULL);
    int error = pthread_create(&writer->thread, NULL, writer_main, writer);
    if (error != 0) {
        connection_close(&writer->connection);
        free(writer);
        return weir_error_set_errno(err, error, "starting the writer");
    }
    *out = writer;
    return WEIR_OK;
}

void writer_stop(struct writer *writer)
{
    if (writer == NULL) {
        return;
    }
    pthread_mutex_lock(&writer->mutex);
    writer->is_stopping = true;
    pthread_cond_signal(&writer->submitted);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    connection_close(&writer->connection);
    pthread_cond_destroy(&writer->changed);
    pthread_cond_destroy(&writer->notified);
    pthread_cond_destroy(&writer->submitted);
    pthread_mutex_destroy(&writer->mutex);
    free(writer);
}

weir_status writer_submit(struct writer *writer, const struct weir_row_scope *scope, weir_txn_fn fn,
                          void *context, bool is_trial, struct weir_error *err)
{
    struct request request = {
        .fn = fn, .context = context, .scope = scope, .is_trial = is_trial, .err = err};
    pthread_mutex_lock(&writer->mutex);
    if (writer->n_queued >= writer->max_queue) {
        pthread_mutex_unlock(&writer->mutex);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "the store is busy: %zu transactions wait; try again",
                              writer->max_queue);
    }
    pthread_cond_init(&request.done, NULL);
    if (writer->tail != NULL) {
        writer->tail->next = &request;
    } else {
        writer->head = &request;
    }
    writer->tail = &request;
    writer->n_queued++;
    pthread_cond_signal(&writer->submitted);
    while (!request.is_done) {
        pthread_cond_wait(&request.done, &writer->mutex);
    }
    pthread_mutex_unlock(&writer->mutex);
    pthread_cond_destroy(&request.done);
    return request.status;
}

uint64_t writer_change(struct writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    uint64_t change = writer->change;
    pthread_mutex_unlock(&writer->mutex);
    return change;
}

uint64_t writer_wait(struct writer *writer, uint64_t after, int64_t timeout_ms)
{
    struct timespec deadline = weir_deadline_after(timeout_ms);
    pthread_mutex_lock(&writer->mutex);
    uint64_t n_wakes = writer->n_wakes;
    int error = 0;
    while (writer->change <= after && writer->n_wakes == n_wakes && error == 0) {
        error = weir_cond_wait_until(&writer->changed, &writer->mutex, &deadline);
    }
    uint64_t change = writer->change;
    pthread_mutex_unlock(&writer->mutex);
    return change;
}

void writer_wake(struct writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->n_wakes++;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}

weir_status writer_watch(struct writer *writer, weir_store_watch_fn fn, void *context,
                         int *out_watch, struct weir_error *err)
{
    pthread_mutex_lock(&writer->mutex);
    for (int i = 0; i < WEIR_STORE_WATCHES_MAX; i++) {
        if (writer->watches[i].fn == NULL) {
            writer->watches[i] = (struct watch){fn, context};
            pthread_mutex_unlock(&writer->mutex);
            *out_watch = i;
            return WEIR_OK;
        }
    }
    pthread_mutex_unlock(&writer->mutex);
    return weir_error_set(err, WEIR_ERR_LIMIT, "there are %d watches already",
                          WEIR_STORE_WATCHES_MAX);
}

void writer_unwatch(struct writer *writer, int watch)
{
    pthread_mutex_lock(&writer->mutex);
    writer->watches[watch].fn = NULL;
    while (writer->is_notifying) {
        pthread_cond_wait(&writer->notified, &writer->mutex);
    }
    pthread_mutex_unlock(&writer->mutex);
}
