/**
 * Evidence: what the frames of one track say together of the person it is. Pure.
 *
 * Each frame that is good enough adds the logarithm of how much likelier its score is for the same
 * person than for another: at most 3 either way, and less the sooner it follows on the last
 * (neighbouring frames say nearly the same). Evidence a second is thus the same at any frame rate.
 * A frame names one person; for all others it speaks as strongly against.
 *
 * A person is decided when the sum passes ln((1 - deny) / accept), which is Wald's sequential test,
 * and at least n of the last m independent frames name that person. Somebody on the deny list is
 * decided sooner: n_barred frames and a positive sum. No sum falls below ln(deny / (1 - accept)):
 * somebody who was seen badly at first can still be known. A track that ends undecided is unknown. What is
 * decided stays so.
 */
#ifndef WEIR_VISION_EVIDENCE_H
#define WEIR_VISION_EVIDENCE_H

#include "vision/frame_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_EVIDENCE_PERSONS 4  /**< Candidates of one track; of more the weakest goes. */
#define WEIR_EVIDENCE_FRAMES  16 /**< m at most. */

/** A rate outside 0 to 1, an n below 1 or an m below n is taken as the nearest that makes sense. */
struct weir_evidence_options {
    /** Rates that are borne: a stranger is taken for somebody. 1e-4. */
    float accept;
    float deny;       /**< The other: somebody is not known. 0.02. */
    int32_t n, m;     /**< 2 of 3; m at most WEIR_EVIDENCE_FRAMES. */
    int32_t n_barred; /**< Independent frames for somebody on the deny list: fewer. 1. */
    /** Frames so far apart are independent, and count whole; sooner ones by their share of it. 500: where frames 100 ms apart are
     *  alike by 0.8, and scores of the same and of others lie 3 deviations apart, `accept` is kept at 5 to 25 frames/s, and 99 % of
     *  people are known in 4 s, half of them in 1.3 s. 300 would take 0.8 s, and admit 9 times as many. */
    int64_t independent_ms;
    float least_weight; /**< What one counts that follows at once. 0.05. */
};

extern const struct weir_evidence_options weir_evidence_usual;

/** One look: whom the frame is likest to. */
struct weir_look_at {
    int64_t time_ms;
    int32_t person;         /**< Index of the caller's; below 0: nobody to compare with. */
    float score, threshold; /**< As matched: from the threshold on it names the person. */
    /** ln p(score | same) / p(score | other); NaN: by how far the score is from its threshold,
     *  where 1 is the best score: 1.5 at the threshold, 3 from a tenth of the way to 1 on. */
    float likelihood;
    bool is_barred;
};

enum weir_evidence_state { WEIR_EVIDENCE_OPEN, WEIR_EVIDENCE_KNOWN, WEIR_EVIDENCE_UNKNOWN };

struct weir_evidence {
    enum weir_evidence_state state;
    int32_t person; /**< KNOWN: that person. OPEN: the best candidate; -1: none. */
    bool is_barred; /**< The same person. */
    /** OPEN: all sums lie at the lower bound. It is nobody known, as far as can be said yet. */
    bool seems_unknown;
    int32_t n_counted; /**< Independent frames so far. */
    int32_t n_named;   /**< Those of the last m that name the person. */
    float sum;         /**< The person's; without one that of all others. */

    /* Private. */
    struct weir_candidate {
        int32_t person; /**< -1: free. */
        bool is_barred;
        float sum;
    } candidates[WEIR_EVIDENCE_PERSONS];

    /** Independent frames, the newest at (n_counted - 1) modulo m. */
    struct {
        int32_t person; /**< -1: it names nobody. */
        float score;
    } frames[WEIR_EVIDENCE_FRAMES];

    float others; /**< Sum of anybody who is no candidate. */
    struct weir_frame_clock clock;
    int64_t window_ms; /**< From the first look of the newest independent frame to the last look. */
};

void weir_evidence_init(struct weir_evidence *evidence);

/**
 * A look that comes within independent_ms of the first of the newest frame is the same frame: the
 * better score of both names. A look without a number for score or threshold is not counted; a step
 * back of the time is none at all.
 * @return Whether it is decided now and was not before.
 */
bool weir_evidence_add(struct weir_evidence *evidence, const struct weir_evidence_options *options,
                       const struct weir_look_at *look);

/** The track has ended: OPEN becomes UNKNOWN. */
void weir_evidence_end(struct weir_evidence *evidence);

#endif
