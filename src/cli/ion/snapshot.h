/** The file of a snapshot, which `weir simulate --snapshot` and `weir what-if` ask about. */
#ifndef WEIR_CLI_SNAPSHOT_H
#define WEIR_CLI_SNAPSHOT_H

#include "base/arena.h"
#include "base/json.h"
#include "sched/sched.h"

struct cli_snapshot {
    struct weir_sched_snapshot is;
    struct weir_arena arena; /**< Holds its arrays. */
    json_t *document;        /**< Holds its texts. */
};

/** @return What is wrong, with the file's name; there is nothing to close then. */
weir_status cli_snapshot_open(const char *path, struct cli_snapshot *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

void cli_snapshot_close(struct cli_snapshot *snapshot);

#endif
