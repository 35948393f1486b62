/**
 * Features: what the columns of a table or a series looked like in training, and whether a window of
 * live values still looks like that. For any model, whatever trained it: the training writes a
 * baseline, a JSON object that travels with the model version.
 *
 *     {"features": {
 *        "age":  {"kind": "number",   "histogram": HISTOGRAM},
 *        "city": {"kind": "category", "counts": {"paris": 120, "rome": 7}, "other": 3, "missing": 2}}}
 *
 * HISTOGRAM is that of histogram.h; its `nan` counts missing values. A category that is not in
 * `counts` is "other". A window names values, or what was counted of them already:
 *
 *     {"features": {
 *        "age":  {"values": [31, null, 57.5]},       or {"histogram": HISTOGRAM} with training's edges
 *        "city": {"values": ["paris", "oslo", null]} or {"counts": {"oslo": 1}, "missing": 1}}}
 *
 * Of each feature up to four questions are asked: did its distribution change (drift.h), are values
 * missing, do categories come that training did not know, are values out of training's range (rate.h)?
 * Of all questions of a window together, Benjamini and Hochberg's rule says which are answered by yes:
 * if nothing has changed, the chance that any is stays below the false-alarm rate, however many
 * features there are.
 */
#ifndef WEIR_STATS_FEATURE_H
#define WEIR_STATS_FEATURE_H

#include "base/arena.h"
#include "stats/drift.h"
#include "stats/histogram.h"

#define WEIR_FEATURES_MAX       1000
#define WEIR_FEATURE_NAME_BYTES 128
#define WEIR_FEATURE_VALUES_MAX 100000                        /* of one feature in one window */
#define WEIR_FEATURE_COUNT_MAX  10000000                      /* values counted, each side */
#define WEIR_FEATURE_CATEGORIES (WEIR_HISTOGRAM_MAX_BINS - 1) /* and "other" */

struct weir_feature {
    const char *name;
    bool is_category;
    const char **categories; /**< n_categories of them; category i is counted in bin i. */
    size_t n_categories;
    struct weir_histogram baseline; /**< Of a category: the last bin counts "other". */
};

struct weir_features {
    struct weir_feature *items;
    size_t n;
};

enum weir_finding_kind {
    WEIR_FINDING_FEATURE,  /**< Its distribution changed. */
    WEIR_FINDING_MISSING,  /**< More values are missing. */
    WEIR_FINDING_CATEGORY, /**< More categories are new. */
    WEIR_FINDING_RANGE,    /**< Values lie outside training's. */
};

/** "feature", "missing", "category", "range". */
const char *weir_finding_kind_name(enum weir_finding_kind kind);

/** One question about one feature, answered. */
struct weir_finding {
    enum weir_finding_kind kind;
    const struct weir_feature *feature;
    const char *statistic; /**< "location", "spread", "shape", "none"; else "rate". */
    double value;          /**< In standard deviations; else a share of the window's values. */
    double p_value;
    double effect; /**< Of FEATURE: as drift.h's; else 0. */
    bool is_drifted;
    uint64_t n_values;
    struct weir_histogram live;
};

/** Read a baseline; texts are copied into the arena. @return INVALID or LIMIT, naming the place: also
 *  for more than WEIR_FEATURE_COUNT_MAX values counted of a feature, of which a sample will do. */
weir_status weir_features_parse(const json_t *baseline, struct weir_arena *arena,
                                struct weir_features *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Compare a window with the baseline.
 *
 * @param rate  False alarms per window, over all features: 1e-4 to 0.2; 0 means 0.01.
 * @param seed  Of the draws; the same input gives the same findings.
 * @param out   In the arena: the questions that could be asked; a feature with fewer than
 *              WEIR_DRIFT_MIN_VALUES values, in training or in the window, is passed over.
 * @return INVALID or LIMIT, naming the place: a feature that the baseline does not have, other edges,
 *         more than WEIR_FEATURE_COUNT_MAX values.
 * Cost: as drift.h's for each feature, 60 draws where nothing changed; all together 2 to 3 s at most.
 * Where that bounds the draws, which takes hundreds of features that changed a little, they are
 * shared out, and only what differs more is found.
 */
weir_status weir_features_test(const struct weir_features *features, const json_t *window,
                               double rate, uint64_t seed, struct weir_arena *arena,
                               struct weir_finding **out, size_t *out_n,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
