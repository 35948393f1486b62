#include "find/finder.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES_MAX 1024 /**< Further ones have no name. */

struct finder {
    atomic_int n_refs;
    struct model_name name; /**< Texts in the arena. */
    struct weir_arena arena;
    struct serve_model *serve;
    struct weir_detector *detector;
    const char *why;
    struct weir_tensor *input; /**< As the last picture needed it; NULL: none yet. */
    const char **classes;      /**< CLASSES_MAX names: labels, or numbers. */
    bool *counts;              /**< CLASSES_MAX: which are found; NULL: all. */
    struct weir_detection *found;
};

/* ---- what is wished for ---------------------------------------------------------------------- */

static float or_usual(double value)
{
    return value > 0 ? (float)value : NAN;
}

struct finder_wish finder_wish_from(const struct weir_stage_detect *detect)
{
    return (struct finder_wish){.model = detect->model,
                                .classes = detect->classes,
                                .detector = {.kind = detect->as,
                                             .of_kind = detect->options,
                                             .threshold = or_usual(detect->threshold),
                                             .overlap = or_usual(detect->overlap),
                                             .width = (int32_t)detect->width,
                                             .height = (int32_t)detect->height,
                                             .min_size = (int32_t)detect->min_face,
                                             .tiles_max = (int32_t)detect->tiles}};
}

bool finder_wish_of(const struct weir_stage_chain *chain, struct finder_wish *out)
{
    const struct weir_stage_detect *detect = weir_stages_options(chain, &weir_stage_detect_kind);
    if (detect == NULL) {
        return false;
    }
    *out = finder_wish_from(detect);
    return true;
}

/* ---- loading --------------------------------------------------------------------------------- */

static void name_classes(struct finder *finder, const struct weir_signature *signature)
{
    size_t n = signature->labels != NULL ? signature->n_labels : 0;
    finder->classes = WEIR_ARENA_ARRAY(&finder->arena, CLASSES_MAX, const char *);
    for (size_t i = 0; i < CLASSES_MAX; i++) {
        finder->classes[i] =
            i < n ? signature->labels[i] : weir_arena_printf(&finder->arena, "%zu", i);
    }
}

static weir_status choose_class(struct finder *finder, const char *wanted, struct weir_error *err)
{
    bool is_there = false;
    for (size_t i = 0; i < CLASSES_MAX; i++) {
        if (strcmp(finder->classes[i], wanted) == 0) {
            finder->counts[i] = is_there = true;
        }
    }
    return is_there
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "has no class \"%.80s\", which stage \"detect\" is to find: its "
                                "classes are the labels that it was pushed with (--labels), "
                                "or without them numbers from 0 on",
                                wanted);
}

static weir_status choose_classes(struct finder *finder, const json_t *wanted,
                                  struct weir_error *err)
{
    const json_t *name;
    size_t i;
    if (json_array_size(wanted) == 0) {
        return WEIR_OK;
    }
    finder->counts = WEIR_ARENA_ARRAY(&finder->arena, CLASSES_MAX, bool);
    json_array_foreach(wanted, i, name)
    {
        WEIR_TRY(choose_class(finder, json_string_value(name), err));
    }
    return WEIR_OK;
}

static weir_status check_type(enum weir_dtype dtype, bool may_be_bytes, const char *name,
                              struct weir_error *err)
{
    return dtype == WEIR_DTYPE_FLOAT || (may_be_bytes && dtype == WEIR_DTYPE_UINT8)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "has \"%.80s\" of %s: a detector's picture is f32 or u8, its "
                                "outputs are floats",
                                name, weir_dtype_name(dtype));
}

/* A shape that the file does not say is what was found when the version was made; `learnt` is as long, or NULL. */
static void fill_ports(const struct serve_port *ports, const struct serve_port *learnt, size_t n,
                       struct weir_detector_port *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct serve_port *port =
            ports[i].rank < 0 && learnt != NULL ? &learnt[i] : &ports[i];
        out[i] = (struct weir_detector_port){.name = ports[i].name,
                                             .dims = port->dims,
                                             .rank = (size_t)WEIR_MAX(port->rank, 0),
                                             .is_u8 = ports[i].dtype == WEIR_DTYPE_UINT8};
    }
}

static weir_status make_detector(struct finder *finder, const struct weir_signature *signature,
                                 const struct weir_detector_options *options,
                                 struct weir_error *err)
{
    const struct serve_model *serve = finder->serve;
    struct weir_detector_port inputs[SERVE_PORTS_MAX], outputs[SERVE_PORTS_MAX];
    if (serve->n_inputs != 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "takes %zu inputs: a detector takes one, the picture",
                              serve->n_inputs);
    }
    WEIR_TRY(check_type(serve->inputs[0].dtype, true, serve->inputs[0].name, err));
    bool is_same = signature->n_outputs == serve->n_outputs;
    fill_ports(serve->inputs, NULL, serve->n_inputs, inputs);
    fill_ports(serve->outputs, is_same ? signature->outputs : NULL, serve->n_outputs, outputs);
    return weir_detector_create(options, inputs, serve->n_inputs, outputs, serve->n_outputs,
                                &finder->detector, &finder->why, err);
}

/* Can it be run at all, and are its outputs what they were taken for? */
static weir_status try_it(struct finder *finder, struct weir_error *err)
{
    struct weir_image grey = {0};
    const struct weir_detection *ignored;
    size_t n;
    WEIR_TRY(weir_image_init(&grey, 640, 360, 3, err));
    const struct weir_view view = weir_view_of(&grey);
    weir_status status = finder_find(finder, &view, &ignored, &n, err);
    weir_image_fini(&grey);
    return status;
}

static weir_status prepare(struct finder *finder, const char *path, const struct model_name *name,
                           const struct finder_wish *wish, struct weir_error *err)
{
    struct weir_signature signature;
    WEIR_TRY(model_file_load(path, name, 1, &finder->arena, &finder->serve, &signature, err));
    name_classes(finder, &signature);
    WEIR_TRY(choose_classes(finder, wish->classes, err));
    WEIR_TRY(make_detector(finder, &signature, &wish->detector, err));
    return try_it(finder, err);
}

weir_status finder_load(const char *path, const struct model_name *name,
                        const struct finder_wish *wish, struct finder **out, struct weir_error *err)
{
    struct finder *finder = weir_xalloc(sizeof *finder);
    *finder = (struct finder){0};
    atomic_init(&finder->n_refs, 1);
    weir_arena_init(&finder->arena, 0);
    finder->name = (struct model_name){.name = weir_arena_strdup(&finder->arena, name->name),
                                       .id = weir_arena_strdup(&finder->arena, name->id),
                                       .blob = weir_arena_strdup(&finder->arena, name->blob),
                                       .version = name->version};
    weir_status status = prepare(finder, path, name, wish, err);
    if (status != WEIR_OK) {
        finder_unref(finder);
        return name->version > 0
                   ? weir_error_prefix(err, "stage \"detect\": model %s, now version %lld of %s: ",
                                       wish->model, (long long)name->version, name->name)
                   : weir_error_prefix(err, "detector %s: ", wish->model);
    }
    *out = finder;
    return WEIR_OK;
}

struct finder *finder_ref(struct finder *finder)
{
    atomic_fetch_add(&finder->n_refs, 1);
    return finder;
}

void finder_unref(struct finder *finder)
{
    if (finder == NULL || atomic_fetch_sub(&finder->n_refs, 1) > 1) {
        return;
    }
    weir_detector_destroy(finder->detector);
    serve_model_unload(finder->serve);
    weir_tensor_release(finder->input);
    weir_arena_fini(&finder->arena);
    free(finder->found);
    free(finder);
}

bool finder_is(const struct finder *finder, const struct model_name *name)
{
    return strcmp(finder->name.blob, name->blob) == 0 && strcmp(finder->name.id, name->id) == 0 &&
           strcmp(finder->name.name, name->name) == 0 && finder->name.version == name->version;
}

const struct model_name *finder_name(const struct finder *finder)
{
    return &finder->name;
}

const char *finder_class(const struct finder *finder, int32_t class_id)
{
    return class_id >= 0 && class_id < CLASSES_MAX ? finder->classes[class_id] : "?";
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The input, of the shape that this picture needs. */
static weir_status shape_input(struct finder *finder, struct weir_error *err)
{
    int64_t dims[4];
    weir_detector_shape(finder->detector, dims);
    if (finder->input != NULL && memcmp(finder->input->dims, dims, sizeof dims) == 0) {
        return WEIR_OK;
    }
    weir_tensor_release(finder->input);
    finder->input = NULL;
    return weir_tensor_create(finder->serve->inputs[0].dtype, 4, dims, &finder->input, err);
}

static weir_status take(struct finder *finder, size_t i_tile, struct weir_tensor *const *outputs,
                        struct weir_error *err)
{
    struct weir_detector_output given[SERVE_PORTS_MAX];
    size_t n = finder->serve->n_outputs;
    for (size_t i = 0; i < n; i++) {
        const struct weir_tensor *one = outputs[i];
        WEIR_TRY(check_type(one->dtype, false, finder->serve->outputs[i].name, err));
        given[i] = (struct weir_detector_output){.name = finder->serve->outputs[i].name,
                                                 .dims = one->dims,
                                                 .rank = (size_t)one->rank,
                                                 .values = one->data};
    }
    return weir_detector_take(finder->detector, i_tile, given, n, err);
}

static weir_status look_at_tile(struct finder *finder, size_t i_tile, struct weir_error *err)
{
    struct weir_tensor *outputs[SERVE_PORTS_MAX] = {0};
    weir_detector_put(finder->detector, i_tile, finder->input->data);
    weir_status status = serve_model_run(finder->serve, &finder->input, outputs, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "the detector failed: ");
    }
    status = take(finder, i_tile, outputs, err);
    serve_tensors_release(outputs, finder->serve->n_outputs);
    return status;
}

static weir_status look_at_tiles(struct finder *finder, size_t n_tiles, struct weir_error *err)
{
    WEIR_TRY(shape_input(finder, err));
    for (size_t i = 0; i < n_tiles; i++) {
        WEIR_TRY(look_at_tile(finder, i, err));
    }
    return WEIR_OK;
}

/* Those whose class is wanted, best first. */
static size_t choose(struct finder *finder, const struct weir_detection *all, size_t n)
{
    size_t n_kept = 0;
    free(finder->found);
    finder->found = weir_xalloc((n + 1) * sizeof *finder->found);
    for (size_t i = 0; i < n; i++) {
        int32_t class_id = all[i].class_id;
        if (finder->counts == NULL ||
            (class_id >= 0 && class_id < CLASSES_MAX && finder->counts[class_id])) {
            finder->found[n_kept++] = all[i];
        }
    }
    return n_kept;
}

weir_status finder_find(struct finder *finder, const struct weir_view *view,
                        const struct weir_detection **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_detection *all;
    size_t n_tiles = weir_detector_look(finder->detector, view);
    weir_status status = look_at_tiles(finder, n_tiles, err);
    size_t n = weir_detector_found(finder->detector, &all); /* The picture is over in any case. */
    WEIR_TRY(status);
    *out_n = choose(finder, all, n);
    *out = finder->found;
    return WEIR_OK;
}

const char *finder_why(const struct finder *finder)
{
    return finder->why;
}

bool finder_is_broken(const struct finder *finder)
{
    return finder->serve->is_broken;
}
