/* The live stream: nothing that is numbered is missed, nobody gets what is not for them; and what
 * the state folder takes. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "store/event.h"

static weir_status append_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_event event = {.time_ms = 1,
                               .topic = context,
                               .kind = "k",
                               .severity = "info",
                               .subject = "s/1",
                               .actor = "ann",
                               .message = "m"};
    return weir_event_append(txn, &event, NULL, err);
}

static void append(const char *topic)
{
    struct weir_error err;
    must(weir_store_write(callers.fixture.store, append_in, (char *)topic, &err), &err);
}

/** What the stream that was opened last has now; the caller ends it. */
static weir_status pull(struct weir_buf *out)
{
    struct weir_http_response *response = &callers.x->response;
    weir_buf_init(out, WEIR_HTTP_EVENTS_MAX_BYTES);
    weir_status status = response->next_fn(response->stream_state, out);
    (void)weir_buf_puts(out, "");
    return status;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    while (text != NULL && (text = strstr(text, part)) != NULL) {
        n++;
        text += strlen(part);
    }
    return n;
}

/** The stream must have `n` events of this kind now, and the buffer's text is left in `last`. */
static char last[1 << 16];

static int pull_events(const char *topic)
{
    struct weir_buf out;
    char line[64];
    ck_assert_int_eq(pull(&out), WEIR_OK);
    (void)snprintf(last, sizeof last, "%.*s", (int)out.len, out.data != NULL ? out.data : "");
    (void)snprintf(line, sizeof line, "event: %s\n", topic);
    weir_buf_fini(&out);
    return count(last, line);
}

static void open_stream(const char *authorization, const char *query, const char *header)
{
    EXPECT_STATUS(0, ask_as(authorization, "GET " API "/stream%s\n%s", query, header));
    ck_assert_int_eq(callers.x->response.kind, ANSWER_EVENTS);
}

START_TEST(a_new_reader_gets_what_comes)
{
    char vic[BEARER_BYTES];
    make_caller("vic", "viewer", "", vic);
    append("jobs");
    open_stream(vic, "", "");
    ck_assert_int_eq(pull_events("events"), 0);
    append("jobs");
    append("system");
    append("audit"); /* for nobody's stream */
    ck_assert_int_eq(pull_events("events"), 2);
    ck_assert_int_eq(pull_events("events"), 0);
}

END_TEST

START_TEST(who_comes_back_misses_nothing)
{
    char vic[BEARER_BYTES], header[96], id[64];
    make_caller("vic", "viewer", "", vic);
    open_stream(vic, "?topics=events,decisions", "");
    append("jobs");
    ck_assert_int_eq(pull_events("events"), 1);
    const char *mark = strstr(last, "id: ");
    ck_assert_ptr_nonnull(mark);
    (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(mark + 4, "\n"), mark + 4);
    for (int i = 0; i < 250; i++) { /* more than one batch */
        append("jobs");
    }
    (void)snprintf(header, sizeof header, "Last-Event-ID: %s\n", id);
    open_stream(vic, "?topics=events,decisions", header);
    int n = 0;
    for (int got = 1; got > 0; n += got) {
        got = pull_events("events");
    }
    ck_assert_int_eq(n, 250);
}

END_TEST

START_TEST(a_stream_ends_with_its_token)
{
    char vic[BEARER_BYTES], id[64];
    struct weir_buf out;
    make_caller("vic", "viewer", "", vic);
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    open_stream(vic, "", "");
    struct http_exchange *stream = callers.x;
    callers.x = NULL;
    EXPECT(204, "DELETE " API "/tokens/%s", id);
    request_fixture_free(callers.x);
    callers.x = stream;
    append("jobs");
    ck_assert_int_ne(pull(&out), WEIR_OK);
    ck_assert_uint_eq(out.len, 0);
    weir_buf_fini(&out);
}

END_TEST

START_TEST(news_come_by_topic)
{
    struct http_exchange *stream;
    EXPECT(0, "GET " API "/stream?topics=jobs,nodes");
    stream = callers.x;
    callers.x = NULL;
    EXPECT(200, "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\","
                "\"spec\":{\"argv\":[\"true\"],\"env\":{\"K\":\"geheim\"}}}");
    request_fixture_free(callers.x);
    callers.x = stream;
    ck_assert_int_ge(pull_events("jobs"), 1);
    ck_assert_int_eq(count(last, "event: events"), 0);
    ck_assert_int_eq(count(last, "geheim"), 0);
}

END_TEST

START_TEST(topics_are_checked)
{
    EXPECT_ERROR(400, "\"pens\" is none of events, decisions", "GET " API "/stream?topics=pens");
    EXPECT_ERROR(400, "none of", "GET " API "/stream?topics=events,audit");
    EXPECT(0, "GET " API "/stream?topics=alerts,models,ions,runs,nodes,jobs,events,decisions");
}

END_TEST

START_TEST(limits_of_retention_are_changed_and_read_back)
{
    EXPECT(200, "GET " API "/retention");
    size_t n = json_array_size(said("items"));
    ck_assert_uint_gt(n, 5);
    EXPECT(200, "PUT " API "/retention\n\n{\"decisions\":\"7d,1GB\"}");
    EXPECT(200, "GET " API "/retention");
    ck_assert_uint_eq(json_array_size(said("items")), n);
    bool is_found = false;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(said("items"), i);
        if (strcmp(json_string_value(json_object_get(item, "kind")), "decisions") == 0) {
            ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(item, "limit")), "7d"));
            is_found = true;
        }
    }
    ck_assert(is_found);
    EXPECT(200, "GET " API "/events?kind=retention_changed");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(204, "POST " API "/store/sweep");
}

END_TEST

START_TEST(usage_names_every_kind)
{
    json_t *rules;
    EXPECT(200, "GET " API "/retention");
    rules = json_incref((json_t *)said("items"));
    EXPECT(200, "GET " API "/store/usage");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *kind = json_object_get(json_array_get(rules, i), "kind");
        bool is_there = false;
        for (size_t k = 0; k < json_array_size(said("items")); k++) {
            is_there = is_there ||
                       json_equal(kind, json_object_get(json_array_get(said("items"), k), "kind"));
        }
        ck_assert_msg(is_there, "%s", json_string_value(kind));
    }
    json_decref(rules);
    ck_assert_int_gt(json_integer_value(said("disk_bytes")), 0);
}

END_TEST

START_TEST(a_platform_without_trouble_is_well)
{
    EXPECT(200, "GET " API "/health/summary");
    ck_assert_ptr_nonnull(callers.body);
    EXPECT_STATUS(200, ask_as("", "GET /health"));
    ck_assert_str_eq(said_text("status"), "ok");
}

END_TEST

WEIR_TEST_MAIN_WITH("stream", callers_open, callers_close, a_new_reader_gets_what_comes,
                    who_comes_back_misses_nothing, a_stream_ends_with_its_token, news_come_by_topic,
                    topics_are_checked, limits_of_retention_are_changed_and_read_back,
                    usage_names_every_kind, a_platform_without_trouble_is_well)
