#include "predict/outcome.h"
#include "predict/source.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "endpoint/source/http.h"
#include "host/address.h"
#include "http/http.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_WAIT_MS     30000
#define STOP_DEADLINE_MS   1000
#define N_HANDLERS         4
#define N_QUEUED           1024
#define IMPOSTOR_MAX_BYTES ((uint64_t)64 << 10)

#define MINUTE_MS 60000

/* Requests with a picture that could be no frame: of this minute, and of the one before. */
struct refusals {
    pthread_mutex_t lock;
    int64_t minute;
    size_t n, n_before;
    char why[SOURCE_WHY_BYTES];
};

/* Frames about which nothing was to be decided; a request may still wait for the answer. */
#define UNDECIDED_MAX 1024

struct source {
    struct source_config config;
    pthread_mutex_t undecided_lock;
    uint64_t undecided[UNDECIDED_MAX]; /**< Hashes of keys of the newest, in a ring. */
    size_t n_undecided;                /**< So far. */
    struct weir_http_server *server;
    struct refusals refusals;
    struct contact contact; /**< It listens: never lost. */
};

/* Lock held. */
static void turn(struct refusals *refusals)
{
    int64_t minute = weir_mono_ms() / MINUTE_MS;
    if (minute != refusals->minute) {
        refusals->n_before = minute == refusals->minute + 1 ? refusals->n : 0;
        refusals->n = 0;
        refusals->minute = minute;
    }
}

/* The caller is told, too; but a camera does not read what it is told. */
static void refuse(struct source *source, struct weir_http_response *response, weir_status status,
                   const char *why)
{
    struct refusals *refusals = &source->refusals;
    weir_http_response_errorf(response, status, "%s", why);
    pthread_mutex_lock(&refusals->lock);
    turn(refusals);
    bool is_first = refusals->n + refusals->n_before == 0;
    refusals->n++;
    (void)snprintf(refusals->why, sizeof refusals->why, "requests with pictures are refused: %s",
                   why);
    pthread_mutex_unlock(&refusals->lock);
    if (is_first) {
        weir_log(WEIR_LOG_WARN, "frames_ignored", WEIR_KV_STR("why", why));
    }
}

static size_t ignored(struct source *source, char *why)
{
    struct refusals *refusals = &source->refusals;
    pthread_mutex_lock(&refusals->lock);
    turn(refusals);
    size_t n = refusals->n + refusals->n_before;
    (void)snprintf(why, SOURCE_WHY_BYTES, "%s", n > 0 ? refusals->why : "");
    pthread_mutex_unlock(&refusals->lock);
    return n;
}

static const struct weir_source_http *options_of(const struct source_config *config)
{
    return config->spec->source.options;
}

/* Decisions wake the requests that wait for them, and 1/64 of the others. */
static uint64_t topic_of(const char *key)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, key);
    return (uint64_t)1 << (hash >> 58);
}

/* A frame is over about which nothing was to be decided: a request that waits is told so. */
static void note_undecided(struct source *source, const char *key)
{
    pthread_mutex_lock(&source->undecided_lock);
    source->undecided[source->n_undecided++ % UNDECIDED_MAX] = weir_hash_text(WEIR_HASH_BEGIN, key);
    pthread_mutex_unlock(&source->undecided_lock);
}

static bool is_undecided(struct source *source, const char *key)
{
    bool is_there = false;
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, key);
    pthread_mutex_lock(&source->undecided_lock);
    for (size_t i = 0; i < WEIR_MIN(source->n_undecided, (size_t)UNDECIDED_MAX); i++) {
        is_there = is_there || source->undecided[i] == hash;
    }
    pthread_mutex_unlock(&source->undecided_lock);
    return is_there;
}

/* What was decided about the frame; NULL: nothing yet. A new reference. */
static json_t *find_outcome(struct source *source, const struct frame *frame)
{
    json_t *outcome = outcome_find(source->config.outbox, frame);
    return outcome != NULL || !is_undecided(source, frame->key)
               ? outcome
               : json_pack("{s:s,s:[]}", "camera", frame->camera, "decisions");
}

static void on_durable(void *context, const struct frame *frame)
{
    struct source *source = context;
    if (frame->is_undecided) {
        note_undecided(source, frame->key);
    }
    weir_http_wake(source->server, topic_of(frame->key));
}

static bool is_admitted(const struct source *source, const struct weir_http_request *request)
{
    const char *token = options_of(&source->config)->token;
    const char *header = weir_http_request_header(request, "Authorization");
    char wanted[WEIR_SHA256_TEXT_BYTES], given[WEIR_SHA256_TEXT_BYTES];
    if (token == NULL) {
        return true;
    }
    if (header == NULL || strncmp(header, "Bearer ", 7) != 0) {
        return false;
    }
    /* Digests are compared, so that the time taken tells nothing about the token. */
    weir_sha256(token, strlen(token), wanted);
    weir_sha256(header + 7, strlen(header + 7), given);
    return strcmp(wanted, given) == 0;
}

static void answer_later(struct weir_http_response *response, const char *why)
{
    weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "%s", why);
    weir_http_response_header(response, "Retry-After", "1");
}

/* The frame belongs to the intake then. */
static weir_status put_frame(struct source *source, const struct weir_http_request *request,
                             struct frame *frame)
{
    frame->received_ns = weir_mono_ns();
    frame->received_ms = weir_time_ms();
    frame->on_durable = on_durable;
    frame->context = source;
    frame->n_bytes = request->body_len;
    frame->bytes = weir_xalloc(request->body_len + 1);
    memcpy(frame->bytes, request->body, request->body_len);
    return intake_put(source->config.intake, frame, 0);
}

static bool parse_number(const char *text, int64_t *out)
{
    char *end;
    size_t len = strlen(text);
    if (len == 0 || len > 18 || strspn(text, "0123456789") != len) {
        return false;
    }
    *out = strtoll(text, &end, 10);
    return true;
}

/* What the request names: …/{camera}/{number}, or …/{camera}?key=KEY. NULL: it names none. */
static struct frame *named_frame(const struct weir_http_request *request)
{
    int64_t number;
    const char *camera = request->segments[1], *key = weir_http_request_query(request, "key");
    if (!frame_camera_is_valid(camera)) {
        return NULL;
    }
    if (request->n_segments == 2) {
        return key != NULL && frame_key_is_valid(key) ? frame_create_keyed(camera, key, -1) : NULL;
    }
    return parse_number(request->segments[2], &number) ? frame_create(camera, number) : NULL;
}

static void answer_put(const struct source *source, weir_status status,
                       struct weir_http_response *response)
{
    struct intake_counts counts;
    intake_counts(source->config.intake, &counts);
    answer_later(response, status == WEIR_ERR_CANCELLED ? "the replica is stopping"
                           : counts.is_open             ? "the queue is full"
                                                        : "no model is deployed yet");
}

/* A key names one frame for good: what another camera saw is no answer to this one. */
static bool is_of_another(const json_t *decision, const char *camera)
{
    const char *its = json_string_value(json_object_get(decision, "camera"));
    return its != NULL && strcmp(its, camera) != 0;
}

static void handle_frame(struct source *source, struct weir_http_request *request,
                         struct weir_http_response *response)
{
    weir_status status = WEIR_ERR_EXISTS;
    struct frame *frame = named_frame(request);
    if (frame == NULL) {
        refuse(source, response, WEIR_ERR_INVALID,
               "/frames/{camera}/{number}: expected a name of 1 to 63 bytes and a whole number; or "
               "/frames/{camera}?key=KEY: 1 to 128 bytes without control characters");
        return;
    }
    uint64_t topic = topic_of(frame->key);
    json_t *decision = find_outcome(source, frame);
    if (decision == NULL && !request->is_expired && request->state == NULL) {
        status = put_frame(source, request, frame);
    }
    if (status != WEIR_OK) {
        frame_destroy(frame);
    }
    if (is_of_another(decision, request->segments[1])) {
        json_decref(decision);
        refuse(source, response, WEIR_ERR_CONFLICT,
               "/frames/{camera}?key=KEY: the key names a frame of another camera");
    } else if (decision != NULL) {
        weir_http_response_json(response, 200, decision);
    } else if (request->is_expired) {
        answer_later(response, "the decision is not durable yet: ask again");
    } else if (status == WEIR_OK || status == WEIR_ERR_EXISTS) {
        request->state = weir_arena_strdup(request->arena, "waiting");
        weir_http_response_wait(response, topic, ANSWER_WAIT_MS);
    } else {
        answer_put(source, status, response);
    }
}

static void handle_health(const struct source *source, struct weir_http_response *response)
{
    struct intake_counts counts;
    struct serving *serving = serving_slot_get(source->config.slot);
    intake_counts(source->config.intake, &counts);
    json_t *json =
        json_pack("{s:s,s:I,s:I,s:I}", "status", serving != NULL ? "ok" : "waiting", "queued",
                  (json_int_t)counts.n_queued, "in_hand", (json_int_t)counts.n_in_hand, "accepted",
                  (json_int_t)counts.n_accepted);
    if (serving != NULL) {
        json_object_set_new(json, "revision", json_integer(serving->revision));
        json_object_set_new(json, "model_version", json_integer(serving->model_version));
        json_object_set_new(json, "gallery_version",
                            json_integer(serving->gallery != NULL ? serving->gallery->version : 0));
    }
    serving_unref(serving);
    weir_http_response_json(response, 200, json);
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct source *source = context;
    bool is_get = strcmp(request->method, "GET") == 0;
    if (request->n_segments == 1 && strcmp(request->segments[0], "health") == 0 && is_get) {
        handle_health(source, response);
    } else if (!is_admitted(source, request)) {
        refuse(source, response, WEIR_ERR_UNAUTH,
               "the source's token is needed: Authorization: Bearer …");
    } else if ((request->n_segments == 2 || request->n_segments == 3) &&
               strcmp(request->segments[0], "frames") == 0 &&
               strcmp(request->method, "POST") == 0) {
        handle_frame(source, request, response);
    } else {
        weir_http_response_errorf(
            response, WEIR_ERR_NOT_FOUND,
            "there is POST /frames/{camera}/{number}, POST /frames/{camera}?key=KEY "
            "and GET /health");
    }
}

/* Impostors are told so without taking large pictures from them. */
static void body_rule(void *context, const struct weir_http_request *request,
                      struct weir_http_body_rule *rule)
{
    if (!is_admitted(context, request)) {
        rule->max_bytes = IMPOSTOR_MAX_BYTES;
    }
}

static weir_status write_endpoint(const struct source *source, struct weir_error *err)
{
    char path[4300], text[256];
    const char *listen = options_of(&source->config)->listen;
    const char *colon = strrchr(listen, ':');
    int n_host = colon != NULL ? (int)(colon - listen) : (int)strlen(listen);
    int n = snprintf(text, sizeof text, "{\"url\":\"http://%.*s:%d\"}\n", WEIR_MIN(n_host, 200),
                     listen, weir_http_server_port(source->server));
    (void)snprintf(path, sizeof path, "%s/endpoint.json", source->config.spec->host.dir);
    return weir_file_write_atomic(path, text, (size_t)n, 0600, err);
}

/* Of one that is tried the port of the document is another's: a free one, which endpoint.json names. */
static const char *address_of(const struct source_config *config, char out[256])
{
    const char *listen = options_of(config)->listen, *colon = strrchr(listen, ':');
    if (config->spec->sandbox_dir == NULL || colon == NULL) {
        return listen;
    }
    (void)snprintf(out, 256, "%.*s:0", (int)WEIR_MIN(colon - listen, 200), listen);
    return out;
}

static weir_status start(const struct source_config *config, struct source **out,
                         struct weir_error *err)
{
    char address[256];
    struct source *source = weir_xalloc(sizeof *source);
    *source = (struct source){.config = *config};
    pthread_mutex_init(&source->refusals.lock, NULL);
    pthread_mutex_init(&source->undecided_lock, NULL);
    contact_init(&source->contact);
    const struct weir_http_config http = {.listen = address_of(config, address),
                                          .n_handlers = N_HANDLERS,
                                          .n_io_threads = 1,
                                          .max_queued = N_QUEUED,
                                          .max_body_bytes = FRAME_MAX_BYTES,
                                          .body_rule = body_rule};
    weir_status status = weir_http_server_start(&http, handle, source, &source->server, err);
    if (status == WEIR_OK) {
        status = write_endpoint(source, err);
    }
    if (status != WEIR_OK) {
        weir_http_server_stop(source->server, 0);
        pthread_mutex_destroy(&source->refusals.lock);
        pthread_mutex_destroy(&source->undecided_lock);
        contact_fini(&source->contact);
        free(source);
        return status;
    }
    weir_log(WEIR_LOG_INFO, "source_listens", WEIR_KV_STR("address", options_of(config)->listen),
             WEIR_KV_INT("port", weir_http_server_port(source->server)));
    *out = source;
    return WEIR_OK;
}

static void close_source(struct source *source)
{
    (void)source; /* The closed intake refuses frames, and decisions are still answered. */
}

static void stop(struct source *source)
{
    weir_http_server_stop(source->server, STOP_DEADLINE_MS);
    pthread_mutex_destroy(&source->refusals.lock);
    pthread_mutex_destroy(&source->undecided_lock);
    contact_fini(&source->contact);
    free(source);
}

static json_t *status_of(struct source *source)
{
    char url[WEIR_HOST_URL_BYTES], listen[256];
    json_t *status = contact_to_json(&source->contact);
    weir_host_url(address_of(&source->config, listen), weir_http_server_port(source->server),
                  source->config.spec->host.server, url);
    json_object_set_new(status, "url", json_string(url));
    return status;
}

/* People wait behind it: what does not fit is refused, and they try again. */
const struct source_ops source_http = {
    .limits = {.max_queued = 64, .max_in_hand = 256, .max_bytes = (size_t)64 << 20},
    .start = start,
    .close = close_source,
    .stop = stop,
    .ignored = ignored,
    .status = status_of,
    .shares_itself = true,
};
