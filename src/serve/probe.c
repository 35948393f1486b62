#include "probe.h"

#include <math.h>
#include <string.h>

#define SUM_TOLERANCE 1e-3

static const int64_t free_sizes[] = {1, 32, 224};

/* ---- inputs ----------------------------------------------------------------------------------- */

static void set_picture_dims(const struct signature_picture *picture, int32_t rank, int64_t *dims)
{
    int64_t *at = dims + (rank - 3);
    int64_t c = picture->channels, h = picture->height, w = picture->width;
    memcpy(at, picture->is_nhwc ? (int64_t[]){h, w, c} : (int64_t[]){c, h, w}, 3 * sizeof *at);
}

static weir_status make_input(const struct weir_signature *signature, size_t i, int64_t batch,
                              int64_t free_size, struct weir_tensor **out, struct weir_error *err)
{
    const struct serve_port *port = &signature->inputs[i];
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    for (int32_t k = 0; k < port->rank; k++) {
        int64_t size = k == 0 ? batch : free_size;
        dims[k] = port->dims[k] >= 0 ? port->dims[k] : size;
    }
    if (signature->has_picture && signature->picture.i_input == i) {
        set_picture_dims(&signature->picture, port->rank, dims);
    }
    return weir_tensor_create(port->dtype, port->rank, dims, out, err);
}

static weir_status run_zeros(struct serve_model *model, const struct weir_signature *signature,
                             int64_t batch, int64_t free_size, struct weir_tensor **out,
                             struct weir_error *err)
{
    struct weir_tensor *in[SERVE_PORTS_MAX] = {NULL};
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < signature->n_inputs && status == WEIR_OK; i++) {
        status = make_input(signature, i, batch, free_size, &in[i], err);
    }
    if (status == WEIR_OK) {
        status = serve_model_run(model, in, out, err);
    }
    serve_tensors_release(in, signature->n_inputs);
    return status;
}

static bool has_free(const struct weir_signature *signature)
{
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct serve_port *port = &signature->inputs[i];
        for (int32_t k = 0; k < port->rank; k++) {
            if (port->dims[k] < 0) {
                return true;
            }
        }
    }
    return false;
}

/* The first size that the model takes; the first failure, if it takes none. */
static weir_status find_size(struct serve_model *model, const struct weir_signature *signature,
                             int64_t *out_size, struct weir_tensor **out, struct weir_error *err)
{
    struct weir_error first = {0};
    size_t n = has_free(signature) ? WEIR_ARRAY_LEN(free_sizes) : 1;
    for (size_t i = 0; i < n; i++) {
        struct weir_error failure = {0};
        weir_status status = run_zeros(model, signature, 1, free_sizes[i], out, &failure);
        if (status == WEIR_OK) {
            *out_size = free_sizes[i];
            return WEIR_OK;
        }
        if (i == 0) {
            first = failure;
        }
    }
    return weir_error_set(err, first.status, "the model does not run on zeros: %s", first.message);
}

/* ---- outputs ---------------------------------------------------------------------------------- */

/* What the run gave goes before what the file says; where that says "free", it stays so. */
static weir_status learn_output(struct serve_port *port, const struct weir_tensor *got,
                                struct weir_error *err)
{
    if (signature_datatype(got->dtype) == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "output \"%.80s\" is of %s: clients have no such type", port->name,
                              weir_dtype_name(got->dtype));
    }
    bool is_same_rank = port->rank == got->rank;
    for (int32_t k = 0; k < got->rank; k++) {
        if (!is_same_rank || port->dims[k] >= 0) {
            port->dims[k] = got->dims[k];
        }
    }
    port->dtype = got->dtype;
    port->rank = got->rank;
    return WEIR_OK;
}

static bool has_batch(const struct weir_tensor *tensor, int64_t n)
{
    return tensor->rank > 0 && tensor->dims[0] == n;
}

/* Do the first dimensions of all outputs grow with the batch? */
static bool grows(struct serve_model *model, const struct weir_signature *signature, int64_t size,
                  struct weir_tensor *const *ones)
{
    struct weir_tensor *twos[SERVE_PORTS_MAX] = {NULL};
    if (run_zeros(model, signature, 2, size, twos, NULL) != WEIR_OK) {
        return false;
    }
    bool does = true;
    for (size_t i = 0; i < signature->n_outputs; i++) {
        does = does && has_batch(ones[i], 1) && has_batch(twos[i], 2);
    }
    serve_tensors_release(twos, signature->n_outputs);
    return does;
}

static bool inputs_are_free(const struct weir_signature *signature)
{
    for (size_t i = 0; i < signature->n_inputs; i++) {
        if (signature->inputs[i].rank < 1 || signature->inputs[i].dims[0] >= 0) {
            return false;
        }
    }
    return signature->n_inputs > 0;
}

static bool are_probabilities(const struct weir_tensor *tensor)
{
    if (tensor->dtype != WEIR_DTYPE_FLOAT || tensor->n_elems < 2) {
        return false;
    }
    double sum = 0;
    for (size_t i = 0; i < tensor->n_elems; i++) {
        float value = ((const float *)tensor->data)[i];
        if (!(value >= 0 && value <= 1)) {
            return false;
        }
        sum += (double)value;
    }
    return fabs(sum - 1) <= SUM_TOLERANCE;
}

static weir_status learn(struct serve_model *model, struct weir_signature *signature, int64_t size,
                         struct weir_tensor *const *ones, struct weir_error *err)
{
    for (size_t i = 0; i < signature->n_outputs; i++) {
        WEIR_TRY(learn_output(&signature->outputs[i], ones[i], err));
    }
    signature->is_batched =
        !model->mixes_rows && inputs_are_free(signature) && grows(model, signature, size, ones);
    for (size_t i = 0; signature->is_batched && i < signature->n_outputs; i++) {
        signature->outputs[i].dims[0] = -1;
    }
    if (signature->output_kind == SIGNATURE_LOGITS && !signature->is_kind_given &&
        are_probabilities(ones[0])) {
        signature->output_kind = SIGNATURE_PROBABILITIES;
    }
    return weir_signature_check(signature, "signature", err);
}

weir_status weir_signature_probe(struct serve_model *model, struct weir_signature *signature,
                                 struct weir_error *err)
{
    struct weir_tensor *ones[SERVE_PORTS_MAX] = {NULL};
    int64_t size = 1;
    WEIR_TRY(find_size(model, signature, &size, ones, err));
    weir_status status = learn(model, signature, size, ones, err);
    serve_tensors_release(ones, signature->n_outputs);
    return status;
}
