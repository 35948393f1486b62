/* Sweeps as people ask for them: what is refused, what an answer has, who may see and stop them. */
#include "api/caller_fixture.h"

#include "base/test_main.h"

#define GOAL  "\"goal\":{\"metric\":\"loss\",\"direction\":\"minimize\"}"
#define SPACE "\"parameters\":{\"x\":{\"kind\":\"uniform\",\"min\":0,\"max\":1}}"
#define JOB                                                                                        \
    "\"job\":{\"kind\":\"command\",\"spec\":{\"argv\":[\"t\",\"{{x}}\"],\"env\":{\"KEY\":"         \
    "\"hidden\"}}}"
#define SWEEP "{\"name\":\"s\"," JOB "," GOAL "," SPACE ",\"trials\":4,\"parallel\":3"

START_TEST(a_sweep_says_what_it_is_and_how_far)
{
    EXPECT(200, "POST " API "/sweeps\n\n" SWEEP ",\"method\":{\"kind\":\"tpe\"}}");
    char id[64];
    (void)snprintf(id, sizeof id, "%s", said_text("id"));
    ck_assert_str_eq(said_text("state"), "RUNNING");
    ck_assert_str_eq(said_text("method"), "tpe");
    ck_assert_str_eq(said_text("created_by"), "ann");
    ck_assert_int_eq(json_integer_value(said("n_made")), 3);
    ck_assert(json_is_integer(said("document.seed")));
    ck_assert_str_eq(said_text("document.job.spec.env.KEY"), "***");
    EXPECT(200, "GET " API "/sweeps/%s/trials", id);
    ck_assert_uint_eq(json_array_size(said("items")), 3);
    ck_assert_str_eq(said_text("items.2.state"), "WANTED");
    ck_assert(json_is_real(said("items.2.parameters.x")));
    EXPECT(200, "GET " API "/sweeps?name=s&state=RUNNING");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(409, "DELETE " API "/sweeps/%s", id);
    EXPECT(200, "POST " API "/sweeps/%s/stop", id);
    ck_assert_str_eq(said_text("state"), "CANCELLED"); /* no trial had a job yet */
    ck_assert_str_eq(said_text("reason"), "stopped by ann");
    EXPECT(409, "POST " API "/sweeps/%s/stop", id);
    EXPECT(200, "GET " API "/events?kind=sweep_ended&limit=1");
    ck_assert_ptr_nonnull(strstr(said_text("items.0.message"), "CANCELLED after 3 trials"));
    EXPECT(204, "DELETE " API "/sweeps/%s", id);
    EXPECT(404, "GET " API "/sweeps/%s", id);
    EXPECT(404, "GET " API "/sweeps/%s/trials", id);
}

END_TEST

START_TEST(a_dry_run_begins_nothing)
{
    EXPECT(200, "POST " API "/sweeps?dry_run=1\n\n" SWEEP "}");
    ck_assert_int_eq(json_integer_value(said("n_trials")), 4);
    EXPECT(200, "GET " API "/sweeps");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

static const struct {
    int code;
    const char *body, *said;
} refused[] = {
    {400, "{}", "$.name"},
    {400, "[1]", "object"},
    {404, SWEEP ",\"project\":\"nowhere\"}", "$.project: there is no project \"nowhere\""},
    {400, SWEEP ",\"time_s\":-5}", "$.time_s"},
    {400,
     "{\"name\":\"s\",\"job\":{\"kind\":\"command\",\"spec\":{\"argv\":[\"{{y}}\"]}}," GOAL
     "," SPACE ",\"trials\":4}",
     "$.job.spec.argv[0]: {{y}} is none"},
    {400,
     "{\"name\":\"s\",\"job\":{\"kind\":\"command\",\"spec\":{\"argv\":[\"t\"],\"env\":{\"KEY\":\"*"
     "**\"}}}," GOAL "," SPACE ",\"trials\":4}",
     "$.job.spec.env.KEY"},
};

START_TEST(what_makes_no_sense_is_refused_with_its_place)
{
    EXPECT_ERROR(refused[_i].code, refused[_i].said, "POST " API "/sweeps\n\n%s", refused[_i].body);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep_routes");
    TCase *tcase = tcase_create("sweep_routes");
    tcase_add_checked_fixture(tcase, callers_open, callers_close);
    tcase_add_test(tcase, a_sweep_says_what_it_is_and_how_far);
    tcase_add_test(tcase, a_dry_run_begins_nothing);
    tcase_add_loop_test(tcase, what_makes_no_sense_is_refused_with_its_place, 0,
                        WEIR_ARRAY_LEN(refused));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
