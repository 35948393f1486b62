#include "vision/detector.h"

#include "vision/detector_fit.h"
#include "vision/detector_harvest.h"

#include <stdlib.h>
#include <string.h>

#define LONGER_SIDE 640 /* the input has it where nothing says more */
#define CUT_OFF     2 /* pixels of the input: what comes so near to a tile's side is cut off by it */
#define TILES_OVERLAP                                                                              \
    0.5f /* that duplicates of two tiles have, of kinds that remove none themselves */

struct weir_detector {
    struct weir_arena arena;
    struct detector_model model; /* which kind, and how its input is made */
    struct weir_detector_options wishes;
    struct harvest harvest;
    struct weir_detection items[WEIR_DETECTIONS_MAX];
    const struct weir_view *view;
    int width, height; /* the input's, for this picture */
    struct detector_tile tiles[WEIR_DETECTOR_TILES_MAX];
    size_t n_tiles;
};

/* ---- making -------------------------------------------------------------------------------------- */

weir_status weir_detector_create(const struct weir_detector_options *options,
                                 const struct weir_detector_port *inputs, size_t n_inputs,
                                 const struct weir_detector_port *outputs, size_t n_outputs,
                                 struct weir_detector **out, const char **out_why,
                                 struct weir_error *err)
{
    struct weir_detector *detector = calloc(1, sizeof *detector);
    if (detector == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a detector");
    }
    const struct detector_ports ports = {inputs, n_inputs, outputs, n_outputs};
    weir_arena_init(&detector->arena, 0);
    detector->wishes = *options;
    detector->wishes.kind = NULL; /* borrowed: not looked at again */
    detector->wishes.of_kind = NULL;
    weir_status status =
        detector_fit_model(options, &ports, &detector->arena, &detector->model, err);
    if (status != WEIR_OK) {
        weir_detector_destroy(detector);
        return status;
    }
    detector->harvest.items = detector->items;
    detector->harvest.threshold = detector->model.plan.threshold;
    memcpy(detector->harvest.classes, detector->model.classes, sizeof detector->harvest.classes);
    detector->harvest.n_classes = detector->model.n_classes;
    *out_why = detector->model.why;
    *out = detector;
    return WEIR_OK;
}

void weir_detector_destroy(struct weir_detector *detector)
{
    if (detector != NULL) {
        detector_model_fini(&detector->model);
        weir_arena_fini(&detector->arena);
        free(detector);
    }
}

/* ---- the input's size ------------------------------------------------------------------------------ */

/* A side of an input of free size: at least so many pixels, in steps of the divisor. */
static int side_of(const struct weir_detector *detector, double pixels)
{
    int divisor = WEIR_MAX(1, detector->model.plan.look.divisor);
    int most = WEIR_DETECTOR_SIDE_MAX / divisor * divisor;
    double steps = ceil(pixels / divisor - 1e-6);
    return steps * divisor >= most ? most : WEIR_MAX(1, (int)steps) * divisor;
}

/* Pixels of the input that a pixel of the picture becomes, as far as somebody wishes; 0: nobody does. */
static double wished_scale(const struct weir_detector *detector)
{
    int32_t min_size = detector->wishes.min_size;
    return min_size > 0 ? (double)detector->model.ops->least / min_size : 0;
}

static void choose_size(struct weir_detector *detector, const struct weir_view *view)
{
    const struct detector_plan *plan = &detector->model.plan;
    double wished = wished_scale(detector);
    double by_side = fmin((double)LONGER_SIDE / WEIR_MAX(view->width, view->height), 1);
    double scale = wished > 0 ? wished : by_side;
    int32_t width = detector->wishes.width, height = detector->wishes.height;
    detector->width = plan->width > 0 ? plan->width
                      : width > 0     ? side_of(detector, width)
                                      : side_of(detector, view->width * scale);
    detector->height = plan->height > 0 ? plan->height
                       : height > 0     ? side_of(detector, height)
                                        : side_of(detector, view->height * scale);
}

/* ---- tiles ----------------------------------------------------------------------------------------- */

static struct detector_tile whole_of(const struct weir_detector *detector,
                                     const struct weir_view *view)
{
    double a = (double)view->width / detector->width, b = (double)view->height / detector->height;
    enum detector_fit fit = detector->model.plan.look.fit;
    double left = 0, top = 0;
    if (fit != DETECTOR_STRETCH) {
        a = b = fmax(a, b);
    }
    if (fit == DETECTOR_CENTRE) {
        left = (view->width - a * detector->width) / 2;
        top = (view->height - b * detector->height) / 2;
    }
    return (struct detector_tile){.map = {{(float)a, 0, (float)left, 0, (float)b, (float)top}}};
}

/* How tiles lie along one side. */
struct row {
    double size, overlap, side; /* a tile's, that of two neighbours, the picture's */
    size_t n;
};

static struct row row_of(double side, double size, double least)
{
    struct row row = {.size = size, .overlap = fmin(2 * least, size / 2), .side = side, .n = 1};
    if (side > size) {
        row.n = 1 + (size_t)ceil((side - size) / (size - row.overlap) - 1e-6);
    }
    return row;
}

static double begin_of(const struct row *row, size_t i)
{
    return row->n == 1 ? (row->side - row->size) / 2
                       : (row->side - row->size) * (double)i / (double)(row->n - 1);
}

static void add_tiles(struct weir_detector *detector, const struct row *across,
                      const struct row *down, double scale)
{
    for (size_t i = 0; i < across->n * down->n; i++) {
        size_t column = i % across->n, line = i / across->n;
        detector->tiles[detector->n_tiles++] = (struct detector_tile){
            .map = {{(float)(1 / scale), 0, (float)begin_of(across, column), 0, (float)(1 / scale),
                     (float)begin_of(down, line)}},
            .goes_on = {column > 0, line > 0, column + 1 < across->n, line + 1 < down->n},
            .margin = CUT_OFF,
        };
    }
}

/* The whole, and parts of it at the scale that is wished, or the nearest to it that so many parts allow. */
static void choose_tiles(struct weir_detector *detector, const struct weir_view *view)
{
    double whole =
        fmin((double)detector->width / view->width, (double)detector->height / view->height);
    size_t n_max = (size_t)WEIR_MIN(detector->wishes.tiles_max, WEIR_DETECTOR_TILES_MAX - 1);
    detector->tiles[0] = whole_of(detector, view);
    detector->n_tiles = 1;
    if (detector->wishes.tiles_max <= 1) {
        return;
    }
    for (double scale = wished_scale(detector); scale > whole * 1.02; scale *= 0.97) {
        double least = detector->wishes.min_size + CUT_OFF / scale;
        struct row across = row_of(view->width, detector->width / scale, least);
        struct row down = row_of(view->height, detector->height / scale, least);
        if (across.n <= n_max && down.n <= n_max && across.n * down.n <= n_max) {
            add_tiles(detector, &across, &down, scale);
            return;
        }
    }
}

size_t weir_detector_look(struct weir_detector *detector, const struct weir_view *view)
{
    choose_size(detector, view);
    choose_tiles(detector, view);
    detector->view = view;
    detector->harvest.n = 0;
    detector->harvest.width = detector->width;
    detector->harvest.height = detector->height;
    return detector->n_tiles;
}

void weir_detector_shape(const struct weir_detector *detector, int64_t dims[4])
{
    bool is_planar = detector->model.is_planar;
    dims[0] = 1;
    dims[1] = is_planar ? detector->model.channels : detector->height;
    dims[2] = is_planar ? detector->height : detector->width;
    dims[3] = is_planar ? detector->width : detector->model.channels;
}

void weir_detector_put(struct weir_detector *detector, size_t i, void *input)
{
    const struct detector_look *look = &detector->model.plan.look;
    struct weir_view_input form = {
        .width = detector->width,
        .height = detector->height,
        .channels = detector->model.channels,
        .is_planar = detector->model.is_planar,
        .is_bgr = look->is_bgr,
        .is_u8 = detector->model.is_u8,
    };
    for (int c = 0; c < 3; c++) {
        form.scale[c] = form.is_u8 ? 1 : look->scale / look->std[c];
        form.shift[c] = form.is_u8 ? 0 : -look->mean[c] / look->std[c];
    }
    weir_view_cut_input(detector->view, &detector->tiles[i].map, look->pad, &form, input);
}

/* ---- what was found ---------------------------------------------------------------------------------- */

weir_status weir_detector_take(struct weir_detector *detector, size_t i,
                               const struct weir_detector_output *outputs, size_t n_outputs,
                               struct weir_error *err)
{
    const struct detector_plan *plan = &detector->model.plan;
    struct detector_answer answer = {.plan = plan,
                                     .width = detector->width,
                                     .height = detector->height,
                                     .threshold = plan->threshold};
    if (n_outputs != detector->model.n_outputs) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the detector gave %zu outputs, and %zu were described", n_outputs,
                              detector->model.n_outputs);
    }
    for (size_t k = 0; k < plan->n_roles; k++) {
        answer.roles[k] = &outputs[plan->outputs[plan->roles[k]].index];
    }
    detector->harvest.tile = &detector->tiles[i];
    return detector->model.ops->decode(&answer, &detector->harvest, err);
}

/* What lies in the picture; what lies beside it goes. @return How many are left. */
static size_t clip(const struct weir_view *view, struct weir_detection *items, size_t n)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir_box *box = &items[i].box;
        float x2 = fminf(box->x + box->w, (float)view->width);
        float y2 = fminf(box->y + box->h, (float)view->height);
        box->x = fmaxf(box->x, 0);
        box->y = fmaxf(box->y, 0);
        box->w = x2 - box->x;
        box->h = y2 - box->y;
        if (box->w > 0 && box->h > 0) {
            items[n_left++] = items[i];
        }
    }
    return n_left;
}

size_t weir_detector_found(struct weir_detector *detector, const struct weir_detection **out)
{
    size_t n = detector->harvest.n;
    float overlap = detector->model.plan.overlap;
    overlap = isnan(overlap) && detector->n_tiles > 1 ? TILES_OVERLAP : overlap;
    if (isnan(overlap)) {
        weir_detections_sort(detector->items, n);
    } else if (detector->model.ops->blends) {
        n = weir_detections_blend(detector->items, n, overlap);
    } else {
        n = weir_detections_suppress(detector->items, n, overlap);
    }
    *out = detector->items;
    detector->harvest.n = 0;
    return clip(detector->view, detector->items, n);
}
