/**
 * KPIs: business figures of an ION (parcels an hour, doors opened by mistake, money saved), told from
 * outside, beside what Weir measures itself. A KPI is a name and values over time; the newest by its
 * own time is what triggers compare and people see. A value may name a version of a model that it is
 * of: such a value is no figure of the ION's, but a sample for the policy that compares that version
 * with another (ion/arms.h).
 *
 * The functions do not look at rights: a route loads the ION as its caller first.
 */
#ifndef WEIR_ION_KPI_H
#define WEIR_ION_KPI_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

struct weir_kpi {
    int64_t seq; /**< Order of arrival; given by weir_kpi_add. */
    char *ion;
    char *name;
    double value;
    char *unit;            /**< NULL: none. */
    char *model;           /**< NULL: it names no version. */
    int64_t model_version; /**< 0: none. */
    char *actor;           /**< Who told it. */
    int64_t time_ms;
};

extern const struct weir_resource weir_kpi_resource;

/** Names that an ION may have at once. */
#define WEIR_KPI_NAMES_MAX   100
#define WEIR_KPIS_LATEST_MAX 500

/**
 * Store a value, and count it where its version is compared; one of the same ION, name, version and
 * time is replaced. kpi->seq is set.
 * @return INVALID if the value is not finite, model and version are not both there, or the time not after 1970 and at most a day after
 *         now_ms; LIMIT for a new name beyond WEIR_KPI_NAMES_MAX; CONFLICT if there is no such ION.
 */
weir_status weir_kpi_add(struct weir_txn *txn, struct weir_kpi *kpi, int64_t now_ms,
                         struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** The newest value of a name that names no version. @return NOT_FOUND. */
weir_status weir_kpi_latest(struct weir_txn *txn, const char *ion, const char *name,
                            struct weir_arena *arena, struct weir_kpi *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The newest value of each name and version (0: none is named), by both: the first
 *  WEIR_KPIS_LATEST_MAX; NULL and 0 if there is none. Cost: by how many there are, not their values. */
weir_status weir_kpis_latest(struct weir_txn *txn, const char *ion, struct weir_arena *arena,
                             struct weir_kpi **out, size_t *out_n,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
