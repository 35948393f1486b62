/**
 * The model that a run left: which of its artifacts that is, and what a version made of it says of itself.
 * Each function reads inside the caller's transaction, and changes no rows.
 */
#ifndef WEIR_TRACK_MODEL_OF_RUN_H
#define WEIR_TRACK_MODEL_OF_RUN_H

#include "track/artifact.h"
#include "track/track.h"

/** So many artifacts are looked through, in the order of their paths. */
#define WEIR_MODEL_OF_RUN_FILES_MAX 1000

/**
 * Find the file that can be brought into service: "model.onnx", else another *.onnx, else
 * "model.safetensors", else another *.safetensors; of several the least deep, of these the first.
 *
 * @param path     A file or a folder of the run; "" or NULL: all of it.
 * @param out_why  NULL: *out is the file. Else a part of a sentence, static: why there is none.
 */
weir_status weir_model_of_run_find(struct weir_txn *txn, const char *run, const char *path,
                                   struct weir_arena *arena, struct weir_artifact *out,
                                   const char **out_why, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Let a version say where it comes from. Of run, metrics (the last finite measurements), parameters, dataset
 * and code version, those that the version does not say are the run's; in the arena, or borrowed of the run.
 * Metrics or parameters of over 60 KiB are left out.
 */
weir_status weir_model_of_run_describe(struct weir_txn *txn, const struct weir_run *run,
                                       struct weir_arena *arena, struct weir_model_version *version,
                                       struct weir_error *err) WEIR_MUST_CHECK;

#endif
