/* The bins of an answer, against a softmax of every value. */
#include "serve/protocol/outputs.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <string.h>

static struct weir_signature signature_of(enum signature_output_kind kind, bool is_batched)
{
    return (struct weir_signature){.output_kind = kind, .is_batched = is_batched};
}

static struct weir_tensor *tensor_of(enum weir_dtype dtype, int64_t rows, int64_t columns)
{
    struct weir_tensor *tensor = NULL;
    struct weir_error err;
    const int64_t dims[] = {rows, columns};
    ck_assert_int_eq(weir_tensor_create(dtype, 2, dims, &tensor, &err), WEIR_OK);
    return tensor;
}

/* Probabilities of logits, the long way; the margin is the logarithm of the ratio of the highest two. */
START_TEST(bins_are_those_of_the_likeliest_class_and_its_margin)
{
    const uint64_t seed = (uint64_t)_i + 1;
    struct weir_rng rng;
    int64_t n = 2 + _i * 7;
    struct weir_tensor *logits = tensor_of(WEIR_DTYPE_FLOAT, 3, n),
                       *shares = tensor_of(WEIR_DTYPE_DOUBLE, 1, n);
    float *x = logits->data;
    double *p = shares->data, sum = 0, best = 0, next = 0;
    int class = 0;
    printf("seed %llu, %lld classes\n", (unsigned long long)seed, (long long)n);
    weir_rng_init(&rng, seed, 0);
    for (int64_t i = 0; i < 3 * n; i++) {
        x[i] = (float)weir_rng_below(&rng, 20000) / 2000;
    }
    for (int64_t i = 0; i < n; i++) {
        p[i] = exp(x[i]);
        sum += p[i];
    }
    for (int64_t i = 0; i < n; i++) {
        p[i] /= sum;
        next = p[i] > best ? best : fmax(next, p[i]);
        class = p[i] > best ? (int)i : class;
        best = fmax(best, p[i]);
    }
    int expected = (int)fmin(63, 8 * log2(1 + log(best / next)) + 1e-9);
    struct weir_signature of_logits = signature_of(SIGNATURE_LOGITS, true),
                          of_shares = signature_of(SIGNATURE_PROBABILITIES, true);
    int found_class, found_score, other_class, other_score;
    ck_assert(outputs_bins(&of_logits, logits, &found_class, &found_score));
    ck_assert(outputs_bins(&of_shares, shares, &other_class, &other_score));
    ck_assert_int_eq(found_class, class < 63 ? class : 63);
    ck_assert_int_eq(other_class, found_class);
    ck_assert_int_le(abs(found_score - expected), 1); /* at an edge, by rounding */
    ck_assert_int_le(abs(other_score - expected), 1);
    weir_tensor_release(logits);
    weir_tensor_release(shares);
}

END_TEST

START_TEST(what_is_no_class_has_no_bins)
{
    struct weir_tensor *tensor = tensor_of(WEIR_DTYPE_FLOAT, 1, 3),
                       *one = tensor_of(WEIR_DTYPE_FLOAT, 3, 1);
    struct weir_signature logits = signature_of(SIGNATURE_LOGITS, true),
                          values = signature_of(SIGNATURE_EMBEDDING, true);
    int class, score;
    float *x = tensor->data;
    ck_assert(outputs_bins(&logits, tensor, &class, &score)); /* all alike: a class, by no margin */
    ck_assert_int_eq(class, 0);
    ck_assert_int_eq(score, 0);
    ck_assert(!outputs_bins(&values, tensor, &class, &score));
    ck_assert(!outputs_bins(&logits, one, &class, &score));
    ck_assert(!outputs_bins(&logits, NULL, &class, &score));
    x[0] = x[1] = x[2] = NAN;
    ck_assert(!outputs_bins(&logits, tensor, &class, &score));
    x[1] = INFINITY;
    ck_assert(outputs_bins(&logits, tensor, &class, &score));
    ck_assert_int_eq(class, 1);
    ck_assert_int_eq(score, 63);
    weir_tensor_release(tensor);
    weir_tensor_release(one);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("outputs", {bins_are_those_of_the_likeliest_class_and_its_margin, 40},
                     {what_is_no_class_has_no_bins, 1})
