/** The sink "jsonl" (predict/sink.h), for its test: with a bound in bytes. */
#ifndef WEIR_PREDICT_SINK_JSONL_H
#define WEIR_PREDICT_SINK_JSONL_H

#include "base/rotated_file.h"
#include "predict/sink.h"

/** The file is copied, the outbox borrowed. To be stopped by sink_jsonl.stop. */
weir_status sink_jsonl_start(const struct rotated_file *file, struct outbox *outbox,
                             struct sink **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
