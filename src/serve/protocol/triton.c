/*
 * Triton's extensions beside inference: repository, configuration, statistics
 * (github.com/triton-inference-server/server, docs/protocol).
 */
#include "serve/protocol/protocol_private.h"

#include <inttypes.h>
#include <string.h>

/* ---- repository ------------------------------------------------------------------------------ */

static weir_status read_only_ready(const struct protocol_request *request, bool *out,
                                   struct weir_error *err)
{
    struct weir_json_scan scan;
    const char *key;
    *out = false;
    if (request->body_len == 0) {
        return WEIR_OK;
    }
    weir_json_scan_init(&scan, request->body, request->body_len, err);
    WEIR_TRY(weir_json_scan_enter(&scan, '{'));
    while (weir_json_scan_member(&scan, request->arena, &key)) {
        WEIR_TRY(strcmp(key, "ready") == 0 ? weir_json_scan_bool(&scan, out)
                                           : weir_json_scan_skip(&scan, NULL));
    }
    return weir_json_scan_end(&scan);
}

static const char *state_text(enum version_state state)
{
    static const char *const texts[] = {"LOADING", "READY", "UNAVAILABLE", "UNLOADING"};
    return texts[state];
}

static weir_status answer_index(const struct protocol_request *request,
                                const struct protocol_state *state, struct protocol_answer *answer,
                                struct weir_error *err)
{
    struct weir_buf *out = &answer->body;
    bool is_only_ready, is_first = true;
    WEIR_TRY(read_only_ready(request, &is_only_ready, err));
    (void)weir_buf_puts(out, "[");
    for (size_t i = 0; i < state->view->n; i++) {
        const struct version_row *row = &state->view->rows[i];
        if (is_only_ready && row->version == NULL) {
            continue;
        }
        (void)weir_buf_puts(out, is_first ? "{" : ",{");
        is_first = false;
        protocol_put_member(out, "name", row->model);
        (void)weir_buf_printf(out, ",\"version\":\"%" PRId64 "\",\"state\":\"%s\",", row->number,
                              state_text(row->state));
        protocol_put_member(out, "reason", row->reason);
        (void)weir_buf_puts(out, "}");
    }
    (void)weir_buf_puts(out, "]");
    return WEIR_OK;
}

static weir_status unsupported(const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "%s: which versions are served here is set by a deployment", what);
}

static weir_status answer_load(const struct protocol_request *request,
                               const struct protocol_state *state, struct protocol_answer *answer,
                               struct weir_error *err)
{
    if (state->host == NULL || state->host->load == NULL) {
        return unsupported("load", err);
    }
    (void)weir_buf_puts(&answer->body, "{}");
    return state->host->load(state->host->context, request->model, err);
}

static weir_status answer_unload(const struct protocol_request *request,
                                 const struct protocol_state *state, struct protocol_answer *answer,
                                 struct weir_error *err)
{
    if (state->host == NULL || state->host->unload == NULL) {
        return unsupported("unload", err);
    }
    (void)weir_buf_puts(&answer->body, "{}");
    return state->host->unload(state->host->context, request->model, err);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* "TYPE_FP32"; Triton calls texts strings here and BYTES elsewhere. */
static void put_type(struct weir_buf *out, enum weir_dtype dtype)
{
    const char *datatype = signature_datatype(dtype);
    (void)weir_buf_printf(out, "\"data_type\":\"TYPE_%s\"",
                          dtype == WEIR_DTYPE_STRING ? "STRING"
                          : datatype != NULL         ? datatype
                                                     : "INVALID");
}

/* Without the batch's dimension, where max_batch_size says that there is one. */
static void put_ports(struct weir_buf *out, const char *key, const struct serve_port *ports,
                      size_t n, bool is_batched)
{
    (void)weir_buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(out, i > 0 ? ",{" : "{");
        protocol_put_member(out, "name", ports[i].name);
        (void)weir_buf_puts(out, ",");
        put_type(out, ports[i].dtype);
        (void)weir_buf_puts(out, ",\"dims\":");
        protocol_put_shape(out, WEIR_MAX(ports[i].rank - is_batched, 0),
                           ports[i].dims + is_batched);
        (void)weir_buf_puts(out, "}");
    }
    (void)weir_buf_puts(out, "]");
}

static weir_status answer_config(const struct protocol_request *request,
                                 const struct protocol_state *state, struct protocol_answer *answer,
                                 struct weir_error *err)
{
    struct weir_buf *out = &answer->body;
    const struct version_row *row;
    struct batcher_rules rules;
    WEIR_TRY(protocol_ready_row(request, state, &row, err));
    const struct weir_signature *signature = &row->version->signature;
    batcher_get_rules(row->version->batcher, &rules);
    (void)weir_buf_puts(out, "{");
    protocol_put_member(out, "name", row->model);
    (void)weir_buf_printf(out, ",\"platform\":\"\",\"backend\":\"%s\",\"max_batch_size\":%" PRId64,
                          signature->executor, signature->is_batched ? rules.batch_max : 0);
    put_ports(out, "input", signature->inputs, signature->n_inputs, signature->is_batched);
    put_ports(out, "output", signature->outputs, signature->n_outputs, signature->is_batched);
    (void)weir_buf_printf(out,
                          ",\"version_policy\":{\"specific\":{\"versions\":[%" PRId64 "]}},"
                          "\"instance_group\":[{\"kind\":\"KIND_CPU\",\"count\":1}]",
                          row->number);
    if (row->version->joins) {
        (void)weir_buf_printf(out,
                              ",\"dynamic_batching\":{\"max_queue_delay_microseconds\":%" PRIu64
                              ",\"default_queue_policy\":{\"max_queue_size\":%zu}}",
                              rules.delay_ns / 1000, rules.queue_max);
    }
    (void)weir_buf_puts(out, "}");
    return WEIR_OK;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void put_count(struct weir_buf *out, const char *key, const struct batch_count *count)
{
    (void)weir_buf_printf(out, "\"%s\":{\"count\":%" PRIu64 ",\"ns\":%" PRIu64 "}", key, count->n,
                          count->ns);
}

static void put_batches(struct weir_buf *out, const struct batch_stats *stats)
{
    (void)weir_buf_puts(out, ",\"batch_stats\":[");
    for (size_t i = 0; i < stats->n_sizes; i++) {
        const struct batch_size_stats *size = &stats->sizes[i];
        (void)weir_buf_printf(out, "%s{\"batch_size\":%" PRId64 ",", i > 0 ? "," : "",
                              size->n_rows);
        put_count(out, "compute_input", &size->input);
        (void)weir_buf_puts(out, ",");
        put_count(out, "compute_infer", &size->infer);
        (void)weir_buf_puts(out, ",");
        put_count(out, "compute_output", &size->output);
        (void)weir_buf_puts(out, "}");
    }
    (void)weir_buf_puts(out, "]");
}

static void put_stats(struct weir_buf *out, const struct version_row *row,
                      const struct batch_stats *stats)
{
    static const struct batch_count none;

    const struct {
        const char *key;
        const struct batch_count *count;
    } counts[] = {{"success", &stats->success},
                  {"fail", &stats->failure},
                  {"queue", &stats->queue},
                  {"compute_input", &stats->input},
                  {"compute_infer", &stats->infer},
                  {"compute_output", &stats->output},
                  {"cache_hit", &none},
                  {"cache_miss", &none}};

    (void)weir_buf_puts(out, "{");
    protocol_put_member(out, "name", row->model);
    (void)weir_buf_printf(out,
                          ",\"version\":\"%" PRId64 "\",\"last_inference\":%" PRId64
                          ",\"inference_count\":%" PRIu64 ",\"execution_count\":%" PRIu64
                          ",\"inference_stats\":{",
                          row->number, stats->last_ms, stats->n_rows, stats->n_batches);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(counts); i++) {
        (void)weir_buf_puts(out, i > 0 ? "," : "");
        put_count(out, counts[i].key, counts[i].count);
    }
    (void)weir_buf_puts(out, "}");
    put_batches(out, stats);
    (void)weir_buf_puts(out, "}");
}

static weir_status answer_stats(const struct protocol_request *request,
                                const struct protocol_state *state, struct protocol_answer *answer,
                                struct weir_error *err)
{
    struct weir_buf *out = &answer->body;
    struct batch_stats *stats = WEIR_ARENA_NEW(request->arena, struct batch_stats);
    const struct version_row *rows = state->view->rows;
    size_t n = state->view->n;
    bool is_first = true;
    if (request->model != NULL) {
        WEIR_TRY(protocol_rows(request, state, &rows, &n, err));
    }
    (void)weir_buf_puts(out, "{\"model_stats\":[");
    for (size_t i = 0; i < n; i++) {
        if (rows[i].version != NULL) {
            batcher_stats(rows[i].version->batcher, stats);
            (void)weir_buf_puts(out, is_first ? "" : ",");
            is_first = false;
            put_stats(out, &rows[i], stats);
        }
    }
    (void)weir_buf_puts(out, "]}");
    return WEIR_OK;
}

#define LACKS "shared memory, trace, logging and generate are not supported"

#define MODEL   "/v2/models/{model}"
#define VERSION MODEL "/versions/{version}"

// clang-format off
static const struct protocol_route routes[] = {
    {.method = "POST", .pattern = "/v2/repository/index", .answer = answer_index},
    {.method = "POST", .pattern = "/v2/repository/models/{model}/load", .answer = answer_load},
    {.method = "POST", .pattern = "/v2/repository/models/{model}/unload", .answer = answer_unload},
    {.method = "GET", .pattern = MODEL "/config", .answer = answer_config},
    {.method = "GET", .pattern = VERSION "/config", .answer = answer_config},
    {.method = "GET", .pattern = "/v2/models/stats", .answer = answer_stats},
    {.method = "GET", .pattern = MODEL "/stats", .answer = answer_stats},
    {.method = "GET", .pattern = VERSION "/stats", .answer = answer_stats},
    {.method = "GET", .pattern = "/v2/systemsharedmemory/status", .says = "[]"},
    {.method = "GET", .pattern = "/v2/cudasharedmemory/status", .says = "[]"},
    {.method = "POST", .pattern = "/v2/systemsharedmemory/*", .lacks = LACKS},
    {.method = "POST", .pattern = "/v2/cudasharedmemory/*", .lacks = LACKS},
    {.method = "GET", .pattern = "/v2/trace/*", .lacks = LACKS},
    {.method = "POST", .pattern = "/v2/trace/*", .lacks = LACKS},
    {.method = "GET", .pattern = "/v2/logging", .lacks = LACKS},
    {.method = "POST", .pattern = "/v2/logging", .lacks = LACKS},
    {.method = "POST", .pattern = MODEL "/generate", .lacks = LACKS},
    {.method = "POST", .pattern = MODEL "/generate_stream", .lacks = LACKS},
};
// clang-format on

const struct protocol protocol_triton = {
    .name = "triton",
    .doc = "Triton's extensions: repository index, load and unload, configuration, statistics.",
    .routes = routes,
    .n_routes = WEIR_ARRAY_LEN(routes),
    .error = protocol_error_text,
};
