/**
 * Metrics: the table of figures that `GET /metrics` answers, for Prometheus.
 *
 * Most are a statement: its columns are the labels, then the value. The others are made by a
 * function.
 */
#ifndef WEIR_API_METRICS_H
#define WEIR_API_METRICS_H

#include "api/exposition.h"
#include "base/status.h"

#include <stddef.h>

struct api_call;
struct weir_txn;

struct api_metric {
    const char *name, *type;
    const char *help;   /**< One sentence, with the unit where the name has none. */
    const char *labels; /**< Names, separated by blanks; "": none. */
    const char *sql;    /**< Or NULL: */
    weir_status (*collect)(struct api_call *call, struct weir_txn *txn,
                           const struct api_metric *metric, struct exposition *out,
                           struct weir_error *err);
};

extern const struct api_metric api_metrics[];
extern const size_t api_n_metrics;

#endif
