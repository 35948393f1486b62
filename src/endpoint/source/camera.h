/**
 * Cameras: what the sources of video (rtsp, mjpeg, v4l2, video) take in common. A source has a list of cameras, each an object with
 * options of its own; where a camera says nothing, what the source says holds.
 */
#ifndef WEIR_ENDPOINT_SOURCE_CAMERA_H
#define WEIR_ENDPOINT_SOURCE_CAMERA_H

#include "endpoint/endpoint.h"

#define WEIR_CAMERAS_MAX            64
#define WEIR_CAMERA_NAME_BYTES      64
#define WEIR_CAMERA_HOST_BYTES      256
#define WEIR_CAMERA_USER_BYTES      128
#define WEIR_CAMERA_MASKS_MAX       16
#define WEIR_CAMERA_MASK_POINTS_MAX 32
#define WEIR_CAMERA_FPS_MAX         120
#define WEIR_CAMERA_CLOCK_OFF_MS    5000 /**< A clock that is off by more is wrong. */

/** Options of the source, of all kinds of video; each kind takes a part of them. */
struct weir_source_video {
    const json_t *cameras;
    char *password; /**< Every camera has it that has none of its own. */
    double fps;     /**< Frames a second; 0: all. */
    bool key_frames;
    int64_t max_pixels;
    double motion; /**< Share of the picture that must move; 0: frames come in any case. */
    char *transport, *pace;
    bool loop;
    double period_s; /**< Single pictures are fetched so often; 0: the address gives a stream. */
    int64_t width, height;
    int64_t lost_after_s, unwell_after_s; /**< What lasts for so long is told; 0: never. */
};

/** Options of one camera. */
struct weir_camera {
    char *name;
    char *address; /**< An URL, or a path on the node. */
    char *password;
    int64_t rotate; /**< Degrees, clockwise. */
    const json_t *region, *masks;
};

/** Where and how a frame is cut: coordinates are shares of the frame as the camera sends it, before it is rotated. */
struct weir_camera_shape {
    int rotate;
    double region[4]; /**< x, y, width, height. */
    size_t n_masks;

    struct {
        size_t n;
        double points[WEIR_CAMERA_MASK_POINTS_MAX][2];
    } masks[WEIR_CAMERA_MASKS_MAX];
};

struct weir_camera_host {
    char user[WEIR_CAMERA_USER_BYTES]; /**< "": none. */
    char host[WEIR_CAMERA_HOST_BYTES]; /**< Without the brackets of IPv6. */
    int port;
    const char *path; /**< In the address, from its "/"; "": none. */
};

/** What stands in an object of `cameras`, of the kind's table (weir_endpoint_ops.item).
 *  @param where  Where the object lies. @return INVALID with the place. */
weir_status weir_camera_read(const struct weir_kind *item, const json_t *object, const char *where,
                             struct weir_arena *arena, const struct weir_camera **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Region, masks and rotation of a camera. @return INVALID with the place below `where`. */
weir_status weir_camera_shape_read(const struct weir_camera *camera, const char *where,
                                   struct weir_camera_shape *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take SCHEME://[USER@]HOST[:PORT][/PATH] apart; "%40" in the user is "@". A password in it is refused: the document is shown to many.
 * @param scheme  "rtsp": the only one that is taken. @param port  Where the address has none.
 * @return INVALID, UNSUPPORTED (rtsps, https) with a sentence that does not repeat the address.
 */
weir_status weir_camera_host_read(const char *address, const char *scheme, int port,
                                  struct weir_camera_host *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * An address must not have a password among the parameters behind its "?". For documents that are applied: one that is stored
 * is read as it is. @return INVALID with a sentence that does not repeat it.
 */
weir_status weir_camera_query_check(const char *address, struct weir_error *err) WEIR_MUST_CHECK;

/** For weir_endpoint_ops.check of the kinds: each camera can be read, and no name stands twice.
 *  @param scheme  Of its addresses; NULL: they are paths. */
weir_status weir_cameras_check(const struct weir_source_video *options,
                               const struct weir_kind *item, const char *scheme,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Rows of every kind's table, and of every camera's. */
#define WEIR_SOURCE_VIDEO_OPTIONS                                                                  \
    WEIR_OPT_JSON(weir_source_video, cameras, "cameras", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0,   \
                  "The cameras: a list of {name, address, …}"),                                    \
        WEIR_OPT_JSON(weir_source_video, fps, "fps", F64, 0, "10", 0, WEIR_CAMERA_FPS_MAX,         \
                      "Frames a second of each camera; 0: as many as it sends"),                   \
        WEIR_OPT_JSON(weir_source_video, max_pixels, "max-pixels", INT, 0, "8847360", 1024,        \
                      67108864, "A camera whose frames are larger is refused"),                    \
        WEIR_OPT_JSON(weir_source_video, motion, "motion", F64, 0, "0", 0, 1,                      \
                      "Share of the picture that must change; frames in which less does come "     \
                      "once a second; 0: all frames come"),                                        \
        WEIR_OPT_JSON(weir_source_video, lost_after_s, "lost-after-s", INT, 0, "30", 0, 86400,     \
                      "A camera that gives no picture for so long raises the alert camera_lost; "  \
                      "0: none does"),                                                             \
        WEIR_OPT_JSON(weir_source_video, unwell_after_s, "unwell-after-s", INT, 0, "60", 0, 86400, \
                      "A camera whose pictures are dark, dazzled, frozen, covered, blurred or "    \
                      "moved, or whose clock is wrong, for so long raises camera_unwell; 0: none " \
                      "does")

#define WEIR_CAMERA_OPTIONS                                                                        \
    WEIR_OPT_JSON(weir_camera, name, "name", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,               \
                  "What decisions call the camera"),                                               \
        WEIR_OPT_JSON(weir_camera, rotate, "rotate", INT, 0, "0", 0, 270,                          \
                      "Turn its frames clockwise: 0, 90, 180 or 270 degrees"),                     \
        WEIR_OPT_JSON(weir_camera, region, "region", JSON, 0, NULL, 0, 0,                          \
                      "Part of the frame that is looked at: [x, y, width, height], each a "        \
                      "share of the frame as the camera sends it"),                                \
        WEIR_OPT_JSON(weir_camera, masks, "masks", JSON, 0, NULL, 0, 0,                            \
                      "What is made black before anything looks at it: a list of polygons "        \
                      "[[x, y], …], in shares as of region")

/** Kinds with addresses of the network have these, too. */
#define WEIR_SOURCE_VIDEO_PASSWORD                                                                 \
    WEIR_OPT_JSON(weir_source_video, password, "password", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,   \
                  "Password of every camera that has none of its own")
#define WEIR_CAMERA_PASSWORD                                                                       \
    WEIR_OPT_JSON(weir_camera, password, "password", TEXT, WEIR_OPTION_SECRET, NULL, 0, 0,         \
                  "Password of the user that the address names")

#endif
