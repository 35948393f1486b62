/**
 * Outcome: what was decided about a frame: one decision, or one for each that a detector found in it.
 *
 * The latter have the frame's key and "/0", "/1" …; each says how many there are ("box": {"of"}).
 */
#ifndef WEIR_PREDICT_OUTCOME_H
#define WEIR_PREDICT_OUTCOME_H

#include "predict/intake.h"
#include "predict/outbox.h"

/** The key of the i-th decision about a frame. Returns out. */
const char *frame_part_key(const struct frame *frame, size_t i, char out[FRAME_KEY_BYTES]);

/** The durable decision of this key about one of what a detector found, or about a passage; a new reference or NULL. Any thread. */
json_t *outcome_find_part(struct outbox *outbox, const char *key);

/** The decision, or {"camera", "decisions": […]}, once all are durable; a new reference. NULL: not yet, or not any more. Any
 *  thread. */
json_t *outcome_find(struct outbox *outbox, const struct frame *frame);

#endif
