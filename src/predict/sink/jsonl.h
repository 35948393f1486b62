/**
 * JSON lines sink: one line per decision in a file that others read.
 *
 * Each decision is there once, also across kills: the sink's place in the outbox is saved at most
 * once a second together with the file's length; after a restart the lines behind that length are
 * read, and a decision whose identifier is there already is not written again. Several replicas may
 * write one file: lines are appended under a lock on it, and whoever finds the last line without
 * its end (a kill in the middle of a write) cuts it off; its writer writes it again.
 *
 * The file has a bound (rotated_file.h): what it held becomes PATH.1, PATH.2 …, and the oldest
 * goes.
 *
 * While the file cannot be written the sink waits and tries again; decisions stay in the outbox.
 */
#ifndef WEIR_PREDICT_SINK_JSONL_H
#define WEIR_PREDICT_SINK_JSONL_H

#include "predict/outbox.h"
#include "predict/rotated_file.h"

struct sink_jsonl;

weir_status sink_jsonl_start(const struct rotated_file *file, struct outbox *outbox,
                             struct sink_jsonl **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Writes what is durable (if the file can be written at once) and stops. NULL is accepted. */
void sink_jsonl_stop(struct sink_jsonl *sink);

#endif
