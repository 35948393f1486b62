/* A person is put on a list by the name that the gallery knows, or because somebody insists. */
#include "api/request_fixture.h"
#include "control/enrolled.h"

#include "base/log.h"
#include "base/test_main.h"
#include "ion/ion.h"

#include <stdarg.h>

static struct request_fixture fixture;

/** Ask; the status of the answer. What it says is for tests/system/truth_test.py. */
static int WEIR_PRINTF(1, 2) ask(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct http_exchange *x = request_fixture_make(&fixture, text, strlen(text));
    ck_assert_ptr_nonnull(x);
    do { /* freezing a dataset is done by another thread */
        request_fixture_handle(&fixture, x);
    } while (x->response.kind == ANSWER_WAIT);
    ck_assert_int_eq(x->response.kind, ANSWER_READY);
    int status = x->response.http_status;
    request_fixture_free(x);
    return status;
}

#define EXPECT(code, ...) ck_assert_int_eq(ask(__VA_ARGS__), code)

#define MEMBERS "/api/v1/ions/door/members/"

static const char document[] =
    "{\"name\":\"door\",\"pipelines\":["
    "{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},"
    "{\"name\":\"see\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"},"
    "\"gallery\":{\"dataset\":\"staff\"}}],"
    "\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}";

static void apply_door(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    request_fixture_open(&fixture);
    EXPECT(200, "POST /api/v1/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(200, "POST /api/v1/ions\n\n%s", document);
}

static void enrol(const char *const *people)
{
    for (; *people != NULL; people++) {
        EXPECT(200, "PUT /api/v1/datasets/staff/files/%s/1.jpg\n\nphoto of %s", *people, *people);
        EXPECT(200, "PUT /api/v1/datasets/staff/files/%s/2.jpg\n\nother photo of %s", *people,
               *people);
    }
    EXPECT(200, "POST /api/v1/datasets/staff/versions\n\n{}");
}

struct looked {
    struct weir_arena arena;
    struct weir_ion_state ion;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looked *looked = context;
    return weir_ion_load(txn, "door", &looked->arena, &looked->ion, err);
}

/** The ION as it is stored; end with weir_arena_fini. */
static void look(struct looked *looked)
{
    struct weir_error err;
    weir_arena_init(&looked->arena, 0);
    must(weir_store_read(fixture.store, look_in, looked, &err), &err);
}

/** Nobody, or one person on a list. */
static void expect_member(const char *person, const char *list)
{
    struct looked looked;
    look(&looked);
    ck_assert_uint_eq(looked.ion.n_members, person != NULL);
    if (person != NULL) {
        ck_assert_str_eq(looked.ion.members[0].person, person);
        ck_assert_str_eq(looked.ion.members[0].list, list);
    }
    weir_arena_fini(&looked.arena);
}

static void expect_missing(size_t expected)
{
    struct looked looked;
    struct weir_error err;
    const char **missing;
    size_t n;
    look(&looked);
    must(enrolled_missing(fixture.blobs, &looked.ion, &looked.arena, &missing, &n, &err), &err);
    ck_assert_uint_eq(n, expected);
    weir_arena_fini(&looked.arena);
}

START_TEST(a_misspelt_name_is_refused_and_the_right_one_is_named)
{
    apply_door();
    enrol((const char *const[]){"ada", "ben", "carla", NULL});
    for (const char *const *list = (const char *const[]){"allow", "deny", NULL}; *list != NULL;
         list++) {
        EXPECT(404, "PUT " MEMBERS "crala\n\n{\"list\":\"%s\"}", *list);
        EXPECT(404, "PUT " MEMBERS "NoSuchPerson\n\n{\"list\":\"%s\"}", *list);
        EXPECT(200, "PUT " MEMBERS "carla\n\n{\"list\":\"%s\"}", *list);
        expect_member("carla", *list);
    }
    struct looked looked;
    struct enrolled_answer found;
    struct weir_error err;
    look(&looked);
    must(enrolled_find(fixture.blobs, &looked.ion, "crala", &looked.arena, &found, &err), &err);
    ck_assert(found.has_gallery && !found.is_enrolled);
    ck_assert_str_eq(found.nearest, "carla");
    must(enrolled_find(fixture.blobs, &looked.ion, "nobody", &looked.arena, &found, &err), &err);
    ck_assert(!found.is_enrolled && found.nearest == NULL);
    weir_arena_fini(&looked.arena);
    request_fixture_close(&fixture);
}

END_TEST

START_TEST(who_insists_may_list_somebody_who_is_not_enrolled)
{
    apply_door();
    EXPECT(404, "PUT " MEMBERS "zoe\n\n{\"list\":\"deny\"}"); /* nobody is known yet */
    enrol((const char *const[]){"ada", NULL});
    EXPECT(404, "PUT " MEMBERS "zoe\n\n{\"list\":\"deny\",\"not_enrolled\":false}");
    EXPECT(400, "PUT " MEMBERS "zoe\n\n{\"list\":\"deny\",\"not_enrolled\":\"yes\"}");
    expect_member(NULL, NULL);
    EXPECT(200, "PUT " MEMBERS "zoe\n\n{\"list\":\"deny\",\"not_enrolled\":true}");
    expect_member("zoe", "deny");
    expect_missing(1);
    EXPECT(204, "DELETE " MEMBERS "zoe\n\n");
    EXPECT(404, "PUT /api/v1/ions/gate/members/ada\n\n{\"list\":\"deny\"}");
    request_fixture_close(&fixture);
}

END_TEST

START_TEST(taking_off_a_misspelt_name_is_refused_while_somebody_is_listed)
{
    apply_door();
    enrol((const char *const[]){"ada", "ben", NULL});
    EXPECT(204, "DELETE " MEMBERS "ben\n\n"); /* known, and on no list */
    EXPECT(200, "PUT " MEMBERS "ada\n\n{\"list\":\"allow\"}");
    EXPECT(404, "DELETE " MEMBERS "adda\n\n");
    expect_member("ada", "allow");
    EXPECT(204, "DELETE " MEMBERS "ada\n\n");
    expect_member(NULL, NULL);
    request_fixture_close(&fixture);
}

END_TEST

START_TEST(who_left_the_gallery_can_still_be_taken_off)
{
    apply_door();
    enrol((const char *const[]){"ada", "ben", NULL});
    EXPECT(200, "PUT " MEMBERS "ben\n\n{\"list\":\"deny\"}");
    expect_missing(0);
    EXPECT(204, "DELETE /api/v1/datasets/staff/files/ben\n\n");
    EXPECT(200, "POST /api/v1/datasets/staff/versions\n\n{}");
    expect_missing(1);
    EXPECT(404, "PUT " MEMBERS "ben\n\n{\"list\":\"allow\"}");
    EXPECT(204, "DELETE " MEMBERS "ben\n\n");
    request_fixture_close(&fixture);
}

END_TEST

WEIR_TEST_MAIN("member", a_misspelt_name_is_refused_and_the_right_one_is_named,
               who_insists_may_list_somebody_who_is_not_enrolled,
               taking_off_a_misspelt_name_is_refused_while_somebody_is_listed,
               who_left_the_gallery_can_still_be_taken_off)
