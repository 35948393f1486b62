/**
 * TensorBoard: metrics of a training as an event file that TensorBoard shows.
 *
 * An event file is a list of records (TensorFlow's TFRecord): length, its checksum, the bytes, their
 * checksum; the checksums are CRC-32C, masked. The bytes are a protocol buffer Event
 * (tensorflow/core/util/event.proto) with a time, a step and one scalar for each metric. A training that
 * goes on from a checkpoint begins another file in the same folder, with a mark that says from which step
 * on what the files before have is void.
 *
 * Each event is written at once, whole: what reads the file meanwhile, or after a kill, sees all but perhaps
 * the last one. A disk that is full ends the file, not the training. Owned by one thread.
 */
#ifndef WEIR_TRAIN_TENSORBOARD_H
#define WEIR_TRAIN_TENSORBOARD_H

#include "base/status.h"
#include "train/report.h"

struct train_tensorboard;

/**
 * Begin a file "events.out.tfevents.TIME.HOST.PID.N.weir" in a folder, which is made if it is not there.
 * @param step  Of the checkpoint that the training goes on from; 0: it begins again.
 * @return IO, NOSPACE, DENIED, NOMEM.
 */
weir_status train_tensorboard_open(const char *dir, uint64_t step, struct train_tensorboard **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Append the values of a step; one that is no number is kept as such. What fails is logged once. NULL:
 *  nothing. */
void train_tensorboard_add(struct train_tensorboard *board, const struct train_tick *tick);

/** NULL is accepted. */
void train_tensorboard_close(struct train_tensorboard *board);

#endif
