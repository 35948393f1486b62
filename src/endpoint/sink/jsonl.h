/** Options of the sink "jsonl". */
#ifndef WEIR_ENDPOINT_SINK_JSONL_H
#define WEIR_ENDPOINT_SINK_JSONL_H

#include <stdint.h>

struct weir_sink_jsonl {
    char *path;
    int64_t max_mb; /**< Millions of bytes. */
    int64_t keep;   /**< Older files beside the newest. */
};

#endif
