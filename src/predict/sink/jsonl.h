/** The sink "jsonl" (predict/sink.h), for its test: with a bound in bytes. */
#ifndef WEIR_PREDICT_SINK_JSONL_H
#define WEIR_PREDICT_SINK_JSONL_H

#include "base/rotated_file.h"
#include "predict/sink.h"

/** As sink_jsonl.open of these; the file is copied. */
weir_status sink_jsonl_open(const struct rotated_file *file, struct outbox_reader *reader,
                            struct sink **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
