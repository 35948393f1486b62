/**
 * Cut: a training's photos as a prediction pipeline would cut them, so that what is learnt looks as what is recognised will.
 *
 * Where the largest face of each photo lies is found once, before the first step, and kept as a map for each sample; a view of the
 * dataset (data/dataset.h) applies it whenever a photo is read. A photo without a face stays whole, as in a gallery. Every rank finds
 * the same: the detector runs on the processor, photo by photo.
 */
#ifndef WEIR_TRAIN_CUT_H
#define WEIR_TRAIN_CUT_H

#include "base/json.h"
#include "base/status.h"

struct train_cut;
struct train_task;

/**
 * Put a view of cut photos in place of task->dataset, if the configuration names a detector; a parameter server,
 * which reads none, gets it without looking at the photos. The log says how many were cut, and names the first that were not.
 *
 * @return INVALID: no photo has a face, or the model learns no embedding; what the detector's file or the server gives; NOMEM.
 *         Cost: a run of the detector for each photo, on task->n_threads threads.
 */
weir_status train_cut_open(struct train_task *task, struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. The task's view goes, and what it showed. */
void train_cut_close(struct train_cut *cut);

/** {"detector", "digest", "detect", "align"}: how it was cut, for the model file and the checkpoint; a new reference. */
json_t *train_cut_describe(const struct train_cut *cut);

#endif
