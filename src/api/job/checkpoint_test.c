/* Checkpoints over the server: written by the job's own tasks, part by part, read by people of its project. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define TASK  "00000000-0000-4000-8000-0000000000a1"
#define JOB   "00000000-0000-4000-8000-0000000000b1"
#define OTHER "00000000-0000-4000-8000-0000000000b2"
#define AT    API "/jobs/" JOB "/checkpoint"
/* SHA-256 of "one\n" */
#define ONE "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"

static char task[BEARER_BYTES], eve[BEARER_BYTES];

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    place_job(&(struct placed_job){.id = JOB, .task = TASK, .kind = "command", .node = "n"});
    place_job(&(struct placed_job){.id = OTHER,
                                   .task = "00000000-0000-4000-8000-0000000000a2",
                                   .kind = "command",
                                   .node = "n"});
    task_bearer(TASK, task);
    make_caller("eve", "ml-engineer", "", eve);
}

static void tear_down(void)
{
    callers_close();
}

#define CHANGE(text) ask_as(task, "POST " AT "\n\n" text)

START_TEST(a_change_is_made_when_its_parts_are_there)
{
    EXPECT(200, "GET " AT);
    ck_assert_uint_eq(json_array_size(said("files")), 0);
    char *before = strdup(said_text("version"));
    EXPECT_STATUS(200,
                  CHANGE("{\"put\":[{\"path\":\"d/one\",\"part\":\"" ONE "-a\"}],\"remove\":[]}"));
    ck_assert_str_eq(said_text("missing.0"), ONE "-a");
    ck_assert_str_eq(said_text("version"), before);
    EXPECT_STATUS(204, ask_as(task, "PUT " AT "/parts/" ONE "-a\n\none\n"));
    EXPECT_STATUS(200,
                  CHANGE("{\"put\":[{\"path\":\"d/one\",\"part\":\"" ONE "-a\"}],\"remove\":[]}"));
    ck_assert_uint_eq(json_array_size(said("missing")), 0);
    ck_assert_str_ne(said_text("version"), before);
    free(before);
    EXPECT(200, "GET " AT);
    ck_assert_str_eq(said_text("files.0.path"), "d/one");
    ck_assert_int_eq(json_integer_value(said("files.0.bytes")), 4);
    EXPECT(200, "GET " AT "/files/d/one");
    EXPECT_STATUS(200, CHANGE("{\"put\":[],\"remove\":[\"d/one\",\"d/two\"]}"));
    EXPECT(404, "GET " AT "/files/d/one");
}

END_TEST

START_TEST(nobody_else_writes_and_no_name_leads_elsewhere)
{
    EXPECT_STATUS(403, ask_as(eve, "PUT " AT "/parts/" ONE "-a\n\none\n"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "the job's own tasks"));
    EXPECT_STATUS(403, ask_as(eve, "POST " AT "\n\n{\"put\":[],\"remove\":[]}"));
    EXPECT_STATUS(403,
                  ask_as(task, "PUT " API "/jobs/" OTHER "/checkpoint/parts/" ONE "-a\n\none\n"));
    EXPECT_STATUS(403, ask_as(task, "GET " API "/jobs/" OTHER "/checkpoint"));
    EXPECT_STATUS(403, ask_as(task, "GET " API "/jobs/" OTHER "/checkpoint/files/x"));
    EXPECT(404, "GET " API "/jobs/none/checkpoint");
    EXPECT_STATUS(422, ask_as(task, "PUT " AT "/parts/" ONE "-a\n\ntwo\n"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "SHA-256"));
    EXPECT_STATUS(400, ask_as(task, "PUT " AT "/parts/" ONE "-A\n\none\n"));
    EXPECT_STATUS(400,
                  CHANGE("{\"put\":[{\"path\":\"../x\",\"part\":\"" ONE "-a\"}],\"remove\":[]}"));
    EXPECT_STATUS(
        400, CHANGE("{\"put\":[{\"path\":\"x\",\"part\":\"../../secrets.key\"}],\"remove\":[]}"));
    EXPECT_STATUS(400, CHANGE("{\"put\":[],\"remove\":[\"/etc/passwd\"]}"));
    EXPECT_STATUS(400, CHANGE("{\"put\":{},\"remove\":[]}"));
    EXPECT_STATUS(400, CHANGE("{\"put\":[]}"));
    EXPECT_STATUS(400, CHANGE("{\"put\":[7],\"remove\":[]}"));
    EXPECT_STATUS(400, CHANGE("{\"put\":[],\"remove\":[],\"more\":1}"));
}

END_TEST

WEIR_TEST_MAIN_WITH("checkpoint", set_up, tear_down, a_change_is_made_when_its_parts_are_there,
                    nobody_else_writes_and_no_name_leads_elsewhere)
