/* Models pushed, named and deployed, as people and replicas see it. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "control/deploy.h"
#include "deploy/deploy.h"
#include "store/stmt.h"

#define BLOB_X "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" /* of "x" */
#define BAD    "bad, and no model"
#define ID     "00000000-0000-4000-8000-0000000000c"
#define TASK   "00000000-0000-4000-8000-0000000000a1"
#define JOB    "00000000-0000-4000-8000-0000000000b1"

static char replica[BEARER_BYTES];

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "\n\nx");
}

static void tear_down(void)
{
    callers_close();
}

static void push(const char *model, int number, const char *more)
{
    EXPECT(200,
           "POST " API "/models/%s/versions\n\n{\"id\":\"" ID "%d\",\"blob\":\"" BLOB_X "\"%s}",
           model, number, more);
}

/* ---- versions -------------------------------------------------------------------------------- */

START_TEST(a_file_that_is_no_model_becomes_no_version)
{
    char sha[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(BAD, strlen(BAD), sha);
    EXPECT(200, "PUT " API "/blobs/%s\n\n" BAD, sha);
    EXPECT_ERROR(400, "digits: the file is neither Weir's nor ONNX",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "1\",\"blob\":\"%s\"}",
                 sha);
    EXPECT(404, "GET " API "/models/digits");
}

END_TEST

START_TEST(a_version_says_what_it_takes_and_who_said_so)
{
    push("digits", 1,
         ",\"labels\":[\"cat\"],\"preprocess\":{\"scale\":1},\"alias\":\"stable\","
         "\"signature\":{\"format\":\"forged\"}");
    ck_assert_str_eq(said_text("signature.format"), "onnx");
    ck_assert_str_eq(said_text("signature.labels.0"), "cat");
    ck_assert(json_is_object(said("signature.picture")));
    EXPECT(200, "GET " API "/models/digits/aliases");
    ck_assert_str_eq(said_text("items.0.alias"), "stable");
    ck_assert_int_eq(json_integer_value(said("items.0.version")), 1);
    push("digits", 1, ""); /* the answer was lost, say */
    ck_assert_int_eq(json_integer_value(said("version")), 1);
    EXPECT_ERROR(400, "$.labels: expected an array",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "2\",\"blob\":\"" BLOB_X
                 "\",\"labels\":\"cat\"}");
    EXPECT_ERROR(400, "$.preprocess: expected an object",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "2\",\"blob\":\"" BLOB_X
                 "\",\"preprocess\":3}");
    EXPECT_ERROR(409, "is of project \"default\"",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "2\",\"blob\":\"" BLOB_X
                 "\",\"project\":\"red\"}");
}

END_TEST

START_TEST(an_alias_moves_and_goes)
{
    push("digits", 1, "");
    push("digits", 2, "");
    EXPECT(200, "PUT " API "/models/digits/aliases/best\n\n{\"version\":1}");
    EXPECT(200, "PUT " API "/models/digits/aliases/best\n\n{\"version\":2}");
    ck_assert_int_eq(json_integer_value(said("version")), 2);
    EXPECT_ERROR(404, "there are v2, v1",
                 "PUT " API "/models/digits/aliases/best\n\n{\"version\":3}");
    EXPECT_ERROR(400, "no version's", "PUT " API "/models/digits/aliases/v2\n\n{\"version\":2}");
    EXPECT(204, "DELETE " API "/models/digits/aliases/best");
    EXPECT(404, "DELETE " API "/models/digits/aliases/best");
}

END_TEST

START_TEST(a_member_of_a_project_pushes_into_it_and_deploys_from_it)
{
    char meg[BEARER_BYTES];
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"red\"}");
    make_caller("meg", "member", "", meg);
    EXPECT(200, "PUT " API "/projects/red/members/user/meg\n\n{\"role\":\"ml-engineer\"}");
    push("digits", 1, "");
    /* A file that another project has sent is not there, until one's own has. */
    EXPECT_STATUS(409, ask_as(meg, "POST " API "/models/letters/versions\n\n{\"id\":\"" ID
                                   "5\",\"blob\":\"" BLOB_X "\"}"));
    EXPECT_STATUS(200, ask_as(meg, "PUT " API "/blobs/" BLOB_X "\n\nx"));
    EXPECT_STATUS(200, ask_as(meg, "POST " API "/models/letters/versions\n\n{\"id\":\"" ID
                                   "5\",\"blob\":\"" BLOB_X "\"}"));
    EXPECT(200, "GET " API "/models/letters");
    ck_assert_str_eq(said_text("project"), "red");
    EXPECT_STATUS(200, ask_as(meg, "PUT " API "/deployments/letters\n\n{\"model\":\"letters\"}"));
    ck_assert_str_eq(said_text("project"), "red");
    EXPECT_STATUS(404, ask_as(meg, "PUT " API "/deployments/mine\n\n{\"model\":\"digits\"}"));
    EXPECT(200, "PUT " API "/deployments/digits\n\n{\"model\":\"digits\"}");
    EXPECT_STATUS(404, ask_as(meg, "GET " API "/deployments/digits"));
    EXPECT_STATUS(404, ask_as(meg, "GET " API "/deployments/digits/figures"));
    EXPECT_STATUS(200, ask_as(meg, "GET " API "/deployments/letters/figures"));
    ck_assert_uint_eq(json_array_size(said("items")), 0); /* nobody has asked it anything */
    EXPECT_STATUS(404, ask_as(meg, "DELETE " API "/deployments/digits"));
    EXPECT_STATUS(403, ask_as(meg, "PUT " API "/deployments/digits\n\n{\"model\":\"letters\"}"));
    EXPECT_STATUS(403, ask_as(meg, "POST " API "/models/digits/versions\n\n{}"));
    EXPECT_STATUS(200, ask_as(meg, "GET " API "/deployments"));
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " API "/deployments/digits");
    ck_assert_str_eq(said_text("model"), "digits"); /* as it was */
}

END_TEST

START_TEST(a_version_is_made_of_a_file_that_a_run_left)
{
    char meg[BEARER_BYTES];
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "train", .node = "n", .run = "run-1", .spec = "{}"});
    EXPECT(200, "PUT " API "/runs/run-1/artifacts/out/model.onnx\n\nx");
    EXPECT(200, "PUT " API "/runs/run-1/artifacts/notes.txt\n\n" BAD);
    EXPECT_ERROR(404, "run run-1 has no model to register",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID
                 "1\",\"run\":\"run-1\",\"artifact\":\"notes.txt\"}");
    EXPECT_ERROR(400, "$.artifact",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID
                 "1\",\"artifact\":\"out\"}");
    EXPECT_ERROR(400, "$.artifact",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID
                 "1\",\"run\":\"run-1\",\"artifact\":\"out\",\"blob\":\"" BLOB_X "\"}");
    EXPECT(404, "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "1\",\"run\":\"none\"}");
    EXPECT(404, "GET " API "/models/digits"); /* none of these has made one */
    EXPECT(200, "POST " API "/models/digits/versions\n\n{\"id\":\"" ID
                "1\",\"run\":\"run-1\",\"labels\":[\"cat\"],\"alias\":\"best\"}");
    ck_assert_str_eq(said_text("blob"), BLOB_X);
    ck_assert_str_eq(said_text("run"), "run-1");
    ck_assert_str_eq(said_text("signature.labels.0"), "cat");
    EXPECT(200, "POST " API "/models/digits/versions\n\n{\"id\":\"" ID
                "1\",\"run\":\"run-1\",\"artifact\":\"out\"}"); /* the same version again */
    ck_assert_int_eq(json_integer_value(said("version")), 1);
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"red\"}");
    make_caller("meg", "member", "", meg);
    EXPECT(200, "PUT " API "/projects/red/members/user/meg\n\n{\"role\":\"ml-engineer\"}");
    EXPECT_STATUS(404, ask_as(meg, "POST " API "/models/mine/versions\n\n{\"id\":\"" ID
                                   "2\",\"run\":\"run-1\"}"));
}

END_TEST

/* ---- deployments ----------------------------------------------------------------------------- */

/* digits is deployed with one replica, whose job runs. */
static void deploy(const char *more)
{
    push("digits", 1, "");
    push("digits", 2, "");
    EXPECT(200, "PUT " API "/deployments/digits\n\n{\"model\":\"digits\",\"version\":\"v1\"%s}",
           more);
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "serve", .node = "n", .replica = "digits-1"});
    task_bearer(TASK, replica);
}

static void report(const char *versions)
{
    EXPECT_STATUS(204, ask_as(replica,
                              "PUT " API "/deployments/digits/replicas/digits-1\n\n"
                              "{\"url\":\"http://h:1\",\"revision\":1,\"versions\":%s,"
                              "\"n_running\":3,\"stats\":{\"n\":7}}",
                              versions));
}

#define READY(v) "{\"version\":" #v ",\"state\":\"READY\",\"executor\":\"onnx\"}"

START_TEST(a_deployment_is_shown_with_its_shares_and_replicas)
{
    deploy("");
    ck_assert_str_eq(said_text("state"), "DEPLOYING");
    ck_assert_ptr_null(said("secret"));
    report("[" READY(1) "]");
    EXPECT(200, "GET " API "/deployments/digits");
    ck_assert_str_eq(said_text("state"), "SERVING");
    ck_assert_double_eq(json_number_value(said("versions.0.live_percent")), 100);
    ck_assert_str_eq(said_text("versions.0.state"), "READY");
    ck_assert_str_eq(said_text("replicas.0.versions.0.executor"), "onnx");
    ck_assert_str_eq(said_text("replicas.0.job_state"), "RUNNING");
    ck_assert_int_eq(json_integer_value(said("replicas.0.stats.n")), 7);
    ck_assert_int_eq(json_integer_value(said("n_ready")), 1);
    EXPECT(200, "PUT " API "/deployments/digits\n\n{\"traffic\":[{\"version\":1,\"percent\":90},"
                "{\"version\":2,\"percent\":10}]}");
    ck_assert_double_eq(json_number_value(said("versions.1.percent")), 10);
    ck_assert_double_eq(json_number_value(said("versions.1.live_percent")), 0);
    report("[" READY(1) ",{\"version\":2,\"state\":\"FAILED\",\"reason\":\"no operator Foo\"}]");
    EXPECT(200, "GET " API "/deployments/digits");
    ck_assert_str_eq(said_text("versions.1.reason"), "no operator Foo");
    ck_assert_ptr_nonnull(strstr(said_text("reason"), "the traffic stays as it was"));
}

END_TEST

START_TEST(a_replica_is_told_what_to_load_and_of_no_other_deployment)
{
    deploy("");
    EXPECT_STATUS(200, ask_as(replica, "GET " API "/deployments/digits/desired"));
    int64_t revision = json_integer_value(said("revision"));
    ck_assert_str_eq(said_text("versions.0.blob"), BLOB_X);
    ck_assert_str_eq(said_text("versions.0.signature.format"), "onnx");
    ck_assert_uint_eq(json_array_size(said("live")), 0);
    callers.may_wait = true;
    (void)ask_as(replica, "GET " API "/deployments/digits/desired?after=%lld&wait_s=5",
                 (long long)revision);
    ck_assert_int_eq(callers.x->response.kind, ANSWER_WAIT);
    callers.may_wait = false;
    EXPECT(200, "PUT " API "/deployments/digits\n\n{\"batch_max\":32}");
    EXPECT_STATUS(200, ask_as(replica, "GET " API "/deployments/digits/desired?after=%lld&wait_s=5",
                              (long long)revision));
    ck_assert_int_eq(json_integer_value(said("batch_max")), 32);
    EXPECT_STATUS(403, ask_as(replica, "GET " API "/deployments/other/desired"));
    EXPECT_STATUS(403, ask_as(replica, "PUT " API "/deployments/digits/replicas/digits-2\n\n{}"));
    EXPECT_STATUS(403, ask_as(replica, "GET " API "/deployments/digits"));
}

END_TEST

START_TEST(golden_inputs_are_kept_with_the_version_and_told_to_replicas)
{
    char sha[WEIR_SHA256_TEXT_BYTES];
    weir_sha256("{}", 2, sha);
    EXPECT_ERROR(409, "$.golden: upload the file first",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "1\",\"blob\":\"" BLOB_X
                 "\",\"golden\":\"%s\"}",
                 sha);
    EXPECT(200, "PUT " API "/blobs/%s\n\n{}", sha);
    EXPECT(200,
           "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "1\",\"blob\":\"" BLOB_X
           "\",\"golden\":\"%s\"}",
           sha);
    ck_assert_str_eq(said_text("golden"), sha);
    deploy("");
    EXPECT_STATUS(200, ask_as(replica, "GET " API "/deployments/digits/desired"));
    ck_assert_str_eq(said_text("versions.0.golden"), sha);
}

END_TEST

START_TEST(a_version_goes_when_nothing_uses_it_and_what_names_it_stays)
{
    deploy(""); /* v1 serves; v2 does not */
    EXPECT(200, "PUT " API "/models/digits/aliases/best\n\n{\"version\":2}");
    EXPECT_ERROR(409, "its alias best names it", "DELETE " API "/models/digits/versions/2");
    EXPECT(204, "DELETE " API "/models/digits/aliases/best");
    EXPECT_ERROR(409, "deployment digits serves it", "DELETE " API "/models/digits/versions/1");
    EXPECT_ERROR(409, "deployment digits serves it", "DELETE " API "/models/digits");
    EXPECT(200, "GET " API "/models/digits/versions/2"); /* all or nothing */
    EXPECT(204, "DELETE " API "/models/digits/versions/2");
    EXPECT_ERROR(404, "was deleted by ann", "GET " API "/models/digits/versions/2");
    EXPECT_ERROR(404, "was deleted", "DELETE " API "/models/digits/versions/2");
    EXPECT_ERROR(409, "was version 2 of \"digits\", and was deleted",
                 "POST " API "/models/digits/versions\n\n{\"id\":\"" ID "2\",\"blob\":\"" BLOB_X
                 "\"}");
    EXPECT(200, "GET " API "/models/digits/versions");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT_ERROR(404, "there is v1", "PUT " API "/deployments/digits\n\n{\"version\":\"v2\"}");
    push("digits", 3, "");
    ck_assert_int_eq(json_integer_value(said("version")), 3); /* no number comes twice */
    EXPECT(204, "DELETE " API "/deployments/digits");
}

END_TEST

START_TEST(a_model_goes_with_all_its_versions_and_may_come_again)
{
    push("digits", 1, "");
    push("digits", 2, "");
    EXPECT(204, "DELETE " API "/models/digits");
    EXPECT(404, "GET " API "/models/digits");
    EXPECT(404, "DELETE " API "/models/digits");
    EXPECT(404, "GET " API "/models/digits/versions");
    EXPECT(200, "GET " API "/models");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT_ERROR(404, "weir get models",
                 "PUT " API "/deployments/digits\n\n{\"model\":\"digits\"}");
    EXPECT_ERROR(404, "weir get models", "PUT " API "/deployments/digits\n\n{\"model\":\"digit\"}");
    push("digits", 3, "");
    ck_assert_int_eq(json_integer_value(said("version")), 3);
    EXPECT(200, "GET " API "/models/digits");
}

END_TEST

START_TEST(a_deleted_deployment_is_gone_for_all)
{
    deploy("");
    EXPECT(204, "DELETE " API "/deployments/digits");
    EXPECT_ERROR(404, "`weir deploy MODEL` makes one", "GET " API "/deployments/digits");
    EXPECT_STATUS(403, ask_as(replica, "GET " API "/deployments/digits/desired"));
    EXPECT_ERROR(404, "did you mean \"digits\"?",
                 "PUT " API "/deployments/d\n\n{\"model\":\"digit\"}");
}

END_TEST

static weir_status forget_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "UPDATE model_versions SET signature = NULL", WEIR_NO_BINDS, NULL,
                         err);
}

START_TEST(a_version_of_before_is_looked_at_when_it_is_deployed)
{
    struct weir_error err;
    push("digits", 1, "");
    must(weir_store_write(callers.fixture.store, forget_in, NULL, &err), &err);
    EXPECT(200, "PUT " API "/deployments/digits\n\n{\"model\":\"digits\"}");
    EXPECT(200, "GET " API "/models/digits/versions/1");
    ck_assert_str_eq(said_text("signature.format"), "onnx");
}

END_TEST

WEIR_TEST_MAIN_WITH("deploy_routes", set_up, tear_down, a_file_that_is_no_model_becomes_no_version,
                    a_version_says_what_it_takes_and_who_said_so, an_alias_moves_and_goes,
                    a_member_of_a_project_pushes_into_it_and_deploys_from_it,
                    a_version_is_made_of_a_file_that_a_run_left,
                    a_deployment_is_shown_with_its_shares_and_replicas,
                    a_replica_is_told_what_to_load_and_of_no_other_deployment,
                    golden_inputs_are_kept_with_the_version_and_told_to_replicas,
                    a_version_goes_when_nothing_uses_it_and_what_names_it_stays,
                    a_model_goes_with_all_its_versions_and_may_come_again,
                    a_deleted_deployment_is_gone_for_all,
                    a_version_of_before_is_looked_at_when_it_is_deployed)
