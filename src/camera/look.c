#include "look.h"

#include "video/slots.h"

#define STILL_US 1000000

weir_status camera_look_init(struct camera_look *look, double motion, struct weir_error *err)
{
    look->motion = motion;
    look->has_given = false;
    return weir_condition_create(&weir_condition_usual, &look->watch, err);
}

void camera_look_fini(struct camera_look *look)
{
    weir_condition_destroy(look->watch);
    look->watch = NULL;
}

bool camera_look_at(struct camera_look *look, const uint8_t *pixels, struct weir_video_frame *frame)
{
    const struct weir_view view = weir_video_view(pixels, frame);
    struct weir_image small = {.width = WEIR_CONDITION_WIDTH,
                               .height = WEIR_CONDITION_HEIGHT,
                               .channels = 1,
                               .pixels = look->grey};
    const struct weir_affine whole = {{(float)frame->width / WEIR_CONDITION_WIDTH, 0, 0, 0,
                                       (float)frame->height / WEIR_CONDITION_HEIGHT, 0}};
    weir_view_cut(&view, &whole, 0, &small);
    struct weir_condition condition =
        weir_condition_look(look->watch, frame->media_us / 1000, look->grey);
    frame->condition = (int32_t)condition.kind;
    frame->motion = condition.motion;
    bool is_through = condition.motion >= (float)look->motion || !look->has_given ||
                      frame->media_us - look->given_us >= STILL_US;
    if (is_through) {
        look->has_given = true;
        look->given_us = frame->media_us;
    }
    return is_through;
}
