#include "ion/policy_drift.h"

#include "base/json.h"
#include "stats/drift.h"

#define BINS      WEIR_POLICY_OUTPUT_BINS
#define COUNT_MAX 1000000000000
#define WORK_MAX  6e7 /* about 0.3 s; where it ends the draws, p is larger */
#define SEED      20

_Static_assert(BINS <= WEIR_HISTOGRAM_MAX_BINS, "a histogram has room for the bins");

struct outputs {
    int64_t classes[BINS], scores[BINS];
};

/* ---- text ------------------------------------------------------------------------------------ */

static json_t *list_of(const int64_t *counts)
{
    json_t *list = json_array();
    size_t n = BINS;
    while (n > 0 && counts[n - 1] == 0) {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(counts[i]));
    }
    return list;
}

char *weir_policy_outputs_text(const int64_t *classes, const int64_t *scores,
                               struct weir_arena *arena)
{
    json_t *view = json_pack("{s:o,s:o}", "classes", list_of(classes), "scores", list_of(scores));
    char *text = weir_json_text(view, arena);
    json_decref(view);
    return text;
}

static bool read_list(const json_t *list, int64_t *counts)
{
    size_t n = json_array_size(list);
    bool is_good = json_is_array(list) && n <= BINS;
    for (size_t i = 0; i < n && is_good; i++) {
        counts[i] = json_integer_value(json_array_get(list, i));
        is_good =
            json_is_integer(json_array_get(list, i)) && counts[i] >= 0 && counts[i] <= COUNT_MAX;
    }
    return is_good;
}

static bool read_outputs(const char *text, struct outputs *out)
{
    *out = (struct outputs){0};
    json_t *view = text != NULL ? json_loads(text, 0, NULL) : NULL;
    bool is_good = read_list(json_object_get(view, "classes"), out->classes) &&
                   read_list(json_object_get(view, "scores"), out->scores);
    json_decref(view);
    return is_good;
}

char *weir_policy_outputs_since(const char *base_text, const char *now_text,
                                struct weir_arena *arena)
{
    struct outputs base, now;
    bool goes_back = false;
    if (!read_outputs(now_text, &now)) {
        return NULL;
    }
    if (!read_outputs(base_text, &base)) {
        base = (struct outputs){0};
    }
    for (size_t i = 0; i < BINS; i++) {
        goes_back = goes_back || now.classes[i] < base.classes[i] || now.scores[i] < base.scores[i];
    }
    for (size_t i = 0; i < BINS && !goes_back; i++) {
        now.classes[i] -= base.classes[i];
        now.scores[i] -= base.scores[i];
    }
    return weir_policy_outputs_text(now.classes, now.scores, arena);
}

static int64_t sum(const int64_t *counts)
{
    int64_t n = 0;
    for (size_t i = 0; i < BINS; i++) {
        n += counts[i];
    }
    return n;
}

int64_t weir_policy_outputs_n(const char *text)
{
    struct outputs outputs;
    return read_outputs(text, &outputs) ? sum(outputs.classes) : 0;
}

/* ---- the test -------------------------------------------------------------------------------- */

int64_t weir_policy_look_at(int64_t window, int64_t n_looks)
{
    return n_looks >= 0 && n_looks < WEIR_POLICY_LOOKS_MAX ? window << n_looks : 0;
}

static bool histogram_of(const int64_t *counts, struct weir_histogram *out)
{
    double edges[BINS - 1];
    for (size_t i = 0; i < BINS - 1; i++) {
        edges[i] = (double)i + 0.5;
    }
    if (weir_histogram_init(out, edges, BINS - 1) != WEIR_OK) {
        return false;
    }
    for (size_t i = 0; i < BINS; i++) {
        out->counts[i] = (uint64_t)counts[i];
        out->n += (uint64_t)counts[i];
    }
    return true;
}

static bool compare(const int64_t *live, const int64_t *counts, double rate, uint64_t i_window,
                    struct weir_drift_report *out)
{
    struct weir_histogram baseline, window;
    struct weir_error err;
    const struct weir_drift_config config = {
        .false_alarm_rate = rate, .seed = SEED, .work_max = WORK_MAX};
    return histogram_of(live, &baseline) && histogram_of(counts, &window) &&
           weir_drift_test(&baseline, &window, &config, i_window, out, &err) == WEIR_OK;
}

bool weir_policy_drift_test(const char *live_text, const char *text, double rate, int64_t n_looks,
                            struct weir_policy_drift *out)
{
    struct outputs live, outputs;
    struct weir_drift_report classes, scores;
    if (!read_outputs(live_text, &live) || !read_outputs(text, &outputs) ||
        !compare(live.classes, outputs.classes, rate, 2 * (uint64_t)n_looks, &classes) ||
        !compare(live.scores, outputs.scores, rate, 2 * (uint64_t)n_looks + 1, &scores)) {
        return false;
    }
    bool is_of_classes = classes.is_drifted != scores.is_drifted
                             ? classes.is_drifted
                             : classes.p_value <= scores.p_value;
    const struct weir_drift_report *found = is_of_classes ? &classes : &scores;
    *out = (struct weir_policy_drift){.is_drifted = found->is_drifted,
                                      .what = is_of_classes ? "classes" : "scores",
                                      .p_value = found->p_value,
                                      .effect = found->effect,
                                      .n = sum(outputs.classes),
                                      .live_n = sum(live.classes)};
    return true;
}
