/* Replay: the same policies decide the same, byte for byte; others decide otherwise and say why. And what
 * a snapshot shows at each moment of its span. */
#include "capture/capture_fixture.h"

#include "base/clock.h"
#include "base/rng.h"
#include "capture/replay.h"
#include "capture/state.h"

#include <math.h>
#include <stdarg.h>

static json_t *replay_with(const struct weir_snapshot *snapshot,
                           const struct weir_replay_rules *rules)
{
    json_t *out;
    struct weir_snapshot_file *file = capture_open(snapshot);
    weir_status status = weir_snapshot_replay(file, rules, &fixture.arena, &out, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    weir_snapshot_close(file);
    return out;
}

/* By the link's chain alone. */
static json_t *replay_by(const struct weir_snapshot *snapshot, const char *policy)
{
    struct weir_ion_event event = applied(&fixture.arena, policy, "{manual: true}", 1);
    return replay_with(snapshot, &(struct weir_replay_rules){.doc = event.doc});
}

static int64_t number(const json_t *json, const char *of, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(json, of), name));
}

static const char *text_at(const json_t *json, const char *of, size_t i, const char *name,
                           const char *member)
{
    const json_t *one = json_object_get(json_array_get(json_object_get(json, of), i), name);
    return json_string_value(member != NULL ? json_object_get(one, member) : one);
}

START_TEST(the_same_policies_decide_the_same_byte_for_byte)
{
    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    const struct weir_replay_rules none = {0};
    json_t *once = replay_with(&made, &none), *again = replay_with(&made, &none);
    json_t *by_document =
        replay_by(&made, "[{kind: rate-limit, min_interval_s: 7200}, {kind: manual}]");
    ck_assert(json_is_true(json_object_get(once, "is_same")));
    ck_assert_int_eq(number(once, "policies", "n"), 7);
    ck_assert_int_eq(number(once, "policies", "n_same"), 7);
    ck_assert_int_eq(number(once, "policies", "n_differ"), 0);
    char *x = weir_json_text(once, &fixture.arena), *y = weir_json_text(again, &fixture.arena);
    ck_assert_str_eq(x, y);
    ck_assert(json_is_true(json_object_get(by_document, "is_same")));
    ck_assert_int_eq(number(by_document, "policies", "n_same"), 7);
    ck_assert_uint_eq(json_array_size(json_object_get(by_document, "candidates")), 2);
    json_decref(once);
    json_decref(again);
    json_decref(by_document);
}

END_TEST

START_TEST(another_threshold_gives_another_verdict_and_says_which)
{
    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    json_t *other = replay_by(&made, "[{kind: rate-limit, min_interval_s: 60}, {kind: manual}]");
    const json_t *decisions = json_object_get(json_object_get(other, "policies"), "decisions");
    size_t i, n_found = 0;
    json_t *one;
    ck_assert(!json_is_true(json_object_get(other, "is_same")));
    json_array_foreach(decisions, i, one)
    {
        const char *policy = json_string_value(json_object_get(one, "policy"));
        const char *verdict =
            json_string_value(json_object_get(json_object_get(one, "recorded"), "verdict"));
        if (strcmp(policy, "rate-limit") == 0 && strcmp(verdict, "wait") == 0) {
            n_found++;
            ck_assert(json_is_true(json_object_get(one, "differs")));
            ck_assert_str_eq(
                json_string_value(json_object_get(json_object_get(one, "replayed"), "verdict")),
                "pass");
            ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(one, "why")),
                                         "min_interval_s is 60, it was 7200"));
        }
    }
    ck_assert_uint_eq(n_found, 1);
    /* In the end bob approved the one and rejected the other all the same. */
    ck_assert_str_eq(text_at(other, "candidates", 0, "replayed", "verdict"), "promote");
    ck_assert_str_eq(text_at(other, "candidates", 1, "replayed", "verdict"), "reject");
    json_decref(other);
}

END_TEST

START_TEST(another_chain_leads_each_version_elsewhere)
{
    static const struct {
        const char *policy, *of_2, *of_3;
    } chains[] = {
        {"always-reject", "reject", "reject"},
        {"[{kind: rate-limit, min_interval_s: 7200}]", "promote", "promote"},
        {"[{kind: manual, approvals: 2}]", "wait", "reject"},
        {"[{kind: manual}, {kind: always-reject}]", "reject", "reject"},
        {"[{kind: manual}, {kind: manual, approvals: 1}]", "wait", "reject"},
    };

    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(chains); i++) {
        json_t *other = replay_by(&made, chains[i].policy);
        ck_assert_uint_eq(json_array_size(json_object_get(other, "candidates")), 2);
        ck_assert_str_eq(text_at(other, "candidates", 0, "replayed", "verdict"), chains[i].of_2);
        ck_assert_str_eq(text_at(other, "candidates", 1, "replayed", "verdict"), chains[i].of_3);
        ck_assert(!json_is_true(json_object_get(other, "is_same")));
        json_decref(other);
    }
}

END_TEST

/* ---- drift ----------------------------------------------------------------------------------- */

static weir_status add_values(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_rng rng;
    struct weir_histogram histogram;
    double edges[20];
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(edges); i++) {
        edges[i] = 0.3 + 0.02 * (double)i;
    }
    weir_rng_init(&rng, 7, 0);
    WEIR_TRY(weir_histogram_init(&histogram, edges, WEIR_ARRAY_LEN(edges)));
    for (int i = 0; i < 2000; i++) {
        weir_histogram_add(&histogram, 0.5 + 0.08 * weir_rng_normal(&rng));
    }
    char *text = weir_histogram_to_text(&histogram, &fixture.arena);
    const struct weir_model_version version = {
        .id = "t-v2", .baseline = weir_arena_printf(&fixture.arena, "{\"brightness\":%s}", text)};
    WEIR_TRY(
        weir_txn_update(txn, &weir_model_version_resource, &version, WEIR_FIELDS("baseline"), err));
    for (int i = 0; i < 1000; i++) {
        double moved = i < 500 ? 0 : 0.08;
        const struct weir_decision decision = {.id = weir_arena_printf(&fixture.arena, "v%d", i),
                                               .ion = "x",
                                               .pipeline = "p",
                                               .replica = "r",
                                               .camera = "c",
                                               .frame = i,
                                               .time_ms = BEGIN_MS + 5 * HOUR_MS + i * 2000,
                                               .verdict = "label",
                                               .model_version = 2,
                                               .brightness =
                                                   0.5 + moved + 0.08 * weir_rng_normal(&rng)};
        size_t n;
        WEIR_TRY(weir_decisions_store(txn, &decision, 1, NULL, 0, &n, err));
    }
    return WEIR_OK;
}

static const json_t *signal_of(const json_t *replay, const char *name)
{
    const json_t *signals = json_object_get(json_object_get(replay, "drift"), "signals");
    size_t i;
    json_t *one;
    json_array_foreach(signals, i, one)
    {
        if (json_integer_value(json_object_get(one, "model_version")) == 2 &&
            strcmp(json_string_value(json_object_get(one, "signal")), name) == 0) {
            return one;
        }
    }
    ck_abort_msg("no signal %s", name);
    return NULL;
}

START_TEST(a_detector_sees_in_the_decisions_what_it_would_have_seen_live)
{
    capture_history();
    fixture_write(&fixture, add_values, NULL);
    struct weir_snapshot made = capture_make("monday", false);
    const struct weir_replay_rules as_in_service = {.drift = {.window = 100}};
    const struct weir_replay_rules blind = {.drift = {.window = 100, .min_effect = 100}};
    json_t *found = replay_with(&made, &as_in_service), *missed = replay_with(&made, &blind);
    const json_t *signal = signal_of(found, "brightness");
    ck_assert_int_eq(json_integer_value(json_object_get(signal, "n_values")), 1000);
    ck_assert_int_eq(json_integer_value(json_object_get(signal, "n_windows")), 10);
    const json_t *windows = json_object_get(signal, "windows");
    for (size_t i = 0; i < 10; i++) { /* a shift of one deviation, from the middle on */
        ck_assert_int_eq(json_is_true(json_object_get(json_array_get(windows, i), "drifted")),
                         i >= 5);
    }
    ck_assert(json_is_string(json_object_get(signal, "replayed_alarm")));
    ck_assert(json_is_null(json_object_get(signal, "recorded_alarm")));
    ck_assert(json_is_true(json_object_get(signal, "differs")));
    ck_assert(json_is_null(json_object_get(signal_of(missed, "brightness"), "replayed_alarm")));
    ck_assert(!json_is_true(json_object_get(signal_of(missed, "brightness"), "differs")));
    /* What no window confirms has added up all the same, as in service. */
    const struct weir_replay_rules deaf = {
        .drift = {.window = 100, .confirm_k = 32, .confirm_n = 32}};
    json_t *slow = replay_with(&made, &deaf);
    signal = signal_of(slow, "brightness");
    windows = json_object_get(signal, "windows");
    ck_assert(json_is_string(json_object_get(signal, "replayed_alarm")));
    ck_assert(json_is_false(json_object_get(json_array_get(windows, 4), "alarm")));
    ck_assert(json_is_true(json_object_get(json_array_get(windows, 7), "alarm")));
    ck_assert(json_is_false(json_object_get(json_array_get(windows, 7), "confirmed")));
    json_decref(slow);
    json_decref(found);
    json_decref(missed);
}

END_TEST

/* ---- the slider ------------------------------------------------------------------------------ */

static json_t *state_at(const struct weir_snapshot *snapshot, int64_t time_ms)
{
    json_t *out;
    struct weir_snapshot_file *file = capture_open(snapshot);
    weir_status status = weir_snapshot_state(file, time_ms, &fixture.arena, &out, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    weir_snapshot_close(file);
    return out;
}

START_TEST(a_snapshot_shows_what_held_at_each_moment)
{
    static const struct {
        int half_hours;
        int64_t version, n_waiting, n_alerts, n_decisions;
    } moments[] = {{5, 1, 1, 0, 1}, {6, 1, 1, 1, 2},  {7, 1, 1, 1, 2},  {8, 2, 0, 1, 3},
                   {9, 2, 0, 1, 3}, {11, 2, 0, 0, 4}, {15, 2, 1, 0, 6}, {17, 2, 0, 0, 7}};

    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(moments); i++) {
        json_t *state = state_at(&made, BEGIN_MS + moments[i].half_hours * HOUR_MS / 2);
        const json_t *link = json_array_get(json_object_get(state, "links"), 0);
        ck_assert_str_eq(json_string_value(json_object_get(link, "id")), "t:p");
        ck_assert_int_eq(json_integer_value(json_object_get(link, "version")), moments[i].version);
        ck_assert_str_eq(json_string_value(json_object_get(link, "model")), "x.t");
        ck_assert_uint_eq(json_array_size(json_object_get(link, "waiting")),
                          (size_t)moments[i].n_waiting);
        ck_assert_uint_eq(json_array_size(json_object_get(state, "alerts")),
                          (size_t)moments[i].n_alerts);
        ck_assert_int_eq(number(state, "decisions", "n"), moments[i].n_decisions);
        ck_assert_int_eq(json_integer_value(json_object_get(state, "revision")), 2);
        ck_assert_uint_eq(json_array_size(json_object_get(state, "pipelines")), 2);
        json_decref(state);
    }
}

END_TEST

static weir_status decide_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;

    static const struct {
        int64_t version;
        const char *policy, *verdict;
        int64_t half_hours;
    } told[] = {{8, "canary", "wait", 10},
                {8, "canary", "rollback", 11},
                {9, "canary", "wait", 12},
                {9, "none", "rollback", 13}, /* its link went */
                {1, "none", "rollback", 17}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(told); i++) {
        const struct weir_policy_decision decision = {
            .id = weir_arena_printf(&fixture.arena, "x:%zu", 100 + i),
            .ion = "x",
            .link = "t:p",
            .candidate = "x:t:p:t-v3",
            .model_version = "t-v3",
            .version = told[i].version,
            .policy = (char *)told[i].policy,
            .inputs = "{}",
            .rule = "a rule",
            .verdict = (char *)told[i].verdict,
            .actor = "policy",
            .time_ms = BEGIN_MS + told[i].half_hours * HOUR_MS / 2};
        WEIR_TRY(weir_txn_insert(txn, &weir_policy_decision_resource, &decision, err));
    }
    return WEIR_OK;
}

START_TEST(a_rollback_of_what_was_only_tried_leaves_what_serves)
{
    static const int64_t versions[][2] = {{10, 2}, {11, 2}, {13, 2}, {16, 2}, {17, 1}};
    capture_history();
    fixture_write(&fixture, decide_in, NULL);
    struct weir_snapshot made = capture_make("monday", false);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(versions); i++) {
        json_t *state = state_at(&made, BEGIN_MS + versions[i][0] * HOUR_MS / 2);
        const json_t *link = json_array_get(json_object_get(state, "links"), 0);
        ck_assert_int_eq(json_integer_value(json_object_get(link, "version")), versions[i][1]);
        json_decref(state);
    }
}

END_TEST

static weir_status raise_long_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_alert alert = {
        .id = "a2", .key = "k2", .kind = "drift", .subject = "ion/x", .message = "It drifts"};
    WEIR_TRY(weir_alert_raise(txn, &alert, BEGIN_MS + 6 * HOUR_MS, NULL, err));
    return weir_txn_exec(txn, "UPDATE alerts SET data = :data WHERE id = 'a2'",
                         WEIR_BINDS(WEIR_BIND_TEXT("data", context)), NULL, err);
}

START_TEST(a_record_that_is_too_long_to_be_shown_is_an_error_where_it_is_shown)
{
    json_t *out;

    enum { LEN = 140000 }; /* longer than the 128 KB of a record that is shown */

    char *data = weir_arena_alloc(&fixture.arena, LEN + 1);
    memset(data, '1', LEN);
    data[0] = data[LEN - 1] = '"';
    capture_history();
    fixture_write(&fixture, raise_long_in, data);
    struct weir_snapshot made = capture_make("monday", false);
    json_decref(state_at(&made, BEGIN_MS + 5 * HOUR_MS));
    struct weir_snapshot_file *file = capture_open(&made);
    ck_assert_int_eq(
        weir_snapshot_state(file, BEGIN_MS + 7 * HOUR_MS, &fixture.arena, &out, &fixture.err),
        WEIR_ERR_LIMIT);
    weir_snapshot_close(file);
}

END_TEST

START_TEST(the_course_counts_what_the_moments_at_its_ends_differ_by)
{
    json_t *course, *part;
    size_t i;
    int64_t n_before = 0;
    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    struct weir_snapshot_file *file = capture_open(&made);
    ck_assert_int_eq(weir_snapshot_course(file, 8, &fixture.arena, &course, &fixture.err), WEIR_OK);
    weir_snapshot_close(file);
    ck_assert_uint_eq(json_array_size(course), 8);
    json_array_foreach(course, i, part)
    {
        int64_t end_ms;
        ck_assert_int_eq(
            weir_time_parse(json_string_value(json_object_get(part, "time_ms")), &end_ms), WEIR_OK);
        json_t *state = state_at(&made, end_ms);
        ck_assert_int_eq(json_integer_value(json_object_get(part, "n")),
                         number(state, "decisions", "n") - n_before);
        n_before = number(state, "decisions", "n");
        json_decref(state);
    }
    ck_assert_int_gt(n_before, 0);
    json_decref(course);
}

END_TEST

START_TEST(a_moment_outside_of_the_span_is_refused)
{
    json_t *out;
    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    struct weir_snapshot_file *file = capture_open(&made);
    ck_assert_int_eq(weir_snapshot_state(file, BEGIN_MS, &fixture.arena, &out, &fixture.err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(
        weir_snapshot_state(file, BEGIN_MS + 10 * HOUR_MS, &fixture.arena, &out, &fixture.err),
        WEIR_ERR_INVALID);
    weir_snapshot_close(file);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_same_policies_decide_the_same_byte_for_byte,
        another_threshold_gives_another_verdict_and_says_which,
        another_chain_leads_each_version_elsewhere,
        a_detector_sees_in_the_decisions_what_it_would_have_seen_live,
        a_snapshot_shows_what_held_at_each_moment,
        a_rollback_of_what_was_only_tried_leaves_what_serves,
        a_record_that_is_too_long_to_be_shown_is_an_error_where_it_is_shown,
        the_course_counts_what_the_moments_at_its_ends_differ_by,
        a_moment_outside_of_the_span_is_refused,
    };
    return weir_test_run(weir_test_suite_with("replay", capture_set_up, capture_tear_down, tests,
                                              WEIR_ARRAY_LEN(tests)));
}
