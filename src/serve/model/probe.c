#include "probe.h"

#include "sample.h"
#include "serve/replica/golden.h"
#include "serve/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SUM_TOLERANCE 1e-3
#define OTHER_RUNS    2

static const int64_t free_sizes[] = {1, 32, 224, 512, 2, 16, 64};

static const enum sample_kind kinds[] = {SAMPLE_ZEROS, SAMPLE_ONES, SAMPLE_TEXT_ZEROS,
                                         SAMPLE_SMALL};

/* ---- inputs ----------------------------------------------------------------------------------- */

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

static weir_status try_run(struct serve_model *model, struct weir_tensor **in,
                           struct weir_tensor **out, struct weir_error *err)
{
    weir_status status = serve_model_run(model, in, out, err);
    if (status != WEIR_OK) {
        serve_tensors_release(in, model->n_inputs);
    }
    return status;
}

static weir_status try_sample(struct serve_model *model, const struct weir_signature *signature,
                              const struct sample_size *size, enum sample_kind kind,
                              struct weir_tensor **in, struct weir_tensor **out,
                              struct weir_error *err)
{
    struct weir_rng rng;
    weir_status status = sample_make(signature, size, in, err);
    weir_rng_init(&rng, (uint64_t)size->free_size, (uint64_t)kind);
    for (size_t i = 0; status == WEIR_OK && i < signature->n_inputs; i++) {
        status = sample_fill(in[i], kind, &rng, err);
    }
    if (status != WEIR_OK) {
        serve_tensors_release(in, signature->n_inputs);
        return status;
    }
    return try_run(model, in, out, err);
}

/* Zeros of size 1, as most models take them. */
static weir_status try_plain(struct serve_model *model, const struct weir_signature *signature,
                             struct weir_tensor **in, struct weir_tensor **out,
                             struct weir_error *err)
{
    const struct sample_size plain = {.batch = 1, .free_size = free_sizes[0]};
    return try_sample(model, signature, &plain, SAMPLE_ZEROS, in, out, err);
}

/* What somebody says that the model can be run on. */
static weir_status try_golden(struct serve_model *model, const struct probe_golden *golden,
                              struct weir_tensor **in, struct weir_tensor **out,
                              struct weir_error *err)
{
    if (golden == NULL || golden->text == NULL) {
        return WEIR_ERR_NOT_FOUND;
    }
    WEIR_TRY(golden_first(model, golden->text, golden->len, in, err));
    return try_run(model, in, out, err);
}

/* Other sizes, and other values of each size. */
static weir_status try_others(struct serve_model *model, const struct weir_signature *signature,
                              struct weir_tensor **in, struct weir_tensor **out)
{
    struct weir_error err;
    size_t n = has_free(signature) ? 2 * WEIR_ARRAY_LEN(free_sizes) : 1;
    for (size_t i = 0; i < n * WEIR_ARRAY_LEN(kinds); i++) {
        const struct sample_size size = {
            .batch = 1, .free_size = free_sizes[i % n / 2], .only_last = i % n % 2 == 1};
        if (try_sample(model, signature, &size, kinds[i / n], in, out, &err) == WEIR_OK) {
            return WEIR_OK;
        }
    }
    return WEIR_ERR_INVALID;
}

void probe_widen(struct serve_model *model, const struct weir_signature *signature,
                 int64_t free_size, struct weir_tensor **in)
{
    const int64_t sizes[] = {free_size, 32, 16};
    struct weir_tensor *wide[SERVE_PORTS_MAX] = {NULL}, *out[SERVE_PORTS_MAX] = {NULL};
    struct weir_error err;
    for (size_t i = 0; has_free(signature) && i < WEIR_ARRAY_LEN(sizes); i++) {
        const struct sample_size size = {.batch = 2, .free_size = sizes[i]};
        if (try_sample(model, signature, &size, SAMPLE_SMALL, wide, out, &err) == WEIR_OK) {
            serve_tensors_release(out, signature->n_outputs);
            serve_tensors_release(in, signature->n_inputs);
            memcpy(in, wide, signature->n_inputs * sizeof(struct weir_tensor *));
            return;
        }
    }
}

weir_status probe_find(struct serve_model *model, const struct weir_signature *signature,
                       const struct probe_golden *golden, struct weir_tensor **in,
                       struct weir_tensor **out, struct weir_error *err)
{
    struct weir_error first = {0}, of_golden = {0};
    if (try_plain(model, signature, in, out, &first) == WEIR_OK) {
        return WEIR_OK;
    }
    weir_status status = try_golden(model, golden, in, out, &of_golden);
    if (status == WEIR_OK || try_others(model, signature, in, out) == WEIR_OK) {
        return WEIR_OK;
    }
    if (status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, of_golden.status,
                              "the model does not run on its golden input: %.700s",
                              of_golden.message);
    }
    return weir_error_set(
        err, first.status,
        "the model runs neither on zeros nor on ones or random numbers%s: %.600s; "
        "a request that it answers can be given as its golden input",
        has_free(signature) ? ", of sizes from 1 to 512 where one is free" : "", first.message);
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

static bool have_same_dims(struct weir_tensor *const *a, struct weir_tensor *const *b, size_t n)
{
    bool have = true;
    for (size_t i = 0; have && i < n; i++) {
        have = a[i]->rank == b[i]->rank &&
               memcmp(a[i]->dims, b[i]->dims, (size_t)a[i]->rank * sizeof *a[i]->dims) == 0;
    }
    return have;
}

/* Rows of all tensors; -1: they have not as many, or none. */
static int64_t rows_of(struct weir_tensor *const *tensors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tensors[i]->rank < 1 || tensors[i]->dims[0] != tensors[0]->dims[0]) {
            return -1;
        }
    }
    return n > 0 ? tensors[0]->dims[0] : -1;
}

/* Do the first dimensions of all outputs grow with the batch? Asked with every input twice. */
static bool grows(struct serve_model *model, struct weir_tensor *const *in,
                  struct weir_tensor *const *out)
{
    struct weir_tensor *twice[SERVE_PORTS_MAX] = {NULL}, *both[SERVE_PORTS_MAX] = {NULL};
    int64_t n = rows_of(in, model->n_inputs);
    weir_status status = n > 0 && rows_of(out, model->n_outputs) == n ? WEIR_OK : WEIR_ERR_INVALID;
    for (size_t i = 0; status == WEIR_OK && i < model->n_inputs; i++) {
        status = sample_repeat(in[i], 2, &twice[i], NULL);
    }
    if (status == WEIR_OK) {
        status = serve_model_run(model, twice, both, NULL);
    }
    bool does = status == WEIR_OK && rows_of(both, model->n_outputs) == 2 * n;
    serve_tensors_release(twice, model->n_inputs);
    serve_tensors_release(both, model->n_outputs);
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

static bool are_probabilities(const struct weir_tensor *tensor, int64_t n_rows)
{
    size_t n = n_rows > 0 ? tensor->n_elems / (size_t)n_rows : 0;
    if (tensor->dtype != WEIR_DTYPE_FLOAT || n < 2) {
        return false;
    }
    const float *values = tensor->data;
    for (int64_t row = 0; row < n_rows; row++, values += n) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            if (!(values[i] >= 0 && values[i] <= 1)) {
                return false;
            }
            sum += (double)values[i];
        }
        if (!(fabs(sum - 1) <= SUM_TOLERANCE)) {
            return false;
        }
    }
    return true;
}

/* Says in the signature why requests are not joined, where they could be by their shapes. */
static void tell_joins(struct serve_model *model, struct weir_signature *signature,
                       struct weir_arena *arena)
{
    if (signature->is_batched && !serve_model_joins(model, signature)) {
        signature->why =
            weir_arena_printf(arena, "%.600s; requests are not joined into batches: %s",
                              signature->why, model->rows_why);
    }
}

/* What an output's shape depends on but the batch: the dimensions that differ in runs of other sizes. One such
 * run is not enough: a picture of one pixel may be broadcast to the answer of a larger one. */
static void learn_free(struct serve_model *model, struct weir_signature *signature,
                       struct weir_tensor *const *in, const bool *is_unsaid)
{
    struct weir_tensor *other[SERVE_PORTS_MAX] = {NULL}, *out[SERVE_PORTS_MAX] = {NULL};
    struct weir_error err;
    size_t n_runs = 0;
    for (size_t i = 0; n_runs < OTHER_RUNS && i < WEIR_ARRAY_LEN(free_sizes); i++) {
        const struct sample_size size = {.batch = 1, .free_size = free_sizes[i]};
        if (try_sample(model, signature, &size, SAMPLE_ZEROS, other, out, &err) != WEIR_OK) {
            continue;
        }
        bool is_other = !have_same_dims(in, other, signature->n_inputs);
        n_runs += is_other;
        for (size_t k = 0; is_other && k < signature->n_outputs; k++) {
            struct serve_port *port = &signature->outputs[k];
            for (int32_t d = 0; is_unsaid[k] && d < port->rank && port->rank == out[k]->rank; d++) {
                port->dims[d] = port->dims[d] == out[k]->dims[d] ? port->dims[d] : -1;
            }
        }
        serve_tensors_release(other, signature->n_inputs);
        serve_tensors_release(out, signature->n_outputs);
    }
}

static weir_status learn(struct serve_model *model, struct weir_signature *signature,
                         struct weir_tensor *const *in, struct weir_tensor *const *out,
                         struct weir_arena *arena, struct weir_error *err)
{
    bool is_unsaid[SERVE_PORTS_MAX] = {false}, has_unsaid = false;
    for (size_t i = 0; i < signature->n_outputs; i++) {
        is_unsaid[i] = signature->outputs[i].rank < 0;
        has_unsaid = has_unsaid || is_unsaid[i];
        WEIR_TRY(learn_output(&signature->outputs[i], out[i], err));
    }
    if (has_unsaid && has_free(signature)) {
        learn_free(model, signature, in, is_unsaid);
    }
    signature->is_batched = inputs_are_free(signature) && grows(model, in, out);
    for (size_t i = 0; signature->is_batched && i < signature->n_outputs; i++) {
        signature->outputs[i].dims[0] = -1;
    }
    if (signature->output_kind == SIGNATURE_LOGITS && !signature->is_kind_given &&
        are_probabilities(out[0], signature->is_batched ? out[0]->dims[0] : 1)) {
        signature->output_kind = SIGNATURE_PROBABILITIES;
    }
    tell_joins(model, signature, arena);
    return weir_signature_check(signature, "signature", err);
}

weir_status weir_signature_probe(struct serve_model *model, struct weir_signature *signature,
                                 const struct probe_golden *golden, struct weir_arena *arena,
                                 struct weir_tensor **out_in, struct weir_error *err)
{
    struct weir_tensor *in[SERVE_PORTS_MAX] = {NULL}, *out[SERVE_PORTS_MAX] = {NULL};
    WEIR_TRY(probe_find(model, signature, golden, in, out, err));
    weir_status status = learn(model, signature, in, out, arena, err);
    serve_tensors_release(out, signature->n_outputs);
    if (status == WEIR_OK && out_in != NULL) {
        memcpy(out_in, in, signature->n_inputs * sizeof(struct weir_tensor *));
        return WEIR_OK;
    }
    serve_tensors_release(in, signature->n_inputs);
    return status;
}
