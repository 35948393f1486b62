/* get, describe, explain, runs compare: what they print, in each form. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"
#include "cli/core/noun.h"

#define JOB  "0192aaaa-0000-7000-8000-00000000beef"
#define JOB2 "0192aaaa-0000-7000-8000-00000000cafe"
#define TASK "00000000-0000-4000-8000-0000000000a1"
#define DOOR                                                                                       \
    "{\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\",\"type\":\"training\","                 \
    "\"dataset\":\"staff\",\"model\":\"face-embed\"},{\"name\":\"see\",\"type\":\"prediction\","   \
    "\"source\":{\"kind\":\"http\"},\"gallery\":{\"dataset\":\"staff\"}}],"                        \
    "\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}"

/** One of everything that can be made without an agent. */
static void set_up(void)
{
    cli_open();
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4,\"memory_bytes\":3221225472}");
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(200, "PUT " API "/datasets/staff/files/ann/1.jpg\n\nx");
    EXPECT(200, "POST " API "/datasets/staff/versions");
    EXPECT(200, "POST " API "/ions\n\n" DOOR);
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "train", .node = "n", .run = "run-1"});
    EXPECT(204, "POST " API "/runs/run-1/metrics\n\n{\"metrics\":[{\"key\":\"loss\",\"step\":1,"
                "\"value\":0.25}]}");
    EXPECT(200, "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"d\",\"ion\":\"door\","
                "\"pipeline\":\"see\",\"camera\":\"c\",\"frame\":1,\"verdict\":\"deny\"}]}");
}

/** What a part of something is asked for by. */
static const char *owner_of(const struct cli_noun *noun)
{
    static const struct {
        const char *noun, *name;
    } owners[] = {
        {"model", NULL}, {"dataset", "staff"}, {"job", JOB}, {"run", "run-1"}, {"ion", "door"}};

    for (size_t i = 0; noun->of != NULL && i < WEIR_ARRAY_LEN(owners); i++) {
        if (strcmp(owners[i].noun, noun->of) == 0) {
            return owners[i].name;
        }
    }
    return NULL;
}

START_TEST(every_noun_is_listed_in_every_form)
{
    for (size_t i = 0; i < cli_n_nouns; i++) {
        const struct cli_noun *noun = &cli_nouns[i];
        const char *owner = owner_of(noun);
        if (noun->of != NULL && owner == NULL) {
            continue;
        }
        EXPECT_EXIT(0, "get", noun->plural, "-ojson", owner);
        const json_t *items = json_object_get(cli.json, "items");
        ck_assert_msg(json_is_array(items), "%s: %s", noun->plural, cli.out);
        size_t n = json_array_size(items), n_lines = 0;
        EXPECT_EXIT(0, "get", noun->singular, owner == NULL ? "--limit=100" : owner);
        for (const char *p = cli.out; (p = strchr(p, '\n')) != NULL; p++) {
            n_lines++;
        }
        ck_assert_msg(n_lines == n + 1, "%s: %zu lines for %zu records:\n%s", noun->plural, n_lines,
                      n, cli.out);
        ck_assert_int_eq(strncmp(cli.err, "(none)\n", 7) == 0, n == 0); /* and why, if it is said */
        EXPECT_EXIT(0, "get", noun->plural, "-oyaml", owner);
        json_t *yaml = NULL;
        struct weir_error err;
        weir_status status = weir_yaml_parse(cli.out, strlen(cli.out), "out", false, &yaml, &err);
        ck_assert_msg(status == WEIR_OK, "%s: %s\n%s", noun->plural, err.message, cli.out);
        ck_assert_uint_eq(json_array_size(json_object_get(yaml, "items")), n);
        json_decref(yaml);
    }
}

END_TEST

START_TEST(a_table_says_how_long_ago_and_wide_the_time)
{
    static const struct {
        int64_t ago_ms;
        const char *text;
    } times[] = {{0, "0 s ago"},           {119500, "119 s ago"},   {150000, "2 min ago"},
                 {7140000, "119 min ago"}, {7300000, "2 h ago"},    {172700000, "47 h ago"},
                 {172900000, "2 d ago"},   {-3500, "in 3 s"},       {-200000, "in 3 min"},
                 {-8000000, "in 2 h"},     {-900000000, "in 10 d"}, {34560000000, "400 d ago"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(times); i++) {
        char exact[WEIR_TIME_TEXT_BYTES], body[256];
        weir_time_format(weir_time_ms() - times[i].ago_ms, exact);
        (void)snprintf(body, sizeof body,
                       "{\"items\":[{\"id\":\"x\",\"name\":\"a\",\"created_ms\":\"%s\"}]}", exact);
        cli.script_path = API "/jobs";
        cli.script_body = body;
        cli.script_status = 200;
        EXPECT_EXIT(0, "get", "jobs");
        EXPECT_OUT(times[i].text);
        ck_assert_ptr_null(strstr(cli.out, exact));
        EXPECT_EXIT(0, "get", "jobs", "-o", "wide");
        EXPECT_OUT(exact);
        EXPECT_EXIT(0, "get", "jobs", "-o", "json");
        EXPECT_OUT(exact);
        cli.script_path = NULL;
    }
}

END_TEST

START_TEST(a_table_cuts_identifiers_and_wide_does_not)
{
    EXPECT_EXIT(0, "get", "jobs");
    ck_assert_ptr_null(strstr(cli.out, JOB));
    EXPECT_OUT("0000beef");
    EXPECT_EXIT(0, "get", "jobs", "-o", "wide");
    EXPECT_OUT(JOB);
    EXPECT_EXIT(0, "get", "nodes");
    ck_assert_int_eq(strncmp(cli.out, "NAME  ", 6), 0);
    EXPECT_OUT("3.0 GiB");
}

END_TEST

START_TEST(columns_are_aligned_and_no_terminal_is_steered)
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"a\",\"description\":\"Türen \\u001b[2J\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"a-long-name\",\"description\":\"x\"}");
    EXPECT_EXIT(0, "get", "projects");
    ck_assert_str_eq(cli.out, "NAME         DESCRIPTION\n"
                              "a            Türen ?[2J\n"
                              "a-long-name  x\n"
                              "default      \n");
}

END_TEST

START_TEST(filters_and_limits_are_the_lists)
{
    EXPECT_EXIT(0, "get", "jobs", "state=running", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "items")), 1);
    EXPECT_EXIT(0, "get", "jobs", "state=FAILED", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "items")), 0);
    EXPECT_EXIT(0, "get", "jobs", "kind=train", "name=j", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "items")), 1);
    for (int i = 0; i < 5; i++) {
        EXPECT(200, "POST " API "/projects\n\n{\"name\":\"p%d\"}", i);
    }
    EXPECT_EXIT(0, "get", "projects", "-n3");
    ck_assert_ptr_nonnull(strstr(cli.err, "there are more: --limit 30"));
    EXPECT_EXIT(0, "get", "projects", "-n3", "-ojson");
    ck_assert(json_is_true(json_object_get(cli.json, "more")));
    ck_assert_str_eq(cli.err, "");
    EXPECT_EXIT(0, "get", "projects", "-n6", "-ojson");
    ck_assert(json_is_false(json_object_get(cli.json, "more")));
}

END_TEST

START_TEST(one_is_found_by_name_and_by_a_part_of_its_identifier)
{
    static const char *const words[] = {JOB, "j", "0192aaaa", "beef", "0000beef"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(words); i++) {
        EXPECT_EXIT(0, "get", "job", words[i], "-ojson");
        ck_assert_str_eq(json_string_value(json_object_get(cli.json, "id")), JOB);
    }
    EXPECT_REFUSED(4, "there is no job \"eef\"", "get", "job", "eef"); /* 4 characters or more */
    EXPECT_REFUSED(4, "`weir get jobs` lists them", "get", "job", "none");
    place_job(&(struct placed_job){
        .id = JOB2, .task = "00000000-0000-4000-8000-0000000000a2", .kind = "train", .node = "n"});
    EXPECT_REFUSED(2, JOB2, "get", "job", "0192aaaa");
    ck_assert_ptr_nonnull(strstr(cli.err, JOB));
    EXPECT_EXIT(0, "get", "job", "cafe", "-ojson");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "id")), JOB2);
    EXPECT_REFUSED(2, "takes no filter", "get", "job", JOB, "state=x");
    EXPECT_REFUSED(4, "there is no node \"m\"", "get", "node", "m");
    EXPECT_REFUSED(7, "cannot be looked at", "get", "event", "1");
}

END_TEST

START_TEST(describe_shows_the_state_first_and_what_belongs_to_it)
{
    static const struct {
        const char *noun, *name, *first;
    } rows[] = {{"ion", "door", "state "},
                {"job", JOB, "state "},
                {"run", "run-1", "status "},
                {"dataset", "staff", "name "},
                {"node", "n", "state "}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        EXPECT_EXIT(0, "describe", rows[i].noun, rows[i].name);
        ck_assert_msg(strncmp(cli.out, rows[i].first, strlen(rows[i].first)) == 0, "%s", cli.out);
        EXPECT_EXIT(0, "describe", rows[i].noun, rows[i].name, "-ojson");
        ck_assert(json_is_object(cli.json));
        EXPECT_EXIT(0, "describe", rows[i].noun, rows[i].name, "-oyaml");
    }
    EXPECT_EXIT(0, "describe", "ion/door");
    EXPECT_OUT("learn:see");
    EXPECT_EXIT(0, "describe", "job", JOB);
    EXPECT_OUT("\ntasks\n");
    EXPECT_EXIT(0, "describe", "dataset", "staff", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "dataset_versions")), 1);
    EXPECT_REFUSED(4, "", "describe", "ion", "gate");
}

END_TEST

static void decide(const char *ion, const char *id)
{
    EXPECT(200,
           "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"%s\",\"ion\":\"%s\",\"pipeline\":"
           "\"see\",\"camera\":\"porch\",\"frame\":9,\"verdict\":\"deny\",\"time_ms\":%lld}]}",
           id, ion, (long long)weir_time_ms());
}

START_TEST(a_camera_goes_by_its_name_or_where_several_have_it_by_its_id)
{
    decide("door", "d1");
    EXPECT_EXIT(0, "describe", "camera", "porch");
    ck_assert_msg(strncmp(cli.out, "state ", 6) == 0, "%s", cli.out);
    EXPECT(200, "POST " API "/ions\n\n{\"name\":\"yard\",%s", strchr(DOOR, ',') + 1);
    decide("yard", "d2");
    EXPECT_REFUSED(2, "door:see:porch, yard:see:porch", "describe", "camera", "porch");
    EXPECT_EXIT(0, "describe", "camera", "yard:see:porch");
    EXPECT_OUT("yard");
    EXPECT_EXIT(0, "get", "cameras", "ion=yard", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "items")), 1);
    EXPECT_EXIT(0, "get", "sources");
    EXPECT_OUT("unknown");
    EXPECT_EXIT(0, "get", "replicas", "door");
}

END_TEST

START_TEST(explain_says_what_members_mean_and_why_a_job_waits)
{
    EXPECT_EXIT(0, "explain", "job");
    EXPECT_OUT("max_restarts");
    EXPECT_OUT("How often a failed gang starts again");
    EXPECT_EXIT(0, "explain", "job", JOB);
    EXPECT_OUT("j is RUNNING");
    EXPECT_EXIT(0, "explain", "job", JOB, "-ojson");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "state")), "RUNNING");
    EXPECT_REFUSED(7, "only a job can be explained by name", "explain", "node", "n");
    EXPECT_REFUSED(2, "there is no noun", "explain", "frobs");
    /* A word of the glossary: with a record's members, with a kind, alone, and without a server. */
    EXPECT_EXIT(0, "explain", "candidates");
    EXPECT_OUT("candidate: a model version that a link may deploy\n\ncandidate, as `weir get");
    EXPECT_EXIT(0, "explain", "sources");
    EXPECT_OUT("where frames come from\n");
    EXPECT_OUT("directory");
    EXPECT_EXIT(0, "explain", "impostor");
    EXPECT_EXIT(0, "explain", "impostor", "--server", "http://127.0.0.1:1");
    EXPECT_OUT("impostor, impostor set: a person who is not enrolled");
    EXPECT_EXIT(0, "explain", "impostor", "-ojson");
    ck_assert_ptr_nonnull(json_object_get(cli.json, "meaning"));
    EXPECT_EXIT(9, "explain", "source", "--server", "http://127.0.0.1:1");
}

END_TEST

START_TEST(a_kind_is_explained_by_its_noun_or_alone_if_only_one_has_the_name)
{
    EXPECT_EXIT(0, "explain", "job-kinds");
    EXPECT_OUT("pytorch");
    EXPECT_EXIT(0, "explain", "job-kind", "mpi");
    EXPECT_OUT("argv");
    EXPECT_REFUSED(4, "`weir explain job-kind` lists them", "explain", "job-kind", "frob");
    EXPECT_REFUSED(2, "there is no noun \"frob-kind\"", "explain", "frob-kind", "frob");
    EXPECT_EXIT(0, "explain", "mpi");
    EXPECT_OUT("argv");
    /* A policy and a trigger. */
    EXPECT_REFUSED(2, "say `weir explain ", "explain", "manual");
}

END_TEST

START_TEST(runs_are_compared)
{
    place_job(&(struct placed_job){.id = JOB2,
                                   .task = "00000000-0000-4000-8000-0000000000a2",
                                   .kind = "train",
                                   .node = "n",
                                   .run = "run-2"});
    EXPECT(200, "PATCH " API "/runs/run-2\n\n{\"params\":{\"rate\":\"0.1\"}}");
    EXPECT(204, "POST " API "/runs/run-2/metrics\n\n{\"metrics\":[{\"key\":\"rate\",\"step\":1,"
                "\"value\":0.05}]}");
    EXPECT_EXIT(0, "runs", "compare", "run-1", "run-2", "-ojson");
    ck_assert_ptr_nonnull(cli.json);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"rate (last)\"")); /* the metric, not the parameter */
    ck_assert_ptr_nonnull(strstr(cli.out, "\"rate\""));
    EXPECT_EXIT(0, "runs", "compare", "run-1", "run-2", "--all");
    EXPECT_OUT("loss");
    EXPECT_REFUSED(4, "none", "runs", "compare", "run-1", "none");
    EXPECT_REFUSED(2, "usage", "runs", "compare");
}

END_TEST

START_TEST(logs_are_what_the_tasks_wrote)
{
    EXPECT(200, "POST " API "/tasks/" TASK "/log?offset=0\n\none\ntwo\nthree\n");
    EXPECT_EXIT(0, "logs", JOB);
    EXPECT_OUT("one\n");
    EXPECT_OUT("three\n");
    EXPECT_EXIT(0, "logs", "j", "-n", "1", "--raw");
    ck_assert_str_eq(cli.out, "three\n");
    EXPECT_REFUSED(4, "none", "logs", "none");
}

END_TEST

WEIR_TEST_MAIN_WITH("get", set_up, cli_close, every_noun_is_listed_in_every_form,
                    a_table_cuts_identifiers_and_wide_does_not,
                    a_table_says_how_long_ago_and_wide_the_time,
                    columns_are_aligned_and_no_terminal_is_steered,
                    filters_and_limits_are_the_lists,
                    one_is_found_by_name_and_by_a_part_of_its_identifier,
                    describe_shows_the_state_first_and_what_belongs_to_it,
                    a_camera_goes_by_its_name_or_where_several_have_it_by_its_id,
                    explain_says_what_members_mean_and_why_a_job_waits,
                    a_kind_is_explained_by_its_noun_or_alone_if_only_one_has_the_name,
                    runs_are_compared, logs_are_what_the_tasks_wrote)
