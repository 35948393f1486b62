/**
 * Camera: the frames of one camera, from a process of its own that decodes them (weir-camera).
 *
 * A thread starts the process, opens for it what the source's document names and nothing else, and hands its frames on. A connection
 * is one life of the process. When it ends, the camera is lost: the thread says why, waits (1 s and twice as long each time, to 60 s, with
 * jitter), and begins again; after a connection that lived for 10 s it begins again within 0.1 s, and then with 1 s. No camera minds another. A process that says
 * nothing for WEIR_VIDEO_SILENCE_MS, or that breaks the rules of wire.h, is killed.
 *
 *     connecting ─▸ live ─▸ lost ─▸ connecting … ; a file that is over: ended
 */
#ifndef WEIR_VIDEO_CAMERA_H
#define WEIR_VIDEO_CAMERA_H

#include "base/json.h"
#include "video/slots.h"

#define WEIR_VIDEO_SILENCE_MS 30000

enum weir_video_state {
    WEIR_VIDEO_CONNECTING,
    WEIR_VIDEO_IS_LIVE,
    WEIR_VIDEO_IS_LOST,
    WEIR_VIDEO_ENDED,
};

struct weir_video_camera;

/** What weir-camera may ask for, by enum weir_video_thing; the others are refused. */
struct weir_video_reach {
    const char *host; /**< NULL: no network. */
    int port;
    const char *path; /**< NULL: no file. */
    bool is_device;
};

/** A frame. Its slot is held: the receiver frees it once (weir_video_slots_free), on any thread, also after the camera's stop. */
struct weir_video_taken {
    const struct weir_video_frame *frame;
    struct weir_view view;
    struct weir_video_slots *slots;
    uint32_t slot;
    /** Wall clock at its begin, ms; each is larger than the one before. With epoch and seq the frame's name. */
    int64_t connection;
};

struct weir_video_config {
    const char *program; /**< weir-camera; NULL: as weir_video_program finds it. */
    const char *name;
    /** {"kind", …, "cameras": [one]}: what weir-camera is told, passwords included. Copied. */
    const json_t *source;
    struct weir_video_reach reach;
    size_t n_slots;
    size_t slot_bytes;
    /** On the camera's thread. */
    void (*on_frame)(void *context, const struct weir_video_taken *taken);
    /** The state has changed. On the camera's thread; NULL: nobody asks. */
    void (*on_state)(void *context, enum weir_video_state state, const char *why);
    void *context;
};

struct weir_video_status {
    enum weir_video_state state;
    int64_t since_ms; /**< Wall clock. */
    /** Wall clock since when it has been lost, however often it was tried since; 0: it is not. */
    int64_t lost_ms;
    char why[WEIR_VIDEO_TEXT_BYTES]; /**< It was lost last: no control characters; "": never. */
    weir_status cause;               /**< What that was. */
    char codec[32];                  /**< "": nothing has come yet. */
    int64_t n_frames, n_connections; /**< In all. */
    int64_t last_ms;                 /**< Wall clock when the last frame came; 0: none has. */
    struct weir_video_frame frame;   /**< The last. */
    struct weir_video_counts counts; /**< Since this connection's begin. */
};

/** Where weir-camera is: beside this program, else in PATH.
 *  @return UNSUPPORTED with what brings it. out: PATH_MAX bytes. */
weir_status weir_video_program(char *out, size_t size, struct weir_error *err) WEIR_MUST_CHECK;

/** @param config  Borrowed until the camera is stopped. */
weir_status weir_video_start(const struct weir_video_config *config, struct weir_video_camera **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** No frame comes after it; the process has ended. NULL is accepted. */
void weir_video_stop(struct weir_video_camera *camera);

/** Any thread. */
void weir_video_status(struct weir_video_camera *camera, struct weir_video_status *out);

/** "connecting", "live", "lost", "ended". */
const char *weir_video_state_name(enum weir_video_state state);

#endif
