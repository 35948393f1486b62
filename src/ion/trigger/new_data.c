#include "ion/trigger.h"

#include <inttypes.h>

struct trigger_new_data {
    struct weir_trigger_common common;
    int64_t files, bytes, rows;
};

/** "3 of 100 files"; NULL: that is not asked for. */
static const char *progress(struct weir_arena *arena, int64_t grown, int64_t wanted,
                            const char *what)
{
    return wanted > 0
               ? weir_arena_printf(arena, "%" PRId64 " of %" PRId64 " new %s", grown, wanted, what)
               : NULL;
}

static struct weir_trigger_verdict decide(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena)
{
    const struct trigger_new_data *wanted = options;
    int64_t files = inputs->n_files - inputs->used_files;
    int64_t bytes = inputs->n_bytes - inputs->used_bytes;
    int64_t rows = inputs->n_rows - inputs->used_rows;
    bool is_any = wanted->files == 0 && wanted->bytes == 0 && wanted->rows == 0;
    bool has_files = wanted->files > 0 && files >= wanted->files;
    bool has_bytes = wanted->bytes > 0 && bytes >= wanted->bytes;
    bool has_rows = wanted->rows > 0 && rows >= wanted->rows;
    const char *why = has_files           ? progress(arena, files, wanted->files, "files")
                      : has_bytes         ? progress(arena, bytes, wanted->bytes, "bytes")
                      : has_rows          ? progress(arena, rows, wanted->rows, "rows")
                      : is_any            ? NULL
                      : wanted->files > 0 ? progress(arena, files, wanted->files, "files")
                      : wanted->bytes > 0 ? progress(arena, bytes, wanted->bytes, "bytes")
                                          : progress(arena, rows, wanted->rows, "rows");
    const char *dataset = inputs->dataset != NULL ? inputs->dataset : "its dataset";
    if (inputs->version <= inputs->used_version) {
        return (struct weir_trigger_verdict){
            false, weir_arena_printf(arena, "%s has no new version", dataset), INT64_MAX};
    }
    const char *reason =
        weir_arena_printf(arena, "%s version %" PRId64 "%s%s", dataset, inputs->version,
                          why != NULL ? ": " : "", why != NULL ? why : "");
    return (struct weir_trigger_verdict){is_any || has_files || has_bytes || has_rows, reason,
                                         INT64_MAX};
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(trigger_new_data, files, "files", INT, 0, "0", 0, 1e15,
                  "So many files more than the last run began with"),
    WEIR_OPT_JSON(trigger_new_data, bytes, "bytes", INT, 0, "0", 0, 1e18, "So many bytes more"),
    WEIR_OPT_JSON(trigger_new_data, rows, "rows", INT, 0, "0", 0, 1e18,
                  "So many rows more, of .csv, .tsv and .jsonl files"),
    WEIR_TRIGGER_LEAST(trigger_new_data, "0"),
};

static const struct weir_trigger_ops ops = {.sees = WEIR_TRIGGER_SEES_OWN, .decide = decide};

const struct weir_kind weir_trigger_kind_new_data = {
    .name = "new-data",
    .doc = "The pipeline's dataset has a new version that has grown, since the one that the last "
           "run began with, by one of files, bytes and rows; without those, any new version.",
    WEIR_KIND_OPTIONS(trigger_new_data, options_of),
    .ops = &ops,
};
