/**
 * The nodes in the order of what a task there would cost in fragmentation (fgd.h). Each shape that
 * is asked for has an index, which is brought up to date when it is asked again, by the nodes that
 * changed since.
 *
 * The mix is every task of the snapshot that runs or waits, by shape. States are those of the
 * future, when what leaves has left. Weights follow scarcity. They are made again when commits have
 * changed the room of the cluster by an eighth. What is only tried out does not count: so
 * placements do not depend on how many others were looked at.
 */
#ifndef WEIR_SCHED_FGD_INDEX_H
#define WEIR_SCHED_FGD_INDEX_H

#include "sched/place/fits.h"

struct fgd_index;

/**
 * Make an index of all nodes.
 * @param cluster  Borrowed. It tells of its changes by fgd_index_note.
 * @return NOMEM.
 *
 * Cost: nodes times distinct sets of selector and tolerations; memory linear in nodes, devices and
 * shapes. An index of a shape takes 24 bytes per node. Indices not asked for the longest are given
 * up when all would take more than 64 MiB.
 */
weir_status fgd_index_create(struct cluster *cluster, struct fgd_index **out) WEIR_MUST_CHECK;

/** NULL is accepted. */
void fgd_index_destroy(struct fgd_index *index);

/** A node's counters have changed. O(devices). */
void fgd_index_note(struct fgd_index *index, int32_t node);

/** So many changes of tasks were committed. Cost: nodes times shapes if weights are made again. */
void fgd_index_commit(struct fgd_index *index, size_t n_changes);

/** What the task on the node would cost; smaller is better. INT64_MAX if it does not fit. */
int64_t fgd_index_cost(struct fgd_index *index, int32_t task, int32_t node);

/**
 * Find the best assignment that is free at least at `when`, with the best device. false: there is
 * none.
 */
bool fgd_index_find(struct fgd_index *index, int32_t task, enum fits_when when,
                    struct assignment *assignment);

/**
 * On the assignment's node, choose the device that costs least, unless something else speaks
 * against it.
 */
void fgd_index_choose(struct fgd_index *index, int32_t task, struct assignment *assignment);

#endif
