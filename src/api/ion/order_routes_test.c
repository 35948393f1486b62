/* What doors were told, as replicas report it again and again, against a plain model: each order once, with the first that came of it. */
#include "api/caller_fixture.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "store/stmt.h"

#define JOB      "00000000-0000-4000-8000-0000000000b1"
#define TASK     "00000000-0000-4000-8000-0000000000a1"
#define N_ORDERS 120
#define DECISION "00000000-0000-4000-8000-00000000%04d"

static char bearer[BEARER_BYTES];

/* What the server must have of an order; "": it has not heard of it. */
static struct {
    char state[16];
    int door, decision;
} known[N_ORDERS];

static weir_status run_sql(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

static void set_up(void)
{
    struct weir_error err;
    callers_open();
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    EXPECT(
        200,
        "POST " API "/ions\n\n{\"name\":\"site\",\"pipelines\":[{\"name\":\"learn\",\"type\":"
        "\"training\",\"dataset\":\"staff\",\"model\":\"face-embed\"},{\"name\":\"see\",\"type\":"
        "\"prediction\",\"source\":{\"kind\":\"http\"},\"gallery\":{\"dataset\":\"staff\"}}],"
        "\"links\":[{\"from\":\"learn\",\"to\":\"see\"}]}");
    place_job(&(struct placed_job){.id = JOB,
                                   .task = TASK,
                                   .kind = "predict",
                                   .node = "n",
                                   .state = "RUNNING",
                                   .ion = "site",
                                   .pipeline = "see"});
    must(weir_store_write(callers.fixture.store, run_sql,
                          (void *)"UPDATE ion_pipelines SET job = '" JOB "' WHERE name = 'see'",
                          &err),
         &err);
    task_bearer(TASK, bearer);
}

static int report(const char *orders)
{
    return ask_as(bearer,
                  "PUT " API "/ions/site/pipelines/see/replicas/" JOB
                  "-0\n\n{\"state\":\"APPLIED\",\"revision\":1%s%s}",
                  orders[0] != '\0' ? ",\"orders\":" : "", orders);
}

/* Some orders, of which some were heard before. */
static void tell(struct weir_rng *rng, int n_so_far)
{
    static const char *const states[] = {"sent", "done", "repeated", "silent", "not-now"};
    json_t *list = json_array();
    for (size_t k = weir_rng_below(rng, 20); k-- > 0;) {
        int i = (int)weir_rng_below(rng, (uint64_t)n_so_far);
        char id[40], decision[48], door[16];
        const char *state = states[weir_rng_below(rng, WEIR_ARRAY_LEN(states))];
        (void)snprintf(id, sizeof id, "order-%03d", i);
        (void)snprintf(decision, sizeof decision, DECISION, i / 3);
        (void)snprintf(door, sizeof door, "door-%d", i % 4);
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:o,s:I,s:I,s:n,s:n}", "id", id,
                                              "door", door, "verb", i % 5 == 0 ? "lock" : "open",
                                              "state", state, "decision",
                                              i % 5 == 0 ? json_null() : json_string(decision),
                                              "sent_ms", (json_int_t)(1000 + i), "valid_until_ms",
                                              (json_int_t)(3000 + i), "answered_ms", "detail"));
        if (known[i].state[0] == '\0' || strcmp(known[i].state, "sent") == 0) {
            (void)snprintf(known[i].state, sizeof known[i].state, "%s", state);
        }
        known[i].door = i % 4;
        known[i].decision = i % 5 == 0 ? -1 : i / 3;
    }
    char *text = json_dumps(list, JSON_COMPACT);
    EXPECT_STATUS(204, report(text));
    free(text);
    json_decref(list);
}

/* An answer's orders, which must be those of the model that `is_in`, newest first or (is_up) oldest first. */
static void check_items(bool is_up, bool (*is_in)(int i, int of), int of)
{
    size_t at = 0;
    for (int k = 0; k < N_ORDERS; k++) {
        int i = is_up ? k : N_ORDERS - 1 - k;
        char id[40];
        if (known[i].state[0] == '\0' || !is_in(i, of)) {
            continue;
        }
        const json_t *one = json_array_get(said("items"), at++);
        (void)snprintf(id, sizeof id, "order-%03d", i);
        ck_assert_str_eq(json_string_value(json_object_get(one, "id")), id);
        ck_assert_str_eq(json_string_value(json_object_get(one, "state")), known[i].state);
        ck_assert_str_eq(json_string_value(json_object_get(one, "ion")), "site");
        ck_assert_str_eq(json_string_value(json_object_get(one, "replica")), JOB "-0");
        ck_assert(json_is_null(json_object_get(one, "answered_ms")));
    }
    ck_assert_uint_eq(json_array_size(said("items")), at);
}

static bool is_any(int i, int of)
{
    (void)i;
    (void)of;
    return true;
}

static bool is_of_door(int i, int of)
{
    return known[i].door == of;
}

static bool is_of_decision(int i, int of)
{
    return known[i].decision == of;
}

static bool is_silent(int i, int of)
{
    (void)of;
    return strcmp(known[i].state, "silent") == 0;
}

START_TEST(each_order_is_kept_once_with_the_first_that_came_of_it)
{
    const uint64_t seed = 20268;
    struct weir_rng rng;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    EXPECT_STATUS(204, report(""));
    for (int round = 1; round <= 40; round++) {
        tell(&rng, 3 * round);
        EXPECT(200, "GET " API "/orders?limit=1000");
        check_items(false, is_any, 0);
    }
    EXPECT(200, "GET " API "/orders?ion=site&door=door-2&limit=1000");
    check_items(false, is_of_door, 2);
    EXPECT(200, "GET " API "/orders?ion=site&state=silent&limit=1000");
    check_items(false, is_silent, 0);
    EXPECT_ERROR(400, "state", "GET " API "/orders?state=quiet");
    for (int i = 0; i < 40; i++) {
        EXPECT_ERROR(404, "decision", "GET " API "/decisions/" DECISION "/orders", i);
        EXPECT(200,
               "POST " API "/decisions\n\n{\"decisions\":[{\"id\":\"" DECISION
               "\",\"ion\":\"site\","
               "\"pipeline\":\"see\",\"camera\":\"c\",\"frame\":%d,\"verdict\":\"grant\"}]}",
               i, i);
        EXPECT(200, "GET " API "/decisions/" DECISION "/orders", i);
        check_items(true, is_of_decision, i);
    }
}

END_TEST

START_TEST(what_is_no_order_is_refused_with_the_report)
{
    static const char *const wrong[][2] = {
        {"3", "$.orders: expected an array"},
        {"[{}]", "$.orders[0].id"},
        {"[{\"id\":\"a\",\"door\":\"d\",\"verb\":\"open\",\"state\":\"ajar\",\"sent_ms\":1}]",
         "no state of an order"},
        {"[{\"id\":\"a\",\"door\":\"d\",\"verb\":\"open\",\"state\":\"one\",\"sent_ms\":1}]",
         "no state of an order"},
        {"[{\"id\":\"a\",\"door\":\"d\",\"verb\":\"open\",\"state\":\"done\",\"sent_ms\":1,"
         "\"person\":\"ada\"}]",
         "$.orders[0].person"},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_STATUS(400, report(wrong[i][0]));
        ck_assert_msg(strstr(said_text("error.message"), wrong[i][1]) != NULL, "%s",
                      said_text("error.message"));
    }
    EXPECT(200, "GET " API "/orders");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("order_routes", set_up, callers_close,
                    each_order_is_kept_once_with_the_first_that_came_of_it,
                    what_is_no_order_is_refused_with_the_report)
