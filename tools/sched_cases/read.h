/** Members of a case's JSON as C values. */
#ifndef SCHED_CASES_READ_H
#define SCHED_CASES_READ_H

#include "sched_cases/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CASE_NOW_MS        ((int64_t)1700000000000)
#define CASE_DEVICE_CLASS  "nvidia.com/gpu"
#define CASE_NODE_NAME_KEY "kai.scheduler/type" /**< Each node has its name as this label. */

static inline double number(const json_t *object, const char *key, double fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

static inline int64_t integer(const json_t *object, const char *key, int64_t fallback)
{
    return (int64_t)llround(number(object, key, (double)fallback));
}

static inline int64_t milli(const json_t *object, const char *key, double fallback)
{
    double value = number(object, key, fallback);
    return value < 0 ? WEIR_SCHED_UNLIMITED : (int64_t)llround(value * WEIR_SCHED_DEVICE);
}

/** "4", "1.5" or "1500m" in thousandths. */
static inline int64_t quantity_milli(const char *quantity)
{
    char *end = NULL;
    double value = strtod(quantity, &end);
    return (int64_t)llround(*end == 'm' ? value : value * WEIR_SCHED_DEVICE);
}

/** "4", "8G", "8Gi". */
static inline int64_t quantity_bytes(const char *quantity)
{
    static const char suffixes[] = "kMGT";
    char *end = NULL;
    double value = strtod(quantity, &end);
    const char *suffix = *end == '\0' ? NULL : strchr(suffixes, *end == 'K' ? 'k' : *end);
    for (const char *at = suffixes; suffix != NULL && at <= suffix; at++) {
        value *= end[1] == 'i' ? 1024 : 1000;
    }
    return (int64_t)llround(value);
}

static inline const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static inline bool is_same(const char *left, const char *right)
{
    return left != NULL && right != NULL && strcmp(left, right) == 0;
}

static inline const json_t *find_named(const json_t *array, const char *key, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i, item)
    {
        if (is_same(text(item, key), name)) {
            return item;
        }
    }
    return NULL;
}

static inline int32_t find_queue(const struct world *world, const char *name)
{
    for (int32_t i = 0; i < world->snapshot.n_queues; i++) {
        if (is_same(world->queues[i].name, name)) {
            return i;
        }
    }
    return WEIR_SCHED_NONE;
}

/** Labels of an object, and the node's name as one if it is given. */
struct weir_sched_label *load_labels(struct world *world, const json_t *object,
                                     const char *node_name, int32_t *out_n);

/** Names with counts (MIG profiles), with room for n_more. */
struct weir_sched_extra *load_extras(struct world *world, const json_t *object, size_t n_more,
                                     int32_t *out_n);

/** Jobs and tasks; nodes, queues and topologies are there. */
weir_status load_jobs(struct world *world, struct weir_error *err) WEIR_MUST_CHECK;

#endif
