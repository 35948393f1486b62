#include "batch/row.h"

#include "base/json.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_classifier(const struct weir_signature *signature)
{
    return signature->output_kind == SIGNATURE_LOGITS ||
           signature->output_kind == SIGNATURE_PROBABILITIES;
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

/* A text in quotes; what is not UTF-8, which only a cut name is, shows as "?". */
static void put_json_text(struct weir_buf *out, const char *text)
{
    json_t *value = json_string(text);
    char *quoted = value != NULL ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    (void)weir_buf_puts(out, quoted != NULL ? quoted : "\"?\"");
    free(quoted);
    json_decref(value);
}

/* JSON has no infinity, and nothing that is no number. */
static void put_number(struct weir_buf *out, double value, int n_digits)
{
    if (isfinite(value)) {
        (void)weir_buf_printf(out, "%.*g", n_digits, value);
    } else {
        (void)weir_buf_puts(out, "null");
    }
}

static void put_class(const struct row_form *form, const struct infer_class *one,
                      struct weir_buf *out)
{
    (void)weir_buf_printf(out, "\"class\":%zu", one->index);
    if (form->signature->n_labels > 0) {
        (void)weir_buf_puts(out, ",\"label\":");
        put_json_text(out, one->label);
    }
    (void)weir_buf_puts(out, ",\"probability\":");
    put_number(out, one->value, 6);
}

static void put_classes(const struct row_form *form, const struct infer_class *top, size_t n,
                        struct weir_buf *out)
{
    if (n == 0) {
        return;
    }
    (void)weir_buf_puts(out, ",");
    put_class(form, &top[0], out);
    if (form->n_top > 1) {
        (void)weir_buf_puts(out, ",\"top\":[");
        for (size_t i = 0; i < n; i++) {
            (void)weir_buf_puts(out, i > 0 ? ",{" : "{");
            put_class(form, &top[i], out);
            (void)weir_buf_puts(out, "}");
        }
        (void)weir_buf_puts(out, "]");
    }
}

static size_t row_elems(const struct weir_signature *signature, const struct weir_tensor *tensor)
{
    int64_t n_rows = signature->is_batched && tensor->rank > 0 ? tensor->dims[0] : 1;
    return n_rows > 0 ? tensor->n_elems / (size_t)n_rows : 0;
}

static void put_floats(enum weir_dtype dtype, const void *from, size_t n, struct weir_arena *arena,
                       struct weir_buf *out)
{
    double *values = WEIR_ARENA_ARRAY(arena, n + 1, double);
    int n_digits = weir_dtype_bytes(dtype) > 4 ? 17 : 9;
    weir_elems_to_f64(dtype, from, values, n);
    for (size_t j = 0; j < n; j++) {
        (void)weir_buf_puts(out, j > 0 ? "," : ":[");
        put_number(out, values[j], n_digits);
    }
}

static void put_integers(enum weir_dtype dtype, const void *from, size_t n,
                         struct weir_arena *arena, struct weir_buf *out)
{
    int64_t *values = WEIR_ARENA_ARRAY(arena, n + 1, int64_t);
    weir_elems_to_i64(dtype, from, values, n);
    for (size_t j = 0; j < n; j++) {
        (void)weir_buf_puts(out, j > 0 ? "," : ":[");
        (void)weir_buf_printf(out, dtype == WEIR_DTYPE_UINT64 ? "%llu" : "%lld",
                              (long long)values[j]);
    }
}

/* Texts and complex numbers have no values here. */
static void put_values(const struct row_form *form, struct weir_tensor *const *outputs, int64_t i,
                       struct weir_arena *arena, struct weir_buf *out)
{
    (void)weir_buf_puts(out, ",\"outputs\":{");
    for (size_t k = 0; k < form->signature->n_outputs; k++) {
        const struct weir_tensor *tensor = outputs[k];
        enum weir_dtype_class class = weir_dtype_class(tensor->dtype);
        size_t n = row_elems(form->signature, tensor);
        (void)weir_buf_puts(out, k > 0 ? "," : "");
        put_json_text(out, form->signature->outputs[k].name);
        if (class == WEIR_DTYPE_IS_STRING || class == WEIR_DTYPE_IS_COMPLEX) {
            (void)weir_buf_puts(out, ":null");
            continue;
        }
        const char *from =
            (const char *)tensor->data + (size_t)i * n * weir_dtype_bytes(tensor->dtype);
        if (class == WEIR_DTYPE_IS_FLOAT) {
            put_floats(tensor->dtype, from, n, arena, out);
        } else {
            put_integers(tensor->dtype, from, n, arena, out);
        }
        (void)weir_buf_puts(out, n > 0 ? "]" : ":[]");
    }
    (void)weir_buf_puts(out, "}");
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void put_csv_text(struct weir_buf *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        (void)weir_buf_puts(out, text);
        return;
    }
    (void)weir_buf_puts(out, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        (void)weir_buf_puts(out, *at == '"' ? "\"" : "");
        (void)weir_buf_append(out, at, 1);
    }
    (void)weir_buf_puts(out, "\"");
}

static void put_csv_classes(const struct row_form *form, const struct infer_class *top, size_t n,
                            struct weir_buf *out)
{
    for (int64_t i = 0; i < form->n_top; i++) {
        if ((size_t)i >= n) {
            (void)weir_buf_puts(out, ",,,");
            continue;
        }
        (void)weir_buf_printf(out, ",%zu,", top[i].index);
        put_csv_text(out, top[i].label);
        (void)weir_buf_printf(out, ",%.6g", top[i].value);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

void row_write_head(const struct row_form *form, struct weir_buf *out)
{
    if (!form->is_csv) {
        return;
    }
    (void)weir_buf_puts(out, "file,class,label,probability");
    for (int64_t i = 2; i <= form->n_top; i++) {
        (void)weir_buf_printf(out, ",class_%lld,label_%lld,probability_%lld", (long long)i,
                              (long long)i, (long long)i);
    }
    (void)weir_buf_puts(out, ",error\n");
}

void row_write(const struct row_form *form, const char *file, struct weir_tensor *const *outputs,
               int64_t i, struct weir_arena *arena, struct weir_buf *out)
{
    const struct infer infer = {.signature = form->signature, .arena = arena, .out = outputs};
    struct infer_class *top = NULL;
    size_t n = is_classifier(form->signature)
                   ? infer_top(&infer, 0, i, true, (size_t)form->n_top, &top)
                   : 0;
    if (form->is_csv) {
        put_csv_text(out, file);
        put_csv_classes(form, top, n, out);
        (void)weir_buf_puts(out, ",\n");
        return;
    }
    (void)weir_buf_puts(out, "{\"file\":");
    put_json_text(out, file);
    put_classes(form, top, n, out);
    if (form->has_values || !is_classifier(form->signature)) {
        put_values(form, outputs, i, arena, out);
    }
    (void)weir_buf_puts(out, "}\n");
}

void row_write_error(const struct row_form *form, const char *file, const char *message,
                     struct weir_buf *out)
{
    char line[WEIR_ERROR_MESSAGE_BYTES];
    (void)snprintf(line, sizeof line, "%s", message[0] != '\0' ? message : "it cannot be read");
    for (char *at = line; *at != '\0'; at++) {
        *at = *at == '\n' || *at == '\r' ? ' ' : *at;
    }
    if (form->is_csv) {
        put_csv_text(out, file);
        put_csv_classes(form, NULL, 0, out);
        (void)weir_buf_puts(out, ",");
        put_csv_text(out, line);
        (void)weir_buf_puts(out, "\n");
        return;
    }
    (void)weir_buf_puts(out, "{\"file\":");
    put_json_text(out, file);
    (void)weir_buf_puts(out, ",\"error\":");
    put_json_text(out, line);
    (void)weir_buf_puts(out, "}\n");
}

/* ---- counting -------------------------------------------------------------------------------- */

/* An error is the last field of its record. */
static weir_status count_csv(const char *text, size_t len, int64_t *out_n, int64_t *out_n_errors,
                             struct weir_error *err)
{
    bool is_quoted = false;
    int64_t n = -1, n_errors = 0; /* the head is no row */
    for (size_t i = 0; i < len; i++) {
        is_quoted = text[i] == '"' ? !is_quoted : is_quoted;
        if (text[i] == '\n' && !is_quoted) {
            n_errors += n >= 0 && text[i - (i > 0)] != ',';
            n++;
        }
    }
    if (n < 0 || is_quoted || text[len - 1] != '\n') {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "it is cut off");
    }
    *out_n = n;
    *out_n_errors = n_errors;
    return WEIR_OK;
}

weir_status row_count(bool is_csv, const char *text, size_t len, int64_t *out_n,
                      int64_t *out_n_errors, struct weir_error *err)
{
    int64_t n = 0, n_errors = 0;
    if (is_csv) {
        return count_csv(text, len, out_n, out_n_errors, err);
    }
    for (size_t at = 0; at < len; n++) {
        json_t *row;
        const char *end = memchr(text + at, '\n', len - at);
        if (end == NULL) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "it is cut off");
        }
        size_t line_len = (size_t)(end - text) - at;
        WEIR_TRY(weir_json_parse(text + at, line_len, "a row", &row, err));
        n_errors += json_object_get(row, "error") != NULL;
        json_decref(row);
        at += line_len + 1;
    }
    *out_n = n;
    *out_n_errors = n_errors;
    return WEIR_OK;
}
