#include "predict/stage.h"

static weir_status run(const void *options, struct stage_frame *at, struct weir_error *err)
{
    const struct frame *frame = at->frame;
    (void)options;
    if (frame->damage != NULL) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s", frame->damage);
    }
    if (frame->n_bytes == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the frame is empty");
    }
    return weir_image_decode_within(frame->bytes, frame->n_bytes, &weir_image_limits_frame,
                                    &at->image, err);
}

const struct stage_ops stage_decode = {.run = run};
