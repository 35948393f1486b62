/* Sizes as products, and the states' small helpers. */
#include "rows.h"

#include <limits.h>
#include <string.h>

struct rows_amount rows_number(int64_t number)
{
    return (struct rows_amount){.is_known = true, .coef = number};
}

struct rows_amount rows_n(void)
{
    return (struct rows_amount){.is_known = true, .coef = 1, .n_power = 1};
}

struct rows_amount rows_fresh(struct rows_call *call)
{
    return (struct rows_amount){
        .is_known = true, .coef = 1, .n_symbols = 1, .symbols = {(*call->n_symbols)++}};
}

struct rows_amount rows_unknown(bool is_of_n)
{
    return (struct rows_amount){.is_of_n = is_of_n};
}

bool rows_is_number(const struct rows_amount *amount)
{
    return amount->is_known && amount->n_power == 0 && amount->n_symbols == 0;
}

bool rows_is(const struct rows_amount *amount, int64_t number)
{
    return rows_is_number(amount) && amount->coef == number;
}

bool rows_is_of_n(const struct rows_amount *amount)
{
    return amount->is_known ? amount->n_power > 0 : amount->is_of_n;
}

static bool are_alike(const struct rows_amount *a, const struct rows_amount *b)
{
    return a->is_known && b->is_known && a->n_power == b->n_power && a->n_symbols == b->n_symbols &&
           memcmp(a->symbols, b->symbols, a->n_symbols * sizeof *a->symbols) == 0;
}

bool rows_equal(const struct rows_amount *a, const struct rows_amount *b)
{
    return are_alike(a, b) && a->coef == b->coef;
}

static bool times(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* A product of nothing is nothing, whatever the rest. */
struct rows_amount rows_times(const struct rows_amount *a, const struct rows_amount *b)
{
    struct rows_amount out = {.is_known = true};
    if (rows_is(a, 0) || rows_is(b, 0)) {
        return rows_number(0);
    }
    if (!a->is_known || !b->is_known || a->n_symbols + b->n_symbols > ROWS_SYMBOLS_MAX ||
        a->n_power + b->n_power > UINT8_MAX || !times(a->coef, b->coef, &out.coef)) {
        return rows_unknown(rows_is_of_n(a) || rows_is_of_n(b));
    }
    out.n_power = (uint8_t)(a->n_power + b->n_power);
    for (size_t i = 0, k = 0; i < a->n_symbols || k < b->n_symbols;) {
        bool is_a = k == b->n_symbols || (i < a->n_symbols && a->symbols[i] <= b->symbols[k]);
        out.symbols[out.n_symbols++] = is_a ? a->symbols[i++] : b->symbols[k++];
    }
    return out;
}

bool rows_divide(const struct rows_amount *a, const struct rows_amount *b, struct rows_amount *out)
{
    if (!a->is_known || !b->is_known || b->coef == 0 || a->coef == INT64_MIN ||
        a->coef % b->coef != 0 || a->n_power < b->n_power) {
        return false;
    }
    struct rows_amount left = {
        .is_known = true, .coef = a->coef / b->coef, .n_power = (uint8_t)(a->n_power - b->n_power)};
    size_t k = 0;
    for (size_t i = 0; i < a->n_symbols; i++) {
        if (k < b->n_symbols && a->symbols[i] == b->symbols[k]) {
            k++;
        } else {
            left.symbols[left.n_symbols++] = a->symbols[i];
        }
    }
    *out = left;
    return k == b->n_symbols;
}

struct rows_amount rows_plus(const struct rows_amount *a, const struct rows_amount *b, int sign)
{
    struct rows_amount out = *a;
    int64_t other;
    if (rows_is(b, 0)) {
        return *a;
    }
    if (times(b->coef, sign, &other) && are_alike(a, b) &&
        !__builtin_add_overflow(a->coef, other, &out.coef)) {
        return out.coef != 0 ? out : rows_number(0);
    }
    return rows_unknown(rows_is_of_n(a) || rows_is_of_n(b));
}

/* ---- states ------------------------------------------------------------------------------------- */

bool rows_flat_from(const struct rows_call *call, size_t first)
{
    for (size_t i = first; i < call->n_in; i++) {
        if (!rows_flat(call->in[i])) {
            return false;
        }
    }
    return true;
}

bool rows_counts(const struct rows_state *state)
{
    for (size_t i = 0; state != NULL && i < state->n_values; i++) {
        if (rows_is_of_n(&state->values[i])) {
            return true;
        }
    }
    return false;
}

const struct rows_amount *rows_amounts(const struct rows_state *state, size_t *out_n)
{
    *out_n = state != NULL ? state->n_values : 0;
    return state != NULL ? state->values : NULL;
}

bool rows_numbers(const struct rows_state *state, size_t most, int64_t *out, size_t *out_n)
{
    const struct rows_amount *values = rows_amounts(state, out_n);
    for (size_t i = 0; values != NULL && i < *out_n; i++) {
        if (i == most || !rows_is_number(&values[i])) {
            return false;
        }
        out[i] = values[i].coef;
    }
    return values != NULL;
}

int32_t rows_axis(int64_t axis, int32_t rank)
{
    axis = axis < 0 ? axis + rank : axis;
    return axis >= 0 && axis < rank ? (int32_t)axis : -1;
}

enum rows_verdict rows_axes(const struct rows_call *call, size_t input, int32_t rank,
                            bool out[WEIR_TENSOR_RANK_MAX], bool *out_has)
{
    size_t n;
    int64_t given[WEIR_TENSOR_RANK_MAX];
    const int64_t *list = onnx_ints(&call->call, "axes", &n);
    memset(out, 0, WEIR_TENSOR_RANK_MAX * sizeof *out);
    if (list == NULL && rows_in(call, input) != NULL) {
        ROWS_KNOW(rows_numbers(rows_in(call, input), WEIR_TENSOR_RANK_MAX, given, &n));
        list = given;
    }
    *out_has = list != NULL && n > 0;
    for (size_t i = 0; list != NULL && i < n; i++) {
        int32_t axis = rows_axis(list[i], rank);
        ROWS_KNOW(axis >= 0);
        out[axis] = true;
    }
    return ROWS_APART;
}

void rows_out_like(struct rows_call *call, size_t i, const struct rows_state *like)
{
    if (i < call->n_out) {
        call->out[i] = *like;
        call->out[i].values = NULL;
        call->out[i].n_values = 0;
        call->out[i].constant = NULL;
    }
}

void rows_outs_like(struct rows_call *call, const struct rows_state *like)
{
    for (size_t i = 0; i < call->n_out; i++) {
        rows_out_like(call, i, like);
    }
}

struct rows_amount *rows_values(struct rows_call *call, size_t i, int32_t rank, size_t n)
{
    struct rows_amount *values =
        WEIR_ARENA_ARRAY(call->arena, WEIR_MAX(n, (size_t)1), struct rows_amount);
    call->out[i] =
        (struct rows_state){.kind = ROWS_FLAT, .rank = rank, .values = values, .n_values = n};
    call->out[i].dims[0] = rows_number((int64_t)n);
    return values;
}

enum rows_verdict rows_settle(struct rows_state *state)
{
    state->kind = ROWS_FLAT;
    for (int32_t i = 0; i < state->rank; i++) {
        const struct rows_amount *dim = &state->dims[i];
        ROWS_NEED(dim->is_known && dim->n_power <= 1);
        if (dim->n_power == 1) {
            ROWS_NEED(state->kind == ROWS_FLAT);
            state->kind = ROWS_ROWS;
            state->axis = i;
        }
    }
    return ROWS_APART;
}

/* One dimension of two that meet. What has rows meets 1 or as many. */
static enum rows_verdict meet(struct rows_call *call, struct rows_amount *dim,
                              const struct rows_amount *other)
{
    if (rows_equal(dim, other) || rows_is(other, 1)) {
        return ROWS_APART;
    }
    if (rows_is(dim, 1)) {
        *dim = *other;
        return ROWS_APART;
    }
    ROWS_NEED(!rows_is_of_n(dim) && !rows_is_of_n(other));
    if (rows_is_number(other)) { /* it is the larger, or the run fails */
        *dim = *other;
    } else if (!rows_is_number(dim)) {
        *dim = rows_fresh(call);
    }
    return ROWS_APART;
}

enum rows_verdict rows_broadcast(struct rows_call *call, size_t first, size_t end, int32_t rank,
                                 struct rows_state *out)
{
    for (size_t i = first; i < end && i < call->n_in; i++) {
        const struct rows_state *in = call->in[i];
        ROWS_KNOW(in == NULL || in->rank >= 0);
        rank = in != NULL ? WEIR_MAX(rank, in->rank) : rank;
    }
    *out = (struct rows_state){.rank = rank};
    for (int32_t k = 0; k < rank; k++) {
        out->dims[k] = rows_number(1);
    }
    for (size_t i = first; i < end && i < call->n_in; i++) {
        const struct rows_state *in = call->in[i];
        for (int32_t k = 0; in != NULL && k < in->rank; k++) {
            ROWS_TRY(meet(call, &out->dims[k + rank - in->rank], &in->dims[k]));
        }
    }
    return rows_settle(out);
}

enum rows_verdict rows_broadcast_pair(const struct rows_call *call, const struct rows_state *a,
                                      const struct rows_state *b, struct rows_state *out)
{
    const struct rows_state *both[] = {a, b};
    struct rows_call pair = *call;
    pair.in = both;
    pair.n_in = 2;
    return rows_broadcast(&pair, 0, 2, 0, out);
}
