/* Whatever a sink does with its batches, each decision is taken, in order and once, or is set aside. */
#include "predict/consumer.h"

#include "base/clock.h"
#include "base/rng.h"
#include "predict/test_support.h"

#include <string.h>

#define N_FRAMES 400

static struct test_dir dir;
static struct weir_error err;
static struct outbox *outbox;
static struct refused *refused;
static struct consumer *consumer;

/* The sink: what it does is drawn. */
struct sink {
    int64_t note;
    struct outbox_reader *reader;
};

static struct weir_rng rng;
static int most_at_once, fails_pct;
static bool is_bad[N_FRAMES];
static int n_taken[N_FRAMES];
static int64_t last_taken;
static atomic_int n_deliveries;
static atomic_bool takes_nothing;
static json_t *told; /* of a passage; read when the consumer has ended */

static weir_status open_sink(const struct sink_config *config, struct sink **out,
                             struct weir_error *error)
{
    (void)error;
    *out = weir_xalloc(sizeof **out);
    **out = (struct sink){outbox_reader_note(config->reader), config->reader};
    ck_assert_int_eq((*out)->note, last_taken + 1); /* saved beside the place */
    return WEIR_OK;
}

static int64_t frame_of(const json_t *decisions, size_t i)
{
    return json_integer_value(json_object_get(json_array_get(decisions, i), "frame"));
}

static weir_status deliver(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                           struct weir_error *error)
{
    atomic_fetch_add(&n_deliveries, 1);
    outcome->retry_ms = 1;
    ck_assert_uint_eq(outcome->n, json_array_size(decisions));
    if (atomic_load(&takes_nothing) || (int)weir_rng_below(&rng, 100) < fails_pct) {
        return weir_error_set(error, WEIR_ERR_UNAVAILABLE, "nothing answers");
    }
    if ((int)outcome->n > most_at_once && weir_rng_below(&rng, 2) == 0) {
        return weir_error_set(error, WEIR_ERR_LIMIT, "too many at once");
    }
    outcome->n = WEIR_MIN(outcome->n, (size_t)most_at_once);
    for (size_t i = 0; i < outcome->n; i++) {
        if (is_bad[frame_of(decisions, i)]) {
            return weir_error_set(error, WEIR_ERR_INVALID, "a bad one");
        }
    }
    for (size_t i = 0; i < outcome->n; i++) {
        int64_t frame = frame_of(decisions, i);
        ck_assert_int_gt(frame, last_taken);
        last_taken = frame;
        n_taken[frame]++;
        sink->note = frame + 1;
    }
    return WEIR_OK;
}

static int64_t sync_sink(struct sink *sink)
{
    return sink->note;
}

static void close_sink(struct sink *sink)
{
    free(sink);
}

static const struct sink_ops ops = {.open = open_sink,
                                    .deliver = deliver,
                                    .sync = sync_sink,
                                    .close = close_sink,
                                    .waits_event = "test_waits"};

static void forget(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

static void set_up(void)
{
    test_dir_make(&dir);
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"), .on_durable = forget};
    ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
    refused = refused_open(dir.path);
    memset(is_bad, 0, sizeof is_bad);
    memset(n_taken, 0, sizeof n_taken);
    atomic_store(&n_deliveries, 0);
    atomic_store(&takes_nothing, false);
    last_taken = -1;
    most_at_once = N_FRAMES;
    fails_pct = 0;
}

static void tear_down(void)
{
    refused_close(refused);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

static void start(void)
{
    const struct consumer_config config = {
        .name = "test", .ops = &ops, .outbox = outbox, .refused = refused};
    ck_assert_int_eq(consumer_start(&config, &consumer, &err), WEIR_OK);
}

static void put_frames(int first, int n)
{
    for (int frame = first; frame < first + n; frame++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id-%d", frame);
        test_outbox_put(outbox, id, "c", frame, NULL);
    }
    ck_assert(outbox_flush(outbox, 20000));
}

/* Frames in refused.jsonl, counted up. */
static void count_refused(int *counts)
{
    FILE *file = fopen(test_path(&dir, "refused.jsonl"), "re");
    char line[512];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_t *decision = json_loads(line, 0, NULL);
        ck_assert_ptr_nonnull(decision);
        counts[test_int(decision, "frame")]++;
        json_decref(decision);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

START_TEST(each_decision_is_taken_once_in_order_or_set_aside)
{
    uint64_t seed = weir_mono_ns();
    for (uint64_t round = 0; round < 5; round++) {
        int set_aside[N_FRAMES] = {0}, n_bad = 0;
        set_up();
        weir_rng_init(&rng, seed, round);
        most_at_once = 1 + (int)weir_rng_below(&rng, 60);
        fails_pct = (int)weir_rng_below(&rng, 40);
        for (int i = 0; i < N_FRAMES; i++) {
            is_bad[i] = weir_rng_below(&rng, 30) == 0;
            n_bad += is_bad[i];
        }
        for (int first = 0; first < N_FRAMES; first += 100) { /* a start each */
            put_frames(first, 100);
            start();
            consumers_stop(&consumer, 1, 20000);
        }
        count_refused(set_aside);
        for (int i = 0; i < N_FRAMES; i++) {
            ck_assert_msg(
                n_taken[i] == !is_bad[i] && set_aside[i] == is_bad[i],
                "seed %llu, round %llu: frame %d is taken %d times and set aside %d times",
                (unsigned long long)seed, (unsigned long long)round, i, n_taken[i], set_aside[i]);
        }
        ck_assert_int_eq(refused_count(refused), n_bad);
        tear_down();
    }
}

END_TEST

/* Halving, not one by one: about two tries for each halving of 200, once for each that is bad. */
START_TEST(one_that_is_bad_costs_few_tries)
{
    set_up();
    is_bad[77] = true;
    put_frames(0, 200);
    start();
    consumers_stop(&consumer, 1, 20000);
    ck_assert_int_le(atomic_load(&n_deliveries), 2 * 8 + 2);
    ck_assert_int_eq(refused_count(refused), 1);
    tear_down();
}

END_TEST

static bool has_contact(void *wanted)
{
    json_t *status = consumer_status(consumer);
    bool is_it = json_is_true(json_object_get(status, "connected")) == *(bool *)wanted &&
                 test_int(status, "taken") == (*(bool *)wanted ? 5 : 0);
    json_decref(status);
    return is_it;
}

START_TEST(people_see_since_when_and_why_it_takes_nothing)
{
    bool yes = true, no = false;
    char began[WEIR_TIME_TEXT_BYTES];
    weir_time_format(weir_time_ms(), began);
    set_up();
    atomic_store(&takes_nothing, true);
    put_frames(0, 5);
    start();
    ck_assert(test_wait(has_contact, &no));
    json_t *status = consumer_status(consumer);
    ck_assert_str_eq(test_text(status, "error"), "nothing answers");
    ck_assert_str_ge(test_text(status, "since"), began);
    ck_assert_str_eq(test_text(status, "name"), "test");
    json_decref(status);
    atomic_store(&takes_nothing, false);
    ck_assert(test_wait(has_contact, &yes));
    status = consumer_status(consumer);
    ck_assert_str_eq(test_text(status, "error"), "nothing answers"); /* the last */
    ck_assert_int_eq(test_int(status, "refused"), 0);
    json_decref(status);
    consumers_stop(&consumer, 1, 20000);
    tear_down();
}

END_TEST

START_TEST(what_is_not_taken_in_the_grace_comes_again_at_the_next_start)
{
    set_up();
    atomic_store(&takes_nothing, true);
    put_frames(0, 5);
    start();
    consumers_stop(&consumer, 1, 1);
    atomic_store(&takes_nothing, false);
    start();
    consumers_stop(&consumer, 1, 20000);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(n_taken[i], 1);
    }
    tear_down();
}

END_TEST

static weir_status keep_passage(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                                struct weir_error *error)
{
    (void)sink;
    (void)outcome;
    (void)error;
    told = json_incref(json_object_get(json_array_get(decisions, 0), "passage"));
    return WEIR_OK;
}

static const char *no_options(const void *options)
{
    (void)options;
    return "here";
}

/* A passage that could have been of two people, as a consumer is told of it. */
static json_t *tell_of_passage(const struct sink_ops *as)
{
    struct decision_near nearest[] = {{"ada", 0.9}, {"ben", 0.4}};
    struct decision_passage passage = {.id = "1-1", .nearest = nearest, .n_nearest = 2};
    struct outbox_item item = {.decision = decision_create(), .received_ns = weir_mono_ns()};
    const struct consumer_config config = {
        .name = "test", .ops = as, .outbox = outbox, .refused = refused};
    (void)snprintf(item.decision->id, sizeof item.decision->id, "id");
    item.decision->camera = "c";
    item.decision->passage = &passage;
    outbox_put(outbox, &item);
    ck_assert(outbox_flush(outbox, 20000));
    ck_assert_int_eq(consumer_start(&config, &consumer, &err), WEIR_OK);
    consumers_stop(&consumer, 1, 20000);
    return told;
}

START_TEST(sinks_are_not_told_whom_else_it_could_have_been)
{
    struct sink_ops server = ops, named = ops;
    server.deliver = named.deliver = keep_passage;
    named.identity = no_options;
    set_up();
    json_t *passage = tell_of_passage(&server);
    ck_assert_uint_eq(json_array_size(json_object_get(passage, "nearest")), 2);
    json_decref(passage);
    tear_down();
    set_up();
    passage = tell_of_passage(&named);
    ck_assert_str_eq(test_text(passage, "id"), "1-1");
    ck_assert_ptr_null(json_object_get(passage, "nearest"));
    ck_assert_ptr_null(json_object_get(passage, "frames"));
    ck_assert_ptr_null(json_object_get(passage, "visitor"));
    json_decref(passage);
    tear_down();
}

END_TEST

WEIR_TEST_MAIN("consumer", each_decision_is_taken_once_in_order_or_set_aside,
               one_that_is_bad_costs_few_tries, people_see_since_when_and_why_it_takes_nothing,
               what_is_not_taken_in_the_grace_comes_again_at_the_next_start,
               sinks_are_not_told_whom_else_it_could_have_been)
