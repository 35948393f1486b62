/* Rules of alerts as flags change them, and what is shown of an alert. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"

#define ALERT "01a212c5-0000-7000-8000-000000000001"

static void set_up(void)
{
    cli_open();
    EXPECT_EXIT(0, "alert", "receiver", "set", "hook", "--kind", "webhook", "--set",
                "url=http://127.0.0.1:1/x");
    EXPECT_EXIT(0, "alert", "receiver", "set", "boss", "--kind", "webhook", "--set",
                "url=http://127.0.0.1:1/y");
    EXPECT_EXIT(0, "alert", "rule", "set", "doors", "--kind", "job_failed", "--kind", "node_lost",
                "--tell", "hook", "--escalate-after", "30m", "--escalate-to", "boss", "--do",
                "retrain:pipeline=learn");
}

/** The stored rule's member as JSON text. */
static const char *rule_has(const char *member)
{
    static char text[512];
    EXPECT_EXIT(0, "alert", "rule", "get", "doors", "-ojson");
    char *dumped = json_dumps(json_object_get(cli.json, member), JSON_ENCODE_ANY | JSON_COMPACT);
    (void)snprintf(text, sizeof text, "%s", dumped != NULL ? dumped : "");
    free(dumped);
    return text;
}

START_TEST(a_rule_that_cannot_be_read_stays_as_it_is)
{
    cli.script_path = "/api/v1/alert-rules/doors";
    cli.script_method = "GET";
    cli.script_status = 500;
    cli.script_body = "{\"error\":{\"status\":\"IO\",\"message\":\"the disk is gone\"}}";
    ck_assert_int_ne(WEIR("alert", "rule", "set", "doors", "--hold", "5m"), 0);
    ck_assert_ptr_nonnull(strstr(cli.err, "the disk is gone"));
    cli.script_path = NULL;
    ck_assert_str_eq(rule_has("kinds"), "[\"job_failed\",\"node_lost\"]");
    ck_assert_str_eq(rule_has("hold_ms"), "0");
}

END_TEST

START_TEST(an_escalation_ends_with_a_time_of_0)
{
    EXPECT_EXIT(0, "alert", "rule", "set", "doors", "--escalate-after", "0");
    ck_assert_str_eq(rule_has("escalate_to"), "null");
    ck_assert_str_eq(rule_has("escalate_ms"), "0");
    EXPECT_REFUSED(2, "belong together", "alert", "rule", "set", "doors", "--escalate-to", "boss");
}

END_TEST

START_TEST(an_empty_text_takes_a_list_back)
{
    EXPECT_EXIT(0, "alert", "rule", "set", "doors", "--kind", "", "--tell", "", "--do", "");
    ck_assert_str_eq(rule_has("kinds"), "null");
    ck_assert_str_eq(rule_has("receivers"), "[]");
    ck_assert_str_eq(rule_has("actions"), "[]");
    ck_assert_str_eq(rule_has("escalate_to"), "[\"boss\"]");
}

END_TEST

START_TEST(an_alert_is_shown_with_its_rules_actions_and_messages)
{
    cli.script_path = "/api/v1/alerts/" ALERT;
    cli.script_status = 200;
    cli.script_body =
        "{\"id\":\"" ALERT "\",\"status\":\"raised\",\"kind\":\"drift\",\"firings\":["
        "{\"rule\":\"doors\",\"state\":\"told\",\"told_ms\":\"2026-11-25T10:00:00.000Z\","
        "\"actions\":[{\"kind\":\"retrain\",\"state\":\"failed\",\"message\":\"no data\"}]}],"
        "\"deliveries\":[{\"receiver\":\"hook\",\"rule\":\"doors\",\"event\":\"raised\","
        "\"state\":\"dead\",\"attempts\":15,\"error\":\"refused\"}]}";
    EXPECT_EXIT(0, "describe", "alert", ALERT);
    EXPECT_OUT("\nrules\nRULE   STATE  TOLD");
    EXPECT_OUT("\nactions\nRULE   ACTION   STATE   WHAT\ndoors  retrain  failed  no data\n");
    EXPECT_OUT("\nmessages\nRECEIVER  RULE   EVENT   STATE  TRIES  DONE  ERROR\nhook      doors  "
               "raised  dead   15     -     refused\n");
    ck_assert_ptr_null(strstr(cli.out, "TRIGGER"));
}

END_TEST

START_TEST(a_silence_is_ended_by_the_end_of_its_identifier_as_tables_show_it)
{
    EXPECT_EXIT(0, "alert", "silence", "--kind", "node_lost", "--note", "works", "-ojson");
    char id[64], end[16];
    (void)snprintf(id, sizeof id, "%s", json_string_value(json_object_get(cli.json, "id")));
    (void)snprintf(end, sizeof end, "%s", id + strlen(id) - 8);
    EXPECT_EXIT(0, "get", "alert-silences");
    EXPECT_OUT(end);
    EXPECT_REFUSED(4, "`weir get alert-silences` lists them", "alert", "unsilence", "ffffffff");
    EXPECT_EXIT(0, "alert", "unsilence", end);
    EXPECT_EXIT(0, "get", "alert-silences", "-ojson");
    const json_t *silence = json_array_get(json_object_get(cli.json, "items"), 0);
    ck_assert(json_is_string(json_object_get(silence, "ended_by")));
}

END_TEST

WEIR_TEST_MAIN_WITH("cli_alert", set_up, cli_close, a_rule_that_cannot_be_read_stays_as_it_is,
                    an_escalation_ends_with_a_time_of_0, an_empty_text_takes_a_list_back,
                    an_alert_is_shown_with_its_rules_actions_and_messages,
                    a_silence_is_ended_by_the_end_of_its_identifier_as_tables_show_it)
