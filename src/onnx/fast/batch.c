#include "batch.h"

#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_RUNS    2
#define MEASURED_RUNS 6

static const int64_t sizes[BATCH_SIZES] = {16, 4, 1};

int64_t batch_count(const struct weir_onnx *onnx)
{
    int64_t n = 0;
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        const struct weir_tensor *tensor = onnx->values[onnx->input_values[i]];
        bool is_free = onnx->inputs[i].rank > 1 && onnx->inputs[i].dims[0] < 0;
        if (!is_free || (i > 0 && tensor->dims[0] != n) || tensor->dtype == WEIR_DTYPE_STRING) {
            return 0;
        }
        n = tensor->dims[0];
    }
    return n;
}

/* ---- which steps ------------------------------------------------------------------------------ */

static const char apart[] =
    "Conv ConvTranspose MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean Relu "
    "LeakyRelu Clip "
    "Sigmoid Tanh Elu HardSwish HardSigmoid Abs Sqrt Exp LRN BatchNormalization Add Sum Sub Mul "
    "Div Gemm QuantizeLinear DequantizeLinear QLinearConv QLinearMatMul";

/* Those that do by their axis, or as views. */
static const char perhaps[] =
    "Concat Softmax Transpose MatMul Reshape Flatten Squeeze Unsqueeze Identity Dropout";

static bool is_one_of(const char *type, const char *types)
{
    return weir_words_have(types, type, strlen(type));
}

static bool has_apart_axis(const struct fast_plan *plan, const struct onnx_step *step)
{
    struct weir_tensor *in[1];
    const struct onnx_call call = fast_call(plan, step, in, 1);
    const char *type = step->node->type;
    size_t n;
    if (strcmp(type, "Transpose") == 0) {
        const int64_t *perm = onnx_ints(&call, "perm", &n);
        return perm != NULL && perm[0] == 0;
    }
    if (strcmp(type, "Concat") == 0 || strcmp(type, "Softmax") == 0) {
        int64_t axis = onnx_int(&call, "axis", call.opset >= 13 && type[0] == 'S' ? -1 : 1);
        return axis < 0 ? axis + in[0]->rank > 0 : axis > 0;
    }
    return true;
}

static bool is_type(const struct onnx_step *step, const char *type)
{
    return strcmp(step->node->type, type) == 0;
}

/* Dimensions of what the step works on; more than any if a product's tail does it, which takes
 * constants by channel only. */
static int32_t rank_of(const struct fast_plan *plan, const struct onnx_step *step)
{
    int32_t rank = 0;
    for (size_t i = 0; i < step->node->n_in; i++) {
        const struct weir_tensor *tensor = fast_tensor(plan, step->in[i]);
        if (step->in[i] >= 0 && plan->values[step->in[i]].place == FAST_ABSENT) {
            return WEIR_TENSOR_RANK_MAX + 1;
        }
        rank = tensor != NULL ? WEIR_MAX(rank, tensor->rank) : rank;
    }
    return rank;
}

/* Does one tensor repeat itself in the other where it has fewer dimensions? Its first dimension is then not
 * that of the images. */
static bool is_broadcast(const struct onnx_step *step)
{
    return is_one_of(step->node->type, "Add Sum Sub Mul Div MatMul");
}

/* A constant may be another for each channel, not for each image. Constants of the plan alone are fit
 * for nothing but to say what a view is. */
static bool is_harmless(const struct fast_plan *plan, const struct onnx_step *step, size_t i)
{
    const struct weir_tensor *tensor = fast_tensor(plan, step->in[i]);
    bool is_product = is_type(step, "MatMul");
    int32_t rank = rank_of(plan, step);
    if (!fast_is_constant(plan, step->in[i])) {
        return tensor != NULL && tensor->rank > (is_product && i == 1 ? 2 : 1) &&
               tensor->dims[0] == plan->n_images &&
               (!is_broadcast(step) || tensor->rank == rank || rank > WEIR_TENSOR_RANK_MAX);
    }
    bool is_view =
        i > 0 && !is_product && !is_type(step, "Concat") && is_one_of(step->node->type, perhaps);
    if (!plan->fast->onnx->is_constant[step->in[i]]) {
        return is_view;
    }
    bool is_weight = i > 0 && (is_one_of(step->node->type, "Conv ConvTranspose Gemm") ||
                               (is_product && tensor->rank <= 2) || step->node->type[0] == 'Q');
    return is_weight || is_view || tensor->n_elems == 1 || tensor->dims[0] == 1 ||
           tensor->rank < rank;
}

bool batch_keeps_apart(const struct fast_plan *plan, const struct onnx_step *step)
{
    const char *type = step->node->type;
    int64_t n = plan->n_images;
    bool is = n > 0 &&
              (is_one_of(type, apart) || (is_one_of(type, perhaps) && has_apart_axis(plan, step)));
    for (size_t i = 0; is && i < step->node->n_in; i++) {
        is = step->in[i] < 0 || plan->values[step->in[i]].place == FAST_ABSENT ||
             is_harmless(plan, step, i);
    }
    for (size_t i = 0; is && i < step->node->n_out; i++) {
        const struct weir_tensor *tensor = fast_tensor(plan, step->out[i]);
        is = step->out[i] < 0 || tensor == NULL ||
             (plan->values[step->out[i]].place == FAST_REGION && tensor->rank > 1 &&
              tensor->dims[0] == n);
    }
    return is;
}

/* ---- runs in pieces --------------------------------------------------------------------------- */

/* Inputs first to first + n of all of them become the model's values. */
static weir_status give_piece(struct fast *fast, struct weir_tensor *const *all, int64_t first,
                              int64_t n, struct weir_error *err)
{
    struct weir_onnx *onnx = fast->onnx;
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        int32_t value = onnx->input_values[i];
        struct weir_tensor *view;
        WEIR_TRY(weir_tensor_view(all[i], all[i]->rank, all[i]->dims, &view, err));
        size_t each = all[i]->n_elems / (size_t)all[i]->dims[0];
        view->dims[0] = n;
        view->n_elems = each * (size_t)n;
        view->data = (char *)all[i]->data + (size_t)first * each * weir_dtype_bytes(view->dtype);
        weir_tensor_release(onnx->values[value]);
        onnx->values[value] = view;
    }
    return WEIR_OK;
}

static weir_status take_piece(const struct fast *fast, int64_t first, int64_t n_all,
                              struct weir_tensor **out, struct weir_error *err)
{
    const struct weir_onnx *onnx = fast->onnx;
    for (size_t i = 0; i < onnx->n_outputs; i++) {
        const struct weir_tensor *piece = fast_tensor(fast->last, onnx->output_values[i]);
        if (out[i] == NULL) {
            int64_t dims[WEIR_TENSOR_RANK_MAX];
            memcpy(dims, piece->dims, sizeof dims);
            dims[0] = n_all;
            WEIR_TRY(weir_tensor_create(piece->dtype, piece->rank, dims, &out[i], err));
        }
        size_t n_bytes = piece->n_elems * weir_dtype_bytes(piece->dtype);
        memcpy((char *)out[i]->data + (size_t)first * (n_bytes / (size_t)piece->dims[0]),
               piece->data, n_bytes);
    }
    return WEIR_OK;
}

/* The time of an image in the plans for the inputs, which are made where there are none: runs until both
 * ways, by one thread and by all, have been timed. */
static weir_status measure(struct fast *fast, size_t i_size, struct weir_error *err)
{
    double ns = 0;
    for (int i = 0; i < MEASURED_RUNS && (ns == 0 || i < LEAST_RUNS); i++) {
        WEIR_TRY(fast_run_plan(fast, &ns, err));
    }
    fast->batch.ns_each[i_size] = ns / (double)sizes[i_size];
    return WEIR_OK;
}

/* The size that is fastest, of those that are not more than n images. */
static weir_status choose(struct fast *fast, struct weir_tensor *const *all, int64_t n,
                          size_t *out_i, struct weir_error *err)
{
    size_t best = BATCH_SIZES - 1;
    for (size_t i = 0; i < BATCH_SIZES; i++) {
        if (sizes[i] <= n && fast->batch.ns_each[i] == 0) {
            WEIR_TRY(give_piece(fast, all, 0, sizes[i], err));
            WEIR_TRY(measure(fast, i, err));
        }
        if (sizes[i] <= n && fast->batch.ns_each[i] < fast->batch.ns_each[best]) {
            best = i;
        }
    }
    *out_i = best;
    return WEIR_OK;
}

static weir_status run_pieces(struct fast *fast, struct weir_tensor *const *all, int64_t n,
                              struct weir_tensor **out, struct weir_error *err)
{
    for (int64_t first = 0, size; first < n; first += size) {
        size_t i;
        WEIR_TRY(choose(fast, all, n - first, &i, err));
        size = sizes[i];
        WEIR_TRY(give_piece(fast, all, first, size, err));
        WEIR_TRY(fast_run_plan(fast, NULL, err));
        WEIR_TRY(take_piece(fast, first, n, out, err));
    }
    return WEIR_OK;
}

/* A second plan, of another size, tells whether what looked like images in the first are some. */
static weir_status find_out(struct fast *fast, struct weir_tensor *const *all,
                            struct weir_error *err)
{
    WEIR_TRY(fast_run_plan(fast, NULL, err));
    char why[WEIR_ONNX_ROWS_BYTES];
    bool is = fast->last->keeps_apart && weir_onnx_rows(fast->onnx, why) == WEIR_ONNX_ROWS_APART;
    if (is) {
        WEIR_TRY(give_piece(fast, all, 0, 1, err));
        weir_status status = fast_run_plan(fast, NULL, err);
        if (status == WEIR_ERR_NOMEM) {
            return status;
        }
        is = status == WEIR_OK && fast->last->keeps_apart; /* a shape may be made for n images */
    }
    fast->batch.state = is ? BATCH_IS_SPLIT : BATCH_IS_WHOLE;
    return WEIR_OK;
}

static weir_status run_all(struct fast *fast, struct weir_tensor *const *all, int64_t n,
                           struct weir_tensor **out, struct weir_error *err)
{
    size_t n_out = fast->onnx->n_outputs;
    if (fast->batch.state == BATCH_UNKNOWN) {
        WEIR_TRY(find_out(fast, all, err));
    }
    if (fast->batch.state == BATCH_IS_WHOLE) {
        return give_piece(fast, all, 0, n, err);
    }
    memset(out, 0, n_out * sizeof(struct weir_tensor *));
    weir_status status = run_pieces(fast, all, n, out, err);
    for (size_t i = 0; status != WEIR_OK && i < n_out; i++) {
        weir_tensor_release(out[i]);
        out[i] = NULL;
    }
    return status;
}

weir_status batch_run(struct fast *fast, int64_t n, struct weir_tensor **out, bool *out_done,
                      struct weir_error *err)
{
    struct weir_onnx *onnx = fast->onnx;
    *out_done = false;
    if (fast->batch.state == BATCH_IS_WHOLE || n < 2) {
        return WEIR_OK;
    }
    struct weir_tensor **all = calloc(onnx->n_inputs, sizeof(struct weir_tensor *));
    if (all == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a run");
    }
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        all[i] = weir_tensor_retain(onnx->values[onnx->input_values[i]]);
    }
    weir_status status = run_all(fast, all, n, out, err);
    *out_done = status == WEIR_OK && fast->batch.state == BATCH_IS_SPLIT;
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        weir_tensor_release(all[i]);
    }
    free(all);
    return status;
}
