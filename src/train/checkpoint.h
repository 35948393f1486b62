/**
 * Checkpoints: the state of a training on disk, from which it goes on as if never interrupted.
 *
 * A checkpoint of step N in a folder is `step-<N>.safetensors`: weights and running statistics by
 * name, the optimiser's state, the weights' average, and in its metadata the place in the data, the
 * training's identity and a digest of everything. Parameter servers hold the optimiser's state:
 * each writes `step-<N>.server-<i>.safetensors` first. Worker 0's file, written when all of these
 * exist, makes the checkpoint valid. Files are replaced atomically. The last two checkpoints are
 * kept.
 *
 * All numbers come back bit by bit, so a resumed training ends with the same weights as one that
 * was never interrupted.
 *
 * A training does not wait for the disk: it writes through a saver (saver.h), which takes an
 * *image* of the checkpoint, copies it and writes the copy.
 */
#ifndef WEIR_TRAIN_CHECKPOINT_H
#define WEIR_TRAIN_CHECKPOINT_H

#include "data/data.h"
#include "nn/net_file.h"
#include "nn/optimizer.h"
#include "nn/safetensors.h"
#include "train/average.h"

#define CHECKPOINTS_KEPT 2

/** Where a training stands between two steps. Plain bytes: worker 0 broadcasts it. */
struct train_state {
    uint64_t step;           /**< Number of the next step. */
    struct weir_place place; /**< Where its batch starts. */
    double epoch_loss;       /**< Sums over the pictures of this epoch so far: loss, */
    double epoch_correct;    /**< right answers, */
    double epoch_seen;       /**< pictures. */
    struct weir_net_input input;
    /** Of a training in fp16, as it was last looked at; scale 0: not yet. */
    struct weir_loss_scale loss_scale;
};

/** What is saved and restored besides the state. All borrowed. */
struct checkpoint_parts {
    struct weir_net *net;
    struct weir_optimizer *optimizer;    /**< NULL: parameter servers have its state. */
    const struct train_average *average; /**< Of the weights; NULL or empty: none. */
    const char *identity;                /**< JSON object (struct train_task). */
    int n_servers;
};

/**
 * Restore the newest checkpoint that is whole; damaged ones are skipped with a warning.
 *
 * @return NOT_FOUND if there is none; CONFLICT if it belongs to another training, with the
 *         difference. Net and optimiser are undefined after any other error.
 */
weir_status checkpoint_load(const char *dir, const struct checkpoint_parts *parts,
                            struct train_state *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Elements [first, first + n). */
struct checkpoint_range {
    size_t first, n;
};

/** A server's share: ranges of every state. All shares together are the whole state. */
struct checkpoint_share {
    int i_server;
    const struct checkpoint_range *ranges;
    size_t n_ranges;
};

/**
 * Restore the optimiser's whole state at `step`, from worker 0's file or from the servers' shares,
 * whatever their number.
 */
weir_status checkpoint_load_optimizer(const char *dir, uint64_t step,
                                      struct weir_optimizer *optimizer,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * One file of a checkpoint before it is written. Its fields are read only.
 *
 *     checkpoint_image_take or _take_share: the tensors are the training's
 *     checkpoint_image_move: they are in the caller's memory; the training may go on
 *     checkpoint_image_write, checkpoint_image_fini
 */
struct checkpoint_image {
    uint64_t step;
    int i_server;  /**< Number of the share's server; -1: worker 0's file. */
    int n_servers; /**< Worker 0's file: number of shares that belong to it. */
    struct weir_safetensors_tensor *tensors;
    size_t n_tensors;
    char *state, *identity;
    struct weir_arena arena; /**< Of the texts. */
};

/** Take worker 0's file, or a server's. Call fini in any case. @return NOMEM. */
weir_status checkpoint_image_take(struct checkpoint_image *image,
                                  const struct checkpoint_parts *parts,
                                  const struct train_state *state,
                                  struct weir_error *err) WEIR_MUST_CHECK;
weir_status checkpoint_image_take_share(struct checkpoint_image *image, uint64_t step,
                                        const struct checkpoint_share *share,
                                        const struct weir_optimizer *optimizer,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/** Elements of all tensors together: the room that move needs. */
size_t checkpoint_image_elems(const struct checkpoint_image *image);

/** Copy everything that is borrowed: tensors to `room`, which must outlive the image. */
void checkpoint_image_move(struct checkpoint_image *image, float *room);

/** Do all shares of worker 0's file exist, so that it may be written? */
bool checkpoint_has_shares(const struct checkpoint_image *image, const char *dir);

/** Write it, atomically and durably; worker 0's file also removes checkpoints that are too old. Any
 *  thread, one at a time per folder. */
weir_status checkpoint_image_write(const struct checkpoint_image *image, const char *dir,
                                   struct weir_error *err) WEIR_MUST_CHECK;
void checkpoint_image_fini(struct checkpoint_image *image);

#endif
