/**
 * Loader: finished batches, decoded ahead by threads, in the order of order.h.
 *
 * A ring of `depth` batches is the only queue: when it is full the threads wait; when it is empty
 * weir_loader_next waits. A batch is the same whatever the number of threads. One loader belongs to
 * one consumer thread; several loaders may share a dataset.
 *
 * Evaluation is {.shuffle = false, .augment = WEIR_AUGMENT_NONE, .tail = WEIR_TAIL_PAD,
 * .n_epochs = 1}: every sample once, then WEIR_ERR_END.
 */
#ifndef WEIR_DATA_LOADER_H
#define WEIR_DATA_LOADER_H

#include "data/augment.h"
#include "data/dataset.h"
#include "data/order.h"

struct weir_loader;

enum weir_on_damage {
    WEIR_ON_DAMAGE_SKIP, /**< Label −1, tensor 0; listed, and logged once per file by all ranks together. */
    WEIR_ON_DAMAGE_FATAL, /**< weir_loader_next of that batch returns the error, naming the file. */
};

struct weir_loader_config {
    struct weir_input input;
    uint32_t batch;      /**< Global batch, over all ranks. */
    uint32_t rank, size; /**< size 0 means 1. */
    uint64_t seed;
    struct weir_place start; /**< {0, 0}, or where a checkpoint stood (weir_batch.next). O(1). */
    uint64_t n_epochs;       /**< END when this epoch number is reached; 0: no end. */
    bool shuffle;
    enum weir_tail tail;
    enum weir_augment augment;
    enum weir_on_damage on_damage;
    unsigned n_threads; /**< Decoding threads; 0: decode inside weir_loader_next. At most 64. */
    unsigned depth;     /**< Batches ahead, 1..64; 0 means 3. */
};

/** One rank's share of a global batch. Pointers are good until the next call on the loader. */
struct weir_batch {
    float *images;     /**< n_slots × C × H × W, normalised; the caller may change them. */
    int32_t *labels;   /**< n_slots; −1 = no sample in this slot. */
    uint64_t *samples; /**< n_slots; sample number, or UINT64_MAX in an empty slot. */
    uint32_t n_slots;  /**< ⌈B/size⌉, equal on all ranks and in all batches. */
    uint32_t n_valid;  /**< Slots of this rank with a label (for weighting the mean over ranks). */
    struct weir_place place; /**< Where the global batch starts. */
    struct weir_place next;  /**< Where the one after it starts: store this in the checkpoint. */
};

/**
 * Start the threads. `dataset` is borrowed until weir_loader_destroy.
 * @return INVALID with a sentence, NOMEM, IO if a thread cannot be started.
 * Cost: depth · ⌈B/size⌉ · c · h · w · 4 bytes.
 */
weir_status weir_loader_create(struct weir_dataset *dataset,
                               const struct weir_loader_config *config, struct weir_loader **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The next batch; waits until it is complete. The previous one is given back.
 * @return END after n_epochs; with ON_DAMAGE_FATAL the error of a damaged file; NOMEM. After an
 *         error every further call returns the same.
 */
weir_status weir_loader_next(struct weir_loader *loader, struct weir_batch *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Stop the threads (each finishes the picture it is at) and free everything. NULL is accepted. */
void weir_loader_destroy(struct weir_loader *loader);

/** How many different files were found damaged so far, and the samples (at most `max`, by number).
 */
size_t weir_loader_damaged(struct weir_loader *loader, uint64_t *out_samples, size_t max);

#endif
