#include "endpoint/stage/judge.h"

#include "predict/stage.h"

#define JUDGED_SIDE_MIN 32

/* The usual limits, but for those that are written. */
static struct weir_face_limits limits_of(const struct weir_stage_judge *options)
{
    struct weir_face_limits limits = weir_face_limits_usual;
#define X(member, option, text)                                                                    \
    limits.member = options->member >= 0 ? (float)options->member : limits.member;
    WEIR_STAGE_JUDGE_LIMITS(X)
#undef X
    return limits;
}

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct weir_face_limits limits = limits_of(options);
    (void)err;
    for (size_t i = 0; i < at->n_objects; i++) {
        struct stage_object *object = &at->objects[i];
        object->quality = weir_face_judge(&object->cut, &object->face, &object->detection);
        object->refused = weir_face_refuse(&object->quality, &limits);
    }
    return WEIR_OK;
}

static weir_status check(const void *options, const struct model *model, struct weir_error *err)
{
    const struct signature_picture *picture = &model->signature.picture;
    (void)options;
    return picture->width >= JUDGED_SIDE_MIN && picture->height >= JUDGED_SIDE_MIN
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_UNSUPPORTED,
                     "takes pictures of %d × %d, and stage \"judge\" needs faces of %d × "
                     "%d at least: leave the stage out",
                     picture->width, picture->height, JUDGED_SIDE_MIN, JUDGED_SIDE_MIN);
}

const struct stage_ops stage_judge = {.run = run, .check = check, .is_apart = true};
