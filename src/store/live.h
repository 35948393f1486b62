/**
 * Live values: what changes with every heartbeat, and is not worth a commit each time. They lie in memory beside the
 * database, by the row that they are of, and SQL of this store sees them in place of what its columns hold:
 *
 *     weir_live_put(store, WEIR_LIVE_NODES, "node-1", values, mask);
 *     "SELECT name, " WEIR_LIVE_NODE("last_seen_ms") " FROM nodes"
 *
 * Records (store/table.h) are read so by themselves; filters, orders and cursors see the column. A column without a live
 * value is what it holds, so all of this begins anew with the process. A live value is no part of a transaction: it is
 * put when what it goes with is committed, and seen at once. Any thread; a row costs about 100 bytes.
 */
#ifndef WEIR_STORE_LIVE_H
#define WEIR_STORE_LIVE_H

#include "base/arena.h"
#include "store/store.h"

enum weir_live_noun {
    WEIR_LIVE_NODES,   /**< By name. Values: last_seen_ms, disk_free_bytes. */
    WEIR_LIVE_DEVICES, /**< By "NODE/ID". Values: temperature_c, power_w, utilisation_pct,
                            memory_used_bytes, ecc_errors. */
};

enum { WEIR_LIVE_LAST_SEEN, WEIR_LIVE_DISK_FREE };

enum {
    WEIR_LIVE_TEMPERATURE,
    WEIR_LIVE_POWER,
    WEIR_LIVE_UTILISATION,
    WEIR_LIVE_MEMORY_USED,
    WEIR_LIVE_ECC_ERRORS
};

#define WEIR_LIVE_VALUES_MAX 5

/** SQL for a column of the table `nodes`, which is called `of` in the statement, or by its name alone; and of `devices`. */
#define WEIR_LIVE_NODE(column) "weir_live('nodes." column "', name, " column ")"
#define WEIR_LIVE_NODE_OF(of, column)                                                              \
    "weir_live('nodes." column "', " of ".name, " of "." column ")"
#define WEIR_LIVE_DEVICE(of, column)                                                               \
    "weir_live('devices." column "', " of ".node || '/' || " of ".id, " of "." column ")"

/** Set those values of which `mask` has the bit (1 << number). NaN is SQL NULL: not told. */
void weir_live_put(struct weir_store *store, enum weir_live_noun noun, const char *key,
                   const double values[WEIR_LIVE_VALUES_MAX], unsigned mask);

/** @return Whether there is a live value. */
bool weir_live_get(struct weir_store *store, enum weir_live_noun noun, const char *key, int value,
                   double *out);

/** Forget a row, and those whose key begins with it and a slash. */
void weir_live_drop(struct weir_store *store, enum weir_live_noun noun, const char *key);

/** The clock that times are by was set by so much: last_seen_ms goes with it. */
void weir_live_move(struct weir_store *store, int64_t by_ms);

struct weir_live_row {
    char *key;
    double values[WEIR_LIVE_VALUES_MAX];
    unsigned mask;
};

/** All rows of a noun, in no order, copied into the arena. */
void weir_live_list(struct weir_store *store, enum weir_live_noun noun, struct weir_arena *arena,
                    struct weir_live_row **out, size_t *out_n);

#endif
