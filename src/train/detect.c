#include "train/detect.h"

#include "train/task.h"
#include "vision/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCENES_MEASURED 250
#define CACHE_BYTES     ((size_t)256 << 20)
#define SEED_MEASURED   0x6d656173 /* other scenes than those that are learnt from */
#define OVERLAP_KEPT    0.4F       /* two detections that overlap more are one face */
#define OVERLAP_FOUND   0.4F       /* with the truth */
#define VISIBLE_MIN     0.4F
#define SCORE_LEAST     0.02F

static const float width_ends[TRAIN_DETECT_WIDTHS] = {12, 24, 40, INFINITY};
static const char *const width_names[TRAIN_DETECT_WIDTHS] = {
    "recall_to_12_px", "recall_12_24_px", "recall_24_40_px", "recall_from_40_px"};

/* ---- scenes --------------------------------------------------------------------------------- */

static weir_status open_backgrounds(const struct train_task *task, struct weir_dataset **out,
                                    struct weir_error *err)
{
    const char *path = task->config->data.backgrounds;
    const struct weir_dataset_options options = {.cache_bytes = CACHE_BYTES};
    if (path == NULL) {
        return WEIR_OK;
    }
    weir_status status = weir_dataset_open(path, &options, out, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "backgrounds: ");
}

/* In place of `faces`, which it then owns. */
static weir_status compose(const struct train_task *task, const struct weir_scenes_options *options,
                           struct weir_dataset **faces, struct weir_error *err)
{
    struct weir_dataset *backgrounds = NULL, *owned = *faces;
    WEIR_TRY(open_backgrounds(task, &backgrounds, err));
    *faces = NULL;
    return weir_dataset_open_scenes(owned, backgrounds, options, faces, err);
}

static weir_status check(const struct train_task *task, struct weir_error *err)
{
    const struct weir_train_config *config = task->config;
    const char *name = config->model.name;
    if (!task->is_detector) {
        return config->data.backgrounds == NULL && config->data.face_box == NULL
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "%s: only a detector is trained on scenes, and %s is none; "
                                    "leave it out, or take the model face-detect",
                                    config->data.backgrounds != NULL ? "backgrounds" : "face_box",
                                    name);
    }
    if (task->augment != WEIR_AUGMENT_NONE || config->data.mirror_classes) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: %s is a detector, whose scenes have turned, mirrored and "
                              "blurred faces already; leave it out",
                              config->data.mirror_classes ? "mirror_classes" : "augment", name);
    }
    if (config->optimizer.label_smoothing > 0) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "label_smoothing: %s is a detector, whose loss has none; leave it out", name);
    }
    struct weir_shape input = weir_model_spec_input(task->spec);
    return input.c == 1 ? WEIR_OK
                        : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                         "%s: scenes are grey, and the model's input has %d "
                                         "channels: give it one",
                                         name, input.c);
}

weir_status train_detect_compose(struct train_task *task, struct weir_error *err)
{
    const struct weir_train_config *config = task->config;
    WEIR_TRY(check(task, err));
    if (!task->is_detector) {
        return WEIR_OK;
    }
    struct weir_shape input = weir_model_spec_input(task->spec);
    struct weir_scenes_options options = {.width = input.w,
                                          .height = input.h,
                                          .n = (size_t)config->data.scenes,
                                          .seed = (uint64_t)config->loop.seed,
                                          .box = weir_face_box_usual,
                                          .part = task->validation != NULL ? WEIR_SCENES_LEARNT
                                                                           : WEIR_SCENES_ALL,
                                          .cache_bytes = CACHE_BYTES};
    if (config->data.face_box != NULL &&
        weir_face_box_parse(config->data.face_box, &options.box, err) != WEIR_OK) {
        return weir_error_prefix(err, "face_box: ");
    }
    WEIR_TRY(compose(task, &options, &task->dataset, err));
    if (task->validation == NULL) {
        return WEIR_OK;
    }
    options.part = WEIR_SCENES_MEASURED;
    options.n = WEIR_MIN(options.n, (size_t)SCENES_MEASURED);
    options.seed ^= SEED_MEASURED;
    return compose(task, &options, &task->validation, err);
}

bool train_detect_target(struct weir_net *net, const struct weir_dataset *dataset, uint32_t i_image,
                         uint64_t sample)
{
    struct weir_scene_face faces[WEIR_SCENE_FACES_MAX];
    struct weir_grid_face learnt[WEIR_SCENE_FACES_MAX];
    size_t n = 0;
    if (weir_net_targets(net) == NULL || dataset == NULL) {
        return true;
    }
    if (weir_scene_look(dataset, sample, faces, &n, NULL) != WEIR_OK) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        learnt[i] = (struct weir_grid_face){.box = {faces[i].x, faces[i].y, faces[i].w, faces[i].h},
                                            .visible = faces[i].visible};
        memcpy(learnt[i].points, faces[i].points, sizeof learnt[i].points);
    }
    int width, height;
    weir_scenes_size(dataset, &width, &height);
    size_t n_values = WEIR_GRID_VALUES * weir_grid_count(width, height);
    weir_grid_encode(width, height, learnt, n, weir_net_targets(net) + i_image * n_values);
    return true;
}

/* ---- how well it finds ---------------------------------------------------------------------- */

static double *n_pictures(double *counts)
{
    return counts;
}

static double *n_faces(double *counts)
{
    return counts + 1;
}

static double *n_wrong(double *counts)
{
    return n_faces(counts) + TRAIN_DETECT_WIDTHS;
}

static double *n_right(double *counts, size_t width)
{
    return n_wrong(counts) + TRAIN_DETECT_BINS * (1 + width);
}

static size_t width_of(const struct weir_scene_face *face)
{
    size_t i = 0;
    while (face->w >= width_ends[i]) {
        i++;
    }
    return i;
}

/* What a detector for use would say, with any score, best first. @param out  As many as there are squares. */
static size_t detect(const float *values, int width, int height, struct weir_detection *out)
{
    size_t n = 0, n_squares = weir_grid_count(width, height);
    const float least = logf(SCORE_LEAST / (1 - SCORE_LEAST));
    for (size_t i = 0; i < n_squares; i++) {
        if (values[i] > least) {
            weir_grid_read(width, height, values, i, &out[n++]);
        }
    }
    return weir_detections_suppress(out, n, OVERLAP_KEPT);
}

/* The face that the detection overlaps most; n: none enough. */
static size_t face_of(const struct weir_detection *found, const struct weir_scene_face *faces,
                      size_t n)
{
    size_t best = n;
    float most = OVERLAP_FOUND;
    for (size_t i = 0; i < n; i++) {
        const struct weir_box box = {faces[i].x, faces[i].y, faces[i].w, faces[i].h};
        float overlap = weir_box_overlap(&found->box, &box);
        if (overlap > most) {
            most = overlap;
            best = i;
        }
    }
    return best;
}

weir_status train_detect_count(struct weir_net *net, const struct weir_dataset *dataset,
                               uint32_t i_image, uint64_t sample,
                               double counts[TRAIN_DETECT_COUNTS], struct weir_error *err)
{
    struct weir_scene_face faces[WEIR_SCENE_FACES_MAX];
    bool is_found[WEIR_SCENE_FACES_MAX] = {false};
    size_t n = 0;
    int width, height;
    if (weir_net_targets(net) == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_scene_look(dataset, sample, faces, &n, err));
    weir_scenes_size(dataset, &width, &height);
    size_t n_squares = weir_grid_count(width, height);
    WEIR_AUTO(weir_auto_free) struct weir_detection *found = malloc(n_squares * sizeof *found);
    if (found == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for detections");
    }
    const float *values = weir_net_output(net) + i_image * WEIR_GRID_VALUES * n_squares;
    size_t n_found = detect(values, width, height, found);
    *n_pictures(counts) += 1;
    for (size_t i = 0; i < n; i++) {
        n_faces(counts)[width_of(&faces[i])] += faces[i].visible >= VISIBLE_MIN;
    }
    for (size_t i = 0; i < n_found; i++) {
        size_t bin =
            WEIR_MIN((size_t)(found[i].score * TRAIN_DETECT_BINS), (size_t)TRAIN_DETECT_BINS - 1);
        size_t face = face_of(&found[i], faces, n);
        if (face == n || is_found[face]) {
            n_wrong(counts)[bin] += 1;
        } else {
            is_found[face] = true;
            n_right(counts, width_of(&faces[face]))[bin] += faces[face].visible >= VISIBLE_MIN;
        }
    }
    return WEIR_OK;
}

/* The lowest bin from which on there are at most `most` wrong detections. */
static size_t bin_of(double *counts, double most)
{
    size_t bin = TRAIN_DETECT_BINS;
    double n = 0;
    while (bin > 0 && n + n_wrong(counts)[bin - 1] <= most) {
        n += n_wrong(counts)[--bin];
    }
    return bin;
}

static double sum_from(const double *bins, size_t bin)
{
    double sum = 0;
    for (; bin < TRAIN_DETECT_BINS; bin++) {
        sum += bins[bin];
    }
    return sum;
}

static double recall_from(double *counts, size_t bin, double *out_n_right)
{
    double all = 0, right = 0;
    for (size_t w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
        all += n_faces(counts)[w];
        right += sum_from(n_right(counts, w), bin);
    }
    *out_n_right = right;
    return all > 0 ? right / all : 0;
}

struct train_found train_detect_found(const double given[TRAIN_DETECT_COUNTS])
{
    double counts[TRAIN_DETECT_COUNTS], right;
    memcpy(counts, given, sizeof counts);
    double n = *n_pictures(counts);
    if (n == 0) {
        return (struct train_found){.is_known = false};
    }
    size_t bin = bin_of(counts, n / 10);
    struct train_found found = {.is_known = true, .threshold = (double)bin / TRAIN_DETECT_BINS};
    found.recall_1 = recall_from(counts, bin_of(counts, n), &right);
    found.recall_30 = recall_from(counts, bin_of(counts, n / 30), &right);
    found.recall_10 = recall_from(counts, bin, &right);
    double wrong = sum_from(n_wrong(counts), bin);
    found.precision = right + wrong > 0 ? right / (right + wrong) : 0;
    for (size_t w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
        found.by_width[w] = sum_from(n_right(counts, w), bin) / n_faces(counts)[w];
    }
    return found;
}

void train_detect_write(const struct train_found *found, json_t *metrics)
{
    if (!found->is_known) {
        return;
    }

    const struct {
        const char *name;
        double value;
    } rows[] = {{"recall", found->recall_10},
                {"recall_1_wrong_a_picture", found->recall_1},
                {"recall_1_wrong_in_30", found->recall_30},
                {"precision", found->precision},
                {"threshold", found->threshold}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        json_object_set_new(metrics, rows[i].name, json_real(rows[i].value));
    }
    for (size_t w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
        if (isfinite(found->by_width[w])) {
            json_object_set_new(metrics, width_names[w], json_real(found->by_width[w]));
        }
    }
}
