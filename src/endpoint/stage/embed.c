#include "endpoint/stage.h"

static const struct weir_stage_facts facts = {.takes = WEIR_STAGE_TAKES(PICTURE) |
                                                       WEIR_STAGE_TAKES(FACES),
                                              .gives = WEIR_STAGE_EMBEDDING,
                                              .model = WEIR_STAGE_MODEL_EMBEDS};

const struct weir_kind weir_stage_embed_kind = {
    .name = "embed",
    .doc = "The model makes a vector of the picture; one that was trained with `loss: margin`.",
    .ops = &facts,
};
