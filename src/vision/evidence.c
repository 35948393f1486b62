#include "vision/evidence.h"

#include "base/macros.h"

#include <math.h>

#define LIKELIHOOD_MAX 3.0F
#define AT_THRESHOLD   1.5F  /* Likelihood of a score that just names the person. */
#define PER_WAY_TO_1   15.0F /* What it gains by the way from the threshold to the best score. */
#define RATE_MIN       1e-9F
#define RATE_MAX       0.5F
#define NAMES_NOBODY   (-1)

const struct weir_evidence_options weir_evidence_usual = {
    .accept = 1e-4F,
    .deny = 0.02F,
    .n = 2,
    .m = 3,
    .n_barred = 1,
    .independent_ms = 500,
    .least_weight = 0.05F,
};

/* Options as they make sense. */
struct rule {
    float ceiling, floor; /* A sum that decides for, and against. */
    int32_t n, m, n_barred;
    int64_t independent_ms;
    float least_weight;
};

/* The nearest to value; low for what is no number. */
static float within(float value, float low, float high)
{
    return value > low ? WEIR_MIN(value, high) : low;
}

static struct rule rule_of(const struct weir_evidence_options *options)
{
    float accept = within(options->accept, RATE_MIN, RATE_MAX);
    float deny = within(options->deny, RATE_MIN, RATE_MAX);
    int32_t m = WEIR_MIN(WEIR_MAX(options->m, 1), WEIR_EVIDENCE_FRAMES);
    return (struct rule){
        .ceiling = logf((1 - deny) / accept),
        .floor = logf(deny / (1 - accept)),
        .n = WEIR_MIN(WEIR_MAX(options->n, 1), m),
        .m = m,
        .n_barred = WEIR_MIN(WEIR_MAX(options->n_barred, 1), m),
        .independent_ms = options->independent_ms,
        .least_weight = within(options->least_weight, 0, 1),
    };
}

/* NaN: the look says nothing. */
static float likelihood_of(const struct weir_look_at *look)
{
    if (look->person < 0) {
        return -LIKELIHOOD_MAX;
    }
    if (!isfinite(look->score) || !isfinite(look->threshold)) {
        return NAN;
    }
    float likelihood = look->likelihood;
    if (isnan(likelihood)) {
        float way = WEIR_MAX(1 - look->threshold, 1e-3F);
        likelihood = AT_THRESHOLD + PER_WAY_TO_1 * (look->score - look->threshold) / way;
    }
    return within(likelihood, -LIKELIHOOD_MAX, LIKELIHOOD_MAX);
}

void weir_evidence_init(struct weir_evidence *evidence)
{
    *evidence = (struct weir_evidence){.person = NAMES_NOBODY};
    for (int i = 0; i < WEIR_EVIDENCE_PERSONS; i++) {
        evidence->candidates[i].person = NAMES_NOBODY;
    }
}

/* Put the look into its independent frame. */
static void count_frame(struct weir_evidence *evidence, const struct rule *rule,
                        const struct weir_look_at *look, int64_t passed_ms)
{
    bool has_name = look->person >= 0 && look->score >= look->threshold;
    int32_t person = has_name ? look->person : NAMES_NOBODY;
    float score = look->person >= 0 ? look->score : -INFINITY;
    evidence->window_ms = WEIR_MIN(evidence->window_ms + passed_ms, INT32_MAX);
    bool is_new = evidence->n_counted == 0 || evidence->window_ms >= rule->independent_ms;
    if (is_new) {
        evidence->n_counted++;
        evidence->window_ms = 0;
    }
    int at = (evidence->n_counted - 1) % WEIR_EVIDENCE_FRAMES;
    if (is_new || score > evidence->frames[at].score) {
        evidence->frames[at].person = person;
        evidence->frames[at].score = score;
    }
}

static int32_t count_named(const struct weir_evidence *evidence, const struct rule *rule,
                           int32_t person)
{
    int32_t n_named = 0;
    for (int32_t i = 0; i < WEIR_MIN(rule->m, evidence->n_counted); i++) {
        int at = (evidence->n_counted - 1 - i) % WEIR_EVIDENCE_FRAMES;
        n_named += evidence->frames[at].person == person;
    }
    return n_named;
}

/* The candidate for a person: the one there is, a free place, or that of the weakest if it is weaker than sum. NULL: none. */
static struct weir_candidate *candidate_for(struct weir_evidence *evidence, int32_t person,
                                            float sum)
{
    struct weir_candidate *place = NULL;
    for (int i = 0; i < WEIR_EVIDENCE_PERSONS; i++) {
        struct weir_candidate *candidate = &evidence->candidates[i];
        if (candidate->person == person) {
            return candidate;
        }
        bool is_free = candidate->person == NAMES_NOBODY;
        float weak = is_free ? -INFINITY : candidate->sum;
        float weakest =
            place == NULL ? sum : (place->person == NAMES_NOBODY ? -INFINITY : place->sum);
        place = weak < weakest ? candidate : place;
    }
    if (place != NULL) {
        *place = (struct weir_candidate){.person = person, .sum = evidence->others};
    }
    return place;
}

/* Add to the sums what a look says, weighed: for its person, and as strongly against all others. */
static void weigh(struct weir_evidence *evidence, const struct rule *rule,
                  const struct weir_look_at *look, float likelihood)
{
    struct weir_candidate *own =
        likelihood > 0 ? candidate_for(evidence, look->person, evidence->others + likelihood)
                       : NULL;
    float against = -fabsf(likelihood);
    for (int i = 0; i < WEIR_EVIDENCE_PERSONS; i++) {
        struct weir_candidate *candidate = &evidence->candidates[i];
        float sum = candidate->sum + (candidate == own ? likelihood : against);
        candidate->sum = WEIR_MIN(sum, rule->ceiling);
    }
    evidence->others = WEIR_MAX(evidence->others + against, rule->floor);
    if (own != NULL) {
        own->is_barred = look->is_barred;
    }
}

/* Find the best candidate. One that is no better than anybody goes. */
static void name_best(struct weir_evidence *evidence, const struct rule *rule)
{
    evidence->person = NAMES_NOBODY;
    evidence->is_barred = false;
    evidence->sum = evidence->others;
    for (int i = 0; i < WEIR_EVIDENCE_PERSONS; i++) {
        struct weir_candidate *candidate = &evidence->candidates[i];
        if (candidate->person == NAMES_NOBODY || candidate->sum <= evidence->others) {
            candidate->person = NAMES_NOBODY;
        } else if (evidence->person == NAMES_NOBODY || candidate->sum > evidence->sum) {
            evidence->person = candidate->person;
            evidence->is_barred = candidate->is_barred;
            evidence->sum = candidate->sum;
        }
    }
    evidence->n_named =
        evidence->person == NAMES_NOBODY ? 0 : count_named(evidence, rule, evidence->person);
    evidence->seems_unknown = evidence->sum <= rule->floor;
}

bool weir_evidence_add(struct weir_evidence *evidence, const struct weir_evidence_options *options,
                       const struct weir_look_at *look)
{
    float likelihood = likelihood_of(look);
    if (evidence->state != WEIR_EVIDENCE_OPEN || isnan(likelihood)) {
        return false;
    }
    struct rule rule = rule_of(options);
    bool is_first = evidence->n_counted == 0;
    int64_t passed_ms = weir_frame_clock_step(&evidence->clock, look->time_ms);
    bool is_whole = is_first || rule.independent_ms <= 0;
    float share = is_whole ? 1 : (float)passed_ms / (float)rule.independent_ms;
    count_frame(evidence, &rule, look, passed_ms);
    weigh(evidence, &rule, look, likelihood * within(share, rule.least_weight, 1));
    name_best(evidence, &rule);
    bool is_named = evidence->person != NAMES_NOBODY && evidence->person == look->person;
    bool is_sure = evidence->sum >= rule.ceiling && evidence->n_named >= rule.n;
    bool is_stopped =
        evidence->is_barred && evidence->sum > 0 && evidence->n_named >= rule.n_barred;
    if (is_named && (is_sure || is_stopped)) {
        evidence->state = WEIR_EVIDENCE_KNOWN;
        return true;
    }
    return false;
}

void weir_evidence_end(struct weir_evidence *evidence)
{
    if (evidence->state == WEIR_EVIDENCE_OPEN) {
        evidence->state = WEIR_EVIDENCE_UNKNOWN;
        evidence->person = NAMES_NOBODY;
        evidence->is_barred = false;
    }
}
