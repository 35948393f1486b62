/**
 * Intake: frames between sources and engine, bounded, each frame once.
 *
 * A frame is *queued*, then *in hand* (being decided, or decided and not yet durable), then done. A
 * second frame with the same key is refused while the first is in either state. Until the intake is
 * opened (a model is there) nothing is accepted.
 *
 * A frame that was taken is *at work* until the engine has finished it (intake_over). A live camera has one frame at work at a time, so
 * the engine tells what it has shown before the next one is taken.
 *
 * The engine has few frames at a time, so cameras take turns by the time that their frames cost it (intake_over): the next frame is of
 * the camera that has had the least. A camera with 30 faces a frame has what others leave; one that needs less than its
 * share waits for the frames at work, and little more. Frames of one camera keep their order.
 *
 * The newest frame of a live camera wins: FRAME_LIVE_QUEUED of its frames wait, and a further one takes the place of the oldest. While the
 * camera has a passage that is not decided, FRAME_UNDECIDED_QUEUED wait. The oldest gives way when it is more than
 * FRAME_UNDECIDED_MS older than the new one, else the frame without which the gap around it is shortest: what is seen of somebody
 * grows thinner, and has no hole.
 *
 * The key names a frame for ever. Of a source that numbers the frames of a camera it follows from these two.
 * Another source gives a text, which the thing that it passes on has for good (a message's topic, partition
 * and offset), and a number if there is one.
 */
#ifndef WEIR_PREDICT_INTAKE_H
#define WEIR_PREDICT_INTAKE_H

#include "base/status.h"
#include "vision/view.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_CAMERA_BYTES 64
#define FRAME_KEY_BYTES    129
#define FRAME_MAX_BYTES    ((size_t)16 << 20)
#define FRAME_LIVE_QUEUED  2
/** A camera's program has slots for these, one in hand, and two to write (camera_source.c). */
#define FRAME_UNDECIDED_QUEUED 5
#define FRAME_UNDECIDED_MS     1000
#define INTAKE_SILENT_MS       200
#define INTAKE_CAMERAS_MAX     1024 /**< With more, the one told of longest ago is forgotten. */
#define INTAKE_AT_WORK_MAX     8    /**< With so many none is taken. */

struct frame {
    char camera[FRAME_CAMERA_BYTES]; /**< UTF-8, 1 to 63 bytes, no "/", not starting with ".". */
    int64_t number; /**< ≥ 0; below: it has none, and this follows from the key. */
    char key[FRAME_KEY_BYTES];
    bool is_keyed;  /**< The source has given the key. */
    uint8_t *bytes; /**< The picture as it came; the frame owns it. May be NULL. */
    size_t n_bytes;
    /** Pixels of a source that decodes itself; form NONE: the bytes are the picture. */
    struct weir_view view;
    /** Gives the view's memory back, before the frame is freed. NULL: there is nothing to give. Any thread. */
    void (*release)(struct frame *frame);
    char *path;          /**< Of a directory's file; the frame owns it. */
    char *damage;        /**< Why there are no usable bytes, or NULL; the frame owns it. */
    int64_t received_ms; /**< Wall clock when the last byte was there. */
    uint64_t received_ns;
    /** By this what moves is followed: of a file that is played fast, the file's clock. 0: as received_ms. */
    int64_t taken_ms;
    /** The decision is durable: tell whoever waits. On the outbox's thread. */
    void (*on_durable)(void *context, const struct frame *frame);
    void *context;
    atomic_size_t n_open; /**< Decisions about it that are not durable yet. */
    bool is_undecided;    /**< It is over, and nothing was to be decided. */
    bool is_live;         /**< A newer frame of its camera may take its place (intake_put). */
    bool is_dropped;      /**< One did: release sees it. */
    struct frame *next;   /**< Intake's. */
};

static inline int64_t frame_taken_ms(const struct frame *frame)
{
    return frame->taken_ms != 0 ? frame->taken_ms : frame->received_ms;
}

/** Is this a usable camera name? */
bool frame_camera_is_valid(const char *camera);

/** Can a source give this key: UTF-8, 1 to 128 bytes, no control characters? */
bool frame_key_is_valid(const char *key);

/** The key that follows from camera and number. No source can give it. Returns out. */
const char *frame_key_of(const char *camera, int64_t number, char out[FRAME_KEY_BYTES]);

/** New frame of a valid camera; everything else is zero. */
struct frame *frame_create(const char *camera, int64_t number);

/** The same with a valid key. @param number  Below 0: there is none. */
struct frame *frame_create_keyed(const char *camera, const char *key, int64_t number);
void frame_destroy(struct frame *frame);

/** Give its bytes and its view's memory back, before it is destroyed. */
void frame_drop_pixels(struct frame *frame);

struct intake;

struct intake_limits {
    size_t max_queued;  /**< Frames not yet taken. */
    size_t max_in_hand; /**< Frames taken but not durable. */
    size_t max_bytes;   /**< Of queued frames together (a first frame always fits). */
};

struct intake *intake_create(const struct intake_limits *limits);
void intake_destroy(struct intake *intake);

/** Accept frames from now on. */
void intake_open(struct intake *intake);

/** Accept no more; waits end; intake_take gives what is queued, then NULL. If frames in hand do not
 *  become durable within a second, what is queued is left: its source still has it. */
void intake_close(struct intake *intake);

/**
 * Queue a frame, waiting up to wait_ms (−1: for ever) for room and for the opening. A live frame takes the place of one of its
 * camera where enough of it are queued (above), or where the intake is full. What is in hand stays.
 * @return WEIR_OK: the frame belongs to the intake. Else it stays the caller's: EXISTS (the same
 *         frame is queued or in hand), UNAVAILABLE (full, or not open yet), CANCELLED (closed).
 */
weir_status intake_put(struct intake *intake, struct frame *frame, int64_t wait_ms) WEIR_MUST_CHECK;

/**
 * The next frame, which is at work then; waits while max_in_hand are out. Does what intake_run asks for, once before a frame that waits
 * at most. For one thread at a time.
 * @param wait_ms  For how long at most while nothing is queued; −1: for ever. What is at work is waited for in any case.
 * @return WEIR_OK; TIMEOUT: nothing is queued or at work; CANCELLED: closed and empty.
 */
weir_status intake_take(struct intake *intake, int64_t wait_ms, struct frame **out) WEIR_MUST_CHECK;

/** Has the camera a passage now that is not decided? */
void intake_tell(struct intake *intake, const char *camera, bool is_undecided);

/** A frame of the camera is not at work any more, and has cost the engine so much. */
void intake_over(struct intake *intake, const char *camera, uint64_t spent_ns);

/** A camera as the engine is with it. */
struct intake_camera {
    size_t n_queued;
    bool is_at_work, is_undecided;
    uint64_t n_dropped;           /**< Live frames that gave their place to a newer one. */
    uint64_t n_dropped_undecided; /**< While a passage of the camera was not decided. */
    int64_t age_us; /**< How old its last frame was when the engine took it; -1: it took none. */
};

/** Is a camera silent that the engine has had no frame of for so long: as long as INTAKE_SILENT_MS, and none waits or is at work? */
bool intake_is_silent(struct intake *intake, const char *camera, int64_t since_ms);

/** A camera without a frame so far has 0 everywhere. */
void intake_camera(struct intake *intake, const char *camera, struct intake_camera *out);

/**
 * Have something done by the thread that takes frames, while none is at work, and wait until it is. It is not a frame: it is
 * neither queued nor counted.
 * @return CANCELLED: the intake was closed before it began.
 */
weir_status intake_run(struct intake *intake, void (*fn)(void *context),
                       void *context) WEIR_MUST_CHECK;

/** A taken frame is durable: calls on_durable, then forgets and frees the frame. */
void intake_done(struct intake *intake, struct frame *frame);

struct intake_counts {
    size_t n_queued, n_in_hand;
    uint64_t n_accepted;
    uint64_t n_dropped; /**< Live frames that gave their place to a newer one. */
    bool is_open;
    int64_t last_ms; /**< When the last accepted frame was received; 0: none was. */
};

void intake_counts(struct intake *intake, struct intake_counts *out);

#endif
