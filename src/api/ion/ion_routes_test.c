/* IONs: apply, look, review; what replicas report; decisions and their pictures. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "base/uuid.h"
#include "store/stmt.h"

#define DOOR API "/ions/door"
#define SEE  DOOR "/pipelines/see"
#define JOB  "00000000-0000-4000-8000-0000000000b1"
#define TASK "00000000-0000-4000-8000-0000000000a1"
#define DECISION                                                                                   \
    "{\"id\":\"%s\",\"ion\":\"door\",\"pipeline\":\"see\",\"camera\":\"%s\","                      \
    "\"frame\":%d,\"verdict\":\"%s\",\"latency_us\":%d,\"time_ms\":\"%s\"}"

static int apply(const char *policy, const char *token)
{
    return ask("POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":["
               "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
               "\"model\":\"face-embed\"},"
               "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\""
               "%s},\"gallery\":{\"dataset\":\"staff\"}}],"
               "\"links\":[{\"from\":\"learn\",\"to\":\"see\"%s}]}",
               token, policy);
}

static void set_up(void)
{
    callers_open();
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    EXPECT_STATUS(200, apply("", ""));
}

START_TEST(the_same_document_changes_nothing)
{
    int64_t revision = json_integer_value(said("revision"));
    ck_assert_str_eq(said_text("state"), "ACTIVE");
    ck_assert_uint_eq(json_array_size(said("pipelines")), 2);
    ck_assert_str_eq(said_text("links.0.id"), "learn:see");
    ck_assert(json_is_array(said("warnings")));
    EXPECT_STATUS(200, apply("", ""));
    ck_assert_int_eq(json_integer_value(said("revision")), revision);
    EXPECT_STATUS(200, apply(",\"policy\":{\"kind\":\"manual\"}", ""));
    ck_assert_int_eq(json_integer_value(said("revision")), revision + 1);
    ck_assert_str_eq(said_text("links.0.policy"), "manual");
    EXPECT(200, "GET " API "/ions");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " DOOR);
    ck_assert_int_eq(json_integer_value(said("revision")), revision + 1);
    ck_assert(json_is_object(said("health")));
}

END_TEST

START_TEST(a_dry_run_says_what_would_come_of_it_and_changes_nothing)
{
    EXPECT(200, "GET " DOOR);
    int64_t revision = json_integer_value(said("revision"));
    EXPECT(200, "POST " API "/ions?dry_run=1\n\n{\"name\":\"door\",\"pipelines\":["
                "{\"name\":\"watch\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"},"
                "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"},"
                "\"gallery\":{\"dataset\":\"staff\"},\"replicas\":2}],"
                "\"links\":[{\"from\":\"watch\",\"to\":\"see\"}]}");
    ck_assert_int_eq(json_integer_value(said("revision")), revision + 1);
    ck_assert_str_eq(said_text("links.0.id"), "watch:see");
    ck_assert(json_is_array(said("effects")));
    ck_assert(json_is_array(said("warnings")));
    EXPECT(200, "GET " DOOR);
    ck_assert_int_eq(json_integer_value(said("revision")), revision);
    ck_assert_str_eq(said_text("links.0.id"), "learn:see");
    EXPECT_ERROR(400, "$.name", "POST " API "/ions?dry_run=1\n\n{}");
    EXPECT(200, "POST " API "/ions?dry_run=1\nX-Weir-Draft: 1\n\n{}");
    ck_assert_str_eq(said_header("X-Weir-Status"), "400");
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "$.name"));
    EXPECT_ERROR(400, "$.name", "POST " API "/ions\nX-Weir-Draft: 1\n\n{}");
    EXPECT(200, "POST " API "/ions?dry_run=1\n\n{\"name\":\"gate\",\"pipelines\":["
                "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"}]}");
    ck_assert_int_eq(json_integer_value(said("revision")), 1);
    EXPECT(404, "GET " API "/ions/gate");
    EXPECT_ERROR(400, "dry_run", "POST " API "/ions?dry_run=perhaps\n\n{\"name\":\"gate\"}");
    EXPECT(200, "POST " API "/ions?dry_run=0\n\n{\"name\":\"gate\",\"pipelines\":["
                "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"}]}");
    EXPECT(200, "GET " API "/ions/gate");
}

END_TEST

START_TEST(a_document_of_wrong_form_is_refused_whole)
{
    static const struct {
        const char *document, *place;
    } wrong[] = {
        {"{}", "$.name"},
        {"{\"name\":\"gate\"}", "$."},
        {"{\"name\":\"gate\",\"pipelines\":[{\"name\":\"a\",\"type\":\"paint\"}]}",
         "$.pipelines[0].type"},
        {"{\"name\":\"gate\",\"pipelines\":[{\"name\":\"a\",\"type\":\"training\","
         "\"dataset\":\"staff\",\"model\":\"face-embed\",\"colour\":1}]}",
         "$.pipelines[0].colour"},
        {"{\"name\":\"gate\",\"pipelines\":[{\"name\":\"a\",\"type\":\"training\","
         "\"dataset\":\"staff\",\"model\":\"face-embedd\"}]}",
         "$.pipelines[0].model"},
        {"{\"name\":\"gate\",\"pipelines\":[{\"name\":\"a\",\"type\":\"training\","
         "\"kind\":\"paint\",\"parameters\":{\"argv\":[\"a\"]}}]}",
         "$.pipelines[0].kind"},
        {"{\"name\":\"gate\",\"pipelines\":[{\"name\":\"a\",\"type\":\"training\","
         "\"kind\":\"serve\",\"parameters\":{\"argv\":[\"a\"]}}]}",
         "$.pipelines[0].kind"},
        {"{\"name\":\"gate\",\"pipelines\":[{\"name\":\"a\",\"type\":\"training\","
         "\"kind\":\"command\",\"parameters\":{\"argv\":[]}}]}",
         "$.pipelines[0].parameters.argv"},
        {"{\"name\":\"gate\",\"pipelines\":[{\"name\":\"a\",\"type\":\"training\","
         "\"kind\":\"command\",\"dataset\":\"nowhere\",\"parameters\":{\"argv\":[\"/a\"]}}]}",
         "$.pipelines[0].dataset"},
        {"{\"name\":\"gate\",\"pipelines\":[],\"links\":[{\"from\":\"a\",\"to\":\"b\"}]}", "$."},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_ERROR(400, wrong[i].place, "POST " API "/ions\n\n%s", wrong[i].document);
    }
    EXPECT(404, "GET " API "/ions/gate");
}

END_TEST

START_TEST(a_sources_token_is_kept_and_never_shown)
{
    EXPECT_STATUS(200, apply("", ",\"token\":\"a-very-secret-token-of-the-source\""));
    ck_assert_ptr_null(strstr(callers.x->response.body, "a-very-secret"));
    ck_assert_ptr_nonnull(strstr(callers.x->response.body, "***"));
    int64_t revision = json_integer_value(said("revision"));
    EXPECT_STATUS(200, apply("", ",\"token\":\"***\"")); /* as it was fetched */
    ck_assert_int_eq(json_integer_value(said("revision")), revision);
}

END_TEST

START_TEST(a_deleted_ion_is_gone_for_readers)
{
    EXPECT(204, "DELETE " DOOR);
    EXPECT(404, "GET " DOOR);
    EXPECT(404, "GET " DOOR "/candidates");
    EXPECT(200, "GET " API "/ions");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    ck_assert_int_ge(ask("POST " DOOR "/trigger\n\n{\"pipeline\":\"learn\"}"), 400);
    EXPECT(404, "DELETE " API "/ions/none");
}

END_TEST

START_TEST(a_training_is_triggered_once_its_data_is_frozen)
{
    EXPECT(200, "PUT " API "/datasets/staff/files/ann/1.jpg\n\nx");
    EXPECT(200, "POST " API "/datasets/staff/versions");
    EXPECT(200, "POST " DOOR "/trigger\n\n{\"pipeline\":\"learn\"}");
    EXPECT(200, "GET " API "/events?subject=ion/door&limit=100");
    ck_assert_uint_ge(json_array_size(said("items")), 2);
    ck_assert_int_ge(ask("POST " DOOR "/trigger\n\n{\"pipeline\":\"none\"}"), 400);
    ck_assert_int_ge(ask("POST " DOOR "/trigger\n\n{\"pipeline\":\"see\"}"), 400);
    EXPECT(404, "POST " API "/ions/none/trigger\n\n{\"pipeline\":\"learn\"}");
}

END_TEST

START_TEST(there_is_nothing_to_review_before_there_is_a_model)
{
    static const char *const verbs[] = {"approve", "reject", "rollback"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(verbs); i++) {
        int status = ask("POST " DOOR "/%s\n\n{}", verbs[i]);
        ck_assert_msg(status == 404 || status == 409, "%s: %d", verbs[i], status);
        ck_assert_int_gt((int)strlen(said_text("error.message")), 20);
    }
    EXPECT(200, "GET " DOOR "/candidates");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(200, "GET " DOOR "/policy-decisions");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

/* ---- replicas -------------------------------------------------------------------------------- */

static char replica[BEARER_BYTES];

static void start_replica(void)
{
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "predict", .node = "n", .ion = "door", .pipeline = "see"});
    task_bearer(TASK, replica);
}

START_TEST(a_replicas_report_is_listed)
{
    start_replica();
    EXPECT_STATUS(204, ask_as(replica, "PUT " SEE "/replicas/" JOB "-0\n\n{\"state\":\"STARTING\","
                                       "\"frames_taken\":7}"));
    EXPECT(200, "GET " DOOR "/replicas");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.replica"), JOB "-0");
    ck_assert_int_eq(json_integer_value(said("items.0.frames_taken")), 7);
    EXPECT_STATUS(400, ask_as(replica, "PUT " SEE "/replicas/" JOB "-0\n\n{}"));
    EXPECT_STATUS(204, ask_as(replica, "PUT " SEE "/threshold\n\n{\"deployment_revision\":1,"
                                       "\"threshold\":0.5,\"rule\":\"gallery\"}"));
    EXPECT_STATUS(400, ask_as(replica, "PUT " SEE "/threshold\n\n{\"deployment_revision\":0,"
                                       "\"threshold\":0.5,\"rule\":\"gallery\"}"));
}

END_TEST

START_TEST(a_threshold_says_what_it_can_claim)
{
    start_replica();
    EXPECT(200, "GET " DOOR);
    ck_assert_uint_eq(json_array_size(said("pipelines.1.claims")), 0);
    EXPECT_STATUS(204, ask_as(replica, "PUT " SEE "/threshold\n\n{\"deployment_revision\":1,"
                                       "\"threshold\":0.5,\"rule\":\"impostors\",\"scores\":300,"
                                       "\"people\":100,\"gallery_people\":60,"
                                       "\"expected_rate\":0.01}"));
    EXPECT(200, "GET " DOOR);
    ck_assert_uint_eq(json_array_size(said("pipelines.1.claims")), 6);
    ck_assert_str_eq(said_text("pipelines.1.claims.0.name"), "gallery_people");
    ck_assert_double_eq(json_number_value(said("pipelines.1.claims.0.value")), 60);
    ck_assert_double_eq_tol(json_number_value(said("pipelines.1.claims.2.value")), 0.03, 1e-12);
    ck_assert(json_is_null(said("pipelines.1.claims.5.value"))); /* nobody has come yet */
    ck_assert_str_eq(said_text("pipelines.1.claims.5.rests_on"),
                     "Not known before the pipeline has decided something.");
}

END_TEST

START_TEST(a_replica_waits_for_its_deployment)
{
    start_replica();
    EXPECT_STATUS(200, ask_as(replica, "GET " SEE "/deployment"));
    long long revision = (long long)json_integer_value(said("revision"));
    callers.may_wait = true;
    EXPECT_STATUS(0, ask_as(replica, "GET " SEE "/deployment?after=%lld&wait_s=60", revision));
    ck_assert_int_eq(callers.x->response.kind, ANSWER_WAIT);
    callers.x->request.is_expired = true;
    request_fixture_handle(&callers.fixture, callers.x);
    ck_assert_int_eq(callers.x->response.http_status, 200);
    EXPECT(404, "GET " DOOR "/pipelines/learn/deployment");
    EXPECT(404, "GET " DOOR "/pipelines/none/deployment");
    EXPECT(400, "GET " SEE "/deployment?wait_s=61");
}

END_TEST

/* ---- registered models ----------------------------------------------------------------------- */

struct pushed {
    const char *id, *model, *project, *signature;
};

/* A version as a push leaves it. */
static weir_status push_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct pushed *pushed = context;
    const struct weir_model_version version = {.id = (char *)pushed->id,
                                               .model = (char *)pushed->model,
                                               .blob = "b10b",
                                               .signature = (char *)pushed->signature};
    struct weir_model_version out;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_model_register(txn, &version, pushed->project, 1000, &arena, &out, NULL, err);
    weir_arena_fini(&arena);
    return status;
}

static void push(int number, const char *signature)
{
    char id[WEIR_UUID_BYTES];
    struct weir_error err = {0};
    (void)snprintf(id, sizeof id, "00000000-0000-4000-8000-0000000000c%d", number);
    struct pushed pushed = {id, "sorter", "default", signature};
    must(weir_store_write(callers.fixture.store, push_in, &pushed, &err), &err);
}

static int apply_to_model(const char *model, const char *gallery, const char *policy)
{
    return ask("POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":["
               "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"}%s}],"
               "\"links\":[{\"from\":{\"model\":\"%s\"},\"to\":\"see\","
               "\"policy\":%s}]}",
               gallery, model, policy);
}

#define TAKEN   "\"always-update\""
#define GALLERY ",\"gallery\":{\"dataset\":\"staff\"}"

START_TEST(a_link_begins_at_no_model_that_was_deleted)
{
    push(1, NULL);
    EXPECT(204, "DELETE " API "/models/sorter");
    ck_assert_int_eq(apply_to_model("sorter", "", TAKEN), 400);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "no model \"sorter\""));
    ck_assert_int_eq(
        ask("POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":["
            "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\",\"model\":"
            "\"face-embed\"},{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":"
            "\"http\"}" GALLERY "}],\"links\":[{\"from\":\"learn\",\"to\":\"see\",\"policy\":" TAKEN
            ",\"default\":\"sorter@1\"}]}"),
        400);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "no model \"sorter\""));
}

END_TEST

/* A candidate of version 1 of sorter in this state, served as the so-many-th of its link. */
struct candidate {
    const char *state;
    int64_t served_seq;
};

static weir_status set_candidate_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct candidate *candidate = context;
    WEIR_TRY(
        weir_txn_exec(txn, "DELETE FROM ion_candidates WHERE id = 'c1'", WEIR_NO_BINDS, NULL, err));
    return weir_txn_exec(
        txn,
        "INSERT INTO ion_candidates (id, ion, link, model, model_version, version, blob, state,"
        " served_seq, served_ms, created_ms, updated_ms) VALUES ('c1', 'door', 'l', 'sorter',"
        " '00000000-0000-4000-8000-0000000000c1', 1, 'b10b', :state, :seq, 0, 0, 0)",
        WEIR_BINDS(WEIR_BIND_TEXT("state", candidate->state),
                   WEIR_BIND_INT("seq", candidate->served_seq)),
        NULL, err);
}

static void set_candidate(const char *state, int64_t served_seq)
{
    struct weir_error err = {0};
    struct candidate candidate = {state, served_seq};
    must(weir_store_write(callers.fixture.store, set_candidate_in, &candidate, &err), &err);
}

static const char *const used_states[] = {"PENDING_REVIEW", "WAITING", "APPROVED",
                                          "SHADOW",         "CANARY",  "SERVING"};

START_TEST(a_version_that_an_ion_uses_or_goes_back_to_is_not_deleted)
{
    push(1, NULL);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(used_states); i++) {
        set_candidate(used_states[i], 0);
        EXPECT(409, "DELETE " API "/models/sorter/versions/1");
        ck_assert_ptr_nonnull(
            strstr(said_text("error.message"), "it is in use in ION door, link l"));
        ck_assert_ptr_nonnull(strstr(said_text("error.message"), used_states[i]));
        EXPECT(409, "DELETE " API "/models/sorter");
    }
    set_candidate("RETIRED", 3);
    EXPECT(409, "DELETE " API "/models/sorter/versions/1");
    ck_assert_ptr_nonnull(
        strstr(said_text("error.message"), "a roll back of ION door, link l leads to it"));
    set_candidate("REJECTED", 0);
    EXPECT(204, "DELETE " API "/models/sorter/versions/1");
    push(2, "{\"picture\":{},\"output_kind\":\"embedding\"}"); /* a default need not have served */
    EXPECT(200,
           "POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\",\"type\":"
           "\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},{\"name\":\"see\","
           "\"type\":\"prediction\",\"source\":{\"kind\":\"http\"}" GALLERY
           "}],\"links\":[{\"from\":\"learn\","
           "\"to\":\"see\",\"policy\":" TAKEN ",\"default\":\"sorter@2\"}]}");
    EXPECT(409, "DELETE " API "/models/sorter/versions/2");
    ck_assert_ptr_nonnull(
        strstr(said_text("error.message"), "it is the default of a link of ION door"));
}

END_TEST

static const struct {
    const char *signature, *gallery, *said;
} unfit[] = {
    {"{\"picture\":null,\"output_kind\":\"logits\"}", "", "takes no picture"},
    {"{\"picture\":{},\"output_kind\":\"tensor\"}", "", "does not explain"},
    {"{\"picture\":{},\"output_kind\":\"embedding\"}", "", "has no gallery"},
    {"{\"picture\":{},\"output_kind\":\"probabilities\"}", GALLERY, "take the gallery out"},
};

START_TEST(a_model_that_does_not_fit_its_pipeline_is_refused)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(unfit); i++) {
        push((int)i, unfit[i].signature);
        EXPECT_STATUS(501, apply_to_model("sorter", unfit[i].gallery, TAKEN));
        ck_assert_msg(strstr(said_text("error.message"), unfit[i].said) != NULL, "%s",
                      said_text("error.message"));
        ck_assert_ptr_nonnull(strstr(said_text("error.message"), "$.links[0].from.model: version"));
    }
}

END_TEST

START_TEST(a_pushed_model_serves_with_its_signature)
{
    EXPECT_STATUS(400, apply_to_model("sorter", "", TAKEN));
    ck_assert_ptr_nonnull(
        strstr(said_text("error.message"), "$.links[0].from.model: there is no model \"sorter\""));
    push(1, "{\"picture\":{},\"output_kind\":\"logits\"}");
    EXPECT_STATUS(200, apply_to_model("sorter", "", TAKEN));
    ck_assert_str_eq(said_text("links.0.id"), "model/sorter:see");
    ck_assert_int_eq(json_integer_value(said("links.0.wanted_version")), 1);
    start_replica();
    EXPECT_STATUS(200, ask_as(replica, "GET " SEE "/deployment"));
    ck_assert_str_eq(said_text("model.name"), "sorter");
    ck_assert_str_eq(said_text("model.signature.output_kind"), "logits");
    ck_assert_str_eq(said_text("stages.1"), "classify");
    ck_assert(json_is_null(said("gallery")));
    EXPECT(200, "GET " SEE "/deployment"); /* for people it is long and of no use */
    ck_assert_ptr_null(said("model.signature"));
}

END_TEST

#define LABELLED                                                                                   \
    "POST " API "/decisions\n\n{\"ion\":\"door\",\"pipeline\":\"see\",\"decisions\":[{"            \
    "\"id\":\"00000000-0000-4000-8000-0000000000d1\",\"ion\":\"door\",\"pipeline\":\"see\","       \
    "\"camera\":\"belt\",\"frame\":1,\"verdict\":\"label\",\"latency_us\":1,"                      \
    "\"time_ms\":\"2026-01-31T10:00:00Z\",\"label\":%s,\"labels\":%s}]}"

START_TEST(a_label_is_stored_and_counted)
{
    static const char *const wrong[] = {"7",
                                        "{}",
                                        "[7]",
                                        "[{\"label\":\"a\"}]",
                                        "[{\"label\":\"a\",\"score\":\"b\"}]",
                                        "[{\"label\":\"\\u0007\",\"score\":1}]",
                                        "[{\"label\":\"a\",\"score\":1,\"x\":1}]"};
    start_replica();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_STATUS(400, ask_as(replica, LABELLED, "\"boot\"", wrong[i]));
    }
    EXPECT_STATUS(400, ask_as(replica, LABELLED, "\"\\u001b[31m\"", "null"));
    EXPECT_STATUS(200,
                  ask_as(replica, LABELLED, "\"boot\"", "[{\"label\":\"boot\",\"score\":0.75}]"));
    EXPECT(200, "GET " API "/decisions?label=boot");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.verdict"), "label");
    ck_assert_str_eq(said_text("items.0.labels.0.label"), "boot");
    EXPECT(200, "GET " API "/decisions?label=shoe");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(200, "GET " API "/decisions/summary?ion=door");
    ck_assert_int_eq(json_integer_value(said("verdicts.label")), 1);
}

END_TEST

/* ---- decisions ------------------------------------------------------------------------------- */

static int ship(const char *id, const char *camera, int frame, const char *verdict, int64_t time_ms)
{
    char time[WEIR_TIME_TEXT_BYTES];
    weir_time_format(time_ms, time);
    return ask("POST " API "/decisions\n\n{\"decisions\":[" DECISION "]}", id, camera, frame,
               verdict, 1000 * (frame + 1), time);
}

#define T0 ((int64_t)1700000000000)

static void ship_ten(void)
{
    static const char *const verdicts[] = {"grant", "deny", "unknown", "grant", "error"};
    for (int i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "d%d", i);
        EXPECT_STATUS(200, ship(id, i < 5 ? "east" : "west", i, verdicts[i % 5], T0 + 1000 * i));
        ck_assert_int_eq(json_integer_value(said("stored")), 1);
    }
}

START_TEST(a_frame_is_stored_once)
{
    ship_ten();
    EXPECT_STATUS(200, ship("d0", "east", 0, "grant", T0));
    ck_assert_int_eq(json_integer_value(said("stored")), 0);
    ck_assert_int_eq(json_integer_value(said("duplicates")), 1);
    EXPECT_STATUS(200, ship("other", "east", 0, "grant", T0)); /* same frame, other identifier */
    ck_assert_int_eq(json_integer_value(said("duplicates")), 1);
    EXPECT(200, "GET " API "/decisions/d3");
    ck_assert_str_eq(said_text("verdict"), "grant");
    EXPECT(404, "GET " API "/decisions/none");
    EXPECT(404, "GET " API "/decisions/d3/image");
}

END_TEST

START_TEST(decisions_are_listed_by_span_and_field)
{
    static const struct {
        const char *query;
        size_t n;
    } rows[] = {
        {"", 10},
        {"?camera=east", 5},
        {"?verdict=grant", 4},
        {"?camera=west&verdict=grant", 2},
        {"?since=2023-11-14T22:13:25Z", 5}, /* T0 + 5 s, and from then on */
        {"?until=2023-11-14T22:13:25Z", 5}, /* before then */
        {"?since=2023-11-14T22:13:22Z&until=2023-11-14T22:13:24Z", 2},
        {"?ion=gate", 0},
        {"?after=0", 10},
    };

    ship_ten();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        EXPECT(200, "GET " API "/decisions%s", rows[i].query);
        ck_assert_msg(json_array_size(said("items")) == rows[i].n, "%s: %zu", rows[i].query,
                      json_array_size(said("items")));
    }
    EXPECT(200, "GET " API "/decisions?limit=1");
    ck_assert_str_eq(said_text("items.0.id"), "d9"); /* newest first */
    EXPECT(200, "GET " API "/decisions?limit=1&after=0");
    ck_assert_str_eq(said_text("items.0.id"), "d0");
    EXPECT_ERROR(400, "since", "GET " API "/decisions?since=yesterday");
}

END_TEST

START_TEST(a_summary_counts_what_the_list_has)
{
    ship_ten();
    EXPECT(200, "GET " API "/decisions/summary?ion=door");
    ck_assert_int_eq(json_integer_value(said("decisions")), 10);
    ck_assert_int_eq(json_integer_value(said("verdicts.grant")), 4);
    ck_assert_int_eq(json_integer_value(said("verdicts.deny")), 2);
    ck_assert_int_eq(json_integer_value(said("verdicts.error")), 2);
    ck_assert_double_eq(json_real_value(said("latency_ms.max")), 10.0);
    EXPECT(200, "GET " API "/decisions/summary?ion=door&since=2023-11-14T22:13:20Z"
                "&until=2023-11-14T22:13:30Z&buckets=5");
    ck_assert_uint_eq(json_array_size(said("buckets")), 5);
    int64_t sum = 0;
    for (size_t i = 0; i < 5; i++) {
        const json_t *bucket = json_array_get(said("buckets"), i);
        int64_t n = json_integer_value(json_object_get(bucket, "grant")) +
                    json_integer_value(json_object_get(bucket, "deny")) +
                    json_integer_value(json_object_get(bucket, "unknown")) +
                    json_integer_value(json_object_get(bucket, "error"));
        ck_assert_int_eq(n, 2);
        sum += n;
    }
    ck_assert_int_eq(sum, 10);
    EXPECT_ERROR(400, "ion: missing", "GET " API "/decisions/summary");
    EXPECT_ERROR(400, "needs since", "GET " API "/decisions/summary?ion=door&buckets=5");
    EXPECT_ERROR(400, "give one",
                 "GET " API "/decisions/summary?ion=door&after=3&since="
                 "2023-11-14T22:13:20Z");
    EXPECT(400, "GET " API "/decisions/summary?ion=door&buckets=1001");
}

END_TEST

START_TEST(decisions_of_wrong_form_are_refused_whole)
{
    EXPECT_STATUS(400, ship("d0", "east", 0, "maybe", T0));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "$.decisions[0].verdict"));
    EXPECT_STATUS(400, ship("d0", "east\\u001b[2J", 0, "deny", T0));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "$.decisions[0].camera"));
    EXPECT_ERROR(400, "$.decisions[0]",
                 "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"d\"}]}");
    EXPECT(200, "GET " API "/decisions");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(the_face_of_a_decision_is_shown)
{
    EXPECT(200, "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"00000000-0000-4000-8000-"
                "0000000000d1\",\"ion\":\"door\","
                "\"pipeline\":\"see\",\"camera\":\"c\",\"frame\":1,\"verdict\":\"deny\","
                "\"picture\":\"/9j/4AAQ\"}]}");
    EXPECT(200, "GET " API "/audit?kind=people_shown");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(404, "GET " API "/decisions/00000000-0000-4000-8000-0000000000d9/image");
    EXPECT(200, "GET " API "/decisions/00000000-0000-4000-8000-0000000000d1/image");
    EXPECT(200, "GET " API "/audit?kind=people_shown");
    ck_assert_uint_eq(json_array_size(said("items")), 1); /* who looked at which; nobody saw d9 */
    ck_assert_str_eq(said_text("items.0.actor"), "ann");
    ck_assert_str_eq(said_text("items.0.subject"), "decision/00000000-0000-4000-8000-0000000000d1");
    EXPECT(200, "GET " API "/decisions/00000000-0000-4000-8000-0000000000d1/image");
    ck_assert_str_eq(said_header("Content-Type"), "image/jpeg");
    ck_assert_uint_eq(callers.x->response.body_len, 6);
    ck_assert_mem_eq(callers.x->response.body, "\xff\xd8\xff\xe0\x00\x10", 6);
}

END_TEST

#define KEEPS(age) "},\"keep\":{\"pictures\":\"" age "\""

static void ship_picture(char digit, int64_t age_ms)
{
    char time[WEIR_TIME_TEXT_BYTES];
    weir_time_format(weir_time_ms() - age_ms, time);
    EXPECT(200,
           "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"00000000-0000-4000-8000-"
           "0000000000d%c\",\"ion\":\"door\",\"pipeline\":\"see\",\"camera\":\"c\",\"frame\":%c,"
           "\"verdict\":\"deny\",\"time_ms\":\"%s\",\"picture\":\"/9j/4AAQ\"}]}",
           digit, digit, time);
}

START_TEST(a_pipeline_keeps_pictures_for_less_than_its_project)
{
    const int64_t day_ms = 86400000;
    EXPECT_STATUS(200, apply("", KEEPS("7d")));
    EXPECT_STATUS(400, apply("", KEEPS("8d")));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"),
                                 "$.pipelines[1].keep.pictures: 8d is longer than the 7d that "
                                 "project default keeps pictures"));
    EXPECT(200, "PUT " API "/retention/bounds\n\n{\"pictures\":\"2h..30d\"}");
    EXPECT_STATUS(400, apply("", KEEPS("none")));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "none is shorter than the 2h"));
    EXPECT_STATUS(200, apply("", KEEPS("2h")));
    EXPECT(200, "PUT " API "/retention/bounds\n\n{\"pictures\":\"1d..30d\"}");
    EXPECT(200, "GET " DOOR); /* bounds hold at once */
    ck_assert_str_eq(said_text("pipelines.1.kept.own"), "2h");
    ck_assert_str_eq(said_text("pipelines.1.kept.keep"), "1d");
    ck_assert(json_is_null(said("pipelines.0.kept")));
    EXPECT(200, "PUT " API "/retention/bounds\n\n{\"pictures\":\"default\"}");
    EXPECT_STATUS(200, apply("", KEEPS("24h")));
    ship_picture('1', 0);
    ship_picture('2', 2 * day_ms);
    EXPECT(200, "GET " API "/decisions/00000000-0000-4000-8000-0000000000d1/image");
    EXPECT_ERROR(404, "its time is over",
                 "GET " API "/decisions/00000000-0000-4000-8000-0000000000d2/image");
    EXPECT_STATUS(200, apply("", KEEPS("none")));
    ship_picture('3', -day_ms); /* a clock that is ahead */
    EXPECT_ERROR(404, "none was kept",
                 "GET " API "/decisions/00000000-0000-4000-8000-0000000000d3/image");
    EXPECT(200, "GET " API "/projects/default/retention");
    ck_assert_str_eq(said_text("pipelines.0.pipeline"), "see");
    ck_assert_str_eq(said_text("pipelines.0.keep"), "none");
    EXPECT_STATUS(200, apply("", ""));
    EXPECT(200, "GET " API "/projects/default/retention");
    ck_assert_uint_eq(json_array_size(said("pipelines")), 0);
}

END_TEST

/* ---- what monitors find ------------------------------------------------------------------------ */

START_TEST(drift_raises_one_alert_until_it_is_gone)
{
    static const char report[] = "{\"ion\":\"door\",\"pipeline\":\"see\",\"signal\":\"brightness\","
                                 "\"statistic\":\"location\","
                                 "\"drifted\":%s,\"value\":0.4,\"p_value\":0.001,\"n_samples\":50}";
    char body[512];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(body, sizeof body, "%s", report);
        char *hole = strstr(body, "%s");
        memmove(hole + 4, hole + 2, strlen(hole + 2) + 1);
        memcpy(hole, "true", 4);
        EXPECT(204, "POST " API "/health-reports\n\n%s", body);
    }
    EXPECT(200, "GET " API "/alerts?kind=drift");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_int_eq(json_integer_value(said("items.0.count")), 3);
    ck_assert_str_eq(said_text("items.0.subject"), "ion/door");
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("items.0.id"));
    EXPECT(200, "POST " API "/alerts/%s/acknowledge", id);
    ck_assert_str_eq(said_text("state"), "acknowledged");
    ck_assert_str_eq(said_text("acknowledged_by"), "ann");
    EXPECT(204, "POST " API "/health-reports\n\n{\"ion\":\"door\",\"pipeline\":\"see\","
                "\"signal\":\"brightness\",\"statistic\":\"none\",\"drifted\":false}");
    EXPECT(200, "GET " API "/alerts?state=resolved");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_int_ge(ask("POST " API "/alerts/%s/acknowledge", id), 200);
    EXPECT(404, "POST " API "/alerts/none/acknowledge");
    EXPECT(400, "POST " API "/health-reports\n\n{\"ion\":\"door\"}");
}

END_TEST

START_TEST(a_default_serves_first_and_a_version_is_set_by_hand)
{
    push(1, "{\"picture\":{},\"output_kind\":\"logits\"}");
    push(2, "{\"picture\":{},\"output_kind\":\"logits\"}");
    push(3, "{\"picture\":{},\"output_kind\":\"logits\"}");
    EXPECT_STATUS(400, apply_to_model("sorter", "", "\"manual\",\"default\":\"sorter@9\""));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"),
                                 "$.links[0].default: model \"sorter\" has no version 9"));
    EXPECT_STATUS(200, apply_to_model("sorter", "", "\"manual\",\"default\":\"sorter@2\""));
    ck_assert_int_eq(json_integer_value(said("links.0.wanted_version")), 2);
    ck_assert_int_eq(json_integer_value(said("links.0.pending_versions.0")), 3);
    EXPECT_ERROR(400, "$.link: missing", "POST " DOOR "/set-model\n\n{\"version\":1}");
    EXPECT_ERROR(404, "has no link", "POST " DOOR "/set-model\n\n{\"version\":1,\"link\":\"a:b\"}");
    EXPECT(404, "POST " DOOR "/set-model\n\n{\"version\":9,\"link\":\"model/sorter:see\"}");
    EXPECT(200, "POST " DOOR "/set-model\n\n{\"version\":1,\"link\":\"model/sorter:see\","
                "\"note\":\"known good\"}");
    ck_assert_int_eq(json_integer_value(said("links.0.wanted_version")), 1);
    EXPECT_ERROR(409, "serves on link model/sorter:see already",
                 "POST " DOOR "/set-model\n\n{\"version\":1,\"link\":\"model/sorter:see\"}");
    EXPECT(200, "GET " DOOR "/policy-decisions");
    ck_assert_str_eq(said_text("items.0.verdict"), "set");
    ck_assert_str_eq(said_text("items.0.note"), "known good");
}

END_TEST

/* Roles count as they are on the platform or in the ION's project. */
START_TEST(approvals_are_counted_by_people_and_roles)
{
    char olga[BEARER_BYTES], vic[BEARER_BYTES];
    make_caller("olga", "operator", "", olga);
    make_caller("vic", "approver", "", vic);
    push(1, "{\"picture\":{},\"output_kind\":\"logits\"}");
    EXPECT_STATUS(200,
                  apply_to_model("sorter", "",
                                 "[{\"kind\":\"manual\",\"approvals\":2,\"roles\":[\"approver\"]},"
                                 "{\"kind\":\"expiry\",\"max_age_s\":1000}]"));
    ck_assert_str_eq(said_text("links.0.policy"), "manual, expiry");
    ck_assert_str_eq(said_text("links.0.policies.1"), "expiry");
    ck_assert_str_eq(said_text("links.0.waiting.0.why"), "manual: 2 people must approve it");
    EXPECT_STATUS(403, ask_as(olga, "POST " DOOR "/approve\n\n{}"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "from these roles only: approver"));
    EXPECT_STATUS(200, ask_as(vic, "POST " DOOR "/approve\n\n{}"));
    ck_assert_str_eq(said_text("links.0.waiting.0.why"), "manual: 1 of 2 approvals, by vic");
    ck_assert_str_eq(said_text("links.0.waiting.0.approvals.0.by"), "vic");
    EXPECT_STATUS(409, ask_as(vic, "POST " DOOR "/approve\n\n{}"));
    EXPECT(200, "PUT " API "/projects/default/members/user/olga\n\n{\"role\":\"approver\"}");
    EXPECT_STATUS(200, ask_as(olga, "POST " DOOR "/approve\n\n{\"note\":\"fine\"}"));
    ck_assert_uint_eq(json_array_size(said("links.0.waiting")), 0);
    ck_assert_int_eq(json_integer_value(said("links.0.wanted_version")), 1);
    EXPECT(200, "GET " DOOR "/policy-decisions");
    ck_assert_uint_eq(json_array_size(said("items")), 4);
    EXPECT(200, "GET " DOOR "/candidates");
    ck_assert_int_eq(json_integer_value(said("items.0.position")), 1);
}

END_TEST

/* Does the answer to the document, with this detector, warn so? */
static bool warns(const char *query, const char *detector, const char *part)
{
    bool is_warned = false;
    EXPECT(
        200,
        "POST " API "/ions%s\n\n{\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\",\"type\":"
        "\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},{\"name\":\"see\",\"type\":"
        "\"prediction\",\"source\":{\"kind\":\"http\"},\"gallery\":{\"dataset\":\"staff\"},"
        "\"stages\":[\"decode\",{\"kind\":\"detect\",\"model\":\"%s\"},\"align\",\"judge\","
        "\"embed\",\"match\",\"decide\"]}],\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}",
        query, detector);
    for (size_t i = 0; i < json_array_size(said("warnings")); i++) {
        const char *warning = json_string_value(json_array_get(said("warnings"), i));
        is_warned = is_warned || strstr(warning, part) != NULL;
    }
    return is_warned;
}

START_TEST(a_detector_that_is_the_newest_version_is_warned_of_with_the_cure)
{
    static const char cure[] = "no policy between. To decide which does, name a version (sorter/2) "
                               "or an alias (sorter@best";
    push(1, "{\"picture\":{},\"output_kind\":\"logits\"}");
    ck_assert(warns("?dry_run=1", "sorter", cure));
    ck_assert(warns("", "sorter", cure));
    ck_assert(!warns("", "sorter@best", cure));
}

END_TEST

/* A role that an admin defined is named by a policy as one of Weir's own is. */
START_TEST(a_custom_role_approves_where_a_policy_names_it)
{
    static const char policy[] = "{\"kind\":\"manual\",\"approvals\":1,\"roles\":[\"doctor\"]}";
    char vic[BEARER_BYTES], dora[BEARER_BYTES];
    make_caller("vic", "approver", "", vic);
    make_caller("dora", "member", "", dora);
    push(1, "{\"picture\":{},\"output_kind\":\"logits\"}");
    EXPECT_STATUS(400, apply_to_model("sorter", "", policy));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "\"doctor\" is not a role"));
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"doctor\",\"rights\":[\"ions read\"]}");
    EXPECT_STATUS(200, apply_to_model("sorter", "", policy));
    bool is_warned = false;
    for (size_t i = 0; i < json_array_size(said("warnings")); i++) {
        const char *warning = json_string_value(json_array_get(said("warnings"), i));
        is_warned = is_warned || strstr(warning, "doctor does not allow to review") != NULL;
    }
    ck_assert(is_warned);
    EXPECT_ERROR(409, "a policy of ION \"door\"", "DELETE " API "/roles/doctor");
    EXPECT(200, "PUT " API "/projects/default/members/user/dora\n\n{\"role\":\"doctor\"}");
    EXPECT_STATUS(403, ask_as(dora, "POST " DOOR "/approve\n\n{}")); /* it may not review */
    EXPECT(200, "PUT " API "/roles/doctor\n\n{\"rights\":[\"ions read\",\"ions review\"]}");
    EXPECT_STATUS(403, ask_as(vic, "POST " DOOR "/approve\n\n{}"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "from these roles only: doctor"));
    EXPECT_STATUS(200, ask_as(dora, "POST " DOOR "/approve\n\n{}"));
    ck_assert_int_eq(json_integer_value(said("links.0.wanted_version")), 1);
    EXPECT(204, "DELETE " API "/projects/default/members/user/dora");
    EXPECT_ERROR(409, "a policy of ION \"door\"", "DELETE " API "/roles/doctor");
    EXPECT(204, "DELETE " DOOR);
    EXPECT(204, "DELETE " API "/roles/doctor"); /* the ION asks nobody any more */
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "ion_routes", set_up, callers_close, the_same_document_changes_nothing,
    a_detector_that_is_the_newest_version_is_warned_of_with_the_cure,
    a_custom_role_approves_where_a_policy_names_it, a_document_of_wrong_form_is_refused_whole,
    a_dry_run_says_what_would_come_of_it_and_changes_nothing,
    a_sources_token_is_kept_and_never_shown, a_deleted_ion_is_gone_for_readers,
    a_training_is_triggered_once_its_data_is_frozen,
    there_is_nothing_to_review_before_there_is_a_model, a_replicas_report_is_listed,
    a_threshold_says_what_it_can_claim, a_replica_waits_for_its_deployment, a_frame_is_stored_once,
    decisions_are_listed_by_span_and_field, a_summary_counts_what_the_list_has,
    decisions_of_wrong_form_are_refused_whole, the_face_of_a_decision_is_shown,
    a_pipeline_keeps_pictures_for_less_than_its_project, drift_raises_one_alert_until_it_is_gone,
    a_link_begins_at_no_model_that_was_deleted,
    a_version_that_an_ion_uses_or_goes_back_to_is_not_deleted,
    a_model_that_does_not_fit_its_pipeline_is_refused, a_pushed_model_serves_with_its_signature,
    a_default_serves_first_and_a_version_is_set_by_hand, approvals_are_counted_by_people_and_roles,
    a_label_is_stored_and_counted)
