/* Jobs, tasks, logs and nodes, as people and as agents see them. */
#include "api/caller_fixture.h"

#include "api/routes.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <ftw.h>
#include <sys/stat.h>

#define JOB  "00000000-0000-4000-8000-0000000000b1"
#define TASK "00000000-0000-4000-8000-0000000000a1"
#define LOG  API "/tasks/" TASK "/log"

static void set_up(void)
{
    callers_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
}

/** A command of one task that runs on node n. */
static void place(const char *kind, const char *state)
{
    place_job(&(struct placed_job){.id = JOB,
                                   .task = TASK,
                                   .kind = kind,
                                   .node = "n",
                                   .state = state,
                                   .spec = "{\"argv\":[\"true\"],\"env\":{\"KEY\":\"geheim\"}}"});
}

static void submit(const char *more)
{
    EXPECT(200,
           "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\","
           "\"spec\":{\"argv\":[\"true\"]%s}}",
           more);
}

START_TEST(a_job_is_as_it_was_submitted)
{
    EXPECT(200, "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\",\"max_restarts\":2,"
                "\"spec\":{\"argv\":[\"echo\",\"ü\"],\"tasks\":3,\"cpu_slots\":2}}");
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    EXPECT(200, "GET " API "/jobs/%s", id);
    ck_assert_str_eq(said_text("name"), "j");
    ck_assert_str_eq(said_text("project"), "default");
    ck_assert_str_eq(said_text("state"), "PENDING");
    ck_assert_str_eq(said_text("created_by"), "ann");
    ck_assert_int_eq(json_integer_value(said("max_restarts")), 2);
    ck_assert_str_eq(said_text("spec.argv.1"), "ü");
    ck_assert(json_is_null(said("started_ms")));
    EXPECT(200, "GET " API "/jobs/%s/tasks", id);
    ck_assert_uint_eq(json_array_size(said("items")), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *task = json_array_get(said("items"), i);
        ck_assert_int_eq(json_integer_value(json_object_get(task, "rank")), (int64_t)i);
        ck_assert_int_eq(json_integer_value(json_object_get(task, "cpu_slots")), 2);
        ck_assert_int_eq(json_integer_value(json_object_get(task, "cpu_millis")), 2000);
        ck_assert_str_eq(json_string_value(json_object_get(task, "state")), "WAITING");
    }
    EXPECT(404, "GET " API "/jobs/none");
    EXPECT(404, "GET " API "/jobs/none/tasks");
}

END_TEST

START_TEST(a_job_may_be_submitted_as_one_that_is_held_and_a_trial_makes_none)
{
    EXPECT(200, "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\",\"held\":true,"
                "\"spec\":{\"argv\":[\"true\"]}}");
    ck_assert(json_is_true(said("is_held")));
    ck_assert_str_eq(said_text("state"), "PENDING");
    ck_assert_str_eq(said_text("reason"), "held by ann");
    EXPECT(400, "POST " API "/jobs\n\n{\"name\":\"j\",\"kind\":\"command\",\"held\":1,"
                "\"spec\":{\"argv\":[\"true\"]}}");
    EXPECT(200, "POST " API "/jobs?dry_run=1\n\n{\"name\":\"tried\",\"kind\":\"command\","
                "\"spec\":{\"argv\":[\"true\"]}}");
    ck_assert_str_eq(said_text("name"), "tried");
    ck_assert(!json_is_true(said("is_held")));
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    EXPECT(404, "GET " API "/jobs/%s", id);
}

END_TEST

START_TEST(what_cannot_run_is_refused)
{
    static const struct {
        const char *body, *place;
        int status;
    } wrong[] = {
        {"{\"kind\":\"command\",\"spec\":{\"argv\":[\"a\"]}}", "$.name", 400},
        {"{\"name\":\"j\",\"kind\":\"paint\",\"spec\":{}}", "kind", 400},
        {"{\"name\":\"j\",\"kind\":\"command\",\"spec\":{}}", "argv", 400},
        {"{\"name\":\"j\",\"kind\":\"command\",\"spec\":{\"argv\":[]}}", "argv", 400},
        {"{\"name\":\"j\",\"kind\":\"command\",\"spec\":{\"argv\":[1]}}", "argv", 400},
        {"{\"name\":\"j\",\"kind\":\"command\",\"spec\":{\"argv\":[\"a\"],\"colour\":1}}", "colour",
         400},
        {"{\"name\":\"j\",\"kind\":\"command\",\"spec\":{\"argv\":[\"a\"],\"tasks\":0}}", "tasks",
         400},
        {"{\"name\":\"j\",\"kind\":\"command\",\"spec\":{\"argv\":[\"a\"],"
         "\"env\":{\"K\":\"***\"}}}",
         "$.spec.env.K", 400},
        {"{\"name\":\"j\",\"kind\":\"command\",\"project\":\"none\",\"spec\":{\"argv\":[\"a\"]}}",
         "$.project", 404},
        {"{\"name\":\"j\",\"kind\":\"command\",\"spec\":{\"argv\":[\"a\"],"
         "\"datasets\":[\"none\"]}}",
         "none", 404},
        {"{\"name\":\"j\",\"kind\":\"train\",\"spec\":{\"model\":\"lenet\",\"data\":\"relative\"}}",
         "data", 400},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_ERROR(wrong[i].status, wrong[i].place, "POST " API "/jobs\n\n%s", wrong[i].body);
    }
    EXPECT(200, "GET " API "/jobs");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

START_TEST(secrets_of_a_job_are_shown_to_nobody)
{
    submit(",\"env\":{\"KEY\":\"geheim\"},\"files\":{\"f\":\"geheim\"}");
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    ck_assert_ptr_null(strstr(callers.x->response.body, "geheim"));
    const char *const places[] = {"/jobs", "/jobs/", "/nodes/n/desired", "/events?limit=1000"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(places); i++) {
        EXPECT(200, "GET " API "%s%s", places[i], i == 1 ? id : "");
        ck_assert_ptr_null(strstr(callers.x->response.body, "geheim"));
    }
    EXPECT(200, "GET " API "/jobs/%s", id);
    ck_assert_str_eq(said_text("spec.env.KEY"), "***");
    ck_assert_str_eq(said_text("spec.files.f"), "***");
}

END_TEST

START_TEST(a_job_is_cancelled_once)
{
    submit("");
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    EXPECT(200, "POST " API "/jobs/%s/cancel", id);
    ck_assert_str_eq(said_text("state"), "CANCELLED");
    ck_assert_ptr_nonnull(strstr(said_text("reason"), "cancelled by ann"));
    int status = ask("POST " API "/jobs/%s/cancel", id);
    ck_assert(status == 200 || status == 409);
    EXPECT(200, "GET " API "/jobs/%s", id);
    ck_assert_str_eq(said_text("state"), "CANCELLED");
    EXPECT(404, "POST " API "/jobs/none/cancel");
}

END_TEST

START_TEST(a_running_job_stops_when_it_is_cancelled)
{
    place("command", NULL);
    EXPECT(204, "PUT " API "/tasks/" TASK "/status\n\n{\"attempt\":1,\"state\":\"running\","
                "\"pid\":7}");
    EXPECT(200, "POST " API "/jobs/" JOB "/cancel");
    ck_assert_str_eq(said_text("state"), "STOPPING");
    EXPECT(200, "GET " API "/nodes/n/desired");
    ck_assert_str_eq(said_text("tasks.0.desired"), "stopped");
    EXPECT(204, "PUT " API "/tasks/" TASK "/status\n\n{\"attempt\":1,\"state\":\"exited\","
                "\"exit_code\":-1,\"signal\":15}");
    EXPECT(200, "GET " API "/jobs/" JOB);
    ck_assert_str_eq(said_text("state"), "CANCELLED");
}

END_TEST

START_TEST(what_an_agent_reports_moves_the_job)
{
    place("command", NULL);
    EXPECT(204, "PUT " API "/tasks/" TASK "/status\n\n{\"attempt\":1,\"state\":\"running\","
                "\"pid\":7}");
    EXPECT(200, "GET " API "/jobs/" JOB "/tasks");
    ck_assert_str_eq(said_text("items.0.state"), "RUNNING");
    ck_assert_int_eq(json_integer_value(said("items.0.pid")), 7);
    EXPECT(204, "PUT " API "/tasks/" TASK "/status\n\n{\"attempt\":1,\"state\":\"exited\","
                "\"exit_code\":3,\"message\":\"no such file\"}");
    EXPECT(200, "GET " API "/jobs/" JOB "/tasks");
    ck_assert_int_eq(json_integer_value(said("items.0.exit_code")), 3);
    ck_assert_str_eq(said_text("items.0.message"), "no such file");
    EXPECT(200, "GET " API "/jobs/" JOB);
    ck_assert_str_eq(said_text("state"), "FAILED");
    EXPECT_ERROR(400, "$.state", "PUT " API "/tasks/" TASK "/status\n\n{\"state\":\"fine\"}");
    EXPECT(404, "PUT " API "/tasks/none/status\n\n{\"attempt\":1,\"state\":\"running\"}");
}

END_TEST

/* ---- logs ------------------------------------------------------------------------------------ */

static void expect_log(const char *query, const char *text, const char *offset)
{
    EXPECT(200, "GET " LOG "%s", query);
    ck_assert_uint_eq(callers.x->response.body_len, strlen(text));
    ck_assert_mem_eq(callers.x->response.body, text, strlen(text));
    ck_assert_str_eq(said_header("X-Weir-Offset"), offset);
}

START_TEST(a_log_is_appended_at_its_offset)
{
    place("command", NULL);
    EXPECT(200, "POST " LOG "?offset=0\n\none\n");
    ck_assert_int_eq(json_integer_value(said("offset")), 4);
    EXPECT(200, "POST " LOG "?offset=4\n\ntwo\n");
    EXPECT(200, "POST " LOG "?offset=4\n\ntwo\nthree\n"); /* sent again, with more */
    ck_assert_int_eq(json_integer_value(said("offset")), 14);
    EXPECT(200, "POST " LOG "?offset=0\n\none\n"); /* late, whole behind it */
    EXPECT(409, "POST " LOG "?offset=99\n\nlost\n");
    ck_assert_int_eq(json_integer_value(said("offset")), 14);
    expect_log("", "one\ntwo\nthree\n", "14");
    expect_log("?offset=8", "three\n", "14");
    expect_log("?offset=14", "", "14");
    expect_log("?offset=999", "one\ntwo\nthree\n", "14"); /* of another attempt: from the begin */
    EXPECT(400, "POST " LOG "?offset=-1\n\nx");
    EXPECT(404, "GET " API "/tasks/none/log");
}

END_TEST

static bool waits(const char *task, const char *query)
{
    (void)ask("GET " API "/tasks/%s/log%s", task, query);
    return callers.x->response.kind == ANSWER_WAIT;
}

START_TEST(who_follows_a_log_is_answered_once_the_job_is_over)
{
    static const char other[] = "00000000-0000-4000-8000-0000000000a2";
    place("command", NULL);
    place_job(&(struct placed_job){.id = "00000000-0000-4000-8000-0000000000b2",
                                   .task = other,
                                   .kind = "command",
                                   .node = "n",
                                   .state = "SUCCEEDED",
                                   .finished_ms = 2});
    EXPECT(200, "POST " API "/tasks/%s/log?offset=0\n\none\n", other);
    callers.may_wait = true;
    ck_assert(waits(TASK, "?wait_s=20"));
    ck_assert(waits(TASK, "?wait_s=20&until_end=1"));
    ck_assert(waits(other, "?wait_s=20&offset=4"));
    ck_assert(!waits(other, "?wait_s=20&offset=4&until_end=1"));
    ck_assert_uint_eq(callers.x->response.body_len, 0);
    ck_assert(!waits(other, "?wait_s=20&until_end=1")); /* the end of it first */
    ck_assert_uint_eq(callers.x->response.body_len, 4);
    EXPECT(400, "GET " LOG "?wait_s=20&until_end=2");
}

END_TEST

START_TEST(the_tail_of_a_log_is_its_last_lines)
{
    place("command", NULL);
    EXPECT(200, "POST " LOG "?offset=0\n\none\ntwo\n\nfour");
    expect_log("?tail=0", "", "13");
    expect_log("?tail=1", "four", "13");
    expect_log("?tail=2", "\nfour", "13");
    expect_log("?tail=3", "two\n\nfour", "13");
    expect_log("?tail=99", "one\ntwo\n\nfour", "13");
    EXPECT(400, "GET " LOG "?tail=1000001");
}

END_TEST

START_TEST(lines_of_a_log_have_times_and_are_found_by_them)
{
    place("command", NULL);
    /* "one" and "two" at 12:00:00, the begin of "three" a second later, its end and "four" at 12:00:03 */
    EXPECT(200, "POST " LOG "?offset=0&times=0:1790000000000,8:1000\n\none\ntwo\nthr");
    EXPECT(200, "POST " LOG "?offset=11&times=0:1790000003000\n\nee\nfour");
    expect_log("?since=2026-09-21T14:13:20Z", "one\ntwo\nthree\nfour", "18");
    expect_log("?since=2026-09-21T14:13:20.001Z", "three\nfour", "18");
    expect_log("?since=2026-09-21T14:13:21.001Z", "four", "18");
    expect_log("?since=2026-09-21T14:13:24Z", "", "18");
    expect_log("?since=2026-09-21T14:13:20Z&tail=1", "four", "18");
    expect_log("?since=2026-09-21T14:13:21.001Z&tail=9", "four", "18");
    expect_log("?times=1",
               "2026-09-21T14:13:20.000Z one\n2026-09-21T14:13:20.000Z two\n"
               "2026-09-21T14:13:21.000Z three\n2026-09-21T14:13:23.000Z four",
               "18");
    expect_log("?times=1&offset=9", "hree\n2026-09-21T14:13:23.000Z four", "18");
    expect_log("?times=1&tail=1", "2026-09-21T14:13:23.000Z four", "18");
    expect_log("?times=1&offset=18", "", "18");
    expect_log("?last_s=1", "", "18");
    expect_log("?last_s=3000000000", "one\ntwo\nthree\nfour", "18");
    EXPECT_ERROR(400, "give one of the two", "GET " LOG "?since=2026-09-21T14:13:20Z&last_s=1");
    EXPECT_ERROR(400, "expected a time like", "GET " LOG "?since=yesterday");
    const char *const bad[] = {"0", "0:", "x:1", "0:-1", "-1:5", "99:1", "0:1;1:1"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        EXPECT_ERROR(400, "parameter times", "POST " LOG "?offset=18&times=%s\n\nx\n", bad[i]);
    }
    /* Behind what is left out, and of an agent that knows no times: it comes now. */
    EXPECT(200, "POST " LOG "?offset=118&left_out=100\n\nfive\n");
    expect_log("?last_s=60", "five\n", "123");
    EXPECT(200, "GET " LOG "?times=1&offset=14");
    const char *left_out = "2026-09-21T14:13:23.000Z four", *text = callers.x->response.body;
    ck_assert_mem_eq(text, left_out, strlen(left_out));
    EXPECT(200, "GET " LOG "?times=1&offset=18");
    left_out = "\n- [weir: 100 bytes of output are left out here]\n20";
    ck_assert_mem_eq(callers.x->response.body, left_out, strlen(left_out));
}

END_TEST

/* An agent whose node keeps no more than its newest lines, and readers that come at any time. */
START_TEST(what_is_left_out_of_a_log_is_counted_where_it_was)
{
    enum { N_CHUNKS = 120, N_READERS = 3 };

    static char shown[1 << 16], read[N_READERS][1 << 16];
    long long end = 0, at[N_READERS] = {0};
    size_t n_shown = 0, n_read[N_READERS] = {0};
    struct weir_rng rng;
    int n_gaps_left = 14; /* so many parts of a log are kept */
    (void)test_seed(&rng);
    place("command", NULL);
    for (int i = 0; i < N_CHUNKS; i++) {
        bool has_gap = weir_rng_below(&rng, 8) == 0 && n_gaps_left-- > 0;
        long long left_out = has_gap ? (long long)weir_rng_below(&rng, 5000000000) + 1 : 0;
        int len = (int)weir_rng_below(&rng, 60) + 1;
        if (left_out > 0) {
            EXPECT(409, "POST " LOG "?offset=%lld&left_out=%lld\n\n%d", end + left_out,
                   left_out - 1, i);
            n_shown +=
                (size_t)snprintf(shown + n_shown, sizeof shown - n_shown,
                                 "\n[weir: %lld bytes of output are left out here]\n", left_out);
        }
        EXPECT(200, "POST " LOG "?offset=%lld&left_out=%lld\n\n%0*d\n", end + left_out, left_out,
               len, i);
        n_shown += (size_t)snprintf(shown + n_shown, sizeof shown - n_shown, "%0*d\n", len, i);
        end += left_out + WEIR_MAX(len, snprintf(NULL, 0, "%d", i)) + 1;
        ck_assert_int_eq(json_integer_value(said("offset")), end);
        for (size_t j = 0; j < N_READERS; j++) {
            bool is_last = i + 1 == N_CHUNKS;
            while ((is_last && at[j] < end) || weir_rng_below(&rng, 1 + 8 * j) == 0) {
                EXPECT(200, "GET " LOG "?offset=%lld", at[j]);
                memcpy(read[j] + n_read[j], callers.x->response.body, callers.x->response.body_len);
                n_read[j] += callers.x->response.body_len;
                at[j] = strtoll(said_header("X-Weir-Offset"), NULL, 10);
                if (at[j] == end) {
                    break;
                }
            }
        }
    }
    for (size_t j = 0; j < N_READERS; j++) {
        ck_assert_uint_eq(n_read[j], n_shown);
        ck_assert_mem_eq(read[j], shown, n_shown);
    }
    EXPECT(200, "GET " LOG "?tail=1");
    ck_assert_int_eq(strtoll(said_header("X-Weir-Offset"), NULL, 10), end);
    ck_assert_ptr_nonnull(strstr(callers.x->response.body, "119\n"));
}

END_TEST

START_TEST(attempts_have_logs_of_their_own)
{
    place("command", NULL);
    EXPECT(200, "POST " LOG "?offset=0&attempt=1\n\nfirst");
    EXPECT(200, "POST " LOG "?offset=0&attempt=2\n\nsecond");
    expect_log("?attempt=1", "first", "5");
    expect_log("?attempt=2", "second", "6");
    expect_log("?attempt=0", "", "0");
    expect_log("", "first", "5"); /* the task's newest attempt is 1 */
    EXPECT(404, "GET " LOG "?attempt=3");
}

END_TEST

static int n_found;

static int count_found(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    n_found += strstr(path, "/weir.db") == NULL; /* its log comes and goes */
    return 0;
}

static int n_files_of_state(void)
{
    n_found = 0;
    ck_assert_int_eq(nftw(callers.fixture.dir, count_found, 16, FTW_PHYS), 0);
    return n_found;
}

/* Every route that only looks, about a task that is there and nothing else, with random figures. */
/* With those of these parameters that the route takes. */
static void ask_with_numbers(const struct weir_route *route, const char *path, struct weir_rng *rng)
{
    static const struct {
        const char *name;
        uint64_t n;
    } numbers[] = {{"attempt", 5}, {"offset", 100}, {"wait_s", 1}, {"limit", 4}};

    char query[128] = "";
    size_t n = 0;
    for (const struct weir_route_param *param = route->query; param != NULL && param->name != NULL;
         param++) {
        for (size_t i = 0; i < WEIR_ARRAY_LEN(numbers); i++) {
            if (strcmp(numbers[i].name, param->name) == 0) {
                n += (size_t)snprintf(query + n, sizeof query - n, "%c%s=%d", n == 0 ? '?' : '&',
                                      param->name, (int)weir_rng_below(rng, numbers[i].n));
            }
        }
    }
    (void)ask("GET %s%s", path, query);
}

START_TEST(looking_makes_no_file)
{
    struct weir_rng rng;
    size_t n_asked = 0;
    (void)test_seed(&rng);
    place("command", NULL);
    EXPECT(200, "POST " LOG "?offset=0\n\none"); /* the folder of logs is there */
    int before = n_files_of_state();
    callers.may_wait = true;
    const struct weir_route *route;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        char path[512] = "";
        size_t n = 0;
        for (const char *p = route->pattern; *p != '\0'; p++) {
            const char *value = strstr(route->pattern, "/tasks/") != NULL ? TASK : JOB;
            bool is_value = *p == '{';
            n += (size_t)snprintf(path + n, sizeof path - n, "%s%.1s", is_value ? value : "",
                                  is_value ? "" : p);
            p += is_value ? strcspn(p, "}") : 0;
        }
        for (int k = 0; k < 4 && strcmp(route->method, "GET") == 0; k++, n_asked++) {
            ask_with_numbers(route, path, &rng);
        }
        ck_assert_msg(n_files_of_state() == before, "GET %s makes a file", route->pattern);
    }
    ck_assert_uint_gt(n_asked, 300);
}

END_TEST

START_TEST(a_reader_waits_for_more_of_a_log)
{
    place("command", NULL);
    callers.may_wait = true;
    EXPECT(0, "GET " LOG "?wait_s=60");
    ck_assert_int_eq(callers.x->response.kind, ANSWER_WAIT);
    ck_assert_int_eq(callers.x->response.wait_ms, 60000);
    callers.x->request.is_expired = true;
    request_fixture_handle(&callers.fixture, callers.x);
    ck_assert_int_eq(callers.x->response.kind, ANSWER_READY);
    ck_assert_uint_eq(callers.x->response.body_len, 0);
    EXPECT(400, "GET " LOG "?wait_s=61");
}

END_TEST

/* ---- again ----------------------------------------------------------------------------------- */

START_TEST(only_what_is_over_is_started_again)
{
    place("command", "RUNNING");
    EXPECT_ERROR(409, "is RUNNING", "POST " API "/jobs/" JOB "/restart");
    EXPECT(404, "POST " API "/jobs/none/restart");
    EXPECT(204, "PUT " API "/tasks/" TASK "/status\n\n{\"attempt\":1,\"state\":\"exited\","
                "\"exit_code\":1}");
    EXPECT(200, "POST " API "/jobs/" JOB "/restart");
    ck_assert_str_ne(said_text("id"), JOB);
    ck_assert_str_eq(said_text("state"), "PENDING");
    ck_assert_str_eq(said_text("spec.argv.0"), "true");
    ck_assert_str_eq(said_text("spec.env.KEY"), "***");
    EXPECT_ERROR(501, "only trainings", "POST " API "/jobs/" JOB "/resume");
}

END_TEST

START_TEST(a_training_without_a_checkpoint_cannot_go_on)
{
    place("train", "FAILED");
    EXPECT_ERROR(404, "no checkpoint", "POST " API "/jobs/" JOB "/resume");
    EXPECT(200, "GET " API "/jobs");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
}

END_TEST

START_TEST(a_job_of_an_ion_is_the_ions_to_start)
{
    place_job(&(struct placed_job){.id = JOB,
                                   .task = TASK,
                                   .kind = "train",
                                   .node = "n",
                                   .state = "FAILED",
                                   .ion = "door",
                                   .pipeline = "learn"});
    EXPECT_ERROR(409, "weir trigger door learn", "POST " API "/jobs/" JOB "/restart");
}

END_TEST

/* ---- nodes ----------------------------------------------------------------------------------- */

START_TEST(a_node_is_what_its_agent_said_last)
{
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":8,\"memory_bytes\":1024,"
                "\"n_accelerators\":2,\"disk_bytes\":10,\"disk_free_bytes\":3,\"disk_id\":\"d\","
                "\"inventory\":{\"cpu\":\"x\"},\"agent_version\":\"1\"}");
    EXPECT(200, "GET " API "/nodes");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_int_eq(json_integer_value(said("items.0.cpu_slots")), 8);
    ck_assert_int_eq(json_integer_value(said("items.0.n_accelerators")), 2);
    ck_assert_str_eq(said_text("items.0.inventory.cpu"), "x");
    ck_assert_str_eq(said_text("items.0.state"), "ready");
}

END_TEST

START_TEST(the_agent_gets_the_tasks_with_their_tokens)
{
    char agent[BEARER_BYTES], task[BEARER_BYTES];
    make_caller("a", "agent", ",\"node\":\"n\"", agent);
    place("command", NULL);
    task_bearer(TASK, task);
    EXPECT_STATUS(200, ask_as(agent, "GET " API "/nodes/n/desired"));
    ck_assert_str_eq(said_text("tasks.0.id"), TASK);
    ck_assert_str_eq(said_text("tasks.0.files.token"), task + strlen("Bearer "));
    ck_assert_str_eq(said_text("tasks.0.env.WEIR_ATTEMPT"), "1");
    EXPECT(200, "GET " API "/nodes/n/desired"); /* an admin who looks */
    ck_assert_str_eq(said_text("tasks.0.files.token"), "***");
    EXPECT(404, "GET " API "/nodes/none/desired");
    EXPECT(400, "GET " API "/nodes/n/desired?wait_s=61");
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "job_routes", set_up, callers_close, a_job_is_as_it_was_submitted,
    a_job_may_be_submitted_as_one_that_is_held_and_a_trial_makes_none, what_cannot_run_is_refused,
    secrets_of_a_job_are_shown_to_nobody, a_job_is_cancelled_once,
    a_running_job_stops_when_it_is_cancelled, what_an_agent_reports_moves_the_job,
    looking_makes_no_file, a_log_is_appended_at_its_offset,
    who_follows_a_log_is_answered_once_the_job_is_over, the_tail_of_a_log_is_its_last_lines,
    lines_of_a_log_have_times_and_are_found_by_them,
    what_is_left_out_of_a_log_is_counted_where_it_was, attempts_have_logs_of_their_own,
    a_reader_waits_for_more_of_a_log, only_what_is_over_is_started_again,
    a_training_without_a_checkpoint_cannot_go_on, a_job_of_an_ion_is_the_ions_to_start,
    a_node_is_what_its_agent_said_last, the_agent_gets_the_tasks_with_their_tokens)
