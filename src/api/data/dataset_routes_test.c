/* Datasets: files in, versions out, and how far a freeze is. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define D API "/datasets/d"

static void set_up(void)
{
    callers_open();
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"d\"}");
}

START_TEST(an_uploaded_dataset_takes_files)
{
    ck_assert(json_is_true(said("is_uploaded")));
    ck_assert_str_eq(said_text("kind"), "folder");
    ck_assert_str_eq(said_text("created_by"), "ann");
    EXPECT(200, "PUT " D "/files/cat/1.jpg\n\nmeow");
    ck_assert_int_eq(json_integer_value(said("bytes")), 4);
    EXPECT(200, "PUT " D "/files/cat/1.jpg\n\nmeow again");
    EXPECT(400, "PUT " D "/files/cat/2.jpg\n\n");
    EXPECT(404, "PUT " API "/datasets/none/files/cat/1.jpg\n\nmeow");
    EXPECT(204, "DELETE " D "/files/cat/1.jpg");
    EXPECT(404, "DELETE " D "/files/cat/1.jpg");
    EXPECT(204, "DELETE " D "/files/cat");
    EXPECT(404, "DELETE " D "/files/cat");
}

END_TEST

/* What needs it is named, in the order in which it is asked for; then all of it goes, and the name is free. */
START_TEST(a_dataset_is_deleted_when_nothing_needs_it)
{
    char folder[300];
    (void)snprintf(folder, sizeof folder, "%s/datasets/d", callers.fixture.dir);
    EXPECT(200, "PUT " D "/files/cat/1.pgm\n\nP5\n1 1\n255\nx");
    EXPECT(200, "POST " D "/versions");
    EXPECT(200,
           "POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\",\"type\":"
           "\"training\",\"dataset\":\"d\",\"model\":\"face-embed\"}]}");
    EXPECT(409, "DELETE " D);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "ION door names it"));
    EXPECT(204, "DELETE " API "/ions/door");
    EXPECT(200,
           "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"train\",\"spec\":{\"model\":\"lenet\","
           "\"dataset\":\"d\"}}");
    char job[64];
    (void)snprintf(job, sizeof job, "%s", said_text("id"));
    EXPECT(409, "DELETE " D);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "job j names it"));
    EXPECT(409, "DELETE " API "/jobs/%s", job);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "only one that is over"));
    EXPECT(200, "POST " API "/jobs/%s/cancel", job);
    EXPECT(200, "GET " API "/jobs/%s", job);
    char run[64];
    (void)snprintf(run, sizeof run, "%s", said_text("run"));
    EXPECT(204, "DELETE " API "/jobs/%s", job);
    EXPECT(404, "GET " API "/jobs/%s", job);
    EXPECT(404, "GET " API "/runs/%s", run);
    EXPECT(404, "DELETE " API "/jobs/%s", job);
    EXPECT(204, "DELETE " D);
    EXPECT(404, "GET " D);
    ck_assert(!weir_path_exists(folder));
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"d\"}");
    EXPECT_ERROR(400, "no files yet", "POST " D "/versions"); /* the old ones are gone */
}

END_TEST

START_TEST(no_name_leads_out_of_the_dataset)
{
    static const char *const wrong[] = {"..", ".hidden", "a%2fb", "a%5cb", "%01", "%2e%2e"};
    char many[130];
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        int status = ask("PUT " D "/files/%s/f\n\nx", wrong[i]);
        ck_assert_msg(status == 400 || status == 404, "%s: %d", wrong[i], status);
        status = ask("PUT " D "/files/c/%s\n\nx", wrong[i]);
        ck_assert_msg(status == 400 || status == 404, "%s: %d", wrong[i], status);
        status = ask("DELETE " D "/files/%s", wrong[i]);
        ck_assert_msg(status == 400 || status == 404, "%s: %d", wrong[i], status);
    }
    EXPECT_ERROR(400, "1 to 128 bytes", "PUT " D "/files/c/%s\n\nx", many);
    many[128] = '\0';
    EXPECT(200, "PUT " D "/files/c/%s\n\nx", many);
}

END_TEST

START_TEST(a_link_in_the_datasets_place_is_not_followed)
{
    char path[256], target[256];
    EXPECT(200, "PUT " D "/files/cat/1.jpg\n\nmeow");
    (void)snprintf(path, sizeof path, "%s/datasets/d/dog", callers.fixture.dir);
    (void)snprintf(target, sizeof target, "%s/blobs", callers.fixture.dir);
    ck_assert_int_eq(symlink(target, path), 0);
    ck_assert_int_ge(ask("PUT " D "/files/dog/1.jpg\n\nwoof"), 400);
    (void)snprintf(path, sizeof path, "%s/blobs/1.jpg", callers.fixture.dir);
    ck_assert_int_ne(access(path, F_OK), 0);
}

END_TEST

START_TEST(a_dataset_of_wrong_form_is_refused)
{
    EXPECT(409, "POST " API "/datasets\n\n{\"name\":\"d\"}");
    EXPECT_ERROR(400, "$.kind", "POST " API "/datasets\n\n{\"name\":\"e\",\"kind\":\"zip\"}");
    EXPECT_ERROR(400, "$.name", "POST " API "/datasets\n\n{\"name\":\"E\"}");
    EXPECT(400, "POST " API "/datasets\n\n{\"name\":\"e\",\"path\":\"relative\"}");
    ck_assert_int_ge(
        ask("POST " API "/datasets\n\n{\"name\":\"e\",\"path\":\"%s/blobs\"}", callers.fixture.dir),
        400); /* the server's own files */
    EXPECT(404, "GET " API "/datasets/e");
}

END_TEST

START_TEST(files_of_a_folder_on_the_server_are_changed_there)
{
    char dir[] = "/tmp/weir-dataset-routes-XXXXXX";
    struct weir_error err;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"there\",\"path\":\"%s\"}", dir);
    ck_assert(json_is_false(said("is_uploaded")));
    EXPECT_ERROR(409, "change its files there", "PUT " API "/datasets/there/files/c/f\n\nx");
    EXPECT_ERROR(409, "change its files there", "DELETE " API "/datasets/there/files/c");
    must(weir_dir_remove(dir, &err), &err);
}

END_TEST

START_TEST(versions_count_up_when_the_files_differ)
{
    EXPECT(404, "GET " D "/freeze");
    EXPECT(200, "PUT " D "/files/cat/1.jpg\n\nmeow");
    EXPECT(200, "POST " D "/versions");
    ck_assert_int_eq(json_integer_value(said("version")), 1);
    ck_assert_int_eq(json_integer_value(said("n_files")), 1);
    ck_assert_int_eq(json_integer_value(said("bytes")), 4);
    ck_assert_int_eq(json_integer_value(said("n_damaged")), 1); /* "meow" is no picture */
    ck_assert_int_eq(json_integer_value(said("n_other")), 0);
    ck_assert_int_eq(json_integer_value(said("n_unread")), 1);
    ck_assert_uint_eq(json_array_size(said("damaged")), 1);
    char digest[80];
    (void)snprintf(digest, sizeof digest, "%s", said_text("digest"));
    EXPECT(200, "POST " D "/versions"); /* the same files */
    ck_assert_int_eq(json_integer_value(said("version")), 1);
    ck_assert_str_eq(said_text("digest"), digest);
    EXPECT(200, "PUT " D "/files/dog/1.jpg\n\nwoof");
    EXPECT(200, "POST " D "/versions");
    ck_assert_int_eq(json_integer_value(said("version")), 2);
    ck_assert_int_eq(json_integer_value(said("n_classes")), 2);
    EXPECT(200, "GET " D "/versions");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_int_eq(json_integer_value(said("items.0.version")), 2); /* newest first */
    EXPECT(200, "GET " D "/freeze");
    ck_assert_str_eq(said_text("state"), "done");
    ck_assert_int_eq(json_integer_value(said("version.version")), 2);
    EXPECT(404, "GET " API "/datasets/none/versions");
    EXPECT(404, "POST " API "/datasets/none/versions");
    EXPECT(400, "POST " D "/versions?wait_s=601");
    EXPECT(400, "GET " D "/freeze?wait_s=61");
}

END_TEST

/* Tables are data of people's own programs; of one that has nothing else, Weir's trainings have nothing to learn. */
START_TEST(what_no_training_can_read_is_counted_and_refused_when_one_is_to)
{
    static const char train[] = "POST " API "/jobs\n\n{\"name\":\"t\",\"kind\":\"train\",\"spec\":"
                                "{\"model\":\"lenet\",\"dataset\":\"d\"}}";
    EXPECT(200, "PUT " D "/files/cat/rows.csv\n\na,b\n1,2\n");
    EXPECT(200, "POST " D "/versions");
    ck_assert_int_eq(json_integer_value(said("n_unread")), 1);
    ck_assert_int_eq(json_integer_value(said("n_rows")), 1);
    EXPECT_ERROR(400, "has no picture that a training can read (JPEG, PNG, PGM or PPM", "%s",
                 train);
    EXPECT(200, "PUT " D "/files/cat/cut.pgm\n\nP5 9 9 255\n");
    EXPECT(200, "POST " D "/versions");
    ck_assert_int_eq(json_integer_value(said("n_damaged")), 1);
    ck_assert_int_eq(json_integer_value(said("n_other")), 1);
    ck_assert_int_eq(json_integer_value(said("n_unread")), 2);
    EXPECT_STATUS(400, ask("%s", train));
    EXPECT(200, "PUT " D "/files/cat/one.pgm\n\nP2 1 1 255\n7\n");
    EXPECT(200, "POST " D "/versions");
    ck_assert_int_eq(json_integer_value(said("n_unread")), 2);
    EXPECT(200, "%s", train);
}

END_TEST

START_TEST(who_does_not_wait_is_told_how_far_it_is)
{
    EXPECT(200, "PUT " D "/files/cat/1.jpg\n\nmeow");
    int status = ask("POST " D "/versions?wait_s=0");
    ck_assert(status == 202 || status == 200); /* done at once, at best */
    EXPECT(200, "GET " D "/freeze?wait_s=60");
    ck_assert_str_eq(said_text("state"), "done");
    ck_assert_int_eq(json_integer_value(said("files")), 1);
}

END_TEST

START_TEST(an_empty_dataset_is_not_frozen)
{
    ck_assert_int_ge(ask("POST " D "/versions"), 400);
    EXPECT(200, "GET " D "/freeze");
    ck_assert_str_eq(said_text("state"), "failed");
    ck_assert_int_gt((int)strlen(said_text("error.message")), 10);
    EXPECT(200, "GET " D "/versions");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("dataset_routes", set_up, callers_close, an_uploaded_dataset_takes_files,
                    a_dataset_is_deleted_when_nothing_needs_it, no_name_leads_out_of_the_dataset,
                    a_link_in_the_datasets_place_is_not_followed,
                    a_dataset_of_wrong_form_is_refused,
                    files_of_a_folder_on_the_server_are_changed_there,
                    versions_count_up_when_the_files_differ,
                    who_does_not_wait_is_told_how_far_it_is,
                    what_no_training_can_read_is_counted_and_refused_when_one_is_to,
                    an_empty_dataset_is_not_frozen)
