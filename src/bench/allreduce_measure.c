#include "bench/allreduce.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE_NS = 100000,        /**< A sample is long enough for the clock and the barrier's skew. */
    MAX_PER_SAMPLE = 1000,     /**< All-reduces of one sample. */
    SIZE_NS_MOST = 2000000000, /**< About as long as one size may take. */
    LEAST_SAMPLES = 5,
};

/* ---- is it right? --------------------------------------------------------------------------- */

/* Small whole numbers, so that every order of the sum gives the same, in 16 bits on the wire too.
 */
static int64_t value(int rank, size_t i, int n_ranks)
{
    uint64_t x = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) +
                 (uint64_t)rank * UINT64_C(0xbf58476d1ce4e5b9);
    int64_t most = WEIR_MAX(1, 128 / n_ranks);
    return (int64_t)((x >> 40) % (uint64_t)(2 * most + 1)) - most;
}

static void put(void *buf, enum weir_comm_type type, size_t i, int64_t number)
{
    switch (type) {
    case WEIR_COMM_F32:
        ((float *)buf)[i] = (float)number;
        break;
    case WEIR_COMM_F64:
        ((double *)buf)[i] = (double)number;
        break;
    case WEIR_COMM_I64:
        ((int64_t *)buf)[i] = number;
        break;
    }
}

static bool is_equal(const void *buf, enum weir_comm_type type, size_t i, int64_t number)
{
    switch (type) {
    case WEIR_COMM_F32:
        return ((const float *)buf)[i] == (float)number;
    case WEIR_COMM_F64:
        return ((const double *)buf)[i] == (double)number;
    case WEIR_COMM_I64:
        return ((const int64_t *)buf)[i] == number;
    }
    return false;
}

static weir_status check(struct weir_comm *comm, enum weir_comm_type type, void *buf,
                         size_t n_elems, int64_t *out_n_wrong)
{
    int n_ranks = weir_comm_size(comm);
    int64_t n_wrong = 0;
    for (size_t i = 0; i < n_elems; i++) {
        put(buf, type, i, value(weir_comm_rank(comm), i, n_ranks));
    }
    WEIR_TRY(weir_comm_allreduce(comm, buf, n_elems, type));
    for (size_t i = 0; i < n_elems; i++) {
        int64_t sum = 0;
        for (int r = 0; r < n_ranks; r++) {
            sum += value(r, i, n_ranks);
        }
        n_wrong += !is_equal(buf, type, i, sum);
    }
    WEIR_TRY(weir_comm_allreduce(comm, &n_wrong, 1, WEIR_COMM_I64));
    *out_n_wrong = n_wrong;
    return WEIR_OK;
}

/* ---- how fast is it? ------------------------------------------------------------------------ */

static weir_status time_once(struct weir_comm *comm, enum weir_comm_type type, void *buf,
                             size_t n_elems, int n_times, double *out_ns)
{
    WEIR_TRY(weir_comm_barrier(comm));
    uint64_t start_ns = weir_mono_ns();
    for (int i = 0; i < n_times; i++) {
        WEIR_TRY(weir_comm_allreduce(comm, buf, n_elems, type));
    }
    *out_ns = (double)(weir_mono_ns() - start_ns) / n_times;
    return WEIR_OK;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* An all-gather of samples: the sum of arrays that are 0 except in the own row. */
static weir_status gather(struct weir_comm *comm, double *samples, size_t n, double *slowest)
{
    int n_ranks = weir_comm_size(comm);
    WEIR_AUTO(weir_auto_free) double *all = calloc(n * (size_t)n_ranks, sizeof *all);
    if (all == NULL) {
        return WEIR_ERR_NOMEM;
    }
    memcpy(all + n * (size_t)weir_comm_rank(comm), samples, n * sizeof *samples);
    WEIR_TRY(weir_comm_allreduce(comm, all, n * (size_t)n_ranks, WEIR_COMM_F64));
    for (size_t i = 0; i < n; i++) {
        slowest[i] = 0;
        for (int r = 0; r < n_ranks; r++) {
            slowest[i] = WEIR_MAX(slowest[i], all[n * (size_t)r + i]);
        }
    }
    return WEIR_OK;
}

static weir_status measure_time(struct weir_comm *comm, const struct allreduce_plan *plan,
                                void *buf, struct allreduce_row *row)
{
    double guess_ns = 0, slowest[ALLREDUCE_MAX_SAMPLES], samples[ALLREDUCE_MAX_SAMPLES];
    for (int64_t i = 0; i < plan->options->warmup; i++) {
        WEIR_TRY(time_once(comm, plan->type, buf, row->n_elems, 1, &guess_ns));
    }
    WEIR_TRY(time_once(comm, plan->type, buf, row->n_elems, 3, &guess_ns));
    /* All must agree on how often: rank 0's guess. */
    WEIR_TRY(weir_comm_broadcast(comm, &guess_ns, sizeof guess_ns, 0));
    double per_sample = WEIR_MIN(WEIR_MAX(SAMPLE_NS / (guess_ns + 1), 1), MAX_PER_SAMPLE);
    double most = SIZE_NS_MOST / (per_sample * guess_ns + 1);
    row->n_samples =
        (int)WEIR_MIN((double)plan->options->iterations, WEIR_MAX(most, (double)LEAST_SAMPLES));
    for (int i = 0; i < row->n_samples; i++) {
        WEIR_TRY(time_once(comm, plan->type, buf, row->n_elems, (int)per_sample, &samples[i]));
    }
    WEIR_TRY(gather(comm, samples, (size_t)row->n_samples, slowest));
    qsort(slowest, (size_t)row->n_samples, sizeof slowest[0], by_size);
    row->time_us = slowest[row->n_samples / 2] / 1e3;
    row->least_us = slowest[0] / 1e3;
    return WEIR_OK;
}

weir_status allreduce_measure(struct weir_comm *comm, const struct allreduce_plan *plan,
                              size_t bytes, void *buf, struct allreduce_row *out)
{
    struct allreduce_row row = {.n_elems = bytes / weir_comm_type_size(plan->type)};
    row.bytes = row.n_elems * weir_comm_type_size(plan->type);
    WEIR_TRY(check(comm, plan->type, buf, row.n_elems, &row.n_wrong));
    weir_comm_algorithm(comm, row.bytes, row.algorithm, sizeof row.algorithm);
    memset(buf, 0, row.bytes); /* sums of sums would run away */
    WEIR_TRY(measure_time(comm, plan, buf, &row));
    *out = row;
    return WEIR_OK;
}
