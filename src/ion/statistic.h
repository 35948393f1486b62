/**
 * Statistics: what the programs of an ION's pipelines tell about themselves, for people to look at:
 * a number, lines, bars, a table, a distribution. A statistic is a name, a kind, and a value of that
 * kind's form (JSON); of one name there are many over time.
 *
 * The functions do not look at rights: a route loads the ION as its caller first.
 */
#ifndef WEIR_ION_STATISTIC_H
#define WEIR_ION_STATISTIC_H

#include "base/record.h"
#include "store/store.h"

#define WEIR_STATISTIC_VALUE_MAX_BYTES 65536

struct weir_statistic {
    int64_t seq; /**< Order of arrival; given by weir_statistic_add. */
    char *id;    /**< Given by whoever tells it: the same again of its ION is stored once. */
    char *ion;
    char *pipeline; /**< NULL: of the whole ION. */
    char *job;      /**< Whose task told it; NULL: a person. */
    char *name;
    char *kind;
    char *value;           /**< JSON of the kind's form. */
    int64_t model_version; /**< Of which model; 0: of none. */
    char *actor;
    int64_t time_ms;
};

extern const struct weir_resource weir_statistic_resource;

/**
 * Store one; one whose ION has its id already changes nothing, and *out_is_new is false.
 * @return INVALID: not a kind, or a value that has not its form; or a time that is not after 1970 and
 *         at most a day after now_ms. CONFLICT if there is no such ION.
 */
weir_status weir_statistic_add(struct weir_txn *txn, struct weir_statistic *statistic,
                               int64_t now_ms, bool *out_is_new,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
