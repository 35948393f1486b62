/**
 * Exposition: figures in the text format of Prometheus (version 0.0.4).
 *
 *     struct exposition x;
 *     exposition_begin(&x, max_bytes);
 *     exposition_family(&x, "weir_jobs", "gauge", "Jobs by state");
 *     exposition_sample(&x, "state", (const char *[]){"RUNNING"}, 3);
 *
 * A family's samples follow it at once. Source: Prometheus' "Exposition formats", text-based format.
 * Owned by one thread.
 */
#ifndef WEIR_API_EXPOSITION_H
#define WEIR_API_EXPOSITION_H

#include "base/buf.h"

#include <stddef.h>

/** Of one family; what is beyond is left out and counted in n_left_out. */
#define EXPOSITION_SAMPLES_MAX 20000

struct exposition {
    struct weir_buf buf; /**< Its status is the first failure. */
    const char *name;    /**< Of the family that was begun last. */
    size_t n_samples;    /**< Of that family. */
    size_t n_left_out;   /**< Of all families. */
};

void exposition_begin(struct exposition *x, size_t max_bytes);

/** Begin a family. type: "gauge" or "counter". name and help are borrowed until the next one. */
void exposition_family(struct exposition *x, const char *name, const char *type, const char *help);

/**
 * One sample of the family.
 *
 * @param labels  Their names, separated by blanks; "": none.
 * @param values  A text for each; NULL is an empty one. They may hold anything: it is escaped.
 */
void exposition_sample(struct exposition *x, const char *labels, const char *const *values,
                       double value);

#endif
