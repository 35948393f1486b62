#include "input.h"

#include <string.h>

static const struct camera_input_ops *const inputs[] = {
    &camera_input_rtsp,
    &camera_input_mjpeg,
    &camera_input_v4l2,
    &camera_input_video,
};

const struct camera_input_ops *camera_input_find(const char *kind)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(inputs); i++) {
        if (strcmp(inputs[i]->kind, kind) == 0) {
            return inputs[i];
        }
    }
    return NULL;
}
