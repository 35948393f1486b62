/**
 * Metrics: the table of figures that `GET /metrics` answers, for Prometheus.
 *
 * A figure is made by a function. That of most reads a statement: its columns are the labels, then the value.
 */
#ifndef WEIR_API_METRICS_H
#define WEIR_API_METRICS_H

#include "api/core/exposition.h"
#include "base/status.h"

#include <stddef.h>

struct api_call;
struct weir_txn;

struct api_metric;

/** What a figure's function is given. */
struct api_collecting {
    struct api_call *call;
    struct weir_txn *txn;
    const struct api_metric *metric;
    struct exposition *out; /**< In the metric's family. */
};

struct api_metric {
    const char *name, *type;
    const char *help;   /**< One sentence, with the unit where the name has none. */
    const char *labels; /**< Names, separated by blanks; "": none. */
    const char *sql;    /**< That its function reads; NULL: none. */
    weir_status (*collect)(const struct api_collecting *of, struct weir_error *err);
    size_t offset; /**< Of a count in struct weir_http_counts, where that is what it is. */
};

extern const struct api_metric api_metrics[];
extern const size_t api_n_metrics;

#endif
