#include "endpoint/stage/classify.h"

#include "endpoint/stage.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_stage_classify, top, "top", INT, 0, "1", 1, WEIR_STAGE_CLASSIFY_TOP_MAX,
                  "How many of the likeliest labels a decision records, with their probabilities"),
    WEIR_OPT_JSON(weir_stage_classify, threshold, "threshold", F64, 0, "0.5", 0, 1,
                  "Probability from which on the likeliest label counts; below it the verdict is "
                  "unknown"),
    WEIR_OPT_JSON(weir_stage_classify, reject, "reject", TEXT, 0, NULL, 0, 0,
                  "A label of the model that stands for none of the others: its verdict is unknown "
                  "too"),
};

static const struct weir_stage_facts facts = {
    .takes = WEIR_STAGE_TAKES(PICTURE) | WEIR_STAGE_TAKES(OBJECTS) | WEIR_STAGE_TAKES(FACES),
    .gives = WEIR_STAGE_FINDING,
    .model = WEIR_STAGE_MODEL_CLASSIFIES};

const struct weir_kind weir_stage_classify_kind = {
    .name = "classify",
    .doc = "The model's label of the picture and its probability; the labels travel with the "
           "model.",
    WEIR_KIND_OPTIONS(weir_stage_classify, options),
    .ops = &facts,
};
