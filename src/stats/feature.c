#include "stats/feature.h"

#include "base/macros.h"
#include "stats/rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE_DEFAULT 0.01
#define PARTS        4   /* questions of a feature */
#define WORK_MAX     5e8 /* steps of all draws of a window (drift.h) */

const char *weir_finding_kind_name(enum weir_finding_kind kind)
{
    static const char *const names[] = {"feature", "missing", "category", "range"};
    return names[kind];
}

/* ---- reading --------------------------------------------------------------------------------- */

static weir_status read_count(const json_t *object, const char *feature, const char *name,
                              uint64_t *out, struct weir_error *err)
{
    const json_t *value = json_object_get(object, name);
    *out = 0;
    if (value == NULL) {
        return WEIR_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.features.%s.%s: expected a count", feature,
                              name);
    }
    if (json_integer_value(value) > WEIR_FEATURE_COUNT_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.features.%s.%s: more than %d", feature, name,
                              WEIR_FEATURE_COUNT_MAX);
    }
    *out = (uint64_t)json_integer_value(value);
    return WEIR_OK;
}

/* No sum of what read_count read overflows: there are fewer than 2^32 members in a body. */
static weir_status check_sum(const struct weir_histogram *hist, const char *feature,
                             struct weir_error *err)
{
    return hist->n + hist->n_nan <= WEIR_FEATURE_COUNT_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "$.features.%s: more than %d values are counted: send a sample",
                                feature, WEIR_FEATURE_COUNT_MAX);
}

/* Bins 0 … n_categories − 1 for the categories, one more for others: inner edges between them. */
static weir_status init_bins(struct weir_histogram *hist, size_t n_categories)
{
    double edges[WEIR_HISTOGRAM_MAX_BINS];
    for (size_t i = 0; i < n_categories; i++) {
        edges[i] = (double)i + 0.5;
    }
    return weir_histogram_init(hist, edges, n_categories);
}

static void add_many(struct weir_histogram *hist, double value, uint64_t n)
{
    uint32_t bin = weir_histogram_bin(hist, value);
    if (n == 0) {
        return;
    }
    hist->counts[bin] += n;
    double before = (double)hist->n, delta = value - hist->mean, all = before + (double)n;
    hist->mean += delta * (double)n / all;
    hist->m2 += delta * delta * before * (double)n / all;
    hist->n += n;
    hist->min = isnan(hist->min) ? value : fmin(hist->min, value);
    hist->max = isnan(hist->max) ? value : fmax(hist->max, value);
}

static weir_status parse_category(const char *name, const json_t *value, struct weir_arena *arena,
                                  struct weir_feature *out, struct weir_error *err)
{
    json_t *counts = json_object_get(value, "counts"), *count;
    const char *key;
    size_t n = json_object_size(counts), i = 0;
    uint64_t n_other, n_missing, n_one;
    if (!json_is_object(counts) || n == 0 || n > WEIR_FEATURE_CATEGORIES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.features.%s.counts: expected 1 to %d categories; count the rarest "
                              "as \"other\"",
                              name, WEIR_FEATURE_CATEGORIES);
    }
    WEIR_TRY(read_count(value, name, "other", &n_other, err));
    WEIR_TRY(read_count(value, name, "missing", &n_missing, err));
    WEIR_TRY(init_bins(&out->baseline, n));
    out->is_category = true;
    out->n_categories = n;
    out->categories = WEIR_ARENA_ARRAY(arena, n, const char *);
    json_object_foreach(counts, key, count)
    {
        out->categories[i] = weir_arena_strdup(arena, key);
        WEIR_TRY(read_count(counts, name, key, &n_one, err));
        add_many(&out->baseline, (double)i++, n_one);
    }
    add_many(&out->baseline, (double)n, n_other);
    out->baseline.n_nan = n_missing;
    return check_sum(&out->baseline, name, err);
}

static weir_status parse_one(const char *name, const json_t *value, struct weir_arena *arena,
                             struct weir_feature *out, struct weir_error *err)
{
    const char *kind = json_string_value(json_object_get(value, "kind"));
    if (name[0] == '\0' || strlen(name) >= WEIR_FEATURE_NAME_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.features: a name has 1 to %d bytes, got \"%.40s\"",
                              WEIR_FEATURE_NAME_BYTES - 1, name);
    }
    *out = (struct weir_feature){.name = weir_arena_strdup(arena, name)};
    if (kind != NULL && strcmp(kind, "category") == 0) {
        return parse_category(name, value, arena, out, err);
    }
    if (kind == NULL || strcmp(kind, "number") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.features.%s.kind: expected \"number\" or \"category\"", name);
    }
    struct weir_error wrong = {0};
    if (weir_histogram_from_json(json_object_get(value, "histogram"), &out->baseline, &wrong) !=
        WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.features.%s.histogram: %s", name,
                              wrong.message);
    }
    return check_sum(&out->baseline, name, err);
}

weir_status weir_features_parse(const json_t *baseline, struct weir_arena *arena,
                                struct weir_features *out, struct weir_error *err)
{
    json_t *features = json_object_get(baseline, "features"), *value;
    struct weir_features made = {0};
    const char *name;
    if (!json_is_object(features) || json_object_size(features) > WEIR_FEATURES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.features: expected an object of at most %d features",
                              WEIR_FEATURES_MAX);
    }
    made.items = WEIR_ARENA_ARRAY(arena, json_object_size(features) + 1, struct weir_feature);
    json_object_foreach(features, name, value)
    {
        WEIR_TRY(parse_one(name, value, arena, &made.items[made.n], err));
        made.n++;
    }
    *out = made;
    return WEIR_OK;
}

/* ---- a window -------------------------------------------------------------------------------- */

/* What was counted of a feature's live values. */
struct live {
    struct weir_histogram hist;
    uint64_t n_below, n_above; /**< Beyond training's smallest and largest, where values came. */
};

static double code_of(const struct weir_feature *feature, const char *category)
{
    size_t i = 0;
    while (i < feature->n_categories && strcmp(feature->categories[i], category) != 0) {
        i++;
    }
    return (double)i;
}

static weir_status count_values(const struct weir_feature *feature, const json_t *values,
                                struct live *live, struct weir_error *err)
{
    json_t *value;
    size_t i;
    if (json_array_size(values) > WEIR_FEATURE_VALUES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.features.%s.values: more than %d",
                              feature->name, WEIR_FEATURE_VALUES_MAX);
    }
    json_array_foreach(values, i, value)
    {
        if (json_is_null(value)) {
            live->hist.n_nan++;
        } else if (feature->is_category && json_is_string(value)) {
            weir_histogram_add(&live->hist, code_of(feature, json_string_value(value)));
        } else if (!feature->is_category && json_is_number(value)) {
            double number = json_number_value(value);
            weir_histogram_add(&live->hist, number);
            live->n_below += number < feature->baseline.min;
            live->n_above += number > feature->baseline.max;
        } else {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.features.%s.values[%zu]: expected %s or null", feature->name,
                                  i, feature->is_category ? "text" : "a number");
        }
    }
    return WEIR_OK;
}

static weir_status count_counts(const struct weir_feature *feature, const json_t *value,
                                struct weir_histogram *live, struct weir_error *err)
{
    json_t *counts = json_object_get(value, "counts"), *count;
    const char *key;
    uint64_t n;
    json_object_foreach(counts, key, count)
    {
        WEIR_TRY(read_count(counts, feature->name, key, &n, err));
        add_many(live, code_of(feature, key), n);
    }
    WEIR_TRY(read_count(value, feature->name, "missing", &live->n_nan, err));
    return check_sum(live, feature->name, err);
}

/* The live values, counted with training's bins. */
static weir_status count_window(const struct weir_feature *feature, const json_t *value,
                                struct live *out, struct weir_error *err)
{
    struct weir_histogram *live = &out->hist;
    *out = (struct live){0};
    weir_histogram_init_like(live, &feature->baseline);
    if (json_is_array(json_object_get(value, "values"))) {
        return count_values(feature, json_object_get(value, "values"), out, err);
    }
    if (feature->is_category && json_is_object(json_object_get(value, "counts"))) {
        return count_counts(feature, value, live, err);
    }
    struct weir_error wrong = {0};
    if (feature->is_category ||
        weir_histogram_from_json(json_object_get(value, "histogram"), live, &wrong) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.features.%s: expected values, or %s%s%s",
                              feature->name, feature->is_category ? "counts" : "a histogram",
                              wrong.message[0] != '\0' ? ": " : "", wrong.message);
    }
    if (live->n_bins != feature->baseline.n_bins ||
        memcmp(live->edges, feature->baseline.edges, (live->n_bins - 1) * sizeof *live->edges) !=
            0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.features.%s.histogram: its edges are not training's",
                              feature->name);
    }
    return check_sum(live, feature->name, err);
}

/* ---- questions ------------------------------------------------------------------------------- */

struct questions {
    struct weir_finding *items;
    size_t n;
    bool *is_cut; /**< Of each: with more draws its p-value may be smaller. */
    size_t n_cut;
    struct weir_drift_config config; /**< Its rate: of a question that stands alone among all. */
    double work;
};

static void ask_rate(struct questions *questions, enum weir_finding_kind kind,
                     const struct weir_feature *feature, const struct weir_histogram *live,
                     double share, double p_value)
{
    questions->items[questions->n++] = (struct weir_finding){.kind = kind,
                                                             .feature = feature,
                                                             .statistic = "rate",
                                                             .value = share,
                                                             .p_value = p_value,
                                                             .n_values = live->n + live->n_nan,
                                                             .live = *live};
}

/* Values beyond training's smallest and largest. Of a window that came counted only its own extremes
 * are known, and its outer bins: all in one lies beyond if training's own is empty. */
static void ask_range(struct questions *questions, const struct weir_feature *feature,
                      const struct live *live)
{
    const struct weir_histogram *baseline = &feature->baseline, *hist = &live->hist;
    uint32_t last = hist->n_bins - 1;
    uint64_t below = live->n_below, above = live->n_above;
    if (hist->n == 0) {
        return;
    }
    if (hist->min < baseline->min && below == 0) {
        below = baseline->counts[0] == 0 ? WEIR_MAX(hist->counts[0], (uint64_t)1) : 1;
    }
    if (hist->max > baseline->max && above == 0) {
        above = baseline->counts[last] == 0 ? WEIR_MAX(hist->counts[last], (uint64_t)1) : 1;
    }
    double p = fmin(weir_beyond_p(below, hist->n, baseline->n),
                    weir_beyond_p(above, hist->n, baseline->n));
    ask_rate(questions, WEIR_FINDING_RANGE, feature, hist,
             (double)(below + above) / (double)hist->n, fmin(1, 2 * p));
}

/* Did the distribution change? The number of the question keys the draws: asked again with more work,
 * it goes on with the same draws. */
static weir_status ask_change(struct questions *questions, size_t i, struct weir_error *err)
{
    struct weir_finding *finding = &questions->items[i];
    struct weir_drift_report report;
    WEIR_TRY(weir_drift_test(&finding->feature->baseline, &finding->live, &questions->config, i,
                             &report, err));
    questions->work += report.work;
    questions->n_cut += report.is_cut;
    questions->is_cut[i] = report.is_cut;
    finding->statistic = weir_drift_kind_name(report.kind);
    finding->value = report.statistic;
    finding->p_value = report.effect < 0.1 ? 1 : report.p_value; /* a trifle */
    finding->effect = report.effect;
    return WEIR_OK;
}

static weir_status ask_all(struct questions *questions, const struct weir_feature *feature,
                           const struct live *counted, struct weir_error *err)
{
    const struct weir_histogram *baseline = &feature->baseline, *live = &counted->hist;
    uint64_t n = live->n + live->n_nan, m = baseline->n + baseline->n_nan;
    if (n < WEIR_DRIFT_MIN_VALUES || baseline->n < WEIR_DRIFT_MIN_VALUES) {
        return WEIR_OK;
    }
    questions->items[questions->n] = (struct weir_finding){
        .kind = WEIR_FINDING_FEATURE, .feature = feature, .n_values = n, .live = *live};
    WEIR_TRY(ask_change(questions, questions->n++, err));
    ask_rate(questions, WEIR_FINDING_MISSING, feature, live, (double)live->n_nan / (double)n,
             weir_rate_p(live->n_nan, n, baseline->n_nan, m));
    if (feature->is_category) {
        uint32_t other = live->n_bins - 1;
        ask_rate(questions, WEIR_FINDING_CATEGORY, feature, live,
                 (double)live->counts[other] / (double)n,
                 weir_rate_p(live->counts[other], n, baseline->counts[other], m));
    } else {
        ask_range(questions, feature, counted);
    }
    return WEIR_OK;
}

/* What half of the work, shared out evenly, did not answer gets what is left of all of it. */
static weir_status ask_again(struct questions *questions, struct weir_error *err)
{
    double left = WORK_MAX - questions->work;
    questions->config.work_max = left / (double)WEIR_MAX(questions->n_cut, (size_t)1);
    for (size_t i = 0; i < questions->n && left > 0; i++) {
        if (questions->is_cut[i]) {
            WEIR_TRY(ask_change(questions, i, err));
        }
    }
    return WEIR_OK;
}

/* Which of all questions are answered by yes: Benjamini and Hochberg. */
static void judge(struct questions *questions, double rate, struct weir_arena *arena)
{
    size_t n = questions->n;
    double *p_values = WEIR_ARENA_ARRAY(arena, n + 1, double);
    size_t *order = WEIR_ARENA_ARRAY(arena, n + 1, size_t);
    bool *is_rejected = WEIR_ARENA_ARRAY(arena, n + 1, bool);
    for (size_t i = 0; i < n; i++) {
        p_values[i] = questions->items[i].p_value;
    }
    (void)weir_drift_select(p_values, n, rate, order, is_rejected);
    for (size_t i = 0; i < n; i++) {
        struct weir_finding *finding = &questions->items[i];
        finding->is_drifted = is_rejected[i];
        if (finding->is_drifted && strcmp(finding->statistic, "none") == 0) {
            finding->statistic = "shape"; /* found only among the others: no single test names it */
        }
    }
}

static const struct weir_feature *find(const struct weir_features *features, const char *name)
{
    for (size_t i = 0; i < features->n; i++) {
        if (strcmp(features->items[i].name, name) == 0) {
            return &features->items[i];
        }
    }
    return NULL;
}

weir_status weir_features_test(const struct weir_features *features, const json_t *window,
                               double rate, uint64_t seed, struct weir_arena *arena,
                               struct weir_finding **out, size_t *out_n, struct weir_error *err)
{
    json_t *named = json_object_get(window, "features"), *value;
    const char *name;
    rate = rate == 0 ? RATE_DEFAULT : rate;
    if (!(rate >= 1e-4 && rate <= 0.2)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.rate: expected 0.0001 to 0.2");
    }
    if (!json_is_object(named) || json_object_size(named) > WEIR_FEATURES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.features: expected an object of at most %d features",
                              WEIR_FEATURES_MAX);
    }
    size_t n = json_object_size(named);
    double n_all = (double)WEIR_MAX(n, (size_t)1);
    struct questions questions = {.items =
                                      WEIR_ARENA_ARRAY(arena, PARTS * n + 1, struct weir_finding),
                                  .is_cut = WEIR_ARENA_ARRAY(arena, PARTS * n + 1, bool)};
    questions.config =
        (struct weir_drift_config){.false_alarm_rate = fmax(1e-5, rate / (PARTS * n_all)),
                                   .seed = seed,
                                   .work_max = WORK_MAX / 2 / n_all};
    json_object_foreach(named, name, value)
    {
        struct live live;
        const struct weir_feature *feature = find(features, name);
        if (feature == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.features.%.40s: the model's baseline has no such feature",
                                  name);
        }
        WEIR_TRY(count_window(feature, value, &live, err));
        WEIR_TRY(ask_all(&questions, feature, &live, err));
    }
    WEIR_TRY(ask_again(&questions, err));
    judge(&questions, rate, arena);
    *out = questions.items;
    *out_n = questions.n;
    return WEIR_OK;
}
