/* A candidate's way through the chain of its link: approvals, times, gates, limits. */
#include "ion/ion_fixture.h"

#include <inttypes.h>

static struct weir_arena arena;
static struct weir_ion_state state;
static struct weir_ion_actions actions;
static struct weir_error err;
static int64_t now_ms;

/** 5 January 1970, a Monday, 12:00 UTC. */
#define NOON_MS (4 * INT64_C(86400000) + 12 * INT64_C(3600000))

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    weir_ion_state_new("x", &arena, &state);
    now_ms = NOON_MS;
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static weir_status step(struct weir_ion_event event)
{
    actions = (struct weir_ion_actions){0};
    return weir_ion_step(&state, &event, now_ms, &arena, &actions, &err);
}

static void must(struct weir_ion_event event)
{
    weir_status status = step(event);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

static void refused(struct weir_ion_event event, weir_status status, const char *words)
{
    ck_assert_int_eq(step(event), status);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
    ck_assert_uint_eq(actions.n, 0);
}

static void must_apply(const char *policy)
{
    must(applied(&arena, policy, "{}", 1));
}

static void tick_after(int64_t seconds)
{
    now_ms += seconds * 1000;
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_TICK});
}

/** A review of a version, or of the newest, by somebody in one role. */
static struct weir_ion_event by(enum weir_ion_event_type type, int64_t version, const char *who,
                                const char *role)
{
    const char **roles = WEIR_ARENA_ARRAY(&arena, 2, const char *);
    roles[0] = role;
    return (struct weir_ion_event){.type = type, .version = version, .actor = who, .roles = roles};
}

static struct weir_ion_event approve(const char *who)
{
    return by(WEIR_ION_EVENT_APPROVE, 0, who, "approver");
}

static const struct weir_ion_candidate *candidate_of(int64_t version)
{
    for (size_t i = 0; i < state.n_candidates; i++) {
        if (state.candidates[i].version == version) {
            return &state.candidates[i];
        }
    }
    ck_abort_msg("no version %d", (int)version);
    return NULL;
}

static void is_in(int64_t version, const char *wanted, const char *why)
{
    const struct weir_ion_candidate *candidate = candidate_of(version);
    ck_assert_str_eq(candidate->state, wanted);
    ck_assert_str_eq(candidate->waits_why != NULL ? candidate->waits_why : "", why);
}

static int64_t serving_version(void)
{
    const struct weir_ion_candidate *candidate = serving(&state, "t:p");
    return candidate != NULL ? candidate->version : 0;
}

/** The decisions of the last event: "policy verdict actor", in their order. */
static char *decisions(void)
{
    char *text = "";
    for (size_t i = 0; i < actions.n; i++) {
        const struct weir_policy_decision *one = &actions.items[i].decision;
        if (actions.items[i].type == WEIR_ION_ACTION_DECIDED) {
            text = weir_arena_printf(&arena, "%s%s%" PRId64 " %s %s %s", text,
                                     text[0] != '\0' ? ", " : "", one->position, one->policy,
                                     one->verdict, one->actor);
        }
    }
    return text;
}

START_TEST(two_different_people_must_approve)
{
    must_apply("[{kind: manual, approvals: 2}, always-update]");
    must(model(&arena, "t", 1));
    is_in(1, "PENDING_REVIEW", "manual: 2 people must approve it");
    must(approve("ann"));
    is_in(1, "PENDING_REVIEW", "manual: 1 of 2 approvals, by ann");
    ck_assert_str_eq(decisions(), "0 manual wait ann");
    refused(approve("ann"), WEIR_ERR_CONFLICT, "ann has approved version 1 already: 2 different");
    must(approve("bob"));
    ck_assert_str_eq(decisions(), "0 manual pass bob, 1 always-update promote policy");
    ck_assert_int_eq(serving_version(), 1);
    is_in(1, "SERVING", "");
}

END_TEST

START_TEST(roles_that_are_named_count_and_no_others)
{
    must_apply("{kind: manual, roles: [approver, admin]}");
    must(model(&arena, "t", 1));
    refused(by(WEIR_ION_EVENT_APPROVE, 0, "olga", "operator"), WEIR_ERR_DENIED,
            "from these roles only: approver, admin; olga has operator here");
    refused((struct weir_ion_event){.type = WEIR_ION_EVENT_APPROVE, .actor = "olga"},
            WEIR_ERR_DENIED, "olga has no role here");
    must(approve("ann"));
    ck_assert_int_eq(serving_version(), 1);
}

END_TEST

START_TEST(with_four_eyes_who_made_a_version_cannot_approve_it)
{
    struct weir_ion_event trigger = {
        .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"};
    must_apply("{kind: manual, four_eyes: true}");
    must(trigger);
    must(model(&arena, "t", 1));
    refused(approve("ann"), WEIR_ERR_DENIED, "ann made version 1 (triggered its training");
    must(approve("bob"));
    ck_assert_int_eq(serving_version(), 1);
    /* Triggers that are folded into one training count all. */
    trigger.actor = "bob";
    must(trigger);
    trigger.actor = "cat";
    must(trigger);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_FINISHED, .pipeline = "t", .training = 1});
    must(model(&arena, "t", 2));
    ck_assert_str_eq(candidate_of(2)->made_by, "bob, cat");
    refused(approve("cat"), WEIR_ERR_DENIED, "cat made version 2");
    must(approve("ann"));
}

END_TEST

START_TEST(a_review_without_an_answer_ends_as_its_policy_says)
{
    must_apply("[{kind: manual, timeout_s: 60, on_timeout: approve}]");
    must(model(&arena, "t", 1));
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), now_ms + 60000);
    tick_after(59);
    ck_assert_uint_eq(actions.n, 0);
    tick_after(1);
    ck_assert_str_eq(decisions(), "0 manual promote policy");
    must_apply("[{kind: manual, timeout_s: 60}]");
    must(model(&arena, "t", 2));
    tick_after(60);
    ck_assert_str_eq(decisions(), "0 manual reject policy");
    ck_assert_str_eq(candidate_of(2)->state, "REJECTED");
    ck_assert_int_eq(serving_version(), 1);
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), INT64_MAX);
}

END_TEST

START_TEST(a_rate_limit_lets_the_newest_through_when_its_time_has_come)
{
    must_apply("[always-update, {kind: rate-limit, min_interval_s: 600}]");
    must(model(&arena, "t", 1));
    ck_assert_int_eq(serving_version(), 1);
    now_ms += 1000;
    must(model(&arena, "t", 2));
    is_in(2, "WAITING", "rate-limit: another version began to serve less than 600 s ago");
    now_ms += 1000;
    must(model(&arena, "t", 3));
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), NOON_MS + 600000);
    tick_after(597);
    ck_assert_uint_eq(actions.n, 0);
    tick_after(1);
    ck_assert_int_eq(serving_version(), 3);
    ck_assert_str_eq(decisions(), "1 rate-limit promote policy, 1 rate-limit skip policy");
    tick_after(0);
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

START_TEST(an_approved_version_waits_for_the_end_of_a_freeze)
{
    /* It came before the freeze, and is approved within it. */
    must_apply("[{kind: freeze-window, from: '13:00', to: '14:00'}, manual]");
    must(model(&arena, "t", 1));
    ck_assert_str_eq(decisions(), "0 freeze-window pass policy, 1 manual wait policy");
    now_ms += 90 * 60000;
    must(approve("ann"));
    ck_assert_str_eq(decisions(), "1 manual pass ann, 0 freeze-window wait policy");
    is_in(1, "APPROVED", "freeze-window: nothing is promoted now");
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), NOON_MS + 7200000);
    tick_after(30 * 60);
    ck_assert_str_eq(decisions(), "0 freeze-window promote policy");
    ck_assert_int_eq(serving_version(), 1);
}

END_TEST

START_TEST(a_version_that_waits_for_a_time_can_be_rejected_by_its_number)
{
    must_apply("[{kind: freeze-window, from: '11:00', to: '14:00'}]");
    must(model(&arena, "t", 1));
    is_in(1, "WAITING", "freeze-window: nothing is promoted now");
    refused(approve("ann"), WEIR_ERR_CONFLICT, "nothing waits for review");
    refused(by(WEIR_ION_EVENT_REJECT, 0, "ann", "approver"), WEIR_ERR_CONFLICT, "nothing waits");
    must(by(WEIR_ION_EVENT_REJECT, 1, "ann", "approver"));
    ck_assert_str_eq(decisions(), "0 freeze-window reject ann");
    ck_assert_str_eq(candidate_of(1)->state, "REJECTED");
    tick_after(7200);
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

START_TEST(a_version_expires_wherever_it_waits)
{
    must_apply("[manual, {kind: expiry, max_age_s: 100}]");
    must(model(&arena, "t", 1));
    ck_assert_int_eq(weir_ion_next_tick_ms(&state, now_ms), now_ms + 100000);
    tick_after(99);
    ck_assert_uint_eq(actions.n, 0);
    tick_after(1);
    ck_assert_str_eq(decisions(), "1 expiry skip policy");
    ck_assert_str_eq(candidate_of(1)->state, "REJECTED");
    must(model(&arena, "t", 2));
    must(approve("ann"));
    ck_assert_str_eq(decisions(), "0 manual pass ann, 1 expiry promote policy");
}

END_TEST

START_TEST(a_model_is_set_by_hand_whatever_the_policies_say)
{
    struct weir_ion_event set = model(&arena, "t", 1);
    must_apply("always-reject");
    must(model(&arena, "t", 1));
    set.type = WEIR_ION_EVENT_SET;
    set.actor = "ann";
    set.note = "until the fix is there";
    refused(set, WEIR_ERR_INVALID, "which link");
    set.link = "t:p";
    must(set);
    ck_assert_str_eq(decisions(), "0 none set ann");
    ck_assert_int_eq(serving_version(), 1);
    refused(set, WEIR_ERR_CONFLICT, "serves on link t:p already");
    struct weir_ion_event next = model(&arena, "t", 2); /* It has not come to the link. */
    next.type = WEIR_ION_EVENT_SET;
    next.link = "t:p";
    must(next);
    ck_assert_int_eq(serving_version(), 2);
    must(model(&arena, "t", 2));
    ck_assert_uint_eq(actions.n, 0);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_ROLLBACK});
    ck_assert_int_eq(serving_version(), 1);
}

END_TEST

/** Training t to pipeline p, with a default, and whatever link is added. */
static void must_apply_default(const char *more)
{
    char *text, *yaml = weir_arena_printf(
                    &arena,
                    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: m},"
                    " {name: p, type: prediction, source: {kind: http}}],"
                    " links: [{from: t, to: p, policy: always-update, default: base@7}%s]}",
                    more);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    struct weir_ion_event other = model_of(&arena, "base", NULL, 7, "base-v7");
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    event.defaults = other.models;
    event.n_defaults = 1;
    must(event);
}

START_TEST(a_default_serves_until_a_version_has_passed)
{
    must_apply_default("");
    ck_assert_str_eq(decisions(), "0 none set policy");
    ck_assert_int_eq(serving_version(), 7);
    must(model(&arena, "t", 1)); /* Of another model: 1 is not older than 7. */
    ck_assert_int_eq(serving_version(), 1);
    must((struct weir_ion_event){.type = WEIR_ION_EVENT_ROLLBACK, .actor = "ann"});
    ck_assert_int_eq(serving_version(), 7);
}

END_TEST

START_TEST(a_default_comes_to_its_own_link_alone)
{
    must_apply_default("");
    must_apply_default(", {from: t, to: {deployment: d}, policy: always-update}");
    ck_assert_ptr_null(serving(&state, "t:deployment/d"));
    must(model(&arena, "t", 1));
    ck_assert_str_eq(serving(&state, "t:deployment/d")->model, "x.t");
}

END_TEST

START_TEST(another_chain_is_begun_at_its_head)
{
    must_apply("{kind: manual, approvals: 2}");
    must(model(&arena, "t", 1));
    must(model(&arena, "t", 2));
    must(approve("ann"));
    must_apply(
        "{kind: manual, approvals: 2, timeout_s: 5}"); /* Approvals were given to the other. */
    is_in(2, "PENDING_REVIEW", "manual: 2 people must approve it");
    must_apply("[always-update]");
    ck_assert_int_eq(serving_version(), 2);
    ck_assert_str_eq(decisions(), "0 always-update promote policy, 0 always-update skip policy");
    must_apply("always-reject");
    must(model(&arena, "t", 3));
    ck_assert_str_eq(decisions(), "0 always-reject reject policy");
    ck_assert_int_eq(serving_version(), 2);
}

END_TEST

WEIR_TEST_MAIN_WITH("ion_chain", set_up, tear_down, two_different_people_must_approve,
                    roles_that_are_named_count_and_no_others,
                    with_four_eyes_who_made_a_version_cannot_approve_it,
                    a_review_without_an_answer_ends_as_its_policy_says,
                    a_rate_limit_lets_the_newest_through_when_its_time_has_come,
                    an_approved_version_waits_for_the_end_of_a_freeze,
                    a_version_that_waits_for_a_time_can_be_rejected_by_its_number,
                    a_version_expires_wherever_it_waits,
                    a_model_is_set_by_hand_whatever_the_policies_say,
                    a_default_serves_until_a_version_has_passed,
                    a_default_comes_to_its_own_link_alone, another_chain_is_begun_at_its_head)
