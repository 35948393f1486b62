#include "serve/protocol/outputs.h"

#include "base/macros.h"

#include <math.h>

#define BINS_PER_DOUBLING 8
#define PROBABILITY_MIN   1e-30
#define LANES             8

struct top {
    size_t index;
    double first, second;
};

static void see(struct top *top, size_t i, double value)
{
    if (value > top->first) {
        top->second = top->first;
        top->first = value;
        top->index = i;
    } else if (value > top->second) {
        top->second = value;
    }
}

/* Lanes, so that a value need not wait for the one before; NaN loses each comparison. */
static struct top top_of_f32(const float *values, size_t n)
{
    float first[LANES], second[LANES];
    struct top top = {0, -(double)INFINITY, -(double)INFINITY};
    size_t i = 0;
    for (size_t k = 0; k < LANES; k++) {
        first[k] = second[k] = -INFINITY;
    }
    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            float value = values[i + k], least = first[k] < value ? first[k] : value;
            second[k] = least > second[k] ? least : second[k];
            first[k] = value > first[k] ? value : first[k];
        }
    }
    for (size_t k = 0; k < LANES; k++) {
        see(&top, 0, first[k]);
        see(&top, 0, second[k]);
    }
    for (; i < n; i++) {
        see(&top, 0, values[i]);
    }
    while (top.index + 1 < n && values[top.index] != (float)top.first) {
        top.index++;
    }
    return top;
}

static struct top top_of_f64(const double *values, size_t n)
{
    struct top top = {0, -(double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < n; i++) {
        see(&top, i, values[i]);
    }
    return top;
}

static double margin_of(const struct top *top, enum signature_output_kind kind)
{
    if (kind == SIGNATURE_LOGITS) {
        return top->first - top->second;
    }
    return log(fmax(top->first, PROBABILITY_MIN) / fmax(top->second, PROBABILITY_MIN));
}

bool outputs_bins(const struct weir_signature *signature, const struct weir_tensor *output,
                  int *out_class, int *out_score)
{
    bool is_classifier = signature->output_kind == SIGNATURE_LOGITS ||
                         signature->output_kind == SIGNATURE_PROBABILITIES;
    bool is_known = output != NULL && output->rank > 0 &&
                    (output->dtype == WEIR_DTYPE_FLOAT || output->dtype == WEIR_DTYPE_DOUBLE);
    if (!is_classifier || !is_known) {
        return false;
    }
    size_t n_rows = signature->is_batched ? (size_t)WEIR_MAX(output->dims[0], (int64_t)1) : 1;
    size_t n = output->n_elems / n_rows;
    struct top top = output->dtype == WEIR_DTYPE_FLOAT ? top_of_f32(output->data, n)
                                                       : top_of_f64(output->data, n);
    double margin = margin_of(&top, signature->output_kind);
    if (n < 2 || !(margin >= 0)) {
        return false;
    }
    *out_class = (int)WEIR_MIN(top.index, (size_t)OUTPUTS_BINS - 1);
    *out_score = (int)fmin(BINS_PER_DOUBLING * log2(1 + margin), OUTPUTS_BINS - 1);
    return true;
}
