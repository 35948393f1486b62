/* A camera that sends frames: each is decided once, however often a replica refuses it, and wherever it moves. */
#include "demo/cameras.h"

#include "base/test_main.h"
#include "client/client.h"
#include "http/http.h"

#include <pthread.h>
#include <string.h>

#define TOKEN "for-the-replica"

/* What a replica was sent. */
struct replica {
    struct weir_http_server *http;
    int n_refusals; /* It refuses so many requests first. */
    int n_taken;
    char last[64];  /* The path of the last. */
    size_t n_bytes; /* Its length. */
    bool is_admitted;
};

static struct replica replicas[2];
static struct replica *live; /* The one that the server names. */
static struct weir_http_server *server;
static struct weir_arena arena;
static struct weir_error err;

static void answer_server(void *context, struct weir_http_request *request,
                          struct weir_http_response *response)
{
    char url[64];
    (void)context;
    ck_assert_str_eq(request->path, "/api/v1/sources");
    ck_assert_str_eq(weir_http_request_query(request, "ion"), "building");
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", weir_http_server_port(live->http));
    weir_http_response_json(response, 200,
                            json_pack("{s:[{s:s,s:n},{s:s,s:s}]}", "items", "state", "connected",
                                      "url", "state", "connected", "url", url));
}

static void answer_replica(void *context, struct weir_http_request *request,
                           struct weir_http_response *response)
{
    struct replica *replica = context;
    const char *shown = weir_http_request_header(request, "Authorization");
    replica->is_admitted = shown != NULL && strcmp(shown, "Bearer " TOKEN) == 0;
    if (replica->n_refusals > 0) {
        replica->n_refusals--;
        weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "the queue is full");
        return;
    }
    replica->n_taken++;
    replica->n_bytes = request->body_len;
    (void)snprintf(replica->last, sizeof replica->last, "%s", request->path);
    weir_http_response_json(response, 200, json_object());
}

static struct weir_http_server *serve(weir_http_handler_fn handler, void *context)
{
    struct weir_http_server *http;
    const struct weir_http_config config = {.listen = "127.0.0.1:0",
                                            .n_handlers = 1,
                                            .n_io_threads = 1,
                                            .max_body_bytes = CAMERA_PHOTO_MAX_BYTES};
    ck_assert_msg(weir_http_server_start(&config, handler, context, &http, &err) == WEIR_OK, "%s",
                  err.message);
    return http;
}

static struct weir_client *client_of(struct weir_http_server *http)
{
    char url[64];
    struct weir_client *client;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", weir_http_server_port(http));
    ck_assert_int_eq(weir_client_open(&(struct weir_client_config){.server = url, .token = "mine"},
                                      &client, &err),
                     WEIR_OK);
    return client;
}

START_TEST(a_frame_is_sent_until_it_is_taken_and_follows_the_replica)
{
    weir_arena_init(&arena, 0);
    server = serve(answer_server, NULL);
    for (size_t i = 0; i < 2; i++) {
        replicas[i] = (struct replica){.n_refusals = i == 0 ? 2 : 0};
        replicas[i].http = serve(answer_replica, &replicas[i]);
    }
    live = &replicas[0];
    static struct demo demo;
    static const struct demo_options options = {.seed = 1};
    static uint8_t photo[CAMERA_PHOTO_MAX_BYTES];
    struct cli_call call = {.arena = &arena, .client = client_of(server)};
    demo.call = &call;
    demo.options = &options;
    demo.ion = "building";
    demo.token = TOKEN;
    demo.first_frame = 1000;
    demo.n_people = 1;
    demo.people[0] = (struct demo_person){.name = (char *)"ann", .n_photos = 8, .number = 3};
    demo.ledger_fd = -1;
    struct camera camera = {.demo = &demo, .photo = photo};
    (void)snprintf(camera.name, sizeof camera.name, "door-1");
    weir_rng_init(&camera.rng, 1, 1);
    ck_assert_int_eq(camera_of_requests.start(&camera, &err), WEIR_OK);
    ck_assert_msg(camera_of_requests.tick(&camera, 0, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(replicas[0].n_taken, 1);
    ck_assert_str_eq(replicas[0].last, "/frames/door-1/1000");
    ck_assert(replicas[0].is_admitted);
    ck_assert_uint_gt(replicas[0].n_bytes, 100);
    weir_http_server_stop(replicas[0].http, 0);
    live = &replicas[1];
    ck_assert_msg(camera_of_requests.tick(&camera, 1, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(replicas[0].n_taken, 1);
    ck_assert_int_eq(replicas[1].n_taken, 1);
    ck_assert_str_eq(replicas[1].last, "/frames/door-1/1001");
    camera_of_requests.end(&camera);
    weir_client_close(call.client);
    weir_http_server_stop(replicas[1].http, 0);
    weir_http_server_stop(server, 0);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(the_documents_source_takes_requests_of_its_cameras_alone)
{
    struct cli_call call = {.arena = &arena};
    struct demo demo = {.call = &call};
    weir_arena_init(&arena, 0);
    json_t *document = json_pack("{s:[{s:s},{s:s,s:{s:s}}]}", "pipelines", "name", "training",
                                 "name", "entrance", "source", "kind", "directory");
    ck_assert_int_eq(demo_requests_put(&demo, document, &err), WEIR_OK);
    const json_t *source =
        json_object_get(json_array_get(json_object_get(document, "pipelines"), 1), "source");
    ck_assert_str_eq(json_string_value(json_object_get(source, "kind")), "http");
    ck_assert_str_eq(json_string_value(json_object_get(source, "token")), demo.token);
    ck_assert_uint_ge(strlen(demo.token), 32);
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(source, "listen")), "0.0.0.0:"));
    json_decref(document);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("camera_request", a_frame_is_sent_until_it_is_taken_and_follows_the_replica,
               the_documents_source_takes_requests_of_its_cameras_alone)
