/* Rules, receivers, silences and deliveries of alerts, as people see them. */
#include "api/caller_fixture.h"

#include "base/test_main.h"
#include "base/test_seed.h"
#include "base/uuid.h"
#include "store/event.h"

static void set_up(void)
{
    callers_open();
}

static void tear_down(void)
{
    callers_close();
}

static weir_status raise_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_raise(txn, context, 1000, NULL, err);
}

static void raise_alert(const char *id, const char *kind)
{
    struct weir_error err;
    struct weir_alert alert = {.id = (char *)id,
                               .key = (char *)kind,
                               .kind = (char *)kind,
                               .subject = "server/x",
                               .message = "It is wrong"};
    must(weir_store_write(callers.fixture.store, raise_in, &alert, &err), &err);
}

#define HOOK                                                                                       \
    "{\"kind\":\"webhook\",\"options\":{\"url\":\"http://127.0.0.1:9/in\",\"secret\":\"s3cret\"}}"
#define ALERT "00000000-0000-4000-8000-0000000000c1"

START_TEST(a_secret_is_never_shown_back)
{
    EXPECT(200, "PUT " API "/alert-receivers/hook\n\n" HOOK);
    ck_assert_str_eq(said_text("options.secret"), "***");
    ck_assert_str_eq(said_text("options.url"), "http://127.0.0.1:9/in");
    EXPECT(200, "GET " API "/alert-receivers");
    ck_assert_str_eq(said_text("items.0.options.secret"), "***");
    ck_assert(!json_is_true(said("items.0.is_failing")));
    EXPECT(200, "GET " API "/events?topic=alerts&limit=10");
    ck_assert_str_eq(said_text("items.0.kind"), "alert_receiver_set");
}

END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    EXPECT(400, "PUT " API "/alert-receivers/hook\n\n{\"kind\":\"pager\",\"options\":{}}");
    EXPECT(400, "PUT " API "/alert-receivers/hook\n\n{\"kind\":\"webhook\",\"options\":{}}");
    EXPECT(400, "PUT " API "/alert-receivers/hook\n\n{\"kind\":\"webhook\",\"options\":3}");
    EXPECT(400, "PUT " API "/alert-receivers/Hook!\n\n" HOOK);
    EXPECT(400, "PUT " API "/alert-receivers/hook\n\n{\"name\":\"x\"}");
    EXPECT(404, "PUT " API "/alert-rules/r\n\n{\"receivers\":[\"none\"]}");
    EXPECT(400, "PUT " API "/alert-rules/r\n\n{\"receivers\":[],\"kinds\":[\"drfit\"]}");
    EXPECT(400, "PUT " API "/alert-rules/r\n\n{\"receivers\":[],\"actions\":[{\"kind\":\"x\"}]}");
    EXPECT(400, "PUT " API "/alert-rules/r\n\n{}");
    EXPECT(404, "GET " API "/alert-rules/r");
    EXPECT(404, "DELETE " API "/alert-rules/r");
    EXPECT(400, "POST " API "/alert-silences\n\n{\"until_ms\":4102444800000}");
    EXPECT(404, "DELETE " API "/alert-silences/x");
    EXPECT(404, "POST " API "/alert-receivers/none/test");
}

END_TEST

/* What each action needs, written once more: a number of the rights. */
static const char *const rights_of_acts[] = {"trigger ions", "roll back ions", "pause ions"};

static const struct {
    const char *action;
    unsigned right;
} acts[] = {{"retrain", 0}, {"roll-back", 1}, {"default-model", 1}, {"pause", 2}};

/* A JSON list of members `head`NAME`tail` for each bit, after what is there. */
static void add_item(char list[512], const char *head, const char *name, const char *tail)
{
    size_t n = strlen(list);
    (void)snprintf(list + n, 512 - n, "%s%s%s%s", n > 0 ? "," : "", head, name, tail);
}

/* Somebody in project p with these rights beside that to change rules. */
static void make_ruler(int number, unsigned rights, char out[BEARER_BYTES])
{
    char name[16], list[512] = "\"change alert rules\",\"read alerts\"";
    for (unsigned i = 0; i < WEIR_ARRAY_LEN(rights_of_acts); i++) {
        if ((rights >> i & 1) != 0) {
            add_item(list, "\"", rights_of_acts[i], "\"");
        }
    }
    (void)snprintf(name, sizeof name, "u%d", number);
    EXPECT(200, "POST " API "/roles\n\n{\"name\":\"r%d\",\"rights\":[%s]}", number, list);
    make_caller(name, "member", "", out);
    EXPECT(200, "PUT " API "/projects/p/members/user/%s\n\n{\"role\":\"r%d\"}", name, number);
}

/* Random rights, random actions; rules that are there are changed by others. */
START_TEST(who_sets_a_rule_has_the_right_of_each_action)
{
    struct weir_rng rng;
    char bearer[BEARER_BYTES], name[16];
    (void)test_seed(&rng);
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"p\"}");
    for (int round = 0; round < 40; round++) {
        unsigned rights = (unsigned)weir_rng_below(&rng, 8), wanted = 0;
        bool is_disabled = weir_rng_below(&rng, 4) == 0;
        char actions[512] = "";
        for (size_t i = 0; i < WEIR_ARRAY_LEN(acts); i++) {
            if (weir_rng_below(&rng, 3) == 0) {
                wanted |= 1U << acts[i].right;
                add_item(actions, "{\"kind\":\"", acts[i].action, "\"}");
            }
        }
        make_ruler(round, rights, bearer);
        int status = ask_as(bearer,
                            "PUT " API "/alert-rules/x%d\n\n{\"receivers\":[],\"project\":\"p\","
                            "\"is_disabled\":%s,\"actions\":[%s]}",
                            round % 3, is_disabled ? "true" : "false", actions);
        ck_assert_msg(status == (is_disabled || (wanted & ~rights) == 0 ? 200 : 403),
                      "round %d: %d with %u for [%s]: %s", round, status, rights, actions,
                      said_text("error.message"));
        (void)snprintf(name, sizeof name, "u%d", round);
        ck_assert(status != 200 || strcmp(said_text("set_by"), name) == 0);
    }
}

END_TEST

START_TEST(a_rule_is_as_it_was_set)
{
    EXPECT(200, "PUT " API "/alert-receivers/hook\n\n" HOOK);
    EXPECT(200, "PUT " API "/alert-rules/r\n\n{\"receivers\":[\"hook\"],\"kinds\":[\"drift\"],"
                "\"hold_ms\":5000,\"actions\":[{\"kind\":\"retrain\",\"pipeline\":\"t\"}]}");
    ck_assert_str_eq(said_text("group_by"), "rule");
    ck_assert(json_is_true(said("tells_end")));
    ck_assert_int_eq(json_integer_value(said("action_interval_ms")), 3600000);
    ck_assert_int_eq(json_integer_value(said("n_fired")), 0);
    ck_assert_str_eq(said_text("created_by"), "ann");
    EXPECT(200, "GET " API "/alert-rules");
    ck_assert_str_eq(said_text("items.0.actions.0.pipeline"), "t");
    EXPECT(409, "DELETE " API "/alert-receivers/hook");
    EXPECT(204, "DELETE " API "/alert-rules/r");
    EXPECT(204, "DELETE " API "/alert-receivers/hook");
}

END_TEST

START_TEST(an_alert_says_how_it_is)
{
    raise_alert(ALERT, "decisions_left");
    EXPECT(200, "GET " API "/alerts/" ALERT);
    ck_assert_str_eq(said_text("status"), "raised");
    ck_assert_uint_eq(json_array_size(said("firings")), 0);
    EXPECT(200, "POST " API "/alerts/" ALERT "/acknowledge\n\n{\"note\":\"I look\"}");
    ck_assert_str_eq(said_text("status"), "acknowledged");
    ck_assert_str_eq(said_text("acknowledged_note"), "I look");
    EXPECT(200,
           "POST " API "/alert-silences\n\n{\"alert\":\"" ALERT
           "\",\"until_ms\":%lld,\"note\":\"known\"}",
           (long long)(weir_time_ms() + 3600000));
    ck_assert_str_eq(said_text("alert"), "decisions_left");
    EXPECT(200, "POST " API "/alerts/" ALERT "/resolve");
    ck_assert_str_eq(said_text("status"), "resolved");
    ck_assert_str_eq(said_text("resolved_by"), "ann");
    EXPECT(409, "POST " API "/alerts/" ALERT "/resolve");
    EXPECT(409, "POST " API "/alerts/" ALERT "/acknowledge");
    EXPECT(200, "GET " API "/alerts?state=resolved");
    ck_assert_str_eq(said_text("items.0.status"), "resolved");
}

END_TEST

START_TEST(one_whose_cause_is_seen_ends_by_itself)
{
    raise_alert(ALERT, "node_lost");
    EXPECT(409, "POST " API "/alerts/" ALERT "/resolve");
}

END_TEST

START_TEST(a_test_is_a_delivery)
{
    EXPECT(200, "PUT " API "/alert-receivers/hook\n\n" HOOK);
    EXPECT(200, "POST " API "/alert-receivers/hook/test");
    ck_assert_str_eq(said_text("event"), "test");
    ck_assert_str_eq(said_text("state"), "pending");
    EXPECT(200, "GET " API "/alert-deliveries?receiver=hook");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(200, "GET " API "/alert-receivers/hook");
    ck_assert_int_eq(json_integer_value(said("n_waiting")), 1);
}

END_TEST

WEIR_TEST_MAIN_WITH("alert routes", set_up, tear_down, a_secret_is_never_shown_back,
                    what_makes_no_sense_is_refused, who_sets_a_rule_has_the_right_of_each_action,
                    a_rule_is_as_it_was_set, an_alert_says_how_it_is,
                    one_whose_cause_is_seen_ends_by_itself, a_test_is_a_delivery)
