/* Live pictures and looks at photos by requests: who sees what, who waits, and what the audit says. */
#include "api/caller_fixture.h"

#include "api/ion/desk.h"
#include "base/base64.h"
#include "base/test_main.h"

#define JOB     "00000000-0000-4000-8000-0000000000b1"
#define TASK    "00000000-0000-4000-8000-0000000000a1"
#define SITE    API "/ions/site"
#define LIVE    SITE "/cameras/door-1/live"
#define DESK    SITE "/pipelines/see/replicas/" JOB "-0/desk"
#define PICTURE "/9j/4AAQ" /* a JPEG, as far as anybody looks */
#define FOUND                                                                                      \
    "{\"x\":1,\"y\":2,\"w\":3,\"h\":4,\"name\":\"Ada\",\"verdict\":\"grant\",\"score\":0.7,"       \
    "\"barred\":false,\"passage\":\"1-2\"}"
#define SHOWN(camera, width)                                                                       \
    "{\"live\":[{\"camera\":\"" camera                                                             \
    "\",\"time_ms\":\"2026-01-01T00:00:00.000Z\",\"width\":" width                                 \
    ",\"height\":1080,\"boxes\":[" FOUND "],\"picture\":\"" PICTURE "\"}]}"

static char replica[BEARER_BYTES];

static void open_site(bool serves)
{
    callers_open();
    callers.may_wait = true;
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(
        200,
        "POST " API "/ions\n\n{\"name\":\"site\",\"pipelines\":["
        "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},"
        "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"mjpeg\",\"cameras\":["
        "{\"name\":\"door-1\",\"url\":\"http://c/1\"}]},\"gallery\":{\"dataset\":\"staff\"}}],"
        "\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}");
    if (serves) {
        place_job(&(struct placed_job){
            .id = JOB, .task = TASK, .kind = "predict", .ion = "site", .pipeline = "see"});
        task_bearer(TASK, replica);
    }
}

static void expect_looks(size_t n)
{
    EXPECT(200, "GET " API "/audit?kind=people_shown");
    ck_assert_uint_eq(json_array_size(said("items")), n);
}

START_TEST(a_viewer_gets_what_a_replica_sends_and_waits_for_the_next)
{
    open_site(true);
    EXPECT_ERROR(404, "no camera \"door-9\"", "GET " SITE "/cameras/door-9/live");
    EXPECT(404, "GET " LIVE "?pipeline=learn");
    EXPECT(404, "GET " API "/ions/sit/cameras/door-1/live");
    EXPECT_ERROR(503, "has sent a picture", "GET " LIVE);
    EXPECT_STATUS(200, ask_as(replica, "GET " DESK "?wait_s=20"));
    ck_assert_str_eq(said_text("watched.0"), "door-1");
    long long revision = json_integer_value(said("revision"));
    EXPECT_STATUS(0, ask_as(replica, "GET " DESK "?after=%lld&wait_s=20", revision));
    EXPECT(0, "GET " LIVE "?wait_s=10");
    ck_assert_uint_eq(
        callers.x->response.topics,
        desk_camera_topic((struct desk_place){.ion = "site", .pipeline = "see"}, "door-1"));
    EXPECT_STATUS(200, ask_as(replica, "POST " DESK "\n\n" SHOWN("door-1", "1920")));
    ck_assert_str_eq(said_text("watched.0"), "door-1");
    EXPECT(200, "GET " LIVE "?wait_s=10");
    ck_assert_str_eq(said_text("picture"), PICTURE);
    ck_assert_str_eq(said_text("boxes.0.name"), "Ada");
    ck_assert_str_eq(said_text("time_ms"), "2026-01-01T00:00:00.000Z");
    long long seq = json_integer_value(said("seq"));
    EXPECT(0, "GET " LIVE "?after=%lld&wait_s=10", seq);
    EXPECT(200, "GET " LIVE "?after=%lld", seq); /* as it is */
    EXPECT_STATUS(200, ask_as(replica, "POST " DESK "\n\n" SHOWN("door-1", "640")));
    EXPECT(200, "GET " LIVE "?after=%lld&wait_s=10", seq);
    ck_assert_int_eq(json_integer_value(said("width")), 640);
    expect_looks(1); /* once in ten minutes */
    callers_close();
}

END_TEST

START_TEST(what_a_replica_must_not_say_is_refused_and_nothing_of_it_is_shown)
{
    open_site(true);
    EXPECT(503, "GET " LIVE);
    EXPECT_STATUS(400, ask_as(replica, "POST " DESK "\n\n" SHOWN("door-1", "0")));
    EXPECT_STATUS(400, ask_as(replica, "POST " DESK "\n\n{\"lives\":[]}"));
    EXPECT_STATUS(200, ask_as(replica, "POST " DESK "\n\n" SHOWN("door-2", "9"))); /* unasked */
    EXPECT_STATUS(403, ask_as(replica, "POST " SITE "/pipelines/see/replicas/" JOB
                                       "-1/desk\n\n" SHOWN("door-1", "9")));
    EXPECT_STATUS(403, ask_as(replica, "GET " LIVE));
    EXPECT(503, "GET " LIVE);
    callers_close();
}

END_TEST

START_TEST(who_may_not_read_decisions_sees_no_people)
{
    char guard[BEARER_BYTES], nobody[BEARER_BYTES];
    open_site(true);
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"plumber\",\"rights\":[\"read ions\"]}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"other\"}");
    EXPECT(200,
           "POST " API "/users\n\n{\"name\":\"paul\",\"kind\":\"person\",\"role\":\"member\"}");
    EXPECT(200, "PUT " API "/projects/default/members/user/paul\n\n{\"role\":\"plumber\"}");
    EXPECT(200, "POST " API "/tokens\n\n{\"user\":\"paul\",\"name\":\"t\"}");
    (void)snprintf(guard, sizeof guard, "Bearer %s", said_text("secret"));
    make_caller("sam", "member", "", nobody);
    EXPECT(503, "GET " LIVE);
    EXPECT_STATUS(200, ask_as(replica, "POST " DESK "\n\n" SHOWN("door-1", "1920")));
    EXPECT_STATUS(200, ask_as(guard, "GET " LIVE));
    ck_assert(json_is_null(said("picture")));
    ck_assert(json_is_null(said("boxes.0.name")));
    ck_assert_str_eq(said_text("boxes.0.verdict"), "grant");
    EXPECT_STATUS(403, ask_as(guard, "POST " SITE "/look\n\n{\"pictures\":[\"AAAA\"]}"));
    EXPECT_STATUS(403, ask_as(nobody, "GET " LIVE));
    expect_looks(0); /* nobody was shown */
    callers_close();
}

END_TEST

START_TEST(nothing_is_waited_for_where_no_replica_runs)
{
    open_site(false);
    EXPECT_ERROR(503, "no replica serves", "GET " LIVE "?wait_s=10");
    EXPECT_ERROR(503, "no replica serves", "POST " SITE "/look\n\n{\"pictures\":[\"AAAA\"]}");
    callers_close();
}

END_TEST

/* ---- looks ----------------------------------------------------------------------------------- */

/** A question of the admin that waits; its answer is fetched with handle. */
static struct http_exchange *begin_look(const char *body)
{
    char text[512];
    int len = snprintf(text, sizeof text, "POST " SITE "/look\n\n%s", body);
    struct http_exchange *x = request_fixture_make(&callers.fixture, text, (size_t)len);
    request_fixture_handle(&callers.fixture, x);
    ck_assert_int_eq(x->response.kind, ANSWER_WAIT);
    return x;
}

static int end_look(struct http_exchange *x)
{
    request_fixture_handle(&callers.fixture, x);
    int status = x->response.kind == ANSWER_READY ? x->response.http_status : 0;
    json_decref(callers.body);
    callers.body = status != 0 ? json_loadb(x->response.body, x->response.body_len, 0, NULL) : NULL;
    if (status != 0) {
        x->request.end_fn(x->request.state);
        request_fixture_free(x);
    }
    return status;
}

static void take_look(char id[WEIR_UUID_BYTES])
{
    EXPECT_STATUS(200, ask_as(replica, "GET " DESK "?wait_s=20"));
    ck_assert_uint_eq(json_array_size(said("looks")), 1);
    (void)snprintf(id, WEIR_UUID_BYTES, "%s", said_text("looks.0.id"));
}

#define SEEN                                                                                       \
    "{\"pictures\":[{\"faces\":1,\"box\":null,\"quality\":null,\"usable\":true,\"why\":null,"      \
    "\"nearest\":[{\"person\":\"Ada\",\"score\":0.4}]}],\"nearest\":[],\"threshold\":0.5,"         \
    "\"confused_from\":0.5}"

START_TEST(a_look_is_what_a_replica_says_of_the_photos)
{
    char id[WEIR_UUID_BYTES];
    open_site(true);
    struct http_exchange *x = begin_look("{\"pictures\":[\"AAAA\"],\"person\":\"Bea\"}");
    take_look(id);
    ck_assert_str_eq(said_text("looks.0.pictures.0"), "AAAA");
    ck_assert_str_eq(said_text("looks.0.person"), "Bea");
    EXPECT_STATUS(200, ask_as(replica, "GET " DESK));
    ck_assert_uint_eq(json_array_size(said("looks")), 0); /* it has it */
    ck_assert_int_eq(end_look(x), 0);
    EXPECT_STATUS(400, ask_as(replica,
                              "POST " DESK "\n\n{\"looks\":[{\"id\":\"%s\",\"answer\":{"
                              "\"pictures\":[]}}]}",
                              id));
    EXPECT_STATUS(
        200,
        ask_as(replica, "POST " DESK "\n\n{\"looks\":[{\"id\":\"%s\",\"answer\":" SEEN "}]}", id));
    ck_assert_int_eq(end_look(x), 200);
    ck_assert_str_eq(said_text("pictures.0.nearest.0.person"), "Ada");
    EXPECT_STATUS(200, ask_as(replica,
                              "POST " DESK "\n\n{\"looks\":[{\"id\":\"%s\",\"answer\":" SEEN "}]}",
                              id)); /* late: nobody waits */
    x = begin_look("{\"pictures\":[\"AAAA\"]}");
    take_look(id);
    EXPECT_STATUS(200, ask_as(replica,
                              "POST " DESK "\n\n{\"looks\":[{\"id\":\"%s\",\"error\":"
                              "\"photo 1 is no picture\"}]}",
                              id));
    ck_assert_int_eq(end_look(x), 400);
    ck_assert_str_eq(said_text("error.message"), "photo 1 is no picture");
    expect_looks(1); /* the one that showed somebody */
    callers_close();
}

END_TEST

START_TEST(a_look_that_nobody_answers_says_whether_a_replica_had_it)
{
    char id[WEIR_UUID_BYTES];
    open_site(true);
    struct http_exchange *x = begin_look("{\"pictures\":[\"AAAA\"]}");
    x->request.is_expired = true;
    ck_assert_int_eq(end_look(x), 503);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "has asked for the photos"));
    x = begin_look("{\"pictures\":[\"AAAA\"]}");
    take_look(id);
    x->request.is_expired = true;
    ck_assert_int_eq(end_look(x), 503);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "has the photos"));
    x = begin_look("{\"pictures\":[\"AAAA\"]}");
    x->request.end_fn(x->request.state); /* who asked is gone */
    request_fixture_free(x);
    EXPECT_STATUS(200, ask_as(replica, "GET " DESK));
    ck_assert_uint_eq(json_array_size(said("looks")), 0);
    callers_close();
}

END_TEST

START_TEST(photos_that_are_none_are_refused)
{
    open_site(true);
    EXPECT_ERROR(400, "$.pictures", "POST " SITE "/look\n\n{}");
    EXPECT_ERROR(400, "$.pictures", "POST " SITE "/look\n\n{\"pictures\":[]}");
    EXPECT_ERROR(400, "$.pictures[1]", "POST " SITE "/look\n\n{\"pictures\":[\"AAAA\",\"A\"]}");
    EXPECT_ERROR(400, "$.pictures[0]", "POST " SITE "/look\n\n{\"pictures\":[1]}");
    EXPECT_ERROR(400, "1 to 10", "POST " SITE "/look\n\n{\"pictures\":[1,2,3,4,5,6,7,8,9,10,11]}");
    EXPECT_ERROR(400, "pipeline \"learn\"",
                 "POST " SITE "/look\n\n{\"pictures\":[\"AAAA\"],\"pipeline\":\"learn\"}");
    callers_close();
}

END_TEST

WEIR_TEST_MAIN("desk_routes", a_viewer_gets_what_a_replica_sends_and_waits_for_the_next,
               what_a_replica_must_not_say_is_refused_and_nothing_of_it_is_shown,
               who_may_not_read_decisions_sees_no_people,
               nothing_is_waited_for_where_no_replica_runs,
               a_look_is_what_a_replica_says_of_the_photos,
               a_look_that_nobody_answers_says_whether_a_replica_had_it,
               photos_that_are_none_are_refused)
