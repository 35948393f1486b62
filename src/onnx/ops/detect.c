/* What detectors end with: boxes that are not the same object, and features of regions. */
#include "onnx/op.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- NonMaxSuppression ------------------------------------------------------------------------ */

struct box {
    double top, left, bottom, right, score;
    size_t index;
};

static struct box read_box(const struct weir_tensor *boxes, size_t at, bool is_center)
{
    double v[4];
    for (size_t i = 0; i < 4; i++) {
        v[i] = onnx_get(boxes, at * 4 + i);
    }
    if (is_center) { /* x, y, width, height */
        return (struct box){.top = v[1] - v[3] / 2,
                            .bottom = v[1] + v[3] / 2,
                            .left = v[0] - v[2] / 2,
                            .right = v[0] + v[2] / 2};
    }
    return (struct box){.top = fmin(v[0], v[2]),
                        .bottom = fmax(v[0], v[2]),
                        .left = fmin(v[1], v[3]),
                        .right = fmax(v[1], v[3])};
}

static double overlap(const struct box *a, const struct box *b)
{
    double height = fmin(a->bottom, b->bottom) - fmax(a->top, b->top);
    double width = fmin(a->right, b->right) - fmax(a->left, b->left);
    double both = height > 0 && width > 0 ? height * width : 0;
    double area_a = (a->bottom - a->top) * (a->right - a->left);
    double area_b = (b->bottom - b->top) * (b->right - b->left);
    return area_a > 0 && area_b > 0 ? both / (area_a + area_b - both) : 0;
}

static int by_score(const void *left, const void *right)
{
    const struct box *a = left, *b = right;
    return a->score != b->score ? (a->score < b->score) - (a->score > b->score)
                                : (a->index > b->index) - (a->index < b->index);
}

/** Of all classes and images. */
struct selection {
    int64_t most;
    float overlap_max; /* an overlap of 0.45 is not above 0.45, though as doubles it is */
    double score_min;
    bool is_center, has_score_min;
    size_t n_batches, n_classes, n_boxes;
    struct box *boxes, *chosen; /* room for one class each */
    int64_t *found;             /* batch, class, box */
    size_t n_found;
};

static void select_class(struct selection *s, const struct onnx_call *call, size_t batch,
                         size_t class)
{
    size_t n = 0, n_chosen = 0;
    for (size_t i = 0; i < s->n_boxes; i++) {
        double score = onnx_get(call->in[1], (batch * s->n_classes + class) * s->n_boxes + i);
        if (s->has_score_min ? score > s->score_min : !isnan(score)) {
            s->boxes[n] = read_box(call->in[0], batch * s->n_boxes + i, s->is_center);
            s->boxes[n].score = score;
            s->boxes[n++].index = i;
        }
    }
    qsort(s->boxes, n, sizeof *s->boxes, by_score);
    for (size_t i = 0; i < n && n_chosen < (size_t)s->most; i++) {
        bool is_new = true;
        for (size_t k = 0; is_new && k < n_chosen; k++) {
            is_new = (float)overlap(&s->boxes[i], &s->chosen[k]) <= s->overlap_max;
        }
        if (is_new) {
            s->chosen[n_chosen++] = s->boxes[i];
            int64_t *to = s->found + 3 * s->n_found++;
            to[0] = (int64_t)batch;
            to[1] = (int64_t) class;
            to[2] = (int64_t)s->boxes[i].index;
        }
    }
}

static weir_status put_selection(struct onnx_call *call, struct selection *s,
                                 struct weir_error *err)
{
    struct weir_tensor *y;
    for (size_t batch = 0; batch < s->n_batches; batch++) {
        for (size_t class = 0; class < s->n_classes; class ++) {
            select_class(s, call, batch, class);
        }
    }
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT64, 2, (int64_t[]){(int64_t)s->n_found, 3}, &y, err));
    if (s->n_found > 0) {
        memcpy(y->data, s->found, 3 * s->n_found * sizeof *s->found);
    }
    return WEIR_OK;
}

static weir_status run_nms(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *boxes = onnx_in(call, 0), *scores = onnx_in(call, 1);
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
        boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2]) {
        return weir_error_set(err, WEIR_ERR_INVALID, "boxes and scores do not fit");
    }
    if (weir_dtype_class(boxes->dtype) != WEIR_DTYPE_IS_FLOAT || boxes->dtype != scores->dtype) {
        return onnx_refuse_dtype(boxes->dtype, err);
    }
    struct selection s = {.overlap_max = (float)onnx_in_number(call, 3, 0),
                          .score_min = onnx_in_number(call, 4, 0),
                          .has_score_min = onnx_in(call, 4) != NULL,
                          .is_center = onnx_int(call, "center_point_box", 0) != 0,
                          .n_batches = (size_t)boxes->dims[0],
                          .n_classes = (size_t)scores->dims[1],
                          .n_boxes = (size_t)boxes->dims[1]};
    s.most = WEIR_MIN(WEIR_MAX(onnx_in_int(call, 2, 0), (int64_t)0), (int64_t)s.n_boxes);
    s.boxes = calloc(s.n_boxes + 1, sizeof *s.boxes);
    s.chosen = calloc(s.n_boxes + 1, sizeof *s.chosen);
    s.found = calloc(scores->n_elems + 1, 3 * sizeof *s.found);
    weir_status status = s.boxes != NULL && s.chosen != NULL && s.found != NULL
                             ? put_selection(call, &s, err)
                             : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for boxes");
    free(s.boxes);
    free(s.chosen);
    free(s.found);
    return status;
}

/* ---- RoiAlign (He et al., Mask R-CNN, ICCV 2017) ----------------------------------------------- */

struct align {
    const struct weir_tensor *x;
    int64_t height, width;     /* of x */
    int64_t n_rows, n_columns; /* of the result */
    int64_t sampling;
    double scale, shift;
    bool is_max, is_least_one;
};

/* The value at a point between four pixels; 0 outside. */
static double sample(const struct align *a, size_t plane, double y, double x, bool is_max)
{
    if (isnan(y) || isnan(x)) {
        return NAN;
    }
    if (y < -1 || y > (double)a->height || x < -1 || x > (double)a->width) {
        return 0;
    }
    y = fmin(fmax(y, 0), (double)(a->height - 1));
    x = fmin(fmax(x, 0), (double)(a->width - 1));
    int64_t top = (int64_t)y, left = (int64_t)x;
    int64_t bottom = WEIR_MIN(top + 1, a->height - 1), right = WEIR_MIN(left + 1, a->width - 1);
    double down = y - (double)top, across = x - (double)left;
    const int64_t rows[] = {top, top, bottom, bottom}, columns[] = {left, right, left, right};
    const double weights[] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across),
                              down * across};
    double sum = 0, most = -INFINITY;
    for (size_t i = 0; i < 4; i++) {
        size_t at =
            (plane * (size_t)a->height + (size_t)rows[i]) * (size_t)a->width + (size_t)columns[i];
        double value = weights[i] * onnx_get(a->x, at);
        sum += value;
        most = isnan(value) || value > most ? value : most;
    }
    return is_max ? most : sum;
}

/** A cell of the result: where it begins, its size, and points a side. */
struct cell {
    double y, x, height, width;
    int64_t n_y, n_x;
};

static double sum_cell(const struct align *a, size_t plane, const struct cell *cell)
{
    double sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < cell->n_y; i++) {
        for (int64_t k = 0; k < cell->n_x; k++) {
            double y = cell->y + ((double)i + 0.5) * cell->height / (double)cell->n_y;
            double x = cell->x + ((double)k + 0.5) * cell->width / (double)cell->n_x;
            double value = sample(a, plane, y, x, a->is_max);
            sum += value;
            most = isnan(value) || value > most ? value : most;
        }
    }
    double n = (double)(cell->n_y * cell->n_x);
    if (isnan(cell->height) || isnan(cell->width)) {
        return NAN;
    }
    return n == 0 ? 0 : a->is_max ? most : sum / n;
}

static void align_region(const struct align *a, const double corners[4], size_t image,
                         struct weir_tensor *y, size_t region)
{
    double left = corners[0] * a->scale - a->shift, top = corners[1] * a->scale - a->shift;
    double width = corners[2] * a->scale - a->shift - left;
    double height = corners[3] * a->scale - a->shift - top;
    if (a->is_least_one) {
        width = width < 1 ? 1 : width;
        height = height < 1 ? 1 : height;
    }
    struct cell cell = {.height = height / (double)a->n_rows,
                        .width = width / (double)a->n_columns};
    cell.n_y = a->sampling > 0 ? a->sampling : (int64_t)fmin(ceil(fmax(cell.height, 0)), 1e4);
    cell.n_x = a->sampling > 0 ? a->sampling : (int64_t)fmin(ceil(fmax(cell.width, 0)), 1e4);
    size_t n_channels = (size_t)a->x->dims[1], n_cells = (size_t)(a->n_rows * a->n_columns);
    for (size_t i = 0; i < n_channels * n_cells; i++) {
        size_t channel = i / n_cells;
        size_t row = i % n_cells / (size_t)a->n_columns;
        cell.y = top + (double)row * cell.height;
        cell.x = left + (double)(i % (size_t)a->n_columns) * cell.width;
        onnx_put(y, region * n_channels * n_cells + i,
                 sum_cell(a, image * n_channels + channel, &cell));
    }
}

static weir_status run_roi_align(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *rois = onnx_in(call, 1);
    const struct weir_tensor *images = onnx_in(call, 2);
    bool is_half =
        onnx_text_is(call, "coordinate_transformation_mode",
                     call->opset >= 16 ? "half_pixel" : "output_half_pixel", "half_pixel");
    struct align a = {.x = x,
                      .n_rows = onnx_int(call, "output_height", 1),
                      .n_columns = onnx_int(call, "output_width", 1),
                      .sampling = onnx_int(call, "sampling_ratio", 0),
                      .scale = onnx_float(call, "spatial_scale", 1),
                      .shift = is_half ? 0.5 : 0,
                      .is_least_one = !is_half,
                      .is_max = onnx_text_is(call, "mode", "avg", "max")};
    struct weir_tensor *y;
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 4 ||
        images->n_elems != (size_t)rois->dims[0] || a.sampling < 0 || a.sampling > 1000 ||
        a.n_rows < 1 || a.n_columns < 1 || a.n_rows > INT32_MAX || a.n_columns > INT32_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the regions do not fit");
    }
    if (weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT || rois->dtype != x->dtype ||
        (images->dtype != WEIR_DTYPE_INT64 && images->dtype != WEIR_DTYPE_INT32)) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    a.height = x->dims[2];
    a.width = x->dims[3];
    WEIR_TRY(onnx_out(call, 0, x->dtype, 4,
                      (int64_t[]){rois->dims[0], x->dims[1], a.n_rows, a.n_columns}, &y, err));
    for (size_t i = 0; i < (size_t)rois->dims[0]; i++) {
        double corners[4];
        int64_t image = 0;
        weir_elems_to_i64(images->dtype,
                          (const char *)images->data + i * weir_dtype_bytes(images->dtype), &image,
                          1);
        if (image < 0 || image >= x->dims[0]) {
            return weir_error_set(err, WEIR_ERR_INVALID, "a region of image %lld",
                                  (long long)image);
        }
        for (size_t k = 0; k < 4; k++) {
            corners[k] = onnx_get(rois, i * 4 + k);
        }
        align_region(&a, corners, (size_t)image, y, i);
    }
    return WEIR_OK;
}

const struct onnx_op onnx_ops_detect[] = {
    {"NonMaxSuppression", 10, 2, 1, run_nms, NULL},
    {"RoiAlign", 10, 3, 1, run_roi_align, NULL},
};
const size_t onnx_n_ops_detect = WEIR_ARRAY_LEN(onnx_ops_detect);
