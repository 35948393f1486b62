#include "predict/stage.h"

static weir_status decode(struct stage_frame *at, struct weir_error *err)
{
    const struct frame *frame = at->frame;
    if (frame->damage != NULL) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s", frame->damage);
    }
    if (frame->n_bytes == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the frame is empty");
    }
    WEIR_TRY(weir_image_decode_within(frame->bytes, frame->n_bytes, &weir_image_limits_frame,
                                      &at->image, err));
    at->view = weir_view_of(&at->image);
    return WEIR_OK;
}

/* A camera's picture is taken as it is. */
static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    (void)options;
    if (at->frame->view.form == WEIR_VIEW_NONE) {
        WEIR_TRY(decode(at, err));
    } else {
        at->view = at->frame->view;
    }
    stage_objects_reset(at, 1);
    return WEIR_OK;
}

const struct stage_ops stage_decode = {.run = run, .is_apart = true};
