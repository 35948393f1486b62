/**
 * Outbox: decisions on their way out, durable before anyone hears of them.
 *
 *     outbox_open(&config, &outbox, err);                 // what an earlier process left is there
 *     outbox_put(outbox, &item);                          // the engine; returns at once
 *     … on_durable(context, tickets, n)                   // the writer, after fdatasync
 *     outbox_reader_next(reader, 200, 1000, &batch, err); // each consumer (consumer.h)
 *     outbox_reader_done(reader);
 *
 * One writer thread takes what was put since its last write, finishes pictures, appends the records
 * as one group and syncs once. While the disk is full it tries again every 200 ms, keeps
 * everything, logs at most once in 10 s, and outbox_put waits once OUTBOX_QUEUE_MAX decisions are
 * queued. Pictures beyond OUTBOX_QUEUE_PICTURE_BYTES are dropped, their decisions are not.
 *
 * A reader has a name and a place in the log, kept in DIR/<name>.position. It is meant to save
 * its place once a second, so after a kill a reader may see up to a second's decisions again: what
 * it does with them must bear that (the server knows the frames' keys; sink/jsonl.h looks at its
 * file).
 *
 * The newest OUTBOX_REMEMBERED decisions are remembered by the keys of their frames; segments of the log are
 * kept while they hold one of these, or something a reader has not read.
 */
#ifndef WEIR_PREDICT_OUTBOX_H
#define WEIR_PREDICT_OUTBOX_H

#include "base/json.h"
#include "base/status.h"
#include "data/image.h"
#include "predict/decision.h"
#include "predict/pictures.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTBOX_QUEUE_MAX           256
#define OUTBOX_QUEUE_PICTURE_BYTES ((size_t)64 << 20)
#define OUTBOX_REMEMBERED          65536

struct outbox;

/** Decisions are durable. On the writer's thread; must not block for long, nor call outbox_put. */
typedef void (*outbox_durable_fn)(void *context, void *const *tickets, size_t n);

struct outbox_config {
    const char *dir;
    size_t segment_bytes; /**< 0: OUTBOX_SEGMENT_BYTES. */
    size_t n_remembered;  /**< 0: OUTBOX_REMEMBERED. */
    outbox_durable_fn on_durable;
    void *context;
    struct pictures *pictures; /**< Where pictures go; NULL: none are kept. Borrowed. */
};

/** One decision, handed over: the outbox frees it and the picture. */
struct outbox_item {
    /** What it borrows lives until it is durable. Its image is of the picture. */
    struct decision *decision;
    uint64_t received_ns;
    struct weir_image picture; /**< Kept as a small JPEG, a film behind it; zeroed: none. */
    void *ticket;              /**< Given to on_durable. */
};

/** @return also CONFLICT if another process has the folder. */
weir_status outbox_open(const struct outbox_config *config, struct outbox **out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Writes what is queued (not waiting for a full disk for more than a second) and stops. */
void outbox_close(struct outbox *outbox);

/** Queue a decision; waits while the queue is full. Any thread. */
void outbox_put(struct outbox *outbox, struct outbox_item *item);

/** The durable decision about the frame of this key, a new reference; NULL if none is remembered. Any thread.
 */
json_t *outbox_find(struct outbox *outbox, const char *key);

/** Wait until everything put so far is durable, at most timeout_ms. */
bool outbox_flush(struct outbox *outbox, int64_t timeout_ms);

struct outbox_counts {
    uint64_t n_durable; /**< Since it was opened. */
    /** Time of the oldest decision that a reader has been given and has not dealt with; 0: none. */
    int64_t oldest_ms;
    char oldest_reader[32]; /**< Whose. */
};

/** Any thread. */
void outbox_counts(struct outbox *outbox, struct outbox_counts *out);

struct outbox_reader;

/** A reader by name ([a-z0-9-]); each name once. It begins where it was, or at the beginning. */
weir_status outbox_reader_open(struct outbox *outbox, const char *name, struct outbox_reader **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Does not save. */
void outbox_reader_close(struct outbox_reader *reader);

/**
 * The next decisions, at most `max`, as a JSON array (new reference; empty if all were damaged);
 * waits up to timeout_ms for the first. Called again without outbox_reader_done it gives the same
 * ones (or more).
 * @return TIMEOUT if there is none, CANCELLED after outbox_reader_cancel (when there is none).
 */
weir_status outbox_reader_next(struct outbox_reader *reader, size_t max, int64_t timeout_ms,
                               json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** What the last outbox_reader_next gave has been dealt with. */
void outbox_reader_done(struct outbox_reader *reader);

/** The place has moved and was last saved a second ago or more. */
bool outbox_reader_is_due(const struct outbox_reader *reader);

/** Save the place, and with it a number of the caller's (0 before the first), in one step. Failure
 *  is logged: the reader then sees more again after a restart. */
void outbox_reader_save(struct outbox_reader *reader, int64_t note);
int64_t outbox_reader_note(const struct outbox_reader *reader);

/** When the place was last saved, by the time of its file; 0: never. */
int64_t outbox_reader_saved_ms(const struct outbox_reader *reader);

/** Waits end at once from now on. Any thread. */
void outbox_reader_cancel(struct outbox_reader *reader);

#endif
