#include "vision/detector_private.h"

#include <string.h>

enum form { TF, TORCHVISION, TF_RAW, TORCHVISION_RAW, N_FORMS };

static const char *const form_words[] = {"tf", "torchvision", "tf_raw", "torchvision_raw", NULL};

struct weir_detector_ssd {
    char *form; /* NULL: guessed */
};

static const struct weir_option options[] = {
    {.name = "form",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct weir_detector_ssd, form),
     .doc = "Finished boxes of TensorFlow or torchvision, or what the network says of its anchors; "
            "else by names and shapes",
     .words = WEIR_WORDS("tf", "torchvision", "tf_raw", "torchvision_raw")},
};

/* ---- anchors ------------------------------------------------------------------------------------- */

#define N_MAPS      6
#define SHAPES_MAX  6
#define COUNT(w, h) ((size_t)(w) * (size_t)(h))

enum layout { LAYOUT_TF, LAYOUT_LITE, LAYOUT_VGG, N_LAYOUTS };

/* A map: its size, what a place's centre is divided by, and the anchors of a place as parts of the input. */
struct map {
    int w, h;
    float across, down;
    size_t n;
    float shapes[SHAPES_MAX][2];
};

static void add_shape(struct map *map, float scale, float ratio, float most)
{
    map->shapes[map->n][0] = fminf(scale * sqrtf(ratio), most);
    map->shapes[map->n++][1] = fminf(scale / sqrtf(ratio), most);
}

static void shapes_of_tf(int k, struct map *map)
{
    static const float ratios[] = {1, 2, 0.5f, 3, 1 / 3.0f};
    float scale = 0.2f + 0.15f * (float)k, next = k + 1 < N_MAPS ? scale + 0.15f : 1;
    if (k == 0) {
        add_shape(map, 0.1f, 1, INFINITY);
        add_shape(map, scale, 2, INFINITY);
        add_shape(map, scale, 0.5f, INFINITY);
        return;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ratios); i++) {
        add_shape(map, scale, ratios[i], INFINITY);
    }
    add_shape(map, sqrtf(scale * next), 1, INFINITY);
}

static void shapes_of_torchvision(float scale, float next, int n_ratios, struct map *map)
{
    add_shape(map, scale, 1, 1);
    add_shape(map, sqrtf(scale * next), 1, 1);
    for (int i = 0; i < n_ratios; i++) {
        add_shape(map, scale, (float)(2 + i), 1);
        add_shape(map, scale, 1 / (float)(2 + i), 1);
    }
}

static struct map map_of(enum layout layout, int k, int width, int height)
{
    static const int sides[] = {38, 19, 10, 5, 3, 1}, ratios[] = {1, 2, 2, 2, 1, 1};
    static const float steps[] = {8, 16, 32, 64, 100, 300};
    static const float scales[] = {0.07f, 0.15f, 0.33f, 0.51f, 0.69f, 0.87f, 1.05f};
    struct map map = {.n = 0};
    if (layout == LAYOUT_VGG) {
        map.w = map.h = sides[k];
        map.across = (float)width / steps[k];
        map.down = (float)height / steps[k];
        shapes_of_torchvision(scales[k], scales[k + 1], ratios[k], &map);
        return map;
    }
    map.w = detector_places(width, 16 << k);
    map.h = detector_places(height, 16 << k);
    map.across = (float)map.w;
    map.down = (float)map.h;
    if (layout == LAYOUT_TF) {
        shapes_of_tf(k, &map);
    } else {
        float scale = 0.2f + 0.15f * (float)k;
        shapes_of_torchvision(scale, k + 1 < N_MAPS ? scale + 0.15f : 1, 2, &map);
    }
    return map;
}

static size_t count_anchors(enum layout layout, int width, int height)
{
    size_t n = 0;
    for (int k = 0; k < N_MAPS; k++) {
        struct map map = map_of(layout, k, width, height);
        n += COUNT(map.w, map.h) * map.n;
    }
    return layout == LAYOUT_VGG && (width != 300 || height != 300) ? 0 : n;
}

/* The layout that gives so many anchors, of the form; N_LAYOUTS: none does. */
static enum layout layout_of(enum form form, size_t n, int width, int height)
{
    for (enum layout layout = LAYOUT_TF; layout < N_LAYOUTS; layout++) {
        bool is_forms = form == N_FORMS || (form == TF_RAW) == (layout == LAYOUT_TF);
        if (is_forms && count_anchors(layout, width, height) == n) {
            return layout;
        }
    }
    return N_LAYOUTS;
}

/* ---- which form -------------------------------------------------------------------------------------- */

enum role { BOX, CLASS, SCORE, COUNT_ROLE };

static bool fit_finished(struct detector_plan *plan, enum form form)
{
    static const char *const names[] = {"boxes|box", "label|class", "score", "num"};
    bool is_named = detector_roles_named(plan, names, 4) || detector_roles_named(plan, names, 3);
    bool is_labels = detector_port_named(plan, "label") < plan->n_outputs;
    bool is_plugin = detector_port_named(plan, "num_dets") < plan->n_outputs;
    size_t n = plan->n_outputs;
    if (is_named ? is_plugin && !plan->is_asked
                 : (n != 3 && n != 4) || !detector_port_is(plan, 0, n == 4 ? 3 : 2, 4)) {
        return false;
    }
    if (!is_named) {
        detector_roles_in_order(plan, n);
        is_labels = n == 3;
    }
    plan->variant = form != N_FORMS ? (int)form : is_labels ? TORCHVISION : TF;
    /* TensorFlow Lite has no background. */
    plan->first_class = detector_port_named(plan, "tflite") < plan->n_outputs ? 0 : 1;
    plan->look.mean[0] = plan->look.mean[1] = plan->look.mean[2] =
        plan->variant == TORCHVISION ? 0 : 127.5f;
    for (size_t c = 0; c < 3; c++) {
        plan->look.std[c] = plan->variant == TORCHVISION ? 255 : 127.5f;
    }
    (void)snprintf(plan->why, sizeof plan->why,
                   "its outputs are finished boxes, classes and scores as %s has them",
                   plan->variant == TORCHVISION ? "torchvision" : "TensorFlow");
    return true;
}

static bool fit_raw(struct detector_plan *plan, enum form form)
{
    size_t box = detector_port_is(plan, 0, 0, 4) ? 0 : 1, rank = plan->outputs[box].rank;
    int64_t n = rank >= 2 ? plan->outputs[box].dims[rank - 2] : 0;
    enum layout layout = n > 0 && plan->width > 0 && plan->height > 0
                             ? layout_of(form, (size_t)n, plan->width, plan->height)
                             : N_LAYOUTS;
    if (plan->n_outputs != 2 || !detector_port_is(plan, box, 0, 4) ||
        plan->outputs[1 - box].rank < 2 || (layout == N_LAYOUTS && form == N_FORMS)) {
        return false;
    }
    plan->roles[BOX] = box;
    plan->roles[CLASS] = 1 - box;
    plan->n_roles = 2;
    plan->variant = form != N_FORMS ? (int)form : layout == LAYOUT_TF ? TF_RAW : TORCHVISION_RAW;
    if (layout == LAYOUT_VGG) {
        const float mean[] = {123, 117, 104}, std[] = {1, 1, 1};
        memcpy(plan->look.mean, mean, sizeof mean);
        memcpy(plan->look.std, std, sizeof std);
    }
    (void)snprintf(plan->why, sizeof plan->why, "its 2 outputs are of the %lld anchors of %s",
                   (long long)n,
                   plan->variant == TF_RAW ? "TensorFlow's SSD"
                   : layout == LAYOUT_VGG  ? "torchvision's ssd300"
                                           : "torchvision's ssdlite");
    return true;
}

static bool fit(struct detector_plan *plan)
{
    const struct weir_detector_ssd *own = plan->options;
    enum form form = N_FORMS;
    for (size_t i = 0; own->form != NULL && form_words[i] != NULL; i++) {
        form = strcmp(own->form, form_words[i]) == 0 ? (enum form)i : form;
    }
    bool is_raw = form == TF_RAW || form == TORCHVISION_RAW;
    return (!is_raw && fit_finished(plan, form)) ||
           ((is_raw || form == N_FORMS) && fit_raw(plan, form));
}

/* ---- decoding ---------------------------------------------------------------------------------------- */

static weir_status decode_finished(const struct detector_answer *answer, struct harvest *harvest,
                                   struct weir_error *err)
{
    bool is_tf = answer->plan->variant == TF;
    size_t n = detector_rows(answer, BOX, 4);
    float w = (float)answer->width, h = (float)answer->height;
    const float *box, *class, *score, *count;
    WEIR_TRY(detector_values(answer, BOX, 4 * n, &box, err));
    WEIR_TRY(detector_values(answer, CLASS, n, &class, err));
    WEIR_TRY(detector_values(answer, SCORE, n, &score, err));
    if (answer->plan->n_roles > COUNT_ROLE) {
        WEIR_TRY(detector_values(answer, COUNT_ROLE, 1, &count, err));
        n = count[0] >= 0 && count[0] < (float)n ? (size_t)count[0] : n;
    }
    for (size_t i = 0; i < n; i++, box += 4) {
        bool is_class = class[i] >= 0 && class[i] < 1e6f;
        int32_t class_id = is_class ? (int32_t) class[i] - answer->plan->first_class : -1;
        if (!(score[i] >= answer->threshold) || class_id < 0) {
            continue;
        }
        const float tf[] = {box[1] * w, box[0] * h, box[3] * w, box[2] * h};
        harvest_add(harvest, score[i], class_id, is_tf ? tf : box, NULL);
    }
    return WEIR_OK;
}

/* How sure the best class is; class 0 is the background. */
static float score_of(const float *logits, size_t n, bool is_softmax, int32_t *out_class)
{
    size_t best = 1 + detector_best(logits + 1, n - 1, 1);
    float sum = 0;
    *out_class = (int32_t)best - 1;
    for (size_t c = 0; is_softmax && c < n; c++) {
        sum += expf(logits[c] - logits[best]);
    }
    return is_softmax ? 1 / sum : detector_sigmoid(logits[best]);
}

/* The box of an anchor: centre and size, as parts of the input. */
static void box_of(const float *row, bool is_tf, const float anchor[4], float out[4])
{
    float most = is_tf ? INFINITY : logf(1000.0f / 16);
    size_t x = is_tf ? 1 : 0, y = 1 - x;
    out[0] = anchor[0] + row[x] / 10 * anchor[2];
    out[1] = anchor[1] + row[y] / 10 * anchor[3];
    out[2] = anchor[2] * expf(fminf(row[2 + x] / 5, most));
    out[3] = anchor[3] * expf(fminf(row[2 + y] / 5, most));
}

struct raw {
    const float *boxes, *logits;
    size_t n_columns;
    bool is_tf;
};

static void decode_map(const struct detector_answer *answer, const struct map *map,
                       const struct raw *raw, size_t first, struct harvest *harvest)
{
    float w = (float)answer->width, h = (float)answer->height;
    for (size_t i = 0; i < COUNT(map->w, map->h) * map->n; i++) {
        int32_t class_id;
        size_t place = i / map->n;
        const float *shape = map->shapes[i % map->n];
        float score = score_of(raw->logits + (first + i) * raw->n_columns, raw->n_columns,
                               !raw->is_tf, &class_id);
        if (score >= answer->threshold) {
            const float anchor[] = {(detector_column(place, (size_t)map->w) + 0.5f) / map->across,
                                    (detector_line(place, (size_t)map->w) + 0.5f) / map->down,
                                    shape[0], shape[1]};
            float box[4];
            box_of(raw->boxes + 4 * (first + i), raw->is_tf, anchor, box);
            harvest_add_centred(harvest, score, class_id,
                                (const float[]){box[0] * w, box[1] * h, box[2] * w, box[3] * h},
                                NULL);
        }
    }
}

static weir_status decode_raw(const struct detector_answer *answer, struct harvest *harvest,
                              struct weir_error *err)
{
    struct raw raw = {.is_tf = answer->plan->variant == TF_RAW,
                      .n_columns = detector_dim(answer, CLASS, 0)};
    size_t n = detector_rows(answer, BOX, 4), first = 0;
    enum layout layout =
        layout_of((enum form)answer->plan->variant, n, answer->width, answer->height);
    if (layout == N_LAYOUTS || raw.n_columns < 2) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "the detector has %zu anchors of %zu classes, and no SSD that is known "
            "has so many of an input of %d×%d",
            n, raw.n_columns, answer->width, answer->height);
    }
    WEIR_TRY(detector_values(answer, BOX, 4 * n, &raw.boxes, err));
    WEIR_TRY(detector_values(answer, CLASS, n * raw.n_columns, &raw.logits, err));
    for (int k = 0; k < N_MAPS; k++) {
        struct map map = map_of(layout, k, answer->width, answer->height);
        decode_map(answer, &map, &raw, first, harvest);
        first += COUNT(map.w, map.h) * map.n;
    }
    return WEIR_OK;
}

static weir_status decode(const struct detector_answer *answer, struct harvest *harvest,
                          struct weir_error *err)
{
    bool is_raw = answer->plan->variant == TF_RAW || answer->plan->variant == TORCHVISION_RAW;
    return is_raw ? decode_raw(answer, harvest, err) : decode_finished(answer, harvest, err);
}

static const struct detector_ops ops = {
    .takes =
        "boxes of 4, classes and scores, finished; or of all anchors rows of 4 and of classes + 1",
    .look = {.scale = 1,
             .mean = {127.5f, 127.5f, 127.5f},
             .std = {127.5f, 127.5f, 127.5f},
             .fit = DETECTOR_STRETCH,
             .divisor = 32},
    .threshold = 0.5f,
    .overlap = 0.5f,
    .least = 24,
    .fit = fit,
    .decode = decode,
};

const struct weir_kind weir_detector_ssd_kind = {
    .name = "ssd",
    .doc =
        "SSD of TensorFlow's object detection API or of torchvision, with finished boxes or with "
        "what the network says of its anchors (TensorFlow's six maps, torchvision's ssd300 and "
        "ssdlite320). RGB, stretched. Threshold 0.5, overlap 0.5.",
    WEIR_KIND_OPTIONS(weir_detector_ssd, options),
    .ops = &ops,
};
