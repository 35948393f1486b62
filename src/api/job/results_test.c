/* Results of batch predictions: written by the job's own tasks, read by people of its project. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define TASK  "00000000-0000-4000-8000-0000000000a1"
#define JOB   "00000000-0000-4000-8000-0000000000b1"
#define OTHER "00000000-0000-4000-8000-0000000000b2"
#define AT    API "/jobs/" JOB "/results"

static char task[BEARER_BYTES], eve[BEARER_BYTES];

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    place_job(&(struct placed_job){.id = JOB, .task = TASK, .kind = "batch", .node = "n"});
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

START_TEST(a_task_adds_files_and_people_fetch_them)
{
    EXPECT(200, "GET " AT);
    ck_assert(json_is_null(said("manifest")));
    EXPECT_STATUS(204, ask_as(task, "PUT " AT "/shard-00001.jsonl\n\none\n"));
    EXPECT_STATUS(204, ask_as(task, "PUT " AT "/shard-00000.jsonl\n\n{}\n"));
    EXPECT_STATUS(204, ask_as(task, "PUT " AT "/shard-00000.jsonl\n\nanother\n")); /* it stays */
    EXPECT_STATUS(200, ask_as(task, "GET " AT));
    ck_assert_str_eq(said_text("files.0.name"), "shard-00000.jsonl");
    ck_assert_str_eq(said_text("files.1.name"), "shard-00001.jsonl");
    EXPECT(200, "GET " AT "/shard-00000.jsonl");
    ck_assert_uint_eq(json_object_size(callers.body), 0);
    EXPECT_STATUS(204, ask_as(task, "PUT " AT "/manifest.json\n\n{\"n_files\":2}"));
    EXPECT(200, "GET " AT);
    ck_assert_int_eq(json_integer_value(json_object_get(said("manifest"), "n_files")), 2);
}

END_TEST

START_TEST(nobody_else_writes_and_no_name_leads_elsewhere)
{
    EXPECT_STATUS(403, ask_as(eve, "PUT " AT "/shard-00000.jsonl\n\nx"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "the job's own tasks"));
    EXPECT_STATUS(403, ask_as(task, "PUT " API "/jobs/" OTHER "/results/shard-00000.jsonl\n\nx"));
    EXPECT_STATUS(403, ask_as(task, "GET " API "/jobs/" OTHER "/results"));
    EXPECT_ERROR(501, "only jobs of the kind batch", "GET " API "/jobs/" OTHER "/results/a");
    EXPECT(404, "GET " API "/jobs/none/results");
    EXPECT_STATUS(400, ask_as(task, "PUT " AT "/.hidden\n\nx"));
    EXPECT_STATUS(400, ask_as(task, "PUT " AT "/a%%2Fb\n\nx"));
    EXPECT_STATUS(400, ask_as(task, "PUT " AT "/Upper\n\nx"));
    EXPECT_ERROR(404, "has no result", "GET " AT "/shard-00007.jsonl");
}

END_TEST

WEIR_TEST_MAIN_WITH("results", set_up, tear_down, a_task_adds_files_and_people_fetch_them,
                    nobody_else_writes_and_no_name_leads_elsewhere)
