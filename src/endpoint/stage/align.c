#include "endpoint/stage/align.h"

#include "endpoint/stage.h"

static const struct weir_option options[] = {
    {.name = "by",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct weir_stage_align, by),
     .fallback = "points",
     .words = WEIR_WORDS("points", "box"),
     .doc = "points: eyes, nose and mouth are brought to where recognisers expect them, where the "
            "detector gives them; box: the box is cut"},
    WEIR_OPT_JSON(weir_stage_align, left, "left", F64, 0, "0", 0, 1,
                  "Of a cut by the box: where its left edge lies, as a share of the cut's width"),
    WEIR_OPT_JSON(weir_stage_align, top, "top", F64, 0, "0", 0, 1,
                  "Where its upper edge lies, as a share of the cut's height"),
    WEIR_OPT_JSON(weir_stage_align, right, "right", F64, 0, "1", 0, 1,
                  "Where its right edge lies, as a share of the cut's width"),
    WEIR_OPT_JSON(weir_stage_align, bottom, "bottom", F64, 0, "1", 0, 1,
                  "Where its lower edge lies, as a share of the cut's height"),
};

static const struct weir_stage_facts facts = {.takes = WEIR_STAGE_TAKES(OBJECTS),
                                              .gives = WEIR_STAGE_FACES};

const struct weir_kind weir_stage_align_kind = {
    .name = "align",
    .doc = "Each face is cut out, upright, as large as the model wants it.",
    WEIR_KIND_OPTIONS(weir_stage_align, options),
    .ops = &facts,
};
