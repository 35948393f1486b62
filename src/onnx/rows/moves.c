/* Rules of operators that move elements: the batch's axis is left as it is. */
#include "rows.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- put together, taken apart ------------------------------------------------------------------ */

static enum rows_verdict follow_concat(struct rows_call *call)
{
    size_t n = 0, n_in;
    bool is_followed = true;
    for (size_t i = 0; i < call->n_in; i++) {
        const struct rows_amount *from = rows_amounts(call->in[i], &n_in);
        is_followed = is_followed && from != NULL && call->in[i]->rank == 1;
        n += n_in;
    }
    if (!is_followed || n > ROWS_VALUES_MAX) {
        for (size_t i = 0; i < call->n_in; i++) {
            ROWS_NEED(!rows_counts(call->in[i]));
        }
        return ROWS_APART;
    }
    struct rows_amount *values = rows_values(call, 0, 1, n);
    for (size_t i = 0; i < call->n_in; i++) {
        const struct rows_amount *from = rows_amounts(call->in[i], &n_in);
        memcpy(values, from, n_in * sizeof *values);
        values += n_in;
    }
    return ROWS_APART;
}

static enum rows_verdict run_concat(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    ROWS_KNOW(x != NULL && x->rank >= 1);
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", 1), x->rank);
    ROWS_KNOW(axis >= 0);
    struct rows_state out = *x;
    struct rows_amount sum = x->dims[axis];
    for (size_t i = 0; i < call->n_in; i++) {
        const struct rows_state *in = call->in[i];
        ROWS_KNOW(in != NULL && in->rank == x->rank);
        ROWS_NEED(in->kind == x->kind && !rows_is_of_n(&in->dims[axis]));
        ROWS_NEED(!rows_has(x) ||
                  (in->axis == x->axis && rows_equal(&in->dims[x->axis], &x->dims[x->axis])));
        for (int32_t k = 0; k < x->rank; k++) { /* they are equal, or the run fails */
            out.dims[k] = rows_is_number(&in->dims[k]) ? in->dims[k] : out.dims[k];
        }
        sum = i > 0 ? rows_plus(&sum, &in->dims[axis], 1) : sum;
    }
    out.dims[axis] = sum.is_known ? sum : rows_fresh(call);
    rows_out_like(call, 0, &out);
    return rows_has(x) ? ROWS_APART : follow_concat(call);
}

static enum rows_verdict run_split(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    ROWS_KNOW(x->rank >= 1 && rows_flat_from(call, 1));
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", 0), x->rank);
    ROWS_KNOW(axis >= 0);
    ROWS_NEED(!rows_has(x) || axis != x->axis);
    size_t n, n_values;
    int64_t given[ROWS_VALUES_MAX];
    const int64_t *sizes = onnx_ints(&call->call, "split", &n);
    const struct rows_amount *values = rows_amounts(x, &n_values);
    if (sizes == NULL && rows_numbers(rows_in(call, 1), ROWS_VALUES_MAX, given, &n)) {
        sizes = given;
    }
    size_t at = 0;
    for (size_t i = 0; i < call->n_out; i++) {
        struct rows_amount each;
        struct rows_amount parts = rows_number((int64_t)call->n_out);
        rows_out_like(call, i, x);
        bool is_equal =
            sizes == NULL && rows_in(call, 1) == NULL && rows_divide(&x->dims[axis], &parts, &each);
        bool is_given = sizes != NULL && i < n;
        struct rows_amount size = is_given   ? rows_number(sizes[i])
                                  : is_equal ? each
                                             : rows_fresh(call);
        call->out[i].dims[axis] = size;
        size_t n_part = rows_is_number(&size) && size.coef >= 0 ? (size_t)size.coef : SIZE_MAX;
        if (values != NULL && x->rank == 1 && n_part <= n_values - at) {
            struct rows_amount *part = rows_values(call, i, 1, n_part);
            memcpy(part, values + at, n_part * sizeof *part);
            at += n_part;
        } else {
            ROWS_NEED(!rows_counts(x));
        }
    }
    return ROWS_APART;
}

#define WHOLE_END 1000000000 /* What exporters write for "to the end", at least. */

/* ---- slices ------------------------------------------------------------------------------------- */

struct slice {
    int64_t starts[WEIR_TENSOR_RANK_MAX], ends[WEIR_TENSOR_RANK_MAX];
    int64_t axes[WEIR_TENSOR_RANK_MAX], steps[WEIR_TENSOR_RANK_MAX];
    size_t n;
    bool is_known[WEIR_TENSOR_RANK_MAX]; /**< Are its bounds numbers? */
};

static bool read_list(const struct rows_call *call, const char *name, size_t input, int64_t *out,
                      size_t *n)
{
    const int64_t *list = onnx_ints(&call->call, name, n);
    if (list != NULL && *n <= WEIR_TENSOR_RANK_MAX) {
        memcpy(out, list, *n * sizeof *out);
        return true;
    }
    return list == NULL && rows_in(call, input) != NULL &&
           rows_numbers(rows_in(call, input), WEIR_TENSOR_RANK_MAX, out, n);
}

/* How many bounds there are, and those which are numbers. */
static bool read_bounds(const struct rows_call *call, const char *name, size_t input,
                        struct slice *s, int64_t *out, size_t *n)
{
    if (read_list(call, name, input, out, n)) {
        return true;
    }
    const struct rows_amount *amounts = rows_amounts(rows_in(call, input), n);
    if (amounts == NULL || *n > WEIR_TENSOR_RANK_MAX) {
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        out[i] = amounts[i].coef;
        s->is_known[i] = s->is_known[i] && rows_is_number(&amounts[i]);
    }
    return true;
}

static enum rows_verdict read_slice(const struct rows_call *call, int32_t rank, struct slice *s)
{
    size_t n_starts, n_ends, n;
    for (size_t i = 0; i < WEIR_TENSOR_RANK_MAX; i++) {
        s->axes[i] = (int64_t)i;
        s->steps[i] = 1;
        s->is_known[i] = true;
    }
    ROWS_KNOW(read_bounds(call, "starts", 1, s, s->starts, &n_starts) &&
              read_bounds(call, "ends", 2, s, s->ends, &n_ends) && n_starts == n_ends);
    bool has_axes = onnx_attribute(&call->call, "axes") != NULL || rows_in(call, 3) != NULL;
    ROWS_KNOW(!has_axes || (read_list(call, "axes", 3, s->axes, &n) && n == n_starts));
    ROWS_KNOW(rows_in(call, 4) == NULL ||
              (read_list(call, "steps", 4, s->steps, &n) && n == n_starts));
    s->n = n_starts;
    for (size_t i = 0; i < s->n; i++) {
        s->axes[i] = rows_axis(s->axes[i], rank);
        ROWS_KNOW(s->axes[i] >= 0);
    }
    return ROWS_APART;
}

/* Places of `size` from start to end by step; *out_first is the first. */
static size_t count_places(int64_t size, int64_t start, int64_t end, int64_t step,
                           int64_t *out_first)
{
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    start = start < 0 ? WEIR_MAX(start, -size - 1) + size : start;
    end = end < 0 ? WEIR_MAX(end, -size - 1) + size : end;
    start = WEIR_MIN(WEIR_MAX(start, (int64_t)0), high);
    end = WEIR_MIN(WEIR_MAX(end, low), size);
    int64_t span = step < 0 ? start - end : end - start, by = step < 0 ? -step : step;
    *out_first = start;
    return span > 0 ? (size_t)((span - 1) / by + 1) : 0;
}

static enum rows_verdict run_slice(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    struct slice s;
    ROWS_KNOW(x->rank >= 0);
    ROWS_NEED(rows_flat_from(call, 1));
    ROWS_TRY(read_slice(call, x->rank, &s));
    rows_out_like(call, 0, x);
    int64_t first = 0;
    for (size_t i = 0; i < s.n; i++) {
        struct rows_amount *dim = &call->out[0].dims[s.axes[i]];
        bool is_all =
            s.is_known[i] && s.starts[i] == 0 && s.ends[i] >= WHOLE_END && s.steps[i] == 1;
        bool is_numbers =
            s.is_known[i] && rows_is_number(dim) && s.steps[i] > INT32_MIN && s.steps[i] != 0;
        ROWS_NEED(!rows_has(x) || s.axes[i] != x->axis || is_all);
        if (is_numbers) {
            *dim = rows_number(
                (int64_t)count_places(dim->coef, s.starts[i], s.ends[i], s.steps[i], &first));
        } else if (!is_all) { /* of what is free of N: the driver lets no other amounts through */
            ROWS_NEED(!rows_counts(rows_in(call, 1)) && !rows_counts(rows_in(call, 2)));
            *dim = rows_fresh(call);
        }
    }
    const struct rows_amount *values = x->values;
    if (values == NULL) {
        return ROWS_APART;
    }
    ROWS_KNOW(x->rank == 1 && s.n == 1 && rows_is_number(&call->out[0].dims[0]));
    size_t n = (size_t)call->out[0].dims[0].coef;
    struct rows_amount *part = rows_values(call, 0, 1, n);
    for (size_t i = 0; i < n; i++) {
        part[i] = values[first + (int64_t)i * s.steps[0]];
    }
    return ROWS_APART;
}

/* ---- gathered ----------------------------------------------------------------------------------- */

/* Of followed values, those at places that are numbers. */
static enum rows_verdict follow_gather(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0), *at = rows_in(call, 1);
    int64_t places[ROWS_VALUES_MAX];
    size_t n, n_all;
    const struct rows_amount *all = rows_amounts(x, &n_all);
    if (all == NULL || x->rank != 1 || at->rank > 1 ||
        !rows_numbers(at, ROWS_VALUES_MAX, places, &n)) {
        ROWS_NEED(!rows_counts(x));
        return ROWS_APART;
    }
    struct rows_amount *values = rows_values(call, 0, at->rank, n);
    for (size_t i = 0; i < n; i++) {
        int64_t place = places[i] < 0 ? places[i] + (int64_t)n_all : places[i];
        ROWS_KNOW(place >= 0 && place < (int64_t)n_all);
        values[i] = all[place];
    }
    return ROWS_APART;
}

static enum rows_verdict run_gather(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0), *at = rows_in(call, 1);
    ROWS_KNOW(x->rank >= 1 && at->rank >= 0 && x->rank - 1 + at->rank <= WEIR_TENSOR_RANK_MAX);
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", 0), x->rank), rank = 0;
    struct rows_state out = {.kind = ROWS_FLAT};
    ROWS_KNOW(axis >= 0);
    ROWS_NEED(!rows_has(x) || (axis != x->axis && !rows_has(at)));
    ROWS_NEED(!rows_counts(at));
    for (int32_t i = 0; i < x->rank; i++) {
        for (int32_t k = 0; i == axis && k < at->rank; k++) {
            out.dims[rank++] = at->dims[k];
        }
        if (i != axis) {
            out.dims[rank++] = x->dims[i];
        }
    }
    out.rank = rank;
    ROWS_TRY(rows_settle(&out));
    rows_out_like(call, 0, &out);
    return rows_has(x) || rows_has(at) ? ROWS_APART : follow_gather(call);
}

/* By places of the same shape, along an axis: `a` operands must have the same rows. */
static enum rows_verdict run_gather_each(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0), *at = rows_in(call, 1);
    ROWS_KNOW(x->rank >= 1 && at->rank == x->rank);
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", 0), x->rank);
    ROWS_KNOW(axis >= 0);
    for (size_t i = 0; i < call->n_in; i++) {
        const struct rows_state *in = call->in[i];
        ROWS_NEED(in != NULL && in->kind == x->kind);
        ROWS_NEED(!rows_has(x) || (axis != x->axis && in->rank == x->rank && in->axis == x->axis &&
                                   rows_equal(&in->dims[x->axis], &x->dims[x->axis])));
    }
    rows_out_like(call, 0, call->call.node->type[0] == 'G' ? at : x);
    return ROWS_APART;
}

static enum rows_verdict run_one_hot(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    size_t n;
    int64_t depth;
    ROWS_KNOW(x->rank >= 0 && x->rank < WEIR_TENSOR_RANK_MAX);
    ROWS_NEED(rows_flat_from(call, 1));
    int32_t axis = rows_axis(onnx_int(&call->call, "axis", -1), x->rank + 1), from = 0;
    struct rows_state out = {.rank = x->rank + 1};
    bool is_known = rows_numbers(rows_in(call, 1), 1, &depth, &n) && n == 1;
    ROWS_KNOW(axis >= 0);
    for (int32_t i = 0; i < out.rank; i++) {
        out.dims[i] = i != axis  ? x->dims[from++]
                      : is_known ? rows_number(depth)
                                 : rows_fresh(call);
    }
    ROWS_TRY(rows_settle(&out));
    rows_out_like(call, 0, &out);
    return ROWS_APART;
}

/* ---- pads and scales ---------------------------------------------------------------------------- */

static enum rows_verdict run_pad(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    int64_t pads[2 * WEIR_TENSOR_RANK_MAX];
    size_t n;
    const int64_t *list = onnx_ints(&call->call, "pads", &n);
    ROWS_KNOW(x->rank >= 0);
    ROWS_NEED(rows_flat_from(call, 1));
    if (list == NULL && rows_numbers(rows_in(call, 1), WEIR_ARRAY_LEN(pads), pads, &n)) {
        list = pads;
    }
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    ROWS_TRY(rows_axes(call, 3, x->rank, axes, &has_axes));
    rows_out_like(call, 0, x);
    bool is_known = list != NULL && !has_axes && n == 2 * (size_t)x->rank;
    for (int32_t i = 0; i < x->rank; i++) {
        struct rows_amount *dim = &call->out[0].dims[i];
        struct rows_amount more = rows_number(is_known ? list[i] + list[i + x->rank] : 0);
        bool is_none = is_known ? list[i] == 0 && list[i + x->rank] == 0 : has_axes && !axes[i];
        ROWS_NEED(!rows_has(x) || i != x->axis || is_none);
        if (!is_none) {
            *dim = is_known ? rows_plus(dim, &more, 1) : rows_unknown(false);
            *dim = dim->is_known ? *dim : rows_fresh(call);
        }
    }
    return ROWS_APART;
}

/* What a Resize is asked for: sizes, or scales that are floats of the file. */
struct targets {
    const struct rows_amount *sizes;
    const float *scales;
    int32_t place[WEIR_TENSOR_RANK_MAX]; /**< Of each axis among them; -1: it stays as it is. */
};

static enum rows_verdict read_targets(const struct rows_call *call, int32_t rank, struct targets *t)
{
    bool is_old = strcmp(call->call.node->type, "Upsample") == 0 || call->call.opset < 11;
    const struct rows_state *scales = rows_in(call, is_old ? 1 : 2);
    const struct rows_state *sizes = is_old ? NULL : rows_in(call, 3);
    size_t n_axes, n;
    const int64_t *axes = onnx_ints(&call->call, "axes", &n_axes);
    memset(t, 0, sizeof *t);
    for (int32_t i = 0; i < rank; i++) {
        t->place[i] = axes != NULL ? -1 : i;
    }
    for (size_t i = 0; axes != NULL && i < n_axes; i++) {
        int32_t axis = rows_axis(axes[i], rank);
        ROWS_KNOW(axis >= 0);
        t->place[axis] = (int32_t)i;
    }
    n_axes = axes != NULL ? n_axes : (size_t)rank;
    t->sizes = rows_amounts(sizes, &n);
    if (t->sizes == NULL && (t->scales = onnx_floats(&call->call, "scales", &n)) == NULL &&
        scales != NULL && scales->constant != NULL && scales->constant->dtype == WEIR_DTYPE_FLOAT) {
        t->scales = scales->constant->data;
        n = scales->constant->n_elems;
    }
    ROWS_KNOW((t->sizes != NULL || t->scales != NULL) && n == n_axes);
    return ROWS_APART;
}

static enum rows_verdict run_resize(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    struct targets t;
    ROWS_KNOW(x->rank >= 0);
    ROWS_NEED(rows_flat_from(call, 1));
    ROWS_TRY(read_targets(call, x->rank, &t));
    rows_out_like(call, 0, x);
    bool is_stretched = onnx_text_is(&call->call, "keep_aspect_ratio_policy", "stretch", "stretch");
    bool is_cropped = onnx_text_is(&call->call, "coordinate_transformation_mode", "half_pixel",
                                   "tf_crop_and_resize");
    for (int32_t i = 0; i < x->rank; i++) {
        struct rows_amount *dim = &call->out[0].dims[i];
        int32_t place = t.place[i];
        bool stays =
            place < 0 || (t.sizes != NULL ? is_stretched && rows_equal(&t.sizes[place], dim)
                                          : t.scales[place] == 1.0F);
        ROWS_NEED(!rows_has(x) || i != x->axis || (stays && (place < 0 || !is_cropped)));
        if (stays) {
            continue;
        }
        if (t.sizes != NULL && is_stretched && t.sizes[place].is_known) {
            ROWS_NEED(!rows_is_of_n(&t.sizes[place]));
            *dim = t.sizes[place];
        } else if (t.sizes == NULL && rows_is_number(dim) && t.scales[place] > 0 &&
                   (double)dim->coef * (double)t.scales[place] < INT_MAX) {
            *dim = rows_number((int64_t)floor((double)dim->coef * (double)t.scales[place]));
        } else {
            ROWS_NEED(t.sizes == NULL || !rows_is_of_n(&t.sizes[place]));
            *dim = rows_fresh(call);
        }
    }
    return ROWS_APART;
}

/* Blocks of the channels to places, and back: `a` is 1 to places. */
static enum rows_verdict run_blocks(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    const struct rows_amount size = rows_number(onnx_int(&call->call, "blocksize", 1));
    const struct rows_amount square = rows_times(&size, &size);
    ROWS_KNOW(x->rank == 4);
    ROWS_NEED(!rows_has(x) || x->axis == 0);
    rows_out_like(call, 0, x);
    bool is_depth = strcmp(call->call.node->type, "DepthToSpace") == 0;
    for (int32_t i = 1; i < 4; i++) {
        const struct rows_amount *by = i == 1 ? &square : &size;
        struct rows_amount *dim = &call->out[0].dims[i], left;
        if ((i == 1) == is_depth) {
            *dim = rows_divide(dim, by, &left) ? left : rows_fresh(call);
        } else {
            *dim = rows_times(dim, by);
            *dim = dim->is_known ? *dim : rows_fresh(call);
        }
    }
    return ROWS_APART;
}

const struct rows_rule rows_moves[] = {
    {"Concat", run_concat, UINT32_MAX, 1},
    {"Split", run_split, 1, 1},
    {"Slice", run_slice, 1 | 2 | 4, 1},
    {"Gather", run_gather, 1, 2},
    {"GatherElements", run_gather_each, 0, 2},
    {"ScatterElements", run_gather_each, 0, 3},
    {"OneHot", run_one_hot, 0, 3},
    {"Pad", run_pad, 0, 1},
    {"Resize", run_resize, 8, 1},
    {"Upsample", run_resize, 0, 1},
    {"DepthToSpace SpaceToDepth", run_blocks, 0, 1},
};
const size_t rows_n_moves = WEIR_ARRAY_LEN(rows_moves);
