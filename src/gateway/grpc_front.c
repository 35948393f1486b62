/* inference.GRPCInferenceService: calls come in on the gRPC server's thread. Who calls is asked before the
 * message comes. A caller that is not remembered is looked up on a thread of our own, since that reads the
 * database. */
#include "gateway/grpc_front.h"
#include "gateway/front.h"
#include "gateway/oip.h"

#include "base/clock.h"
#include "grpc/grpc.h"
#include "http/http.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE           "/inference.GRPCInferenceService/"
#define UNKNOWN_MAX       1024 /* calls that wait to be looked up */
#define TENSORS_MAX_BYTES ((size_t)64 << 20)
#define ARENA_MAX_BYTES   ((size_t)96 << 20)
#define ANSWER_BYTES      (ANSWER_MAX_BYTES + (1 << 20))

struct front_call;

/* What a replica answers to GET, as the message. */
typedef weir_status (*write_answer_fn)(const char *body, size_t len, struct weir_buf *out,
                                       struct weir_error *err);

struct method {
    const char *path;
    bool is_open; /* needs no caller */
    void (*begin)(struct front_call *call);
};

struct front_call {
    struct gateway_call call;
    struct weir_grpc_call *grpc;
    struct grpc_front *front;
    const struct method *method;
    struct caller *caller; /* NULL: open */
    bool is_asked_for;     /* its message has not come yet */
    struct weir_arena arena;
    write_answer_fn write;   /* NULL: an inference's */
    struct front_call *next; /* of those to be looked up */
};

struct grpc_front {
    struct weir_gateway *gateway;
    struct weir_grpc_server *server;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct front_call *first, *last;
    size_t n_unknown;
    bool is_stopping, is_started;
};

/* ---- a call, and its end ----------------------------------------------------------------------------- */

static struct front_call *front_call_make(struct grpc_front *front, struct weir_grpc_call *grpc,
                                          const struct method *method)
{
    struct front_call *call = weir_xalloc(sizeof *call);
    memset(call, 0, sizeof *call);
    call->grpc = grpc;
    call->front = front;
    call->method = method;
    weir_arena_init(&call->arena, ARENA_MAX_BYTES);
    weir_buf_init(&call->call.body_out, 0);
    return call;
}

static void front_call_free(struct front_call *call)
{
    caller_unref(call->caller);
    gateway_call_fini(&call->call);
    weir_arena_fini(&call->arena);
    free(call);
}

static void answer(struct front_call *call, enum weir_grpc_code code, const char *message,
                   struct weir_buf *reply)
{
    weir_grpc_answer(call->grpc, code, message, reply);
    front_call_free(call);
}

static void answer_error(struct front_call *call, const struct weir_error *err)
{
    answer(call, weir_grpc_code_of(err->status), err->message, NULL);
}

/* A message of one number, if that is not its default. */
static void answer_flag(struct front_call *call, bool value)
{
    struct weir_buf reply;
    weir_buf_init(&reply, 64);
    if (value) {
        weir_protobuf_put_varint(&reply, 1, 1);
    }
    answer(call, WEIR_GRPC_OK, "", &reply);
}

static struct weir_protobuf message_of(const struct front_call *call)
{
    const struct weir_grpc_request *request = weir_grpc_call_request(call->grpc);
    return (struct weir_protobuf){request->message, request->message + request->len};
}

/* ---- what a replica answers --------------------------------------------------------------------------- */

static enum weir_grpc_code code_of_http(int http_status)
{
    static const struct {
        int http_status;
        enum weir_grpc_code code;
    } codes[] = {{404, WEIR_GRPC_NOT_FOUND},          {413, WEIR_GRPC_RESOURCE_EXHAUSTED},
                 {429, WEIR_GRPC_RESOURCE_EXHAUSTED}, {501, WEIR_GRPC_UNIMPLEMENTED},
                 {503, WEIR_GRPC_UNAVAILABLE},        {504, WEIR_GRPC_DEADLINE_EXCEEDED}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(codes); i++) {
        if (codes[i].http_status == http_status) {
            return codes[i].code;
        }
    }
    return http_status >= 400 && http_status < 500 ? WEIR_GRPC_INVALID_ARGUMENT
                                                   : WEIR_GRPC_INTERNAL;
}

/* {"error": "…"}, or {"error": {"message": "…"}} */
static void answer_refusal(struct front_call *call)
{
    const struct weir_buf *body = &call->call.body_out;
    json_t *root = json_loadb(body->data, body->len, 0, NULL);
    const json_t *error = json_object_get(root, "error");
    const char *text =
        json_string_value(json_is_object(error) ? json_object_get(error, "message") : error);
    char *message = weir_arena_strdup(&call->arena, text != NULL ? text : "the replica refused it");
    json_decref(root);
    answer(call, code_of_http(call->call.http_status), message, NULL);
}

/* In the answer's parameters: "weir_request", a text. */
static void put_receipt(struct weir_buf *reply, const char *receipt)
{
    size_t entry = weir_protobuf_begin(reply, 4);
    weir_protobuf_put_text(reply, 1, "weir_request");
    size_t value = weir_protobuf_begin(reply, 2);
    weir_protobuf_put_text(reply, 3, receipt);
    weir_protobuf_end(reply, value);
    weir_protobuf_end(reply, entry);
}

static void on_done(struct gateway_call *gateway_call)
{
    struct front_call *call = WEIR_CONTAINER_OF(gateway_call, struct front_call, call);
    struct weir_buf reply;
    struct weir_error err = {0};
    if (gateway_call->status != WEIR_OK) {
        answer_error(call, &gateway_call->error);
        return;
    }
    if (gateway_call->http_status != 200) {
        answer_refusal(call);
        return;
    }
    const struct weir_buf *body = &gateway_call->body_out;
    weir_buf_init(&reply, ANSWER_BYTES);
    weir_status status = call->write != NULL
                             ? call->write(body->data, body->len, &reply, &err)
                             : oip_write_infer(body->data, body->len,
                                               gateway_call->inference_header_bytes, &reply, &err);
    if (status != WEIR_OK) {
        weir_buf_fini(&reply);
        answer(call, WEIR_GRPC_INTERNAL, err.message, NULL);
        return;
    }
    if (gateway_call->receipt[0] != '\0') {
        put_receipt(&reply, gateway_call->receipt);
    }
    answer(call, WEIR_GRPC_OK, "", &reply);
}

static bool is_gone(const struct gateway_call *gateway_call)
{
    return weir_grpc_call_is_gone(
        WEIR_CONTAINER_OF((struct gateway_call *)gateway_call, struct front_call, call)->grpc);
}

static weir_status may_send(struct front_call *call, const struct oip_name *model,
                            bool *out_is_ready, struct weir_error *err)
{
    struct weir_gateway_table *table = weir_gateway_acquire(call->front->gateway);
    const struct weir_gateway_deployment *found;
    weir_status status = front_find(table, call->caller, model->name, model->version, &found, err);
    if (status == WEIR_OK) {
        *out_is_ready = front_is_ready(found, model->version);
    }
    weir_gateway_table_unref(table);
    return status;
}

static void send_on(struct front_call *call, const struct oip_name *model)
{
    const struct weir_grpc_request *request = weir_grpc_call_request(call->grpc);
    struct gateway_call *to = &call->call;
    to->deployment = model->name;
    to->version = model->version;
    to->path_before = weir_arena_printf(&call->arena, "/v2/models/%s",
                                        weir_http_percent_encode(&call->arena, model->name));
    to->done = on_done;
    to->is_gone = is_gone;
    if (request->deadline_ms > 0) {
        to->timeout_ms = WEIR_MAX(request->deadline_ms - weir_mono_ms(), (int64_t)1);
    }
    gateway_post(call->front->gateway, to);
}

static void begin_infer(struct front_call *call)
{
    struct oip_infer infer;
    struct weir_error err = {0};
    bool is_ready;
    if (oip_read_infer(message_of(call), TENSORS_MAX_BYTES, &call->arena, &infer, &err) !=
            WEIR_OK ||
        may_send(call, &infer.model, &is_ready, &err) != WEIR_OK) {
        answer_error(call, &err);
        return;
    }
    call->call.method = "POST";
    call->call.path_after = "/infer";
    call->call.key = weir_grpc_call_metadata(call->grpc, "weir-key");
    call->call.headers = weir_arena_printf(&call->arena,
                                           "Content-Type: application/octet-stream\r\n"
                                           "Inference-Header-Content-Length: %zu\r\n",
                                           infer.json_bytes);
    call->call.body = infer.pieces;
    call->call.n_body = infer.n_pieces;
    call->call.body_bytes = infer.body_bytes;
    call->call.is_inference = true;
    send_on(call, &infer.model);
}

/* GET path of the model that the message names. */
static void begin_get(struct front_call *call, const char *path, write_answer_fn write)
{
    struct oip_name model;
    struct weir_error err = {0};
    bool is_ready;
    if (oip_read_name(message_of(call), &call->arena, &model, &err) != WEIR_OK ||
        may_send(call, &model, &is_ready, &err) != WEIR_OK) {
        answer_error(call, &err);
        return;
    }
    call->write = write;
    call->call.method = "GET";
    call->call.path_after = path;
    call->call.key = "metadata";
    call->call.headers = "";
    send_on(call, &model);
}

static void begin_metadata(struct front_call *call)
{
    begin_get(call, "", oip_write_metadata);
}

static void begin_config(struct front_call *call)
{
    begin_get(call, "/config", oip_write_config);
}

/* Of the replica that is asked; each has its own. A call without a name wants those of all models. */
static void begin_statistics(struct front_call *call)
{
    struct oip_name model;
    struct weir_error err = {0};
    if (oip_read_name(message_of(call), &call->arena, &model, &err) == WEIR_OK &&
        model.name[0] == '\0') {
        answer(call, WEIR_GRPC_UNIMPLEMENTED,
               "the statistics of all models are not supported: name one, as RepositoryIndex lists "
               "them",
               NULL);
        return;
    }
    begin_get(call, "/stats", oip_write_statistics);
}

/* ---- what the gateway answers itself --------------------------------------------------------------------- */

static void begin_model_ready(struct front_call *call)
{
    struct oip_name model;
    struct weir_error err = {0};
    bool is_ready = false;
    if (oip_read_name(message_of(call), &call->arena, &model, &err) != WEIR_OK ||
        may_send(call, &model, &is_ready, &err) != WEIR_OK) {
        answer_error(call, &err);
    } else {
        answer_flag(call, is_ready);
    }
}

/* ServerLive, ServerReady; and SERVING of grpc.health.v1 is the same number */
static void begin_live(struct front_call *call)
{
    answer_flag(call, true);
}

static void begin_server_metadata(struct front_call *call)
{
    const char *version = call->front->gateway->config.version;
    struct weir_buf reply;
    weir_buf_init(&reply, 1024);
    weir_protobuf_put_text(&reply, 1, "weir");
    weir_protobuf_put_text(&reply, 2, version != NULL ? version : "");
    answer(call, WEIR_GRPC_OK, "", &reply);
}

static void put_index(struct weir_buf *out, const struct weir_gateway_deployment *d)
{
    for (size_t i = 0; i < d->n_versions; i++) {
        char version[24];
        size_t begun = weir_protobuf_begin(out, 1);
        weir_protobuf_put_text(out, 1, d->name);
        (void)snprintf(version, sizeof version, "%" PRId64, d->versions[i].version);
        weir_protobuf_put_text(out, 2, version);
        bool is_ready = false;
        for (size_t j = 0; j < d->n_replicas; j++) {
            is_ready = is_ready || (d->replicas[j].ready >> i & 1) != 0;
        }
        weir_protobuf_put_text(out, 3, is_ready ? "READY" : "UNAVAILABLE");
        weir_protobuf_end(out, begun);
    }
}

static void begin_index(struct front_call *call)
{
    struct weir_buf reply;
    struct weir_gateway_table *table = weir_gateway_acquire(call->front->gateway);
    weir_buf_init(&reply, (size_t)16 << 20);
    for (size_t i = 0; i < weir_gateway_table_count(table); i++) {
        const struct weir_gateway_deployment *d = weir_gateway_table_at(table, i);
        if (caller_may(call->caller, d->project)) {
            put_index(&reply, d);
        }
    }
    weir_gateway_table_unref(table);
    answer(call, WEIR_GRPC_OK, "", &reply);
}

/* ---- the beginning of a call ------------------------------------------------------------------------------ */

static const struct method methods[] = {
    {SERVICE "ServerLive", true, begin_live},
    {SERVICE "ServerReady", true, begin_live},
    {SERVICE "ServerMetadata", true, begin_server_metadata},
    {"/grpc.health.v1.Health/Check", true, begin_live},
    {SERVICE "ModelReady", false, begin_model_ready},
    {SERVICE "ModelMetadata", false, begin_metadata},
    {SERVICE "ModelConfig", false, begin_config},
    {SERVICE "ModelStatistics", false, begin_statistics},
    {SERVICE "ModelInfer", false, begin_infer},
    {SERVICE "RepositoryIndex", false, begin_index},
};

static const struct method *find_method(const char *path)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].path, path) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}

/* Leave it to the thread that may look into the database. */
static void look_up(struct front_call *call)
{
    struct grpc_front *front = call->front;
    pthread_mutex_lock(&front->lock);
    bool is_taken = front->n_unknown < UNKNOWN_MAX && !front->is_stopping;
    if (is_taken) {
        if (front->first == NULL) {
            front->first = call;
        } else {
            front->last->next = call;
        }
        front->last = call;
        front->n_unknown++;
        pthread_cond_signal(&front->ready);
    }
    pthread_mutex_unlock(&front->lock);
    if (!is_taken) {
        answer(call, WEIR_GRPC_UNAVAILABLE, "the server is busy, or stopping; try again", NULL);
    }
}

static void on_call(void *context, struct weir_grpc_call *grpc)
{
    struct grpc_front *front = context;
    const struct weir_grpc_request *request = weir_grpc_call_request(grpc);
    struct front_call *call = front_call_make(front, grpc, find_method(request->path));
    if (!call->method->is_open) {
        call->caller = front_remembered(front->gateway, front_token(request->authorization));
        if (call->caller == NULL) { /* forgotten since it was asked for */
            look_up(call);
            return;
        }
    }
    call->method->begin(call);
}

/* Who calls? Of strangers, and for methods that are not there, no message is taken. */
static enum weir_grpc_admission may_come(void *context, struct weir_grpc_call *grpc)
{
    struct grpc_front *front = context;
    const struct weir_grpc_request *request = weir_grpc_call_request(grpc);
    const struct method *method = find_method(request->path);
    if (method == NULL) {
        weir_grpc_answer(grpc, WEIR_GRPC_UNIMPLEMENTED,
                         "there is no such method: those of inference.GRPCInferenceService are "
                         "ServerLive, ServerReady, ServerMetadata, ModelReady, ModelMetadata, "
                         "ModelConfig, ModelStatistics, ModelInfer and RepositoryIndex",
                         NULL);
        return WEIR_GRPC_ASKS;
    }
    if (method->is_open) {
        return WEIR_GRPC_IS_OPEN;
    }
    struct caller *caller = front_remembered(front->gateway, front_token(request->authorization));
    if (caller != NULL) {
        caller_unref(caller);
        return WEIR_GRPC_ADMITS;
    }
    struct front_call *call = front_call_make(front, grpc, method);
    call->is_asked_for = true;
    look_up(call);
    return WEIR_GRPC_ASKS;
}

static void begin_unknown(struct front_call *call)
{
    const struct weir_grpc_request *request = weir_grpc_call_request(call->grpc);
    struct weir_error err = {0};
    if (front_caller(call->front->gateway, front_token(request->authorization), NULL, &call->caller,
                     &err) != WEIR_OK) {
        answer_error(call, &err);
    } else if (call->is_asked_for) {
        struct weir_grpc_call *grpc = call->grpc;
        front_call_free(call);
        weir_grpc_admit(grpc);
    } else {
        call->method->begin(call);
    }
}

static void *look_up_main(void *context)
{
    struct grpc_front *front = context;
    pthread_mutex_lock(&front->lock);
    for (;;) {
        while (front->first == NULL && !front->is_stopping) {
            pthread_cond_wait(&front->ready, &front->lock);
        }
        struct front_call *call = front->first;
        if (call == NULL) {
            break;
        }
        front->first = call->next;
        front->n_unknown--;
        pthread_mutex_unlock(&front->lock);
        begin_unknown(call);
        pthread_mutex_lock(&front->lock);
    }
    pthread_mutex_unlock(&front->lock);
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------------------------ */

static void end_thread(struct grpc_front *front)
{
    pthread_mutex_lock(&front->lock);
    front->is_stopping = true;
    pthread_cond_signal(&front->ready);
    pthread_mutex_unlock(&front->lock);
    if (front->is_started) {
        pthread_join(front->thread, NULL);
    }
}

static void destroy(struct grpc_front *front)
{
    pthread_mutex_destroy(&front->lock);
    pthread_cond_destroy(&front->ready);
    free(front);
}

void grpc_front_stop(struct grpc_front *front)
{
    if (front != NULL) {
        end_thread(front);
        weir_grpc_server_stop(front->server);
        destroy(front);
    }
}

weir_status weir_gateway_grpc_start(struct weir_gateway *gateway, const char *listen, int *out_port,
                                    struct weir_error *err)
{
    struct grpc_front *front = weir_xalloc(sizeof *front);
    memset(front, 0, sizeof *front);
    front->gateway = gateway;
    pthread_mutex_init(&front->lock, NULL);
    pthread_cond_init(&front->ready, NULL);
    int rc = pthread_create(&front->thread, NULL, look_up_main, front);
    front->is_started = rc == 0;
    const struct weir_grpc_config config = {
        .listen = listen, .max_message_bytes = TENSORS_MAX_BYTES + (1 << 20), .admit = may_come};
    weir_status status = rc != 0
                             ? weir_error_set_errno(err, rc, "cannot start a thread of the gateway")
                             : weir_grpc_server_start(&config, on_call, front, &front->server, err);
    if (status != WEIR_OK) {
        end_thread(front);
        destroy(front);
        return status;
    }
    gateway->grpc = front;
    *out_port = weir_grpc_server_port(front->server);
    return WEIR_OK;
}
