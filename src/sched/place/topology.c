#include "sched/place/topology.h"

#include <stdlib.h>
#include <string.h>

/** A node and its labels' values from the widest level down; qsort has no context. */
struct path {
    int32_t node, n_levels;
    const char **values;
};

static const char *label_of(const struct weir_sched_node *node, const char *key)
{
    for (int32_t i = 0; i < node->n_labels; i++) {
        if (strcmp(node->labels[i].key, key) == 0) {
            return node->labels[i].value;
        }
    }
    return NULL;
}

static int compare_paths(const struct path *l, const struct path *r, int32_t n_levels)
{
    for (int32_t i = 0; i < n_levels; i++) {
        int compared = strcmp(l->values[i], r->values[i]);
        if (compared != 0) {
            return compared;
        }
    }
    return 0;
}

static int by_path(const void *left, const void *right)
{
    const struct path *l = left, *r = right;
    int compared = compare_paths(l, r, l->n_levels);
    return compared != 0 ? compared : (l->node < r->node ? -1 : l->node > r->node);
}

static int32_t collect(const struct weir_sched_snapshot *snapshot,
                       const struct weir_sched_topology *given, struct path *paths,
                       const char **values)
{
    int32_t n = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const char **own = values + (size_t)n * (size_t)given->n_levels;
        bool has_all = true;
        for (int32_t l = 0; l < given->n_levels && has_all; l++) {
            own[l] = label_of(&snapshot->nodes[i], given->levels[l]);
            has_all = own[l] != NULL;
        }
        if (has_all) {
            paths[n++] = (struct path){.node = i, .n_levels = given->n_levels, .values = own};
        }
    }
    qsort(paths, (size_t)n, sizeof *paths, by_path);
    return n;
}

/** The domains of one level; those of the level above are there. */
static void make_level(struct topology *out, const struct path *paths, int32_t level)
{
    int32_t parent = level > 0 ? out->level_first[level - 1] : -1;
    out->level_first[level] = out->n_domains;
    for (int32_t i = 0; i < out->n_nodes; i++) {
        if (i == 0 || compare_paths(&paths[i - 1], &paths[i], level + 1) != 0) {
            while (parent >= 0 && i >= out->domains[parent].first + out->domains[parent].n) {
                parent++;
            }
            out->domains[out->n_domains++] =
                (struct topology_domain){.first = i, .level = level, .parent = parent};
        }
        out->domains[out->n_domains - 1].n++;
    }
}

static weir_status make_one(const struct weir_sched_snapshot *snapshot,
                            const struct weir_sched_topology *given, struct path *paths,
                            struct topology *out)
{
    size_t n_levels = (size_t)given->n_levels;
    const char **values = calloc((size_t)snapshot->n_nodes * n_levels + 1, sizeof *values);
    int32_t n = values == NULL ? 0 : collect(snapshot, given, paths, values);
    out->n_levels = given->n_levels;
    out->n_nodes = n;
    out->nodes = calloc((size_t)n + 1, sizeof(int32_t));
    out->domains = calloc((size_t)n * n_levels + 1, sizeof *out->domains);
    out->level_first = calloc(n_levels + 1, sizeof(int32_t));
    if (values == NULL || out->nodes == NULL || out->domains == NULL || out->level_first == NULL) {
        free(values);
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 0; i < n; i++) {
        out->nodes[i] = paths[i].node;
    }
    for (int32_t l = 0; l < given->n_levels; l++) {
        make_level(out, paths, l);
    }
    out->level_first[n_levels] = out->n_domains;
    free(values);
    return WEIR_OK;
}

weir_status topology_make(const struct weir_sched_snapshot *snapshot, struct topology **out)
{
    struct topology *all = calloc((size_t)snapshot->n_topologies + 1, sizeof *all);
    struct path *paths = calloc((size_t)snapshot->n_nodes + 1, sizeof *paths);
    weir_status status = all == NULL || paths == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
    for (int32_t i = 0; i < snapshot->n_topologies && status == WEIR_OK; i++) {
        status = make_one(snapshot, &snapshot->topologies[i], paths, &all[i]);
    }
    free(paths);
    if (status != WEIR_OK) {
        topology_free(all, snapshot->n_topologies);
        return status;
    }
    *out = all;
    return WEIR_OK;
}

void topology_free(struct topology *topologies, int32_t n)
{
    for (int32_t i = 0; i < n && topologies != NULL; i++) {
        free(topologies[i].nodes);
        free(topologies[i].domains);
        free(topologies[i].level_first);
    }
    free(topologies);
}
