#include "endpoint/source/camera.h"

static const struct weir_option camera_options[] = {
    WEIR_OPT_JSON(weir_camera, address, "url", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "rtsp://[USER@]HOST[:PORT]/PATH, without the password"),
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
    WEIR_OPT_JSON(weir_source_video, key_frames, "key-frames", BOOL, 0, NULL, 0, 0,
                  "Only key frames, which cost a fraction of the processor: about one in 2 s"),
    {.name = "transport",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct weir_source_video, transport),
     .fallback = "tcp",
     .words = WEIR_WORDS("tcp", "udp"),
     .doc = "How packets come: tcp, through one connection; udp, sooner and not all"},
    WEIR_SOURCE_VIDEO_PASSWORD,
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    return weir_cameras_check(options_of, &item, "rtsp", err);
}

static const struct weir_endpoint_ops ops = {.check = check, .items = "cameras", .item = &item};

const struct weir_kind weir_source_rtsp_kind = {
    .name = "rtsp",
    .doc = "Frames of cameras of the network, over RTSP: H.264, H.265 or JPEG. A lost camera is "
           "connected again. The newest frame wins when the replica is behind.",
    .ops = &ops,
    .library = "libav",
    WEIR_KIND_OPTIONS(weir_source_video, options),
};
