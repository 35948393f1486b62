/* Deleting jobs and datasets: by whom, what holds them, and what a kill in between leaves. */
#include "api/caller_fixture.h"

#include "api/core/call.h"
#include "retain/retain.h"

#include "base/test_main.h"

#include <sys/stat.h>

#define D API "/datasets/d"

/* Members of project p: whose things they are, another, one with the right to delete models; and one of project q. */
static char bob[BEARER_BYTES], eve[BEARER_BYTES], mia[BEARER_BYTES], out[BEARER_BYTES];
static char job[64];

static void join(const char *name, const char *project, const char *role, char bearer[BEARER_BYTES])
{
    make_caller(name, "member", "", bearer);
    EXPECT(200, "PUT " API "/projects/%s/members/user/%s\n\n{\"role\":\"%s\"}", project, name,
           role);
}

static void set_up(void)
{
    callers_open();
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"p\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"q\"}");
    join("bob", "p", "data-scientist", bob);
    join("eve", "p", "data-scientist", eve);
    join("mia", "p", "ml-engineer", mia);
    join("out", "q", "data-scientist", out);
}

static void submit(const char *bearer, const char *project, const char *spec)
{
    EXPECT_STATUS(200, ask_as(bearer,
                              "POST " API "/jobs\n\n{\"name\":\"j-of-%s\",\"kind\":\"command\","
                              "\"project\":\"%s\",\"spec\":{\"argv\":[\"true\"]%s}}",
                              project, project, spec));
    (void)snprintf(job, sizeof job, "%s", said_text("id"));
}

static weir_status run_sql(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, NULL, 0, NULL, err);
}

WEIR_PRINTF(1, 2)

static void sql(const char *format, ...)
{
    char text[900];
    struct weir_error err;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    must(weir_store_write(callers.fixture.store, run_sql, text, &err), &err);
}

#define EXPECT_HELD(part, ...)                                                                     \
    do {                                                                                           \
        EXPECT_STATUS(409, ask_as(bob, __VA_ARGS__));                                              \
        ck_assert_msg(strstr(said_text("error.message"), (part)) != NULL, "%s",                    \
                      said_text("error.message"));                                                 \
    } while (0)

START_TEST(what_somebody_else_made_is_not_every_members_to_delete)
{
    submit(bob, "p", "");
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/jobs/%s/cancel", job));
    EXPECT_STATUS(403, ask_as(eve, "DELETE " API "/jobs/%s", job));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "it is bob's"));
    EXPECT_STATUS(204, ask_as(bob, "DELETE " API "/jobs/%s", job));
    submit(bob, "p", "");
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/jobs/%s/cancel", job));
    EXPECT_STATUS(204, ask_as(mia, "DELETE " API "/jobs/%s", job));
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"d\",\"project\":\"p\"}"));
    EXPECT_STATUS(403, ask_as(eve, "DELETE " D "?force=1"));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "it is bob's"));
    EXPECT_STATUS(204, ask_as(mia, "DELETE " D));
}

END_TEST

/* The same bytes as for what was never there, but for the name that was asked for. */
START_TEST(another_projects_is_as_if_it_were_not_there)
{
    static const char none[] = "00000000-0000-4000-8000-00000000000a";
    char there[400], missing[400], *at;
    submit(bob, "p", "");
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/jobs/%s/cancel", job));
    EXPECT_STATUS(404, ask_as(out, "DELETE " API "/jobs/%s", job));
    (void)snprintf(there, sizeof there, "%s", callers.x->response.body);
    EXPECT_STATUS(404, ask_as(out, "DELETE " API "/jobs/%s", none));
    (void)snprintf(missing, sizeof missing, "%s", callers.x->response.body);
    while ((at = strstr(there, job)) != NULL) {
        memcpy(at, none, strlen(none));
    }
    ck_assert_str_eq(there, missing);
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"d\",\"project\":\"p\"}"));
    EXPECT_STATUS(404, ask_as(out, "DELETE " D "?force=1"));
    (void)snprintf(there, sizeof there, "%s", callers.x->response.body);
    EXPECT_STATUS(404, ask_as(out, "DELETE " API "/datasets/x"));
    at = strstr(there, "\"d\\\"");
    at = at != NULL ? at : strstr(there, "d\\\"");
    ck_assert_ptr_nonnull(at);
    at[*at == '"'] = 'x';
    ck_assert_str_eq(there, callers.x->response.body);
}

END_TEST

/* No word of a specification but a dataset's name; and of another project's job not its name. */
START_TEST(a_dataset_is_held_by_who_names_it_and_no_name_gets_out)
{
    submit(out, "q", ",\"env\":{\"dataset\":\"d\",\"d\":\"d\"}");
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"a\",\"project\":\"p\"}"));
    EXPECT_STATUS(204, ask_as(bob, "DELETE " API "/datasets/a")); /* "argv" begins so */
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"d\",\"project\":\"p\"}"));
    sql("UPDATE jobs SET spec = '{\"datasets\":[\"e\",\"d@2\"]}' WHERE id = '%s'", job);
    EXPECT_HELD("a job of another project names it", "DELETE " D);
    ck_assert_ptr_null(strstr(said_text("error.message"), "j-of-q"));
    sql("UPDATE jobs SET project = 'p' WHERE id = '%s'", job);
    EXPECT_HELD("job j-of-q names it", "DELETE " D);
    sql("UPDATE jobs SET spec = '{\"validation\":\"%s/datasets/d\"}' WHERE id = '%s'",
        callers.fixture.dir, job);
    EXPECT_HELD("names it and is not over", "DELETE " D);
    sql("UPDATE jobs SET state = 'FAILED', finished_ms = 1 WHERE id = '%s'", job);
    EXPECT_STATUS(204, ask_as(bob, "DELETE " D));
}

END_TEST

START_TEST(an_ion_holds_all_datasets_that_its_document_names)
{
    static const struct {
        const char *pipelines, *links;
    } documents[] = {
        {"{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"e\",\"model\":\"lenet\","
         "\"parameters\":{\"validation\":\"d\"}}",
         ""},
        {"{\"name\":\"learn\",\"type\":\"training\",\"dataset\":\"e\",\"model\":\"lenet\"},"
         "{\"name\":\"look\",\"type\":\"prediction\",\"source\":{\"kind\":\"http\"}}",
         "{\"from\":\"learn\",\"to\":\"look\",\"policy\":{\"kind\":\"evaluate\",\"dataset\":"
         "\"d\"}}"},
    };

    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"d\",\"project\":\"p\"}"));
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"e\",\"project\":\"p\"}"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(documents); i++) {
        EXPECT_STATUS(200, ask_as(bob,
                                  "POST " API "/ions\n\n{\"name\":\"door%zu\",\"project\":\"p\","
                                  "\"pipelines\":[%s],\"links\":[%s]}",
                                  i, documents[i].pipelines, documents[i].links));
        EXPECT_HELD("ION door", "DELETE " D);
        EXPECT_STATUS(204, ask_as(bob, "DELETE " API "/ions/door%zu", i));
    }
    EXPECT_STATUS(204, ask_as(bob, "DELETE " D));
}

END_TEST

START_TEST(a_job_is_held_by_what_stands_on_it)
{
    char replica[400], segment[440];
    submit(bob, "p", "");
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/jobs/%s/cancel", job));
    sql("INSERT INTO sweeps (id, name, project, state, document, method, metric, n_trials, n_made, "
        "n_open, n_paused,"
        " n_succeeded, n_stopped, n_failed, best, work, paused_ms, pauses_ms, created_ms, "
        "ended_ms) VALUES "
        "('s', "
        "'search', 'q',"
        " 'SUCCEEDED', '{}', 'grid', 'loss', 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1)");
    sql("INSERT INTO sweep_trials (id, sweep, number, state, parameters, point, job, resource, "
        "step, rungs,"
        " created_ms, started_ms, ended_ms) VALUES ('s:1', 's', 1, 'SUCCEEDED', '{}', '[]', '%s', "
        "0, 0,"
        " '[]', 1, 1, 1)",
        job);
    EXPECT_HELD("it is a sweep of another project", "DELETE " API "/jobs/%s", job);
    sql("UPDATE sweeps SET project = 'p'");
    EXPECT_HELD("it is trial 1 of sweep search", "DELETE " API "/jobs/%s", job);
    EXPECT_STATUS(204, ask_as(bob, "DELETE " API "/sweeps/s"));
    (void)snprintf(replica, sizeof replica, "%s/replicas/%s-0/outbox", callers.fixture.dir, job);
    struct weir_error err;
    must(weir_dir_make(replica, 0700, &err), &err);
    (void)snprintf(segment, sizeof segment, "%s/0000000000000000.log", replica);
    must(weir_file_write_atomic(segment, "decision", 8, 0600, &err), &err);
    EXPECT_HELD("decisions that were never shipped", "DELETE " API "/jobs/%s", job);
    (void)snprintf(segment, sizeof segment, "%s/server.position", replica);
    must(weir_file_write_atomic(segment, "8", 1, 0600, &err), &err);
    char first[64];
    (void)snprintf(first, sizeof first, "%s", job);
    submit(bob, "p", "");
    sql("UPDATE jobs SET spec = '{\"service\":{\"runs\":\"%s\"}}' WHERE id = '%s'", first, job);
    EXPECT_HELD("job j-of-p names it", "DELETE " API "/jobs/%s", first);
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/jobs/%s/cancel", job));
    EXPECT_STATUS(204, ask_as(bob, "DELETE " API "/jobs/%s", first));
}

END_TEST

/* A server that is killed between the folder's move and the commit, and one that is killed behind that. */
START_TEST(a_kill_leaves_a_dataset_whole_or_gone)
{
    char folder[300], aside[400], other[400];
    struct weir_error err;
    const long long made_ms = callers.now_ms = weir_time_ms();
    EXPECT_STATUS(200, ask_as(bob, "POST " API "/datasets\n\n{\"name\":\"d\",\"project\":\"p\"}"));
    callers.now_ms = 0;
    EXPECT_STATUS(200, ask_as(bob, "PUT " D "/files/cat/1.jpg\n\nmeow"));
    (void)snprintf(folder, sizeof folder, "%s/datasets/d", callers.fixture.dir);
    (void)snprintf(aside, sizeof aside, "%s/datasets/" WEIR_RETAIN_GONE "%lld-d",
                   callers.fixture.dir, made_ms);
    (void)snprintf(other, sizeof other, "%s/datasets/" WEIR_RETAIN_GONE "%lld-d",
                   callers.fixture.dir, made_ms - 1);
    must(weir_dir_make(other, 0700, &err), &err);
    ck_assert_int_eq(rename(folder, aside), 0);
    api_delete_resume(callers.fixture.api);
    EXPECT_STATUS(204, ask_as(bob, "DELETE " D "/files/cat/1.jpg"));
    ck_assert(weir_path_exists(other) && !weir_path_exists(aside));
    EXPECT_STATUS(204, ask_as(bob, "DELETE " D));
    ck_assert(!weir_path_exists(folder) && !weir_path_exists(aside));
}

END_TEST

WEIR_TEST_MAIN_WITH("delete", set_up, callers_close,
                    what_somebody_else_made_is_not_every_members_to_delete,
                    another_projects_is_as_if_it_were_not_there,
                    a_dataset_is_held_by_who_names_it_and_no_name_gets_out,
                    an_ion_holds_all_datasets_that_its_document_names,
                    a_job_is_held_by_what_stands_on_it, a_kill_leaves_a_dataset_whole_or_gone)
