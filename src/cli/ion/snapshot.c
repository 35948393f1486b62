#include "cli/ion/snapshot.h"

#include "sched/snapshot_json.h"

#define FILE_BYTES_MAX  ((size_t)1 << 30)
#define ARENA_BYTES_MAX ((size_t)8 << 30)

weir_status cli_snapshot_open(const char *path, struct cli_snapshot *out, struct weir_error *err)
{
    WEIR_TRY(weir_json_load(path, FILE_BYTES_MAX, &out->document, err));
    weir_arena_init(&out->arena, ARENA_BYTES_MAX);
    weir_status status = weir_sched_snapshot_from_json(out->document, &out->arena, &out->is, err);
    if (status != WEIR_OK) {
        (void)weir_error_prefix(err, "%s: ", path);
        cli_snapshot_close(out);
    }
    return status;
}

void cli_snapshot_close(struct cli_snapshot *snapshot)
{
    weir_arena_fini(&snapshot->arena);
    json_decref(snapshot->document);
}
