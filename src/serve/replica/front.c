#include "serve/replica/front.h"
#include "serve/protocol/outputs.h"

#include "base/clock.h"
#include "http/http.h"
#include "serve/protocol/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TIMEOUT_DEFAULT_MS 30000
#define TIMEOUT_MAX_MS     ((int64_t)3600 * 1000)
#define BODY_DEFAULT_BYTES ((uint64_t)64 << 20)
#define BODIES_MAX_BYTES   ((uint64_t)256 << 20)
#define CONNECTIONS_MAX    16384
#define HANDLERS_DEFAULT   4
#define QUEUED_MAX         1024
#define LABELS_MAX         1000
#define METRICS_MAX_BYTES  ((size_t)16 << 20)

struct front {
    struct front_config config;
    struct weir_http_server *http;
    atomic_bool is_stopping;
    atomic_int_fast64_t n_running;
};

/** An inference under way: in the request's arena, kept in its state. */
struct call {
    struct batch_request request; /**< First: the batcher gives it back. */
    struct infer infer;
    struct version *version;
    const struct protocol *protocol;
    const struct protocol_route *route;
    struct weir_http_later *later;
    uint64_t read_ns; /**< How long the body took to become tensors. */
};

/* ---- answers --------------------------------------------------------------------------------- */

/* Takes the answer's memory. */
static void respond(struct weir_http_response *response, struct protocol_answer *answer)
{
    if (answer->body.status != WEIR_OK) {
        weir_http_response_errorf(response, answer->body.status,
                                  "the answer, of at most %zu MiB, could not be written: %s",
                                  answer->body.max_bytes >> 20,
                                  weir_status_text(answer->body.status));
        protocol_answer_fini(answer);
        return;
    }
    weir_http_response_buf(response, answer->http_status, answer->content_type, &answer->body);
    if (answer->json_bytes >= 0) {
        char text[24];
        (void)snprintf(text, sizeof text, "%" PRId64, answer->json_bytes);
        weir_http_response_header(response, "Inference-Header-Content-Length", text);
    }
    if (answer->http_status == 503) {
        weir_http_response_header(response, "Retry-After", "1");
    }
}

static void respond_error(struct weir_http_response *response, const struct protocol *protocol,
                          const struct weir_error *error)
{
    struct protocol_answer answer;
    protocol_answer_init(&answer);
    protocol_answer_error(protocol, error, &answer);
    respond(response, &answer);
}

/* ---- inference ------------------------------------------------------------------------------- */

static bool is_gone(const struct batch_request *request)
{
    return weir_http_later_is_gone(((const struct call *)request)->later);
}

static void on_done(struct batch_request *request)
{
    weir_http_later_resume(((struct call *)request)->later);
}

static int64_t header_number(const struct weir_http_request *http, const char *name,
                             int64_t fallback)
{
    const char *text = weir_http_request_header(http, name);
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return fallback;
    }
    long long value = strtoll(text, &end, 10);
    return *end == '\0' ? value : fallback;
}

static uint64_t deadline_of(const struct front *front, const struct weir_http_request *http,
                            const struct infer *infer)
{
    int64_t timeout_ms = header_number(http, "Weir-Timeout-Ms", front->config.timeout_ms);
    uint64_t timeout_ns =
        (uint64_t)WEIR_MAX((int64_t)0, WEIR_MIN(timeout_ms, TIMEOUT_MAX_MS)) * 1000000;
    if (infer->timeout_us > 0) {
        timeout_ns = WEIR_MIN(timeout_ns, (uint64_t)infer->timeout_us * 1000);
    }
    return weir_mono_ns() + timeout_ns;
}

static void end_call(struct front *front, struct call *call)
{
    for (size_t i = 0; i < call->infer.signature->n_outputs; i++) {
        weir_tensor_release(call->request.out[i]);
        call->request.out[i] = NULL;
    }
    infer_fini(&call->infer);
    version_unref(call->version);
    atomic_fetch_sub(&front->n_running, 1);
}

/* Where the time went, in ms, in the syntax of the header Server-Timing. */
static void put_times(struct weir_http_response *response, const struct call *call,
                      uint64_t write_ns)
{
    const struct batch_times *times = &call->request.times;

    const struct {
        const char *stage;
        uint64_t ns;
    } stages[] = {{"read", call->read_ns},      {"queue", times->queue_ns},
                  {"input", times->input_ns},   {"compute", times->infer_ns},
                  {"output", times->output_ns}, {"write", write_ns}};

    char text[256];
    size_t len = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(stages) && len < sizeof text; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s;dur=%.3f", i > 0 ? ", " : "",
                                stages[i].stage, 1e-6 * (double)stages[i].ns);
    }
    weir_http_response_header(response, "Weir-Times", text);
}

static void put_outputs(struct weir_http_response *response, const struct call *call)
{
    int class, score;
    if (outputs_bins(call->infer.signature, call->request.out[0], &class, &score)) {
        char text[32];
        (void)snprintf(text, sizeof text, "%d %d", class, score);
        weir_http_response_header(response, "Weir-Output", text);
    }
}

/* The model has computed, or will not. */
static void finish(struct front *front, struct call *call, struct weir_http_response *response)
{
    if (call->request.status == WEIR_OK) {
        struct protocol_answer answer;
        uint64_t began_ns = weir_mono_ns();
        protocol_answer_init(&answer);
        call->infer.out = call->request.out;
        call->route->write(&call->infer, &answer);
        respond(response, &answer);
        put_times(response, call, weir_mono_ns() - began_ns);
        put_outputs(response, call);
    } else {
        respond_error(response, call->protocol, &call->request.error);
    }
    char version[24];
    (void)snprintf(version, sizeof version, "%" PRId64, call->version->number);
    weir_http_response_header(response, "Weir-Model-Version", version);
    end_call(front, call);
}

static void submit(struct front *front, struct call *call, struct weir_http_request *http,
                   struct weir_http_response *response)
{
    call->request = (struct batch_request){.in = call->infer.in,
                                           .n_rows = call->infer.n_rows,
                                           .deadline_ns = deadline_of(front, http, &call->infer),
                                           .is_gone = is_gone,
                                           .done = on_done};
    http->state = call;
    call->later = weir_http_response_later(response);
    struct weir_error err;
    weir_status status = batcher_submit(call->version->batcher, &call->request, &err);
    if (status != WEIR_OK) {
        call->request.status = status;
        call->request.error = err;
        weir_http_later_resume(call->later);
    }
}

static void begin(struct front *front, const struct protocol_request *request,
                  const struct protocol *protocol, const struct protocol_route *route,
                  struct weir_http_request *http, struct weir_http_response *response)
{
    struct weir_error err;
    struct call *call = WEIR_ARENA_NEW(http->arena, struct call);
    weir_status status = versions_get(front->config.versions, request->model, request->version,
                                      &call->version, &err);
    if (status != WEIR_OK) {
        respond_error(response, protocol, &err);
        return;
    }
    call->protocol = protocol;
    call->route = route;
    call->infer = (struct infer){.model = call->version->model,
                                 .version = call->version->number,
                                 .signature = &call->version->signature,
                                 .arena = http->arena};
    atomic_fetch_add(&front->n_running, 1);
    uint64_t began_ns = weir_mono_ns();
    if (route->read(request, &call->infer, &err) != WEIR_OK) {
        respond_error(response, protocol, &err);
        end_call(front, call);
        return;
    }
    call->read_ns = weir_mono_ns() - began_ns;
    submit(front, call, http, response);
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool is_any_ready(const struct versions_view *view)
{
    for (size_t i = 0; i < view->n; i++) {
        if (view->rows[i].version != NULL) {
            return true;
        }
    }
    return false;
}

static void answer_question(struct front *front, const struct protocol_request *request,
                            const struct protocol *protocol, const struct protocol_route *route,
                            struct weir_http_response *response)
{
    struct versions_view view;
    struct protocol_answer answer;
    struct weir_error err;
    versions_view(front->config.versions, request->arena, &view);
    const struct protocol_state state = {.view = &view,
                                         .host = front->config.ops,
                                         .is_ready = is_any_ready(&view) &&
                                                     !atomic_load(&front->is_stopping)};
    protocol_answer_init(&answer);
    weir_status status = protocol_answer_question(route, request, &state, &answer, &err);
    versions_view_release(&view);
    if (status != WEIR_OK) {
        protocol_answer_error(protocol, &err, &answer);
    }
    respond(response, &answer);
}

static void answer_metrics(struct front *front, struct weir_http_request *http,
                           struct weir_http_response *response)
{
    struct versions_view view;
    struct weir_buf out;
    weir_buf_init(&out, METRICS_MAX_BYTES);
    versions_view(front->config.versions, http->arena, &view);
    metrics_write(&view, http->arena, &out);
    versions_view_release(&view);
    weir_http_response_buf(response, 200, "text/plain; version=0.0.4", &out);
}

/* ---- the handler ----------------------------------------------------------------------------- */

/* As long for a wrong secret as for the right one; its length is no secret. */
static bool is_equal(const char *given, const char *wanted)
{
    size_t len = strlen(wanted);
    unsigned char differs = 0;
    if (strlen(given) != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        differs |= (unsigned char)(given[i] ^ wanted[i]);
    }
    return differs == 0;
}

static bool is_allowed(const struct front *front, const struct weir_http_request *http)
{
    const char *given = weir_http_request_header(http, "Authorization");
    bool is_health = http->n_segments == 3 && strcmp(http->segments[0], "v2") == 0 &&
                     strcmp(http->segments[1], "health") == 0;
    return front->config.secret == NULL || is_health ||
           (given != NULL && strncmp(given, "Bearer ", 7) == 0 &&
            is_equal(given + 7, front->config.secret));
}

static struct protocol_request request_of(struct weir_http_request *http)
{
    const char *top = weir_http_request_query(http, "top");
    return (struct protocol_request){
        .model = weir_http_request_header(http, "Weir-Deployment"),
        .content_type = weir_http_request_header(http, "Content-Type"),
        .json_bytes = header_number(http, "Inference-Header-Content-Length", -1),
        .n_top = top != NULL ? WEIR_MIN(strtoll(top, NULL, 10), (long long)LABELS_MAX) : 0,
        .body = http->body,
        .body_len = http->body_len,
        .arena = http->arena};
}

static void handle(void *context, struct weir_http_request *http,
                   struct weir_http_response *response)
{
    struct front *front = context;
    struct protocol_request request;
    const struct protocol *protocol;
    const struct protocol_route *route;
    struct weir_error err;
    if (http->state != NULL) {
        finish(front, http->state, response);
        return;
    }
    if (!is_allowed(front, http)) {
        weir_http_response_errorf(response, WEIR_ERR_UNAUTH,
                                  "this replica answers to its server's gateway only");
        return;
    }
    if (http->n_segments == 1 && strcmp(http->segments[0], "metrics") == 0) {
        answer_metrics(front, http, response);
        return;
    }
    request = request_of(http);
    weir_status status = protocol_find(http->method, http->segments, http->n_segments, &request,
                                       &protocol, &route, &err);
    bool is_plain = weir_http_request_check_plain(http, status == WEIR_OK ? &err : NULL) == WEIR_OK;
    if (status != WEIR_OK || !is_plain) {
        respond_error(response, protocol, &err);
        if (status == WEIR_OK) {
            weir_http_response_not_plain(response);
        }
    } else if (route->read == NULL) {
        answer_question(front, &request, protocol, route, response);
    } else {
        begin(front, &request, protocol, route, http, response);
    }
}

static void body_rule(void *context, const struct weir_http_request *http,
                      struct weir_http_body_rule *rule)
{
    (void)context;
    (void)http;
    rule->is_unpacked = true;
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static void front_free(struct front *front)
{
    free((char *)front->config.secret);
    free(front);
}

weir_status front_start(const struct front_config *config, struct front **out,
                        struct weir_error *err)
{
    struct front *front = weir_xalloc(sizeof *front);
    memset(front, 0, sizeof *front);
    front->config = *config;
    front->config.secret = config->secret != NULL ? weir_xstrdup(config->secret) : NULL;
    if (front->config.timeout_ms == 0) {
        front->config.timeout_ms = TIMEOUT_DEFAULT_MS;
    }
    atomic_init(&front->is_stopping, false);
    atomic_init(&front->n_running, 0);
    const struct weir_http_config http = {
        .listen = config->listen,
        .n_handlers = config->n_handlers > 0 ? config->n_handlers : HANDLERS_DEFAULT,
        .max_queued = QUEUED_MAX,
        .max_connections = CONNECTIONS_MAX,
        .max_connections_per_address = CONNECTIONS_MAX,
        .max_body_bytes = config->body_max_bytes > 0 ? config->body_max_bytes : BODY_DEFAULT_BYTES,
        .max_bodies_bytes = BODIES_MAX_BYTES,
        .body_rule = body_rule};
    weir_status status = weir_http_server_start(&http, handle, front, &front->http, err);
    if (status != WEIR_OK) {
        front_free(front);
        return status;
    }
    *out = front;
    return WEIR_OK;
}

int front_port(const struct front *front)
{
    return weir_http_server_port(front->http);
}

int64_t front_n_running(struct front *front)
{
    return atomic_load(&front->n_running);
}

void front_stop(struct front *front, int64_t deadline_ms)
{
    if (front == NULL) {
        return;
    }
    atomic_store(&front->is_stopping, true);
    weir_http_server_stop(front->http, deadline_ms);
    front_free(front);
}
