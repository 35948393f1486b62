#include "endpoint/source/camera.h"

static const struct weir_option camera_options[] = {
    WEIR_OPT_JSON(weir_camera, address, "path", TEXT, WEIR_OPTION_REQUIRED | WEIR_OPTION_PATH, NULL,
                  0, 0,
                  "File on the node, of any container and codec that the libraries of ffmpeg know"),
    WEIR_CAMERA_OPTIONS,
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
    {.name = "pace",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct weir_source_video, pace),
     .fallback = "own",
     .words = WEIR_WORDS("own", "fast"),
     .doc = "own: as fast as it was taken, the newest frame wins; fast: as fast as frames are "
            "decided, none is dropped, and what moves is followed by the file's own clock"},
    WEIR_OPT_JSON(weir_source_video, loop, "loop", BOOL, 0, NULL, 0, 0, "Begin again at the end"),
};

static weir_status check(const void *options_of, struct weir_error *err)
{
    return weir_cameras_check(options_of, &item, NULL, err);
}

static const struct weir_endpoint_ops ops = {.check = check, .items = "cameras", .item = &item};

const struct weir_kind weir_source_video_kind = {
    .name = "video",
    .doc = "Frames of video files, as if cameras sent them. A file that is over is a camera that "
           "is lost.",
    .ops = &ops,
    .library = "libav",
    WEIR_KIND_OPTIONS(weir_source_video, options),
};
