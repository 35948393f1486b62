/**
 * The domains in which a sub-group that asks for domains of nodes could lie: the order in which to
 * try them, and the nodes that are preferred inside.
 */
#ifndef WEIR_SCHED_DOMAINS_H
#define WEIR_SCHED_DOMAINS_H

#include "sched/place/place.h"

/** One domain: a span of the topology's nodes. */
struct domain {
    int32_t first, n;
    int32_t level;    /**< DOMAIN_ROOT: all that have a place in the topology. */
    int32_t path;     /**< Place in the order of paths: the last tie-break. */
    int32_t turn;     /**< Place of the domain around it in the order of preference. */
    int64_t fullness; /**< Greater ones are tried first. */
    bool is_tried;    /**< Whether the group may fit, as far as sums tell. */
};

#define DOMAIN_ROOT (-1)

struct domains {
    struct domain *list; /**< In the order in which to try them. */
    int32_t n;
    int32_t *ranks; /**< Per node: smaller ones are preferred; NULL: the group prefers none. */
};

/**
 * Find the domains for a group's tasks: those of the preferred level first, then wider ones up to
 * the required level or, without one, to the whole topology. Of each level the fullest come first,
 * those of one wider domain together. A domain is left out only if it certainly has no room: where
 * the tasks are alike, its nodes are too small for so many.
 *
 * @param tasks  Those of the group that are to be placed, at least one.
 * @param out    The caller frees it with domains_free.
 * @return NOMEM.
 *
 * Cost: nodes of the topology times its levels.
 */
weir_status domains_find(const struct placer *placer, int32_t group, const int32_t *tasks,
                         int32_t n_tasks, struct domains *out) WEIR_MUST_CHECK;
void domains_free(struct domains *domains);

#endif
