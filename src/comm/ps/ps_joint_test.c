/* Joint steps: every worker's weights are those of a serial program, and no worker updates more than
 * its own slice. */
#include "base/test_main.h"
#include "comm/core/test_group.h"
#include "comm/ps.h"

#include <math.h>
#include <pthread.h>

enum { STEPS = 5, N_MOST = 70001, N_CUTS = 7, N_THREADS = 2 };

struct layout {
    int n_workers;
    size_t n_elems;
};

/* RMSProp without more: one element, in f32, as both programs do it. */
static void update_one(float *weight, float *mean, float gradient, double rate)
{
    *mean = 0.9f * *mean + 0.1f * gradient * gradient;
    *weight -= (float)rate * gradient / (sqrtf(*mean) + 1e-3f);
}

static double rate_of(uint64_t step)
{
    return 0.1 / (double)(step + 1);
}

static weir_status update(void *context, const struct weir_ps_step *step, float *weights,
                          const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    float *means = context;
    for (size_t i = 0; i < n_elems; i++) {
        update_one(&weights[i], &means[first_elem + i], gradient_sum[i] / (float)step->n_samples,
                   step->learning_rate);
    }
    return WEIR_OK;
}

/* A thread takes every second of the ranges that an array is cut into. */
struct taker {
    struct weir_comm *comm;
    const struct weir_ps_joint *joint;
    size_t first_cut;
    weir_status status;
};

static size_t cut_at(size_t n_elems, size_t i_cut)
{
    return n_elems * i_cut * i_cut / ((size_t)N_CUTS * N_CUTS);
}

static void *take_ranges(void *argument)
{
    struct taker *taker = argument;
    const size_t n = taker->joint->n_elems;
    for (size_t i = taker->first_cut; i < N_CUTS && taker->status == WEIR_OK; i += N_THREADS) {
        const size_t first = cut_at(n, i), end = cut_at(n, i + 1);
        taker->status = weir_ps_joint_update(taker->comm, taker->joint, first, end - first);
    }
    return NULL;
}

static weir_status update_by_threads(struct weir_comm *comm, const struct weir_ps_joint *joint)
{
    struct taker takers[N_THREADS];
    pthread_t threads[N_THREADS];
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < N_THREADS; i++) {
        takers[i] = (struct taker){.comm = comm, .joint = joint, .first_cut = i};
        if (pthread_create(&threads[i], NULL, take_ranges, &takers[i]) != 0) {
            return WEIR_ERR_NOMEM;
        }
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        status = status != WEIR_OK ? status : takers[i].status;
    }
    return status;
}

static int step_jointly(struct weir_comm *comm, void *context)
{
    const struct layout *layout = context;
    const size_t n = layout->n_elems;
    const int rank = weir_comm_rank(comm);
    float *gradients = NULL, *weights = NULL;
    float *expected = calloc(n, sizeof(float)), *means = calloc(n, sizeof(float));
    float *own_means = calloc(n, sizeof(float));
    RANK_CHECK(weir_ps_sees_workers(comm));
    RANK_CHECK(weir_comm_alloc(comm, (n + 5) * sizeof(float), (void **)&gradients) == WEIR_OK);
    RANK_CHECK(weir_comm_alloc(comm, (n + 9) * sizeof(float), (void **)&weights) == WEIR_OK);
    gradients += 3;
    for (size_t i = 0; i < n; i++) {
        weights[i] = expected[i] = test_value(1, 0, i);
    }
    weights[n] = (float)rank; /* behind the parameters: this worker's alone */
    for (uint64_t s = 0; s < STEPS; s++) {
        for (size_t i = 0; i < n; i++) {
            gradients[i] = test_value(10 + s, rank, i);
            update_one(&expected[i], &means[i], test_sum(10 + s, layout->n_workers, i) / 32.0f,
                       rate_of(s));
        }
        const struct weir_ps_joint joint = {
            .gradients = gradients,
            .weights = weights,
            .n_elems = n,
            .step = {.step = s, .learning_rate = rate_of(s), .n_samples = 32},
            .update = update,
            .context = own_means};
        RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
        RANK_CHECK(update_by_threads(comm, &joint) == WEIR_OK);
        RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
        RANK_CHECK(memcmp(weights, expected, n * sizeof *weights) == 0);
        RANK_CHECK(weights[n] == (float)rank);
        for (size_t i = 0; i < n; i++) {
            RANK_CHECK(test_is_same(gradients[i], test_value(10 + s, rank, i)));
        }
    }
    size_t first = 0, n_own = 0;
    weir_comm_slice(comm, n, rank, &first, &n_own);
    for (size_t i = 0; i < n; i++) {
        RANK_CHECK(own_means[i] == (i >= first && i < first + n_own ? means[i] : 0));
    }
    free(expected);
    free(means);
    free(own_means);
    return 0;
}

START_TEST(all_weights_are_the_serial_programs_and_each_worker_keeps_its_slice_of_the_state)
{
    static const struct layout layouts[] = {{1, 1000},  {2, N_MOST}, {2, 1},
                                            {3, 50000}, {4, 100},    {4, N_MOST}};
    struct layout layout = layouts[_i];
    ck_assert_int_eq(test_group_try("shm", layout.n_workers, 0, 1, step_jointly, &layout), 0);
}

END_TEST

static weir_status refuse(void *context, const struct weir_ps_step *step, float *weights,
                          const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    (void)step, (void)weights, (void)gradient_sum, (void)first_elem, (void)n_elems;
    return *(weir_status *)context;
}

static int try_what_fails(struct weir_comm *comm, void *context)
{
    (void)context;
    float *gradients = NULL, *weights = NULL, own[100] = {0};
    weir_status full = WEIR_ERR_NOSPACE;
    RANK_CHECK(weir_comm_alloc(comm, 400, (void **)&gradients) == WEIR_OK);
    RANK_CHECK(weir_comm_alloc(comm, 400, (void **)&weights) == WEIR_OK);
    struct weir_ps_joint joint = {.gradients = gradients,
                                  .weights = weights,
                                  .n_elems = 100,
                                  .update = refuse,
                                  .context = &full};
    RANK_CHECK(weir_ps_joint_update(comm, &joint, 0, 100) == WEIR_ERR_NOSPACE);
    joint.weights = own;
    RANK_CHECK(weir_ps_joint_update(comm, &joint, 0, 100) == WEIR_ERR_UNSUPPORTED);
    joint.weights = weights;
    joint.gradients = own;
    RANK_CHECK(weir_ps_joint_update(comm, &joint, 0, 100) == WEIR_ERR_UNSUPPORTED);
    joint.gradients = gradients;
    joint.n_elems = 2000; /* more than a page */
    RANK_CHECK(weir_ps_joint_update(comm, &joint, 0, 100) == WEIR_ERR_UNSUPPORTED);
    /* The group goes on, until a link is emulated. */
    RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    RANK_CHECK(weir_ps_sees_workers(comm));
    weir_comm_emulate_link(comm, INFINITY);
    RANK_CHECK(!weir_ps_sees_workers(comm));
    joint.n_elems = 100;
    RANK_CHECK(weir_ps_joint_update(comm, &joint, 0, 100) == WEIR_ERR_UNSUPPORTED);
    /* A link without a limit takes no time, and no sum is another. */
    int64_t one = 1;
    RANK_CHECK(weir_comm_allreduce(comm, &one, 1, WEIR_COMM_I64) == WEIR_OK);
    RANK_CHECK(one == 2);
    return 0;
}

START_TEST(what_fails_is_said_and_the_group_goes_on)
{
    ck_assert_int_eq(test_group_try("shm", 2, 0, 1, try_what_fails, NULL), 0);
}

END_TEST

static int see_nobody(struct weir_comm *comm, void *context)
{
    (void)context;
    float *memory = NULL;
    RANK_CHECK(!weir_ps_sees_workers(comm));
    RANK_CHECK(weir_comm_alloc(comm, 800, (void **)&memory) == WEIR_OK);
    const struct weir_ps_joint joint = {
        .gradients = memory, .weights = memory + 100, .n_elems = 100, .update = update};
    RANK_CHECK(weir_ps_joint_update(comm, &joint, 0, 100) == WEIR_ERR_UNSUPPORTED);
    return 0;
}

START_TEST(workers_on_different_hosts_do_not_see_each_other)
{
    ck_assert_int_eq(test_group_try("tcp", 2, 0, 1, see_nobody, NULL), 0);
    ck_assert_int_eq(test_group_try("ucx", 2, 0, 1, see_nobody, NULL), 0);
    ck_assert_int_eq(test_group_try("auto", 4, 0, 2, see_nobody, NULL), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ps_joint");
    TCase *tcase = tcase_create("ps_joint");
    tcase_add_loop_test(
        tcase, all_weights_are_the_serial_programs_and_each_worker_keeps_its_slice_of_the_state, 0,
        6);
    tcase_add_test(tcase, what_fails_is_said_and_the_group_goes_on);
    tcase_add_test(tcase, workers_on_different_hosts_do_not_see_each_other);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
