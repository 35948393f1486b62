/* Reading tensors; tensor_json_write.c writes them. */
#include "serve/protocol/tensor_json.h"

#include "base/base64.h"
#include "tensor/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM_BYTES 256

void tensor_fill_init(struct tensor_fill *fill, enum weir_dtype dtype, struct weir_arena *arena)
{
    *fill = (struct tensor_fill){.dtype = dtype, .arena = arena, .rank = -1};
}

void tensor_fill_fini(struct tensor_fill *fill)
{
    if (fill->dtype == WEIR_DTYPE_STRING) {
        struct weir_tensor_string *strings = (struct weir_tensor_string *)(void *)fill->data;
        for (size_t i = 0; i < fill->n_elems; i++) {
            free(strings[i].bytes);
        }
    }
    free(fill->data);
    fill->data = NULL;
    fill->n_elems = 0;
}

/* Room for one more element; NULL: there is no memory. */
static void *next_elem(struct tensor_fill *fill)
{
    size_t elem_bytes = weir_dtype_bytes(fill->dtype);
    size_t at = fill->n_elems * elem_bytes;
    if (at + elem_bytes > fill->room_bytes) {
        size_t room_bytes = WEIR_MAX(2 * fill->room_bytes, (size_t)FIRST_ROOM_BYTES);
        char *data = realloc(fill->data, room_bytes);
        if (data == NULL) {
            return NULL;
        }
        fill->data = data;
        fill->room_bytes = room_bytes;
    }
    return fill->data + at;
}

static weir_status no_memory(struct weir_json_scan *scan)
{
    scan->status = weir_error_set(scan->err, WEIR_ERR_NOMEM, "no memory for the request's tensors");
    return scan->status;
}

/* ---- elements -------------------------------------------------------------------------------- */

static weir_status read_float(struct tensor_fill *fill, struct weir_json_scan *scan, void *to)
{
    struct weir_json_number number;
    bool is_double = fill->dtype == WEIR_DTYPE_DOUBLE;
    if (weir_json_scan_peek(scan) == 'n' && weir_json_scan_null(scan)) {
        number.value = (double)NAN;
    } else {
        WEIR_TRY(weir_json_scan_number(scan, is_double, &number));
    }
    if (fill->dtype == WEIR_DTYPE_FLOAT) {
        float value = (float)number.value;
        memcpy(to, &value, sizeof value);
    } else {
        weir_elems_from_f64(fill->dtype, &number.value, to, 1, WEIR_OVERFLOW_SATURATES);
    }
    return WEIR_OK;
}

/* A number that was written with a fraction or an exponent may still be an integer: 3.0. */
static bool integer_of(const struct weir_json_number *number, uint64_t *out_magnitude)
{
    double magnitude = fabs(number->value);
    *out_magnitude = number->magnitude;
    if (!number->is_integer) {
        if (!(magnitude < 18446744073709551616.0) || magnitude != floor(magnitude)) {
            return false;
        }
        *out_magnitude = (uint64_t)magnitude;
    }
    return true;
}

static weir_status read_integer(struct tensor_fill *fill, struct weir_json_scan *scan, void *to)
{
    struct weir_json_number number;
    uint64_t magnitude;
    size_t n_bits = 8 * weir_dtype_bytes(fill->dtype);
    bool is_signed = weir_dtype_class(fill->dtype) == WEIR_DTYPE_IS_SIGNED;
    WEIR_TRY(weir_json_scan_number(scan, true, &number));
    if (!integer_of(&number, &magnitude)) {
        return weir_json_scan_fail(scan, "an integer before it");
    }
    uint64_t most = is_signed ? ((uint64_t)1 << (n_bits - 1)) - 1 : UINT64_MAX >> (64 - n_bits);
    bool is_negative = number.is_negative && magnitude > 0;
    if (magnitude > most + (is_negative && is_signed) || (is_negative && !is_signed)) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "an integer before it that fits into %s",
                       weir_dtype_name(fill->dtype));
        return weir_json_scan_fail(scan, expected);
    }
    int64_t value = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    weir_elems_from_i64(fill->dtype, &value, !is_signed, to, 1);
    return WEIR_OK;
}

static weir_status read_bool(struct weir_json_scan *scan, void *to)
{
    struct weir_json_number number;
    bool value;
    char next = weir_json_scan_peek(scan);
    if (next == '0' || next == '1') {
        WEIR_TRY(weir_json_scan_number(scan, true, &number));
        if (number.value != 0 && number.value != 1) {
            return weir_json_scan_fail(scan, "true or false before it");
        }
        value = number.value == 1;
    } else {
        WEIR_TRY(weir_json_scan_bool(scan, &value));
    }
    *(unsigned char *)to = value;
    return WEIR_OK;
}

/* {"b64": "…"}: its bytes, decoded in place. */
static weir_status read_b64(struct tensor_fill *fill, struct weir_json_scan *scan,
                            struct weir_json_text *out)
{
    const char *key;
    struct weir_json_text text = {0};
    bool is_there = false;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, fill->arena, &key)) {
        if (strcmp(key, "b64") != 0 || is_there) {
            return weir_json_scan_fail(scan, "{\"b64\": \"…\"} and no other member");
        }
        WEIR_TRY(weir_json_scan_text(scan, fill->arena, &text));
        is_there = true;
    }
    WEIR_TRY(scan->status);
    char *bytes = weir_arena_alloc(fill->arena, text.len + 1);
    if (!is_there || weir_base64_decode(text.bytes, bytes, text.len, &out->len) != WEIR_OK) {
        return weir_json_scan_fail(scan, "base64 before it");
    }
    out->bytes = bytes;
    return WEIR_OK;
}

static weir_status read_string(struct tensor_fill *fill, struct weir_json_scan *scan, void *to)
{
    struct weir_tensor_string string = {0};
    struct weir_json_text text;
    if (weir_json_scan_peek(scan) == '{') {
        WEIR_TRY(read_b64(fill, scan, &text));
    } else {
        WEIR_TRY(weir_json_scan_text(scan, fill->arena, &text));
    }
    if (text.len > 0) {
        string.bytes = malloc(text.len);
        if (string.bytes == NULL) {
            return no_memory(scan);
        }
        memcpy(string.bytes, text.bytes, text.len);
        string.len = text.len;
    }
    memcpy(to, &string, sizeof string);
    return WEIR_OK;
}

static weir_status read_elem(struct tensor_fill *fill, struct weir_json_scan *scan)
{
    weir_status status;
    void *to = next_elem(fill);
    if (to == NULL) {
        return no_memory(scan);
    }
    switch (weir_dtype_class(fill->dtype)) {
    case WEIR_DTYPE_IS_FLOAT:
        status = read_float(fill, scan, to);
        break;
    case WEIR_DTYPE_IS_SIGNED:
    case WEIR_DTYPE_IS_UNSIGNED:
        status = read_integer(fill, scan, to);
        break;
    case WEIR_DTYPE_IS_BOOL:
        status = read_bool(scan, to);
        break;
    case WEIR_DTYPE_IS_STRING:
        status = read_string(fill, scan, to);
        break;
    default:
        status = weir_json_scan_fail(scan, "a tensor of a type that JSON can hold");
    }
    fill->n_elems += status == WEIR_OK;
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* At `depth` there are elements: all of them are there. */
static weir_status set_rank(struct tensor_fill *fill, struct weir_json_scan *scan, int32_t depth)
{
    if (fill->rank < 0) {
        fill->rank = depth;
    }
    return fill->rank == depth ? WEIR_OK
                               : weir_json_scan_fail(scan, "elements at one depth of arrays only");
}

static weir_status set_dim(struct tensor_fill *fill, struct weir_json_scan *scan, int32_t depth,
                           int64_t dim)
{
    if (!fill->has_dim[depth]) {
        fill->has_dim[depth] = true;
        fill->dims[depth] = dim;
    }
    return fill->dims[depth] == dim
               ? WEIR_OK
               : weir_json_scan_fail(scan, "arrays of one depth of equal length");
}

/* Recursion is bounded: at most WEIR_TENSOR_RANK_MAX deep. */
static weir_status read_nested(struct tensor_fill *fill, struct weir_json_scan *scan, int32_t depth)
{
    int64_t n = 0;
    if (weir_json_scan_peek(scan) != '[') {
        WEIR_TRY(set_rank(fill, scan, depth));
        return read_elem(fill, scan);
    }
    if (depth == WEIR_TENSOR_RANK_MAX) {
        return weir_json_scan_fail(scan, "a tensor of at most 8 dimensions");
    }
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    while (weir_json_scan_element(scan)) {
        WEIR_TRY(read_nested(fill, scan, depth + 1));
        n++;
    }
    WEIR_TRY(scan->status);
    if (n == 0) {
        WEIR_TRY(set_rank(fill, scan, depth + 1));
    }
    return set_dim(fill, scan, depth, n);
}

weir_status tensor_fill_value(struct tensor_fill *fill, struct weir_json_scan *scan)
{
    return read_nested(fill, scan, 0);
}

weir_status tensor_fill_row(struct tensor_fill *fill, struct weir_json_scan *scan)
{
    WEIR_TRY(read_nested(fill, scan, 1));
    fill->n_rows++;
    fill->has_dim[0] = true;
    fill->dims[0] = fill->n_rows;
    return WEIR_OK;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static weir_status move_elems(struct tensor_fill *fill, int32_t rank, const int64_t *dims,
                              struct weir_tensor **out, struct weir_error *err)
{
    WEIR_TRY(weir_tensor_create(fill->dtype, rank, dims, out, err));
    if (fill->n_elems > 0) {
        /* Strings too: what they point to is the tensor's now. */
        memcpy((*out)->data, fill->data, fill->n_elems * weir_dtype_bytes(fill->dtype));
    }
    fill->n_elems = 0;
    return WEIR_OK;
}

weir_status tensor_fill_take(struct tensor_fill *fill, struct weir_tensor **out,
                             struct weir_error *err)
{
    return move_elems(fill, WEIR_MAX(fill->rank, 0), fill->dims, out, err);
}

weir_status tensor_fill_take_as(struct tensor_fill *fill, const char *what, int32_t rank,
                                const int64_t *dims, struct weir_tensor **out,
                                struct weir_error *err)
{
    char text[WEIR_TENSOR_TEXT_BYTES];
    size_t n_elems;
    WEIR_TRY(weir_tensor_count(rank, dims, weir_dtype_bytes(fill->dtype), &n_elems, err));
    if (n_elems != fill->n_elems) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: its shape %s has %zu elements, its data %zu", what,
                              weir_tensor_dims_text(rank, dims, text), n_elems, fill->n_elems);
    }
    bool is_flat = fill->rank <= 1;
    bool is_same = fill->rank == rank && memcmp(fill->dims, dims, (size_t)rank * sizeof *dims) == 0;
    if (!is_flat && !is_same && n_elems > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: its data is nested otherwise than its shape %s says", what,
                              weir_tensor_dims_text(rank, dims, text));
    }
    return move_elems(fill, rank, dims, out, err);
}
