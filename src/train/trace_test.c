/* The trace of a training: of as many steps as asked for, and of no consequence for what is
 * learned.
 */
#include "train/test_support.h"

#include "base/json.h"

static char path[128];

/** How many events have this name. */
static size_t n_named(const json_t *trace, const char *name)
{
    size_t i = 0, n = 0;
    json_t *event = NULL;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        n += strcmp(json_string_value(json_object_get(event, "name")), name) == 0;
    }
    return n;
}

static const float *train(const char *profile, int workers, int micro_batches)
{
    struct weir_train_config config = fixture_config(workers, 0, 2);
    size_t n = 0;
    config.output.profile = (char *)(uintptr_t)profile;
    config.output.profile_steps = 3;
    config.loop.micro_batches = micro_batches;
    fixture_clear();
    fixture_train(&config, NULL);
    const float *weights = fixture_weights(&n);
    return (const float *)(void *)weir_arena_memdup(&fixture.arena, weights, n * sizeof *weights);
}

START_TEST(a_trace_of_steps_is_written_and_changes_nothing)
{
    (void)snprintf(path, sizeof path, "%s/trace.json", fixture.dir);
    for (int runs = 1; runs <= 2; runs++) {
        json_t *trace = NULL;
        size_t n = 0;
        const float *plain = train(NULL, 2, runs), *traced = train(path, 2, runs);
        (void)fixture_weights(&n);
        ck_assert_int_eq(memcmp(plain, traced, n * sizeof *plain), 0);
        weir_status status = weir_json_load(path, (size_t)16 << 20, &trace, &fixture.err);
        ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
        ck_assert_uint_eq(n_named(trace, "step"), 3);
        ck_assert_uint_eq(n_named(trace, "update"), 3);
        ck_assert_uint_ge(n_named(trace, "conv forward"), (size_t)(3 * runs));
        const json_t *other = json_object_get(trace, "otherData");
        ck_assert_int_eq(json_integer_value(json_object_get(other, "lost")), 0);
        json_decref(trace);
    }
}

END_TEST

START_TEST(a_trace_that_cannot_be_written_ends_the_training_with_its_name)
{
    struct weir_train_config config = fixture_config(1, 0, 2);
    char nowhere[] = "/nonexistent/trace.json";
    config.output.profile = nowhere;
    config.output.profile_steps = 1;
    config.group.max_restarts = 0;
    ck_assert_int_ne(weir_train_launch(&config, NULL, &fixture.err), WEIR_OK);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, nowhere));
}

END_TEST

WEIR_TEST_MAIN_WITH("trace", fixture_make, fixture_drop,
                    a_trace_of_steps_is_written_and_changes_nothing,
                    a_trace_that_cannot_be_written_ends_the_training_with_its_name)
