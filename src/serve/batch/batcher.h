/**
 * Batcher: a thread that computes the requests of one loaded model, in batches.
 *
 *     batcher_submit(batcher, &request)  ─▶ queue ─▶ joined ─▶ run ─▶ split ─▶ request.done()
 *
 * What goes together and when is batch_queue.h. Tensors of a batch are joined along their first
 * dimension; a batch of one request is computed from its own tensors, without a copy. Before a batch
 * is computed, requests whose deadline is over get TIMEOUT, and those whose client is gone CANCELLED.
 *
 * One request does not fail for another's input: if a batch of several fails, each is computed alone.
 * If outputs of a batch of several do not have the batch's rows, the model is no batched one: each is
 * computed alone, from then on.
 *
 * Memory: of the requests in the queue, which queue_max bounds, and of one batch.
 */
#ifndef WEIR_SERVE_BATCHER_H
#define WEIR_SERVE_BATCHER_H

#include "base/status.h"
#include "serve/batch/batch_queue.h"
#include "serve/batch/batch_stats.h"
#include "tensor/tensor.h"

#define BATCHER_PORTS_MAX 64

struct batcher;

/** A request: the caller's memory, which stays until done was called. */
struct batch_request {
    struct batch_entry entry; /**< First: the queue's. */
    /** Each of the model's inputs, in order. Borrowed until done. */
    struct weir_tensor *const *in;
    int64_t n_rows;       /**< First dimension of every input; 1 of a model that is not batched. */
    uint64_t deadline_ns; /**< weir_mono_ns; BATCH_NO_DEADLINE: none. */
    /** Has nobody any use for the answer? Called on the batcher's thread. May be NULL. */
    bool (*is_gone)(const struct batch_request *request);
    /** Called once, on the batcher's thread: status, error, out and times are set. It must be quick,
     *  and not stop the batcher. */
    void (*done)(struct batch_request *request);
    void *context;   /**< The caller's. */
    size_t n_inputs; /**< Set when it is submitted. */

    weir_status status;
    struct weir_error error;
    struct weir_tensor *out[BATCHER_PORTS_MAX]; /**< n_outputs references for the caller, if OK. */
    struct batch_times times;
};

/** Compute: one reference for each output, written only on success. */
typedef weir_status (*batch_run_fn)(void *context, struct weir_tensor *const *in,
                                    struct weir_tensor **out, struct weir_error *err);

struct batcher_rules {
    int64_t batch_max; /**< Rows of a batch of several requests; at least 1. */
    uint64_t delay_ns; /**< How long a batch may wait to become full. */
    size_t queue_max;  /**< Requests; at least 1. */
};

/** Rows of one request: what a single batch may take, whatever batch_max is. */
#define BATCHER_ROWS_MAX 65536

struct batcher_config {
    size_t n_inputs, n_outputs; /**< At most BATCHER_PORTS_MAX. */
    bool is_batched;            /**< False: each request alone. */
    struct batcher_rules rules;
    batch_run_fn run; /**< One call at a time. */
    void *context;
};

weir_status batcher_start(const struct batcher_config *config, struct batcher **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Nothing new is taken; what waits is computed and answered. Waits for it. NULL is accepted. */
void batcher_stop(struct batcher *batcher);

/**
 * Any thread. On an error the request was not taken, and done is not called: UNAVAILABLE (the queue
 * is full, or the batcher stops), INVALID (no row), LIMIT (over BATCHER_ROWS_MAX), TIMEOUT (its
 * deadline is over).
 */
weir_status batcher_submit(struct batcher *batcher, struct batch_request *request,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Other rules, for what is taken from now on. Any thread. */
void batcher_set_rules(struct batcher *batcher, const struct batcher_rules *rules);

/** The rules in effect. Any thread. */
void batcher_get_rules(struct batcher *batcher, struct batcher_rules *out);

/** Requests that wait or are computed. Any thread. */
size_t batcher_n_waiting(struct batcher *batcher);

void batcher_stats(struct batcher *batcher, struct batch_stats *out);

#endif
