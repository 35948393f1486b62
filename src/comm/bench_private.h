/** Inside the benchmark: options (bench.c), measuring (bench_measure.c), trying what is fastest
 *  (bench_tune.c), tables (bench_print.c). */
#ifndef WEIR_COMM_BENCH_PRIVATE_H
#define WEIR_COMM_BENCH_PRIVATE_H

#include "comm/bench.h"
#include "comm/core/plan.h"

#include <stdio.h>

enum { BENCH_MAX_SIZES = 256, BENCH_MAX_SAMPLES = 1000 };

struct bench_options {
    int64_t ranks, split, rank, iterations, warmup, timeout_s, factor;
    char *bytes, *begin, *end, *type, *transport, *algorithm, *tuning, *tune, *wire;
    char *hosts, *launcher, *rendezvous, *secret, *format;
    bool is_private, is_help;
};

/** What is measured: the options, understood. */
struct bench_plan {
    const struct bench_options *options;
    enum weir_comm_type type;
    size_t sizes[BENCH_MAX_SIZES]; /**< Bytes. */
    size_t n_sizes;
    bool is_json;
};

/** One size, as all ranks saw it. */
struct bench_row {
    size_t bytes, n_elems;
    double time_us, least_us; /**< Median and least of the samples, each of the slowest rank. */
    int n_samples;
    char algorithm[24]; /**< "ring#256K"; "in-place" in shared memory. */
    int64_t n_wrong;    /**< Elements that were not the serial sum, over all ranks. */
};

/** "4", "64K", "25M", "1G": powers of 1024. */
weir_status bench_size_parse(const char *text, size_t *out_bytes,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Sizes to measure: the list `--bytes`, or from begin to end by a factor. */
weir_status bench_sizes(const struct bench_options *options, struct bench_plan *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

const char *bench_type_name(enum weir_comm_type type);

/**
 * Check and measure one size. Collective.
 * @param buf  Of plan->sizes' largest; what is in it does not matter.
 */
weir_status bench_measure(struct weir_comm *comm, const struct bench_plan *plan, size_t bytes,
                          void *buf, struct bench_row *out) WEIR_MUST_CHECK;

/**
 * Measure each size with every algorithm, and some of them with messages of several sizes; put the
 * fastest of each size into *out_rows, and the plan that follows from them into the file --tune.
 * Collective.
 * @return UNSUPPORTED in shared memory.
 */
weir_status bench_tune(struct weir_comm *comm, const struct bench_plan *plan, void *buf,
                       struct bench_row *out_rows, struct weir_error *err) WEIR_MUST_CHECK;

/** Bytes a second over 1e9. */
double bench_algorithm_gb_s(const struct bench_row *row);
double bench_bus_gb_s(const struct bench_row *row, int n_ranks);

void bench_print_head(const struct weir_comm *comm, const struct bench_plan *plan, FILE *file);
void bench_print_row(const struct weir_comm *comm, const struct bench_plan *plan,
                     const struct bench_row *row, FILE *file);
void bench_print_foot(const struct weir_comm *comm, const struct bench_row *rows, size_t n_rows,
                      FILE *file);

/** All of it as one JSON object. */
weir_status bench_print_json(const struct weir_comm *comm, const struct bench_plan *plan,
                             const struct bench_row *rows, size_t n_rows,
                             FILE *file) WEIR_MUST_CHECK;

#endif
