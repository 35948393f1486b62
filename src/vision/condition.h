/**
 * Condition: is what a camera sends still a picture of its place? And does anything move in it? Pure; one watch a camera, one thread
 * at a time.
 *
 * It looks at small grey pictures, one after the other. Frozen: nothing at all changes, not even noise. Black and dazzled: nearly all
 * pixels are dark, or white. Covered: nothing is left of the place. Blurred: it was sharper. Moved: its edges are not where they were.
 * The last three are judged against the camera's own past. It is learnt from the first pictures that are well, follows the light of the
 * day slowly, and is learnt again when somebody says that the camera is right as it is (weir_condition_accept). A camera that sees
 * a blank wall has no edges to compare: none of the three is said of it. What blurs by less than a pixel of the small picture, or shifts
 * it by less than some six, is not noticed.
 *
 * A kind must last before it is said, and be over for as long before the camera is well again. A lamp that is switched on, a lorry in
 * front of the lens and a dropped frame are not said.
 */
#ifndef WEIR_VISION_CONDITION_H
#define WEIR_VISION_CONDITION_H

#include "base/status.h"

#define WEIR_CONDITION_WIDTH  320
#define WEIR_CONDITION_HEIGHT 180
#define WEIR_CONDITION_BLOCK  10 /**< Motion is looked at in blocks of 10 × 10. */
#define WEIR_CONDITION_COLS   (WEIR_CONDITION_WIDTH / WEIR_CONDITION_BLOCK)
#define WEIR_CONDITION_ROWS   (WEIR_CONDITION_HEIGHT / WEIR_CONDITION_BLOCK)
#define WEIR_CONDITION_BLOCKS (WEIR_CONDITION_COLS * WEIR_CONDITION_ROWS)

/** In the order in which they are said: the first that holds. */
enum weir_condition_kind {
    WEIR_CONDITION_WELL,
    WEIR_CONDITION_BLACK,
    WEIR_CONDITION_DAZZLED,
    WEIR_CONDITION_FROZEN,
    WEIR_CONDITION_COVERED,
    WEIR_CONDITION_BLURRED,
    WEIR_CONDITION_MOVED,
    WEIR_CONDITION_COUNT
};

struct weir_condition_options {
    int64_t hold_ms; /**< What lasts for so long is said; what is over for so long, too. 3,000. */
    /** Covered, blurred and moved must last for so long: somebody may stand before the camera. 30,000. */
    int64_t place_ms;
    /** Said frozen when nothing has changed for so long; 0: never, for still pictures. 10,000. */
    int64_t frozen_ms;
    int64_t learn_ms;    /**< How long it takes to know the place. 10,000. */
    float dark, white;   /**< Grey values: below is dark, above is white. 24, 245. */
    float max_clipped;   /**< Share of pixels that may be dark, or white. 0.92. */
    float min_sharpness; /**< By that of its past. 0.25. */
    float min_agreement; /**< Edges with those of the place: correlation. 0.3. */
    float changed;       /**< Grey values that a block's mean changes by when something moves. 8. */
    float min_motion;    /**< Share of the blocks looked at that must change. 0.004. */
};

extern const struct weir_condition_options weir_condition_usual;

/** What one picture says. */
struct weir_condition {
    enum weir_condition_kind kind; /**< As it is said: it has lasted. */
    bool has_changed;              /**< The kind is another than before this picture. */
    const char *reason;            /**< A sentence for people, a literal. */
    int64_t since_ms;              /**< Time of the first picture of this kind. */
    float motion;                  /**< Share of changed blocks, of those looked at. */
    bool is_moving;                /**< For a gate: motion is min_motion or more. */
    float brightness;              /**< Mean grey value. */
    float sharpness;               /**< 1: as in its past; NaN: that is not known yet. */
    /** Edges with those of the place, -1 to 1, in the middle one of the picture's twelve parts; NaN: not known yet. */
    float agreement;
};

struct weir_condition_watch;

/** @return INVALID: an option that is no number or out of its range; NOMEM. */
weir_status weir_condition_create(const struct weir_condition_options *options,
                                  struct weir_condition_watch **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;
void weir_condition_destroy(struct weir_condition_watch *watch); /**< NULL is accepted. */

/** Say in which blocks motion counts, by rows: not 0 for yes; NULL: in all. Copied. Kinds do not mind it. */
void weir_condition_mask(struct weir_condition_watch *watch, const uint8_t *blocks);

/** The camera is right as it is: its place is learnt again, from the next picture on. */
void weir_condition_accept(struct weir_condition_watch *watch);

/** Look at the next picture. A step back of the time is taken as no time.
 *  @param grey  WEIR_CONDITION_WIDTH × WEIR_CONDITION_HEIGHT bytes, lines without gaps. Cost: 0.2 ms. */
struct weir_condition weir_condition_look(struct weir_condition_watch *watch, int64_t time_ms,
                                          const uint8_t *grey);

/** "well", "black", "dazzled", "frozen", "covered", "blurred", "moved". */
const char *weir_condition_name(enum weir_condition_kind kind);

#endif
