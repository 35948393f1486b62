/** Options of the stage "judge": from where on a face is too bad to be decided by. */
#ifndef WEIR_ENDPOINT_STAGE_JUDGE_H
#define WEIR_ENDPOINT_STAGE_JUDGE_H

/** member, option, sentence */
#define WEIR_STAGE_JUDGE_LIMITS(X)                                                                 \
    X(min_width, "min-width", "Least width of a face in pixels of the picture")                    \
    X(min_sharpness, "min-sharpness", "Least sharpness; 1: as sharp as faces of its width are")    \
    X(max_yaw, "max-yaw", "How far it may look aside: of the nose, in distances of the eyes")      \
    X(min_pitch, "min-pitch", "How far it may look up: of the nose between eyes and mouth")        \
    X(max_pitch, "max-pitch", "How far it may look down")                                          \
    X(max_roll, "max-roll", "How far it may be tilted, in radians")                                \
    X(min_brightness, "min-brightness", "Least mean brightness, of 255")                           \
    X(max_brightness, "max-brightness", "Most mean brightness, of 255")                            \
    X(max_clipped, "max-clipped", "Most pixels that are black or white, as a share")               \
    X(max_sides, "max-sides", "How much brighter one half of it may be than the other")            \
    X(max_residual, "max-residual", "How far its points may lie from those of a face")

struct weir_stage_judge {
#define X(member, option, text) double member; /**< Below 0: the usual; 0: any will do. */
    WEIR_STAGE_JUDGE_LIMITS(X)
#undef X
};

#endif
