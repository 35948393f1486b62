/**
 * Places: where this node has the folders that a task's definition names in the server's state folder.
 *
 * A node that sees that folder, by the same path, on this machine or on a disk that both share, uses it: it finds the
 * folder's identity in it (base/folder_id.h). Any other node has folders of its own, below AGENT/state, and every
 * path of the definition that leads into the state folder leads there instead. Datasets of which
 * the server has a list of files are fetched; one outside of the state folder that the node has under its path is used as
 * it is. What others need of them goes over
 * the server (agent/supervise/carry.h: checkpoints); the rest stays on the node.
 */
#ifndef WEIR_AGENT_PLACES_H
#define WEIR_AGENT_PLACES_H

#include "agent/task.h"
#include "base/arena.h"
#include "base/json.h"

struct place {
    const char *from, *to; /**< Whole paths. */
};

/** Text lies in the arena. */
struct places {
    const char *server_dir; /**< The state folder, as the server calls it; NULL: not said. */
    const char *own_dir;    /**< AGENT/state; NULL: this node sees the server's. */
    struct place *fetched;  /**< Datasets, which lie elsewhere (prepare_datasets.h). */
    size_t n_fetched;
};

/** @param dir  The attempt's folder, AGENT/tasks/KEY. The definition of an older server says no identity: then the
 *              folder is taken for the server's. */
void places_find(const char *dir, const json_t *document, struct weir_arena *arena,
                 struct places *out);

/** A path of the definition, as it is on this node; also behind "file://". Itself, if it leads elsewhere. */
const char *places_map(const struct places *places, const char *path, struct weir_arena *arena);

/** The job's folder of checkpoints on a node with folders of its own; NULL: the node sees the server's, or the
 *  task has none there. */
const char *places_checkpoint(const struct places *places, const json_t *document,
                              const struct task *task, struct weir_arena *arena);

#endif
