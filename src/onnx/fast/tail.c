#include "tail.h"

#include <math.h>
#include <string.h>

/* ---- activations ------------------------------------------------------------------------------ */

static bool is_type(const struct onnx_step *step, const char *type)
{
    return strcmp(step->node->type, type) == 0;
}

/* A bound of Clip: an attribute, or since opset 11 an input that must be constant. */
static bool read_bound(const struct fast_plan *plan, const struct onnx_call *call,
                       const struct onnx_step *step, size_t i, float *bound)
{
    if (plan->fast->onnx->opset < 11) {
        *bound = onnx_float(call, i == 1 ? "min" : "max", *bound);
        return true;
    }
    if (i >= step->node->n_in || step->in[i] < 0) {
        return true;
    }
    const float *given = fast_floats(plan, step->in[i], 1);
    *bound = given != NULL ? given[0] : 0;
    return given != NULL && !isnan(*bound);
}

static size_t read_clip(const struct fast_plan *plan, const struct onnx_step *step,
                        struct onednn_act *act)
{
    struct weir_tensor *in[1];
    const struct onnx_call call = fast_call(plan, step, in, 1);
    float low = -INFINITY, high = INFINITY;
    bool is = read_bound(plan, &call, step, 1, &low) && read_bound(plan, &call, step, 2, &high);
    *act = (struct onednn_act){dnnl_eltwise_clip, low, high};
    return is && low <= high ? 1 : 0;
}

static size_t read_hard_sigmoid(const struct onnx_call *call, struct onednn_act acts[TAIL_ACTS_MAX])
{
    acts[0] = (struct onednn_act){dnnl_eltwise_linear, onnx_float(call, "alpha", 0.2F),
                                  onnx_float(call, "beta", 0.5F)};
    acts[1] = (struct onednn_act){dnnl_eltwise_clip, 0, 1};
    return 2;
}

static const struct {
    const char *type;
    dnnl_alg_kind_t alg;
    float alpha; /* If the node has no attribute alpha. */
} simple[] = {
    {"Relu", dnnl_eltwise_relu, 0},        {"LeakyRelu", dnnl_eltwise_relu, 0.01F},
    {"Sigmoid", dnnl_eltwise_logistic, 0}, {"Tanh", dnnl_eltwise_tanh, 0},
    {"Elu", dnnl_eltwise_elu, 1},          {"HardSwish", dnnl_eltwise_hardswish, 0},
    {"Abs", dnnl_eltwise_abs, 0},          {"Sqrt", dnnl_eltwise_sqrt, 0},
    {"Exp", dnnl_eltwise_exp, 0},
};

size_t tail_activation(const struct fast_plan *plan, const struct onnx_step *step,
                       struct onednn_act acts[TAIL_ACTS_MAX])
{
    struct weir_tensor *in[1];
    const struct onnx_call call = fast_call(plan, step, in, 1);
    if (is_type(step, "Clip")) {
        return read_clip(plan, step, acts);
    }
    if (is_type(step, "HardSigmoid")) {
        return read_hard_sigmoid(&call, acts);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(simple); i++) {
        if (is_type(step, simple[i].type)) {
            bool has_alpha = simple[i].alpha != 0;
            acts[0] = (struct onednn_act){
                simple[i].alg, has_alpha ? onnx_float(&call, "alpha", simple[i].alpha) : 0, 0};
            return 1;
        }
    }
    return 0;
}

size_t tail_activations(const struct fast_plan *plan, const struct fast_link *link, size_t i,
                        struct onednn_act acts[TAIL_ACTS_MAX], size_t *out_n)
{
    const struct onnx_step *step =
        i < link->n && !plan->keeps_nan ? fast_step(plan, link, i) : NULL;
    *out_n = 0;
    if (step != NULL && is_type(step, "Sigmoid") && i + 1 < link->n) {
        const struct onnx_step *next = fast_step(plan, link, i + 1);
        if (is_type(next, "Mul") && (next->in[0] == step->in[0] || next->in[1] == step->in[0])) {
            acts[0] = (struct onednn_act){dnnl_eltwise_swish, 1, 0};
            *out_n = 1;
            return 2;
        }
    }
    *out_n = step != NULL ? tail_activation(plan, step, acts) : 0;
    return *out_n > 0 ? 1 : 0;
}

/* ---- by channel ------------------------------------------------------------------------------- */

#define FACTOR_LEAST 1e-12
#define FACTOR_MOST  1e12

struct reader {
    struct fast_plan *plan;
    struct tail *tail;
    int32_t rank, channels;
    const int64_t *dims;
};

static void need_channels(struct reader *r)
{
    r->tail->n_folded++;
    size_t n = (size_t)r->dims[r->channels];
    if (r->tail->scale == NULL) {
        r->tail->scale = WEIR_ARENA_ARRAY(&r->plan->arena, n, float);
        r->tail->shift = WEIR_ARENA_ARRAY(&r->plan->arena, n, float);
        for (size_t i = 0; i < n; i++) {
            r->tail->scale[i] = 1;
        }
    }
}

/* May the weights be multiplied by a factor of channel i instead of the sum? An infinite factor makes NaN of
 * weights that are zero, and of sums of both signs; a large or small one leaves f32's range. */
static bool scales_weights(const struct reader *r, size_t i, double factor)
{
    double whole = fabs(factor * (r->tail->scale != NULL ? r->tail->scale[i] : 1));
    return factor == 0 || (whole >= FACTOR_LEAST && whole <= FACTOR_MOST);
}

static bool read_batch_norm(struct reader *r, const struct onnx_step *step)
{
    struct weir_tensor *in[5];
    const struct onnx_call call = fast_call(r->plan, step, in, 5);
    size_t n = (size_t)r->dims[r->channels];
    const float *p[4];
    bool is = r->channels == 1 && r->tail->added < 0 && r->tail->n_acts == 0 &&
              onnx_int(&call, "training_mode", 0) == 0 && onnx_int(&call, "spatial", 1) == 1;
    for (size_t i = 0; is && i < 4; i++) {
        p[i] = fast_floats(r->plan, step->in[i + 1], n);
        is = p[i] != NULL && in[i + 1]->n_elems == n;
    }
    const double epsilon = onnx_float(&call, "epsilon", 1e-5F);
    for (size_t i = 0; is && i < n; i++) {
        double factor = p[0][i] / sqrt((double)p[3][i] + epsilon);
        is = scales_weights(r, i, factor) && isfinite(p[1][i]) && isfinite(p[2][i]);
    }
    if (!is) {
        return false;
    }
    need_channels(r);
    for (size_t i = 0; i < n; i++) {
        double factor = p[0][i] / sqrt((double)p[3][i] + epsilon);
        r->tail->scale[i] = (float)(r->tail->scale[i] * factor);
        r->tail->shift[i] = (float)((r->tail->shift[i] - (double)p[2][i]) * factor + p[1][i]);
    }
    return true;
}

/* Is it one number, or one for each channel? */
static bool is_by_channel(const struct reader *r, const struct weir_tensor *tensor)
{
    if (tensor->n_elems == 1) {
        return tensor->rank <= r->rank;
    }
    bool is = tensor->rank <= r->rank;
    for (int32_t i = 0; is && i < tensor->rank; i++) {
        int32_t at = i + r->rank - tensor->rank;
        is = tensor->dims[i] == (at == r->channels ? r->dims[at] : 1);
    }
    return is;
}

static bool read_constant(struct reader *r, const struct onnx_step *step, int32_t result)
{
    bool is_first = step->in[0] == result;
    int32_t other = is_first ? step->in[1] : step->in[0];
    const float *values = fast_floats(r->plan, other, 1);
    char op = step->node->type[0]; /* Add, Sub, Sum, Mul, Div */
    bool is_sub = is_type(step, "Sub"), is_div = is_type(step, "Div");
    if (values == NULL || !is_by_channel(r, fast_tensor(r->plan, other)) || r->tail->added >= 0 ||
        r->tail->n_acts > 0 || (is_div && !is_first)) {
        return false;
    }
    size_t n = (size_t)r->dims[r->channels];
    bool is_single = fast_tensor(r->plan, other)->n_elems == 1;
    for (size_t i = 0; i < n && (op == 'M' || is_div); i++) {
        float value = values[is_single ? 0 : i];
        if (!scales_weights(r, i, is_div ? 1 / value : value)) {
            return false;
        }
    }
    need_channels(r);
    for (size_t i = 0; i < n; i++) {
        float value = values[is_single ? 0 : i];
        float *scale = &r->tail->scale[i], *shift = &r->tail->shift[i];
        float factor = op == 'M' ? value : is_div ? 1 / value : is_sub && !is_first ? -1 : 1;
        *scale *= factor;
        *shift *= factor;
        *shift += op == 'M' || is_div ? 0 : is_sub && is_first ? -value : value;
    }
    return true;
}

/* ---- another tensor --------------------------------------------------------------------------- */

static bool read_added(struct reader *r, const struct onnx_step *step, int32_t result)
{
    int32_t other = step->in[0] == result ? step->in[1] : step->in[0];
    const struct weir_tensor *tensor = fast_tensor(r->plan, other);
    bool is = (is_type(step, "Add") || is_type(step, "Sum")) && r->tail->added < 0 &&
              r->tail->n_acts == 0 && other != result && tensor != NULL &&
              tensor->dtype == WEIR_DTYPE_FLOAT && tensor->rank == r->rank &&
              memcmp(tensor->dims, r->dims, (size_t)r->rank * sizeof *r->dims) == 0;
    r->tail->added = is ? other : r->tail->added;
    return is;
}

static size_t read_activation(struct reader *r, const struct fast_link *link, size_t i)
{
    struct onednn_act acts[TAIL_ACTS_MAX];
    size_t n = 0, n_steps = r->tail->n_acts > 0 ? 0 : tail_activations(r->plan, link, i, acts, &n);
    for (size_t k = 0; k < n; k++) {
        r->tail->acts[r->tail->n_acts++] = acts[k];
    }
    return n_steps;
}

/* How many steps from i on join. */
static size_t read_step(struct reader *r, const struct fast_link *link, size_t i, int32_t result)
{
    const struct onnx_step *step = fast_step(r->plan, link, i);
    if (is_type(step, "BatchNormalization")) {
        return step->in[0] == result && read_batch_norm(r, step) ? 1 : 0;
    }
    bool is_pair = step->node->n_in == 2 && step->in[0] >= 0 && step->in[1] >= 0 &&
                   fast_broadcasts_from_last(r->plan, step);
    if (is_type(step, "Add") || is_type(step, "Sub") || is_type(step, "Mul") ||
        is_type(step, "Div") || is_type(step, "Sum")) {
        return is_pair && (read_constant(r, step, result) || read_added(r, step, result)) ? 1 : 0;
    }
    return step->in[0] == result ? read_activation(r, link, i) : 0;
}

void tail_read(struct fast_plan *plan, const struct fast_link *link, int32_t rank,
               const int64_t *dims, int32_t channels, struct tail *tail)
{
    struct reader r = {plan, tail, rank, channels, dims};
    *tail = (struct tail){.n_taken = 1, .added = -1, .out = fast_step(plan, link, 0)->out[0]};
    while (tail->n_taken < link->n) {
        size_t n = read_step(&r, link, tail->n_taken, tail->out);
        if (n == 0) {
            break;
        }
        tail->n_taken += n;
        tail->out = fast_step(plan, link, tail->n_taken - 1)->out[0];
    }
}
