#include "stats/sequence.h"

#include "stats/drift.h"
#include "stats/rate.h"

#include <math.h>

#define MARGIN     0.25
#define LEVEL_MAX  2.0 /* in limits: so that an alarm ends soon after its cause */
#define LEVEL_CALM 0.25
#define VALUES_MIN 100.0
#define OVERSHOOT  1.166 /* 2 × 0.583: Siegmund's correction for the two ends of a step */

/* Normal scores by mid-ranks, standardised over the baseline's own counts. */
static void make_scores(struct weir_sequence *sequence)
{
    const struct weir_histogram *baseline = &sequence->baseline;
    double n = (double)baseline->n, before = 0, mean = 0, variance = 0;
    for (uint32_t i = 0; i < baseline->n_bins; i++) {
        double count = (double)baseline->counts[i];
        /* An empty outer bin lies beyond half a value. */
        double u = fmin(fmax((before + count / 2) / n, 0.5 / n), 1 - 0.5 / n);
        sequence->score[i] = weir_normal_quantile(u);
        mean += count / n * sequence->score[i];
        before += count;
    }
    for (uint32_t i = 0; i < baseline->n_bins; i++) {
        double distance = sequence->score[i] - mean;
        variance += (double)baseline->counts[i] / n * distance * distance;
    }
    double deviation = variance > 0 ? sqrt(variance) : 1;
    for (uint32_t i = 0; i < baseline->n_bins; i++) {
        sequence->score[i] = (sequence->score[i] - mean) / deviation;
    }
}

/* Mean number of values until one of the two sums passes h by chance. */
static double values_until(double h, double k)
{
    double b = h + OVERSHOOT;
    return (exp(2 * k * b) - 2 * k * b - 1) / (2 * k * k) / 2;
}

static double find_limit(double values_between, double k)
{
    double low = 0, high = 1000;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (values_until(middle, k) < values_between) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

weir_status weir_sequence_init(struct weir_sequence *sequence,
                               const struct weir_histogram *baseline, double shift_max,
                               double values_between, struct weir_error *err)
{
    values_between = values_between == 0 ? WEIR_SEQUENCE_VALUES : values_between;
    if (baseline->n < WEIR_DRIFT_MIN_VALUES || !(values_between >= VALUES_MIN) ||
        !isfinite(shift_max)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "sequence: needs a baseline of %d values, and %g values or more "
                              "between false alarms",
                              WEIR_DRIFT_MIN_VALUES, VALUES_MIN);
    }
    double margin = MARGIN + 1 / sqrt((double)baseline->n);
    *sequence = (struct weir_sequence){.baseline = *baseline,
                                       .margin = margin,
                                       .allowance = fmax(0, shift_max) + margin,
                                       .limit = find_limit(values_between, margin)};
    make_scores(sequence);
    return WEIR_OK;
}

bool weir_sequence_add(struct weir_sequence *sequence, double value)
{
    if (isnan(value)) {
        return sequence->is_alarmed;
    }
    double score = sequence->score[weir_histogram_bin(&sequence->baseline, value)];
    double most = LEVEL_MAX * sequence->limit;
    sequence->up = fmin(fmax(0, sequence->up + score - sequence->allowance), most);
    sequence->down = fmin(fmax(0, sequence->down - score - sequence->allowance), most);
    double level = weir_sequence_level(sequence);
    sequence->is_alarmed = level >= 1 || (sequence->is_alarmed && level > LEVEL_CALM);
    return sequence->is_alarmed;
}

double weir_sequence_level(const struct weir_sequence *sequence)
{
    return fmax(sequence->up, sequence->down) / sequence->limit;
}

double weir_sequence_p(const struct weir_sequence *sequence, uint64_t n)
{
    double sum = fmax(sequence->up, sequence->down);
    return fmin(1, (double)n / values_until(sum, sequence->margin));
}
