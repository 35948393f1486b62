/**
 * Cameras, of several kinds: one writes frames into a folder, one sends them to the replica, one streams people who walk by. A kind says what a camera does at each tick
 * of its clock; the thread, the clock and the ledger are the same for all.
 */
#ifndef WEIR_DEMO_CAMERAS_H
#define WEIR_DEMO_CAMERAS_H

#include "base/rng.h"
#include "data/image.h"
#include "demo/demo.h"

#define CAMERA_PHOTO_MAX_BYTES ((size_t)1 << 20)

struct camera {
    struct demo *demo;
    size_t index;
    char name[32];
    uint8_t *photo; /**< Room for CAMERA_PHOTO_MAX_BYTES. */
    struct weir_rng rng;
    char folder[4096];     /**< Where it writes frames. */
    struct sender *sender; /**< By which it sends them; NULL: it does not. */

    struct walk {
        struct weir_image wall,
            photo; /**< The picture without a person; the photo of the person in it. */
        struct weir_buf jpeg;
        const struct demo_person *person; /**< The person who is there, or was. */
        int64_t i_step, n_steps, n_all; /**< Ticks of the passage; and with the pause behind it. */
        int64_t n_passages;
    } walk;
};

struct camera_kind {
    weir_status (*start)(struct camera *camera, struct weir_error *err); /**< Before its thread. */
    weir_status (*tick)(struct camera *camera, int64_t i_tick, struct weir_error *err);
    /** It goes on to the end of what it does. NULL: never. */
    bool (*is_busy)(const struct camera *camera);
    void (*end)(struct camera *camera); /**< NULL: there is nothing to end. */
};

extern const struct camera_kind camera_of_folder, camera_of_requests, camera_of_stream;

/** A line of the ledger, before what it tells of can be seen: a "frame" or a "passage". Without a ledger nothing happens. */
weir_status camera_note(const struct camera *camera, const char *kind, int64_t number,
                        const struct demo_person *person, bool is_damaged,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Someone comes by: the frame of a tick in camera->photo, noted in the ledger; now and then one that is cut off. */
weir_status camera_frame(struct camera *camera, int64_t i_tick, int64_t *out_number,
                         size_t *out_len, struct weir_error *err) WEIR_MUST_CHECK;

/** Anybody but `other`; NULL: anybody. */
const struct demo_person *camera_draw(struct camera *camera, const struct demo_person *other);

/** A photo into camera->photo, none of those that are enrolled. */
weir_status camera_photo(struct camera *camera, const struct demo_person *person, size_t *out_len,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
