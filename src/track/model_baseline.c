#include "track/model_baseline.h"

// clang-format off
static const struct weir_field model_baseline_fields[] = {
    WEIR_FIELD(weir_model_baseline, version,  TEXT, WEIR_FIELD_KEY, "", "Identifier of the model version"),
    WEIR_FIELD(weir_model_baseline, baseline, JSON, WEIR_FIELD_REQUIRED, "", "What training's features looked like: {features: {NAME: {kind, histogram or counts}}}"),
    WEIR_FIELD(weir_model_baseline, actor,    TEXT, WEIR_FIELD_READ_ONLY, "", "Who attached it"),
    WEIR_FIELD(weir_model_baseline, time_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_model_baseline_resource =
    WEIR_RESOURCE("model baseline", "model_baselines", weir_model_baseline, model_baseline_fields);
