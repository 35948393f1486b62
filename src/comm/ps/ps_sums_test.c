/* Updates that need sums over all elements, of which each server has some: against a serial program
 * that has all. */
#include "comm/ps.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "comm/core/test_group.h"

#include <signal.h>

enum { STEPS = 3, N_MOST = 100003, UNIT = 1024, N_SUMS = N_MOST / UNIT + 1, N_TRANSPORTS = 3 };

static const char *const transports[N_TRANSPORTS] = {"shm", "tcp", "ucx"};

struct layout {
    int n_workers, n_servers, n_hosts;
    size_t n_elems;
};

/* ---- the rule, for servers and for the serial program --------------------------------------- */

/** Every weight depends on the sums of both passes, the second of which depends on the first. */
struct rule {
    double sums[N_SUMS], totals[2];
};

/** A sum by unit of elements, in which it lies. */
static void measure(void *context, const struct weir_ps_step *step, size_t i_pass,
                    const float *weights, const float *gradient_sum, size_t first_elem,
                    size_t n_elems)
{
    struct rule *rule = context;
    for (size_t i = 0; i < n_elems; i++) {
        double g = gradient_sum[i], w = weights[i];
        rule->sums[(first_elem + i) / UNIT] +=
            i_pass == 0 ? g * g : (w + rule->totals[0]) * g * step->learning_rate;
    }
}

static void conclude(void *context, size_t i_pass)
{
    struct rule *rule = context;
    rule->totals[i_pass] = 0;
    for (size_t i = 0; i < N_SUMS; i++) {
        rule->totals[i_pass] += rule->sums[i];
    }
}

static weir_status update(void *context, const struct weir_ps_step *step, float *weights,
                          const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    const struct rule *rule = context;
    (void)first_elem;
    for (size_t i = 0; i < n_elems; i++) {
        weights[i] -= (float)(step->learning_rate * (double)gradient_sum[i] /
                              (rule->totals[0] + rule->totals[1] * rule->totals[1]));
    }
    return WEIR_OK;
}

static void serial_step(struct rule *rule, const struct weir_ps_step *step, float *weights,
                        const float *gradient_sum, size_t n_elems)
{
    for (size_t i_pass = 0; i_pass < 2; i_pass++) {
        memset(rule->sums, 0, sizeof rule->sums);
        measure(rule, step, i_pass, weights, gradient_sum, 0, n_elems);
        conclude(rule, i_pass);
    }
    (void)update(rule, step, weights, gradient_sum, 0, n_elems);
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static int serve(struct weir_comm *comm)
{
    struct rule *rule = calloc(1, sizeof *rule);
    const struct weir_ps_sums sums = {.n_passes = 2,
                                      .sums = rule->sums,
                                      .n_sums = N_SUMS,
                                      .measure = measure,
                                      .conclude = conclude};
    const struct weir_ps_config config = {.sums = &sums};
    RANK_CHECK(weir_ps_serve(comm, &config, update, rule) == WEIR_OK);
    free(rule);
    return 0;
}

static int work(struct weir_comm *comm, size_t n)
{
    struct rule *rule = calloc(1, sizeof *rule);
    float *weights = calloc(n + 1, sizeof *weights), *expected = calloc(n + 1, sizeof *weights);
    float *gradients = calloc(n + 1, sizeof *weights), *total = calloc(n + 1, sizeof *weights);
    for (size_t i = 0; i < n; i++) {
        weights[i] = expected[i] = test_value(1, 0, i);
    }
    RANK_CHECK(weir_ps_start(comm, weights, n) == WEIR_OK);
    for (uint64_t s = 0; s < STEPS; s++) {
        const struct weir_ps_step step = {.step = s, .learning_rate = 0.5, .n_samples = 1};
        for (size_t i = 0; i < n; i++) {
            gradients[i] = test_value(10 + s, weir_comm_rank(comm), i);
            total[i] = test_sum(10 + s, weir_comm_n_workers(comm), i);
        }
        serial_step(rule, &step, expected, total, n);
        RANK_CHECK(weir_ps_push_pull(comm, gradients, weights, n, &step) == WEIR_OK);
        RANK_CHECK(memcmp(weights, expected, n * sizeof *weights) == 0);
    }
    free(total);
    free(gradients);
    free(expected);
    free(weights);
    free(rule);
    return 0;
}

static int run(struct weir_comm *comm, void *context)
{
    const struct layout *layout = context;
    if (weir_comm_rank(comm) >= layout->n_workers) {
        return serve(comm);
    }
    /* And again, with so few that not all servers have any, and then with all. */
    int result = work(comm, layout->n_elems);
    result = result == 0 ? work(comm, UNIT + 1) : result;
    result = result == 0 ? work(comm, layout->n_elems) : result;
    RANK_CHECK(result == 0 && weir_ps_stop(comm) == WEIR_OK);
    return 0;
}

START_TEST(sums_over_all_servers_are_those_of_the_serial_program)
{
    static const struct layout layouts[] = {
        {2, 1, 1, N_MOST}, {2, 2, 1, N_MOST}, {1, 3, 1, 5000}, {3, 4, 1, 70001}, {2, 2, 2, N_MOST}};
    struct layout layout = layouts[_i / N_TRANSPORTS];
    const char *transport = layout.n_hosts > 1 ? "auto" : transports[_i % N_TRANSPORTS];
    ck_assert_int_eq(
        test_group_try(transport, layout.n_workers, layout.n_servers, layout.n_hosts, run, &layout),
        0);
}

END_TEST

/* ---- failures ------------------------------------------------------------------------------- */

static void die(void *context, const struct weir_ps_step *step, size_t i_pass, const float *weights,
                const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    if (i_pass == 1) {
        (void)raise(SIGKILL);
    }
    measure(context, step, i_pass, weights, gradient_sum, first_elem, n_elems);
}

/* The last rank, a server, dies between two passes: the other server waits for its sums then. */
static int lose_server(struct weir_comm *comm, void *context)
{
    enum { N = 5000 };

    static struct rule rule;
    static float weights[N], gradients[N];
    const int victim = weir_comm_size(comm) - 1;
    const struct weir_ps_sums sums = {.n_passes = 2,
                                      .sums = rule.sums,
                                      .n_sums = N_SUMS,
                                      .measure = weir_comm_rank(comm) == victim ? die : measure,
                                      .conclude = conclude};
    const struct weir_ps_config config = {.sums = &sums};
    const struct weir_ps_step step = {.step = 0, .learning_rate = 1, .n_samples = 1};
    int at_fault = -1;
    weir_status status;
    (void)context;
    if (weir_comm_rank(comm) >= weir_comm_n_workers(comm)) {
        status = weir_ps_serve(comm, &config, update, &rule);
    } else {
        RANK_CHECK(weir_ps_start(comm, weights, N) == WEIR_OK);
        status = weir_ps_push_pull(comm, gradients, weights, N, &step);
    }
    RANK_CHECK(status == WEIR_ERR_PEER);
    RANK_CHECK(weir_comm_failure(comm, &at_fault, NULL) == WEIR_ERR_PEER && at_fault == victim);
    return 0;
}

START_TEST(a_server_that_dies_while_sums_are_added_up_is_named_to_all)
{
    struct test_group group;
    test_group_init(&group, 4, transports[_i]);
    group.n_servers = 2;
    uint64_t start_ns = weir_mono_ns();
    test_group_start(&group, lose_server, NULL);
    for (int r = 0; r < group.size; r++) {
        ck_assert_int_eq(test_group_wait(&group, r), r == group.size - 1 ? 256 + SIGKILL : 0);
    }
    ck_assert_uint_lt(weir_mono_ns() - start_ns, UINT64_C(10000000000)); /* deadline: 60 s */
    test_group_fini(&group);
}

END_TEST

static int be_relaxed(struct weir_comm *comm, void *context)
{
    static struct rule rule;
    const struct weir_ps_sums sums = {.n_passes = 1,
                                      .sums = rule.sums,
                                      .n_sums = N_SUMS,
                                      .measure = measure,
                                      .conclude = conclude};
    const struct weir_ps_config config = {.sums = &sums};
    float weights[10] = {0};
    (void)context;
    if (weir_comm_rank(comm) >= weir_comm_n_workers(comm)) {
        RANK_CHECK(weir_ps_serve(comm, &config, update, &rule) == WEIR_ERR_UNSUPPORTED);
    } else {
        RANK_CHECK(weir_ps_start_relaxed(comm, weights, 10, 1) == WEIR_ERR_PEER);
    }
    return 0;
}

START_TEST(relaxed_workers_and_sums_do_not_go_together)
{
    ck_assert_int_eq(test_group_try(transports[_i], 2, 1, 1, be_relaxed, NULL), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ps_sums");
    TCase *tcase = tcase_create("ps_sums");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, sums_over_all_servers_are_those_of_the_serial_program, 0,
                        4 * N_TRANSPORTS + 1);
    tcase_add_loop_test(tcase, a_server_that_dies_while_sums_are_added_up_is_named_to_all, 0,
                        N_TRANSPORTS);
    tcase_add_loop_test(tcase, relaxed_workers_and_sums_do_not_go_together, 0, N_TRANSPORTS);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
