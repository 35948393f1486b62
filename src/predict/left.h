/**
 * Left: decisions that replicas of jobs that are over could not hand in.
 *
 * A replica that starts is told the folders of those before it, of the same pipeline, which may lie on its machine
 * or on another. Each that is there and that nobody else has open is opened as its outbox was, and a shipper of its own brings what is there to the server,
 * which stores each decision once. It stays open as long as the replica lives; the server's retention takes the folder away.
 */
#ifndef WEIR_PREDICT_LEFT_H
#define WEIR_PREDICT_LEFT_H

#include "predict/spec.h"

struct left;

/** Never fails: what cannot be opened is logged, and left. The spec is borrowed, and names a server. */
struct left *left_start(const struct predict_spec *spec);

/** Ship what is there for at most grace_ms each. NULL is accepted. */
void left_stop(struct left *left, int64_t grace_ms);

#endif
