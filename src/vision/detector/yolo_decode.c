#include "vision/detector/yolo.h"

#include <string.h>

#define FACE_POINTS WEIR_FACE_POINTS

static const struct weir_detector_yolo *own_of(const struct detector_answer *answer)
{
    return answer->plan->options;
}

bool yolo_anchors(const json_t *json, float out[YOLO_HEADS][2 * YOLO_ANCHORS])
{
    static const float coco[YOLO_HEADS][2 * YOLO_ANCHORS] = {
        {10, 13, 16, 30, 33, 23}, {30, 61, 62, 45, 59, 119}, {116, 90, 156, 198, 373, 326}};
    if (json == NULL) {
        memcpy(out, coco, sizeof coco);
        return true;
    }
    bool is_good = json_array_size(json) == YOLO_HEADS;
    for (size_t k = 0; is_good && k < YOLO_HEADS; k++) {
        const json_t *head = json_array_get(json, k);
        is_good = json_array_size(head) == 2 * YOLO_ANCHORS;
        for (size_t i = 0; is_good && i < 2 * YOLO_ANCHORS; i++) {
            out[k][i] = (float)json_number_value(json_array_get(head, i));
            is_good = out[k][i] > 0;
        }
    }
    return is_good;
}

/* ---- rows and channels ----------------------------------------------------------------------------- */

/* Numbers of one thing lie `step` apart. */
static void add(const float *at, size_t step, const float *points, size_t points_step,
                struct harvest *harvest, float score, size_t class_id)
{
    float five[2 * FACE_POINTS];
    for (size_t k = 0; points != NULL && k < FACE_POINTS; k++) {
        five[2 * k] = points[k * points_step * step];
        five[2 * k + 1] = points[(k * points_step + 1) * step];
    }
    harvest_add_centred(harvest, score, (int32_t)class_id,
                        (const float[]){at[0], at[step], at[2 * step], at[3 * step]},
                        points != NULL ? five : NULL);
}

/* How a row of v5 and of YOLOX is parted. */
struct row {
    size_t n_columns, n_points, classes, n_classes;
};

static weir_status row_of(const struct detector_answer *answer, struct row *out,
                          struct weir_error *err)
{
    size_t n_points = (size_t)own_of(answer)->points, n = detector_dim(answer, 0, 0);
    if (n < 6 + 2 * n_points) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "the detector's rows have %zu numbers: too few for a box, how sure it "
            "is, %zu points and classes",
            n, n_points);
    }
    *out = (struct row){.n_columns = n,
                        .n_points = n_points,
                        .classes = 5 + 2 * n_points,
                        .n_classes = n - 5 - 2 * n_points};
    return WEIR_OK;
}

/* The best class of a row, when both it and the row are sure enough; less than the threshold else. */
static float score_of(const float *at, const struct row *row, float threshold, size_t *out_class)
{
    if (!(at[4] >= threshold)) {
        return -1;
    }
    *out_class = detector_best(at + row->classes, row->n_classes, 1);
    return at[4] * at[row->classes + *out_class];
}

weir_status yolo_decode_v5(const struct detector_answer *answer, struct harvest *harvest,
                           struct weir_error *err)
{
    struct row row;
    const float *values;
    WEIR_TRY(row_of(answer, &row, err));
    size_t n = detector_rows(answer, 0, row.n_columns), class_id = 0;
    WEIR_TRY(detector_values(answer, 0, n * row.n_columns, &values, err));
    for (size_t i = 0; i < n; i++) {
        const float *at = values + i * row.n_columns;
        float score = score_of(at, &row, answer->threshold, &class_id);
        if (score >= answer->threshold) {
            add(at, 1, row.n_points == FACE_POINTS ? at + 5 : NULL, 2, harvest, score, class_id);
        }
    }
    return WEIR_OK;
}

weir_status yolo_decode_yolox(const struct detector_answer *answer, struct harvest *harvest,
                              struct weir_error *err)
{
    struct row row;
    const float *at;
    size_t n = 0, class_id = 0;
    for (int s = 8; s <= 32; s *= 2) {
        n += (size_t)detector_places(answer->width, s) * (size_t)detector_places(answer->height, s);
    }
    WEIR_TRY(row_of(answer, &row, err));
    WEIR_TRY(detector_values(answer, 0, n * row.n_columns, &at, err));
    for (int s = 8; s <= 32; s *= 2) {
        size_t w = (size_t)detector_places(answer->width, s);
        size_t n_places = w * (size_t)detector_places(answer->height, s);
        for (size_t i = 0; i < n_places; i++, at += row.n_columns) {
            float score = score_of(at, &row, answer->threshold, &class_id), f = (float)s;
            if (score >= answer->threshold) {
                const float box[] = {(at[0] + detector_column(i, w)) * f,
                                     (at[1] + detector_line(i, w)) * f, expf(at[2]) * f,
                                     expf(at[3]) * f};
                add(box, 1, NULL, 0, harvest, score, class_id);
            }
        }
    }
    return WEIR_OK;
}

weir_status yolo_decode_v8(const struct detector_answer *answer, struct harvest *harvest,
                           struct weir_error *err)
{
    size_t n_points = (size_t)own_of(answer)->points, n = detector_dim(answer, 0, 0);
    size_t n_channels = detector_dim(answer, 0, 1);
    const float *values;
    if (n_channels < 5 + 3 * n_points) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the detector has %zu channels: too few for a box, classes and %zu "
                              "points",
                              n_channels, n_points);
    }
    WEIR_TRY(detector_values(answer, 0, n_channels * n, &values, err));
    size_t n_classes = n_channels - 4 - 3 * n_points;
    for (size_t i = 0; i < n; i++) {
        const float *classes = values + 4 * n + i;
        size_t best = detector_best(classes, n_classes, n);
        if (classes[best * n] >= answer->threshold) {
            add(values + i, n, n_points == FACE_POINTS ? classes + n_classes * n : NULL, 3, harvest,
                classes[best * n], best);
        }
    }
    return WEIR_OK;
}

/* ---- heads ------------------------------------------------------------------------------------------- */

/* A head's stride by its shape: 8, 16 or 32; 0: none. i: where its height and width stand, from the last. */
static int stride_of(const struct detector_answer *answer, size_t role, size_t i)
{
    for (int stride = 8; stride <= 32; stride *= 2) {
        if (detector_dim(answer, role, i) == (size_t)detector_places(answer->width, stride) &&
            detector_dim(answer, role, i + 1) == (size_t)detector_places(answer->height, stride)) {
            return stride;
        }
    }
    return 0;
}

static weir_status no_stride(const struct detector_answer *answer, size_t role,
                             struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "the detector's output \"%.60s\" is no head of stride 8, 16 or 32 of an "
                          "input of %d×%d",
                          answer->roles[role]->name, answer->width, answer->height);
}

static void add_v5_raw(const float *at, size_t n_classes, float x, float y, float stride,
                       const float anchor[2], const struct detector_answer *answer,
                       struct harvest *harvest)
{
    float sure = detector_sigmoid(at[4]);
    if (!(sure >= answer->threshold)) {
        return;
    }
    size_t best = n_classes > 0 ? detector_best(at + 5, n_classes, 1) : 0;
    float score = n_classes > 0 ? sure * detector_sigmoid(at[5 + best]) : sure;
    float w = 2 * detector_sigmoid(at[2]), h = 2 * detector_sigmoid(at[3]);
    const float box[] = {(2 * detector_sigmoid(at[0]) - 0.5f + x) * stride,
                         (2 * detector_sigmoid(at[1]) - 0.5f + y) * stride, w * w * anchor[0],
                         h * h * anchor[1]};
    add(box, 1, NULL, 0, harvest, score, best);
}

weir_status yolo_decode_v5_raw(const struct detector_answer *answer, struct harvest *harvest,
                               struct weir_error *err)
{
    float anchors[YOLO_HEADS][2 * YOLO_ANCHORS];
    (void)yolo_anchors(own_of(answer)->anchors, anchors);
    for (size_t role = 0; role < YOLO_HEADS; role++) {
        size_t n_columns = detector_dim(answer, role, 0), w = detector_dim(answer, role, 1);
        size_t n_places = w * detector_dim(answer, role, 2);
        int stride = stride_of(answer, role, 1);
        const float *values;
        if (stride == 0 || n_columns < 5) {
            return no_stride(answer, role, err);
        }
        WEIR_TRY(detector_values(answer, role, YOLO_ANCHORS * n_places * n_columns, &values, err));
        const float *of_head = anchors[stride == 8 ? 0 : stride == 16 ? 1 : 2];
        for (size_t i = 0; i < YOLO_ANCHORS * n_places; i++) {
            size_t place = i % n_places;
            add_v5_raw(values + i * n_columns, n_columns - 5, detector_column(place, w),
                       detector_line(place, w), (float)stride, of_head + 2 * (i / n_places), answer,
                       harvest);
        }
    }
    return WEIR_OK;
}

/* How far a side lies away, in places: the mean over its bins. */
static float distance(const float *bins, size_t n_places)
{
    float greatest = bins[detector_best(bins, YOLO_BINS, n_places) * n_places], sum = 0, mean = 0;
    for (size_t k = 0; k < YOLO_BINS; k++) {
        float weight = expf(bins[k * n_places] - greatest);
        sum += weight;
        mean += weight * (float)k;
    }
    return mean / sum;
}

static void decode_v8_head(const struct detector_answer *answer, const float *values,
                           size_t n_places, size_t n_classes, int stride, struct harvest *harvest)
{
    size_t w = (size_t)detector_places(answer->width, stride);
    for (size_t i = 0; i < n_places; i++) {
        const float *classes = values + 4 * YOLO_BINS * n_places + i;
        size_t best = detector_best(classes, n_classes, n_places);
        float score = detector_sigmoid(classes[best * n_places]), side[4];
        if (!(score >= answer->threshold)) {
            continue;
        }
        for (size_t k = 0; k < 4; k++) {
            side[k] = distance(values + k * YOLO_BINS * n_places + i, n_places);
        }
        float f = (float)stride, x = detector_column(i, w) + 0.5f, y = detector_line(i, w) + 0.5f;
        harvest_add(harvest, score, (int32_t)best,
                    (const float[]){(x - side[0]) * f, (y - side[1]) * f, (x + side[2]) * f,
                                    (y + side[3]) * f},
                    NULL);
    }
}

weir_status yolo_decode_v8_raw(const struct detector_answer *answer, struct harvest *harvest,
                               struct weir_error *err)
{
    for (size_t role = 0; role < YOLO_HEADS; role++) {
        size_t n_places = detector_dim(answer, role, 0) * detector_dim(answer, role, 1);
        size_t n_channels = detector_dim(answer, role, 2);
        int stride = stride_of(answer, role, 0);
        const float *values;
        if (stride == 0 || n_channels <= 4 * YOLO_BINS) {
            return no_stride(answer, role, err);
        }
        WEIR_TRY(detector_values(answer, role, n_channels * n_places, &values, err));
        decode_v8_head(answer, values, n_places, n_channels - 4 * YOLO_BINS, stride, harvest);
    }
    return WEIR_OK;
}

/* ---- finished lists ---------------------------------------------------------------------------------- */

static void add_finished(const float *box, float score, float class_id,
                         const struct detector_answer *answer, struct harvest *harvest)
{
    if (score >= answer->threshold && class_id >= 0 && class_id < 1e6f) {
        harvest_add(harvest, score, (int32_t)class_id, box, NULL);
    }
}

weir_status yolo_decode_end2end(const struct detector_answer *answer, struct harvest *harvest,
                                struct weir_error *err)
{
    size_t n = detector_rows(answer, 0, 6);
    const float *row;
    WEIR_TRY(detector_values(answer, 0, 6 * n, &row, err));
    for (size_t i = 0; i < n; i++, row += 6) {
        add_finished(row, row[4], row[5], answer, harvest);
    }
    return WEIR_OK;
}

weir_status yolo_decode_v7_end2end(const struct detector_answer *answer, struct harvest *harvest,
                                   struct weir_error *err)
{
    size_t n = detector_rows(answer, 0, 7);
    const float *row;
    WEIR_TRY(detector_values(answer, 0, 7 * n, &row, err));
    for (size_t i = 0; i < n; i++, row += 7) {
        if (row[0] == 0) {
            add_finished(row + 1, row[6], row[5], answer, harvest);
        }
    }
    return WEIR_OK;
}

weir_status yolo_decode_plugin(const struct detector_answer *answer, struct harvest *harvest,
                               struct weir_error *err)
{
    enum role { COUNT, BOX, SCORE, CLASS };

    size_t n = detector_rows(answer, BOX, 4);
    const float *count, *box, *score, *class;
    WEIR_TRY(detector_values(answer, COUNT, 1, &count, err));
    WEIR_TRY(detector_values(answer, BOX, 4 * n, &box, err));
    WEIR_TRY(detector_values(answer, SCORE, n, &score, err));
    WEIR_TRY(detector_values(answer, CLASS, n, &class, err));
    for (size_t i = 0; i < n && (float)i < count[0]; i++) {
        add_finished(box + 4 * i, score[i], class[i], answer, harvest);
    }
    return WEIR_OK;
}
