#include "serve/infer.h"

#include "tensor/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void list_ports(const struct serve_port *ports, size_t n, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && len < size; i++) {
        len += (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? ", " : "", ports[i].name);
    }
}

static weir_status find_port(const struct infer *infer, const struct serve_port *ports, size_t n,
                             const char *noun, const char *name, size_t *out,
                             struct weir_error *err)
{
    char names[200];
    for (size_t i = 0; i < n; i++) {
        if (strcmp(ports[i].name, name) == 0) {
            *out = i;
            return WEIR_OK;
        }
    }
    list_ports(ports, n, names, sizeof names);
    return weir_error_set(err, WEIR_ERR_INVALID, "model %.80s has no %s '%.80s'; it has: %s",
                          infer->model, noun, name, names);
}

weir_status infer_find_input(const struct infer *infer, const char *name, size_t *out,
                             struct weir_error *err)
{
    return find_port(infer, infer->signature->inputs, infer->signature->n_inputs, "input", name,
                     out, err);
}

weir_status infer_find_output(const struct infer *infer, const char *name, size_t *out,
                              struct weir_error *err)
{
    return find_port(infer, infer->signature->outputs, infer->signature->n_outputs, "output", name,
                     out, err);
}

weir_status infer_set_input(struct infer *infer, size_t i_input, struct weir_tensor *tensor,
                            struct weir_error *err)
{
    const struct serve_port *port = &infer->signature->inputs[i_input];
    weir_status status;
    if (infer->in[i_input] != NULL) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "input '%.80s' is given twice", port->name);
    } else {
        status = serve_port_check(port, tensor, err);
    }
    if (status != WEIR_OK) {
        weir_tensor_release(tensor);
        return status;
    }
    infer->in[i_input] = tensor;
    return WEIR_OK;
}

weir_status infer_check(struct infer *infer, struct weir_error *err)
{
    const struct weir_signature *signature = infer->signature;
    infer->n_rows = 1;
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct weir_tensor *in = infer->in[i];
        if (in == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "input '%.80s' is missing",
                                  signature->inputs[i].name);
        }
        if (in->rank > 0 && in->dims[0] == 0 && signature->inputs[i].rank > 0 &&
            signature->inputs[i].dims[0] < 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "the request has no rows: input '%.80s' is empty",
                                  signature->inputs[i].name);
        }
        if (signature->is_batched && i > 0 && in->dims[0] != infer->n_rows) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "input '%.80s' has a batch of %" PRId64 ", '%.80s' of %" PRId64,
                                  signature->inputs[i].name, in->dims[0], signature->inputs[0].name,
                                  infer->n_rows);
        }
        if (signature->is_batched) {
            infer->n_rows = in->dims[0];
        }
    }
    if (infer->n_outputs == 0) {
        for (size_t i = 0; i < signature->n_outputs; i++) {
            infer->outputs[infer->n_outputs++] = (struct infer_output){.i_port = i};
        }
    }
    return WEIR_OK;
}

void infer_fini(struct infer *infer)
{
    serve_tensors_release(infer->in, SERVE_PORTS_MAX);
}

/* ---- classes --------------------------------------------------------------------------------- */

static void softmax(double *values, size_t n)
{
    double most = -(double)INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) {
        most = values[i] > most ? values[i] : most;
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = exp(values[i] - most);
        sum += values[i];
    }
    for (size_t i = 0; i < n; i++) {
        values[i] /= sum;
    }
}

/* Puts a class where it belongs among the n_max highest. NaN is below everything. */
static size_t insert(struct infer_class *classes, size_t n, size_t n_max, size_t index,
                     double value)
{
    size_t at = n;
    while (at > 0 && (value > classes[at - 1].value || isnan(classes[at - 1].value)) &&
           !isnan(value)) {
        at--;
    }
    if (at >= n_max) {
        return n;
    }
    n = WEIR_MIN(n + 1, n_max);
    memmove(&classes[at + 1], &classes[at], (n - 1 - at) * sizeof *classes);
    classes[at] = (struct infer_class){.index = index, .value = value, .label = ""};
    return n;
}

size_t infer_top(const struct infer *infer, size_t i_output, int64_t i_row, bool is_probability,
                 size_t n, struct infer_class **out)
{
    const struct weir_tensor *tensor = infer->out[i_output];
    const struct weir_signature *signature = infer->signature;
    enum weir_dtype_class class = weir_dtype_class(tensor->dtype);
    if (class == WEIR_DTYPE_IS_STRING || class == WEIR_DTYPE_IS_COMPLEX) {
        return 0;
    }
    size_t n_rows = signature->is_batched ? (size_t)WEIR_MAX(tensor->dims[0], (int64_t)1) : 1;
    size_t n_values = tensor->n_elems / n_rows, n_found = 0;
    n = WEIR_MIN(n, n_values);
    double *values = WEIR_ARENA_ARRAY(infer->arena, n_values + 1, double);
    *out = WEIR_ARENA_ARRAY(infer->arena, n + 1, struct infer_class);
    weir_elems_to_f64(tensor->dtype,
                      (const char *)tensor->data +
                          (size_t)i_row * n_values * weir_dtype_bytes(tensor->dtype),
                      values, n_values);
    if (is_probability && signature->output_kind == SIGNATURE_LOGITS) {
        softmax(values, n_values);
    }
    for (size_t i = 0; i < n_values; i++) {
        n_found = insert(*out, n_found, n, i, values[i]);
    }
    for (size_t i = 0; i < n_found; i++) {
        if ((*out)[i].index < signature->n_labels && i_output == 0) {
            (*out)[i].label = signature->labels[(*out)[i].index];
        }
    }
    return n_found;
}
