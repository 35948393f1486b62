/* Convolutions by Winograd's filtering. */
#include "conv.h"

#include "alarm.h"
#include "wino.h"

#include <math.h>

static bool is_blocked(const struct weir_dnn_layout *md)
{
    struct weir_dnn_layout blocked;
    return md->ndims == 4 && md->data_type == dnnl_f32 &&
           weir_dnn_layout_named(&blocked, 4, md->dims, dnnl_f32, dnnl_nChw8c) == dnnl_success &&
           weir_dnn_layout_equal(md, &blocked);
}

static bool is_small(const struct window *w)
{
    bool is = w->rank == 2;
    for (int32_t i = 0; is && i < 2; i++) {
        is = w->kernel[i] == 3 && w->stride[i] == 1 && w->dilation[i] == 1;
    }
    return is;
}

/* Activations that the kernel does. */
static bool read_acts(const struct tail *tail, struct wino *wino)
{
    wino->slope = 1;
    wino->low = -INFINITY;
    wino->high = INFINITY;
    if (tail->n_acts == 1 && tail->acts[0].alg == dnnl_eltwise_relu) {
        wino->slope = tail->acts[0].alpha != 0 ? tail->acts[0].alpha : 1;
        wino->low = tail->acts[0].alpha != 0 ? -INFINITY : 0; /* 0 times -infinity were NaN */
        return true;
    }
    if (tail->n_acts == 1 && tail->acts[0].alg == dnnl_eltwise_clip) {
        wino->low = tail->acts[0].alpha;
        wino->high = tail->acts[0].beta;
        return true;
    }
    return tail->n_acts == 0;
}

static weir_status run_wino(const void *detail, void *const *at, int32_t n_threads)
{
    struct wino job = *(const struct wino *)detail;
    job.x = at[0];
    job.y = at[1];
    job.scratch = at[2];
    job.added = job.added != NULL ? at[3] : NULL;
    wino_run(&job, n_threads);
    return WEIR_OK;
}

struct outliers {
    size_t n;
};

static weir_status run_outliers(const void *detail, void *const *at, int32_t n_threads)
{
    (void)n_threads;
    alarm_ring_at_outlier(at[0], ((const struct outliers *)detail)->n);
    return WEIR_OK;
}

/* A NaN goes to all results of its patch, and so does what rounding makes of an outlier: a plan that keeps NaN
 * computes them one by one. */
static weir_status look_for_outliers(struct fast_plan *plan, const struct weir_dnn_layout *md,
                                     const struct fast_form *x, struct weir_error *err)
{
    struct outliers *outliers = WEIR_ARENA_NEW(&plan->arena, struct outliers);
    const struct fast_arg of = fast_arg_of(0, md, x);
    outliers->n = md->n_bytes / sizeof(float);
    fast_hide_nan(plan);
    return fast_add_kernel(plan, "look for outliers", run_outliers, outliers, &of, 1, err);
}

static weir_status find_points(struct fast_plan *plan, size_t step, const struct conv *conv,
                               const float **out, struct weir_error *err)
{
    const struct weir_dnn_layout md =
        onednn_plain(WEIR_DTYPE_FLOAT, conv->w_rank, conv->w_dims); /* which weights, not how */
    int64_t c = conv->x->dims[1], k = (int64_t)conv->n_channels;
    float *points =
        fast_pack_find(plan->fast, step, product_slot(PRODUCT_POINTS, &conv->tail), &md);
    if (points == NULL) {
        points = fast_pack_add(plan->fast, step, product_slot(PRODUCT_POINTS, &conv->tail), &md,
                               wino_points_bytes(c, k));
        if (points == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for weights");
        }
        wino_points(conv->w->data, conv->tail.scale, c, k, points);
    }
    *out = points;
    return WEIR_OK;
}

static weir_status add(struct fast_plan *plan, const struct fast_link *link,
                       const struct conv *conv, const struct weir_dnn_layout *md[2],
                       struct wino *wino, struct weir_error *err)
{
    struct fast_form *x, *added = NULL;
    struct region_block *scratch;
    void *y, *memory;
    float *bias;
    WEIR_TRY(fast_form_as(plan, fast_step(plan, link, 0)->in[0], md[0], &x, err));
    WEIR_TRY(look_for_outliers(plan, md[0], x, err));
    WEIR_TRY(find_points(plan, link->steps[0], conv, &wino->points, err));
    WEIR_TRY(
        product_bias(plan, link->steps[0], conv->bias, &conv->tail, conv->n_channels, &bias, err));
    wino->bias = bias;
    if (conv->tail.added >= 0) {
        WEIR_TRY(fast_form_as(plan, conv->tail.added, md[1], &added, err));
        wino->added = wino->bias != NULL ? wino->bias : wino->points; /* any; the run sets it */
    }
    if (added != NULL && fast_may_take(plan, conv->tail.added, added) && added->block != x->block) {
        y = added->data;
        WEIR_TRY(fast_make_over(plan, conv->tail.out, WEIR_DTYPE_FLOAT, md[1], added, err));
    } else {
        WEIR_TRY(fast_make(plan, conv->tail.out, WEIR_DTYPE_FLOAT, md[1], &y, err));
    }
    WEIR_TRY(fast_scratch(plan, wino_scratch_bytes(&wino->form, plan->fast->n_threads), &scratch,
                          &memory, err));
    struct fast_arg args[] = {fast_arg_of(0, md[0], x), fast_arg_at(1, md[1], y),
                              fast_arg_at(2, md[1], memory), fast_arg_at(3, md[1], NULL)};
    if (added != NULL) {
        args[3] = fast_arg_of(3, md[1], added);
    }
    weir_status status = fast_add_kernel(plan, "winograd", run_wino, wino, args, 4, err);
    region_give(&plan->fast->region, scratch);
    return status;
}

weir_status conv_add_wino(struct fast_plan *plan, const struct fast_link *link, struct conv *conv,
                          const_dnnl_primitive_desc_t desc, bool *out_has, struct weir_error *err)
{
    const struct weir_dnn_layout *md[2] = {onednn_query(plan, desc, dnnl_query_src_md),
                                           onednn_query(plan, desc, dnnl_query_dst_md)};
    const struct window *w = &conv->window;
    *out_has = false;
    if (plan->keeps_nan || conv->is_turned || conv->groups != 1 || !is_small(w) ||
        !is_blocked(md[0]) || !is_blocked(md[1])) {
        return WEIR_OK;
    }
    struct wino *wino = WEIR_ARENA_NEW(&plan->arena, struct wino);
    wino->form = (struct wino_form){.n = conv->x->dims[0],
                                    .c = conv->x->dims[1],
                                    .h = w->in[0],
                                    .w = w->in[1],
                                    .k = (int64_t)conv->n_channels,
                                    .out_h = w->out[0],
                                    .out_w = w->out[1],
                                    .pad_h = w->before[0],
                                    .pad_w = w->before[1]};
    *out_has = read_acts(&conv->tail, wino) && wino_pays(&wino->form, plan->fast->n_threads);
    return *out_has ? add(plan, link, conv, md, wino, err) : WEIR_OK;
}
