/* What a project's people send for its jobs, and what another's cannot get by naming it; secrets. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define X         "x"
#define SHA_X     "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
#define Y         "y"
#define SHA_Y     "a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa"
#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ID        "00000000-0000-4000-8000-00000000000"
#define VALUE     "s3cr3t-of-vision"

static char anna[BEARER_BYTES], vera[BEARER_BYTES]; /* of the projects art and vision */

static void set_up(void)
{
    callers_open();
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"art\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"vision\"}");
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    make_caller("anna", "data-scientist", ",\"project\":\"art\"", anna);
    make_caller("vera", "data-scientist", ",\"project\":\"vision\"", vera);
}

static const char *manifest_of(const char *text)
{
    static char sha256[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(text, strlen(text), sha256);
    return sha256;
}

/** Hand in the list of a folder. */
static int put_folder(const char *who, const char *project, const char *text)
{
    return ask_as(who, "PUT " API "/blobs/%s?as=code&project=%s\n\n%s", manifest_of(text), project,
                  text);
}

#define FOLDER(sha256, bytes) "weir-tree 1\nf\t" sha256 "\t" bytes "\ttrain.py\n"

static int run_folder(const char *who, const char *project, const char *manifest)
{
    return ask_as(who,
                  "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\",\"project\":\"%s\","
                  "\"spec\":{\"argv\":[\"sh\"],\"code\":{\"manifest\":\"%s\"}}}",
                  project, manifest);
}

START_TEST(only_what_a_project_has_not_sent_is_missing)
{
    static const char question[] =
        "POST " API "/blobs/missing\n\n{\"blobs\":[\"" SHA_X "\",\"" SHA_Y "\"]}";
    EXPECT_STATUS(200, ask_as(vera, question));
    ck_assert_uint_eq(json_array_size(said("missing")), 2);
    EXPECT_STATUS(200, ask_as(vera, "PUT " API "/blobs/" SHA_X "?project=vision\n\n" X));
    EXPECT_STATUS(200, ask_as(vera, question));
    ck_assert_uint_eq(json_array_size(said("missing")), 1);
    ck_assert_str_eq(said_text("missing.0"), SHA_Y);
    EXPECT_STATUS(200, ask_as(anna, question)); /* she learns nothing of it */
    ck_assert_uint_eq(json_array_size(said("missing")), 2);
    EXPECT_STATUS(404, ask_as(anna, "PUT " API "/blobs/" SHA_Y "?project=vision\n\n" Y));
    EXPECT_STATUS(404, ask_as(anna, "POST " API "/blobs/missing\n\n{\"project\":\"vision\","
                                    "\"blobs\":[\"" SHA_X "\"]}"));
    EXPECT(400, "POST " API "/blobs/missing\n\n{\"blobs\":[]}"); /* of which project? */
    EXPECT(400, "POST " API "/blobs/missing\n\n{\"project\":\"art\",\"blobs\":[\"../x\"]}");
    EXPECT(404, "POST " API "/blobs/missing\n\n{\"project\":\"none\",\"blobs\":[]}");
}

END_TEST

START_TEST(a_folder_holds_what_its_project_has_sent_and_nothing_else)
{
    static const char folder[] = FOLDER(SHA_X, "1");
    EXPECT_STATUS(200, ask_as(vera, "PUT " API "/blobs/" SHA_X "?project=vision\n\n" X));
    EXPECT_STATUS(200, put_folder(vera, "vision", folder));
    EXPECT_STATUS(200, run_folder(vera, "vision", manifest_of(folder)));
    /* Who only knows the hash gets no folder with it, and no job with the other's folder. */
    EXPECT_STATUS(400, put_folder(anna, "art", folder));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "has not sent"));
    EXPECT_STATUS(400, run_folder(anna, "art", manifest_of(folder)));
    EXPECT_STATUS(404, put_folder(anna, "vision", folder));
    EXPECT_STATUS(404, ask_as(anna, "GET " API "/blobs/%s", manifest_of(folder)));
    EXPECT_STATUS(200, ask_as(vera, "GET " API "/blobs/%s", manifest_of(folder)));
    /* Who has the file may send it. */
    EXPECT_STATUS(200, ask_as(anna, "PUT " API "/blobs/" SHA_X "?project=art\n\n" X));
    EXPECT_STATUS(200, put_folder(anna, "art", folder));
    EXPECT_STATUS(200, run_folder(anna, "art", manifest_of(folder)));
}

END_TEST

START_TEST(a_folder_that_lies_or_leads_out_is_refused)
{
    static const char larger[] = FOLDER(SHA_X, "2"),
                      outside[] = "weir-tree 1\nf\t" SHA_X "\t1\t../train.py\n";
    EXPECT_STATUS(200, ask_as(vera, "PUT " API "/blobs/" SHA_X "?project=vision\n\n" X));
    EXPECT_STATUS(400, put_folder(vera, "vision", larger));
    EXPECT_STATUS(400, put_folder(vera, "vision", outside));
    EXPECT_STATUS(400, put_folder(vera, "vision", "{}"));
    /* A blob that is no folder is none because a job says so. */
    EXPECT_STATUS(400, run_folder(vera, "vision", SHA_X));
    EXPECT_STATUS(400, run_folder(vera, "vision", "short"));
    EXPECT(400, "PUT " API "/blobs/" SHA_X "?as=code\n\n" X);
    /* An empty file is one. */
    EXPECT_STATUS(200, ask_as(vera, "PUT " API "/blobs/" SHA_EMPTY "?project=vision"));
    EXPECT_STATUS(200, put_folder(vera, "vision", FOLDER(SHA_EMPTY, "0")));
}

END_TEST

START_TEST(a_task_reads_the_folders_of_its_own_project)
{
    char task[BEARER_BYTES];
    static const char folder[] = FOLDER(SHA_X, "1");
    place_job(&(struct placed_job){
        .id = ID "1", .task = ID "2", .kind = "command", .node = "n"}); /* of project default */
    task_bearer(ID "2", task);
    EXPECT_STATUS(200, ask_as(vera, "PUT " API "/blobs/" SHA_X "?project=vision\n\n" X));
    EXPECT_STATUS(200, put_folder(vera, "vision", folder));
    EXPECT_STATUS(404, ask_as(task, "GET " API "/blobs/%s", manifest_of(folder)));
    EXPECT_STATUS(404, ask_as(task, "GET " API "/blobs/" SHA_X));
    EXPECT_STATUS(403, ask_as(task, "PUT " API "/blobs/" SHA_Y "?project=vision\n\n" Y));
    EXPECT_STATUS(200, ask_as(task, "PUT " API "/blobs/" SHA_Y "\n\n" Y)); /* of its own */
    EXPECT_STATUS(200, ask_as(vera, "POST " API "/blobs/missing\n\n{\"blobs\":[\"" SHA_Y "\"]}"));
    ck_assert_uint_eq(json_array_size(said("missing")), 1);
}

END_TEST

/* ---- secrets ------------------------------------------------------------------------------------ */

#define SECRET API "/projects/vision/secrets/hf-token"

static bool is_said_anywhere(const char *text)
{
    return callers.x->response.body != NULL &&
           memmem(callers.x->response.body, callers.x->response.body_len, text, strlen(text)) !=
               NULL;
}

START_TEST(a_secrets_value_comes_back_nowhere)
{
    static const char *const places[] = {API "/projects/vision/secrets",
                                         API "/events?after=0",
                                         API "/audit",
                                         API "/jobs",
                                         API "/runs",
                                         API "/nodes/n/desired"};
    EXPECT_STATUS(200, ask_as(vera, "PUT " SECRET "\n\n{\"value\":\"" VALUE "\"}"));
    ck_assert(!is_said_anywhere(VALUE));
    EXPECT_STATUS(200,
                  ask_as(vera, "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\",\"spec\":"
                               "{\"argv\":[\"sh\"],\"secrets\":[\"hf-token\",\"A_B=hf-token\"]}}"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(places); i++) {
        EXPECT(200, "GET %s", places[i]);
        ck_assert_msg(!is_said_anywhere(VALUE), "%s", places[i]);
    }
    EXPECT_STATUS(200, ask_as(vera, "GET " API "/projects/vision/secrets"));
    ck_assert_str_eq(said_text("items.0.name"), "hf-token");
    ck_assert_str_eq(said_text("items.0.created_by"), "vera");
    ck_assert_uint_eq(json_array_size(said("items.0.used_by")), 1); /* once, though named twice */
    ck_assert_str_eq(said_text("items.0.used_by.0.kind"), "job");
    ck_assert_str_eq(said_text("items.0.used_by.0.state"), "PENDING");
    EXPECT(200, "POST " API "/jobs/%s/cancel", said_text("items.0.used_by.0.id"));
    EXPECT(200, "GET " API "/projects/vision/secrets");
    ck_assert_uint_eq(json_array_size(said("items.0.used_by")), 0);
    ck_assert_ptr_null(said("items.0.sealed"));
    EXPECT_STATUS(404, ask_as(anna, "GET " API "/projects/vision/secrets"));
    EXPECT_STATUS(404, ask_as(anna, "PUT " SECRET "\n\n{\"value\":\"x\"}"));
    EXPECT_STATUS(404, ask_as(anna, "DELETE " SECRET));
    EXPECT_STATUS(204, ask_as(vera, "DELETE " SECRET));
    EXPECT_STATUS(404, ask_as(vera, "DELETE " SECRET));
}

END_TEST

START_TEST(a_job_names_secrets_of_its_own_project)
{
    EXPECT_STATUS(200, ask_as(vera, "PUT " SECRET "\n\n{\"value\":\"" VALUE "\"}"));
    EXPECT_STATUS(404, ask_as(anna, "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\","
                                    "\"spec\":{\"argv\":[\"sh\"],\"secrets\":[\"hf-token\"]}}"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "$.spec.secrets[0]"));
    /* Who puts the value in place of the name does not read it again in an error. */
    EXPECT_STATUS(400, ask_as(vera,
                              "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\","
                              "\"spec\":{\"argv\":[\"sh\"],\"secrets\":[\"A=%s!\"]}}",
                              VALUE));
    ck_assert(!is_said_anywhere(VALUE));
    EXPECT_STATUS(400, ask_as(vera, "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\","
                                    "\"spec\":{\"argv\":[\"sh\"],\"secrets\":"
                                    "[\"WEIR_SERVER=hf-token\"]}}"));
    EXPECT_STATUS(400, ask_as(vera, "PUT " SECRET "\n\n{\"value\":\"\"}"));
    EXPECT_STATUS(400, ask_as(vera, "PUT " SECRET "\n\n{\"value\":3}"));
    EXPECT_STATUS(400, ask_as(vera, "PUT " SECRET "\n\n{\"value\":\"a\\u0000b\"}"));
    EXPECT_STATUS(400, ask_as(vera, "PUT " API "/projects/vision/secrets/a%%20b\n\n"
                                    "{\"value\":\"x\"}"));
}

END_TEST

static const char *const bad_specs[] = {
    "\"code\":{}",
    "\"code\":[]",
    "\"code\":{\"manifest\":\"" SHA_X "\",\"git\":\"https://h/r\",\"commit\":\"abcdef1\"}",
    "\"code\":{\"git\":\"https://h/r\"}",
    "\"code\":{\"git\":\"https://h/r\",\"commit\":\"main\"}",
    "\"code\":{\"git\":\"--upload-pack=x\",\"commit\":\"abcdef1\"}",
    "\"code\":{\"git\":\"https://u:secret@h/r\",\"commit\":\"abcdef1\"}",
    "\"code\":{\"git\":\"https://h/r\",\"commit\":\"abcdef1\",\"mode\":\"4755\"}",
    "\"code\":{\"git\":\"https://h/r\",\"commit\":\"abcdef1\",\"dirty\":\"yes\"}",
    "\"code\":{\"git\":\"https://h/r\",\"commit\":\"abcdef1\",\"patch\":\"" SHA_Y "\"}",
    "\"python\":\"-e .\"",
    "\"python\":\"numpy\\n  -r other.txt\"",
    "\"python\":\"--index-url https://u:secret@h/simple\"",
    "\"python\":\"./wheel.whl\"",
    "\"secrets\":[3]",
    "\"secrets\":{}",
};

START_TEST(code_packages_and_secrets_of_another_form_are_refused)
{
    EXPECT(400,
           "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\",\"spec\":{\"argv\":"
           "[\"sh\"],%s}}",
           bad_specs[_i]);
    ck_assert_msg(!is_said_anywhere("secret@"), "%s", said_text("error.message"));
}

END_TEST

WEIR_TEST_MAIN_WITH("code routes", set_up, callers_close,
                    only_what_a_project_has_not_sent_is_missing,
                    a_folder_holds_what_its_project_has_sent_and_nothing_else,
                    a_folder_that_lies_or_leads_out_is_refused,
                    a_task_reads_the_folders_of_its_own_project, a_secrets_value_comes_back_nowhere,
                    a_job_names_secrets_of_its_own_project,
                    code_packages_and_secrets_of_another_form_are_refused)
