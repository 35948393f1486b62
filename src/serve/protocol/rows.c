#include "serve/protocol/rows.h"

#include "base/base64.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

void rows_init(struct rows *rows, struct infer *infer, struct weir_json_scan *scan)
{
    *rows = (struct rows){.infer = infer, .scan = scan};
    for (size_t i = 0; i < infer->signature->n_inputs; i++) {
        tensor_fill_init(&rows->fills[i], infer->signature->inputs[i].dtype, infer->arena);
    }
}

void rows_fini(struct rows *rows)
{
    for (size_t i = 0; i < rows->infer->signature->n_inputs; i++) {
        tensor_fill_fini(&rows->fills[i]);
    }
    serve_tensors_release(rows->pictures, rows->n_pictures);
    free(rows->pictures);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static bool takes_pictures(const struct rows *rows, size_t i_input)
{
    const struct weir_signature *signature = rows->infer->signature;
    return signature->has_picture && signature->picture.i_input == i_input;
}

/* Does an object begin here whose first member is "b64"? The scan stays where it is. */
static bool is_b64(const struct rows *rows)
{
    struct weir_json_scan ahead = *rows->scan;
    const char *key;
    ahead.err = NULL;
    return weir_json_scan_peek(&ahead) == '{' && weir_json_scan_enter(&ahead, '{') == WEIR_OK &&
           weir_json_scan_member(&ahead, rows->infer->arena, &key) && strcmp(key, "b64") == 0;
}

/* Decoded on its own, as a row beside those that were read before. */
static weir_status add_picture(struct rows *rows, const void *bytes, size_t len)
{
    struct infer single = {.model = rows->infer->model,
                           .version = rows->infer->version,
                           .signature = rows->infer->signature,
                           .arena = rows->infer->arena};
    size_t i_input = rows->infer->signature->picture.i_input;
    WEIR_TRY(protocol_read_picture(bytes, len, &single, rows->scan->err));
    if (weir_grow(&rows->pictures, sizeof(struct weir_tensor *), rows->n_pictures,
                  &rows->cap_pictures) != WEIR_OK) {
        infer_fini(&single);
        return weir_error_set(rows->scan->err, WEIR_ERR_NOMEM, "no memory for the pictures");
    }
    rows->pictures[rows->n_pictures++] = single.in[i_input];
    return WEIR_OK;
}

static weir_status read_picture(struct rows *rows)
{
    struct weir_json_scan *scan = rows->scan;
    struct weir_arena *arena = rows->infer->arena;
    struct weir_json_text text = {0};
    const char *key;
    size_t len;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, arena, &key)) {
        if (strcmp(key, "b64") != 0) {
            return weir_json_scan_fail(scan, "{\"b64\": \"…\"} and no other member");
        }
        WEIR_TRY(weir_json_scan_text(scan, arena, &text));
    }
    WEIR_TRY(scan->status);
    char *bytes = weir_arena_alloc(arena, text.len + 1);
    if (weir_base64_decode(text.bytes, bytes, text.len, &len) != WEIR_OK) {
        return weir_json_scan_fail(scan, "base64 before it");
    }
    return add_picture(rows, bytes, len);
}

/* All pictures as one tensor: of equal shapes, since they are of one model. */
static weir_status join_pictures(struct rows *rows, struct weir_tensor **out,
                                 struct weir_error *err)
{
    const struct weir_tensor *first = rows->pictures[0];
    size_t n_bytes = first->n_elems * weir_dtype_bytes(first->dtype);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    memcpy(dims, first->dims, sizeof dims);
    dims[0] = (int64_t)rows->n_pictures;
    WEIR_TRY(weir_tensor_create(first->dtype, first->rank, dims, out, err));
    for (size_t i = 0; i < rows->n_pictures; i++) {
        memcpy((char *)(*out)->data + i * n_bytes, rows->pictures[i]->data, n_bytes);
    }
    return WEIR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static weir_status read_row_of(struct rows *rows, size_t i_input)
{
    return takes_pictures(rows, i_input) && is_b64(rows)
               ? read_picture(rows)
               : tensor_fill_row(&rows->fills[i_input], rows->scan);
}

weir_status rows_read_instance(struct rows *rows)
{
    struct weir_json_scan *scan = rows->scan;
    const char *key;
    size_t i_input;
    if (weir_json_scan_peek(scan) != '{' || is_b64(rows)) {
        return rows->infer->signature->n_inputs == 1
                   ? read_row_of(rows, 0)
                   : weir_json_scan_fail(scan,
                                         "an object with a value for each of the model's inputs");
    }
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, rows->infer->arena, &key)) {
        WEIR_TRY(infer_find_input(rows->infer, key, &i_input, scan->err));
        WEIR_TRY(read_row_of(rows, i_input));
    }
    return scan->status;
}

weir_status rows_read_instances(struct rows *rows)
{
    WEIR_TRY(weir_json_scan_enter(rows->scan, '['));
    while (weir_json_scan_element(rows->scan)) {
        WEIR_TRY(rows_read_instance(rows));
    }
    return rows->scan->status;
}

static weir_status read_column(struct rows *rows, size_t i_input)
{
    struct tensor_fill *fill = &rows->fills[i_input];
    if (takes_pictures(rows, i_input) && is_b64(rows)) {
        return read_picture(rows);
    }
    if (fill->rank >= 0) {
        return weir_json_scan_fail(rows->scan, "each input once");
    }
    return tensor_fill_value(fill, rows->scan);
}

weir_status rows_read_columns(struct rows *rows)
{
    struct weir_json_scan *scan = rows->scan;
    const char *key;
    size_t i_input;
    if (weir_json_scan_peek(scan) != '{' || is_b64(rows)) {
        return rows->infer->signature->n_inputs == 1
                   ? read_column(rows, 0)
                   : weir_json_scan_fail(scan,
                                         "an object with a tensor for each of the model's inputs");
    }
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, rows->infer->arena, &key)) {
        WEIR_TRY(infer_find_input(rows->infer, key, &i_input, scan->err));
        WEIR_TRY(read_column(rows, i_input));
    }
    return scan->status;
}

/* [n] of values that the model wants as [n, 1]. */
static void widen(const struct serve_port *port, struct tensor_fill *fill)
{
    if (fill->rank == 1 && port->rank == 2 && (port->dims[1] == 1 || port->dims[1] < 0)) {
        fill->dims[1] = 1;
        fill->rank = 2;
    }
}

weir_status rows_take(struct rows *rows, struct weir_error *err)
{
    const struct weir_signature *signature = rows->infer->signature;
    for (size_t i = 0; i < signature->n_inputs; i++) {
        struct tensor_fill *fill = &rows->fills[i];
        struct weir_tensor *tensor;
        if (takes_pictures(rows, i) && rows->n_pictures > 0) {
            if (fill->rank >= 0) {
                return weir_error_set(err, WEIR_ERR_INVALID, "input '%.80s': pictures and numbers",
                                      signature->inputs[i].name);
            }
            WEIR_TRY(join_pictures(rows, &tensor, err));
        } else if (fill->rank < 0) {
            continue; /* infer_check says what is missing */
        } else {
            widen(&signature->inputs[i], fill);
            WEIR_TRY(tensor_fill_take(fill, &tensor, err));
        }
        WEIR_TRY(infer_set_input(rows->infer, i, tensor, err));
    }
    return infer_check(rows->infer, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static const struct weir_tensor *output_of(const struct infer *infer, size_t i)
{
    return infer->out[infer->outputs[i].i_port];
}

static void put_name(struct weir_buf *out, const struct infer *infer, size_t i)
{
    const char *name = infer->signature->outputs[infer->outputs[i].i_port].name;
    (void)weir_buf_puts(out, i > 0 ? "," : "");
    json_put_text(out, name, strlen(name));
    (void)weir_buf_puts(out, ":");
}

static void put_row(struct weir_buf *out, const struct weir_tensor *tensor, int64_t i_row)
{
    if (tensor->rank > 0 && i_row < tensor->dims[0]) {
        tensor_json_put_row(out, tensor, i_row);
    } else {
        tensor_json_put_nested(out, tensor);
    }
}

void rows_write_instances(const struct infer *infer, struct weir_buf *out)
{
    const struct weir_tensor *first = output_of(infer, 0);
    int64_t n_rows = first->rank > 0 ? first->dims[0] : 1;
    (void)weir_buf_puts(out, "[");
    for (int64_t row = 0; row < n_rows; row++) {
        (void)weir_buf_puts(out, row > 0 ? "," : "");
        if (infer->n_outputs == 1) {
            put_row(out, first, row);
            continue;
        }
        (void)weir_buf_puts(out, "{");
        for (size_t i = 0; i < infer->n_outputs; i++) {
            put_name(out, infer, i);
            put_row(out, output_of(infer, i), row);
        }
        (void)weir_buf_puts(out, "}");
    }
    (void)weir_buf_puts(out, "]");
}

void rows_write_columns(const struct infer *infer, struct weir_buf *out)
{
    if (infer->n_outputs == 1) {
        tensor_json_put_nested(out, output_of(infer, 0));
        return;
    }
    (void)weir_buf_puts(out, "{");
    for (size_t i = 0; i < infer->n_outputs; i++) {
        put_name(out, infer, i);
        tensor_json_put_nested(out, output_of(infer, i));
    }
    (void)weir_buf_puts(out, "}");
}
