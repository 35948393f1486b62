/* Doors are locked down and released by name; a barred person at one is told once. */
#include "api/request_fixture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/test_main.h"
#include "ion/door.h"
#include "ion/ion.h"
#include "store/stmt.h"

#include <stdarg.h>

static struct request_fixture fixture;

/** Ask; the status of the answer. */
static int WEIR_PRINTF(1, 2) ask(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct http_exchange *x = request_fixture_make(&fixture, text, strlen(text));
    ck_assert_ptr_nonnull(x);
    request_fixture_handle(&fixture, x);
    ck_assert_int_eq(x->response.kind, ANSWER_READY);
    int status = x->response.http_status;
    request_fixture_free(x);
    return status;
}

#define EXPECT(code, ...) ck_assert_int_eq(ask(__VA_ARGS__), code)

#define GATE "/api/v1/ions/site/doors/gate/lock-down"

static void apply_site(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    request_fixture_open(&fixture);
    EXPECT(200, "POST /api/v1/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(
        200,
        "POST /api/v1/ions\n\n{\"name\":\"site\",\"pipelines\":["
        "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},"
        "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"},"
        "\"gallery\":{\"dataset\":\"staff\"},\"doors\":[{\"name\":\"gate\",\"by\":{\"kind\":"
        "\"webhook\",\"url\":\"http://c/\"}}]}],\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}");
}

struct looked {
    struct weir_arena arena;
    struct weir_ion_state ion;
    struct weir_ion_door *doors;
    size_t n_doors;
    int64_t n_alerts;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looked *looked = context;
    WEIR_TRY(weir_ion_load(txn, "site", &looked->arena, &looked->ion, err));
    return weir_txn_query_int(txn, "SELECT count(*) FROM alerts WHERE kind = 'barred_at_door'",
                              WEIR_NO_BINDS, 0, &looked->n_alerts, err);
}

/** The ION as it is stored; end with weir_arena_fini. */
static void look(struct looked *looked)
{
    struct weir_error err;
    weir_arena_init(&looked->arena, 0);
    must(weir_store_read(fixture.store, look_in, looked, &err), &err);
    weir_ion_doors(&looked->ion, &looked->arena, &looked->doors, &looked->n_doors);
    ck_assert_uint_eq(looked->n_doors, 1);
}

static void expect_locked(const char *note, bool is_locked, int64_t list_revision)
{
    struct looked looked;
    look(&looked);
    ck_assert_int_eq(looked.doors[0].locked_by != NULL, is_locked);
    ck_assert_int_eq(looked.ion.ion.list_revision, list_revision);
    if (note != NULL) {
        ck_assert_str_eq(looked.doors[0].note, note);
    }
    weir_arena_fini(&looked.arena);
}

START_TEST(a_door_is_locked_down_until_it_is_released)
{
    apply_site();
    EXPECT(404, "PUT /api/v1/ions/site/doors/gaet/lock-down\n\n{}");
    EXPECT(404, "DELETE /api/v1/ions/site/doors/gaet/lock-down\n\n");
    EXPECT(400, "PUT " GATE "\n\n{\"reason\":\"x\"}");
    expect_locked(NULL, false, 0);
    EXPECT(204, "PUT " GATE "\n\n{\"note\":\"a drill\"}");
    expect_locked("a drill", true, 1);
    EXPECT(204, "PUT " GATE "\n\n{}"); /* as it is */
    expect_locked("a drill", true, 1);
    EXPECT(200, "GET /api/v1/doors?ion=site\n\n");
    EXPECT(204, "DELETE " GATE "\n\n");
    expect_locked(NULL, false, 2);
    EXPECT(204, "DELETE " GATE "\n\n");
    expect_locked(NULL, false, 2);
    request_fixture_close(&fixture);
}

END_TEST

/* The alerts there are, after such a decision. */
static int64_t decide(int frame, const char *camera, const char *person, const char *verdict,
                      int64_t age_ms)
{
    struct looked looked;
    char time[WEIR_TIME_TEXT_BYTES];
    weir_time_format(weir_time_ms() - age_ms, time);
    EXPECT(
        200,
        "POST /api/v1/decisions\n\n{\"decisions\":[{\"id\":\"d%d\",\"ion\":\"site\",\"pipeline\":"
        "\"see\",\"replica\":\"j-0\",\"camera\":\"%s\",\"frame\":%d,\"time_ms\":\"%s\","
        "\"verdict\":\"%s\",\"person\":\"%s\"}]}",
        frame, camera, frame, time, verdict, person);
    look(&looked);
    weir_arena_fini(&looked.arena);
    return looked.n_alerts;
}

START_TEST(a_barred_person_raises_one_alert_for_a_camera)
{
    apply_site();
    EXPECT(200, "PUT /api/v1/ions/site/members/eve\n\n{\"list\":\"deny\",\"not_enrolled\":true}");
    ck_assert_int_eq(decide(1, "door-1", "ann", "deny", 0), 0); /* by default, and on no list */
    ck_assert_int_eq(decide(2, "door-1", "eve", "unknown", 0), 0);
    ck_assert_int_eq(decide(3, "door-1", "eve", "deny", 3600000),
                     0); /* who knows where eve is now */
    ck_assert_int_eq(decide(4, "door-1", "eve", "deny", 0), 1);
    ck_assert_int_eq(decide(5, "door-1", "eve", "deny", 0), 1);
    ck_assert_int_eq(decide(6, "door-2", "eve", "deny", 0), 2);
    request_fixture_close(&fixture);
}

END_TEST

WEIR_TEST_MAIN("door", a_door_is_locked_down_until_it_is_released,
               a_barred_person_raises_one_alert_for_a_camera)
