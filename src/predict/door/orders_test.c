/* Orders on their way to the server, against a plain model: reports that are lost, kills, and decisions that come again. */
#include "predict/door/orders.h"

#include "base/rng.h"
#include "predict/test_support.h"

#include <string.h>
#include <sys/stat.h>

#define N_STEPS  4000
#define N_ORDERS 3000

static struct test_dir dir;
static struct door_orders *orders;

/* What is known of an order: what came of it first, and what the server has heard. */
static struct {
    char first[16], heard[16];
    bool is_sent;
} known[N_ORDERS];

static struct door_order order_of(int i, const char *state)
{
    struct door_order order = {.sent_ms = 1000 + i, .valid_until_ms = 3000 + i, .door = "door-1"};
    (void)snprintf(order.id, sizeof order.id, "order-%d", i);
    (void)snprintf(order.verb, sizeof order.verb, "open");
    (void)snprintf(order.state, sizeof order.state, "%s", state);
    (void)snprintf(order.decision, sizeof order.decision, "decision-%d", i);
    (void)snprintf(order.detail, sizeof order.detail, i % 5 == 0 ? "\"quoted\" \xff" : "");
    return order;
}

/* What comes of it; it is held back, if it has the state "interlocked". One that was sent is then silent. */
static void note(int i, const char *state)
{
    struct door_order order = order_of(i, state);
    order.is_held = strcmp(state, "interlocked") == 0;
    door_orders_note(orders, &order);
    if (strcmp(state, ORDER_SENT) == 0) {
        known[i].is_sent = true;
    } else if (known[i].first[0] == '\0') {
        (void)snprintf(known[i].first, sizeof known[i].first, "%s",
                       order.is_held && known[i].is_sent ? "silent" : state);
    }
}

/* The server keeps the first thing that came of an order. */
static size_t hear(json_t *report)
{
    const json_t *one;
    size_t i, n = json_array_size(report);
    ck_assert_uint_le(n, ORDERS_PER_REPORT);
    json_array_foreach(report, i, one)
    {
        int number = 0;
        const char *state = test_text(one, "state");
        ck_assert_int_eq(sscanf(test_text(one, "id"), "order-%d", &number), 1);
        ck_assert_int_eq(test_int(one, "sent_ms"), 1000 + number);
        ck_assert_int_eq(test_int(one, "valid_until_ms"), 3000 + number);
        ck_assert_int_eq(strncmp(test_text(one, "decision"), "decision-", 9), 0);
        if (known[number].heard[0] == '\0' || strcmp(known[number].heard, ORDER_SENT) == 0) {
            (void)snprintf(known[number].heard, sizeof known[number].heard, "%s", state);
        }
    }
    json_decref(report);
    return n;
}

static const char *path(void)
{
    return test_path(&dir, "orders.jsonl");
}

/* The process is gone; with luck in the middle of a line. */
static void die(struct weir_rng *rng)
{
    door_orders_close(orders);
    FILE *file = weir_rng_below(rng, 2) == 0 ? fopen(path(), "a") : NULL;
    if (file != NULL) {
        ck_assert_int_gt(fprintf(file, "{\"id\":\"order-1\",\"sta"), 0);
        ck_assert_int_eq(fclose(file), 0);
    }
    orders = door_orders_open(path());
}

START_TEST(the_server_hears_once_what_came_of_each_order)
{
    static const char *const outcomes[] = {"done", "repeated", "silent", "interlocked"};
    const uint64_t seed = 20267;
    struct weir_rng rng;
    int n = 0, is_open_from = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    test_dir_make(&dir);
    orders = door_orders_open(path());
    for (int step = 0; step < N_STEPS; step++) {
        uint64_t what = weir_rng_below(&rng, 20);
        if (what < 12 && n < N_ORDERS) {
            if (weir_rng_below(&rng, 4) > 0) {
                note(n, ORDER_SENT);
            }
            if (weir_rng_below(&rng, 10) > 0) {
                note(n, outcomes[weir_rng_below(&rng, 4)]);
            }
            n++;
        } else if (what < 17) {
            (void)hear(door_orders_report(orders));
            if (what < 15) { /* else the answer is lost */
                door_orders_taken(orders);
            }
        } else if (what < 18) {
            die(&rng);
            /* Its last decisions come again, and what was under way ends. */
            for (int i = is_open_from; i < n; i++) {
                if (known[i].first[0] == '\0' || i > n - 3) {
                    note(i, weir_rng_below(&rng, 2) == 0 ? "repeated" : "interlocked");
                }
            }
            is_open_from = n;
        }
    }
    die(&rng);
    for (int i = 0; i < n; i++) {
        if (known[i].first[0] == '\0') {
            note(i, "late");
        }
    }
    while (hear(door_orders_report(orders)) > 0) {
        door_orders_taken(orders);
    }
    for (int i = 0; i < n; i++) {
        ck_assert_msg(strcmp(known[i].heard, known[i].first) == 0, "order %d: %s, and not %s", i,
                      known[i].heard, known[i].first);
    }
    die(&rng);
    ck_assert_ptr_null(door_orders_report(orders)); /* nothing that has arrived comes again */
    door_orders_close(orders);
    test_dir_drop(&dir);
}

END_TEST

START_TEST(while_nobody_hears_the_newest_are_kept)
{
    struct stat facts;
    test_dir_make(&dir);
    orders = door_orders_open(path());
    memset(known, 0, sizeof known);
    for (int i = 0; i < N_ORDERS; i++) {
        note(i, "done");
        ck_assert_int_eq(stat(path(), &facts), 0);
        ck_assert_int_le(facts.st_size, 2 * ORDERS_MAX * 300);
    }
    for (int life = 0; life < 2; life++) {
        json_t *report = door_orders_report(orders);
        ck_assert_str_eq(test_text(json_array_get(report, 0), "id"), "order-1976");
        json_decref(report);
        door_orders_close(orders);
        orders = door_orders_open(path());
    }
    door_orders_close(orders);
    test_dir_drop(&dir);
    door_orders_note(NULL, NULL);
    ck_assert_ptr_null(door_orders_report(NULL));
}

END_TEST

WEIR_TEST_MAIN("orders", the_server_hears_once_what_came_of_each_order,
               while_nobody_hears_the_newest_are_kept)
