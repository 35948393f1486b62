/**
 * What a model version's training data looked like, feature by feature (stats/feature.h): a JSON
 * object that any training can attach to the version it made, whatever trained it. Weir's own image
 * models carry theirs in the file (docs/reference/model-file.md).
 */
#ifndef WEIR_TRACK_MODEL_BASELINE_H
#define WEIR_TRACK_MODEL_BASELINE_H

#include "base/record.h"

struct weir_model_baseline {
    char *version; /**< Identifier of the model version. */
    char *baseline;
    char *actor;
    int64_t time_ms;
};

/** Table model_baselines; one of a version, replaced when attached again (weir_txn_upsert). */
extern const struct weir_resource weir_model_baseline_resource;

#endif
