#include "endpoint/source/camera.h"

static const struct weir_option camera_options[] = {
    WEIR_OPT_JSON(weir_camera, address, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "http://[USER@]HOST[:PORT]/PATH, without the password"),
    WEIR_CAMERA_OPTIONS,
    WEIR_CAMERA_PASSWORD,
};

static const struct weir_kind item = {
    .name = "camera",
    .doc = "A camera of a source of video.",
    WEIR_KIND_OPTIONS(weir_camera, camera_options),
};

static const struct weir_option options[] = {
    WEIR_SOURCE_VIDEO_OPTIONS,
    WEIR_OPT_JSON(
        weir_source_video, period_s, "period-s", F64, 0, "0", 0, 3600,
        "The address gives a single picture: ask for it so often; 0: it gives a stream, or a "
        "picture that is asked for as often as fps says"),
    WEIR_SOURCE_VIDEO_PASSWORD,
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    return weir_cameras_check(options_of, &item, "http", err);
}

static const struct weir_endpoint_ops ops = {.check = check, .items = "cameras", .item = &item};

const struct weir_kind weir_source_mjpeg_kind = {
    .name = "mjpeg",
    .doc = "Frames of cameras that send JPEG pictures over HTTP: a stream of them, or one for each "
           "request. A lost camera is connected again.",
    .ops = &ops,
    .library = "libav",
    WEIR_KIND_OPTIONS(weir_source_video, options),
};
