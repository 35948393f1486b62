#include "stats/look.h"

#include <math.h>
#include <stdint.h>

static double mean_of(const float *grey, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)grey[i];
    }
    return sum / (double)n;
}

static double deviation_of(const float *grey, size_t n, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double distance = (double)grey[i] - mean;
        sum += distance * distance;
    }
    return sqrt(sum / (double)n);
}

static double sharpness_of(const float *grey, size_t h, size_t w)
{
    double sum = 0;
    if (h < 3 || w < 3) {
        return 0;
    }
    for (size_t y = 1; y + 1 < h; y++) {
        const float *row = grey + y * w;
        float of_row = 0;
        for (size_t x = 1; x + 1 < w; x++) {
            of_row += fabsf(4 * row[x] - row[x - 1] - row[x + 1] - row[x - w] - row[x + w]);
        }
        sum += (double)of_row;
    }
    return sum / ((double)(h - 2) * (double)(w - 2));
}

static double entropy_of(const float *grey, size_t n)
{
    uint32_t counts[WEIR_LOOK_LEVELS] = {0};
    double bits = 0;
    for (size_t i = 0; i < n; i++) {
        float level = grey[i] * WEIR_LOOK_LEVELS;
        counts[level >= WEIR_LOOK_LEVELS - 1 ? WEIR_LOOK_LEVELS - 1
               : level > 0                   ? (uint32_t)level
                                             : 0]++;
    }
    for (size_t i = 0; i < WEIR_LOOK_LEVELS; i++) {
        double share = (double)counts[i] / (double)n;
        bits -= share > 0 ? share * log2(share) : 0;
    }
    return bits;
}

struct weir_look weir_look_at(const float *grey, size_t h, size_t w)
{
    size_t n = h * w;
    if (n == 0) {
        return (struct weir_look){NAN, NAN, NAN, NAN};
    }
    double mean = mean_of(grey, n);
    return (struct weir_look){.brightness = mean,
                              .contrast = deviation_of(grey, n, mean),
                              .sharpness = sharpness_of(grey, h, w),
                              .entropy = isnan(mean) ? NAN : entropy_of(grey, n)};
}
