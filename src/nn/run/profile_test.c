/*
 * What a profile says of a step, against what is known without it: the graph's multiply-adds, the
 * clock around the call, and the rule that a thread does one thing at a time.
 */
#include "nn/profile.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/test_main.h"
#include "nn/peak.h"
#include "nn/zoo.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH     8
#define N_THREADS 2
#define N_STEPS   2

static struct weir_error err;
static char path[] = "/tmp/weir-profile-test-XXXXXX";
static double n_macs;

static struct weir_net *make_net_of(const char *model, bool is_training, int n_threads)
{
    struct weir_graph *graph = NULL;
    struct weir_net *net = NULL;
    const struct weir_shape shape = {3, 32, 32};
    ck_assert_msg(weir_zoo_build(model, &shape, 10, &graph, &err) == WEIR_OK, "%s", err.message);
    n_macs = (double)weir_graph_n_macs(graph);
    const struct weir_net_config config = {
        .batch = BATCH, .n_threads = n_threads, .is_training = is_training};
    ck_assert_msg(weir_net_create(graph, &config, &net, &err) == WEIR_OK, "%s", err.message);
    weir_graph_destroy(graph);
    weir_net_init_weights(net, 1);
    weir_net_weights_changed(net);
    return net;
}

static struct weir_net *make_net(const char *model, bool is_training)
{
    return make_net_of(model, is_training, N_THREADS);
}

static json_t *write_and_read(const struct weir_profile *profile, double peak_flops)
{
    json_t *trace = NULL;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    weir_status status = weir_profile_write(profile, path, 3, peak_flops, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    status = weir_json_load(path, (size_t)64 << 20, &trace, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    (void)unlink(path);
    return trace;
}

static double number(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    ck_assert_msg(json_is_number(value), "%s", key);
    return json_number_value(value);
}

/** Sum of args.flop over the events of a phase; all if NULL. */
static double flop_of(const json_t *trace, const char *phase)
{
    double flop = 0;
    size_t i = 0;
    json_t *event = NULL;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        const json_t *args = json_object_get(event, "args");
        const char *of = json_string_value(json_object_get(args, "phase"));
        if (of != NULL && (phase == NULL || strcmp(of, phase) == 0)) {
            flop += number(args, "flop");
        }
    }
    return flop;
}

START_TEST(a_trace_counts_the_multiply_adds_of_the_graph)
{
    struct weir_net *net = make_net("resnet18", true);
    struct weir_profile *profile = NULL;
    ck_assert_int_eq(weir_profile_create(net, N_STEPS, &profile, &err), WEIR_OK);
    for (uint64_t step = 0; step < N_STEPS; step++) {
        ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, NULL), WEIR_OK);
    }
    json_t *trace = write_and_read(profile, 0);
    const double forward = 2 * n_macs * BATCH * N_STEPS;
    ck_assert_double_eq_tol(flop_of(trace, "forward"), forward, 1e-6 * forward);
    ck_assert_double_eq_tol(flop_of(trace, "weight gradient"), forward, 1e-6 * forward);
    /* The image itself needs no gradient: 3 -> 64 channels, 3x3, 32x32 pixels. */
    const double first = 2.0 * 3 * 64 * 9 * 32 * 32 * BATCH * N_STEPS;
    ck_assert_double_eq_tol(flop_of(trace, "backward"), forward - first, 1e-6 * forward);
    ck_assert_double_eq_tol(number(json_object_get(trace, "otherData"), "flop"),
                            flop_of(trace, NULL), 1e-6 * forward);
    json_decref(trace);
    weir_profile_destroy(profile);
    weir_net_destroy(net);
}

END_TEST

START_TEST(operations_of_a_thread_follow_each_other_inside_the_step)
{
    struct weir_net *net = make_net("lenet", true);
    struct weir_profile *profile = NULL;
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, NULL), WEIR_OK);
    ck_assert_int_eq(weir_profile_create(net, 1, &profile, &err), WEIR_OK);
    uint64_t begin_ns = weir_mono_ns();
    ck_assert_int_eq(weir_net_step(net, 1, NULL, NULL, NULL), WEIR_OK);
    uint64_t end_ns = weir_mono_ns();
    weir_profile_span(profile, "step", begin_ns, end_ns);
    json_t *trace = write_and_read(profile, 1e11);
    double last_us[N_THREADS + 1] = {0}, busy_us = 0;
    const double step_us = (double)(end_ns - begin_ns) / 1e3;
    size_t i = 0, n_spans = 0;
    json_t *event = NULL;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        ck_assert_double_eq(number(event, "pid"), 3);
        size_t tid = (size_t)number(event, "tid");
        ck_assert_uint_le(tid, N_THREADS);
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) {
            continue;
        }
        double ts = number(event, "ts"), dur = number(event, "dur");
        ck_assert_double_ge(ts, last_us[tid] - 0.01);
        last_us[tid] = ts + dur;
        ck_assert_double_le(last_us[tid], step_us + 0.01);
        if (tid == N_THREADS) {
            n_spans++;
            ck_assert_double_eq_tol(dur, step_us, 0.01);
            continue;
        }
        busy_us += dur;
        const json_t *args = json_object_get(event, "args");
        ck_assert_double_eq_tol(number(args, "ms") * 1e3, dur, 0.01);
        if (dur > 0) {
            ck_assert_double_eq_tol(number(args, "peak_share"),
                                    number(args, "flop") / (dur / 1e6) / 1e11, 1e-3);
        }
    }
    ck_assert_uint_eq(n_spans, 1);
    ck_assert_double_le(busy_us, N_THREADS * step_us);
    json_decref(trace);
    weir_profile_destroy(profile);
    weir_net_destroy(net);
}

END_TEST

static double thread_cpu_us(void)
{
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* By the thread's own clock: a busy machine may stop it between two operations. */
START_TEST(a_thread_alone_does_little_but_operations)
{
    struct weir_net *net = make_net_of("lenet", true, 1);
    struct weir_profile *profile = NULL;
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, NULL), WEIR_OK);
    ck_assert_int_eq(weir_profile_create(net, 1, &profile, &err), WEIR_OK);
    double cpu_us = thread_cpu_us(), busy_us = 0;
    ck_assert_int_eq(weir_net_step(net, 1, NULL, NULL, NULL), WEIR_OK);
    cpu_us = thread_cpu_us() - cpu_us;
    json_t *trace = write_and_read(profile, 0), *event = NULL;
    size_t i = 0;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        bool is_operation = strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0;
        busy_us += is_operation ? number(event, "dur") : 0;
    }
    ck_assert_double_ge(busy_us, 0.7 * cpu_us);
    json_decref(trace);
    weir_profile_destroy(profile);
    weir_net_destroy(net);
}

END_TEST

START_TEST(what_has_no_room_is_counted)
{
    struct weir_net *net = make_net("lenet", false);
    struct weir_profile *profile = NULL, *second = NULL;
    struct weir_profile_sum sum, one;
    ck_assert_int_eq(weir_profile_create(net, 0, &profile, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_profile_create(net, 1, &profile, &err), WEIR_OK);
    ck_assert_int_eq(weir_profile_create(net, 1, &second, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_net_forward(net, BATCH, NULL), WEIR_OK);
    weir_profile_sum(profile, &one);
    ck_assert_uint_gt(one.n_records, 0);
    ck_assert_uint_eq(one.n_lost, 0);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(weir_net_forward(net, BATCH, NULL), WEIR_OK);
    }
    weir_profile_sum(profile, &sum);
    ck_assert_uint_gt(sum.n_lost, 0);
    ck_assert_uint_eq(sum.n_records + sum.n_lost, 10 * one.n_records);
    weir_profile_destroy(profile);
    ck_assert_int_eq(weir_net_forward(net, BATCH, NULL), WEIR_OK);
    weir_net_destroy(net);
}

END_TEST

/** Rates by processor time; a window in which a thread had to share its processor only counts if
 *  all are such. */
START_TEST(the_peak_is_that_of_the_best_window_in_which_no_processor_was_missing)
{
    const uint64_t ms = 1000000;
    struct weir_peak_window windows[2][3] = {
        {{10, 50 * ms, 50 * ms}, {12, 60 * ms, 20 * ms}, {11, 50 * ms, 50 * ms}},
        {{10, 40 * ms, 40 * ms}, {12, 60 * ms, 60 * ms}, {0, 0, 0}}};
    bool is_good = false;
    ck_assert_double_eq_tol(weir_peak_best(windows[0], 2, 3, &is_good), 200 + 250, 1e-9);
    ck_assert(is_good);
    windows[1][0].cpu_ns = 30 * ms;
    ck_assert_double_eq_tol(weir_peak_best(windows[0], 2, 3, &is_good), 600 + 200, 1e-9);
    ck_assert(!is_good);
    windows[1][2] = (struct weir_peak_window){4, 50 * ms, 46 * ms};
    ck_assert_double_eq_tol(weir_peak_best(windows[0], 2, 3, &is_good), 220 + 4e3 / 46, 1e-9);
    ck_assert(is_good);
}

END_TEST

START_TEST(the_peak_is_more_than_plain_c_can_do_and_less_than_any_processor)
{
    double flops = 0;
    ck_assert_msg(weir_peak_measure(WEIR_PEAK_F32, 1, 0.1, &flops, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_double_gt(flops, 1e9);
    ck_assert_double_lt(flops, 1e13);
    ck_assert_int_eq(weir_peak_measure(WEIR_PEAK_F32, 2, 0.1, &flops, &err), WEIR_OK);
    ck_assert_int_eq(weir_peak_measure(WEIR_PEAK_F32, 0, 0.1, &flops, &err), WEIR_ERR_INVALID);
    weir_status status = weir_peak_measure(WEIR_PEAK_BF16, 1, 0.1, &flops, &err);
    ck_assert(status == WEIR_OK || status == WEIR_ERR_UNSUPPORTED);
}

END_TEST

WEIR_TEST_MAIN("profile", a_trace_counts_the_multiply_adds_of_the_graph,
               operations_of_a_thread_follow_each_other_inside_the_step,
               a_thread_alone_does_little_but_operations, what_has_no_room_is_counted,
               the_peak_is_that_of_the_best_window_in_which_no_processor_was_missing,
               the_peak_is_more_than_plain_c_can_do_and_less_than_any_processor)
