/*
 * A replica with a classifier: no gallery is asked for, the decision is label and score. The oracle
 * is the net's own loss: that of a label is minus the logarithm of its probability.
 */
#include "predict/test_support.h"

#include "base/clock.h"
#include "http/http_client.h"
#include "nn/net_file.h"
#include "predict/model.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define N_MODELS 2
#define N_SWAPS  12

static struct test_dir dir;
static struct test_server *server;
static struct replica *replica;
static char url[128];
static struct weir_net *nets[N_MODELS];
static struct weir_net_file *files[N_MODELS];

static const char *model_path(int i)
{
    return test_path(&dir, "model-%d", i);
}

/* What the model's own loss says about a picture: the probability of "b". */
static double probability_of_b(int i_model, const char *bytes, size_t len)
{
    struct weir_image image = {0};
    struct weir_step_result result = {0};
    struct weir_error err = {0};
    struct weir_net *net = nets[i_model];
    const struct weir_net_input *of = &weir_net_file_info(files[i_model])->input;
    const struct weir_input input = {.c = of->shape.c,
                                     .h = of->shape.h,
                                     .w = of->shape.w,
                                     .mean = {of->mean[0]},
                                     .std = {of->std[0]}};
    ck_assert_int_eq(weir_image_decode_within(bytes, len, &weir_image_limits_frame, &image, &err),
                     WEIR_OK);
    ck_assert_int_eq(weir_image_to_tensor(&image, &input, weir_net_input(net), &err), WEIR_OK);
    weir_net_labels(net)[0] = 1;
    ck_assert_int_eq(weir_net_forward(net, 1, &result), WEIR_OK);
    weir_image_fini(&image);
    return exp(-(double)result.loss);
}

static bool answers(void *context)
{
    static int64_t frame;
    char bytes[1024];
    (void)context;
    return test_post_frame(NULL, url, "probe", frame++, bytes, test_picture(0, 100, bytes), NULL,
                           NULL) == 200;
}

static void set_up(void)
{
    struct weir_error err = {0};
    const struct weir_net_config config = {.batch = 1, .n_threads = 1};
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    for (int i = 0; i < N_MODELS; i++) {
        test_write_classifier(model_path(i), 10 + (uint64_t)i, NULL);
        ck_assert_int_eq(weir_net_file_load(model_path(i), &config, &nets[i], &files[i], &err),
                         WEIR_OK);
    }
    replica = test_replica_start(&dir, test_server_port(server), "{\"kind\":\"http\"}", NULL);
    (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
}

static void tear_down(void)
{
    test_replica_stop(replica);
    test_server_stop(server);
    for (int i = 0; i < N_MODELS; i++) {
        weir_net_destroy(nets[i]);
        weir_net_file_close(files[i]);
    }
    test_dir_drop(&dir);
}

static json_t *decide_about(int i_picture, int64_t frame, double *out_b)
{
    char bytes[1024];
    json_t *decision;
    size_t len = test_picture(i_picture, 7, bytes);
    if (out_b != NULL) {
        *out_b = probability_of_b(0, bytes, len);
    }
    ck_assert_int_eq(test_post_frame(NULL, url, "belt", frame, bytes, len, NULL, &decision), 200);
    return decision;
}

static double real(const json_t *decision, const char *key)
{
    return json_number_value(json_object_get(decision, key));
}

START_TEST(the_decision_is_the_likeliest_label_and_its_probability)
{
    bool seen[2] = {false, false};
    test_server_deploy(server, test_classifier_deployment(server, model_path(0), 3, NULL));
    ck_assert(test_wait(answers, NULL));
    for (int i = 0; i < 40; i++) {
        double b;
        json_t *decision = decide_about(i, i, &b);
        seen[b > 0.5] = true;
        ck_assert_str_eq(test_text(decision, "verdict"), "label");
        ck_assert_str_eq(test_text(decision, "label"), b > 0.5 ? "b" : "a");
        ck_assert_double_eq_tol(real(decision, "score"), b > 0.5 ? b : 1 - b, 1e-5);
        ck_assert_double_eq(real(decision, "threshold"), 0.5);
        ck_assert_int_eq(test_int(decision, "model_version"), 3);
        ck_assert_int_eq(test_int(decision, "gallery_version"), 0);
        ck_assert(json_is_null(json_object_get(decision, "person")));
        ck_assert(json_is_null(json_object_get(decision, "labels")));
        ck_assert_double_gt(real(decision, "brightness"), 0);
        json_decref(decision);
    }
    ck_assert(seen[0] && seen[1]);
}

END_TEST

START_TEST(options_of_classify_are_kept)
{
    test_server_deploy(
        server, test_classifier_deployment(server, model_path(0), 1,
                                           "[\"decode\",{\"kind\":\"classify\",\"top\":5,"
                                           "\"threshold\":0.7,\"reject\":\"b\"},\"decide\"]"));
    ck_assert(test_wait(answers, NULL));
    for (int i = 0; i < 40; i++) {
        double b, sum = 0;
        json_t *decision = decide_about(i, i, &b);
        const json_t *labels = json_object_get(decision, "labels"), *one;
        size_t k;
        bool is_named = 1 - b >= 0.7;
        ck_assert_str_eq(test_text(decision, "verdict"), is_named ? "label" : "unknown");
        ck_assert_str_eq(test_text(decision, "label"), is_named ? "a" : "");
        ck_assert_double_eq_tol(real(decision, "score"), b > 0.5 ? b : 1 - b, 1e-5);
        ck_assert_uint_eq(json_array_size(labels), 2); /* It has no more. */
        json_array_foreach(labels, k, one)
        {
            ck_assert(k == 0 || real(one, "score") <= real(json_array_get(labels, 0), "score"));
            sum += real(one, "score");
        }
        ck_assert_double_eq_tol(sum, 1, 1e-5);
        ck_assert_str_eq(test_text(json_array_get(labels, 0), "label"), b > 0.5 ? "b" : "a");
        json_decref(decision);
    }
}

END_TEST

START_TEST(a_frame_that_is_no_picture_is_decided_as_an_error)
{
    json_t *decision;
    test_server_deploy(server, test_classifier_deployment(server, model_path(0), 1, NULL));
    ck_assert(test_wait(answers, NULL));
    ck_assert_int_eq(test_post_frame(NULL, url, "belt", 1, "no picture", 10, NULL, &decision), 200);
    ck_assert_str_eq(test_text(decision, "verdict"), "error");
    ck_assert(json_is_null(json_object_get(decision, "label")));
    ck_assert(json_is_null(json_object_get(decision, "score")));
    ck_assert_str_ne(test_text(decision, "error"), "");
    json_decref(decision);
}

END_TEST

/* ---- what does not fit ----------------------------------------------------------------------- */

static bool has_failed(void *context)
{
    json_t *heartbeat = test_server_heartbeat(server);
    bool is_failed = strcmp(test_text(heartbeat, "state"), "FAILED") == 0 &&
                     strstr(test_text(heartbeat, "reason"), context) != NULL;
    json_decref(heartbeat);
    return is_failed;
}

static bool serves(void *context)
{
    json_t *heartbeat = test_server_heartbeat(server);
    bool is_served = strcmp(test_text(heartbeat, "state"), "APPLIED") == 0 &&
                     test_int(heartbeat, "served_revision") == *(const int64_t *)context;
    json_decref(heartbeat);
    return is_served;
}

START_TEST(a_model_that_does_not_fit_its_stages_is_refused_and_the_old_one_serves_on)
{
    const int64_t last = 5;
    test_server_deploy(server, test_classifier_deployment(server, model_path(0), 1, NULL));
    ck_assert(test_wait(answers, NULL));
    test_write_model(test_path(&dir, "embedder"), 3, NULL);
    test_server_deploy(server,
                       test_classifier_deployment(server, test_path(&dir, "embedder"), 2, NULL));
    ck_assert(test_wait(has_failed, "model sorter version 2 gives embeddings: stage \"classify\""));
    test_server_deploy(server, test_deployment(server, &dir, model_path(1), 3, 3, 2, 1, true));
    ck_assert(test_wait(has_failed, "version 3 is a classifier: a gallery needs a model"));
    test_server_deploy(server, test_classifier_deployment(server, model_path(1), 4,
                                                          "[\"decode\",{\"kind\":\"classify\","
                                                          "\"reject\":\"none\"},\"decide\"]"));
    ck_assert(test_wait(has_failed, "has no label \"none\""));
    json_t *decision = decide_about(1, 1, NULL);
    ck_assert_int_eq(test_int(decision, "model_version"), 1);
    json_decref(decision);
    /* From labels to people, in the same replica. */
    test_server_deploy(
        server, test_deployment(server, &dir, test_path(&dir, "embedder"), 5, 3, 2, 8, true));
    ck_assert(test_wait(serves, (void *)(uintptr_t)&last));
    decision = decide_about(2, 2, NULL);
    ck_assert_str_eq(test_text(decision, "person"), "p02");
    ck_assert(json_is_null(json_object_get(decision, "label")));
    ck_assert_int_eq(test_int(decision, "gallery_version"), 8);
    json_decref(decision);
}

END_TEST

/* ---- swaps ----------------------------------------------------------------------------------- */

static atomic_bool is_over;
static atomic_long newest, n_frames;

/* Deployment k serves model k % 2. */
static void *send_frames(void *context)
{
    struct weir_http_client *connection;
    struct weir_error err;
    (void)context;
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &connection, &err),
                     WEIR_OK);
    for (int64_t frame = 0; !atomic_load(&is_over); frame++) {
        char bytes[1024];
        json_t *decision;
        size_t len = test_picture((int)(frame % 40), 7, bytes);
        ck_assert_int_eq(
            test_post_frame(connection, url, "line", frame, bytes, len, NULL, &decision), 200);
        int64_t version = test_int(decision, "model_version");
        double b = probability_of_b((int)(version % N_MODELS), bytes, len);
        ck_assert_double_eq_tol(real(decision, "score"), b > 0.5 ? b : 1 - b, 1e-5);
        ck_assert_int_ge(version, atomic_load(&newest));
        atomic_store(&newest, (long)version);
        atomic_fetch_add(&n_frames, 1);
        json_decref(decision);
    }
    weir_http_client_close(connection);
    return NULL;
}

static bool version_serves(void *context)
{
    return atomic_load(&newest) >= *(const long *)context;
}

START_TEST(frames_are_all_answered_by_one_model_each_while_models_are_swapped)
{
    pthread_t client;
    test_server_deploy(server, test_classifier_deployment(server, model_path(1), 1, NULL));
    ck_assert(test_wait(answers, NULL));
    ck_assert_int_eq(pthread_create(&client, NULL, send_frames, NULL), 0);
    for (long version = 2; version <= N_SWAPS; version++) {
        test_server_deploy(server,
                           test_classifier_deployment(server, model_path((int)(version % N_MODELS)),
                                                      version, NULL));
        ck_assert(test_wait(version_serves, &version));
    }
    atomic_store(&is_over, true);
    pthread_join(client, NULL);
    printf("%ld frames over %d swaps\n", atomic_load(&n_frames), N_SWAPS - 1);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("classifier");
    TCase *tests = tcase_create("classifier");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_decision_is_the_likeliest_label_and_its_probability);
    tcase_add_test(tests, options_of_classify_are_kept);
    tcase_add_test(tests, a_frame_that_is_no_picture_is_decided_as_an_error);
    tcase_add_test(tests,
                   a_model_that_does_not_fit_its_stages_is_refused_and_the_old_one_serves_on);
    tcase_add_test(tests, frames_are_all_answered_by_one_model_each_while_models_are_swapped);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
