/* The laws of plans and of the board, on random input. */
#include "predict/door/plan.h"

#include "base/test_main.h"
#include "base/test_seed.h"
#include "predict/door/board.h"

#define TIMES 20000
#define WEEK  (7 * WEIR_DOOR_DAY_MINUTES)

static int below(struct weir_rng *rng, int n)
{
    return (int)weir_rng_below(rng, (uint64_t)n);
}

static struct weir_door_hours random_hours(struct weir_rng *rng)
{
    struct weir_door_hours hours = {.days = (unsigned)below(rng, 128),
                                    .from_min = below(rng, WEIR_DOOR_DAY_MINUTES),
                                    .until_min = below(rng, WEIR_DOOR_DAY_MINUTES + 1)};
    hours.until_min += hours.until_min == hours.from_min;
    return hours;
}

/* Every minute of the week, laid out from each day on, as long as the hours last. */
static bool lies_within(const struct weir_door_hours *hours, int weekday, int minute)
{
    int len = hours->until_min - hours->from_min;
    len += len <= 0 ? WEIR_DOOR_DAY_MINUTES : 0;
    for (int day = 0; day < 7; day++) {
        int begin = day * WEIR_DOOR_DAY_MINUTES + hours->from_min;
        int into = (weekday * WEIR_DOOR_DAY_MINUTES + minute - begin + WEEK) % WEEK;
        if ((hours->days >> day & 1) != 0 && into < len) {
            return true;
        }
    }
    return false;
}

START_TEST(hours_hold_in_the_minutes_that_follow_their_beginning)
{
    struct weir_rng rng;
    test_seed(&rng);
    for (int i = 0; i < TIMES; i++) {
        const struct weir_door_hours hours = random_hours(&rng);
        const struct door_moment now = {.weekday = below(&rng, 7),
                                        .minute = below(&rng, WEIR_DOOR_DAY_MINUTES)};
        ck_assert_msg(door_hours_hold(&hours, &now) == lies_within(&hours, now.weekday, now.minute),
                      "days %x, %d to %d: day %d, minute %d", hours.days, hours.from_min,
                      hours.until_min, now.weekday, now.minute);
    }
}

END_TEST

static const char *const people[] = {"ada", "bob", "cid"};
static const char *const verdicts[] = {"grant", "deny", "unknown", "error", "label"};
static const char *const cameras[] = {"door-1", "door-2"};

/* Whatever is sent is for this door, in time, by a rule, and not locked down; and what is all that is sent. */
START_TEST(only_what_may_be_opened_is_sent)
{
    struct weir_rng rng;
    test_seed(&rng);
    int n_sent = 0;
    for (int i = 0; i < TIMES; i++) {
        const char *named[] = {people[below(&rng, 3)]};
        struct weir_door_rule rules[2] = {
            {.is_of_list = true, .hours = random_hours(&rng)},
            {.people = named, .n_people = 1, .hours = random_hours(&rng)}};
        struct weir_door door = {.name = "door-1",
                                 .cameras = (const char **)cameras,
                                 .n_cameras = 1,
                                 .valid_ms = 200 + below(&rng, 2801),
                                 .rules = rules,
                                 .n_rules = (size_t)below(&rng, 3)};
        const struct door_moment now = {
            .ms = 1000000, .weekday = below(&rng, 7), .minute = below(&rng, WEIR_DOOR_DAY_MINUTES)};
        const struct door_visitor visitor = {.camera = cameras[below(&rng, 2)],
                                             .verdict = verdicts[below(&rng, 8) % 5],
                                             .person =
                                                 below(&rng, 5) > 0 ? people[below(&rng, 3)] : NULL,
                                             .issued_ms = now.ms - 4000 + below(&rng, 8000),
                                             .is_allowed = below(&rng, 2) == 0};
        bool is_locked_down = below(&rng, 4) == 0;
        bool is_ours = visitor.verdict == verdicts[0] && visitor.camera == cameras[0];
        bool is_late = llabs(now.ms - visitor.issued_ms) >= door.valid_ms;
        bool is_by_list = door.n_rules > 0 && visitor.is_allowed &&
                          lies_within(&rules[0].hours, now.weekday, now.minute);
        bool is_by_name = door.n_rules > 1 && visitor.person == named[0] &&
                          lies_within(&rules[1].hours, now.weekday, now.minute);
        enum door_plan wanted = !is_ours         ? DOOR_PLAN_NONE
                                : is_late        ? DOOR_PLAN_LATE
                                : is_locked_down ? DOOR_PLAN_LOCKED_DOWN
                                : door.n_rules > 0 && !is_by_list && !is_by_name ? DOOR_PLAN_NOT_NOW
                                                                                 : DOOR_PLAN_SEND;
        enum door_plan plan = door_plan_make(&door, &visitor, &now, is_locked_down);
        ck_assert_msg(plan == wanted, "%s in place of %s", door_plan_text(plan),
                      door_plan_text(wanted));
        n_sent += plan == DOOR_PLAN_SEND;
    }
    ck_assert_int_gt(n_sent, TIMES / 100);
}

END_TEST

START_TEST(a_door_is_held_in_its_hours_unless_it_is_locked_down)
{
    const struct weir_door_hours hours = {1, 480, 540};
    const struct weir_door door = {.hold_open = &hours, .n_hold_open = 1};
    const struct door_moment in = {.minute = 500}, out = {.minute = 540};
    ck_assert(door_is_held(&door, &in, false));
    ck_assert(!door_is_held(&door, &in, true));
    ck_assert(!door_is_held(&door, &out, false));
}

END_TEST

/* The same for the same, other for any other; and it is a UUID of version 7 with the decision's time. */
START_TEST(a_command_is_called_after_its_decision_and_its_door)
{
    char decision[WEIR_UUID_BYTES], one[WEIR_UUID_BYTES], other[WEIR_UUID_BYTES];
    for (int i = 0; i < 1000; i++) {
        weir_uuid_make(decision);
        door_command_id(decision, "door-1", one);
        door_command_id(decision, "door-1", other);
        ck_assert_str_eq(one, other);
        ck_assert(weir_uuid_is_valid(one));
        ck_assert_int_eq(one[14], '7');
        ck_assert_ptr_nonnull(strchr("89ab", one[19]));
        ck_assert_mem_eq(one, decision, 13);
        door_command_id(decision, "door-2", other);
        ck_assert_str_ne(one, other);
        weir_uuid_make(decision);
        door_command_id(decision, "door-1", other);
        ck_assert_str_ne(one, other);
    }
    door_command_id("no uuid", "door-1", one);
    ck_assert(weir_uuid_is_valid(one));
}

END_TEST

/* Of doors that wait for one another, in a random graph, none opens while another stands open. */
START_TEST(interlocked_doors_are_never_open_together)
{
    enum { N = 5 };

    struct weir_rng rng;
    static const char *const names[N] = {"a", "b", "c", "d", "e"};
    test_seed(&rng);
    for (int run = 0; run < 200; run++) {
        const char *locks[N][N];
        struct weir_door doors[N] = {0};
        int64_t open_until[N] = {0}, now = 1;
        struct door_board board;
        for (int i = 0; i < N; i++) {
            doors[i] = (struct weir_door){.name = (char *)names[i], .interlock = locks[i]};
            for (int k = 0; k < N; k++) {
                if (k != i && below(&rng, 3) == 0) {
                    locks[i][doors[i].n_interlock++] = names[k];
                }
            }
        }
        door_board_init(&board, doors, N);
        for (int step = 0; step < 100; step++) {
            size_t i = (size_t)below(&rng, N);
            bool may_open = true;
            for (size_t k = 0; k < doors[i].n_interlock; k++) {
                may_open = may_open && open_until[doors[i].interlock[k][0] - 'a'] <= now;
            }
            ck_assert_int_eq(door_board_open(&board, i, now, 100), may_open);
            open_until[i] = may_open ? now + 100 : open_until[i];
            ck_assert_int_eq(door_board_state(&board, i, now),
                             open_until[i] > now ? DOOR_STATE_OPEN : DOOR_STATE_UNKNOWN);
            if (below(&rng, 6) == 0) {
                door_board_until(&board, i, 0);
                open_until[i] = 0;
            }
            now += below(&rng, 40);
        }
        door_board_fini(&board);
    }
}

END_TEST

START_TEST(a_door_that_says_it_is_open_or_jammed_holds_up_those_that_wait_for_it)
{
    const char *waits[] = {"b"};
    const struct weir_door doors[] = {{.name = "a", .interlock = waits, .n_interlock = 1},
                                      {.name = "b"}};
    struct door_board board;
    door_board_init(&board, doors, 2);
    door_board_said(&board, 1, DOOR_STATE_OPEN);
    ck_assert(!door_board_open(&board, 0, 1, 10));
    door_board_said(&board, 1, DOOR_STATE_LOCKED);
    ck_assert(door_board_open(&board, 0, 1, 10));
    door_board_jammed(&board, 1, true);
    ck_assert(!door_board_open(&board, 0, 100, 10));
    ck_assert_int_eq(door_board_state(&board, 1, 100), DOOR_STATE_JAMMED);
    door_board_said(&board, 1, DOOR_STATE_LOCKED);
    ck_assert_int_eq(door_board_state(&board, 1, 100), DOOR_STATE_LOCKED);
    door_board_fini(&board);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("door plan");
    TCase *tcase = tcase_create("plan");
    tcase_add_test(tcase, hours_hold_in_the_minutes_that_follow_their_beginning);
    tcase_add_test(tcase, only_what_may_be_opened_is_sent);
    tcase_add_test(tcase, a_door_is_held_in_its_hours_unless_it_is_locked_down);
    tcase_add_test(tcase, a_command_is_called_after_its_decision_and_its_door);
    tcase_add_test(tcase, interlocked_doors_are_never_open_together);
    tcase_add_test(tcase, a_door_that_says_it_is_open_or_jammed_holds_up_those_that_wait_for_it);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
