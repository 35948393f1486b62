/*
 * Impostors of a deployment set its threshold: who is counted, what is left out, what is told, and
 * that each decision has the threshold of its own serving while impostors and models are swapped.
 */
#include "predict/test_support.h"

#include "predict/gallery.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_IMPOSTOR 40

static struct test_dir dir;
static struct test_server *server;
static struct replica *replica;
static int64_t next_frame;

static void set_up(void)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-0"), 1, NULL);
    test_write_model(test_path(&dir, "model-1"), 2, NULL);
    replica = test_replica_start(&dir, test_server_port(server), test_directory_source(&dir), NULL);
    next_frame = 0;
}

static void tear_down(void)
{
    test_replica_stop(replica);
    test_server_stop(server);
    test_dir_drop(&dir);
}

/* Ten people are enrolled. Takes the reference to impostors, which may be NULL. */
static void deploy(int64_t version, json_t *impostors)
{
    char model[128];
    (void)snprintf(model, sizeof model, "%s/model-%d", dir.path, (int)(version % 2));
    json_t *wanted = test_deployment(server, &dir, model, version, 10, 4, 1, true);
    if (impostors != NULL) {
        json_object_set_new(json_object_get(wanted, "gallery"), "impostors", impostors);
    }
    test_server_deploy(server, wanted);
}

static bool is_told(void *context)
{
    json_t *reports = test_server_thresholds(server);
    bool is = json_array_size(reports) >= *(const size_t *)context;
    json_decref(reports);
    return is;
}

/* The n-th report, counted from 1; waits for it. New reference. */
static json_t *report(size_t n)
{
    ck_assert(test_wait(is_told, &n));
    json_t *reports = test_server_thresholds(server);
    json_t *found = json_incref(json_array_get(reports, n - 1));
    json_decref(reports);
    return found;
}

static double real_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void send_frames(int n)
{
    for (int i = 0; i < n; i++) {
        char bytes[1024];
        size_t len = test_picture(i % 10, 100 + i, bytes);
        test_put_frame(&dir, "cam", next_frame++, bytes, len);
    }
}

START_TEST(impostors_set_the_threshold_and_the_server_is_told_how)
{
    char bytes[1024];
    set_up();
    json_t *impostors = test_impostors(server, &dir, FIRST_IMPOSTOR, 30, 2, 6);
    deploy(1, impostors);
    json_t *told = report(1);
    ck_assert_str_eq(test_text(told, "rule"), "impostors");
    ck_assert_int_eq(test_int(told, "scores"), 60);
    ck_assert_int_eq(test_int(told, "people"), 30);
    ck_assert_int_eq(test_int(told, "impostors_version"), 6);
    ck_assert_int_eq(test_int(told, "impostors_enrolled"), 0);
    ck_assert_double_eq(real_of(told, "asked_rate"), 0.01);
    ck_assert_double_le(real_of(told, "expected_rate"), 0.0101);
    test_put_frame(&dir, "cam", 7, bytes, test_picture(3, 100, bytes));
    test_wait_for_decisions(server, 1);
    json_t *decision = test_server_decision(server, "cam", 7);
    ck_assert_double_eq(real_of(decision, "threshold"), real_of(told, "threshold"));
    json_decref(decision);
    json_decref(told);
    tear_down();
}

END_TEST

START_TEST(impostors_who_are_enrolled_and_broken_photos_do_not_count)
{
    set_up();
    /* Two of the ten people of the gallery, p08 and p09, and four others. */
    json_t *impostors = test_impostors(server, &dir, 8, 6, 5, 1);
    test_write_file(test_path(&dir, "impostors/p12/3.pgm"), "P5", 2);
    deploy(1, impostors);
    json_t *told = report(1);
    ck_assert_int_eq(test_int(told, "impostors_enrolled"), 2);
    ck_assert_int_eq(test_int(told, "people"), 4);
    ck_assert_int_eq(test_int(told, "scores"), 20); /* p12/3 came from the server instead. */
    ck_assert_str_eq(test_text(told, "rule"), "impostors");
    json_decref(told);
    tear_down();
}

END_TEST

START_TEST(without_impostors_the_rate_is_not_known_and_few_only_make_it_stricter)
{
    set_up();
    deploy(2, NULL);
    json_t *alone = report(1);
    ck_assert_str_eq(test_text(alone, "rule"), "gallery");
    ck_assert(json_is_null(json_object_get(alone, "expected_rate")));
    deploy(4, test_impostors(server, &dir, FIRST_IMPOSTOR, 3, 2, 1));
    json_t *few = report(2);
    ck_assert_str_eq(test_text(few, "rule"), "both");
    ck_assert_int_eq(test_int(few, "scores"), 6);
    ck_assert_double_ge(real_of(few, "threshold"), real_of(alone, "threshold"));
    json_decref(alone);
    json_decref(few);
    tear_down();
}

END_TEST

static struct gallery_request request_for(const char *store, const json_t *people,
                                          const json_t *impostors)
{
    return (struct gallery_request){
        .people = {"gallery", people, 1, "people", test_path(&dir, "people")},
        .impostors = {"impostors", impostors, 2, "impostors", test_path(&dir, "impostors")},
        .embedder = {.model_path = test_path(&dir, "model-0"),
                     .model = {.name = "m", .id = "", .blob = ""},
                     .store_path = store,
                     .cache_dir = dir.path},
        .rates = {.accept = 0.01, .deny = 0.01}};
}

/* A manifest of pictures that are written to <dir>/<folder>. */
static json_t *manifest(const char *folder, int first, int n_people, int n_photos)
{
    struct weir_error err;
    json_t *files = json_array();
    for (int i = 0; i < n_people * n_photos; i++) {
        char bytes[1024], digest[65], person[8], file[8];
        (void)snprintf(person, sizeof person, "p%02d", first + i / n_photos);
        (void)snprintf(file, sizeof file, "%d.pgm", i % n_photos);
        size_t len = test_picture(first + i / n_photos, i % n_photos, bytes);
        weir_sha256(bytes, len, digest);
        ck_assert_int_eq(weir_dir_make(test_path(&dir, "%s/%s", folder, person), 0755, &err),
                         WEIR_OK);
        test_write_file(test_path(&dir, "%s/%s/%s", folder, person, file), bytes, len);
        json_array_append_new(
            files, json_pack("{s:s,s:s,s:s}", "class", person, "file", file, "sha256", digest));
    }
    return json_pack("{s:o}", "files", files);
}

START_TEST(embeddings_of_impostors_are_kept_and_a_broken_photo_is_left_out)
{
    struct gallery *first, *again;
    struct weir_error err = {0};
    test_dir_make(&dir);
    test_write_model(test_path(&dir, "model-0"), 1, NULL);
    json_t *people = manifest("people", 0, 5, 3);
    json_t *impostors = manifest("impostors", FIRST_IMPOSTOR, 15, 2);
    test_write_file(test_path(&dir, "impostors/p41/1.pgm"), "P5 no picture", 13);
    const char *store = test_path(&dir, "store");
    struct gallery_request request = request_for(store, people, impostors);
    ck_assert_msg(gallery_build(&request, &first, &err) == WEIR_OK, "%s", err.message);
    ck_assert_uint_eq(first->n_embedded, 15 + 29);
    ck_assert_uint_eq(first->n_damaged, 1);
    ck_assert_uint_eq(first->calibration.n_impostors, 29);
    ck_assert_uint_eq(first->templates.n, 15); /* Nobody is recognised as an impostor. */
    ck_assert_int_eq(gallery_build(&request, &again, &err), WEIR_OK);
    ck_assert_uint_eq(again->n_embedded, 0);
    ck_assert_double_eq(again->calibration.threshold, first->calibration.threshold);
    gallery_unref(first);
    gallery_unref(again);
    json_decref(people);
    json_decref(impostors);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(impostors_without_a_usable_photo_are_an_error_that_says_what_to_do)
{
    struct gallery *gallery;
    struct weir_error err = {0};
    test_dir_make(&dir);
    test_write_model(test_path(&dir, "model-0"), 1, NULL);
    json_t *people = manifest("people", 0, 5, 3);
    json_t *same = manifest("impostors", 0, 5, 1); /* All of them are enrolled. */
    json_t *none = json_pack("{s:[]}", "files");
    struct gallery_request request = request_for(test_path(&dir, "store"), people, none);
    ck_assert_int_eq(gallery_build(&request, &gallery, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, "impostors, version 2: no photo can be used") != NULL, "%s",
                  err.message);
    request.impostors.manifest = same;
    ck_assert_int_eq(gallery_build(&request, &gallery, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, "5 people enrolled too") != NULL, "%s", err.message);
    json_decref(people);
    json_decref(same);
    json_decref(none);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(each_decision_has_the_threshold_of_its_own_serving)
{
    enum { N_SWAPS = 8, N_FRAMES = 6 };

    double thresholds[N_SWAPS + 1];
    set_up();
    json_t *many = test_impostors(server, &dir, FIRST_IMPOSTOR, 30, 2, 1);
    json_t *other = test_impostors(server, &dir, FIRST_IMPOSTOR + 30, 12, 3, 2);
    for (int version = 1; version <= N_SWAPS; version++) {
        /* The model changes every time, the impostors every second time. */
        deploy(version, json_incref(version / 2 % 2 == 0 ? many : other));
        send_frames(N_FRAMES);
        json_t *told = report((size_t)version);
        ck_assert_int_eq(test_int(told, "model_version"), version);
        ck_assert_int_eq(test_int(told, "impostors_version"), version / 2 % 2 + 1);
        thresholds[version] = real_of(told, "threshold");
        json_decref(told);
    }
    send_frames(N_FRAMES);
    test_wait_for_decisions(server, (size_t)next_frame);
    for (int64_t frame = 0; frame < next_frame; frame++) {
        json_t *decision = test_server_decision(server, "cam", frame);
        int64_t version = test_int(decision, "model_version");
        ck_assert_double_eq(real_of(decision, "threshold"), thresholds[version]);
        json_decref(decision);
    }
    ck_assert_double_ne(thresholds[1], thresholds[3]); /* The same model, other impostors. */
    ck_assert_double_eq(thresholds[1], thresholds[5]);
    json_decref(many);
    json_decref(other);
    tear_down();
}

END_TEST

WEIR_TEST_MAIN("impostors", impostors_set_the_threshold_and_the_server_is_told_how,
               impostors_who_are_enrolled_and_broken_photos_do_not_count,
               without_impostors_the_rate_is_not_known_and_few_only_make_it_stricter,
               embeddings_of_impostors_are_kept_and_a_broken_photo_is_left_out,
               impostors_without_a_usable_photo_are_an_error_that_says_what_to_do,
               each_decision_has_the_threshold_of_its_own_serving)
