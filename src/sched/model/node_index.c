#include "sched/model/node_index.h"

#include <stdlib.h>

static uint32_t hash(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ (x >> 16);
}

weir_status node_index_init(struct node_index *index, int32_t n_nodes, const uint8_t *parts,
                            int32_t n_parts)
{
    *index = (struct node_index){.n_nodes = n_nodes, .parts = parts, .n_parts = n_parts};
    for (int32_t p = 0; p < n_parts; p++) {
        index->roots[p] = -1;
    }
    index->entries = calloc((size_t)n_nodes + 1, sizeof *index->entries);
    if (index->entries == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 0; i < n_nodes; i++) {
        index->entries[i] =
            (struct node_index_entry){.left = -1, .right = -1, .weight = hash((uint32_t)i + 1)};
    }
    return WEIR_OK;
}

void node_index_fini(struct node_index *index)
{
    free(index->entries);
    index->entries = NULL;
}

static bool is_below(const struct node_index *index, int32_t node, int64_t key, int32_t than)
{
    int64_t own = index->entries[node].key;
    return own != key ? own < key : node < than;
}

/** Divide the tree under `tree` into what is below (key, node) and what is not. */
static void split(struct node_index *index, int32_t tree, int64_t key, int32_t node,
                  int32_t *out_below, int32_t *out_rest)
{
    while (tree >= 0) {
        if (is_below(index, tree, key, node)) {
            *out_below = tree;
            out_below = &index->entries[tree].right;
            tree = *out_below;
        } else {
            *out_rest = tree;
            out_rest = &index->entries[tree].left;
            tree = *out_rest;
        }
    }
    *out_below = -1;
    *out_rest = -1;
}

static int32_t merge(struct node_index *index, int32_t below, int32_t rest)
{
    int32_t root = -1, *out = &root;
    while (below >= 0 && rest >= 0) {
        if (index->entries[below].weight > index->entries[rest].weight) {
            *out = below;
            out = &index->entries[below].right;
            below = *out;
        } else {
            *out = rest;
            out = &index->entries[rest].left;
            rest = *out;
        }
    }
    *out = below >= 0 ? below : rest;
    return root;
}

void node_index_clear(struct node_index *index, int32_t node)
{
    struct node_index_entry *entry = &index->entries[node];
    if (!entry->is_in) {
        return;
    }
    int32_t *link = &index->roots[index->parts[node]];
    while (*link != node) {
        struct node_index_entry *at = &index->entries[*link];
        link = is_below(index, *link, entry->key, node) ? &at->right : &at->left;
    }
    *link = merge(index, entry->left, entry->right);
    entry->left = entry->right = -1;
    entry->is_in = false;
}

void node_index_set(struct node_index *index, int32_t node, int64_t key)
{
    struct node_index_entry *entry = &index->entries[node];
    if (entry->is_in && entry->key == key) {
        return;
    }
    node_index_clear(index, node);
    entry->key = key;
    entry->is_in = true;
    int32_t *link = &index->roots[index->parts[node]];
    while (*link >= 0 && index->entries[*link].weight > entry->weight) {
        struct node_index_entry *at = &index->entries[*link];
        link = is_below(index, *link, key, node) ? &at->right : &at->left;
    }
    int32_t tree = *link;
    *link = node;
    split(index, tree, key, node, &entry->left, &entry->right);
}

static bool is_open(uint32_t open, int32_t part)
{
    return (open >> part & 1) != 0;
}

int32_t node_index_at_least(const struct node_index *index, uint32_t open, int64_t key,
                            int32_t node)
{
    int32_t best = -1;
    for (int32_t p = 0; p < index->n_parts; p++) {
        for (int32_t at = is_open(open, p) ? index->roots[p] : -1; at >= 0;) {
            if (is_below(index, at, key, node)) {
                at = index->entries[at].right;
            } else {
                bool is_first = best < 0 || is_below(index, at, index->entries[best].key, best);
                best = is_first ? at : best;
                at = index->entries[at].left;
            }
        }
    }
    return best;
}
