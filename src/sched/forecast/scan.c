#include "sched/forecast/scan.h"

#include <stdlib.h>

weir_status scan_init(struct scan *scan, struct cluster *cluster)
{
    *scan = (struct scan){.cluster = cluster, .epoch = 0};
    scan->nodes = calloc((size_t)cluster->snapshot->n_nodes + 1, sizeof *scan->nodes);
    return scan->nodes == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
}

void scan_fini(struct scan *scan)
{
    free(scan->nodes);
    free(scan->completions);
    free(scan->found);
    *scan = (struct scan){0};
}

void scan_begin(struct scan *scan)
{
    scan->epoch++;
    scan->n_completions = scan->n_tried = scan->n_found = 0;
}

static bool grow(void **array, int32_t *cap, int32_t n, size_t size)
{
    if (n <= *cap) {
        return true;
    }
    void *grown = realloc(*array, 2 * (size_t)n * size);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *cap = 2 * n;
    return true;
}

void scan_pass(struct scan *scan, int32_t task, int32_t node, const int32_t *devices,
               uint32_t zones)
{
    struct scan_node *of = &scan->nodes[node];
    if (!grow((void **)&scan->completions, &scan->completions_cap, scan->n_completions + 1,
              sizeof *scan->completions)) {
        scan->cluster->status = WEIR_ERR_NOMEM;
        return;
    }
    if (of->epoch != scan->epoch) {
        *of = (struct scan_node){.last = -1, .epoch = scan->epoch};
    }
    scan->completions[scan->n_completions] =
        (struct scan_end){task, node, of->last, devices, zones};
    of->last = scan->n_completions++;
    feasibility_add(scan->cluster, task, node, &of->gain.of_useful);
}

static void suppose(struct scan *scan, int32_t node, int sign)
{
    for (int32_t i = scan->nodes[node].last; i >= 0; i = scan->completions[i].previous) {
        const struct scan_end *end = &scan->completions[i];
        cluster_hold(scan->cluster, end->task, node, end->devices, end->zones, -sign);
    }
}

static bool fits_on(struct scan *scan, int32_t task, int32_t node, int32_t *devices)
{
    struct assignment assignment = {.node = node, .devices = devices};
    if (!feasibility_fits(scan->cluster, task, node, &scan->nodes[node].gain)) {
        return false;
    }
    suppose(scan, node, 1);
    fits_find(scan->cluster, task, &assignment);
    suppose(scan, node, -1);
    return assignment.when >= FITS_FUTURE;
}

static int by_number(const void *left, const void *right)
{
    int32_t l = *(const int32_t *)left, r = *(const int32_t *)right;
    return l < r ? -1 : l > r;
}

bool scan_fits(struct scan *scan, int32_t task, int32_t *devices)
{
    scan->n_found = 0;
    for (int32_t i = scan->n_tried; i < scan->n_completions; i++) {
        int32_t node = scan->completions[i].node;
        if (scan->nodes[node].last != i || !fits_on(scan, task, node, devices)) {
            continue; /* The last of a node speaks for all of it. */
        }
        if (!grow((void **)&scan->found, &scan->found_cap, scan->n_found + 1,
                  sizeof *scan->found)) {
            scan->cluster->status = WEIR_ERR_NOMEM;
            return false;
        }
        scan->found[scan->n_found++] = node;
    }
    scan->n_tried = scan->n_completions;
    if (scan->n_found > 1) {
        qsort(scan->found, (size_t)scan->n_found, sizeof *scan->found, by_number);
    }
    return scan->n_found > 0;
}

void scan_suppose(struct scan *scan, int sign)
{
    for (int32_t i = 0; i < scan->n_found; i++) {
        suppose(scan, scan->found[i], sign);
        cluster_index_node(scan->cluster, scan->found[i]);
    }
}
