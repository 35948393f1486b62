#include "endpoint/stage.h"

static const struct weir_stage_facts facts = {
    .takes = WEIR_STAGE_TAKES(EMBEDDING), .gives = WEIR_STAGE_FINDING, .needs_gallery = true};

const struct weir_kind weir_stage_match_kind = {
    .name = "match",
    .doc = "The person of the gallery whose photos the vector is most like, and how much. The "
           "threshold follows from the gallery.",
    .ops = &facts,
};
