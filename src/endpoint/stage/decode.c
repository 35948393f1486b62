#include "endpoint/stage.h"

static const struct weir_stage_facts facts = {.takes = WEIR_STAGE_TAKES(FRAME),
                                              .gives = WEIR_STAGE_PICTURE};

const struct weir_kind weir_stage_decode_kind = {
    .name = "decode",
    .doc = "A frame's bytes become a picture: JPEG, PNG, PGM or PPM. What is none is decided as an "
           "error.",
    .ops = &facts,
};
