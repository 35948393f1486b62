#include "vision/detectors.h"

#include "vision/detector_common.h"

#define WEIR_KIND(name) extern const struct weir_kind weir_detector_##name##_kind;
#include "vision/detectors.def"
#undef WEIR_KIND

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_detector_##name##_kind,
#include "vision/detectors.def"
#undef WEIR_KIND
};

static const struct weir_option common[] = {
    WEIR_OPT_JSON(
        detector_common, outputs, "outputs", TEXTS, 0, NULL, 0, 0,
        "Names of the outputs that are decoded, in the kind's order; else by names and shapes"),
    WEIR_OPT_JSON(detector_common, classes, "classes", JSON, 0, NULL, 0, 0,
                  "Numbers of the classes that are looked for; else all. The first is 0, and the "
                  "background is none"),
    {.name = "colours",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct detector_common, colours),
     .doc = "Order of the input's channels; else the kind's",
     .words = WEIR_WORDS("rgb", "bgr")},
    WEIR_OPT_JSON(detector_common, scale, "scale", F64, 0, NULL, 0, 1e6,
                  "What a pixel from 0 to 255 is multiplied with, before mean and std; else the "
                  "kind's"),
    WEIR_OPT_JSON(detector_common, mean, "mean", JSON, 0, NULL, 0, 0,
                  "What is taken from that: a number, or one for each channel; else the kind's"),
    WEIR_OPT_JSON(detector_common, std, "std", JSON, 0, NULL, 0, 0,
                  "What it is divided by then: a number, or one for each channel; else the kind's"),
    {.name = "fit",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct detector_common, fit),
     .doc = "How the picture becomes as large as the input: stretched, or by one factor and padded "
            "on both sides, or right and below; else the kind's",
     .words = WEIR_WORDS("stretch", "centre", "corner")},
    WEIR_OPT_JSON(detector_common, pad, "pad", INT, 0, "-1", -1, 255,
                  "The pixel that is padded with; -1: the kind's"),
    WEIR_OPT_JSON(detector_common, divisor, "divisor", INT, 0, NULL, 0, 1024,
                  "Of an input whose size is free the sides are multiples of it; 0: the kind's"),
};

const struct weir_registry weir_detectors = {
    .noun = "detector",
    .plural = "detectors",
    .doc = "What a detector's outputs are, and how its input is made.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
    .common = common,
    .n_common = WEIR_ARRAY_LEN(common),
    .planned = WEIR_WORDS("mtcnn"),
    .instead = "mtcnn is three models that feed each other; of faces, one model finds as much: "
               "yunet, scrfd, retinaface or centernet",
};
