/*
 * Open Inference Protocol v2 over HTTP (github.com/kserve/open-inference-protocol), with Triton's
 * extensions of requests: binary tensors and classification. And pictures as bodies.
 */
#include "serve/protocol/protocol_private.h"

#include "serve/protocol/oip_tensor.h"
#include "serve/protocol/tensor_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOP_DEFAULT 5

/* ---- requests -------------------------------------------------------------------------------- */

struct reading {
    struct weir_json_scan scan;
    struct infer *infer;
    struct oip_raw raw;
    bool is_all_binary;                 /* parameters.binary_data_output */
    bool has_own_form[SERVE_PORTS_MAX]; /* the output says itself whether it is binary */
};

static weir_status read_request_parameters(struct reading *reading)
{
    struct weir_json_scan *scan = &reading->scan;
    const char *key;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, reading->infer->arena, &key)) {
        struct weir_json_number number;
        if (strcmp(key, "binary_data_output") == 0) {
            WEIR_TRY(weir_json_scan_bool(scan, &reading->is_all_binary));
        } else if (strcmp(key, "timeout") == 0) {
            WEIR_TRY(weir_json_scan_number(scan, true, &number));
            if (!number.is_integer || number.is_negative || number.magnitude > INT32_MAX) {
                return weir_json_scan_fail(scan, "timeout before it: a number of microseconds");
            }
            reading->infer->timeout_us = (int64_t)number.magnitude;
        } else if (strcmp(key, "sequence_id") == 0) { /* sent by clients that want one only */
            return weir_json_scan_fail(scan,
                                       "sequence_id before it: sequences are not supported, an "
                                       "answer depends on its own request alone");
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    return scan->status;
}

static weir_status read_inputs(struct reading *reading)
{
    struct weir_json_scan *scan = &reading->scan;
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    while (weir_json_scan_element(scan)) {
        struct oip_tensor tensor;
        size_t i_input;
        WEIR_TRY(oip_tensor_read(scan, reading->infer->arena, &reading->raw, &tensor));
        weir_status status = infer_find_input(reading->infer, tensor.name, &i_input, scan->err);
        if (status != WEIR_OK) {
            weir_tensor_release(tensor.tensor);
            return status;
        }
        WEIR_TRY(infer_set_input(reading->infer, i_input, tensor.tensor, scan->err));
    }
    return scan->status;
}

static weir_status read_output_parameters(struct reading *reading, struct infer_output *output,
                                          bool *has_own_form)
{
    struct weir_json_scan *scan = &reading->scan;
    const char *key;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, reading->infer->arena, &key)) {
        struct weir_json_number number;
        if (strcmp(key, "binary_data") == 0) {
            WEIR_TRY(weir_json_scan_bool(scan, &output->is_binary));
            *has_own_form = true;
        } else if (strcmp(key, "classification") == 0) {
            WEIR_TRY(weir_json_scan_number(scan, true, &number));
            if (!number.is_integer || number.is_negative || number.magnitude > INT32_MAX) {
                return weir_json_scan_fail(scan, "classification before it: a number of classes");
            }
            output->n_classes = (int64_t)number.magnitude;
        } else if (strncmp(key, "shared_memory", 13) == 0) {
            return weir_json_scan_fail(scan, "no shared memory: tensors are in the answer");
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    return scan->status;
}

static weir_status read_output(struct reading *reading)
{
    struct weir_json_scan *scan = &reading->scan;
    struct infer *infer = reading->infer;
    struct infer_output output = {0};
    bool has_own_form = false;
    const char *key;
    struct weir_json_text name = {0};
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, infer->arena, &key)) {
        if (strcmp(key, "name") == 0) {
            WEIR_TRY(weir_json_scan_text(scan, infer->arena, &name));
        } else if (strcmp(key, "parameters") == 0) {
            WEIR_TRY(read_output_parameters(reading, &output, &has_own_form));
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    WEIR_TRY(scan->status);
    WEIR_TRY(
        infer_find_output(infer, name.bytes != NULL ? name.bytes : "", &output.i_port, scan->err));
    for (size_t i = 0; i < infer->n_outputs; i++) {
        if (infer->outputs[i].i_port == output.i_port) {
            return weir_error_set(scan->err, WEIR_ERR_INVALID, "output '%.80s' is asked for twice",
                                  name.bytes);
        }
    }
    reading->has_own_form[infer->n_outputs] = has_own_form;
    infer->outputs[infer->n_outputs++] = output;
    return WEIR_OK;
}

static weir_status read_outputs(struct reading *reading)
{
    WEIR_TRY(weir_json_scan_enter(&reading->scan, '['));
    while (weir_json_scan_element(&reading->scan)) {
        WEIR_TRY(read_output(reading));
    }
    return reading->scan.status;
}

static weir_status read_members(struct reading *reading)
{
    struct weir_json_scan *scan = &reading->scan;
    struct weir_json_text text;
    const char *key;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, reading->infer->arena, &key)) {
        if (strcmp(key, "inputs") == 0) {
            WEIR_TRY(read_inputs(reading));
        } else if (strcmp(key, "outputs") == 0) {
            WEIR_TRY(read_outputs(reading));
        } else if (strcmp(key, "parameters") == 0) {
            WEIR_TRY(read_request_parameters(reading));
        } else if (strcmp(key, "id") == 0) {
            WEIR_TRY(weir_json_scan_text(scan, reading->infer->arena, &text));
            reading->infer->id = text.bytes;
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    return weir_json_scan_end(scan);
}

static weir_status read_json(const struct protocol_request *request, struct infer *infer,
                             struct weir_error *err)
{
    WEIR_TRY(protocol_check_json(request, err));
    size_t json_len = request->json_bytes >= 0 ? (size_t)request->json_bytes : request->body_len;
    struct reading reading = {
        .infer = infer,
        .raw = {.at = request->body + json_len, .left = request->body_len - json_len}};
    weir_json_scan_init(&reading.scan, request->body, json_len, err);
    WEIR_TRY(read_members(&reading));
    if (reading.raw.left > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu bytes behind the JSON belong to no input",
                              reading.raw.left);
    }
    WEIR_TRY(infer_check(infer, err));
    for (size_t i = 0; i < infer->n_outputs; i++) {
        if (!reading.has_own_form[i]) {
            infer->outputs[i].is_binary = reading.is_all_binary;
        }
    }
    return WEIR_OK;
}

static weir_status read_infer(const struct protocol_request *request, struct infer *infer,
                              struct weir_error *err)
{
    if (!protocol_is_picture(request)) {
        return read_json(request, infer, err);
    }
    infer->n_top = request->n_top > 0 ? request->n_top : TOP_DEFAULT;
    WEIR_TRY(protocol_read_picture(request->body, request->body_len, infer, err));
    return infer_check(infer, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool set_string(struct weir_tensor_string *string, const char *text, size_t len)
{
    string->bytes = malloc(len);
    if (string->bytes == NULL) {
        return false;
    }
    memcpy(string->bytes, text, len);
    string->len = len;
    return true;
}

/* The highest classes of each row, as Triton writes them: "0.970000:3:cat". */
static bool make_classes(const struct infer *infer, const struct infer_output *output,
                         struct weir_tensor **out)
{
    bool is_batched = infer->signature->is_batched;
    int64_t n_rows = is_batched ? infer->n_rows : 1;
    struct infer_class *classes = NULL;
    size_t n = infer_top(infer, output->i_port, 0, false, (size_t)output->n_classes, &classes);
    const int64_t dims[] = {n_rows, (int64_t)n};
    if (weir_tensor_create(WEIR_DTYPE_STRING, is_batched ? 2 : 1, is_batched ? dims : dims + 1, out,
                           NULL) != WEIR_OK) {
        return false;
    }
    struct weir_tensor_string *strings = (*out)->data;
    bool is_ok = true;
    for (int64_t i = 0; i < n_rows && is_ok; i++) {
        n = infer_top(infer, output->i_port, i, false, n, &classes);
        for (size_t k = 0; k < n && is_ok; k++) {
            char text[320];
            int len =
                snprintf(text, sizeof text, "%f:%zu%s%.250s", classes[k].value, classes[k].index,
                         classes[k].label[0] != '\0' ? ":" : "", classes[k].label);
            is_ok = set_string(&strings[(size_t)i * n + k], text,
                               (size_t)WEIR_MIN(len, (int)sizeof text - 1));
        }
    }
    return is_ok;
}

/* The outputs that are asked for, as they are written: a reference to each. False: no memory. */
static bool take_outputs(const struct infer *infer, struct weir_tensor **out)
{
    for (size_t i = 0; i < infer->n_outputs; i++) {
        const struct infer_output *output = &infer->outputs[i];
        if (output->n_classes == 0) {
            out[i] = weir_tensor_retain(infer->out[output->i_port]);
        } else if (!make_classes(infer, output, &out[i])) {
            return false;
        }
    }
    return true;
}

static bool is_binary(const struct infer_output *output, const struct weir_tensor *tensor)
{
    return output->is_binary && weir_dtype_class(tensor->dtype) != WEIR_DTYPE_IS_COMPLEX;
}

static void put_output(struct weir_buf *out, const struct infer *infer,
                       const struct infer_output *output, const struct weir_tensor *tensor)
{
    const char *datatype = signature_datatype(tensor->dtype);
    (void)weir_buf_puts(out, "{");
    protocol_put_member(out, "name", infer->signature->outputs[output->i_port].name);
    (void)weir_buf_puts(out, ",");
    protocol_put_member(out, "datatype", datatype != NULL ? datatype : "UNKNOWN");
    (void)weir_buf_puts(out, ",\"shape\":");
    protocol_put_shape(out, tensor->rank, tensor->dims);
    if (is_binary(output, tensor)) {
        (void)weir_buf_printf(out, ",\"parameters\":{\"binary_data_size\":%zu}}",
                              oip_raw_bytes(tensor));
    } else {
        (void)weir_buf_puts(out, ",\"data\":");
        tensor_json_put_flat(out, tensor, 0, tensor->n_elems);
        (void)weir_buf_puts(out, "}");
    }
}

/* What a picture shows: [{"label": "cat", "probability": 0.97}, …] */
static void put_labels(struct weir_buf *out, const struct infer *infer)
{
    struct infer_class *classes;
    size_t n = infer_top(infer, 0, 0, true, (size_t)infer->n_top, &classes);
    (void)weir_buf_puts(out, ",\"labels\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(out, i > 0 ? ",{" : "{");
        protocol_put_member(out, "label", classes[i].label);
        (void)weir_buf_printf(out, ",\"probability\":%.6g}", classes[i].value);
    }
    (void)weir_buf_puts(out, "]");
}

static bool has_labels(const struct infer *infer)
{
    const struct weir_signature *signature = infer->signature;
    return infer->is_picture && signature->n_labels > 0 &&
           (signature->output_kind == SIGNATURE_LOGITS ||
            signature->output_kind == SIGNATURE_PROBABILITIES);
}

static void put_json(struct weir_buf *out, const struct infer *infer,
                     struct weir_tensor *const *tensors)
{
    (void)weir_buf_puts(out, "{");
    protocol_put_member(out, "model_name", infer->model);
    (void)weir_buf_printf(out, ",\"model_version\":\"%" PRId64 "\"", infer->version);
    if (infer->id != NULL) {
        (void)weir_buf_puts(out, ",");
        protocol_put_member(out, "id", infer->id);
    }
    (void)weir_buf_puts(out, ",\"outputs\":[");
    for (size_t i = 0; i < infer->n_outputs; i++) {
        (void)weir_buf_puts(out, i > 0 ? "," : "");
        put_output(out, infer, &infer->outputs[i], tensors[i]);
    }
    (void)weir_buf_puts(out, "]");
    if (has_labels(infer)) {
        put_labels(out, infer);
    }
    (void)weir_buf_puts(out, "}");
}

static void write_infer(const struct infer *infer, struct protocol_answer *answer)
{
    struct weir_tensor *tensors[SERVE_PORTS_MAX] = {0};
    bool has_binary = false;
    if (!take_outputs(infer, tensors)) {
        answer->body.status = WEIR_ERR_NOMEM;
    }
    if (answer->body.status == WEIR_OK) {
        put_json(&answer->body, infer, tensors);
        size_t json_len = answer->body.len;
        for (size_t i = 0; i < infer->n_outputs; i++) {
            if (is_binary(&infer->outputs[i], tensors[i])) {
                oip_raw_write(&answer->body, tensors[i]);
                has_binary = true;
            }
        }
        if (has_binary) {
            answer->json_bytes = (int64_t)json_len;
            answer->content_type = "application/octet-stream";
        }
    }
    serve_tensors_release(tensors, infer->n_outputs);
}

/* ---- questions ------------------------------------------------------------------------------- */

static weir_status answer_ready(const struct protocol_request *request,
                                const struct protocol_state *state, struct protocol_answer *answer,
                                struct weir_error *err)
{
    (void)request;
    if (!state->is_ready) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no version is ready yet");
    }
    (void)weir_buf_puts(&answer->body, "{\"ready\":true}");
    return WEIR_OK;
}

static void put_ports(struct weir_buf *out, const char *key, const struct serve_port *ports,
                      size_t n)
{
    (void)weir_buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        const char *datatype = signature_datatype(ports[i].dtype);
        (void)weir_buf_puts(out, i > 0 ? ",{" : "{");
        protocol_put_member(out, "name", ports[i].name);
        (void)weir_buf_puts(out, ",");
        protocol_put_member(out, "datatype", datatype != NULL ? datatype : "UNKNOWN");
        (void)weir_buf_puts(out, ",\"shape\":");
        protocol_put_shape(out, WEIR_MAX(ports[i].rank, 0), ports[i].dims);
        (void)weir_buf_puts(out, "}");
    }
    (void)weir_buf_puts(out, "]");
}

static weir_status answer_model(const struct protocol_request *request,
                                const struct protocol_state *state, struct protocol_answer *answer,
                                struct weir_error *err)
{
    const struct version_row *row, *rows;
    struct weir_buf *out = &answer->body;
    size_t n;
    bool is_first = true;
    WEIR_TRY(protocol_ready_row(request, state, &row, err));
    WEIR_TRY(protocol_rows(request, state, &rows, &n, err));
    const struct weir_signature *signature = &row->version->signature;
    (void)weir_buf_puts(out, "{");
    protocol_put_member(out, "name", row->model);
    (void)weir_buf_puts(out, ",\"versions\":[");
    for (size_t i = 0; i < n; i++) {
        if (rows[i].version != NULL) {
            (void)weir_buf_printf(out, "%s\"%" PRId64 "\"", is_first ? "" : ",", rows[i].number);
            is_first = false;
        }
    }
    (void)weir_buf_printf(out, "],\"platform\":\"%s_%s\"",
                          signature->format == WEIR_MODEL_FORMAT_WEIR ? "weir" : "onnx",
                          signature->executor);
    put_ports(out, "inputs", signature->inputs, signature->n_inputs);
    put_ports(out, "outputs", signature->outputs, signature->n_outputs);
    (void)weir_buf_puts(out, "}");
    return WEIR_OK;
}

static weir_status answer_model_ready(const struct protocol_request *request,
                                      const struct protocol_state *state,
                                      struct protocol_answer *answer, struct weir_error *err)
{
    const struct version_row *row;
    WEIR_TRY(protocol_ready_row(request, state, &row, err));
    (void)weir_buf_puts(&answer->body, "{");
    protocol_put_member(&answer->body, "name", row->model);
    (void)weir_buf_puts(&answer->body, ",\"ready\":true}");
    return WEIR_OK;
}

#define SERVER                                                                                     \
    "{\"name\":\"weir\",\"version\":\"" WEIR_VERSION "\",\"extensions\":["                         \
    "\"binary_tensor_data\",\"classification\",\"model_repository\","                              \
    "\"model_configuration\",\"statistics\",\"parameters\"]}"

// clang-format off
static const struct protocol_route routes[] = {
    {.method = "GET", .pattern = "/v2", .says = SERVER},
    {.method = "GET", .pattern = "/v2/health/live", .says = "{\"live\":true}"},
    {.method = "GET", .pattern = "/v2/health/ready", .answer = answer_ready},
    {.method = "GET", .pattern = "/v2/models/{model}", .answer = answer_model},
    {.method = "GET", .pattern = "/v2/models/{model}/versions/{version}", .answer = answer_model},
    {.method = "GET", .pattern = "/v2/models/{model}/ready", .answer = answer_model_ready},
    {.method = "GET", .pattern = "/v2/models/{model}/versions/{version}/ready", .answer = answer_model_ready},
    {.method = "POST", .pattern = "/v2/models/{model}/infer", .read = read_infer, .write = write_infer},
    {.method = "POST", .pattern = "/v2/models/{model}/versions/{version}/infer", .read = read_infer, .write = write_infer},
};
// clang-format on

const struct protocol protocol_oip = {
    .name = "oip",
    .doc = "Open Inference Protocol v2 over HTTP: health, metadata, inference; binary tensors, "
           "classes, and pictures as bodies.",
    .routes = routes,
    .n_routes = WEIR_ARRAY_LEN(routes),
    .error = protocol_error_text,
};
