#include "notify/notify_fixture.h"

#include "base/json.h"

static const char hook[] = "{\"url\":\"http://127.0.0.1:9/\",\"secret\":\"s\"}";

static void set_up_hooks(void)
{
    set_up();
    add_receiver("hook", "webhook", hook, NULL);
    add_receiver("boss", "webhook", hook, NULL);
    add_receiver("prom", "alertmanager", "{\"url\":\"http://127.0.0.1:9\"}", NULL);
}

static weir_status add_ion_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const char *const *ion = context;
    return weir_txn_exec(
        txn,
        "INSERT INTO ions (name, project, document, state, revision, list_revision, n_decisions,"
        " n_served, created_by, created_ms, updated_ms)"
        " VALUES (:name, :project, '{}', 'ACTIVE', 1, 0, 0, 0, 'ann', 1, 1)",
        WEIR_BINDS(WEIR_BIND_TEXT("name", ion[0]), WEIR_BIND_TEXT("project", ion[1])), NULL, err);
}

static void add_ion(const char *name, const char *project)
{
    const char *ion[] = {name, project};
    fixture_write(&fixture, add_ion_in, ion);
}

START_TEST(an_alert_is_told_once_and_its_end_once)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .tells_end = true});
    raise_alert("a1", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 1);
    raise_alert("a2", "node_lost", "node/a"); /* again: the same alert */
    ck_assert_uint_eq(look(), 0);
    resolve_alert("node_lost:node/a");
    ck_assert_uint_eq(look(), 1);
    ck_assert_str_eq(told(), "raised>hook resolved>hook");
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_firings WHERE state = 'over'"), 1);
    raise_alert("a3", "node_lost", "node/a"); /* a new one */
    ck_assert_uint_eq(look(), 1);
}

END_TEST

START_TEST(a_rule_that_tells_no_end_tells_none_but_to_those_that_must_know)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\",\"prom\"]"});
    raise_alert("a1", "node_lost", "node/a");
    (void)look();
    resolve_alert("node_lost:node/a");
    (void)look();
    ck_assert_str_eq(told(), "raised>hook raised>prom resolved>prom");
}

END_TEST

START_TEST(one_that_ends_before_its_hold_time_tells_nobody)
{
    add_rule((struct weir_alert_rule){
        .name = "r", .receivers = "[\"hook\"]", .tells_end = true, .hold_ms = 60000});
    raise_alert("a1", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 0);
    now_ms += 59999;
    ck_assert_uint_eq(look(), 0);
    resolve_alert("node_lost:node/a");
    ck_assert_uint_eq(look(), 0);
    raise_alert("a2", "node_lost", "node/a");
    now_ms += 60000;
    ck_assert_uint_eq(look(), 1);
}

END_TEST

START_TEST(one_that_comes_and_goes_between_two_looks_is_told)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .tells_end = true});
    raise_alert("a1", "node_lost", "node/a");
    resolve_alert("node_lost:node/a");
    ck_assert_uint_eq(look(), 2);
    ck_assert_str_eq(told(), "raised>hook resolved>hook");
}

END_TEST

START_TEST(one_that_was_over_before_there_was_a_rule_is_told_to_nobody)
{
    raise_alert("a1", "node_lost", "node/a");
    resolve_alert("node_lost:node/a");
    raise_alert("a2", "node_lost", "node/b");
    now_ms += 1;
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .tells_end = true});
    ck_assert_uint_eq(look(), 1);
    ck_assert_str_eq(told(), "raised>hook");
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_firings WHERE alert = 'a2'"), 1);
}

END_TEST

START_TEST(a_group_shares_a_message)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .group_ms = 5000});
    raise_alert("a1", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 0);
    now_ms += 4000;
    raise_alert("a2", "node_lost", "node/b");
    ck_assert_uint_eq(look(), 0);
    now_ms += 1000;
    ck_assert_uint_eq(look(), 1);
    ck_assert_int_eq(ask("SELECT json_array_length(message, '$.alerts') FROM alert_deliveries"), 2);
}

END_TEST

START_TEST(without_a_group_each_has_its_own)
{
    add_rule(
        (struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .group_by = "subject"});
    add_rule((struct weir_alert_rule){.name = "s", .receivers = "[\"boss\"]", .group_by = "none"});
    raise_alert("a1", "node_lost", "node/a");
    raise_alert("a2", "node_unhealthy", "node/a");
    raise_alert("a3", "node_lost", "node/b");
    ck_assert_uint_eq(look(), 5);
}

END_TEST

static weir_status begin_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_silence_begin(txn, context, now_ms, &fixture.arena, err);
}

static weir_status end_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_silence_end(txn, context, "bob", now_ms, &fixture.arena, err);
}

START_TEST(silenced_until_a_time)
{
    struct weir_alert_silence silence = {
        .subjects = "[\"node/a\"]", .until_ms = now_ms + 10000, .created_by = "ann"};
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .group_by = "none"});
    fixture_write(&fixture, begin_in, &silence);
    raise_alert("a1", "node_lost", "node/a");
    raise_alert("b1", "node_lost", "node/b");
    ck_assert_uint_eq(look(), 1);
    ck_assert_str_eq(ask_text("SELECT id FROM alerts WHERE silenced_ms > 0"), "a1");
    ck_assert_str_eq(ask_text("SELECT silence FROM alerts WHERE id = 'a1'"), silence.id);
    now_ms += 10000;
    ck_assert_uint_eq(look(), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts WHERE silenced_ms > 0"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_silences WHERE ended_ms > 0"), 1);
}

END_TEST

START_TEST(a_silence_that_is_ended_early_lets_go_at_once)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]"});
    raise_alert("a1", "node_lost", "node/a");
    struct weir_alert_silence silence = {
        .alert = "a1", .until_ms = now_ms + 10000, .created_by = "ann"};
    fixture_write(&fixture, begin_in, &silence);
    ck_assert_str_eq(silence.alert, "node_lost:node/a");
    ck_assert_uint_eq(look(), 0);
    fixture_write(&fixture, end_in, silence.id);
    ck_assert_uint_eq(look(), 1);
}

END_TEST

START_TEST(silences_are_checked)
{
    struct weir_alert_silence all = {.until_ms = now_ms + 1, .created_by = "ann"};
    struct weir_alert_silence past = {
        .kinds = "[\"drift\"]", .until_ms = now_ms, .created_by = "ann"};
    struct weir_alert_silence none = {.alert = "x", .until_ms = now_ms + 1, .created_by = "ann"};
    ck_assert_int_eq(weir_store_write(fixture.store, begin_in, &all, &fixture.err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_store_write(fixture.store, begin_in, &past, &fixture.err),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_store_write(fixture.store, begin_in, &none, &fixture.err),
                     WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(nobody_looks_so_others_are_told_once)
{
    add_rule((struct weir_alert_rule){.name = "r",
                                      .receivers = "[\"hook\"]",
                                      .tells_end = true,
                                      .escalate_ms = 60000,
                                      .escalate_to = "[\"boss\"]"});
    raise_alert("a1", "node_lost", "node/a");
    raise_alert("b1", "node_lost", "node/b");
    ck_assert_uint_eq(look(), 1);
    fixture_write(&fixture, acknowledge_in, "b1");
    now_ms += 60000;
    ck_assert_uint_eq(look(), 1);
    ck_assert_int_eq(ask("SELECT json_array_length(message, '$.alerts') FROM alert_deliveries"
                         " WHERE event = 'escalated'"),
                     1);
    now_ms += 600000;
    ck_assert_uint_eq(look(), 0);
    resolve_alert("node_lost:node/a");
    ck_assert_uint_eq(look(), 2);
    ck_assert_str_eq(told(), "raised>hook escalated>boss resolved>boss resolved>hook");
}

END_TEST

START_TEST(an_alertmanager_is_told_again_while_it_lasts)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"prom\",\"hook\"]"});
    raise_alert("a1", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 2);
    now_ms += 300000 - 1;
    ck_assert_uint_eq(look(), 0);
    now_ms += 1;
    ck_assert_uint_eq(look(), 1);
    now_ms += 300000;
    ck_assert_uint_eq(look(), 1);
    ck_assert_str_eq(told(), "raised>hook raised>prom repeated>prom repeated>prom");
}

END_TEST

START_TEST(a_rule_of_a_project_sees_its_alerts_alone)
{
    add_ion("door", "vision");
    add_ion("calls", "speech");
    add_rule((struct weir_alert_rule){
        .name = "v", .project = "vision", .receivers = "[\"hook\"]", .group_by = "none"});
    raise_alert("a1", "drift", "ion/door");
    raise_alert("a2", "drift", "ion/calls");
    raise_alert("a3", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 1);
    ck_assert_str_eq(ask_text("SELECT alert FROM alert_deliveries"), "a1");
    ck_assert_str_eq(ask_text("SELECT project FROM alert_firings"), "vision");
}

END_TEST

START_TEST(a_rule_sees_what_was_there_before_it)
{
    raise_alert("a1", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 0);
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]"});
    ck_assert_uint_eq(look(), 1);
}

END_TEST

START_TEST(rules_are_checked)
{
    add_receiver("own", "webhook", hook, "[\"speech\"]");
    ck_assert_int_eq(try_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"nobody\"]"}),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(try_rule((struct weir_alert_rule){
                         .name = "r", .project = "vision", .receivers = "[\"own\"]"}),
                     WEIR_ERR_DENIED);
    ck_assert_int_eq(try_rule((struct weir_alert_rule){
                         .name = "r", .project = "speech", .receivers = "[\"own\"]"}),
                     WEIR_OK);
    ck_assert_int_eq(try_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"own\"]"}),
                     WEIR_ERR_CONFLICT);
    ck_assert_int_eq(try_rule((struct weir_alert_rule){
                         .name = "s", .receivers = "[]", .actions = "[{\"kind\":\"reboot\"}]"}),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(
        try_rule((struct weir_alert_rule){.name = "s", .receivers = "[]", .escalate_ms = 1}),
        WEIR_ERR_INVALID);
    ck_assert_int_eq(
        try_rule((struct weir_alert_rule){.name = "s", .receivers = "[]", .group_by = "x"}),
        WEIR_ERR_INVALID);
    ck_assert_int_eq(
        try_rule((struct weir_alert_rule){.name = "s", .receivers = "[]", .hold_ms = -1}),
        WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_rule_acts_once_for_an_alert_and_not_too_often)
{
    add_ion("door", "vision");
    add_rule((struct weir_alert_rule){.name = "r",
                                      .receivers = "[]",
                                      .actions = "[{\"kind\":\"retrain\"}]",
                                      .action_interval_ms = 3600000});
    raise_alert("a1", "drift", "ion/door");
    (void)look();
    ck_assert_int_eq(n_acted, 1);
    raise_alert("a1", "drift", "ion/door");
    (void)look();
    resolve_alert("drift:ion/door");
    (void)look();
    raise_alert("a2", "drift", "ion/door");
    (void)look();
    ck_assert_int_eq(n_acted, 1);
    ck_assert_str_eq(
        ask_text(
            "SELECT json_extract(actions, '$[0].state') FROM alert_firings WHERE alert = 'a2'"),
        "skipped");
    resolve_alert("drift:ion/door");
    now_ms += 3600000;
    raise_alert("a3", "drift", "ion/door");
    (void)look();
    ck_assert_int_eq(n_acted, 2);
    raise_alert("n1", "node_lost", "node/a");
    (void)look();
    ck_assert_int_eq(n_acted, 2);
}

END_TEST

static weir_status delete_receiver_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_receiver_delete(txn, context, now_ms, &fixture.arena, err);
}

static weir_status delete_rule_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_rule_delete(txn, context, err);
}

START_TEST(what_is_deleted_tells_no_more)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .tells_end = true});
    raise_alert("a1", "node_lost", "node/a");
    (void)look();
    ck_assert_int_eq(weir_store_write(fixture.store, delete_receiver_in, "hook", &fixture.err),
                     WEIR_ERR_CONFLICT);
    fixture_write(&fixture, delete_rule_in, "r");
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_firings"), 0);
    fixture_write(&fixture, delete_receiver_in, "hook");
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_deliveries WHERE state = 'dead'"), 1);
    resolve_alert("node_lost:node/a");
    ck_assert_uint_eq(look(), 0);
}

END_TEST

START_TEST(a_secret_is_kept_when_its_mask_comes_back)
{
    add_receiver("hook", "webhook", "{\"url\":\"http://127.0.0.1:9/x\",\"secret\":\"***\"}", NULL);
    ck_assert_str_eq(ask_text("SELECT json_extract(options, '$.secret') FROM alert_receivers"
                              " WHERE name = 'hook'"),
                     "s");
    struct weir_alert_receiver fresh = {
        .name = "new", .kind = "webhook", .options = "{\"url\":\"http://h/\",\"secret\":\"***\"}"};
    ck_assert_int_eq(weir_store_write(fixture.store, set_receiver_in, &fresh, &fixture.err),
                     WEIR_ERR_INVALID);
}

END_TEST

/* One more than a look takes. */
static weir_status raise_silenced_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int i = 0; i <= WEIR_NOTIFY_ALERTS_MAX; i++) {
        char id[16], subject[16];
        (void)snprintf(id, sizeof id, "s%d", i);
        (void)snprintf(subject, sizeof subject, "node/s%d", i);
        struct weir_alert alert = {
            .id = id, .key = id, .kind = "node_lost", .subject = subject, .message = "It is lost"};
        WEIR_TRY(weir_alert_raise(txn, &alert, now_ms, NULL, err));
    }
    return WEIR_OK;
}

START_TEST(what_is_held_back_does_not_take_the_place_of_what_is_due)
{
    struct weir_alert_silence silence = {
        .subjects = "[\"node/s*\"]", .until_ms = now_ms + 1000000, .created_by = "ann"};
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .hold_ms = 1000});
    fixture_write(&fixture, begin_in, &silence);
    fixture_write(&fixture, raise_silenced_in, NULL);
    now_ms += 10;
    raise_alert("a1", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 0);
    now_ms += 1000;
    ck_assert_uint_eq(look(), 1);
    ck_assert_str_eq(ask_text("SELECT alert FROM alert_deliveries"), "a1");
}

END_TEST

START_TEST(one_that_escalates_when_it_is_to_be_repeated_is_repeated_too)
{
    add_rule((struct weir_alert_rule){.name = "r",
                                      .receivers = "[\"prom\"]",
                                      .escalate_ms = 300000,
                                      .escalate_to = "[\"boss\"]"});
    raise_alert("a1", "node_lost", "node/a");
    (void)look();
    now_ms += 300000;
    (void)look();
    ck_assert_str_eq(told(), "raised>prom escalated>boss repeated>prom");
    now_ms += 300000;
    ck_assert_uint_eq(look(), 1);
}

END_TEST

START_TEST(a_rule_that_is_changed_lets_go_of_what_it_does_not_want)
{
    struct weir_alert_rule rule = {.name = "r", .receivers = "[\"hook\"]", .tells_end = true};
    add_rule(rule);
    raise_alert("a1", "node_lost", "node/a");
    ck_assert_uint_eq(look(), 1);
    rule.kinds = "[\"drift\"]";
    add_rule(rule);
    ck_assert_uint_eq(look(), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_firings WHERE state = 'over'"), 1);
    rule.kinds = NULL;
    add_rule(rule);
    ck_assert_uint_eq(look(), 1);
    rule.kinds = "[\"drift\"]";
    add_rule(rule);
    (void)look();
    resolve_alert("node_lost:node/a");
    ck_assert_uint_eq(look(), 0);
}

END_TEST

START_TEST(a_rule_that_is_enabled_again_tells_again_and_does_not_act_again)
{
    add_ion("door", "vision");
    struct weir_alert_rule rule = {
        .name = "r", .receivers = "[\"hook\"]", .actions = "[{\"kind\":\"retrain\"}]"};
    add_rule(rule);
    raise_alert("a1", "drift", "ion/door");
    ck_assert_uint_eq(look(), 1);
    rule.is_disabled = true;
    add_rule(rule);
    ck_assert_uint_eq(look(), 0);
    rule.is_disabled = false;
    add_rule(rule);
    ck_assert_uint_eq(look(), 1);
    ck_assert_int_eq(n_acted, 1);
    ck_assert_str_eq(ask_text("SELECT state FROM alert_firings"), "told");
}

END_TEST

static weir_status look_again_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_look_again(txn, context, err);
}

START_TEST(what_was_a_sandbox_is_told_of_when_it_is_none_any_more)
{
    add_ion("door", "vision");
    add_ion("doors", "vision");
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .group_by = "none"});
    all_are_sandboxes = true;
    raise_alert("a1", "drift", "ion/door");
    raise_alert("a2", "drift", "ion/doors");
    ck_assert_uint_eq(look(), 0);
    all_are_sandboxes = false;
    ck_assert_uint_eq(look(), 0);
    fixture_write(&fixture, look_again_in, "ion/door");
    ck_assert_uint_eq(look(), 1);
    ck_assert_str_eq(ask_text("SELECT alert FROM alert_deliveries"), "a1");
}

END_TEST

/* ---- the queue ------------------------------------------------------------------------------- */

static weir_status fill_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const int *n = context;
    for (int i = 0; i < *n; i++) {
        const struct weir_alert_delivery one = {
            .receiver = "hook", .event = "test", .message = "{}"};
        WEIR_TRY(notify_queue_add(txn, &one, now_ms, &fixture.arena, NULL, err));
    }
    return WEIR_OK;
}

START_TEST(a_full_queue_leaves_new_ones_out_and_says_so)
{
    int n = NOTIFY_QUEUE_MAX + 5;
    fixture_write(&fixture, fill_in, &n);
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_deliveries"), NOTIFY_QUEUE_MAX);
    ck_assert_int_eq(ask("SELECT count FROM alerts WHERE key = 'receiver_failing:hook'"), 5);
}

END_TEST

struct tried {
    struct weir_alert_delivery delivery;
    struct notify_waiting *waiting;
    size_t n_waiting;
    bool is_final;
};

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct tried *tried = context;
    return notify_queue_list(txn, now_ms, &fixture.arena, &tried->waiting, &tried->n_waiting, err);
}

static weir_status take_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct tried *tried = context;
    return notify_queue_take(txn, tried->waiting[0].seq, now_ms, &fixture.arena, &tried->delivery,
                             err);
}

static weir_status fail_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct tried *tried = context;
    return notify_queue_failed(txn, &tried->delivery, "no", tried->is_final, now_ms, &fixture.arena,
                               err);
}

static weir_status sent_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct tried *tried = context;
    return notify_queue_sent(txn, &tried->delivery, now_ms, &fixture.arena, err);
}

START_TEST(a_message_that_never_goes_through_is_dead_and_raises_an_alert)
{
    int n = 1;
    struct tried tried = {0};
    fixture_write(&fixture, fill_in, &n);
    for (int i = 1; i <= NOTIFY_TRIES_MAX; i++) {
        fixture_read(&fixture, list_in, &tried);
        ck_assert_uint_eq(tried.n_waiting, 1);
        now_ms = WEIR_MAX(now_ms, tried.waiting[0].due_ms);
        fixture_write(&fixture, take_in, &tried);
        ck_assert_int_eq(tried.delivery.attempts, i);
        fixture_write(&fixture, fail_in, &tried);
        ck_assert_int_eq(ask("SELECT count(*) FROM alerts WHERE kind = 'receiver_failing'"),
                         i >= NOTIFY_TRIES_TOLD);
    }
    ck_assert_str_eq(ask_text("SELECT state FROM alert_deliveries"), "dead");
    ck_assert_str_eq(ask_text("SELECT name FROM alert_receivers WHERE is_failing = 1"), "hook");
    add_receiver("hook", "webhook", hook, NULL); /* set again, it is as it is */
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_receivers WHERE is_failing = 1"), 1);
    fixture_read(&fixture, list_in, &tried);
    ck_assert_uint_eq(tried.n_waiting, 0);
    fixture_write(&fixture, fill_in, &n);
    fixture_read(&fixture, list_in, &tried);
    fixture_write(&fixture, take_in, &tried);
    fixture_write(&fixture, sent_in, &tried);
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts WHERE state <> 'resolved'"), 0);
    ck_assert_int_eq(ask("SELECT sum(is_failing) FROM alert_receivers"), 0);
    ck_assert_int_eq(ask("SELECT last_sent_ms FROM alert_receivers WHERE name = 'hook'"), now_ms);
}

END_TEST

START_TEST(of_one_alert_they_go_in_order)
{
    struct tried tried = {0};
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]", .tells_end = true});
    raise_alert("a1", "node_lost", "node/a");
    resolve_alert("node_lost:node/a");
    (void)look();
    fixture_read(&fixture, list_in, &tried);
    fixture_write(&fixture, take_in, &tried);
    ck_assert_str_eq(tried.delivery.event, "raised");
    fixture_write(&fixture, fail_in, &tried);
    fixture_read(&fixture, list_in, &tried);
    ck_assert_int_eq(tried.waiting[0].due_ms, now_ms + 1000); /* the end waits for the beginning */
    now_ms += 1000;
    fixture_write(&fixture, take_in, &tried);
    ck_assert_str_eq(tried.delivery.event, "raised");
    fixture_write(&fixture, sent_in, &tried);
    fixture_read(&fixture, list_in, &tried);
    fixture_write(&fixture, take_in, &tried);
    ck_assert_str_eq(tried.delivery.event, "resolved");
}

END_TEST

START_TEST(what_was_given_up_while_it_was_sent_stays_so)
{
    int n = 1;
    struct tried tried = {0};
    fixture_write(&fixture, fill_in, &n);
    fixture_read(&fixture, list_in, &tried);
    fixture_write(&fixture, take_in, &tried);
    fixture_write(&fixture, delete_receiver_in, "hook");
    fixture_write(&fixture, fail_in, &tried);
    ck_assert_str_eq(ask_text("SELECT state FROM alert_deliveries"), "dead");
    fixture_write(&fixture, sent_in, &tried);
    ck_assert_str_eq(ask_text("SELECT state FROM alert_deliveries"), "dead");
    tried.is_final = true;
    fixture_write(&fixture, fail_in, &tried);
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts WHERE state <> 'resolved'"), 0);
}

END_TEST

START_TEST(what_waits_for_another_try_is_not_taken)
{
    int n = 1;
    struct tried tried = {0};
    fixture_write(&fixture, fill_in, &n);
    fixture_read(&fixture, list_in, &tried);
    fixture_write(&fixture, take_in, &tried);
    fixture_write(&fixture, fail_in, &tried);
    /* a thread that listed before that */
    ck_assert_int_eq(weir_store_write(fixture.store, take_in, &tried, &fixture.err),
                     WEIR_ERR_NOT_FOUND);
    now_ms += 1000;
    fixture_write(&fixture, take_in, &tried);
    ck_assert_int_eq(tried.delivery.attempts, 2);
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "look", set_up_hooks, tear_down, an_alert_is_told_once_and_its_end_once,
    a_rule_that_tells_no_end_tells_none_but_to_those_that_must_know,
    one_that_ends_before_its_hold_time_tells_nobody,
    one_that_comes_and_goes_between_two_looks_is_told,
    one_that_was_over_before_there_was_a_rule_is_told_to_nobody, a_group_shares_a_message,
    without_a_group_each_has_its_own, silenced_until_a_time,
    a_silence_that_is_ended_early_lets_go_at_once, silences_are_checked,
    nobody_looks_so_others_are_told_once, an_alertmanager_is_told_again_while_it_lasts,
    a_rule_of_a_project_sees_its_alerts_alone, a_rule_sees_what_was_there_before_it,
    rules_are_checked, a_rule_acts_once_for_an_alert_and_not_too_often,
    what_is_deleted_tells_no_more, what_is_held_back_does_not_take_the_place_of_what_is_due,
    one_that_escalates_when_it_is_to_be_repeated_is_repeated_too,
    a_rule_that_is_changed_lets_go_of_what_it_does_not_want,
    a_rule_that_is_enabled_again_tells_again_and_does_not_act_again,
    what_was_a_sandbox_is_told_of_when_it_is_none_any_more,
    a_secret_is_kept_when_its_mask_comes_back, a_full_queue_leaves_new_ones_out_and_says_so,
    a_message_that_never_goes_through_is_dead_and_raises_an_alert, of_one_alert_they_go_in_order,
    what_was_given_up_while_it_was_sent_stays_so, what_waits_for_another_try_is_not_taken)
