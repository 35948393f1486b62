/* The numbers of a row of step times: pure. */
#include "bench/training.h"

#include <math.h>
#include <stdlib.h>

/** Of a normal distribution: standard deviation / median absolute deviation. */
#define MAD_TO_STDDEV 1.4826

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct training_timing training_timing_of(double batch, const double *times, size_t n,
                                          double *scratch)
{
    double time = 0, speed = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        scratch[i] = batch / times[i];
        time += times[i];
        speed += scratch[i];
    }
    const double mean_speed = speed / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += (scratch[i] - mean_speed) * (scratch[i] - mean_speed);
    }
    const double stddev = sqrt(squares / (double)n), median = median_of(scratch, n);
    for (size_t i = 0; i < n; i++) {
        scratch[i] = fabs(scratch[i] - median);
    }
    return (struct training_timing){.mean = batch / (time / (double)n),
                                    .stddev = stddev,
                                    .uncertainty = stddev / sqrt((double)n),
                                    .jitter = MAD_TO_STDDEV * median_of(scratch, n)};
}

static double percentile_ms(const double *sorted, size_t n, double share)
{
    size_t rank = (size_t)ceil(share * (double)n);
    return 1e3 * sorted[WEIR_MAX(rank, (size_t)1) - 1];
}

struct training_step_ms training_step_ms_of(const double *times, size_t n, double *scratch)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        scratch[i] = times[i];
        sum += times[i];
    }
    qsort(scratch, n, sizeof *scratch, compare);
    return (struct training_step_ms){.mean = 1e3 * sum / (double)n,
                                     .p50 = percentile_ms(scratch, n, 0.5),
                                     .p90 = percentile_ms(scratch, n, 0.9),
                                     .p99 = percentile_ms(scratch, n, 0.99),
                                     .least = 1e3 * scratch[0],
                                     .most = 1e3 * scratch[n - 1]};
}
