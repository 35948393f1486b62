#include "endpoint/stage/track.h"

#include "endpoint/stage.h"

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_stage_track, gone_ms, "gone-ms", INT, 0, "2000", 100, 60000,
                  "Who is not seen for so many milliseconds has passed. Of a gap between two "
                  "frames at most half "
                  "of it counts, until the gap is twice as long"),
    WEIR_OPT_JSON(weir_stage_track, n, "n", INT, 0, "2", 1, 16,
                  "A person is decided when n of the last m frames name the same"),
    WEIR_OPT_JSON(weir_stage_track, m, "m", INT, 0, "3", 1, 16, "Of how many frames"),
    WEIR_OPT_JSON(weir_stage_track, accept, "accept", F64, 0, "0.0001", 1e-12, 0.5,
                  "Share of unknown people's passages that may be taken for somebody's"),
    WEIR_OPT_JSON(weir_stage_track, deny, "deny", F64, 0, "0.02", 1e-12, 0.5,
                  "Share of known people's passages that may stay unknown"),
    WEIR_OPT_JSON(weir_stage_track, visitors, "visitors", BOOL, 0, NULL, 0, 0,
                  "Faces of unknown people are remembered for 7 days, 256 at most, so that one who "
                  "comes again is told to have come before"),
};

static const struct weir_stage_facts facts = {.takes = WEIR_STAGE_TAKES(FINDING) |
                                                       WEIR_STAGE_TAKES(OBJECTS),
                                              .gives = WEIR_STAGE_TRACK,
                                              .needs_objects = true};

const struct weir_kind weir_stage_track_kind = {
    .name = "track",
    .doc = "Each person or thing is followed from frame to frame of a camera and decided once, by "
           "what its frames say together.",
    WEIR_KIND_OPTIONS(weir_stage_track, options),
    .ops = &facts,
};
