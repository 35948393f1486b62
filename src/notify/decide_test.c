#include "notify/decide.h"

#include "base/kind_laws.h"
#include "base/test_main.h"
#include "notify/action.h"
#include "notify/match.h"
#include "notify/queue.h"
#include "notify/receiver.h"

static struct weir_alert alert(const char *state)
{
    return (struct weir_alert){.id = "a",
                               .key = "drift:door",
                               .severity = "warning",
                               .kind = "drift",
                               .subject = "ion/door",
                               .message = "It drifts",
                               .state = (char *)state,
                               .raised_ms = 1000};
}

static const struct weir_alert_rule plain = {
    .name = "r", .group_by = "rule", .receivers = "[\"x\"]", .tells_end = true};

static struct weir_alert_firing firing(const char *state)
{
    return (struct weir_alert_firing){.id = "r/a",
                                      .rule = "r",
                                      .alert = "a",
                                      .subject = "ion/door",
                                      .state = (char *)state,
                                      .raised_ms = 1000};
}

START_TEST(registries_keep_the_laws)
{
    kind_laws_check(&weir_receiver_kinds);
    kind_laws_check(&weir_alert_actions);
}

END_TEST

START_TEST(a_star_stands_for_any_text)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {{"ion/door", "ion/door", true},
                {"ion/door", "ion/door2", false},
                {"ion/*", "ion/door", true},
                {"ion/*", "ion/", true},
                {"*door*", "ion/door-3", true},
                {"*a*b*c", "xxaybzzc", true},
                {"*a*b*c", "xxaybzzcd", false},
                {"*", "", true},
                {"", "", true},
                {"", "a", false},
                {"a*", "", false},
                {"*ab", "aab", true},
                {"i?n", "ion", false}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_msg(notify_glob(rows[i].pattern, rows[i].text) == rows[i].fits, "%s %s",
                      rows[i].pattern, rows[i].text);
    }
}

END_TEST

/* The slow rule that the definition is: try every length for each star. */
static bool slow_glob(const char *pattern, const char *text)
{
    if (*pattern == '\0') {
        return *text == '\0';
    }
    if (*pattern != '*') {
        return *pattern == *text && slow_glob(pattern + 1, text + 1);
    }
    for (const char *rest = text;; rest++) {
        if (slow_glob(pattern + 1, rest)) {
            return true;
        }
        if (*rest == '\0') {
            return false;
        }
    }
}

START_TEST(patterns_match_as_the_plain_definition)
{
    unsigned seed = 7;
    for (int i = 0; i < 20000; i++) {
        char pattern[8] = "", text[9] = "";
        for (size_t k = 0; k < sizeof pattern - 1; k++) {
            seed = seed * 1664525 + 1013904223;
            pattern[k] = "ab**\0\0"[seed >> 16 & 3];
            text[k] = "ab\0"[(seed >> 20) % 3];
        }
        ck_assert_msg(notify_glob(pattern, text) == slow_glob(pattern, text), "seed 7: %s %s",
                      pattern, text);
    }
}

END_TEST

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static bool wants(const struct weir_alert_rule *rule, const struct weir_alert *one,
                  const char *project)
{
    const struct notify_lists lists = {rule->kinds, rule->subjects, rule->severities};
    const struct notify_match match = notify_match_read(&lists, &arena);
    return notify_rule_wants(rule, &match, one, project);
}

START_TEST(a_rule_wants_what_all_its_lists_have)
{
    struct weir_alert_rule rule = plain;
    const struct weir_alert drift = alert("open");
    ck_assert(wants(&rule, &drift, NULL));
    rule.kinds = "[\"job_failed\",\"drift\"]";
    rule.subjects = "[\"ion/d*\"]";
    rule.severities = "[\"critical\",\"warning\"]";
    ck_assert(wants(&rule, &drift, "vision"));
    rule.severities = "[\"critical\"]";
    ck_assert(!wants(&rule, &drift, "vision"));
    rule.severities = NULL;
    rule.project = "speech";
    ck_assert(!wants(&rule, &drift, "vision"));
    ck_assert(!wants(&rule, &drift, NULL));
    ck_assert(wants(&rule, &drift, "speech"));
    rule.is_disabled = true;
    ck_assert(!wants(&rule, &drift, "speech"));
}

END_TEST

START_TEST(lists_of_a_match_are_checked)
{
    struct weir_error err;
    ck_assert_int_eq(notify_match_check(&(struct notify_lists){"[\"drift\"]", NULL, NULL}, &err),
                     WEIR_OK);
    ck_assert_int_eq(notify_match_check(&(struct notify_lists){"[\"drfit\"]", NULL, NULL}, &err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(notify_match_check(&(struct notify_lists){"[]", NULL, NULL}, &err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(notify_match_check(&(struct notify_lists){NULL, "[\"\"]", NULL}, &err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(notify_match_check(&(struct notify_lists){NULL, NULL, "[\"bad\"]"}, &err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(notify_match_check(&(struct notify_lists){NULL, NULL, "3"}, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

START_TEST(it_waits_for_its_hold_time_and_its_group)
{
    struct weir_alert_rule rule = plain;
    const struct weir_alert open = alert("open");
    const struct weir_alert_firing waiting = firing(WEIR_FIRING_WAITING);
    ck_assert_int_eq(notify_decide(&rule, &open, &waiting, 1000).deed, NOTIFY_TELL);
    rule.hold_ms = 500;
    struct notify_decision decision = notify_decide(&rule, &open, &waiting, 1499);
    ck_assert_int_eq(decision.deed, NOTIFY_NOTHING);
    ck_assert_int_eq(decision.due_ms, 1500);
    rule.group_ms = 100;
    decision = notify_decide(&rule, &open, &waiting, 1500);
    ck_assert_int_eq(decision.deed, NOTIFY_TELL);
    ck_assert_int_eq(decision.due_ms, 1600);
    /* a wall clock that was set back does not make it wait for a time that was */
    decision = notify_decide(&rule, &open, &waiting, 900);
    ck_assert_int_eq(decision.deed, NOTIFY_TELL);
    ck_assert_int_le(decision.due_ms, 900);
}

END_TEST

START_TEST(a_silence_holds_it_back_until_it_ends)
{
    struct weir_alert silenced = alert("open");
    const struct weir_alert_firing waiting = firing(WEIR_FIRING_WAITING);
    silenced.silenced_ms = 5000;
    struct notify_decision decision = notify_decide(&plain, &silenced, &waiting, 2000);
    ck_assert_int_eq(decision.deed, NOTIFY_NOTHING);
    ck_assert_int_eq(decision.due_ms, 5000);
    ck_assert_int_eq(notify_decide(&plain, &silenced, &waiting, 5000).deed, NOTIFY_TELL);
    struct weir_alert over = silenced;
    over.state = "resolved";
    ck_assert_int_eq(notify_decide(&plain, &over, &waiting, 2000).deed, NOTIFY_END);
}

END_TEST

START_TEST(who_does_not_acknowledge_is_passed_over_once)
{
    struct weir_alert_rule rule = plain;
    struct weir_alert_firing told = firing(WEIR_FIRING_TOLD);
    struct weir_alert open = alert("open");
    rule.escalate_ms = 600;
    told.told_ms = 2000;
    struct notify_decision decision = notify_decide(&rule, &open, &told, 2100);
    ck_assert_int_eq(decision.deed, NOTIFY_NOTHING);
    ck_assert_int_eq(decision.due_ms, 2600);
    ck_assert_int_eq(notify_decide(&rule, &open, &told, 2600).deed, NOTIFY_ESCALATE);
    open.state = "acknowledged";
    ck_assert_int_eq(notify_decide(&rule, &open, &told, 2600).deed, NOTIFY_NOTHING);
    open.state = "open";
    open.silenced_ms = 9000;
    ck_assert_int_eq(notify_decide(&rule, &open, &told, 2600).deed, NOTIFY_NOTHING);
    open.silenced_ms = 0;
    told.state = WEIR_FIRING_ESCALATED;
    told.escalated_ms = 2600;
    decision = notify_decide(&rule, &open, &told, 99999);
    ck_assert_int_eq(decision.deed, NOTIFY_NOTHING);
    ck_assert_int_eq(decision.due_ms, 0);
}

END_TEST

START_TEST(what_is_over_ends_and_a_short_one_is_not_lost)
{
    struct weir_alert_rule rule = plain;
    const struct weir_alert over = alert("resolved");
    const struct weir_alert_firing waiting = firing(WEIR_FIRING_WAITING);
    const struct weir_alert_firing told = firing(WEIR_FIRING_TOLD);
    const struct weir_alert_firing ended = firing(WEIR_FIRING_OVER);
    ck_assert_int_eq(notify_decide(&rule, &over, &waiting, 2000).deed, NOTIFY_TELL_END);
    ck_assert_int_eq(notify_decide(&rule, &over, &told, 2000).deed, NOTIFY_END);
    ck_assert_int_eq(notify_decide(&rule, &over, &ended, 2000).deed, NOTIFY_NOTHING);
    rule.hold_ms = 10;
    ck_assert_int_eq(notify_decide(&rule, &over, &waiting, 2000).deed, NOTIFY_END);
    const struct weir_alert open = alert("open");
    ck_assert_int_eq(notify_decide(NULL, &open, &told, 2000).deed, NOTIFY_END);
}

END_TEST

START_TEST(a_sandbox_tells_nobody)
{
    struct weir_alert open = alert("open"), over = alert("resolved");
    const struct weir_alert_firing waiting = firing(WEIR_FIRING_WAITING);
    open.is_sandbox = true;
    over.is_sandbox = true;
    ck_assert_int_eq(notify_decide(&plain, &open, &waiting, 2000).deed, NOTIFY_NOTHING);
    ck_assert_int_eq(notify_decide(&plain, &over, &waiting, 2000).deed, NOTIFY_END);
}

END_TEST

START_TEST(tries_come_less_and_less_often)
{
    ck_assert_int_eq(notify_retry_ms(1), 1000);
    ck_assert_int_eq(notify_retry_ms(2), 2000);
    ck_assert_int_eq(notify_retry_ms(4), 8000);
    ck_assert_int_eq(notify_retry_ms(10), 512000);
    ck_assert_int_eq(notify_retry_ms(11), NOTIFY_RETRY_MAX_MS);
    ck_assert_int_eq(notify_retry_ms(1000), NOTIFY_RETRY_MAX_MS);
}

END_TEST

START_TEST(a_rule_acts_again_only_after_its_interval)
{
    struct weir_alert_rule rule = plain;
    rule.action_interval_ms = 1000;
    ck_assert(notify_may_act(&rule, 0, 5));
    ck_assert(!notify_may_act(&rule, 5000, 5999));
    ck_assert(notify_may_act(&rule, 5000, 6000));
    ck_assert(notify_may_act(&rule, 5000, 4000));
}

END_TEST

WEIR_TEST_MAIN_WITH("decide", set_up, tear_down, registries_keep_the_laws,
                    a_star_stands_for_any_text, patterns_match_as_the_plain_definition,
                    a_rule_wants_what_all_its_lists_have, lists_of_a_match_are_checked,
                    it_waits_for_its_hold_time_and_its_group, a_silence_holds_it_back_until_it_ends,
                    who_does_not_acknowledge_is_passed_over_once,
                    what_is_over_ends_and_a_short_one_is_not_lost, a_sandbox_tells_nobody,
                    tries_come_less_and_less_often, a_rule_acts_again_only_after_its_interval)
