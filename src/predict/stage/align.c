#include "endpoint/stage/align.h"

#include "find/photo.h"
#include "predict/serving.h"
#include "predict/stage.h"

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    for (size_t i = 0; i < at->n_objects; i++) {
        struct stage_object *object = &at->objects[i];
        WEIR_TRY(stage_align_cut(options, at->serving->model, &at->view, &object->detection,
                                 &object->cut, &object->face, err));
    }
    return WEIR_OK;
}

const struct stage_ops stage_align = {.run = run, .is_apart = true};

weir_status stage_align_cut(const struct weir_stage_align *options, const struct model *model,
                            const struct weir_view *view, const struct weir_detection *detection,
                            struct weir_image *out, struct weir_face *out_face,
                            struct weir_error *err)
{
    const struct signature_picture *picture = &model->signature.picture;
    const struct weir_face_align align =
        photo_align(options, picture->width, picture->height, picture->channels);
    WEIR_TRY(weir_image_init(out, align.width, align.height, align.channels, err));
    weir_face_cut(view, detection, &align, out, out_face);
    return WEIR_OK;
}
