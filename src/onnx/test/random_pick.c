#include "random_pick.h"

#include <math.h>
#include <string.h>

/* ---- choosing values -------------------------------------------------------------------------- */

const struct weir_tensor *graph_tensor(const struct random_graph *g, int value)
{
    return g->values[value].now;
}

static bool is_fit(const struct random_graph *g, int at, uint64_t wanted, int low, int high)
{
    const struct random_value *value = &g->values[at];
    const struct weir_tensor *now = value->now;
    return !value->is_closed && (wanted >> now->dtype & 1) != 0 && now->rank >= low &&
           now->rank <= high && (value->is_exact || (wanted & EXACT) == 0) &&
           (!value->is_special || (wanted & FINITE) == 0) &&
           (value->bound <= 30 || (wanted & CALM) == 0) &&
           (now->n_elems > 0 || (wanted & LARGE_ENOUGH) == 0);
}

enum weir_dtype pick_dtype(struct random_graph *g, uint64_t wanted)
{
    if ((wanted & F32) != 0 && !graph_rarely(g, 5)) {
        return WEIR_DTYPE_FLOAT;
    }
    for (;;) {
        int64_t i = graph_pick(g, 1, 63);
        if ((wanted & ~(EXACT | FINITE | CALM | LARGE_ENOUGH)) >> i & 1) {
            return (enum weir_dtype)i;
        }
    }
}

enum value_kind pick_kind(struct random_graph *g, uint64_t wanted)
{
    int64_t i = graph_pick(g, 0, 9);
    if ((wanted & EXACT) != 0) {
        return (wanted & FINITE) == 0 && i == 0 ? VALUE_SPECIAL : VALUE_DYADIC;
    }
    return i < 5                              ? VALUE_DYADIC
           : i < 8                            ? VALUE_NORMAL
           : i == 8 && (wanted & CALM) == 0   ? VALUE_OUTLIER
           : i == 9 && (wanted & FINITE) == 0 ? VALUE_SPECIAL
                                              : VALUE_NORMAL;
}

int pick_of_shape(struct random_graph *g, uint64_t wanted, int rank, const int64_t *dims)
{
    return graph_given(g, graph_rarely(g, 5), pick_dtype(g, wanted), rank, dims,
                       pick_kind(g, wanted));
}

/* A value of `low` to `high` dimensions: mostly one that was made lately, so that it has several
 * readers near each other. */
int pick_value(struct random_graph *g, uint64_t wanted, int low, int high)
{
    for (int i = 0; i < 8 && g->n_values > 0 && !graph_rarely(g, 12); i++) {
        int far = graph_rarely(g, 2) ? 3 : 12;
        int back = (int)graph_pick(g, 0, WEIR_MIN(g->n_values - 1, far));
        int at = g->n_values - 1 - back;
        bool is_constant = g->values[at].is_constant;
        if (is_fit(g, at, wanted, low, high) && (!is_constant || graph_rarely(g, 6))) {
            return at;
        }
    }
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int rank = g->rank >= low && g->rank <= high && !graph_rarely(g, 5)
                   ? g->rank
                   : (int)graph_pick(g, low, WEIR_MIN(high, 5));
    for (int i = 0; i < rank; i++) {
        dims[i] = i < g->rank ? g->dims[i] : graph_pick(g, 1, 4);
        dims[i] = dims[i] == 0 && (wanted & LARGE_ENOUGH) != 0 ? 2 : dims[i];
    }
    return pick_of_shape(g, wanted, rank, dims);
}

/* Dimensions that broadcast to a value's, some of them 1, perhaps without the first ones. */
int pick_smaller(struct random_graph *g, int of, int64_t dims[WEIR_TENSOR_RANK_MAX])
{
    const struct weir_tensor *x = graph_tensor(g, of);
    int64_t form = graph_pick(g, 0, 6);
    int rank = form == 0 ? 0 : form == 1 ? 1 : x->rank;
    rank = form == 2 ? (int)graph_pick(g, 0, x->rank) : WEIR_MIN(rank, WEIR_MAX(x->rank, 1));
    for (int i = 0; i < rank; i++) {
        int at = i + x->rank - rank;
        bool is_one = form == 1   ? graph_rarely(g, 2)
                      : form == 3 ? at != 1
                      : form == 4 ? graph_rarely(g, 2)
                      : form == 5 ? at >= 2
                                  : graph_rarely(g, 3) && form == 2;
        dims[i] = is_one || at < 0 ? 1 : x->dims[at];
    }
    return rank;
}

bool pick_fits(const struct weir_tensor *a, const struct weir_tensor *b)
{
    for (int i = 1; i <= WEIR_MIN(a->rank, b->rank); i++) {
        int64_t x = a->dims[a->rank - i], y = b->dims[b->rank - i];
        if (x != y && x != 1 && y != 1) {
            return false;
        }
    }
    return true;
}

/* Something of a value's type to go with it: itself, another value, or a new one. */
int pick_partner(struct random_graph *g, int of, uint64_t wanted)
{
    if (of < 0) {
        return -1;
    }
    uint64_t same = UINT64_C(1) << graph_tensor(g, of)->dtype |
                    (wanted & (EXACT | FINITE | CALM | LARGE_ENOUGH));
    if (graph_rarely(g, 8)) {
        return of;
    }
    for (int i = 0; i < 10 && !graph_rarely(g, 8); i++) {
        int at = (int)graph_pick(g, WEIR_MAX(0, g->n_values - 14), g->n_values - 1);
        if (is_fit(g, at, same, 0, 8) && pick_fits(graph_tensor(g, at), graph_tensor(g, of))) {
            return at;
        }
    }
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int rank = pick_smaller(g, of, dims);
    return graph_given(g, !graph_rarely(g, 4), graph_tensor(g, of)->dtype, rank, dims,
                       pick_kind(g, wanted));
}

int pick_scalar(struct random_graph *g, enum weir_dtype dtype, double number)
{
    const int64_t one[] = {1, 1};
    return graph_constant(g, dtype, (int)graph_pick(g, 0, 2), one, &number);
}

/* One or the other order. */
void pick_order(struct random_graph *g, int in[2])
{
    if (graph_rarely(g, 2)) {
        int first = in[0];
        in[0] = in[1];
        in[1] = first;
    }
}

int graph_add1(struct random_graph *g, const char *type, int x, struct graph_result result)
{
    return graph_add(g, type, &x, 1, 1, result);
}

struct graph_result graph_summed(const struct random_graph *g, const int *in, int n)
{
    struct graph_result result = graph_moved(g, in, n);
    result.bound = 0;
    for (int i = 0; i < n; i++) {
        result.bound += g->values[in[i]].bound;
    }
    return result;
}

struct graph_result graph_multiplied(const struct random_graph *g, int a, int b, double n_terms)
{
    const struct random_value *x = &g->values[a], *y = &g->values[b];
    return (struct graph_result){.is_exact = x->is_exact && y->is_exact,
                                 .is_special = x->is_special || y->is_special,
                                 .bound = fmax(1, n_terms * x->bound * y->bound),
                                 .grid = x->grid + y->grid};
}
