/**
 * Saver: checkpoints written concurrently with the training.
 *
 * Between two steps the training hands over its state: a copy in memory, which is all that it waits
 * for. A thread of low priority then computes the digests and writes the file, atomically and
 * durably. At most one checkpoint is in flight: the next hand-over waits for it first. A caller
 * that must not wait asks train_saver_is_busy, and comes again later.
 *
 * With parameter servers each server has a saver for its share. Worker 0's writes when all shares
 * exist, so that its file never stands for an incomplete checkpoint.
 *
 * A failure in the background (a full disk) is the next call's error.
 *
 * Memory: the copy, as large as the file, from the first checkpoint to the end; and the file once
 * more during a write. One thread calls. A process that is killed leaves the checkpoints that were
 * complete, and at most one unfinished temporary file.
 */
#ifndef WEIR_TRAIN_SAVER_H
#define WEIR_TRAIN_SAVER_H

#include "train/checkpoint.h"

struct train_saver;

/** Start the thread; `dir` is copied. @return NOMEM, IO. */
weir_status train_saver_create(const char *dir, struct train_saver **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Is a checkpoint being written? NULL: no. */
bool train_saver_is_busy(struct train_saver *saver);

/**
 * Take over the checkpoint of state->step, or a server's share of it. It waits for the one in
 * flight, if there is one. The training may go on when it returns.
 *
 * @return NOMEM; the error of an earlier checkpoint, if that failed. Cost: one copy.
 */
weir_status train_saver_save(struct train_saver *saver, const struct checkpoint_parts *parts,
                             const struct train_state *state,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status train_saver_save_share(struct train_saver *saver, uint64_t step,
                                   const struct checkpoint_share *share,
                                   const struct weir_optimizer *optimizer,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Wait until everything taken over is on disk. NULL: at once. @return What failed. */
weir_status train_saver_wait(struct train_saver *saver, struct weir_error *err) WEIR_MUST_CHECK;

/** Finish what is in flight, without waiting for servers' shares, and free everything. NULL is
 *  accepted. */
void train_saver_destroy(struct train_saver *saver);

#endif
