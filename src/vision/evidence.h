/**
 * Evidence: what the frames of one track say together of who it is. Pure.
 *
 * Each frame that is good enough adds the logarithm of how much likelier its score is for the same person than for another, bounded,
 * and weighed less the sooner it follows on the last (neighbouring frames say nearly the same). A person is decided when the sum passes
 * ln((1 - deny) / accept), and given up below ln(deny / (1 - accept)) (Wald's sequential test). Beside it stands n of m: at least n of
 * the last m counted frames name the person. A track that ends undecided is unknown. What is decided stays so.
 */
#ifndef WEIR_VISION_EVIDENCE_H
#define WEIR_VISION_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_EVIDENCE_PERSONS 4  /**< Candidates of one track; of more the weakest goes. */
#define WEIR_EVIDENCE_FRAMES  16 /**< m at most. */

struct weir_evidence_options {
    float accept,
        deny; /**< Rates that are borne: a stranger is taken for somebody; somebody is not known. 1e-4, 0.02. */
    int32_t n, m;           /**< 2 of 3; m at most WEIR_EVIDENCE_FRAMES. */
    int32_t n_barred;       /**< Frames for somebody on the deny list: fewer. 1. */
    int64_t independent_ms; /**< Frames so far apart count whole. 300. */
    float least_weight;     /**< Of one that follows at once. 0.11. */
};

extern const struct weir_evidence_options weir_evidence_usual;

/** One look: whom the frame is likest to. */
struct weir_look_at {
    int64_t time_ms;
    int32_t person;         /**< Index of the caller's; below 0: nobody to compare with. */
    float score, threshold; /**< Of the match: from the threshold on it names the person. */
    float likelihood; /**< ln p(score | same) / p(score | other); NaN: from score and threshold. */
    bool is_barred;
};

enum weir_evidence_state { WEIR_EVIDENCE_OPEN, WEIR_EVIDENCE_KNOWN, WEIR_EVIDENCE_UNKNOWN };

struct weir_evidence {
    enum weir_evidence_state state;
    int32_t person; /**< KNOWN: who. */
    bool is_barred;
    int32_t n_counted,
        n_named; /**< Frames that counted; of the last m those that name the person. */
    float sum;   /**< Of the best candidate. */

    /* Private. */
    struct {
        int32_t person;
        float sum;
    } candidates[WEIR_EVIDENCE_PERSONS];

    struct {
        int32_t person;
        int64_t time_ms;
    } frames[WEIR_EVIDENCE_FRAMES];

    int64_t last_ms;
};

void weir_evidence_init(struct weir_evidence *evidence);

/** @return Whether it is decided now and was not before. */
bool weir_evidence_add(struct weir_evidence *evidence, const struct weir_evidence_options *options,
                       const struct weir_look_at *look);

/** The track has ended: OPEN becomes UNKNOWN. */
void weir_evidence_end(struct weir_evidence *evidence);

/** Expected admissions of strangers a day: strangers' passages a day × (1 - (1 - fmr)^(n_people × n_looks)). */
double weir_false_admits_a_day(double n_strangers, double fmr, double n_people, double n_looks);

/** The least rate of false matches that n comparisons without an error can claim, with 95 %: 3 / n; 1 for none. */
double weir_claimable_rate(double n_comparisons);

#endif
