#include "sample.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ----------------------------------------------------------------------------------- */

static void set_picture_dims(const struct signature_picture *picture, int32_t rank, int64_t *dims)
{
    int64_t *at = dims + (rank - 3);
    int64_t c = picture->channels, h = picture->height, w = picture->width;
    memcpy(at, picture->is_nhwc ? (int64_t[]){h, w, c} : (int64_t[]){c, h, w}, 3 * sizeof *at);
}

static weir_status make_input(const struct weir_signature *signature, size_t i,
                              const struct sample_size *size, struct weir_tensor **out,
                              struct weir_error *err)
{
    const struct serve_port *port = &signature->inputs[i];
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    for (int32_t k = 0; k < port->rank; k++) {
        bool is_batch = k == 0 || (size->only_last && k < port->rank - 1);
        int64_t free_size = is_batch ? size->batch : size->free_size;
        dims[k] = port->dims[k] >= 0 ? port->dims[k] : free_size;
    }
    if (signature->has_picture && signature->picture.i_input == i) {
        set_picture_dims(&signature->picture, port->rank, dims);
    }
    return weir_tensor_create(port->dtype, port->rank, dims, out, err);
}

weir_status sample_make(const struct weir_signature *signature, const struct sample_size *size,
                        struct weir_tensor **out, struct weir_error *err)
{
    memset(out, 0, signature->n_inputs * sizeof(struct weir_tensor *));
    for (size_t i = 0; i < signature->n_inputs; i++) {
        weir_status status = make_input(signature, i, size, &out[i], err);
        if (status != WEIR_OK) {
            serve_tensors_release(out, signature->n_inputs);
            return status;
        }
    }
    return WEIR_OK;
}

static weir_status fill_texts(struct weir_tensor *tensor, enum sample_kind kind,
                              struct weir_rng *rng, struct weir_error *err)
{
    for (size_t i = 0; kind != SAMPLE_ZEROS && i < tensor->n_elems; i++) {
        bool is_zero =
            kind == SAMPLE_TEXT_ZEROS || (kind != SAMPLE_ONES && weir_rng_below(rng, 2) == 0);
        char *text = is_zero ? "0" : "1";
        struct weir_tensor_string one = {text, 1},
                                  *to = (struct weir_tensor_string *)tensor->data + i;
        WEIR_TRY(weir_elems_copy(WEIR_DTYPE_STRING, to, &one, 1));
    }
    (void)err;
    return WEIR_OK;
}

static double draw(enum weir_dtype dtype, enum sample_kind kind, struct weir_rng *rng)
{
    enum weir_dtype_class class = weir_dtype_class(dtype);
    if (kind == SAMPLE_ZEROS || kind == SAMPLE_TEXT_ZEROS || kind == SAMPLE_ONES) {
        return kind == SAMPLE_ONES;
    }
    if (class == WEIR_DTYPE_IS_FLOAT) {
        return weir_rng_normal(rng);
    }
    bool is_wide = kind == SAMPLE_WIDE && class != WEIR_DTYPE_IS_BOOL;
    return (double)weir_rng_below(rng, is_wide ? 100 : 2);
}

weir_status sample_fill(struct weir_tensor *tensor, enum sample_kind kind, struct weir_rng *rng,
                        struct weir_error *err)
{
    if (tensor->dtype == WEIR_DTYPE_STRING) {
        return fill_texts(tensor, kind, rng, err);
    }
    size_t bytes = weir_dtype_bytes(tensor->dtype);
    if (weir_dtype_class(tensor->dtype) == WEIR_DTYPE_IS_COMPLEX) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < tensor->n_elems; i++) {
        double value = draw(tensor->dtype, kind, rng);
        weir_elems_from_f64(tensor->dtype, &value, (char *)tensor->data + i * bytes, 1,
                            WEIR_OVERFLOW_SATURATES);
    }
    return WEIR_OK;
}

weir_status sample_like(struct weir_tensor *const *like, size_t n, enum sample_kind kind,
                        struct weir_rng *rng, struct weir_tensor **out, struct weir_error *err)
{
    memset(out, 0, n * sizeof(struct weir_tensor *));
    for (size_t i = 0; i < n; i++) {
        weir_status status =
            weir_tensor_create(like[i]->dtype, like[i]->rank, like[i]->dims, &out[i], err);
        status = status == WEIR_OK ? sample_fill(out[i], kind, rng, err) : status;
        if (status != WEIR_OK) {
            serve_tensors_release(out, n);
            return status;
        }
    }
    return WEIR_OK;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static weir_status put_rows(const struct weir_tensor *from, int64_t first, int64_t n_rows,
                            struct weir_tensor *to, int64_t at)
{
    size_t each = from->dims[0] > 0 ? from->n_elems / (size_t)from->dims[0] : 0;
    size_t bytes = weir_dtype_bytes(from->dtype) * each;
    return weir_elems_copy(from->dtype, (char *)to->data + (size_t)at * bytes,
                           (const char *)from->data + (size_t)first * bytes, each * (size_t)n_rows);
}

static weir_status make_rows(const struct weir_tensor *like, int64_t n_rows,
                             struct weir_tensor **out, struct weir_error *err)
{
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    memcpy(dims, like->dims, sizeof dims);
    dims[0] = n_rows;
    return weir_tensor_create(like->dtype, like->rank, dims, out, err);
}

static weir_status keep(weir_status status, struct weir_tensor **out)
{
    if (status != WEIR_OK) {
        weir_tensor_release(*out);
        *out = NULL;
    }
    return status;
}

weir_status sample_rows(const struct weir_tensor *from, int64_t first, int64_t n_rows,
                        struct weir_tensor **out, struct weir_error *err)
{
    WEIR_TRY(make_rows(from, n_rows, out, err));
    return keep(put_rows(from, first, n_rows, *out, 0), out);
}

weir_status sample_join(const struct weir_tensor *a, const struct weir_tensor *b,
                        struct weir_tensor **out, struct weir_error *err)
{
    WEIR_TRY(make_rows(a, a->dims[0] + b->dims[0], out, err));
    weir_status status = put_rows(a, 0, a->dims[0], *out, 0);
    return keep(status == WEIR_OK ? put_rows(b, 0, b->dims[0], *out, a->dims[0]) : status, out);
}

weir_status sample_repeat(const struct weir_tensor *from, int64_t n, struct weir_tensor **out,
                          struct weir_error *err)
{
    WEIR_TRY(make_rows(from, n * from->dims[0], out, err));
    weir_status status = WEIR_OK;
    for (int64_t i = 0; status == WEIR_OK && i < n; i++) {
        status = put_rows(from, 0, from->dims[0], *out, i * from->dims[0]);
    }
    return keep(status, out);
}

/* ---- comparing -------------------------------------------------------------------------------- */

static double text_distance(const struct weir_tensor *is, const struct weir_tensor *of)
{
    const struct weir_tensor_string *a = is->data, *b = of->data;
    size_t n_other = 0;
    for (size_t i = 0; i < of->n_elems; i++) {
        n_other +=
            a[i].len != b[i].len || (a[i].len > 0 && memcmp(a[i].bytes, b[i].bytes, a[i].len) != 0);
    }
    return of->n_elems > 0 ? sqrt((double)n_other / (double)of->n_elems) : 0;
}

double sample_distance(const struct weir_tensor *is, const struct weir_tensor *of)
{
    bool is_alike = is->dtype == of->dtype && is->rank == of->rank &&
                    memcmp(is->dims, of->dims, (size_t)of->rank * sizeof *of->dims) == 0;
    if (!is_alike) {
        return INFINITY;
    }
    if (of->dtype == WEIR_DTYPE_STRING) {
        return text_distance(is, of);
    }
    if (weir_dtype_class(of->dtype) == WEIR_DTYPE_IS_COMPLEX) {
        return 0;
    }
    double sum = 0, difference = 0;
    size_t bytes = weir_dtype_bytes(of->dtype), n_lost = 0;
    for (size_t i = 0; i < of->n_elems; i++) {
        double a, b;
        weir_elems_to_f64(is->dtype, (const char *)is->data + i * bytes, &a, 1);
        weir_elems_to_f64(of->dtype, (const char *)of->data + i * bytes, &b, 1);
        if (a == b || (isnan(a) && isnan(b))) {
            sum += isfinite(b) ? b * b : 0;
        } else if (!isfinite(a) || !isfinite(b)) {
            n_lost++;
        } else {
            sum += b * b;
            difference += (a - b) * (a - b);
        }
    }
    double parts = difference > 0 ? sqrt(difference / (sum > 0 ? sum : difference)) : 0;
    return n_lost > 0 ? 1 + parts : parts;
}
