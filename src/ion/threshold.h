/**
 * Threshold: how a replica set the score from which a face counts as known, as it reports it.
 *
 * The last report of a prediction pipeline is kept with the pipeline, as JSON. Replicas of one
 * deployment report the same.
 */
#ifndef WEIR_ION_THRESHOLD_H
#define WEIR_ION_THRESHOLD_H

#include "base/record.h"
#include "store/store.h"

struct weir_threshold {
    int64_t deployment_revision;
    char *replica;
    double threshold;
    double threshold_low, threshold_high; /**< 90 % interval; NaN: not known. */
    double deny_threshold;                /**< Of people on the deny list. */
    char *rule;
    int64_t scores, people;
    int64_t gallery_people;                          /**< 0: nobody, or not known. */
    double asked_rate, expected_rate, refused_share; /**< NaN: not known. */
    int64_t impostors_enrolled, photos_skipped;
    int64_t model_version, gallery_version, impostors_version;
    int64_t time_ms;
};

extern const struct weir_resource weir_threshold_resource;

/** To begin with: nothing is known. */
extern const struct weir_threshold weir_threshold_unknown;

/**
 * Keep the report with its pipeline, unless a report of a later deployment is there.
 * @param[out] out_is_new  Does it say anything else than the one before?
 * @return NOT_FOUND if the ION has no such prediction pipeline.
 */
weir_status weir_threshold_store(struct weir_txn *txn, const char *ion, const char *pipeline,
                                 const struct weir_threshold *report, bool *out_is_new,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** One sentence for the event log; in the arena. */
char *weir_threshold_sentence(const struct weir_threshold *report, const char *pipeline,
                              struct weir_arena *arena);

#endif
