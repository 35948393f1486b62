/**
 * Reservations: whole nodes kept for the jobs of a project, or of a queue and those below it, from one
 * time until another.
 *
 * A person names the nodes, or says how many GPUs or CPUs they must have together; then the fewest
 * nodes that have them are chosen, once, when the reservation is made. In its span nothing else starts
 * there, and before it only what is known to end in time, by its time limit or by what such jobs took.
 * What runs there when it is made goes on. When it is over or deleted the nodes are everybody's again.
 *
 * A reservation gives room and no share: the holder's jobs count against the guarantees and limits of
 * its queues as anywhere, and may run on other nodes too. What is reserved and idle is nobody's use,
 * and counts for no quota.
 *
 *     struct weir_reservation reservation = {.name = "course", .project = "school", .gpus = 8, …};
 *     WEIR_TRY(weir_reservation_make(txn, &reservation, now_ms, arena, err));
 */
#ifndef WEIR_JOB_RESERVATION_H
#define WEIR_JOB_RESERVATION_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_RESERVATIONS_MAX      1000 /**< That are not over. */
#define WEIR_RESERVATION_NODES_MAX 4096
#define WEIR_RESERVATION_AHEAD_MS  ((int64_t)366 * 24 * 3600 * 1000) /**< It ends no later. */
#define WEIR_RESERVATION_KEPT_MS   ((int64_t)30 * 24 * 3600 * 1000)  /**< After it is over. */

extern const struct weir_resource weir_reservation_resource;

struct weir_reservation {
    char *name;
    char *project; /**< NULL: a queue holds it. */
    char *queue;   /**< NULL: a project does. */
    char *nodes;   /**< JSON list of their names. */
    int64_t gpus;  /**< What was asked for: the nodes have so many together; 0: nodes were named. */
    int64_t cpus;
    int64_t from_ms, until_ms;
    char *created_by; /**< NULL: unknown. */
    int64_t created_ms;
};

/**
 * Make a reservation. In a write transaction. Those that were over for WEIR_RESERVATION_KEPT_MS are
 * removed.
 *
 * @param reservation  In: all but created_ms; from_ms 0 or past is now. Out: as it was written, with
 *                     the nodes that were chosen, in the arena.
 * @return INVALID: no holder, no nodes or a span that is none; NOT_FOUND: there is no such node, project or
 *         queue; CONFLICT: the name is taken, or others have one of the nodes then, or all nodes that nobody
 *         has then do not have so much; LIMIT.
 */
weir_status weir_reservation_make(struct weir_txn *txn, struct weir_reservation *reservation,
                                  int64_t now_ms, struct weir_arena *arena,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Those that are not over at now_ms, by name. */
weir_status weir_reservation_list(struct weir_txn *txn, int64_t now_ms, struct weir_arena *arena,
                                  struct weir_reservation **out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
