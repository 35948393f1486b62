/*
 * Models and galleries are swapped while frames pour in. Deployment k has model version k, gallery
 * version 10 k and one of two models; frames are of enrolled people. Whatever the moment: every
 * frame is answered, versions belong together, and the right person is recognised, which a gallery
 * of the other model would not do.
 */
#include "predict/test_support.h"

#include "base/clock.h"
#include "http/http_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define N_CLIENTS 3
#define N_SWAPS   12

static struct test_dir dir;
static struct test_server *server;
static char url[128];
static atomic_bool is_over;
static atomic_long newest; /**< Model version of the newest decision. */

struct client {
    pthread_t thread;
    int number;
    int64_t n_frames;
    int64_t n_versions;
};

static void check(struct client *client, const json_t *decision, int person, int64_t *last_version)
{
    char name[8];
    int64_t version = test_int(decision, "model_version");
    (void)snprintf(name, sizeof name, "p%02d", person);
    ck_assert_int_eq(test_int(decision, "gallery_version"), 10 * version);
    ck_assert_int_eq(test_int(decision, "list_revision"), 100 * version);
    ck_assert_str_eq(test_text(decision, "person"), name);
    ck_assert_str_eq(test_text(decision, "verdict"), "grant");
    ck_assert_int_ge(version, *last_version); /* Never back to an older one. */
    client->n_versions += version != *last_version;
    *last_version = version;
    long seen = atomic_load(&newest);
    while (seen < version && !atomic_compare_exchange_weak(&newest, &seen, (long)version)) {
    }
}

static void *send_frames(void *context)
{
    struct client *client = context;
    struct weir_http_client *connection;
    struct weir_error err;
    int64_t last_version = 0;
    char camera[16];
    (void)snprintf(camera, sizeof camera, "cam-%d", client->number);
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &connection, &err),
                     WEIR_OK);
    while (!atomic_load(&is_over)) {
        char bytes[1024];
        json_t *decision;
        int person = (int)(client->n_frames % 10);
        size_t len = test_picture(person, 100 + (int)(client->n_frames % 50), bytes);
        ck_assert_int_eq(
            test_post_frame(connection, url, camera, client->n_frames, bytes, len, NULL, &decision),
            200);
        check(client, decision, person, &last_version);
        json_decref(decision);
        client->n_frames++;
    }
    weir_http_client_close(connection);
    return NULL;
}

static json_t *deployment(int64_t version)
{
    char model[128];
    (void)snprintf(model, sizeof model, "%s/model-%d", dir.path, (int)(version % 2));
    json_t *wanted = test_deployment(server, &dir, model, version, 10, 4, 10 * version, true);
    json_object_set_new(wanted, "list_revision", json_integer(100 * version));
    return wanted;
}

static bool answers(void *context)
{
    static int64_t frame;
    char bytes[1024];
    (void)context;
    return test_post_frame(NULL, url, "probe", frame++, bytes, test_picture(0, 100, bytes), NULL,
                           NULL) == 200;
}

static bool version_serves(void *context)
{
    return atomic_load(&newest) >= *(const long *)context;
}

START_TEST(frames_are_all_answered_and_rightly_while_models_are_swapped)
{
    static struct client clients[N_CLIENTS];
    int64_t n_frames = 0;
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-0"), 1, NULL);
    test_write_model(test_path(&dir, "model-1"), 2, NULL);
    struct replica *replica =
        test_replica_start(&dir, test_server_port(server), "{\"kind\":\"http\"}", NULL);
    (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
    test_server_deploy(server, deployment(1));
    ck_assert(test_wait(answers, NULL));
    for (int i = 0; i < N_CLIENTS; i++) {
        clients[i].number = i;
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, send_frames, &clients[i]), 0);
    }
    for (long version = 2; version <= N_SWAPS; version++) {
        test_server_deploy(server, deployment(version));
        ck_assert(test_wait(version_serves, &version));
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        ck_assert_int_gt(clients[i].n_versions, 3);
        n_frames += clients[i].n_frames;
    }
    printf("%lld frames over %d swaps\n", (long long)n_frames, N_SWAPS - 1);
    test_replica_stop(replica);
    test_server_stop(server);
    test_dir_drop(&dir);
}

END_TEST

WEIR_TEST_MAIN("swap", frames_are_all_answered_and_rightly_while_models_are_swapped)
