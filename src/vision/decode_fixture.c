/* The formulas of each kind the other way round, in double precision and by plain loops. */
#include "vision/decode_fixture_private.h"

#include <string.h>

void fixture_scene(const struct encoder *encoder, struct weir_rng *rng, struct scene *out)
{
    memset(out, 0, sizeof *out);
    out->width = encoder->width > 0 ? encoder->width : 32 * (4 + (int)weir_rng_below(rng, 9));
    out->height = encoder->height > 0 ? encoder->height : 32 * (4 + (int)weir_rng_below(rng, 9));
    out->n_classes = encoder->has_classes ? 2 + (int)weir_rng_below(rng, 9) : 1;
    out->n = weir_rng_below(rng, FIXTURE_THINGS_MAX + 1);
    for (size_t i = 0; i < out->n; i++) { /* each in its own sixth of the picture */
        struct thing *thing = &out->things[i];
        double w = out->width / 3.0, h = out->height / 2.0;
        double left = w * (double)(i % 3), top = i < 3 ? 0 : h;
        double from_x = between(rng, 0.02, 0.3), from_y = between(rng, 0.02, 0.3);
        thing->box[0] = left + w * from_x;
        thing->box[1] = top + h * from_y;
        thing->box[2] = left + w * between(rng, from_x + 0.3, 0.98);
        thing->box[3] = top + h * between(rng, from_y + 0.3, 0.98);
        thing->score = 0.97 - 0.03 * (double)i - between(rng, 0, 0.02);
        thing->class_id = (int)weir_rng_below(rng, (uint64_t)out->n_classes);
        for (size_t k = 0; k < 10; k++) {
            thing->points[k] = between(rng, thing->box[k % 2] - 5, thing->box[2 + k % 2] + 5);
        }
    }
}

/* A new output, filled with one value; its numbers. */
float *fixture_add(struct fixture *f, const char *name, double fill, size_t rank, ...)
{
    size_t n = 1, k = f->n++;
    va_list args;
    va_start(args, rank);
    for (size_t i = 0; i < rank; i++) {
        f->dims[k][i] = va_arg(args, int);
        n *= (size_t)f->dims[k][i];
    }
    va_end(args);
    f->values[k] = malloc(n * sizeof(float) + 1);
    for (size_t i = 0; i < n; i++) {
        f->values[k][i] = (float)fill;
    }
    f->outputs[k] = (struct weir_detector_output){name, f->dims[k], rank, f->values[k]};
    return f->values[k];
}

/* ---- maps of centres ---------------------------------------------------------------------------------- */

static void centernet(struct fixture *f)
{
    int w = f->scene->width / 4, h = f->scene->height / 4, n = w * h;
    float *heat = fixture_add(f, "537", 0.1, 4, 1, 1, h, w),
          *scale = fixture_add(f, "538", 9, 4, 1, 2, h, w);
    float *offset = fixture_add(f, "539", 7, 4, 1, 2, h, w),
          *points = fixture_add(f, "540", 5, 4, 1, 10, h, w);
    FOR_THINGS(f, t)
    {
        int x = (int)(centre_x(t) / 4), y = (int)(centre_y(t) / 4), i = y * w + x;
        heat[i] = (float)t->score;
        scale[i] = (float)log(high(t) / 4);
        scale[n + i] = (float)log(wide(t) / 4);
        offset[i] = (float)(centre_y(t) / 4 - y - 0.5);
        offset[n + i] = (float)(centre_x(t) / 4 - x - 0.5);
        for (int k = 0; k < 5; k++) {
            points[2 * k * n + i] = (float)((t->points[2 * k + 1] - t->box[1]) / high(t));
            points[(2 * k + 1) * n + i] = (float)((t->points[2 * k] - t->box[0]) / wide(t));
        }
    }
}

static void centernet_generic(struct fixture *f)
{
    int w = f->scene->width / 4, h = f->scene->height / 4, n = w * h;
    float *heat = fixture_add(f, "hm", -9, 4, 1, f->scene->n_classes, h, w);
    float *size = fixture_add(f, "wh", 3, 4, 1, 2, h, w),
          *offset = fixture_add(f, "reg", 7, 4, 1, 2, h, w);
    FOR_THINGS(f, t)
    {
        int x = (int)(centre_x(t) / 4), y = (int)(centre_y(t) / 4), i = y * w + x;
        float *map = heat + t->class_id * n;
        map[i] = (float)logit(t->score);
        map[i + 1] = map[i - w] = map[i] - 0.01f; /* beside a maximum nothing is one */
        size[i] = (float)(wide(t) / 4);
        size[n + i] = (float)(high(t) / 4);
        offset[i] = (float)(centre_x(t) / 4 - x);
        offset[n + i] = (float)(centre_y(t) / 4 - y);
    }
}

/* Faces of up to 26 pixels are told of in squares of 8, wider ones of 16: no matter here, so by turns. */
static void own(struct fixture *f)
{
    int n = 0, turn = 0, first[2], first_place[2];
    for (int s = 0; s < 2; s++) {
        first[s] = n;
        n += places(f->scene->width, 8 << s) * places(f->scene->height, 8 << s);
    }
    for (int s = 0; s < 2; s++) {
        first_place[s] = n + 14 * first[s];
    }
    float *all = fixture_add(f, "output", -5, 2, 1, 15 * n);
    FOR_THINGS(f, t)
    {
        int s = turn++ % 2, side = 8 << s, w = places(f->scene->width, side);
        int x = (int)(centre_x(t) / side), y = (int)(centre_y(t) / side);
        int i = y * w + x, step = w * places(f->scene->height, side);
        double u = side * (x + 0.5), v = side * (y + 0.5);
        float *place = all + first_place[s] + i;
        all[first[s] + i] = (float)logit(t->score);
        place[0] = (float)((centre_x(t) - u) / side);
        place[step] = (float)((centre_y(t) - v) / side);
        place[2 * step] = (float)log(wide(t) / (2 * side));
        place[3 * step] = (float)log(high(t) / (2 * side));
        for (int k = 0; k < 10; k++) {
            place[(4 + k) * step] = (float)((t->points[k] - (k % 2 == 0 ? u : v)) / (2 * side));
        }
    }
}

/* ---- faces of three strides ------------------------------------------------------------------------------ */

static void yunet(struct fixture *f)
{
    static const char *const names[4][3] = {{"cls_8", "cls_16", "cls_32"},
                                            {"obj_8", "obj_16", "obj_32"},
                                            {"bbox_8", "bbox_16", "bbox_32"},
                                            {"kps_8", "kps_16", "kps_32"}};
    static const int columns[] = {1, 1, 4, 10};
    float *at[4][3];
    for (int i = 0; i < 12; i++) {
        int s = 8 << i % 3, n = places(f->scene->width, s) * places(f->scene->height, s);
        at[i / 3][i % 3] =
            fixture_add(f, names[i / 3][i % 3], i < 6 ? 0.2 : 3, 3, 1, n, columns[i / 3]);
    }
    FOR_THINGS(f, t)
    {
        int k = any(f, 3), s = 8 << k, x = (int)(centre_x(t) / s), y = (int)(centre_y(t) / s);
        int i = y * places(f->scene->width, s) + x;
        double part = between(f->rng, t->score * t->score, 1);
        at[0][k][i] = (float)part;
        at[1][k][i] = (float)(t->score * t->score / part);
        float *box = at[2][k] + 4 * i, *kps = at[3][k] + 10 * i;
        box[0] = (float)(centre_x(t) / s - x);
        box[1] = (float)(centre_y(t) / s - y);
        box[2] = (float)log(wide(t) / s);
        box[3] = (float)log(high(t) / s);
        for (int j = 0; j < 10; j++) {
            kps[j] = (float)(t->points[j] / s - (j % 2 == 0 ? x : y));
        }
    }
}

static void scrfd_of(struct fixture *f, int n_strides, int n_anchors, bool has_points)
{
    static const char *const names[] = {"448", "471", "494", "451", "474", "497", "454", "477",
                                        "500", "9",   "10",  "11",  "12",  "13",  "14"};
    static const int columns[] = {1, 4, 10};
    float *at[3][5];
    for (int i = 0; i < n_strides * (has_points ? 3 : 2); i++) {
        int group = i / n_strides, k = i % n_strides, s = 8 << k;
        int n = places(f->scene->width, s) * places(f->scene->height, s) * n_anchors;
        at[group][k] = fixture_add(f, names[i], group == 0 ? 0.1 : 3, 2, n, columns[group]);
    }
    FOR_THINGS(f, t)
    {
        int k = any(f, n_strides), s, x, y, i;
        do { /* where a place of a great stride is taken already, one of the next smaller */
            s = 8 << k;
            x = (int)(centre_x(t) / s);
            y = (int)(centre_y(t) / s);
            i = (y * places(f->scene->width, s) + x) * n_anchors + any(f, n_anchors);
        } while (at[0][k][i] > 0.5f && k-- > 0);
        for (int j = 0; j < 4; j++) {
            double from = s * (j % 2 == 0 ? x : y);
            at[1][k][4 * i + j] = (float)((j < 2 ? from - t->box[j] : t->box[j] - from) / s);
        }
        at[0][k][i] = (float)t->score;
        for (int j = 0; j < 10 && has_points; j++) {
            at[2][k][10 * i + j] = (float)(t->points[j] / s - (j % 2 == 0 ? x : y));
        }
    }
}

static void scrfd_9(struct fixture *f)
{
    scrfd_of(f, 3, 2, true);
}

static void scrfd_6(struct fixture *f)
{
    scrfd_of(f, 3, 2, false);
}

static void scrfd_15(struct fixture *f)
{
    scrfd_of(f, 5, 1, true);
}

static void scrfd_10(struct fixture *f)
{
    scrfd_of(f, 5, 1, false);
}

/* ---- priors and anchors -------------------------------------------------------------------------------------- */

#define ANCHORS_MAX 30000

/* Centre and size, in pixels. */
struct anchor {
    double x, y, w, h;
};

static struct anchor anchors[ANCHORS_MAX];

static int priors_of_retinaface(const struct scene *scene)
{
    static const int sizes[3][2] = {{16, 32}, {64, 128}, {256, 512}};
    int n = 0;
    for (int k = 0; k < 3; k++) {
        for (int y = 0; y < places(scene->height, 8 << k); y++) {
            for (int x = 0; x < places(scene->width, 8 << k); x++) {
                for (int a = 0; a < 2; a++) {
                    int s = 8 << k;
                    anchors[n++] =
                        (struct anchor){(x + .5) * s, (y + .5) * s, sizes[k][a], sizes[k][a]};
                }
            }
        }
    }
    return n;
}

static void retinaface(struct fixture *f)
{
    int n = priors_of_retinaface(f->scene), i = 0;
    float *conf = fixture_add(f, "conf", 0.1, 3, 1, n, 2),
          *loc = fixture_add(f, "loc", 0, 3, 1, n, 4);
    float *landms = fixture_add(f, "landms", 0, 3, 1, n, 10);
    FOR_THINGS(f, t)
    {
        i = further(f, t, i, n);
        const struct anchor *a = &anchors[i];
        conf[2 * i] = (float)(1 - t->score);
        conf[2 * i + 1] = (float)t->score;
        loc[4 * i] = (float)((centre_x(t) - a->x) / a->w / 0.1);
        loc[4 * i + 1] = (float)((centre_y(t) - a->y) / a->h / 0.1);
        loc[4 * i + 2] = (float)(log(wide(t) / a->w) / 0.2);
        loc[4 * i + 3] = (float)(log(high(t) / a->h) / 0.2);
        for (int j = 0; j < 10; j++) {
            landms[10 * i + j] = (float)((t->points[j] - (j % 2 == 0 ? a->x : a->y)) / a->w / 0.1);
        }
    }
}

static void blazeface(struct fixture *f)
{
    float *box = fixture_add(f, "regressors", 0, 3, 1, 896, 16);
    float *score = fixture_add(f, "classificators", -50, 3, 1, 896, 1);
    int used = 0;
    FOR_THINGS(f, t)
    {
        int i = further(f, t, used, 896), place = i < 512 ? i / 2 : (i - 512) / 6;
        double s = i < 512 ? 8 : 16;
        int side = i < 512 ? 16 : 8;
        used = i;
        score[i] = (float)logit(t->score);
        box[16 * i] = (float)(centre_x(t) - (place % side + 0.5) * s);
        box[16 * i + 1] = (float)(centre_y(t) - (line_of(place, side) + 0.5) * s);
        box[16 * i + 2] = (float)wide(t);
        box[16 * i + 3] = (float)high(t);
    }
}

static int add_anchor(int n, double x, double y, double w, double h, const struct scene *scene,
                      double most)
{
    anchors[n] = (struct anchor){x * scene->width, y * scene->height, fmin(w, most) * scene->width,
                                 fmin(h, most) * scene->height};
    return n + 1;
}

static int anchors_of_tf(const struct scene *scene)
{
    static const double ratios[] = {1, 2, 0.5, 3, 1.0 / 3};
    int n = 0;
    for (int k = 0; k < 6; k++) {
        int w = places(scene->width, 16 << k), h = places(scene->height, 16 << k);
        double s = 0.2 + 0.75 * k / 5, next = k < 5 ? 0.2 + 0.75 * (k + 1) / 5 : 1;
        for (int i = 0; i < w * h; i++) {
            double x = (i % w + 0.5) / w, y = (line_of(i, w) + 0.5) / h;
            if (k == 0) {
                n = add_anchor(n, x, y, 0.1, 0.1, scene, 9);
                n = add_anchor(n, x, y, s * sqrt(2), s / sqrt(2), scene, 9);
                n = add_anchor(n, x, y, s * sqrt(0.5), s / sqrt(0.5), scene, 9);
                continue;
            }
            for (int r = 0; r < 5; r++) {
                n = add_anchor(n, x, y, s * sqrt(ratios[r]), s / sqrt(ratios[r]), scene, 9);
            }
            n = add_anchor(n, x, y, sqrt(s * next), sqrt(s * next), scene, 9);
        }
    }
    return n;
}

static int anchors_of_torchvision(const struct scene *scene, bool is_lite)
{
    static const double vgg[] = {0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05};
    static const double lite[] = {0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1};
    static const int vgg_sides[] = {38, 19, 10, 5, 3, 1}, vgg_steps[] = {8, 16, 32, 64, 100, 300};
    static const int vgg_ratios[] = {1, 2, 2, 2, 1, 1}, lite_sides[] = {20, 10, 5, 3, 2, 1};
    int n = 0;
    for (int k = 0; k < 6; k++) {
        int side = is_lite ? lite_sides[k] : vgg_sides[k], n_ratios = is_lite ? 2 : vgg_ratios[k];
        double s = is_lite ? lite[k] : vgg[k], next = is_lite ? lite[k + 1] : vgg[k + 1];
        double step = is_lite ? 1.0 / side : vgg_steps[k] / 300.0;
        for (int i = 0; i < side * side; i++) {
            double x = (i % side + 0.5) * step, y = (line_of(i, side) + 0.5) * step;
            n = add_anchor(n, x, y, s, s, scene, 1);
            n = add_anchor(n, x, y, sqrt(s * next), sqrt(s * next), scene, 1);
            for (int r = 2; r < 2 + n_ratios; r++) {
                n = add_anchor(n, x, y, s * sqrt(r), s / sqrt(r), scene, 1);
                n = add_anchor(n, x, y, s / sqrt(r), s * sqrt(r), scene, 1);
            }
        }
    }
    return n;
}

static void ssd_raw_of(struct fixture *f, int n, bool is_tf)
{
    int n_columns = f->scene->n_classes + 1, i = 0;
    float *box = fixture_add(f, "raw_box", 0, 3, 1, n, 4);
    float *class = fixture_add(f, "raw_class", -30, 3, 1, n, n_columns);
    for (int k = 0; k < n; k++) {
        class[k * n_columns] = is_tf ? 9 : 0; /* the background, which is no class */
    }
    FOR_THINGS(f, t)
    {
        i = further(f, t, i, n);
        const struct anchor *a = &anchors[i];
        double x = (centre_x(t) - a->x) / a->w * 10, y = (centre_y(t) - a->y) / a->h * 10;
        double w = log(wide(t) / a->w) * 5, h = log(high(t) / a->h) * 5;
        const double tf[] = {y, x, h, w}, torch[] = {x, y, w, h};
        for (int j = 0; j < 4; j++) {
            box[4 * i + j] = (float)(is_tf ? tf[j] : torch[j]);
        }
        class[i * n_columns + 1 + t->class_id] = (float)logit(t->score);
    }
}

static void ssd_tf_raw(struct fixture *f)
{
    ssd_raw_of(f, anchors_of_tf(f->scene), true);
}

static void ssd_vgg_raw(struct fixture *f)
{
    ssd_raw_of(f, anchors_of_torchvision(f->scene, false), false);
}

static void ssd_lite_raw(struct fixture *f)
{
    ssd_raw_of(f, anchors_of_torchvision(f->scene, true), false);
}

/* ---- finished lists ------------------------------------------------------------------------------------------- */

static void ssd_tf(struct fixture *f)
{
    float *box = fixture_add(f, "detection_boxes:0", 0, 3, 1, 100, 4);
    float *class = fixture_add(f, "detection_classes:0", 1, 2, 1, 100);
    float *score = fixture_add(f, "detection_scores:0", 0, 2, 1, 100);
    float *num = fixture_add(f, "num_detections:0", (double)f->scene->n, 1, 1);
    int i = 0;
    (void)num;
    FOR_THINGS(f, t)
    {
        for (int j = 0; j < 4; j++) {
            box[4 * i + j] =
                (float)(t->box[j ^ 1] / (j % 2 == 0 ? f->scene->height : f->scene->width));
        }
        class[i] = (float)(t->class_id + 1);
        score[i++] = (float)t->score;
    }
}

static void ssd_torchvision(struct fixture *f)
{
    int n = (int)f->scene->n, i = 0;
    float *box = fixture_add(f, "boxes", 0, 2, n, 4), *label = fixture_add(f, "labels", 1, 1, n);
    float *score = fixture_add(f, "scores", 0, 1, n);
    FOR_THINGS(f, t)
    {
        for (int j = 0; j < 4; j++) {
            box[4 * i + j] = (float)t->box[j];
        }
        label[i] = (float)(t->class_id + 1);
        score[i++] = (float)t->score;
    }
}

static void caffe_ssd(struct fixture *f)
{
    float *row = fixture_add(f, "detection_out", -1, 4, 1, 1, 20, 7);
    FOR_THINGS(f, t)
    {
        row[0] = 0;
        row[1] = (float)(t->class_id + 1);
        row[2] = (float)t->score;
        for (int j = 0; j < 4; j++) {
            row[3 + j] = (float)(t->box[j] / (j % 2 == 0 ? f->scene->width : f->scene->height));
        }
        row += 7;
    }
}

static void queries_of(struct fixture *f, int n, bool is_softmax)
{
    int n_columns = f->scene->n_classes + is_softmax, i = 0;
    float *logits = fixture_add(f, "pred_logits", -30, 3, 1, n, n_columns);
    float *boxes = fixture_add(f, "pred_boxes", 0.5, 3, 1, n, 4);
    for (int k = 0; k < n && is_softmax; k++) {
        logits[k * n_columns + n_columns - 1] = 0;
    }
    FOR_THINGS(f, t)
    {
        i = further(f, t, i, n);
        logits[i * n_columns + t->class_id] = (float)logit(t->score);
        boxes[4 * i] = (float)(centre_x(t) / f->scene->width);
        boxes[4 * i + 1] = (float)(centre_y(t) / f->scene->height);
        boxes[4 * i + 2] = (float)(wide(t) / f->scene->width);
        boxes[4 * i + 3] = (float)(high(t) / f->scene->height);
    }
}

static void detr(struct fixture *f)
{
    queries_of(f, 100, true);
}

static void rt_detr(struct fixture *f)
{
    queries_of(f, 300, false);
}

// clang-format off
const struct encoder fixture_encoders[] = {
    {"centernet",         "centernet",         NULL, 0, 0, true, false, false, centernet},
    {"centernet-generic", "centernet-generic", NULL, 0, 0, false, true, false, centernet_generic},
    {"yunet",             "yunet",             NULL, 0, 0, true, false, false, yunet},
    {"scrfd of 9",        "scrfd",             NULL, 0, 0, true, false, false, scrfd_9},
    {"scrfd of 6",        "scrfd",             NULL, 0, 0, false, false, false, scrfd_6},
    {"scrfd of 15",       "scrfd",             NULL, 0, 0, true, false, false, scrfd_15},
    {"scrfd of 10",       "scrfd",             NULL, 0, 0, false, false, false, scrfd_10},
    {"retinaface",        "retinaface",        NULL, 0, 0, true, false, false, retinaface},
    {"retinaface, odd",   "retinaface",        NULL, 301, 203, true, false, false, retinaface},
    {"blazeface",         "blazeface",         NULL, 128, 128, false, false, false, blazeface},
    {"ssd of TensorFlow", "ssd",               NULL, 0, 0, false, true, false, ssd_tf},
    {"ssd of torchvision","ssd",               NULL, 0, 0, false, true, false, ssd_torchvision},
    {"raw ssd, 300",      "ssd",               NULL, 300, 300, false, true, false, ssd_tf_raw},
    {"raw ssd, 320",      "ssd",               NULL, 320, 320, false, true, false, ssd_tf_raw},
    {"raw ssd300",        "ssd",               NULL, 300, 300, false, true, false, ssd_vgg_raw},
    {"raw ssdlite",       "ssd",               NULL, 320, 320, false, true, false, ssd_lite_raw},
    {"caffe-ssd",         "caffe-ssd",         NULL, 300, 300, false, true, false, caffe_ssd},
    {"detr",              "detr",              NULL, 0, 0, false, true, false, detr},
    {"rt-detr",           "rt-detr",           NULL, 0, 0, false, true, false, rt_detr},
    {"Weir's own",        "weir",              NULL, 0, 0, true, false, false, own},
    {"Weir's own, odd",   "weir",              NULL, 301, 203, true, false, false, own},
    {"yolo v5",           "yolo",              NULL, 0, 0, false, true, false, fixture_yolo_v5},
    {"yolo v5 of faces",  "yolo",              "{\"points\":5}", 0, 0, true, false, false, fixture_yolo_v5_face},
    {"yolo v5, heads",    "yolo",              NULL, 0, 0, false, true, false, fixture_yolo_v5_raw},
    {"yolo v8",           "yolo",              NULL, 0, 0, false, true, false, fixture_yolo_v8},
    {"yolo v8 of faces",  "yolo",              "{\"points\":5}", 0, 0, true, false, false, fixture_yolo_v8_face},
    {"yolo v8, heads",    "yolo",              NULL, 0, 0, false, true, false, fixture_yolo_v8_raw},
    {"yolox",             "yolo",              NULL, 0, 0, false, true, false, fixture_yolox},
    {"yolo, end2end",     "yolo",              NULL, 0, 0, false, true, false, fixture_yolo_end2end},
    {"yolo v7, end2end",  "yolo",              NULL, 0, 0, false, true, false, fixture_yolo_v7},
    {"yolo, plug-in",     "yolo",              NULL, 0, 0, false, true, false, fixture_yolo_plugin},
};
// clang-format on
const size_t fixture_n_encoders = sizeof fixture_encoders / sizeof fixture_encoders[0];

void fixture_encode(const struct encoder *encoder, struct weir_rng *rng, const struct scene *scene,
                    struct fixture *out)
{
    *out = (struct fixture){.rng = rng, .scene = scene};
    encoder->encode(out);
}

void fixture_fini(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->n; i++) {
        free(fixture->values[i]);
    }
}
