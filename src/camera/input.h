/**
 * Inputs: where the encoded pictures of a camera come from, a table of {name, ops} with one file a kind. An input opens nothing itself: it
 * asks the link. One thread.
 */
#ifndef WEIR_CAMERA_INPUT_H
#define WEIR_CAMERA_INPUT_H

#include "endpoint/source/camera.h"
#include "link.h"

#include <libavcodec/avcodec.h>

/** What the document says of the camera. */
struct camera_setup {
    const char *kind;
    const struct weir_source_video *source;
    const struct weir_camera *camera;
    const char *password; /**< The camera's, else the source's; or NULL. */
};

/** What the input's units are; the input owns it. */
struct camera_stream {
    enum AVCodecID codec;                /**< NONE: pixels, of `pixels`. */
    const AVCodecParameters *parameters; /**< Or NULL. */
    const uint8_t *extra; /**< For the decoder, in place of parameters; n_extra may be 0. */
    size_t n_extra;
    enum AVPixelFormat pixels;
    int width, height; /**< The pixels' size. */
    bool is_intra;     /**< Each unit can be decoded without others. */
};

struct camera_unit {
    const uint8_t *bytes; /**< Borrowed until the next call. */
    size_t n_bytes;
    int64_t media_us, wall_ms; /**< As struct weir_video_frame. */
    uint64_t received_ns;
    uint64_t n_lost_before;
    uint32_t epoch;
    bool is_key;
    bool begins_anew; /**< Nothing of before belongs to it: the file began again. */
};

struct camera_input;

struct camera_input_ops {
    const char *kind;
    weir_status (*open)(const struct camera_setup *setup, struct camera_link *link,
                        struct camera_input **out, struct weir_error *err);
    struct camera_stream (*stream)(const struct camera_input *input);
    /**
     * The next unit.
     * @return TIMEOUT: none until the deadline (weir_mono_ms), call again; END: a file is over; anything else: the connection is over.
     */
    weir_status (*next)(struct camera_input *input, int64_t deadline_ms, struct camera_unit *out,
                        struct weir_error *err);
    void (*close)(struct camera_input *input);
};

extern const struct camera_input_ops camera_input_rtsp, camera_input_mjpeg, camera_input_v4l2,
    camera_input_video;

/** NULL: there is no such kind. */
const struct camera_input_ops *camera_input_find(const char *kind);

#endif
