/**
 * Refused decisions: what the server, or a sink, will never take, set aside on the replica's disk.
 *
 *     DIR/refused.jsonl, refused.jsonl.1 … refused.jsonl.3
 *
 * A line holds one decision, without its picture, and "refused": why. A file holds
 * REFUSED_MAX_BYTES and three older ones stay; when the oldest goes, a line of the log says so.
 * Their number is reported with every heartbeat, so that the server raises an alert; it is 0 again
 * once a person has taken the files away.
 */
#ifndef WEIR_PREDICT_REFUSED_H
#define WEIR_PREDICT_REFUSED_H

#include "base/json.h"
#include "base/status.h"

#include <stdint.h>

#define REFUSED_MAX_BYTES ((int64_t)16 << 20)
#define REFUSED_KEPT      3

struct refused;

/** Counts what an earlier process has set aside in `dir`. Never fails: unreadable files count 0. */
struct refused *refused_open(const char *dir);

/** NULL is accepted. */
void refused_close(struct refused *refused);

/** Set a decision aside, durably. Any thread. On error it is not kept: try again. */
weir_status refused_put(struct refused *refused, const json_t *decision, const char *reason,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** How many lie in the files. NULL: 0. Any thread. */
int64_t refused_count(struct refused *refused);

#endif
