/* The order of pieces: by need in some rounds, and in the others as those were answered. */
#include "comm/ps/ps_order.h"

#include "base/macros.h"
#include "base/test_main.h"

enum { N = 5 };

/** The pieces in their order, as a number. */
static int order_of(const struct ps_order *order)
{
    int digits = 0;
    for (size_t place = 0; place < N; place++) {
        for (size_t i = 0; i < N; i++) {
            digits = ps_order_place(order, i) == place ? 10 * digits + (int)i : digits;
        }
    }
    return digits;
}

static void reply_all(struct ps_order *order, const uint64_t when_ns[N])
{
    for (size_t i = 0; i < N; i++) {
        ps_order_note(order, i, when_ns[i]);
    }
}

START_TEST(most_rounds_follow_the_replies_of_the_last_that_went_by_need)
{
    static const uint64_t first[N] = {10, 50, 20, 40, 30}, second[N] = {7, 7, 3, 9, 1};
    struct ps_order order;
    ck_assert(ps_order_init(&order, N));
    for (int n = 0; n < 3; n++) {
        ps_order_begin(&order);
        ck_assert_int_eq(order_of(&order), 43210);
        reply_all(&order, first);
    }
    for (int n = 3; n < 16; n++) {
        ps_order_begin(&order);
        ck_assert_int_eq(order_of(&order), 2431); /* 0 first */
        reply_all(&order, second);
    }
    ps_order_begin(&order);
    ck_assert_int_eq(order_of(&order), 43210);
    reply_all(&order, second);
    ps_order_begin(&order);
    ck_assert_int_eq(order_of(&order), 42103); /* of two at the same time the needed one */
    ps_order_fini(&order);
}

END_TEST

START_TEST(a_round_without_all_replies_teaches_nothing)
{
    static const uint64_t when_ns[N] = {1, 2, 3, 4, 5};
    struct ps_order order;
    ck_assert(ps_order_init(&order, N));
    for (int n = 0; n < 4; n++) {
        ps_order_begin(&order);
        ck_assert_int_eq(order_of(&order), 43210);
        ps_order_note(&order, 1, 1);
    }
    reply_all(&order, when_ns);
    ps_order_begin(&order); /* that one did not go by need */
    ck_assert_int_eq(order_of(&order), 43210);
    ps_order_fini(&order);
    ck_assert(ps_order_init(&order, 0));
    ps_order_begin(&order);
    ps_order_begin(&order);
    ps_order_fini(&order);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {most_rounds_follow_the_replies_of_the_last_that_went_by_need,
                                  a_round_without_all_replies_teaches_nothing};
    return weir_test_run(weir_test_suite("ps_order", tests, WEIR_ARRAY_LEN(tests)));
}
