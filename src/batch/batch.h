/**
 * Batch: the answers of a model for every picture of a dataset version, as files.
 *
 * Some tasks do it together, each some of the shards (shards.h). A task reads its pictures (input.h),
 * computes them in batches (model.h), and makes each shard once (results.h); what is there when it
 * starts, it leaves. The task that finds all shards there writes their manifest (manifest.h).
 *
 * A shard's batches begin with the shard, and every task computes with as many threads: so its bytes do
 * not depend on how many tasks there are, nor on who was killed meanwhile.
 */
#ifndef WEIR_BATCH_BATCH_H
#define WEIR_BATCH_BATCH_H

#include "batch/spec.h"

/**
 * Does the task's part.
 *
 * @return Errors of input, model and results; CONFLICT: the results are of another prediction. What is
 *         done stays, and the next call goes on from there. A picture that cannot be read is a row.
 */
weir_status batch_task_run(const struct batch_spec *spec, struct weir_error *err) WEIR_MUST_CHECK;

/** `weir-worker batch-predict --spec FILE`: exit status. */
int weir_batch_main(int argc, char **argv);

#endif
