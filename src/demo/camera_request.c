/** A camera that sends its frames to the replica over HTTP: for replicas on machines that do not see this one's folders. */
#include "demo/cameras.h"

#include "base/clock.h"
#include "base/uuid.h"
#include "client/client.h"

#include <string.h>

#define PORT_FIRST  20000
#define N_PORTS     10000
#define PATIENCE_MS 60000 /* a frame that is not taken for so long is lost */
#define PAUSE_MS    200

struct sender {
    struct weir_client *server, *replica; /* No replica yet: NULL. */
    struct weir_arena arena;
};

weir_status demo_requests_put(struct demo *demo, json_t *document, struct weir_error *err)
{
    json_t *pipeline;
    size_t i;
    struct weir_rng rng;
    char token[WEIR_UUID_BYTES];
    weir_rng_init(&rng, (uint64_t)weir_time_ms(), 0);
    weir_uuid_make(token);
    demo->token = weir_arena_strdup(demo->call->arena, token);
    const char *listen = weir_arena_printf(demo->call->arena, "0.0.0.0:%d",
                                           PORT_FIRST + (int)weir_rng_below(&rng, N_PORTS));
    json_array_foreach(json_object_get(document, "pipelines"), i, pipeline)
    {
        if (json_object_get(pipeline, "source") != NULL) {
            json_object_set_new(
                pipeline, "source",
                json_pack("{s:s,s:s,s:s}", "kind", "http", "listen", listen, "token", demo->token));
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "the example has no pipeline with a source");
}

/* ---- where the replica is -------------------------------------------------------------------- */

static char *find_url(const json_t *endpoints, struct weir_arena *arena)
{
    json_t *row;
    size_t i;
    json_array_foreach(json_object_get(endpoints, "items"), i, row)
    {
        const char *url = json_string_value(json_object_get(row, "url"));
        const char *state = json_string_value(json_object_get(row, "state"));
        if (url != NULL && state != NULL && strcmp(state, "connected") == 0) {
            return weir_arena_strdup(arena, url);
        }
    }
    return NULL;
}

static weir_status find_replica(struct camera *camera, struct weir_error *err)
{
    struct sender *sender = camera->sender;
    json_t *endpoints;
    const char *path =
        weir_client_path(&sender->arena, "/api/v1/sources?ion={}", &camera->demo->ion, 1);
    WEIR_TRY(weir_client_call(sender->server, "GET", path, NULL, &endpoints, err));
    const char *url = find_url(endpoints, &sender->arena);
    json_decref(endpoints);
    if (url == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no replica takes frames");
    }
    return weir_client_open(
        &(struct weir_client_config){.server = url, .token = camera->demo->token}, &sender->replica,
        err);
}

static void forget_replica(struct sender *sender)
{
    if (sender->replica != NULL) {
        weir_client_close(sender->replica);
        sender->replica = NULL;
    }
    weir_arena_fini(&sender->arena);
    weir_arena_init(&sender->arena, 0);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static weir_status send_once(struct camera *camera, const char *path, size_t len,
                             struct weir_error *err)
{
    struct sender *sender = camera->sender;
    if (sender->replica == NULL) {
        WEIR_TRY(find_replica(camera, err));
    }
    return weir_client_call_raw(sender->replica, "POST", path, "application/octet-stream",
                                camera->photo, len, NULL, NULL, err);
}

/* Again under the same number until it is decided: that is once, however often it is sent. */
static weir_status send_frame(struct camera *camera, int64_t frame, size_t len,
                              struct weir_error *err)
{
    char path[64];
    int64_t until = weir_mono_ms() + PATIENCE_MS;
    struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    (void)snprintf(path, sizeof path, "/frames/%s/%lld", camera->name, (long long)frame);
    weir_status status = send_once(camera, path, len, err);
    while (status != WEIR_OK && weir_client_can_retry(status) && weir_mono_ms() < until) {
        forget_replica(camera->sender);
        (void)nanosleep(&pause, NULL);
        status = send_once(camera, path, len, err);
    }
    return status;
}

static weir_status start(struct camera *camera, struct weir_error *err)
{
    struct weir_client *own = camera->demo->call->client;
    camera->sender = WEIR_ARENA_NEW(camera->demo->call->arena, struct sender);
    weir_arena_init(&camera->sender->arena, 0);
    return weir_client_open(
        &(struct weir_client_config){.server = weir_client_server(own),
                                     .token = weir_client_token(own),
                                     .ca_file = camera->demo->options->common.ca_file},
        &camera->sender->server, err);
}

static weir_status tick(struct camera *camera, int64_t i_tick, struct weir_error *err)
{
    int64_t frame;
    size_t len;
    WEIR_TRY(camera_frame(camera, i_tick, &frame, &len, err));
    return send_frame(camera, frame, len, err);
}

static void end(struct camera *camera)
{
    forget_replica(camera->sender);
    weir_client_close(camera->sender->server);
    weir_arena_fini(&camera->sender->arena);
}

const struct camera_kind camera_of_requests = {.start = start, .tick = tick, .end = end};
