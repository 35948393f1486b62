#include "notify/sender.h"

#include "base/deadline.h"
#include "base/log.h"
#include "http/post.h"
#include "notify/notify.h"
#include "notify/queue.h"
#include "notify/receiver.h"
#include "store/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MAX_MS        5000
#define TIMEOUT_MS         10000
#define STORE_RETRY_MAX_MS ((int64_t)60000) /* the database does not answer: not more seldom */

/* One thread, and what it sends now. */
struct worker {
    struct weir_sender *sender;
    pthread_t thread;
    struct weir_poster *poster;
    char receiver[WEIR_FIELD_NAME_MAX_BYTES + 1]; /* "": none; under the sender's lock */
    int64_t n_failed;                             /* turns on end that the database made fail */
    bool is_started;
};

struct weir_sender {
    struct weir_store *store;
    const struct weir_clock *clock;
    int64_t timeout_ms;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t generation; /* counts notifications and ends of tries */
    bool is_stopping;
    struct worker workers[WEIR_SENDER_THREADS];
};

/* One turn of a worker: what it found and what became of it. */
struct turn {
    struct worker *worker;
    struct weir_arena *arena;
    int64_t now_ms;
    struct notify_waiting *waiting;
    size_t n_waiting;
    int64_t seq;
    struct weir_alert_delivery delivery;
    struct weir_alert_receiver receiver;
    bool is_taken;      /* there is a receiver to send it to */
    weir_status status; /* of the try */
    const char *error;
};

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct turn *turn = context;
    return notify_queue_list(txn, turn->now_ms, turn->arena, &turn->waiting, &turn->n_waiting, err);
}

static weir_status take_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct turn *turn = context;
    turn->is_taken = false;
    weir_status status =
        notify_queue_take(txn, turn->seq, turn->now_ms, turn->arena, &turn->delivery, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK; /* another thread was quicker */
    }
    WEIR_TRY(status);
    status = weir_txn_get(txn, &weir_alert_receiver_resource, turn->delivery.receiver, turn->arena,
                          &turn->receiver, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return notify_queue_forget(txn, turn->delivery.receiver, turn->now_ms, turn->arena, err);
    }
    turn->is_taken = status == WEIR_OK;
    return status;
}

static weir_status note_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct turn *turn = context;
    bool is_final = turn->status == WEIR_ERR_INVALID || turn->status == WEIR_ERR_UNSUPPORTED;
    if (turn->status == WEIR_OK) {
        return notify_queue_sent(txn, &turn->delivery, turn->now_ms, turn->arena, err);
    }
    if (turn->status == WEIR_ERR_CANCELLED) {
        return notify_queue_give_back(txn, turn->delivery.seq, turn->now_ms, err);
    }
    return notify_queue_failed(txn, &turn->delivery, turn->error, is_final, turn->now_ms,
                               turn->arena, err);
}

static weir_status release_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const int64_t *now_ms = context;
    return notify_queue_release(txn, *now_ms, err);
}

/* ---- one try --------------------------------------------------------------------------------- */

static weir_status try_once(struct turn *turn, struct weir_error *err)
{
    struct worker *worker = turn->worker;
    struct weir_configured receiver;
    WEIR_AUTO(weir_json_auto_free) json_t *options = json_loads(turn->receiver.options, 0, NULL);
    WEIR_AUTO(weir_json_auto_free) json_t *message = json_loads(turn->delivery.message, 0, NULL);
    if (options == NULL || message == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "what is stored is no JSON");
    }
    json_object_set_new(message, "id", json_string(turn->delivery.id));
    WEIR_TRY(
        weir_receiver_read(turn->receiver.kind, options, "$.options", turn->arena, &receiver, err));
    const struct weir_receiver_ops *ops = receiver.kind->ops;
    const struct weir_receiver_send send = {.delivery = turn->delivery.id,
                                            .message = message,
                                            .options = receiver.options,
                                            .poster = worker->poster,
                                            .arena = turn->arena,
                                            .now_ms = turn->now_ms,
                                            .timeout_ms = worker->sender->timeout_ms};
    weir_status status = ops->send(&send, err);
    return status != WEIR_OK && weir_poster_is_stopped(worker->poster) ? WEIR_ERR_CANCELLED
                                                                       : status;
}

static void tell(const struct turn *turn)
{
    if (turn->status == WEIR_OK) {
        weir_log(WEIR_LOG_DEBUG, "alert_sent", WEIR_KV_STR("receiver", turn->delivery.receiver),
                 WEIR_KV_STR("delivery", turn->delivery.id));
    } else if (turn->status != WEIR_ERR_CANCELLED) {
        weir_log(WEIR_LOG_WARN, "alert_not_sent", WEIR_KV_STR("receiver", turn->delivery.receiver),
                 WEIR_KV_STR("delivery", turn->delivery.id),
                 WEIR_KV_INT("attempt", turn->delivery.attempts),
                 WEIR_KV_STR("error", turn->error));
    }
}

/* @return What the database made of it: what the receiver said is noted there. */
static weir_status send_one(struct turn *turn, struct weir_error *err)
{
    struct weir_sender *sender = turn->worker->sender;
    struct weir_error try_err = {0};
    WEIR_TRY(weir_store_write(sender->store, take_in, turn, err));
    if (!turn->is_taken) {
        return WEIR_OK;
    }
    turn->status = try_once(turn, &try_err);
    turn->error = weir_arena_strdup(turn->arena, try_err.message);
    turn->now_ms = weir_clock_now_ms(sender->clock);
    tell(turn);
    return weir_store_write(sender->store, note_in, turn, err); /* else its lease ends */
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool is_busy(const struct weir_sender *sender, const char *receiver)
{
    for (size_t i = 0; i < WEIR_SENDER_THREADS; i++) {
        if (strcmp(sender->workers[i].receiver, receiver) == 0) {
            return true;
        }
    }
    return false;
}

/* Choose what is due and whose receiver nobody serves. @return Whether there is any; else *out_next_ms
 * is when there will be. */
static bool choose(struct turn *turn, int64_t *out_next_ms)
{
    struct weir_sender *sender = turn->worker->sender;
    bool has_one = false;
    *out_next_ms = turn->now_ms + IDLE_MAX_MS;
    pthread_mutex_lock(&sender->lock);
    for (size_t i = 0; i < turn->n_waiting && !has_one; i++) {
        const struct notify_waiting *waiting = &turn->waiting[i];
        if (is_busy(sender, waiting->receiver)) {
            continue; /* whoever serves it wakes the others when it is done */
        }
        if (waiting->due_ms > turn->now_ms) {
            *out_next_ms = WEIR_MIN(*out_next_ms, waiting->due_ms);
            continue;
        }
        has_one = true;
        turn->seq = waiting->seq;
        (void)snprintf(turn->worker->receiver, sizeof turn->worker->receiver, "%s",
                       waiting->receiver);
    }
    pthread_mutex_unlock(&sender->lock);
    return has_one;
}

static void let_go(struct worker *worker)
{
    struct weir_sender *sender = worker->sender;
    pthread_mutex_lock(&sender->lock);
    worker->receiver[0] = '\0';
    sender->generation++;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->lock);
}

/* @return How long to wait; 0: look again at once. With *out_is_failed it is to wait so long whatever
 * changes: the database refused, and would again. */
static int64_t take_turn(struct worker *worker, bool *out_is_failed)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_sender *sender = worker->sender;
    struct turn turn = {
        .worker = worker, .arena = &arena, .now_ms = weir_clock_now_ms(sender->clock)};
    int64_t began_ms = turn.now_ms, next_ms = turn.now_ms;
    weir_arena_init(&arena, 0);
    weir_status status = weir_store_read(sender->store, list_in, &turn, &err);
    bool has_one = status == WEIR_OK && choose(&turn, &next_ms);
    if (has_one) {
        status = send_one(&turn, &err);
        let_go(worker);
    }
    weir_arena_fini(&arena);
    *out_is_failed = status != WEIR_OK;
    worker->n_failed = status != WEIR_OK ? worker->n_failed + 1 : 0;
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "alerts_not_sent", WEIR_KV_STR("error", err.message));
        return WEIR_MIN(notify_retry_ms(worker->n_failed), STORE_RETRY_MAX_MS);
    }
    return has_one ? 0 : WEIR_MAX(next_ms - began_ms, (int64_t)1);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct weir_sender *sender = worker->sender;
    for (;;) {
        bool is_failed;
        pthread_mutex_lock(&sender->lock);
        uint64_t seen = sender->generation;
        bool is_stopping = sender->is_stopping;
        pthread_mutex_unlock(&sender->lock);
        if (is_stopping) {
            return NULL;
        }
        int64_t wait_ms = take_turn(worker, &is_failed);
        struct timespec until = weir_deadline_after(wait_ms);
        pthread_mutex_lock(&sender->lock);
        while (wait_ms > 0 && (is_failed || sender->generation == seen) && !sender->is_stopping &&
               weir_cond_wait_until(&sender->changed, &sender->lock, &until) == 0) {
        }
        pthread_mutex_unlock(&sender->lock);
    }
}

static weir_status start_worker(struct weir_sender *sender, struct worker *worker,
                                struct weir_error *err)
{
    worker->sender = sender;
    WEIR_TRY(weir_poster_open(&worker->poster, err));
    int reason = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (reason != 0) {
        return weir_error_set_errno(err, reason, "cannot start a thread that sends alerts");
    }
    worker->is_started = true;
    return WEIR_OK;
}

weir_status weir_sender_start(const struct weir_sender_config *config, struct weir_sender **out,
                              struct weir_error *err)
{
    struct weir_sender *sender = weir_xalloc(sizeof *sender);
    sender->store = config->store;
    sender->clock = config->clock != NULL ? config->clock : &weir_system_clock;
    sender->timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : TIMEOUT_MS;
    pthread_mutex_init(&sender->lock, NULL);
    pthread_cond_init(&sender->changed, NULL);
    int64_t now_ms = weir_clock_now_ms(sender->clock);
    weir_status status = weir_store_write(sender->store, release_in, &now_ms, err);
    for (size_t i = 0; i < WEIR_SENDER_THREADS && status == WEIR_OK; i++) {
        status = start_worker(sender, &sender->workers[i], err);
    }
    if (status != WEIR_OK) {
        weir_sender_stop(sender);
        weir_sender_destroy(sender);
        return status;
    }
    *out = sender;
    return WEIR_OK;
}

void weir_sender_notify(struct weir_sender *sender)
{
    if (sender == NULL) {
        return;
    }
    pthread_mutex_lock(&sender->lock);
    sender->generation++;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->lock);
}

void weir_sender_stop(struct weir_sender *sender)
{
    if (sender == NULL) {
        return;
    }
    pthread_mutex_lock(&sender->lock);
    sender->is_stopping = true;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->lock);
    for (size_t i = 0; i < WEIR_SENDER_THREADS; i++) {
        if (sender->workers[i].poster != NULL) {
            weir_poster_stop(sender->workers[i].poster);
        }
    }
    for (size_t i = 0; i < WEIR_SENDER_THREADS; i++) {
        if (sender->workers[i].is_started) {
            pthread_join(sender->workers[i].thread, NULL);
            sender->workers[i].is_started = false;
        }
    }
}

void weir_sender_destroy(struct weir_sender *sender)
{
    if (sender == NULL) {
        return;
    }
    for (size_t i = 0; i < WEIR_SENDER_THREADS; i++) {
        weir_poster_close(sender->workers[i].poster);
    }
    pthread_cond_destroy(&sender->changed);
    pthread_mutex_destroy(&sender->lock);
    free(sender);
}
