#include "endpoint/sink/jsonl.h"

#include "endpoint/endpoint.h"

/* The defaults are a gigabyte in all. */
static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_sink_jsonl, path, "path", TEXT,
                  WEIR_OPTION_REQUIRED | WEIR_OPTION_PATH | WEIR_OPTION_WRITTEN, NULL, 0, 0,
                  "File on the node that lines are appended to"),
    WEIR_OPT_JSON(weir_sink_jsonl, max_mb, "max-mb", INT, 0, "128", 1, 1000000,
                  "Size in MB at which a new file is begun and this one becomes PATH.1"),
    WEIR_OPT_JSON(weir_sink_jsonl, keep, "keep", INT, 0, "7", 0, 10000,
                  "Older files that are kept; the oldest goes"),
};

const struct weir_kind weir_sink_jsonl_kind = {
    .name = "jsonl",
    .doc = "A file with a line of JSON per decision, each exactly once. While the file cannot be "
           "written, decisions wait in the replica's outbox.",
    WEIR_KIND_OPTIONS(weir_sink_jsonl, options),
};
