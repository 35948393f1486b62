/**
 * Jobs are shown to the people of a cluster (ops->show of cluster/driver.h), and one that a person there deletes is cancelled, as by
 * the actor "cluster/NAME".
 */
#ifndef WEIR_CONTROL_SUPPLY_SHOW_H
#define WEIR_CONTROL_SUPPLY_SHOW_H

#include "control/supplier.h"

#define SUPPLY_SHOWN_MAX 1000 /**< Jobs of one cluster that are shown; of more the oldest. */

/** A link that goes on. Borrowed. */
struct supply_show {
    const struct supplier_config *config;
    const char *cluster;
    const struct weir_driver_ops *ops;
    struct weir_driver_link *link;
    int64_t now_ms;
    struct weir_arena *arena;
};

/** Do both, if the cluster has a place for it. What fails is logged: nothing else of a cluster hangs on it. */
void supply_show(const struct supply_show *show);

#endif
