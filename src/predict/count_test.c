/* Things that are counted: who enters, leaves, crosses and stays in frames that are drawn. */
#include "predict/chain_fixture.h"

#define FIND                                                                                       \
    "[\"decode\",{\"kind\":\"detect\",\"model\":\"squares\",\"as\":\"centernet\",\"threshold\":"   \
    "0.42,\"width\":96,\"height\":64},\"track\","
#define FRAME_MS   100
#define WALK_MS    3000
#define N_WALKERS  6
#define N_STANDING 2

/* The middle of the picture, and a line through it that leads up: to its right is where x grows. */
#define MIDDLE                                                                                     \
    "{\"kind\":\"count\",\"name\":\"middle\",\"by\":\"centre\",\"leave_ms\":500,"                  \
    "\"zone\":[[0.3,0],[0.7,0],[0.7,1],[0.3,1]],\"line\":[[0.5,1],[0.5,0]],\"over\":1,"            \
    "\"for_s\":0.5,\"long_s\":4}"

static size_t n_put;

static void show(int64_t time_ms, const struct standing *people, size_t n)
{
    char bytes[SCENE_BYTES];
    put("yard", time_ms - T0, time_ms, bytes, draw(people, n, 7, bytes));
    n_put++;
}

/* How many decisions say that of the place. */
static size_t n_of(const json_t *decisions, const char *what, const char *to)
{
    const json_t *one;
    size_t i, n = 0;
    json_array_foreach(decisions, i, one)
    {
        const json_t *counted = json_object_get(one, "counted");
        const char *its = json_string_value(json_object_get(counted, "to"));
        ck_assert_str_eq(test_text(counted, "place"), "middle");
        ck_assert_str_eq(test_text(one, "verdict"), "label");
        ck_assert_str_eq(test_text(one, "camera"), "yard");
        const json_t *passage = json_object_get(one, "passage");
        ck_assert(!json_is_object(passage) || json_is_null(json_object_get(passage, "rule")));
        n += strcmp(test_text(counted, "what"), what) == 0 &&
             (to == NULL || (its != NULL && strcmp(its, to) == 0));
    }
    return n;
}

static int64_t time_of(const json_t *object, const char *key)
{
    int64_t time_ms = 0;
    ck_assert_int_eq(weir_time_parse(test_text(object, key), &time_ms), WEIR_OK);
    return time_ms;
}

/* Where a walker is, 4 pixels further every other frame; every third walks back. */
static struct standing walker(int i, int64_t since_ms)
{
    int x = 2 + 4 * (int)(since_ms / FRAME_MS / 2);
    return (struct standing){i % N_PEOPLE, i % 3 == 2 ? WIDTH - TEST_SIDE - x : x, 34};
}

START_TEST(who_walks_through_enters_leaves_and_crosses_once)
{
    int64_t each_ms = WALK_MS + 1500;
    n_put = 0;
    start(FIND MIDDLE ",\"decide\"]");
    for (int64_t since = 0; since < N_WALKERS * each_ms + 3000; since += FRAME_MS) {
        int i = (int)(since / each_ms);
        struct standing one = walker(i, since % each_ms);
        show(T0 + since, &one, i < N_WALKERS && since % each_ms < WALK_MS);
    }
    ck_assert(test_wait(are_durable, &n_put));
    json_t *places = counts_status(it.counts), *place = json_array_get(places, 0);
    ck_assert_uint_eq(json_array_size(places), 1);
    ck_assert_int_eq(test_int(place, "n"), 0);
    ck_assert_int_eq(test_int(place, "entered"), N_WALKERS);
    ck_assert_int_eq(test_int(place, "left"), N_WALKERS);
    ck_assert_int_eq(test_int(place, "to_left"), N_WALKERS / 3);
    json_decref(places);
    stop();
    json_t *all = all_decisions(), *one;
    size_t i, n_left = 0;
    ck_assert_uint_eq(n_of(all, "entered", NULL), N_WALKERS);
    ck_assert_uint_eq(n_of(all, "left", NULL), N_WALKERS);
    ck_assert_uint_eq(n_of(all, "crossed", "right"), N_WALKERS - N_WALKERS / 3);
    ck_assert_uint_eq(n_of(all, "crossed", "left"), N_WALKERS / 3);
    ck_assert_uint_eq(json_array_size(all), 3 * N_WALKERS);
    json_array_foreach(all, i, one)
    {
        const json_t *passage = json_object_get(one, "passage");
        if (!json_is_object(passage)) {
            continue;
        }
        /* Its middle is in from pixel 29 to 67: seen from 2 + 4 k >= 21 on, while 2 + 4 k < 60. */
        int64_t begin_ms = T0 + (int64_t)n_left * each_ms;
        ck_assert_str_eq(test_text(one, "label"), "0");
        ck_assert_int_le(llabs(time_of(passage, "first") - begin_ms - 1000), 200);
        ck_assert_int_le(llabs(time_of(passage, "last") - begin_ms - 2900), 200);
        n_left++;
    }
    ck_assert_uint_eq(n_left, N_WALKERS);
    json_decref(all);
}

END_TEST

static atomic_int n_changes;

static void count_change(void *context)
{
    (void)context;
    atomic_fetch_add(&n_changes, 1);
}

static void check_conditions(const char *wanted)
{
    json_t *places = counts_status(it.counts);
    char *text = json_dumps(json_object_get(json_array_get(places, 0), "conditions"), JSON_COMPACT);
    ck_assert_str_eq(text, wanted);
    free(text);
    json_decref(places);
}

/* Two are there for six seconds, which are one too many; then nobody is. */
START_TEST(too_many_and_too_long_are_said_when_they_begin_and_end)
{
    static const struct standing two[N_STANDING] = {{0, 38, 2}, {1, 42, 34}};
    n_put = 0;
    atomic_store(&n_changes, 0);
    start(FIND MIDDLE ",\"decide\"]");
    counts_listen(it.counts, count_change, NULL);
    for (int64_t since = 0; since < 9000; since += FRAME_MS) {
        if (since == 3000 || since == 6000) {
            ck_assert(test_wait(are_durable, &n_put));
            check_conditions(since == 3000 ? "[\"more than 1\"]"
                                           : "[\"more than 1\",\"longer than 4 s\"]");
        }
        show(T0 + since, two, since < 6000 ? N_STANDING : 0);
    }
    ck_assert(test_wait(are_durable, &n_put));
    check_conditions("[]");
    ck_assert_int_eq(atomic_load(&n_changes), 4);
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(n_of(all, "over", NULL), 1);
    ck_assert_uint_eq(n_of(all, "within", NULL), 1);
    ck_assert_uint_eq(n_of(all, "long", NULL), N_STANDING);
    ck_assert_uint_eq(n_of(all, "crossed", NULL), 0);
    ck_assert_uint_eq(json_array_size(all), 2 + 3 * N_STANDING);
    json_decref(all);
}

END_TEST

static bool is_empty(void *context)
{
    json_t *places = counts_status(it.counts);
    bool is = test_int(json_array_get(places, 0), "left") == 1;
    (void)context;
    json_decref(places);
    return is;
}

START_TEST(who_was_before_a_camera_that_fell_silent_leaves_by_the_clock)
{
    static const struct standing one = {0, 42, 22};
    char bytes[SCENE_BYTES];
    n_put = 0;
    start(FIND
          "{\"kind\":\"count\",\"name\":\"middle\",\"enter_ms\":0,\"leave_ms\":300},\"decide\"]");
    for (int i = 0; i < 3; i++) {
        put("yard", i, weir_time_ms(), bytes, draw(&one, 1, 7, bytes));
        n_put++;
    }
    ck_assert(test_wait(are_durable, &n_put));
    ck_assert(test_wait(is_empty, NULL));
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(n_of(all, "entered", NULL), 1);
    ck_assert_uint_eq(n_of(all, "left", NULL), 1);
    json_decref(all);
}

END_TEST

/* Another camera goes on: its frames let time pass, and it is not its picture that is shown. */
START_TEST(a_silent_camera_is_left_while_another_goes_on)
{
    static const struct standing one = {0, 42, 22};
    char bytes[SCENE_BYTES];
    int64_t deadline_ms = weir_mono_ms() + 10000;
    n_put = 0;
    start(FIND "{\"kind\":\"count\",\"name\":\"middle\",\"cameras\":[\"yard\"],\"enter_ms\":0,"
               "\"leave_ms\":300},\"decide\"]");
    put("yard", n_put++, weir_time_ms(), bytes, draw(&one, 1, 7, bytes));
    while (!is_empty(NULL) && weir_mono_ms() < deadline_ms) {
        put("gate", (int64_t)n_put++, weir_time_ms(), bytes, draw(&one, 1, 7, bytes));
        ck_assert(test_wait(are_durable, &n_put));
    }
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(json_array_size(all), 2);
    ck_assert_uint_eq(n_of(all, "left", NULL), 1);
    ck_assert_str_eq(test_text(json_array_get(all, 1), "image"), "");
    json_decref(all);
}

END_TEST

START_TEST(without_a_count_each_thing_is_decided_once_by_its_class)
{
    n_put = 0;
    start(FIND "\"decide\"]");
    for (int64_t since = 0; since < 2 * WALK_MS; since += FRAME_MS) {
        struct standing one = walker(0, since);
        show(T0 + since, &one, since < WALK_MS);
    }
    ck_assert(test_wait(are_durable, &n_put));
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(json_array_size(all), 1);
    ck_assert_str_eq(test_text(json_array_get(all, 0), "verdict"), "label");
    ck_assert_str_eq(test_text(json_array_get(all, 0), "label"), "0");
    ck_assert_int_eq(test_int(json_array_get(all, 0), "model_version"), 2);
    json_decref(all);
}

END_TEST

WEIR_TEST_MAIN_WITH("count", set_up, tear_down, who_walks_through_enters_leaves_and_crosses_once,
                    too_many_and_too_long_are_said_when_they_begin_and_end,
                    who_was_before_a_camera_that_fell_silent_leaves_by_the_clock,
                    a_silent_camera_is_left_while_another_goes_on,
                    without_a_count_each_thing_is_decided_once_by_its_class)
