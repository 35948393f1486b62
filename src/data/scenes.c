#include "data/scenes.h"

#include "data/dataset_private.h"
#include "data/scenes_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_WIDTH      9.0F
#define MAX_WIDTH      72.0F
#define PART           5 /* every fifth photograph is for measuring */
#define ROLL_MAX       0.14F
#define SQUEEZE_MAX    0.15F
#define VISIBLE_POINTS 8

/* The median that a detector finds in the 300 pictures of the ORL database. Points as shares of the box. */
const struct weir_face_box weir_face_box_usual = {0.078F, 0.140F, 0.911F, 0.967F};
static const float usual_points[WEIR_SCENE_POINTS] = {0.281F, 0.405F, 0.734F, 0.405F, 0.505F,
                                                      0.608F, 0.309F, 0.756F, 0.691F, 0.756F};

weir_status weir_face_box_parse(const char *text, struct weir_face_box *out, struct weir_error *err)
{
    struct weir_face_box box;
    int n_read = 0;
    if (sscanf(text, "%f,%f,%f,%f%n", &box.left, &box.top, &box.right, &box.bottom, &n_read) != 4 ||
        text[n_read] != '\0' || !(box.left >= 0 && box.left < box.right && box.right <= 1) ||
        !(box.top >= 0 && box.top < box.bottom && box.bottom <= 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.60s\": expected left,top,right,bottom as shares of the picture, "
                              "as 0.08,0.14,0.91,0.97",
                              text);
    }
    *out = box;
    return WEIR_OK;
}

/* ---- the plan ------------------------------------------------------------------------------- */

static float between(struct weir_rng *rng, float low, float high)
{
    return low + (high - low) * weir_rng_f32(rng);
}

static struct figure figure_draw(const struct scenes *scenes, enum figure_kind kind,
                                 struct weir_rng *rng)
{
    const struct weir_scenes_options *options = &scenes->options;
    float width = (float)options->width, height = (float)options->height;
    struct figure f = {.kind = kind};
    f.sample = (size_t)weir_rng_below(rng, weir_dataset_n_samples(scenes->faces));
    f.w = expf(between(rng, logf(options->min_width), logf(options->max_width)));
    f.cx = between(rng, f.w / 2, width - f.w / 2);
    f.cy = between(rng, 0.6F * f.w, height - 0.6F * f.w);
    f.w *= 1 - between(rng, 0, SQUEEZE_MAX);
    f.roll = between(rng, -ROLL_MAX, ROLL_MAX);
    f.gain = between(rng, 0.7F, 1.15F) * between(rng, 0.78F, 1);
    f.cloth = between(rng, 0.3F, 1.1F);
    f.is_mirrored = weir_rng_below(rng, 2) == 1;
    f.seed = weir_rng_u64(rng);
    return f;
}

/* Behind those that are nearer, of which the nearest come last. */
static void plan_add(struct scene_plan *plan, struct figure figure)
{
    size_t at = plan->n_figures++;
    for (; at > 0 && plan->figures[at - 1].w > figure.w; at--) {
        plan->figures[at] = plan->figures[at - 1];
    }
    plan->figures[at] = figure;
}

struct scene_plan scene_plan_make(const struct scenes *scenes, size_t i_scene)
{
    struct weir_rng rng;
    struct scene_plan plan = {.n_figures = 0};
    weir_rng_init(&rng, scenes->options.seed, i_scene);
    size_t n_faces = (size_t)weir_rng_below(&rng, WEIR_SCENE_FACES_MAX + 1);
    size_t n_decoys = (size_t)weir_rng_below(&rng, SCENE_DECOYS_MAX + 1);
    for (size_t i = 0; i < n_faces + n_decoys; i++) {
        enum figure_kind kind =
            i < n_faces ? FIGURE_FACE
                        : FIGURE_TEXTURE + (enum figure_kind)weir_rng_below(&rng, FIGURE_KINDS - 1);
        plan_add(&plan, figure_draw(scenes, kind, &rng));
    }
    plan.seed = weir_rng_u64(&rng);
    return plan;
}

weir_status scene_read_grey(struct weir_dataset *dataset, size_t i_sample, struct weir_image *out,
                            struct weir_error *err)
{
    struct weir_image image = {0};
    WEIR_TRY(weir_dataset_read(dataset, i_sample, &image, err));
    if (image.channels == 1) {
        *out = image;
        return WEIR_OK;
    }
    weir_status status = weir_image_convert(&image, 1, out, err);
    weir_image_fini(&image);
    return status;
}

weir_status scene_measure(const struct scenes *scenes, struct scene_plan *plan,
                          struct weir_error *err)
{
    const struct weir_face_box *box = &scenes->options.box;
    for (size_t i = 0; i < plan->n_figures; i++) {
        struct figure *f = &plan->figures[i];
        struct weir_image image = {0};
        WEIR_TRY(weir_dataset_read(scenes->faces, f->sample, &image, err));
        float w = (box->right - box->left) * (float)image.width;
        float h = (box->bottom - box->top) * (float)image.height;
        weir_image_fini(&image);
        f->h = f->w * h / w;
    }
    return WEIR_OK;
}

size_t scenes_n_backgrounds(const struct scenes *scenes)
{
    size_t n = scenes->backgrounds == NULL ? 0 : weir_dataset_n_samples(scenes->backgrounds);
    size_t n_measured = n / PART;
    return scenes->options.part == WEIR_SCENES_ALL        ? n
           : scenes->options.part == WEIR_SCENES_MEASURED ? n_measured
                                                          : n - n_measured;
}

size_t scenes_background(const struct scenes *scenes, struct weir_rng *rng)
{
    size_t i = (size_t)weir_rng_below(rng, scenes_n_backgrounds(scenes));
    return scenes->options.part == WEIR_SCENES_ALL        ? i
           : scenes->options.part == WEIR_SCENES_MEASURED ? PART * i + PART - 1
                                                          : i + i / (PART - 1);
}

/* ---- what it shows -------------------------------------------------------------------------- */

/* An ellipse a little larger than the box, its middle a little above. */
float figure_head_at(const struct figure *f, float x, float y, float *out_bx, float *out_by)
{
    const float soft = 0.22F;
    float dx = x - f->cx, dy = y - f->cy, c = cosf(f->roll), s = sinf(f->roll);
    float bx = (dx * c + dy * s) / f->w + 0.5F, by = (dy * c - dx * s) / f->h + 0.5F;
    float ex = (bx - 0.506F) / 0.574F, ey = (by - 0.457F) / 0.616F;
    float inside = 1 - sqrtf(ex * ex + ey * ey);
    bool is_neck = fabsf(bx - 0.5F) < 0.3F && by > 0.8F && by < 1.25F;
    *out_bx = bx;
    *out_by = by;
    float head = inside <= 0 ? 0 : inside >= soft ? 1 : inside / soft;
    return is_neck ? 1 : head;
}

bool figure_torso_at(const struct figure *f, float x, float y)
{
    float below = (y - f->cy - 0.6F * f->h) / f->w;
    float half = WEIR_MIN(0.55F + 0.9F * below, 1.3F);
    return below >= 0 && fabsf(x - f->cx) < half * f->w;
}

/* The share of a grid over the box that no nearer figure covers, and that the scene holds. */
static float visible_of(const struct scenes *scenes, const struct scene_plan *plan, size_t i_figure)
{
    const struct figure *f = &plan->figures[i_figure];
    int n_seen = 0;
    for (int i = 0; i < VISIBLE_POINTS * VISIBLE_POINTS; i++) {
        int column = i % VISIBLE_POINTS, row = i / VISIBLE_POINTS;
        float x = f->cx + f->w * (((float)column + 0.5F) / VISIBLE_POINTS - 0.5F);
        float y = f->cy + f->h * (((float)row + 0.5F) / VISIBLE_POINTS - 0.5F);
        bool is_seen = x >= 0 && y >= 0 && x < (float)scenes->options.width &&
                       y < (float)scenes->options.height;
        for (size_t k = i_figure + 1; is_seen && k < plan->n_figures; k++) {
            float bx, by;
            is_seen = figure_head_at(&plan->figures[k], x, y, &bx, &by) < 0.5F &&
                      !figure_torso_at(&plan->figures[k], x, y);
        }
        n_seen += is_seen;
    }
    return (float)n_seen / (VISIBLE_POINTS * VISIBLE_POINTS);
}

static struct weir_scene_face face_of(const struct figure *f)
{
    struct weir_scene_face face = {
        .x = f->cx - f->w / 2, .y = f->cy - f->h / 2, .w = f->w, .h = f->h};
    static const int mirrored[] = {1, 0, 2, 4, 3};
    for (int k = 0; k < WEIR_SCENE_POINTS / 2; k++) {
        const float *from = &usual_points[2 * (f->is_mirrored ? mirrored[k] : k)];
        float rx = ((f->is_mirrored ? 1 - from[0] : from[0]) - 0.5F) * f->w;
        float ry = (from[1] - 0.5F) * f->h;
        float c = cosf(f->roll), s = sinf(f->roll);
        face.points[2 * k] = f->cx + rx * c - ry * s;
        face.points[2 * k + 1] = f->cy + rx * s + ry * c;
    }
    return face;
}

weir_status weir_scene_look(const struct weir_dataset *dataset, size_t i_scene,
                            struct weir_scene_face out[WEIR_SCENE_FACES_MAX], size_t *out_n,
                            struct weir_error *err)
{
    const struct scenes *scenes = dataset->scenes;
    struct scene_plan plan = scene_plan_make(scenes, i_scene);
    size_t n = 0;
    WEIR_TRY(scene_measure(scenes, &plan, err));
    for (size_t i = 0; i < plan.n_figures; i++) {
        if (plan.figures[i].kind == FIGURE_FACE) {
            out[n] = face_of(&plan.figures[i]);
            out[n++].visible = visible_of(scenes, &plan, i);
        }
    }
    *out_n = n;
    return WEIR_OK;
}

/* ---- the dataset ---------------------------------------------------------------------------- */

static weir_status check_options(const struct scenes *scenes, struct weir_error *err)
{
    const struct weir_scenes_options *o = &scenes->options;
    if (o->width < 32 || o->height < 32 || o->width > 4096 || o->height > 4096 || o->n < 1 ||
        o->n > WEIR_DATASET_MAX_SAMPLES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%zu scenes of %d x %d: expected 1 or more, of 32 to 4096 a side",
                              o->n, o->width, o->height);
    }
    if (scenes->backgrounds != NULL && scenes_n_backgrounds(scenes) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "backgrounds: %zu photographs are too few: one of five is kept for "
                              "measuring",
                              weir_dataset_n_samples(scenes->backgrounds));
    }
    return WEIR_OK;
}

static weir_status fill_scenes(struct weir_dataset *dataset, struct scenes *scenes,
                               struct weir_error *err)
{
    struct weir_scenes_options *o = &scenes->options;
    WEIR_TRY(check_options(scenes, err));
    o->min_width = o->min_width > 0 ? o->min_width : MIN_WIDTH;
    o->max_width = o->max_width > 0 ? o->max_width
                                    : fminf(MAX_WIDTH, 0.4F * (float)WEIR_MIN(o->height, o->width));
    o->max_width = fmaxf(o->max_width, o->min_width);
    dataset->n_samples = o->n;
    WEIR_TRY(dataset_seal(dataset, o->cache_bytes, err));
    memset(dataset->labels, 0, o->n * sizeof *dataset->labels);
    return name_list_add(&dataset->classes, "face") == WEIR_OK ? WEIR_OK : dataset_nomem(err);
}

weir_status weir_dataset_open_scenes(struct weir_dataset *faces, struct weir_dataset *backgrounds,
                                     const struct weir_scenes_options *options,
                                     struct weir_dataset **out, struct weir_error *err)
{
    struct weir_dataset *dataset = dataset_make(WEIR_DATASET_SCENES);
    struct scenes *scenes = calloc(1, sizeof *scenes);
    if (dataset == NULL || scenes == NULL) {
        weir_dataset_close(faces);
        weir_dataset_close(backgrounds);
        weir_dataset_close(dataset);
        free(scenes);
        return dataset_nomem(err);
    }
    *scenes = (struct scenes){faces, backgrounds, *options};
    dataset->scenes = scenes;
    weir_status status = fill_scenes(dataset, scenes, err);
    if (status != WEIR_OK) {
        weir_dataset_close(dataset);
        return status;
    }
    *out = dataset;
    return WEIR_OK;
}

const struct weir_dataset *weir_scenes_faces(const struct weir_dataset *dataset)
{
    return dataset->scenes != NULL ? dataset->scenes->faces : NULL;
}

void weir_scenes_size(const struct weir_dataset *dataset, int *out_width, int *out_height)
{
    *out_width = dataset->scenes->options.width;
    *out_height = dataset->scenes->options.height;
}
