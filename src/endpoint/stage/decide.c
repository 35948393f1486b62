#include "endpoint/stage.h"

static const struct weir_stage_facts facts = {
    .takes = WEIR_STAGE_TAKES(FINDING) | WEIR_STAGE_TAKES(TRACK), .gives = WEIR_STAGE_DECISION};

const struct weir_kind weir_stage_decide_kind = {
    .name = "decide",
    .doc = "Of a person: grant or deny by the ION's lists, unknown below the threshold. Of a "
           "label: label, or unknown. Of what is counted: label.",
    .ops = &facts,
};
