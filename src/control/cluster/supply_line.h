/**
 * Supply line: what is between the server and one cluster. A look asks it all that is to be known and done now
 * (control/supplier.h), and writes what came of it. Owned by one thread.
 */
#ifndef WEIR_CONTROL_SUPPLY_LINE_H
#define WEIR_CONTROL_SUPPLY_LINE_H

#include "control/supplier.h"

#define SUPPLY_CHECK_MS      60000 /**< From one check of the configuration to the next. */
#define SUPPLY_CHECK_SOON_MS 5000  /**< The same while something lacks. */
#define SUPPLY_ASKS_MAX      32 /**< Allocations that one look asks for; others wait for the next. */
#define SUPPLY_QUEUE         "default" /**< The queue for what names none. */
#define SUPPLY_JOIN_MS                                                                             \
    ((int64_t)90 * 24 * 3600 * 1000) /**< So long nodes may join from the asking on. */

struct supply_line {
    const struct supplier_config *config;
    char cluster[64];
    const struct weir_driver_ops *ops; /**< The link's; NULL: nothing has been asked yet. */
    struct weir_driver_link link;      /**< Its options are those of the look that goes on. */
    uint64_t linked;                   /**< Hash of the options that it was made with. */
    int64_t check_due_ms;              /**< Monotonic. */
    uint64_t checked;                  /**< Hash of the options that were checked last. */
};

/** @return NOT_FOUND: there is no such cluster any more; the store's errors. What the cluster answers is no error. */
weir_status supply_line_look(struct supply_line *line, struct weir_error *err) WEIR_MUST_CHECK;

/** There will be no more looks: what its driver keeps is ended. */
void supply_line_end(struct supply_line *line);

#endif
