/* Who may go into a task: what can be done from inside they may do in other ways, too. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define JOB     "00000000-0000-4000-8000-0000000000b1"
#define REPLICA "00000000-0000-4000-8000-0000000000b2"
#define TOP     "\n\n{\"kind\":\"top\"}"

static char bearer[BEARER_BYTES];

static weir_status start(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "UPDATE tasks SET state = 'RUNNING'", WEIR_NO_BINDS, NULL, err);
}

/* A job of the admin's, and a replica of an ION of theirs. */
static void set_up(void)
{
    struct weir_error err;
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"d\"}");
    EXPECT(200,
           "POST " API "/ions\n\n{\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\",\"type\":"
           "\"training\",\"dataset\":\"d\",\"model\":\"lenet\"},{\"name\":\"look\",\"type\":"
           "\"prediction\",\"source\":{\"kind\":\"http\"}}],\"links\":[{\"from\":\"learn\",\"to\":"
           "\"look\"}]}");
    place_job(&(struct placed_job){.id = JOB, .task = "t1", .kind = "command", .node = "n"});
    place_job(&(struct placed_job){.id = REPLICA,
                                   .task = "t2",
                                   .kind = "predict",
                                   .node = "n",
                                   .ion = "door",
                                   .pipeline = "look"});
    must(weir_store_write(callers.fixture.store, start, NULL, &err), &err);
}

static void make_member(const char *name, const char *role)
{
    make_caller(name, "member", "", bearer);
    EXPECT(200, "PUT " API "/projects/default/members/user/%s\n\n{\"role\":\"%s\"}", name, role);
}

#define EXPECT_DENIED(part, job)                                                                   \
    do {                                                                                           \
        EXPECT_STATUS(403, ask_as(bearer, "POST " API "/jobs/" job "/visits" TOP));                \
        ck_assert_msg(strstr(said_text("error.message"), (part)) != NULL, "%s",                    \
                      said_text("error.message"));                                                 \
    } while (0)

START_TEST(a_replica_of_an_ion_is_for_who_may_change_what_serves)
{
    make_member("dan", "data-scientist");
    EXPECT_STATUS(200, ask_as(bearer, "POST " API "/jobs/" JOB "/visits" TOP));
    EXPECT_DENIED("the right to promote ions", REPLICA);
    make_member("mia", "ml-engineer");
    EXPECT_STATUS(200, ask_as(bearer, "POST " API "/jobs/" REPLICA "/visits" TOP));
}

END_TEST

START_TEST(who_goes_in_has_each_right_that_the_tasks_token_has)
{
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"sender\",\"description\":\"d\",\"rights\":"
                "[\"submit jobs\",\"read jobs\"]}");
    make_member("sam", "sender");
    EXPECT_DENIED("the right to cancel jobs", JOB);
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"ender\",\"description\":\"d\",\"rights\":"
                "[\"submit jobs\",\"read jobs\",\"cancel jobs\"]}");
    make_member("eve", "ender");
    EXPECT_DENIED("its token may that", JOB);
    /* Their own has no more than they. */
    EXPECT_STATUS(200, ask_as(bearer, "POST " API "/jobs\n\n{\"name\":\"own\",\"kind\":\"command\","
                                      "\"spec\":{\"argv\":[\"true\"]}}"));
    char job[64];
    (void)snprintf(job, sizeof job, "%s", said_text("id"));
    EXPECT_STATUS(409,
                  ask_as(bearer, "POST " API "/jobs/%s/visits" TOP, job)); /* it does not run */
}

END_TEST

WEIR_TEST_MAIN_WITH("visit_routes", set_up, callers_close,
                    a_replica_of_an_ion_is_for_who_may_change_what_serves,
                    who_goes_in_has_each_right_that_the_tasks_token_has)
