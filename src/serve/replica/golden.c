#include "serve/replica/golden.h"

#include "serve/protocol/oip_tensor.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

#define TOLERANCE_DEFAULT 1e-3 /* Of floats. */

/* A place among named ports; the reference is taken. */
static weir_status put(const struct serve_port *ports, size_t n_ports, struct oip_tensor *tensor,
                       struct weir_tensor **slots, struct weir_error *err)
{
    for (size_t i = 0; i < n_ports; i++) {
        if (strcmp(ports[i].name, tensor->name) == 0 && slots[i] == NULL) {
            slots[i] = tensor->tensor;
            return WEIR_OK;
        }
    }
    weir_tensor_release(tensor->tensor);
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "golden: the model has no '%.80s', or it is there "
                          "twice",
                          tensor->name);
}

static weir_status read_tensors(struct weir_json_scan *scan, struct weir_arena *arena,
                                const struct serve_port *ports, size_t n_ports,
                                struct weir_tensor **slots)
{
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    while (weir_json_scan_element(scan)) {
        struct oip_tensor tensor;
        WEIR_TRY(oip_tensor_read(scan, arena, NULL, &tensor));
        WEIR_TRY(put(ports, n_ports, &tensor, slots, scan->err));
    }
    return scan->status;
}

/* One case, whose tensors the caller releases. */
static weir_status read_case(struct weir_json_scan *scan, struct weir_arena *arena,
                             const struct serve_model *model, struct weir_tensor **in,
                             struct weir_tensor **expected, double *tolerance)
{
    const char *key;
    *tolerance = NAN; /* none is named */
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, arena, &key)) {
        struct weir_json_number number;
        if (strcmp(key, "inputs") == 0) {
            WEIR_TRY(read_tensors(scan, arena, model->inputs, model->n_inputs, in));
        } else if (strcmp(key, "outputs") == 0) {
            WEIR_TRY(read_tensors(scan, arena, model->outputs, model->n_outputs, expected));
        } else if (strcmp(key, "tolerance") == 0) {
            WEIR_TRY(weir_json_scan_number(scan, true, &number));
            *tolerance = number.value;
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    return scan->status;
}

/* Integers are the same to the last digit, if the case does not name a tolerance: the number of a
 * class, or what a key stands for, has no neighbours. */
static bool are_close(enum weir_dtype dtype, const void *is, const void *should, double tolerance,
                      double values[2])
{
    const bool is_float = weir_dtype_class(dtype) == WEIR_DTYPE_IS_FLOAT;
    weir_elems_to_f64(dtype, is, &values[0], 1);
    weir_elems_to_f64(dtype, should, &values[1], 1);
    if (memcmp(is, should, weir_dtype_bytes(dtype)) == 0 || (is_float && values[0] == values[1]) ||
        (isnan(values[0]) && isnan(values[1]))) {
        return true;
    }
    if (isnan(tolerance)) {
        tolerance = is_float ? TOLERANCE_DEFAULT : 0;
    }
    return tolerance > 0 && fabs(values[0] - values[1]) <= tolerance * (1 + fabs(values[1]));
}

static weir_status compare_values(const char *name, const struct weir_tensor *expected,
                                  const struct weir_tensor *out, double tolerance,
                                  struct weir_error *err)
{
    const size_t elem_bytes = weir_dtype_bytes(out->dtype);
    for (size_t i = 0; i < out->n_elems; i++) {
        const char *is = (const char *)out->data + i * elem_bytes;
        const char *should = (const char *)expected->data + i * elem_bytes;
        double values[2];
        if (!are_close(out->dtype, is, should, tolerance, values)) {
            int n_digits = weir_dtype_class(out->dtype) == WEIR_DTYPE_IS_FLOAT ? 6 : 17;
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "golden check: element %zu of '%.80s' is %.*g, expected %.*g%s",
                                  i, name, n_digits, values[0], n_digits, values[1],
                                  values[0] == values[1] ? " (they differ in the last digits)"
                                                         : "");
        }
    }
    return WEIR_OK;
}

static weir_status compare(const char *name, const struct weir_tensor *expected,
                           const struct weir_tensor *out, double tolerance, struct weir_error *err)
{
    char is[WEIR_TENSOR_TEXT_BYTES], should[WEIR_TENSOR_TEXT_BYTES];
    if (expected->dtype != out->dtype || expected->rank != out->rank ||
        memcmp(expected->dims, out->dims, (size_t)out->rank * sizeof *out->dims) != 0) {
        return weir_error_set(
            err, WEIR_ERR_CORRUPT, "golden check: '%.80s' is %s %s, expected %s %s", name,
            weir_dtype_name(out->dtype), weir_tensor_dims_text(out->rank, out->dims, is),
            weir_dtype_name(expected->dtype),
            weir_tensor_dims_text(expected->rank, expected->dims, should));
    }
    if (out->dtype == WEIR_DTYPE_STRING) {
        const struct weir_tensor_string *a = out->data, *b = expected->data;
        for (size_t i = 0; i < out->n_elems; i++) {
            if (a[i].len != b[i].len || memcmp(a[i].bytes, b[i].bytes, a[i].len) != 0) {
                return weir_error_set(err, WEIR_ERR_CORRUPT,
                                      "golden check: element %zu of '%.80s' differs", i, name);
            }
        }
        return WEIR_OK;
    }
    return compare_values(name, expected, out, tolerance, err);
}

static weir_status check_inputs(const struct serve_model *model, struct weir_tensor *const *in,
                                struct weir_error *err)
{
    for (size_t i = 0; i < model->n_inputs; i++) {
        if (in[i] == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "golden: input '%.80s' is missing",
                                  model->inputs[i].name);
        }
    }
    return WEIR_OK;
}

static weir_status run_and_compare(struct serve_model *model, struct weir_tensor *const *in,
                                   struct weir_tensor *const *expected, double tolerance,
                                   struct weir_error *err)
{
    struct weir_tensor *out[SERVE_PORTS_MAX] = {0};
    weir_status status = WEIR_OK;
    bool is_compared = false;
    WEIR_TRY(check_inputs(model, in, err));
    for (size_t i = 0; i < model->n_outputs; i++) {
        is_compared = is_compared || expected[i] != NULL;
    }
    if (!is_compared) {
        return weir_error_set(err, WEIR_ERR_INVALID, "golden: no output is expected");
    }
    WEIR_TRY(serve_model_run(model, in, out, err));
    for (size_t i = 0; i < model->n_outputs && status == WEIR_OK; i++) {
        if (expected[i] != NULL) {
            status = compare(model->outputs[i].name, expected[i], out[i], tolerance, err);
        }
    }
    serve_tensors_release(out, model->n_outputs);
    return status;
}

static weir_status check_case(struct weir_json_scan *scan, struct weir_arena *arena,
                              struct serve_model *model, struct weir_error *err)
{
    struct weir_tensor *in[SERVE_PORTS_MAX] = {0}, *expected[SERVE_PORTS_MAX] = {0};
    double tolerance;
    weir_status status = read_case(scan, arena, model, in, expected, &tolerance);
    if (status == WEIR_OK) {
        status = run_and_compare(model, in, expected, tolerance, err);
    }
    serve_tensors_release(in, SERVE_PORTS_MAX);
    serve_tensors_release(expected, SERVE_PORTS_MAX);
    return status;
}

static weir_status check_cases(struct weir_json_scan *scan, struct weir_arena *arena,
                               struct serve_model *model, struct weir_error *err)
{
    size_t n = 0;
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    while (weir_json_scan_element(scan)) {
        if (n++ == GOLDEN_CASES_MAX) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "golden: at most %d cases",
                                  GOLDEN_CASES_MAX);
        }
        if (check_case(scan, arena, model, err) != WEIR_OK) {
            return weir_error_prefix(err, "case %zu: ", n);
        }
    }
    WEIR_TRY(scan->status);
    return n > 0 ? WEIR_OK : weir_error_set(err, WEIR_ERR_INVALID, "golden: there is no case");
}

weir_status golden_check(struct serve_model *model, const char *text, size_t len,
                         struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_json_scan scan;
    weir_arena_init(&arena, 0);
    weir_json_scan_init(&scan, text, len, err);
    weir_status status = weir_json_scan_peek(&scan) == '[' ? check_cases(&scan, &arena, model, err)
                                                           : check_case(&scan, &arena, model, err);
    if (status == WEIR_OK) {
        status = weir_json_scan_end(&scan);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status golden_first(struct serve_model *model, const char *text, size_t len,
                         struct weir_tensor **in, struct weir_error *err)
{
    struct weir_tensor *expected[SERVE_PORTS_MAX] = {0};
    struct weir_arena arena;
    struct weir_json_scan scan;
    double tolerance;
    memset(in, 0, SERVE_PORTS_MAX * sizeof(struct weir_tensor *));
    weir_arena_init(&arena, 0);
    weir_json_scan_init(&scan, text, len, err);
    weir_status status = WEIR_OK;
    if (weir_json_scan_peek(&scan) == '[') {
        status = weir_json_scan_enter(&scan, '[');
        if (status == WEIR_OK && !weir_json_scan_element(&scan)) {
            status = weir_error_set(err, WEIR_ERR_INVALID, "golden: there is no case");
        }
    }
    if (status == WEIR_OK) {
        status = read_case(&scan, &arena, model, in, expected, &tolerance);
    }
    status = status == WEIR_OK ? check_inputs(model, in, err) : status;
    if (status != WEIR_OK) {
        serve_tensors_release(in, SERVE_PORTS_MAX);
    }
    serve_tensors_release(expected, SERVE_PORTS_MAX);
    weir_arena_fini(&arena);
    return status;
}
