/* The truth about decisions and business figures: who may tell them, and what follows. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "deploy/deploy.h"
#include "gateway/receipt.h"
#include "ion/decision.h"
#include "track/track.h"

#define DOOR API "/ions/door"
#define JOB  "00000000-0000-4000-8000-0000000000b1"
#define TASK "00000000-0000-4000-8000-0000000000a1"

static struct weir_decision decided(char *id, char *camera, char *verdict, char *who)
{
    static int64_t frame;
    bool is_label = strcmp(verdict, "label") == 0;
    return (struct weir_decision){.id = id,
                                  .ion = "door",
                                  .pipeline = "see",
                                  .camera = camera,
                                  .frame = ++frame,
                                  .time_ms = callers_now(&callers.clock) - 1000,
                                  .verdict = verdict,
                                  .person = is_label ? NULL : who,
                                  .label = is_label ? who : NULL,
                                  .model_version = 3};
}

static weir_status store_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_decision decisions[] = {
        decided("d1", "north", "grant", "ann"), decided("d2", "north", "deny", "bob"),
        decided("d3", "south", "unknown", NULL), decided("d4", "south", "error", NULL),
        decided("d5", "south", "label", "cat")};
    size_t n_stored;
    (void)context;
    return weir_decisions_store(txn, decisions, WEIR_ARRAY_LEN(decisions), NULL, 0, &n_stored, err);
}

static void set_up(void)
{
    struct weir_error err = {0};
    callers_open();
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"blue\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"red\"}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\",\"project\":\"blue\"}");
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"door\",\"project\":\"blue\",\"pipelines\":["
                "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"}],\"links\":[]}");
    must(weir_store_write(callers.fixture.store, store_in, NULL, &err), &err);
}

static int64_t number(const char *path)
{
    return (int64_t)json_integer_value(said(path));
}

START_TEST(truth_that_comes_later_gives_accuracy_by_group)
{
    EXPECT(200, "POST " API "/feedback\n\n{\"decision\":\"d1\",\"truth\":\"ann\"}");
    ck_assert_int_eq(number("right"), 1);
    EXPECT(200, "POST " API "/feedback\n\n{\"feedback\":["
                "{\"decision\":\"d2\",\"truth\":\"carla\"},"
                "{\"decision\":\"d3\",\"truth\":\"unknown\"},"
                "{\"decision\":\"d5\",\"truth\":\"dog\"}]}");
    ck_assert_int_eq(number("stored"), 3);
    ck_assert_int_eq(number("right"), 1);
    EXPECT(200, "GET " DOOR "/health");
    ck_assert_int_eq(number("accuracy.n"), 4);
    ck_assert_int_eq(number("accuracy.right"), 2);
    ck_assert_double_eq_tol(json_real_value(said("accuracy.accuracy")), 0.5, 1e-12);
    ck_assert_str_eq(said_text("by"), "camera");
    ck_assert_uint_eq(json_array_size(said("groups")), 2);
    ck_assert_int_eq(number("accuracy.right") + number("accuracy.taken") +
                         number("accuracy.missed"),
                     number("accuracy.n"));
    EXPECT(200, "GET " DOOR "/health?by=truth&pipeline=see");
    ck_assert_uint_eq(json_array_size(said("groups")), 4);
    ck_assert_int_eq(number("groups.0.right"), 0);
    EXPECT(200, "GET " DOOR "/health?since=2100-01-01T00:00:00Z");
    ck_assert_int_eq(number("accuracy.n"), 0);
    ck_assert(json_is_null(said("accuracy.accuracy")));
    EXPECT_ERROR(400, "not grouped by", "GET " DOOR "/health?by=colour");
    EXPECT(200, "POST " API "/feedback\n\n{\"decision\":\"d3\",\"truth\":\"ann\"}");
    EXPECT(200, "GET " DOOR "/health?by=truth");
    ck_assert_int_eq(number("accuracy.taken"), 2);
    ck_assert_int_eq(number("accuracy.missed"), 1); /* ann was not recognised */
    EXPECT(200, "POST " API "/feedback\n\n{\"decision\":\"d3\",\"truth\":\"unknown\"}");
    /* Told again, the last holds. */
    EXPECT(200, "POST " API "/feedback\n\n{\"decision\":\"d2\",\"truth\":\"bob\"}");
    EXPECT(200, "GET " DOOR "/health");
    ck_assert_int_eq(number("accuracy.n"), 4);
    ck_assert_int_eq(number("accuracy.right"), 3);
    EXPECT(200, "GET " API "/feedback?ion=door&decided=bob");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.truth"), "bob");
}

END_TEST

/* ---- of requests ------------------------------------------------------------------------------- */

static weir_status deployment_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_deployment row = {
        .name = "digits", .project = "blue", .model = "digits", .secret = "s", .state = "SERVING"};
    struct weir_model_version version = {
        .id = (char *)"v4", .model = (char *)"digits", .blob = (char *)"b10b"};
    struct weir_arena arena;
    (void)context;
    weir_arena_init(&arena, 0);
    weir_status status = weir_model_register(txn, &version, "blue", 1, &arena, &version, NULL, err);
    weir_arena_fini(&arena);
    return status == WEIR_OK ? weir_txn_insert(txn, &weir_deployment_resource, &row, err) : status;
}

static char receipts[3][WEIR_RECEIPT_BYTES];

/** Three requests that version 4 of "digits" has answered; the last of them long ago. */
static void answer_requests(void)
{
    struct weir_error err = {0};
    must(weir_store_write(callers.fixture.store, deployment_in, NULL, &err), &err);
    for (uint64_t i = 0; i < WEIR_ARRAY_LEN(receipts); i++) {
        int64_t age_ms = i < 2 ? 1000 : 8 * (int64_t)24 * 3600 * 1000;
        const struct weir_receipt receipt = {"digits", 4, callers_now(&callers.clock) - age_ms, i};
        weir_receipt_make(fixture_task_key, &receipt, receipts[i]);
    }
}

#define OF_REQUEST(i, rest) "POST " API "/feedback\n\n{\"request\":\"%s\"," rest "}", receipts[i]

START_TEST(what_came_of_a_request_is_stored_and_the_last_holds)
{
    answer_requests();
    EXPECT(200, OF_REQUEST(0, "\"success\":true"));
    ck_assert_int_eq(number("right"), 1);
    EXPECT(200, OF_REQUEST(0, "\"decided\":\"cat\",\"truth\":\"dog\""));
    ck_assert_int_eq(number("right"), 0);
    EXPECT(200, OF_REQUEST(0, "\"kpi\":\"basket\",\"value\":12.5"));
    ck_assert_int_eq(number("judged"), 0); /* neither right nor wrong */
    EXPECT(200,
           "POST " API "/feedback\n\n{\"feedback\":[{\"decision\":\"d1\",\"truth\":\"ann\"},"
           "{\"request\":\"%s\",\"success\":true}]}",
           receipts[1]);
    ck_assert_int_eq(number("right"), 2);
    EXPECT(200, "GET " API "/outcomes?deployment=digits&name=success&version=4");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_str_eq(said_text("items.1.truth"), "dog");
    ck_assert_double_eq(json_number_value(said("items.1.value")), 0);
    EXPECT(200, "GET " API "/outcomes?name=basket");
    ck_assert_double_eq(json_number_value(said("items.0.value")), 12.5);
}

END_TEST

START_TEST(what_cannot_have_come_of_a_request_is_refused)
{
    answer_requests();
    EXPECT(400, OF_REQUEST(0, "\"success\":1"));
    EXPECT(400, OF_REQUEST(0, "\"truth\":\"cat\""));
    EXPECT(400, OF_REQUEST(0, "\"kpi\":\"success\",\"value\":1"));
    EXPECT(400, OF_REQUEST(0, "\"kpi\":\"basket\",\"value\":\"much\""));
    EXPECT(400, OF_REQUEST(0, "\"success\":true,\"truth\":\"cat\""));
    EXPECT_ERROR(409, "more than 7 days ago", OF_REQUEST(2, "\"success\":true"));
    receipts[0][0] = 'e';
    EXPECT_ERROR(404, "is no request that this server has answered",
                 OF_REQUEST(0, "\"success\":true"));
    EXPECT(200, "GET " API "/outcomes");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(only_who_sees_the_deployment_tells_what_came_of_its_requests)
{
    char red[BEARER_BYTES];
    answer_requests();
    make_caller("rex", "member", ",\"project\":\"red\"", red);
    EXPECT(200, "PUT " API "/projects/red/members/user/rex\n\n{\"role\":\"operator\"}");
    EXPECT_STATUS(404, ask_as(red, OF_REQUEST(0, "\"success\":true")));
    EXPECT(200, OF_REQUEST(0, "\"success\":true"));
    EXPECT_STATUS(200, ask_as(red, "GET " API "/outcomes"));
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(what_is_no_truth_is_refused_whole)
{
    EXPECT(404, "POST " API "/feedback\n\n{\"decision\":\"none\",\"truth\":\"ann\"}");
    EXPECT(409, "POST " API "/feedback\n\n{\"decision\":\"d4\",\"truth\":\"ann\"}");
    EXPECT(400, "POST " API "/feedback\n\n{\"decision\":\"d1\"}");
    EXPECT(400, "POST " API "/feedback\n\n{\"decision\":\"d1\",\"truth\":\"\"}");
    EXPECT(400, "POST " API "/feedback\n\n{\"decision\":\"d1\",\"truth\":\"a\\u001b[2J\"}");
    EXPECT(400, "POST " API "/feedback\n\n{\"decision\":\"d1\",\"truth\":\"ann\",\"more\":1}");
    EXPECT_ERROR(404, "$.feedback[1]",
                 "POST " API "/feedback\n\n{\"feedback\":[{\"decision\":\"d1\",\"truth\":\"ann\"},"
                 "{\"decision\":\"none\",\"truth\":\"ann\"}]}");
    EXPECT(200, "GET " API "/feedback");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(only_who_may_in_the_decisions_project_tells_and_sees_its_truth)
{
    char blue[BEARER_BYTES], red[BEARER_BYTES];
    make_caller("bea", "member", ",\"project\":\"blue\"", blue);
    make_caller("rex", "member", ",\"project\":\"red\"", red);
    EXPECT(200, "PUT " API "/projects/blue/members/user/bea\n\n{\"role\":\"operator\"}");
    EXPECT(200, "PUT " API "/projects/red/members/user/rex\n\n{\"role\":\"operator\"}");
    static const char tell[] = "POST " API "/feedback\n\n{\"decision\":\"d1\",\"truth\":\"ann\"}";
    EXPECT_STATUS(404, ask_as(red, "%s", tell));
    EXPECT_STATUS(200, ask_as(blue, "%s", tell));
    EXPECT_STATUS(200, ask_as(red, "GET " API "/feedback"));
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT_STATUS(404, ask_as(red, "GET " DOOR "/health"));
    EXPECT_STATUS(404, ask_as(red, "POST " DOOR "/kpis\n\n{\"name\":\"a\",\"value\":1}"));
    EXPECT_STATUS(404, ask_as(red, "GET " DOOR "/kpis"));
    EXPECT_STATUS(200, ask_as(blue, "GET " DOOR "/health"));
    ck_assert_int_eq(number("accuracy.n"), 1);
    EXPECT_STATUS(200, ask_as(blue, "GET " API "/feedback"));
    ck_assert_str_eq(said_text("items.0.actor"), "bea");
}

END_TEST

START_TEST(a_kpi_of_a_version_that_the_ion_does_not_know_is_refused)
{
    answer_requests(); /* there is digits, version 1 */
    EXPECT(404, "POST " DOOR "/kpis\n\n{\"name\":\"basket\",\"value\":3,\"model\":\"nosuch\","
                "\"model_version\":99}");
    EXPECT(404, "POST " DOOR "/kpis\n\n{\"name\":\"basket\",\"value\":3,\"model\":\"digits\","
                "\"model_version\":4}");
    EXPECT(409, "POST " DOOR "/kpis\n\n{\"name\":\"basket\",\"value\":3,\"model\":\"digits\","
                "\"model_version\":1}");
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "has come to no link of ION door"));
    EXPECT(200, "GET " DOOR "/kpis");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(400, "POST " API "/feedback\n\n{\"feedback\":[]}");
}

END_TEST

START_TEST(a_kpi_is_kept_and_the_newest_by_its_time_is_shown)
{
    EXPECT(200, "POST " DOOR "/kpis\n\n{\"name\":\"parcels\",\"value\":120.5,\"unit\":\"1/h\"}");
    ck_assert_str_eq(said_text("ion"), "door");
    EXPECT(200, "POST " DOOR "/kpis\n\n{\"name\":\"parcels\",\"value\":7,"
                "\"time_ms\":\"2026-01-01T00:00:00Z\"}");
    EXPECT(200, "POST " DOOR "/kpis\n\n{\"name\":\"parcels\",\"value\":8,"
                "\"time_ms\":\"2026-01-01T00:00:00Z\"}");
    EXPECT(200, "GET " DOOR "/kpis?name=parcels");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_double_eq(json_number_value(said("items.0.value")), 8);
    EXPECT(200, "GET " DOOR "/health");
    ck_assert_uint_eq(json_array_size(said("kpis")), 1);
    ck_assert_double_eq(json_number_value(said("kpis.0.value")), 120.5);
    EXPECT(400, "POST " DOOR "/kpis\n\n{\"name\":\"parcels\"}");
    EXPECT(400, "POST " DOOR "/kpis\n\n{\"name\":\"parcels\",\"value\":null}");
    EXPECT(400, "POST " DOOR "/kpis\n\n{\"name\":\"Par cels\",\"value\":1}");
    EXPECT(400, "POST " DOOR "/kpis\n\n{\"name\":\"a\",\"value\":1,\"time_ms\":\"2100-01-01T00:"
                "00:00Z\"}");
    EXPECT(404, "POST " API "/ions/none/kpis\n\n{\"name\":\"a\",\"value\":1}");
    for (int i = 1; i < 100; i++) {
        EXPECT(200, "POST " DOOR "/kpis\n\n{\"name\":\"k%d\",\"value\":%d}", i, i);
    }
    EXPECT(413, "POST " DOOR "/kpis\n\n{\"name\":\"k100\",\"value\":1}");
    EXPECT(200, "POST " DOOR "/kpis\n\n{\"name\":\"k99\",\"value\":1}");
}

END_TEST

/* ---- drift ----------------------------------------------------------------------------------- */

static weir_status report_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_health_report *report = context;
    return weir_health_report_store(txn, report, err);
}

static void report(char *id, char *signal, double p, bool drifted, int64_t ago_ms, char *detail)
{
    struct weir_error err = {0};
    struct weir_health_report made = {.id = id,
                                      .ion = "door",
                                      .pipeline = "see",
                                      .replica = "r",
                                      .signal = signal,
                                      .statistic = "location",
                                      .value = 4,
                                      .p_value = p,
                                      .drifted = drifted,
                                      .n_samples = 200,
                                      .model_version = 3,
                                      .detail = detail,
                                      .time_ms = callers_now(&callers.clock) - ago_ms};
    must(weir_store_write(callers.fixture.store, report_in, &made, &err), &err);
}

#define HOUR_MS 3600000
#define LIVE(a, b)                                                                                 \
    "{\"effect\":0.5,\"live\":{\"edges\":[0.5],\"counts\":[" #a "," #b "]},"                       \
    "\"baseline\":{\"edges\":[0.5],\"counts\":[70,30]}}"

START_TEST(drift_is_a_table_by_p_value_with_histograms_and_its_course)
{
    report("h0", "brightness", 0.0001, true, 7 * HOUR_MS, NULL); /* before the span */
    report("h1", "brightness", 0.5, false, 9 * HOUR_MS / 2, LIVE(60, 40));
    report("h2", "brightness", 0.001, true, 5 * HOUR_MS / 2, LIVE(20, 80));
    report("h3", "score", 0.7, false, HOUR_MS / 2, "not JSON");
    report("h4", "brightness", 0.0005, true, HOUR_MS / 2, LIVE(10, 90));
    report("h5", "sharpness", 0.01, false, HOUR_MS / 2, NULL);
    EXPECT(200, "GET " DOOR "/drift?points=6");
    ck_assert_uint_eq(json_array_size(said("times")), 6);
    ck_assert_uint_eq(json_array_size(said("signals")), 3);
    ck_assert_str_eq(said_text("signals.0.signal"), "brightness");
    ck_assert_str_eq(said_text("signals.0.state"), "drifts");
    ck_assert_str_eq(said_text("signals.1.signal"), "sharpness");
    ck_assert_str_eq(said_text("signals.1.state"), "watch");
    ck_assert_str_eq(said_text("signals.2.state"), "none");
    ck_assert_int_eq(number("signals.0.n_windows"), 3);
    ck_assert_int_eq(number("signals.0.n_drifted"), 2);
    ck_assert_int_eq(number("signals.0.live.counts.0"), 90);
    ck_assert_int_eq(number("signals.0.live.counts.1"), 210);
    ck_assert_int_eq(number("signals.0.baseline.counts.0"), 70);
    ck_assert_double_eq(json_real_value(said("signals.0.cells.1")), 0.5);
    ck_assert(json_is_null(said("signals.0.cells.2")));
    ck_assert_double_eq(json_real_value(said("signals.0.cells.5")), 0.0005);
    int64_t began;
    ck_assert_int_eq(weir_time_parse(said_text("signals.0.began_ms"), &began), WEIR_OK);
    ck_assert_int_le(llabs(began - (callers_now(&callers.clock) - 5 * HOUR_MS / 2)), 60000);
    ck_assert(json_is_null(said("signals.2.live")));
    EXPECT(200, "GET " DOOR "/drift?pipeline=other");
    ck_assert_uint_eq(json_array_size(said("signals")), 0);
    EXPECT(400, "GET " DOOR "/drift?since=2100-01-01T00:00:00Z");
    EXPECT(400, "GET " DOOR "/drift?points=0");
    EXPECT(404, "GET " API "/ions/none/drift");
}

END_TEST

/* Sixteen frames in four reports; the reports before the span, of another pipeline and of what is no frame count
 * for nothing. */
START_TEST(the_farthest_frames_of_a_drift_are_those_of_all_its_reports)
{
    char detail[512];
    EXPECT(200, "GET " API "/decisions/d2");
    long long of_d2 = json_integer_value(said("frame"));
    report("h0", "contrast", 0.5, false, 7 * HOUR_MS,
           "{\"farthest\":[{\"camera\":\"old\",\"frame\":1,\"time_ms\":1,\"value\":9,\"sigmas\":99}"
           "]}");
    for (int i = 0; i < 4; i++) {
        (void)snprintf(
            detail, sizeof detail,
            "{\"farthest\":[{\"camera\":\"north\",\"frame\":%lld,\"time_ms\":1000,\"value\":0.5,"
            "\"sigmas\":%d.5},{\"camera\":\"east\",\"frame\":%d,\"time_ms\":2000,\"value\":1,"
            "\"sigmas\":%d},{\"camera\":\"east\",\"frame\":%d,\"time_ms\":2000,\"value\":1,"
            "\"sigmas\":%d},{\"camera\":\"west\",\"frame\":%d,\"time_ms\":3,\"value\":1,"
            "\"sigmas\":1}]}",
            i == 2 ? of_d2 : 900 + i, i + 3, 2 * i, 20 + i, 2 * i + 1, 10 + i, i);
        report((char *[]){"h1", "h2", "h3", "h4"}[i], "contrast", 0.5, false, (i + 1) * HOUR_MS,
               detail);
    }
    report("h5", "contrast", 0.5, false, 1000,
           "{\"farthest\":[7,{\"camera\":\"x\",\"frame\":\"y\"},{\"camera\":null,\"sigmas\":50}]}");
    EXPECT(200, "GET " DOOR "/drift");
    const json_t *far = said("signals.0.farthest");
    ck_assert_uint_eq(json_array_size(far), 10);
    const double expected[] = {23, 22, 21, 20, 13, 12, 11, 10, 6.5, 5.5};
    for (size_t i = 0; i < 10; i++) {
        const json_t *sigmas = json_object_get(json_array_get(far, i), "sigmas");
        ck_assert_double_eq(json_number_value(sigmas), expected[i]);
    }
    ck_assert(json_is_null(said("signals.0.farthest.0.decision")));
    ck_assert_str_eq(said_text("signals.0.farthest.9.decision"), "d2");
    ck_assert(json_is_false(said("signals.0.farthest.9.has_picture")));
    ck_assert_str_eq(said_text("signals.0.farthest.9.time_ms"), "1970-01-01T00:00:01.000Z");
}

END_TEST

/* ---- features -------------------------------------------------------------------------------- */

#define SHA     "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
#define WINDOWS DOOR "/pipelines/learn/windows"

static const char *window(int paris, int rome, int oslo, int missing)
{
    static char text[256];
    (void)snprintf(text, sizeof text,
                   "{\"model\":\"prices\",\"version\":1,\"features\":{\"city\":{\"counts\":"
                   "{\"paris\":%d,\"rome\":%d,\"oslo\":%d},\"missing\":%d}}}",
                   paris, rome, oslo, missing);
    return text;
}

/* What the last window's answer says of a signal; NULL: nothing. */
static const json_t *found(const char *signal)
{
    size_t i;
    json_t *one;
    json_array_foreach(said("findings"), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "signal")), signal) == 0) {
            return one;
        }
    }
    return NULL;
}

START_TEST(windows_of_any_models_features_are_compared_with_its_baseline)
{
    EXPECT(200, "PUT " API "/blobs/" SHA "\n\nx");
    EXPECT(200, "POST " API "/models/prices/versions\n\n{\"project\":\"blue\",\"id\":"
                "\"00000000-0000-4000-8000-0000000000e1\",\"blob\":\"" SHA "\"}");
    EXPECT(404, "GET " API "/models/prices/versions/1/baseline");
    EXPECT(409, "POST " WINDOWS "\n\n%s", window(60, 40, 0, 0));
    EXPECT_ERROR(400, "$.features.city",
                 "PUT " API "/models/prices/versions/1/baseline\n\n"
                 "{\"features\":{\"city\":{\"kind\":\"colour\"}}}");
    EXPECT(200, "PUT " API "/models/prices/versions/1/baseline\n\n"
                "{\"features\":{\"city\":{\"kind\":\"category\",\"counts\":{\"paris\":600,"
                "\"rome\":400},\"other\":1}}}");
    EXPECT(200, "GET " API "/models/prices/versions/1/baseline");
    ck_assert_int_eq(number("baseline.features.city.counts.paris"), 600);
    /* Like training; then new cities: one window is no drift yet, two of three are. */
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(61, 39, 0, 0));
    ck_assert(json_is_false(json_object_get(found("feature:city"), "differs")));
    ck_assert_ptr_null(found("category:city"));
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(50, 35, 15, 0));
    ck_assert(json_is_true(json_object_get(found("category:city"), "differs")));
    ck_assert(json_is_false(json_object_get(found("category:city"), "drifted")));
    EXPECT(200, "GET " API "/alerts?state=open");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(50, 35, 15, 0));
    ck_assert(json_is_true(json_object_get(found("category:city"), "drifted")));
    EXPECT(200, "GET " API "/alerts?state=open");
    ck_assert_uint_ge(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.kind"), "drift");
    EXPECT(200, "GET " DOOR "/drift");
    ck_assert_str_eq(said_text("signals.0.state"), "drifts");
    /* Like training again: it is over. */
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(61, 39, 0, 0));
    EXPECT(200, "GET " API "/alerts?state=open");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT(404, "POST " DOOR "/pipelines/none/windows\n\n%s", window(1, 1, 0, 0));
    EXPECT(400, "POST " WINDOWS "\n\n{\"model\":\"prices\",\"version\":1,\"features\":{\"x\":{}}}");
    EXPECT(404, "POST " WINDOWS "\n\n{\"model\":\"prices\",\"version\":9,\"features\":{}}");
}

END_TEST

/* Windows without a new city have no row of their own: two that differ a year apart are no drift. */
START_TEST(two_windows_of_a_rate_that_differ_are_drift_only_among_the_last_three)
{
    EXPECT(200, "PUT " API "/blobs/" SHA "\n\nx");
    EXPECT(200, "POST " API "/models/prices/versions\n\n{\"project\":\"blue\",\"id\":"
                "\"00000000-0000-4000-8000-0000000000e1\",\"blob\":\"" SHA "\"}");
    EXPECT(200, "PUT " API "/models/prices/versions/1/baseline\n\n"
                "{\"features\":{\"city\":{\"kind\":\"category\",\"counts\":{\"paris\":600,"
                "\"rome\":400},\"other\":1}}}");
    for (int round = 0; round < 2; round++) {
        EXPECT(200, "POST " WINDOWS "\n\n%s", window(50, 35, 15, 0));
        ck_assert(json_is_true(json_object_get(found("category:city"), "differs")));
        ck_assert(json_is_false(json_object_get(found("category:city"), "drifted")));
        for (int i = 0; i < 3; i++) {
            EXPECT(200, "POST " WINDOWS "\n\n%s", window(61, 39, 0, 0));
        }
        ck_assert_ptr_null(found("category:city"));
    }
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(50, 35, 15, 0));
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(61, 39, 0, 0));
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(50, 35, 15, 0));
    ck_assert(json_is_true(json_object_get(found("category:city"), "drifted")));
    /* An alert ends however many other signals were told of meanwhile. */
    for (int i = 0; i < 20; i++) {
        EXPECT(204,
               "POST " API "/health-reports\n\n{\"ion\":\"door\",\"pipeline\":\"learn\","
               "\"signal\":\"s%d\",\"statistic\":\"rate\",\"value\":0,\"p_value\":1,"
               "\"drifted\":false,\"n_samples\":20,\"model_version\":1}",
               i);
    }
    EXPECT(200, "POST " WINDOWS "\n\n%s", window(61, 39, 0, 0));
    EXPECT(200, "GET " API "/alerts?state=open");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(a_task_tells_kpis_of_its_own_ion_only)
{
    char task[BEARER_BYTES];
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"gate\",\"project\":\"blue\",\"pipelines\":["
                "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\","
                "\"model\":\"face-embed\"}],\"links\":[]}");
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "train", .node = "n", .ion = "door", .pipeline = "learn"});
    task_bearer(TASK, task);
    EXPECT_STATUS(200, ask_as(task, "POST " DOOR "/kpis\n\n{\"name\":\"a\",\"value\":1}"));
    int status = ask_as(task, "POST " API "/ions/gate/kpis\n\n{\"name\":\"a\",\"value\":1}");
    ck_assert(status == 403 || status == 404);
    EXPECT_STATUS(403,
                  ask_as(task, "POST " API "/feedback\n\n{\"decision\":\"d1\",\"truth\":\"a\"}"));
}

END_TEST

WEIR_TEST_MAIN_WITH("feedback", set_up, callers_close,
                    truth_that_comes_later_gives_accuracy_by_group,
                    what_came_of_a_request_is_stored_and_the_last_holds,
                    what_cannot_have_come_of_a_request_is_refused,
                    only_who_sees_the_deployment_tells_what_came_of_its_requests,
                    what_is_no_truth_is_refused_whole,
                    only_who_may_in_the_decisions_project_tells_and_sees_its_truth,
                    a_kpi_is_kept_and_the_newest_by_its_time_is_shown,
                    a_kpi_of_a_version_that_the_ion_does_not_know_is_refused,
                    drift_is_a_table_by_p_value_with_histograms_and_its_course,
                    the_farthest_frames_of_a_drift_are_those_of_all_its_reports,
                    windows_of_any_models_features_are_compared_with_its_baseline,
                    two_windows_of_a_rate_that_differ_are_drift_only_among_the_last_three,
                    a_task_tells_kpis_of_its_own_ion_only)
