/*
 * TensorFlow Serving's REST API (tensorflow/serving, g3doc/api_rest.md), and with it KServe's v1,
 * whose predictions have the same form.
 */
#include "serve/protocol/rows.h"

#include <inttypes.h>
#include <string.h>

enum { FORM_ROWS, FORM_COLUMNS };

/* ---- predict --------------------------------------------------------------------------------- */

static weir_status check_signature_name(struct weir_json_scan *scan, struct weir_arena *arena)
{
    struct weir_json_text name;
    WEIR_TRY(weir_json_scan_text(scan, arena, &name));
    return name.len == 0 || strcmp(name.bytes, "serving_default") == 0
               ? WEIR_OK
               : weir_json_scan_fail(scan,
                                     "signature_name \"serving_default\" before it: there is no "
                                     "other");
}

static weir_status read_members(struct rows *rows, bool *has_tensors)
{
    struct weir_json_scan *scan = rows->scan;
    struct weir_arena *arena = rows->infer->arena;
    const char *key;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, arena, &key)) {
        bool is_rows = strcmp(key, "instances") == 0;
        if (is_rows || strcmp(key, "inputs") == 0) {
            if (*has_tensors) {
                return weir_json_scan_fail(scan, "\"instances\" or \"inputs\", not both");
            }
            *has_tensors = true;
            rows->infer->form = is_rows ? FORM_ROWS : FORM_COLUMNS;
            WEIR_TRY(is_rows ? rows_read_instances(rows) : rows_read_columns(rows));
        } else if (strcmp(key, "signature_name") == 0) {
            WEIR_TRY(check_signature_name(scan, arena));
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    return weir_json_scan_end(scan);
}

static weir_status read_predict(const struct protocol_request *request, struct infer *infer,
                                struct weir_error *err)
{
    struct weir_json_scan scan;
    struct rows rows;
    bool has_tensors = false;
    WEIR_TRY(protocol_check_json(request, err));
    weir_json_scan_init(&scan, request->body, request->body_len, err);
    rows_init(&rows, infer, &scan);
    weir_status status = read_members(&rows, &has_tensors);
    if (status == WEIR_OK && !has_tensors) {
        status = weir_error_set(err, WEIR_ERR_INVALID,
                                "the request has neither \"instances\" nor \"inputs\"");
    }
    if (status == WEIR_OK) {
        status = rows_take(&rows, err);
    }
    rows_fini(&rows);
    return status;
}

static void write_predict(const struct infer *infer, struct protocol_answer *answer)
{
    struct weir_buf *out = &answer->body;
    if (infer->form == FORM_ROWS) {
        (void)weir_buf_puts(out, "{\"predictions\":");
        rows_write_instances(infer, out);
    } else {
        (void)weir_buf_puts(out, "{\"outputs\":");
        rows_write_columns(infer, out);
    }
    (void)weir_buf_puts(out, "}");
}

/* ---- questions ------------------------------------------------------------------------------- */

static const char *state_text(enum version_state state)
{
    static const char *const texts[] = {"LOADING", "AVAILABLE", "END", "UNLOADING"};
    return texts[state];
}

static weir_status answer_status(const struct protocol_request *request,
                                 const struct protocol_state *state, struct protocol_answer *answer,
                                 struct weir_error *err)
{
    struct weir_buf *out = &answer->body;
    const struct version_row *rows;
    size_t n;
    bool is_ready = false;
    WEIR_TRY(protocol_rows(request, state, &rows, &n, err));
    (void)weir_buf_puts(out, "{\"model_version_status\":[");
    for (size_t i = 0; i < n; i++) {
        is_ready = is_ready || rows[i].version != NULL;
        (void)weir_buf_printf(out,
                              "%s{\"version\":\"%" PRId64 "\",\"state\":\"%s\",\"status\":{"
                              "\"error_code\":\"%s\",",
                              i > 0 ? "," : "", rows[i].number, state_text(rows[i].state),
                              rows[i].state == VERSION_FAILED ? "UNKNOWN" : "OK");
        protocol_put_member(out, "error_message", rows[i].reason);
        (void)weir_buf_puts(out, "}}");
    }
    /* What KServe's v1 answers at the same address. */
    (void)weir_buf_puts(out, "],");
    protocol_put_member(out, "name", rows[0].model);
    (void)weir_buf_printf(out, ",\"ready\":%s}", is_ready ? "true" : "false");
    return WEIR_OK;
}

static const char *tf_dtype(enum weir_dtype dtype)
{
    static const struct {
        enum weir_dtype dtype;
        const char *name;
    } names[] = {
        {WEIR_DTYPE_FLOAT, "DT_FLOAT"},   {WEIR_DTYPE_DOUBLE, "DT_DOUBLE"},
        {WEIR_DTYPE_INT8, "DT_INT8"},     {WEIR_DTYPE_INT16, "DT_INT16"},
        {WEIR_DTYPE_INT32, "DT_INT32"},   {WEIR_DTYPE_INT64, "DT_INT64"},
        {WEIR_DTYPE_UINT8, "DT_UINT8"},   {WEIR_DTYPE_UINT16, "DT_UINT16"},
        {WEIR_DTYPE_UINT32, "DT_UINT32"}, {WEIR_DTYPE_UINT64, "DT_UINT64"},
        {WEIR_DTYPE_BOOL, "DT_BOOL"},     {WEIR_DTYPE_STRING, "DT_STRING"},
        {WEIR_DTYPE_FLOAT16, "DT_HALF"},  {WEIR_DTYPE_BFLOAT16, "DT_BFLOAT16"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        if (names[i].dtype == dtype) {
            return names[i].name;
        }
    }
    return "DT_INVALID";
}

static void put_ports(struct weir_buf *out, const char *key, const struct serve_port *ports,
                      size_t n)
{
    (void)weir_buf_printf(out, "\"%s\":{", key);
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(out, i > 0 ? "," : "");
        json_put_text(out, ports[i].name, strlen(ports[i].name));
        (void)weir_buf_printf(out, ":{\"dtype\":\"%s\",\"tensor_shape\":{\"dim\":[",
                              tf_dtype(ports[i].dtype));
        for (int32_t k = 0; k < ports[i].rank; k++) {
            (void)weir_buf_printf(out, "%s{\"size\":\"%" PRId64 "\",\"name\":\"\"}",
                                  k > 0 ? "," : "", ports[i].dims[k]);
        }
        (void)weir_buf_printf(out, "],\"unknown_rank\":%s},", ports[i].rank < 0 ? "true" : "false");
        protocol_put_member(out, "name", ports[i].name);
        (void)weir_buf_puts(out, "}");
    }
    (void)weir_buf_puts(out, "}");
}

static weir_status answer_metadata(const struct protocol_request *request,
                                   const struct protocol_state *state,
                                   struct protocol_answer *answer, struct weir_error *err)
{
    struct weir_buf *out = &answer->body;
    const struct version_row *row;
    WEIR_TRY(protocol_ready_row(request, state, &row, err));
    const struct weir_signature *signature = &row->version->signature;
    (void)weir_buf_puts(out, "{\"model_spec\":{");
    protocol_put_member(out, "name", row->model);
    (void)weir_buf_printf(out,
                          ",\"signature_name\":\"\",\"version\":\"%" PRId64 "\"},"
                          "\"metadata\":{\"signature_def\":{\"signature_def\":{"
                          "\"serving_default\":{",
                          row->number);
    put_ports(out, "inputs", signature->inputs, signature->n_inputs);
    (void)weir_buf_puts(out, ",");
    put_ports(out, "outputs", signature->outputs, signature->n_outputs);
    (void)weir_buf_puts(out, ",\"method_name\":\"tensorflow/serving/predict\"}}}}}");
    return WEIR_OK;
}

#define EXAMPLES "requests with \"examples\" are not supported: send tensors to :predict"
#define LABELS   "version labels are not supported: name a version, or none"

#define MODEL   "/v1/models/{model}"
#define VERSION MODEL "/versions/{version}"

// clang-format off
static const struct protocol_route routes[] = {
    {.method = "GET", .pattern = MODEL, .answer = answer_status},
    {.method = "GET", .pattern = VERSION, .answer = answer_status},
    {.method = "GET", .pattern = MODEL "/metadata", .answer = answer_metadata},
    {.method = "GET", .pattern = VERSION "/metadata", .answer = answer_metadata},
    {.method = "POST", .pattern = MODEL ":predict", .read = read_predict, .write = write_predict},
    {.method = "POST", .pattern = VERSION ":predict", .read = read_predict, .write = write_predict},
    {.method = "POST", .pattern = MODEL ":classify", .lacks = EXAMPLES},
    {.method = "POST", .pattern = VERSION ":classify", .lacks = EXAMPLES},
    {.method = "POST", .pattern = MODEL ":regress", .lacks = EXAMPLES},
    {.method = "POST", .pattern = VERSION ":regress", .lacks = EXAMPLES},
    {.method = "GET", .pattern = MODEL "/labels/*", .lacks = LABELS},
    {.method = "POST", .pattern = MODEL "/labels/*", .lacks = LABELS},
};
// clang-format on

const struct protocol protocol_tensorflow = {
    .name = "tensorflow",
    .doc = "TensorFlow Serving's REST API: status, metadata, predict in row and column form.",
    .routes = routes,
    .n_routes = WEIR_ARRAY_LEN(routes),
    .error = protocol_error_text,
};
