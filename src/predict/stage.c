#include "predict/stage.h"

#include "base/grow.h"
#include "endpoint/stage/classify.h"
#include "predict/kinds.h"
#include "predict/pictures.h"
#include "predict/serving.h"

#include <math.h>
#include <stdlib.h>

#define SHOWN_MARGIN  0.4f
#define SEEN_SIDE_MAX 1024

struct stages {
    struct weir_arena arena; /**< Of the options. */
    json_t *list;            /**< That they point into; NULL: they point nowhere. */
    struct weir_stage_chain chain;
};

static weir_status check_model(const struct weir_stage_chain *chain, const struct model *model,
                               struct weir_error *err)
{
    for (size_t i = 0; i < chain->n; i++) {
        const struct stage_ops *ops = predict_ops_of(chain->items[i].kind);
        weir_status status =
            ops->check != NULL ? ops->check(chain->items[i].options, model, err) : WEIR_OK;
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "model %s version %lld ", model->name,
                                     (long long)model->version);
        }
    }
    return WEIR_OK;
}

const json_t *stages_list(const struct stages *stages)
{
    return stages->list;
}

weir_status stages_create(const json_t *list, const struct model *model, struct stages **out,
                          struct weir_error *err)
{
    struct stages *stages = weir_xalloc(sizeof *stages);
    *stages = (struct stages){.list = json_incref((json_t *)(uintptr_t)list)};
    weir_arena_init(&stages->arena, 0);
    weir_status status =
        weir_stages_read(list, true, "deployment: $.stages", &stages->arena, &stages->chain, err);
    if (status == WEIR_OK) {
        status = check_model(&stages->chain, model, err);
    }
    if (status != WEIR_OK) {
        stages_destroy(stages);
        return status;
    }
    *out = stages;
    return WEIR_OK;
}

void stages_destroy(struct stages *stages)
{
    if (stages == NULL) {
        return;
    }
    json_decref(stages->list);
    weir_arena_fini(&stages->arena);
    free(stages);
}

/* From the i-th on those before the n-th. */
static weir_status run_some(const struct stages *stages, size_t i, size_t n,
                            struct stage_frame *frame, struct weir_error *err)
{
    for (; i < n; i++) {
        const struct weir_configured *stage = &stages->chain.items[i];
        const struct stage_ops *ops = predict_ops_of(stage->kind);
        WEIR_TRY(ops->run(stage->options, frame, err));
    }
    return WEIR_OK;
}

static size_t count_apart(const struct stages *stages)
{
    size_t n = 0;
    while (n < stages->chain.n) {
        const struct stage_ops *ops = predict_ops_of(stages->chain.items[n].kind);
        if (!ops->is_apart) {
            break;
        }
        n++;
    }
    return n;
}

weir_status stages_begin(const struct stages *stages, struct stage_frame *frame,
                         struct weir_error *err)
{
    return run_some(stages, 0, count_apart(stages), frame, err);
}

weir_status stages_end(const struct stages *stages, struct stage_frame *frame,
                       struct weir_error *err)
{
    return run_some(stages, count_apart(stages), stages->chain.n, frame, err);
}

weir_status stages_look(const struct stages *stages, struct stage_frame *frame,
                        struct weir_error *err)
{
    size_t n = 0;
    while (n < stages->chain.n) {
        const struct weir_stage_facts *facts = stages->chain.items[n].kind->ops;
        if (facts->gives == WEIR_STAGE_TRACK || facts->gives == WEIR_STAGE_DECISION) {
            break;
        }
        n++;
    }
    return run_some(stages, 0, n, frame, err);
}

weir_status stages_wait(const struct stages *stages, struct stage_frame *frame,
                        struct weir_error *err)
{
    for (size_t i = 0; i < stages->chain.n; i++) {
        const struct weir_configured *stage = &stages->chain.items[i];
        const struct stage_ops *ops = predict_ops_of(stage->kind);
        if (ops->wait != NULL) {
            WEIR_TRY(ops->wait(stage->options, frame, err));
        }
    }
    return WEIR_OK;
}

const struct weir_stage_chain *stages_chain(const struct stages *stages)
{
    return &stages->chain;
}

double stages_threshold(const struct stages *stages)
{
    const struct weir_stage_classify *classify =
        weir_stages_options(stages_chain(stages), &weir_stage_classify_kind);
    return classify != NULL ? classify->threshold : NAN;
}

/* ---- a frame --------------------------------------------------------------------------------- */

void stage_frame_init(struct stage_frame *at, const struct frame *frame, struct serving *serving)
{
    *at = (struct stage_frame){.frame = frame,
                               .serving = serving,
                               .finder = serving->n_finders > 0 ? serving->finders[0] : NULL};
    weir_arena_init(&at->arena, 0);
}

static void drop_objects(struct stage_frame *at)
{
    for (size_t i = 0; i < at->n_objects; i++) {
        weir_image_fini(&at->objects[i].cut);
    }
    at->n_objects = 0;
}

void stage_frame_fini(struct stage_frame *at)
{
    drop_objects(at);
    stage_decisions_drop(at);
    weir_image_fini(&at->image);
    weir_arena_fini(&at->arena);
}

void stage_objects_reset(struct stage_frame *at, size_t n)
{
    drop_objects(at);
    at->objects = WEIR_ARENA_ARRAY(&at->arena, n + 1, struct stage_object);
    at->n_objects = n;
    for (size_t i = 0; i < n; i++) {
        at->objects[i].brightness = NAN;
        at->objects[i].finding = (struct finding){.score = NAN, .threshold = NAN};
    }
}

/* What lies in the box and `margin` of its sides around it; its longer side has at most max_side pixels. */
static weir_status cut_box(const struct weir_view *view, const struct weir_box *box, float margin,
                           int max_side, struct weir_image *out, struct weir_error *err)
{
    float w = box->w * (1 + 2 * margin), h = box->h * (1 + 2 * margin);
    float scale = fmaxf(fmaxf(w, h) / (float)max_side, 1);
    const struct weir_affine map = {
        {scale, 0, box->x - box->w * margin, 0, scale, box->y - box->h * margin}};
    WEIR_TRY(weir_image_init(out, WEIR_MAX(1, (int)(w / scale)), WEIR_MAX(1, (int)(h / scale)),
                             view->form == WEIR_VIEW_GREY ? 1 : 3, err));
    weir_view_cut(view, &map, 0, out);
    return WEIR_OK;
}

weir_status stage_object_show(const struct weir_view *view, const struct stage_object *object,
                              struct weir_image *out, struct weir_error *err)
{
    return object->has_box
               ? cut_box(view, &object->detection.box, SHOWN_MARGIN, PICTURE_SIDE_MAX, out, err)
               : weir_view_to_image(view, PICTURE_SIDE_MAX, out, err);
}

/* What the model is to see of an object: its cut, else its box cut out, else the picture. `own` is for what has to be made. */
static weir_status look(const struct stage_frame *at, const struct stage_object *object,
                        struct weir_image *own, const struct weir_image **out,
                        struct weir_error *err)
{
    *out = own;
    if (object->cut.pixels != NULL) {
        *out = &object->cut;
    } else if (object->has_box) {
        return cut_box(&at->view, &object->detection.box, 0, SEEN_SIDE_MAX, own, err);
    } else if (at->image.pixels != NULL) {
        *out = &at->image;
    } else {
        return weir_view_to_image(&at->view, 0, own, err);
    }
    return WEIR_OK;
}

weir_status stage_object_put(struct stage_frame *at, struct stage_object *object, size_t i,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_image_fini)
    struct weir_image own = {0};
    const struct weir_image *image;
    WEIR_TRY(look(at, object, &own, &image, err));
    WEIR_TRY(model_put(at->serving->model, i, image, &object->brightness, err));
    at->shown = i == 0 ? object : at->shown;
    return WEIR_OK;
}

struct stage_decision *stage_decision_add(struct stage_frame *at)
{
    const struct serving *serving = at->serving;
    weir_arena_grow(&at->arena, &at->decisions, sizeof *at->decisions, at->n_decisions,
                    &at->decisions_cap);
    struct decision *decision = decision_create();
    decision->threshold = serving_threshold(serving);
    decision->model_version = serving->model_version;
    decision->gallery_version = serving->gallery != NULL ? serving->gallery->version : 0;
    decision->list_revision = serving->list_revision;
    struct stage_decision *made = &at->decisions[at->n_decisions++];
    *made = (struct stage_decision){.decision = decision};
    return made;
}

static void decision_drop(struct stage_decision *made)
{
    decision_destroy(made->decision);
    weir_image_fini(&made->picture);
}

void stage_decisions_drop(struct stage_frame *at)
{
    for (size_t i = 0; i < at->n_decisions; i++) {
        decision_drop(&at->decisions[i]);
    }
    at->n_decisions = 0;
}

void stage_decisions_drop_others(struct stage_frame *at)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < at->n_decisions; i++) {
        const struct decision *decision = at->decisions[i].decision;
        if (decision->passage != NULL && decision->counted == NULL) {
            at->decisions[n_kept++] = at->decisions[i];
        } else {
            decision_drop(&at->decisions[i]);
        }
    }
    at->n_decisions = n_kept;
}
