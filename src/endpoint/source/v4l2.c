#include "endpoint/source/camera.h"

static const struct weir_option camera_options[] = {
    WEIR_OPT_JSON(weir_camera, address, "device", TEXT, WEIR_OPTION_REQUIRED | WEIR_OPTION_PATH,
                  NULL, 0, 0, "/dev/videoN on the node"),
    WEIR_CAMERA_OPTIONS,
};

static const struct weir_kind item = {
    .name = "camera",
    .doc = "A camera of a source of video.",
    WEIR_KIND_OPTIONS(weir_camera, camera_options),
};

static const struct weir_option options[] = {
    WEIR_SOURCE_VIDEO_OPTIONS,
    WEIR_OPT_JSON(weir_source_video, width, "width", INT, 0, "1280", 16, 16384,
                  "Of the frames that are asked for; the camera gives its nearest"),
    WEIR_OPT_JSON(weir_source_video, height, "height", INT, 0, "720", 16, 16384,
                  "Of the frames that are asked for"),
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    return weir_cameras_check(options_of, &item, NULL, err);
}

static const struct weir_endpoint_ops ops = {.check = check, .items = "cameras", .item = &item};

const struct weir_kind weir_source_v4l2_kind = {
    .name = "v4l2",
    .doc = "Frames of cameras at the node itself (Video4Linux), as JPEG or YUYV.",
    .ops = &ops,
    .library = "libav",
    WEIR_KIND_OPTIONS(weir_source_video, options),
};
