#include "sched/place/fgd_ranking.h"

#include "base/macros.h"

#include <stdlib.h>

#define BLOCK 32 /* Places of a block, and blocks of a span. */
#define SPAN  (BLOCK * BLOCK)

weir_status fgd_layout_init(struct fgd_layout *layout, int32_t n_nodes, const uint8_t *parts,
                            int32_t n_parts)
{
    int32_t counts[NODE_INDEX_PARTS_MAX] = {0}, next[NODE_INDEX_PARTS_MAX];
    *layout = (struct fgd_layout){.n_nodes = n_nodes, .n_parts = n_parts};
    for (int32_t i = 0; i < n_nodes; i++) {
        counts[parts[i]]++;
    }
    for (int32_t p = 0; p < n_parts; p++) {
        layout->span_first[p] = layout->n_spans;
        next[p] = layout->n_spans * SPAN;
        layout->n_spans += (counts[p] + SPAN - 1) / SPAN;
    }
    layout->span_first[n_parts] = layout->n_spans;
    size_t n_places = (size_t)layout->n_spans * SPAN;
    layout->place_of = calloc((size_t)n_nodes + 1, sizeof *layout->place_of);
    layout->node_at = malloc((n_places + 1) * sizeof *layout->node_at);
    if (layout->place_of == NULL || layout->node_at == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (size_t i = 0; i < n_places; i++) {
        layout->node_at[i] = -1;
    }
    for (int32_t i = 0; i < n_nodes; i++) {
        int32_t place = next[parts[i]]++;
        layout->place_of[i] = place;
        layout->node_at[place] = i;
    }
    return WEIR_OK;
}

void fgd_layout_fini(struct fgd_layout *layout)
{
    free(layout->place_of);
    free(layout->node_at);
    *layout = (struct fgd_layout){0};
}

/** Places, blocks and spans. */
static size_t n_costs(const struct fgd_layout *layout)
{
    return (size_t)layout->n_spans * (SPAN + BLOCK + 1);
}

size_t fgd_ranking_bytes(const struct fgd_layout *layout)
{
    return n_costs(layout) * sizeof(int64_t);
}

weir_status fgd_ranking_init(struct fgd_ranking *ranking, const struct fgd_layout *layout)
{
    *ranking = (struct fgd_ranking){.layout = layout};
    ranking->costs = malloc(fgd_ranking_bytes(layout) + sizeof(int64_t));
    if (ranking->costs == NULL) {
        return WEIR_ERR_NOMEM;
    }
    ranking->of_blocks = ranking->costs + (size_t)layout->n_spans * SPAN;
    ranking->of_spans = ranking->of_blocks + (size_t)layout->n_spans * BLOCK;
    fgd_ranking_clear(ranking);
    return WEIR_OK;
}

void fgd_ranking_fini(struct fgd_ranking *ranking)
{
    free(ranking->costs);
    *ranking = (struct fgd_ranking){0};
}

void fgd_ranking_clear(struct fgd_ranking *ranking)
{
    size_t n = n_costs(ranking->layout);
    for (size_t i = 0; i < n; i++) {
        ranking->costs[i] = FGD_RANKING_NONE;
    }
}

static int64_t least_of(const int64_t *costs)
{
    int64_t least = costs[0];
    for (int i = 1; i < BLOCK; i++) {
        least = WEIR_MIN(least, costs[i]);
    }
    return least;
}

void fgd_ranking_set(struct fgd_ranking *ranking, int32_t node, int64_t cost)
{
    int32_t place = ranking->layout->place_of[node];
    int64_t old = ranking->costs[place];
    int64_t *of_block = &ranking->of_blocks[place / BLOCK];
    int64_t *of_span = &ranking->of_spans[place / SPAN];
    ranking->costs[place] = cost;
    if (cost > old && old == *of_block) { /* It may have been the only one as good. */
        *of_block = least_of(ranking->costs + place / BLOCK * BLOCK);
        if (old == *of_span) {
            *of_span = least_of(ranking->of_blocks + place / SPAN * BLOCK);
        }
    } else if (cost < *of_block) {
        *of_block = cost;
        *of_span = WEIR_MIN(*of_span, cost);
    }
}

void fgd_ranking_put(struct fgd_ranking *ranking, int32_t node, int64_t cost)
{
    ranking->costs[ranking->layout->place_of[node]] = cost;
}

void fgd_ranking_sort(struct fgd_ranking *ranking)
{
    int32_t n_blocks = ranking->layout->n_spans * BLOCK;
    for (int32_t b = 0; b < n_blocks; b++) {
        ranking->of_blocks[b] = least_of(ranking->costs + (size_t)b * BLOCK);
    }
    for (int32_t s = 0; s < ranking->layout->n_spans; s++) {
        ranking->of_spans[s] = least_of(ranking->of_blocks + (size_t)s * BLOCK);
    }
}

int64_t fgd_ranking_cost(const struct fgd_ranking *ranking, int32_t node)
{
    return ranking->costs[ranking->layout->place_of[node]];
}

static int32_t find(const int64_t *costs, int64_t cost)
{
    int32_t i = 0;
    while (costs[i] != cost) {
        i++;
    }
    return i;
}

/** The first of the nodes of a span that cost its least. */
static int32_t first_of_span(const struct fgd_ranking *ranking, int32_t span)
{
    int64_t cost = ranking->of_spans[span];
    int32_t block = span * BLOCK + find(ranking->of_blocks + (size_t)span * BLOCK, cost);
    int32_t place = block * BLOCK + find(ranking->costs + (size_t)block * BLOCK, cost);
    return ranking->layout->node_at[place];
}

int32_t fgd_ranking_first(const struct fgd_ranking *ranking, uint32_t open)
{
    const struct fgd_layout *layout = ranking->layout;
    int64_t least = FGD_RANKING_NONE;
    int32_t best = -1;
    for (int32_t p = 0; p < layout->n_parts; p++) {
        int32_t end = (open >> p & 1) != 0 ? layout->span_first[p + 1] : 0, first = -1;
        int64_t of_part = FGD_RANKING_NONE;
        for (int32_t s = layout->span_first[p]; s < end; s++) {
            if (ranking->of_spans[s] < of_part) {
                of_part = ranking->of_spans[s];
                first = s;
            }
        }
        if (first < 0 || of_part > least) {
            continue;
        }
        int32_t node = first_of_span(ranking, first);
        if (of_part < least || node < best) {
            least = of_part;
            best = node;
        }
    }
    return best;
}
