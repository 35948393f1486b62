/*
 * Dropout. In training mode each element is kept with the probability 1 - ratio and then divided by
 * it, or becomes zero. ONNX leaves the generator to who implements it: here element i takes the
 * i-th number of Philox's stream of the seed, so that a seed gives the same mask in each run.
 * Without a seed each run draws one.
 */
#include "onnx/op.h"

#include "base/rng.h"

#define IN_RATIO    1
#define IN_TRAINING 2

static weir_status mask_out(struct onnx_call *call, struct weir_tensor **out,
                            struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool is_old = call->opset < 10; /* the mask has the type of x */
    return onnx_has_out(call, 1)
               ? onnx_out(call, 1, is_old ? x->dtype : WEIR_DTYPE_BOOL, x->rank, x->dims, out, err)
               : WEIR_OK;
}

static weir_status pass(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0), *mask = NULL;
    WEIR_TRY(onnx_alias(call, 0, x, x->rank, x->dims, err));
    WEIR_TRY(mask_out(call, &mask, err));
    for (size_t i = 0; mask != NULL && i < mask->n_elems; i++) {
        onnx_put(mask, i, 1);
    }
    return WEIR_OK;
}

static uint64_t seed_of(const struct onnx_call *call)
{
    uint64_t seed = (uint64_t)onnx_int(call, "seed", 0);
    if (onnx_attribute(call, "seed") == NULL) {
        weir_random_bytes(&seed, sizeof seed);
    }
    return seed;
}

static weir_status drop(struct onnx_call *call, double ratio, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct weir_tensor *y, *mask = NULL;
    struct weir_rng rng;
    if (weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    if (!(ratio > 0 && ratio < 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the ratio %g is not in 0 to 1, without 1",
                              ratio);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    WEIR_TRY(mask_out(call, &mask, err));
    weir_rng_init(&rng, seed_of(call), 0);
    for (size_t i = 0; i < x->n_elems; i++) {
        bool is_kept = weir_rng_f64(&rng) >= ratio;
        if (is_kept) {
            onnx_put(y, i, onnx_get(x, i) / (1 - ratio));
        }
        if (is_kept && mask != NULL) {
            onnx_put(mask, i, 1);
        }
    }
    return WEIR_OK;
}

static weir_status run_dropout(struct onnx_call *call, struct weir_error *err)
{
    double ratio =
        onnx_in_number(call, IN_TRAINING, 0) != 0 ? onnx_in_number(call, IN_RATIO, 0.5) : 0;
    return ratio != 0 ? drop(call, ratio, err) : pass(call, err);
}

const struct onnx_op onnx_ops_dropout[] = {
    {"Dropout", 7, 1, 2, run_dropout, NULL},
};
const size_t onnx_n_ops_dropout = WEIR_ARRAY_LEN(onnx_ops_dropout);
