/**
 * What happened (events), what needs a person (alerts), what must still be done (outbox), and small
 * settings: the system's own records, written in the transaction that caused them.
 *
 * Events are numbered 1, 2, 3 … in commit order, so "everything after SEQ" is complete.
 *
 * Outbox: a transaction that decides something enqueues the action under a key; enqueuing the same
 * key again changes nothing. One executor takes due actions in order, carries them out (they are
 * idempotent: a crash between doing and marking does them again) and marks them. Delays, leases and
 * retries are at most WEIR_OUTBOX_DELAY_MAX_MS long; a due time further ahead was written before
 * the wall clock was set back, and is due at once.
 */
#ifndef WEIR_STORE_EVENT_H
#define WEIR_STORE_EVENT_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#include <stdbool.h>

struct weir_event {
    int64_t seq;
    int64_t time_ms;
    char *topic;    /**< "ions", "jobs", "runs", "alerts", "audit" … */
    char *kind;     /**< "model_promoted" */
    char *severity; /**< "info", "warning", "error": by the kind (weir_event_severity). */
    char *subject;  /**< "ion/building-security" */
    char *project;  /**< Whose the subject was when it happened; NULL: the platform's. */
    char *actor;    /**< User, or "system". */
    char *message;  /**< A sentence. */
    char *data;     /**< JSON or NULL. */
    int64_t chain;  /**< Of the audit: number in its chain (store/chain.h); else 0. */
    char *hash;     /**< Of the audit: of this row behind the one before; else NULL. */
};

struct weir_alert {
    char *id;
    char *key;      /**< One alert that is not resolved per key. */
    char *severity; /**< "info", "warning", "critical" */
    char *kind;     /**< One of store/alert_kind.h. */
    char *subject;
    char *project; /**< Whose the subject was when it was raised last; NULL: the platform's. */
    char *message;
    char *data;    /**< JSON or NULL. */
    char *state;   /**< "open", "acknowledged", "resolved" */
    int64_t count; /**< How often it was raised. */
    int64_t raised_ms;
    int64_t last_ms;
    char *acknowledged_by;
    int64_t acknowledged_ms;
    char *acknowledged_note;
    char *silence;       /**< That holds it back; NULL: none does. */
    int64_t silenced_ms; /**< Until then. */
    char *resolved_by;   /**< A person; NULL: its cause was gone. */
    int64_t resolved_ms;
    bool is_sandbox; /**< Of an ION that is a sandbox: nobody is told. */
};

struct weir_outbox {
    int64_t seq;
    char *key;     /**< Idempotency key. */
    char *kind;    /**< "start_training" … */
    char *payload; /**< JSON. */
    char *state;   /**< "pending", "done", "failed" */
    int64_t attempts;
    int64_t due_ms; /**< Not before; while taken: when the lease ends. */
    char *error;    /**< Of the last attempt. */
    int64_t created_ms;
    int64_t done_ms;
};

struct weir_setting {
    char *key;
    char *value; /**< JSON. */
    int64_t updated_ms;
};

extern const struct weir_resource weir_event_resource;
extern const struct weir_resource weir_alert_resource;
extern const struct weir_resource weir_outbox_resource;
extern const struct weir_resource weir_setting_resource;

/**
 * How much an event of this kind matters: "error" if something was not done, "warning" if somebody
 * should look, else "info". One table for all events, in event.c.
 */
const char *weir_event_severity(const char *kind);

/**
 * Append, also about what is out of the transaction's scope. `event->seq`, `severity`, `chain` and `hash` are
 * not read; project NULL: the subject's, if it is there. out_seq may be NULL.
 */
weir_status weir_event_append(struct weir_txn *txn, const struct weir_event *event,
                              int64_t *out_seq, struct weir_error *err) WEIR_MUST_CHECK;

struct weir_query;

/**
 * As weir_txn_list, by number. In a scope of which no subject is asked, no event of other projects is looked at: each
 * project's lie together.
 */
weir_status weir_events_list(struct weir_txn *txn, const struct weir_query *query,
                             struct weir_arena *arena, void **out_items, size_t *out_n,
                             char **out_next, struct weir_error *err) WEIR_MUST_CHECK;

/*
 * A new alert, and one that is acknowledged or resolved, is told to the rules of domain `notify` by a
 * mark on its row, set in the same transaction: column `looked` is 0 until they have looked. What is
 * raised again is only counted: nobody is told again.
 */

/**
 * Raise an alert: a new one, or, if one with its key is not resolved, that one's count, last_ms,
 * kind, severity, subject, message and data are brought up to date. Read: id (for a new one), key, severity (NULL: its
 * kind's), kind, subject, message, data. *out_is_new may be NULL. It may be about what is out of the
 * transaction's scope; so may those that weir_alert_resolve and weir_alert_look_again find.
 */
weir_status weir_alert_raise(struct weir_txn *txn, const struct weir_alert *alert, int64_t now_ms,
                             bool *out_is_new, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Somebody looks after it. `note` may be NULL.
 * @return NOT_FOUND; CONFLICT if it is resolved. Acknowledging again changes nothing.
 */
weir_status weir_alert_acknowledge(struct weir_txn *txn, const char *id, const char *actor,
                                   const char *note, int64_t now_ms,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A person says that it is over.
 * @return NOT_FOUND; CONFLICT if it is resolved, or if the server's watch sees its cause and would
 *         raise it again.
 */
weir_status weir_alert_end(struct weir_txn *txn, const char *id, const char *actor, int64_t now_ms,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Resolve the alert with this key, if there is one: its cause is gone. */
weir_status weir_alert_resolve(struct weir_txn *txn, const char *key, int64_t now_ms,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Have the rules look again at all alerts about the subject, or a part of it (SUBJECT/…), that are not
 * resolved: what it is has changed.
 */
weir_status weir_alert_look_again(struct weir_txn *txn, const char *subject,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** No action is put off for longer. */
#define WEIR_OUTBOX_DELAY_MAX_MS 60000

/** Enqueue an action, due from due_ms on. A key that is there already (in any state): no effect. */
weir_status weir_outbox_add(struct weir_txn *txn, const char *key, const char *kind,
                            const char *payload, int64_t due_ms, int64_t now_ms,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take up to `limit` due actions, oldest first: their attempts count up and they are not given out
 * again before now_ms + lease_ms. Write transaction.
 */
weir_status weir_outbox_take(struct weir_txn *txn, int64_t now_ms, int64_t lease_ms, size_t limit,
                             struct weir_arena *arena, struct weir_outbox **out, size_t *out_n,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** When the next pending action is due; INT64_MAX if there is none. */
weir_status weir_outbox_next_due(struct weir_txn *txn, int64_t now_ms, int64_t *out_ms,
                                 struct weir_error *err) WEIR_MUST_CHECK;

weir_status weir_outbox_done(struct weir_txn *txn, int64_t seq, int64_t now_ms,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The attempt failed: try again at retry_ms, or never (state "failed") if retry_ms is 0. */
weir_status weir_outbox_fail(struct weir_txn *txn, int64_t seq, const char *error, int64_t retry_ms,
                             int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** Make everything that was taken due now: once, when the executor starts. */
weir_status weir_outbox_release(struct weir_txn *txn, int64_t now_ms,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The value as JSON text; NOT_FOUND. */
weir_status weir_setting_get(struct weir_txn *txn, const char *key, struct weir_arena *arena,
                             char **out_value, struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_setting_put(struct weir_txn *txn, const char *key, const char *value,
                             int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

#endif
