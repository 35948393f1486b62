/**
 * Slots: frames in memory that a process shares with its weir-camera, the parent's side.
 *
 * Each slot has room for one frame. It is weir-camera's to write into, or held here. A frame that is held stays as it is, whatever
 * weir-camera does: it is told of a free slot only when the hold ends. What was held when weir-camera died goes to the next one
 * afterwards. Memory is used as far as frames are large.
 *
 * The slots live until the last reference and the last hold are gone, so that a frame may outlive its camera. Any thread.
 */
#ifndef WEIR_VIDEO_SLOTS_H
#define WEIR_VIDEO_SLOTS_H

#include "video/wire.h"
#include "vision/view.h"

struct weir_video_slots;

/** @param slot_bytes  weir_video_frame_bytes of the largest frame. @return NOMEM, LIMIT or IO. */
weir_status weir_video_slots_create(size_t n_slots, size_t slot_bytes,
                                    struct weir_video_slots **out,
                                    struct weir_error *err) WEIR_MUST_CHECK;
void weir_video_slots_unref(struct weir_video_slots *slots);

/** The memory, for weir-camera: it can neither shrink nor grow. Borrowed. */
int weir_video_slots_fd(const struct weir_video_slots *slots);

/** From now on free slots are told to this socket, first those that are free now; -1: to nobody. */
void weir_video_slots_attach(struct weir_video_slots *slots, int socket);

/**
 * A frame has come: hold its slot, and see its pixels. The hold is a reference.
 * @return CORRUPT: there is no such slot, it is held already, or the frame does not fit.
 */
weir_status weir_video_slots_hold(struct weir_video_slots *slots, uint32_t slot,
                                  const struct weir_video_frame *frame,
                                  struct weir_view *out_view) WEIR_MUST_CHECK;

/** The slot is free again. Once for each hold. */
void weir_video_slots_free(struct weir_video_slots *slots, uint32_t slot);

/** Slots that are held now. */
size_t weir_video_slots_n_held(struct weir_video_slots *slots);

/** The view of a frame in memory at `bytes`, as a slot has it. Pure. */
struct weir_view weir_video_view(const uint8_t *bytes, const struct weir_video_frame *frame);

#endif
