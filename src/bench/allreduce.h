/**
 * The all-reduce benchmark from inside: options and ranks (allreduce_main.c), measuring one size
 * (allreduce_measure.c), finding the fastest algorithm (allreduce_tune.c), tables and JSON
 * (allreduce_print.c).
 */
#ifndef WEIR_BENCH_ALLREDUCE_H
#define WEIR_BENCH_ALLREDUCE_H

#include "bench/bench.h"
#include "comm/comm.h"

#include <stdio.h>

enum { ALLREDUCE_MAX_SIZES = 256, ALLREDUCE_MAX_SAMPLES = 1000 };

/** The options as given; the table of options fills it. */
struct allreduce_options {
    int64_t ranks, split, rank, iterations, warmup, timeout_s, factor;
    char *bytes, *begin, *end, *type, *transport, *algorithm, *tuning, *tune, *wire;
    char *hosts, *launcher, *rendezvous, *secret, *format;
    bool is_private, is_help;
};

/** What is measured: the options, checked and resolved. */
struct allreduce_plan {
    const struct allreduce_options *options;
    enum weir_comm_type type;
    size_t sizes[ALLREDUCE_MAX_SIZES]; /**< Bytes. */
    size_t n_sizes;
    bool is_json;
};

/** The figures of one size, equal on all ranks. */
struct allreduce_row {
    size_t bytes, n_elems;
    double time_us, least_us; /**< Median and least of the samples, each of the slowest rank. */
    int n_samples;
    char algorithm[24]; /**< "ring#256K"; "in-place" in shared memory. */
    int64_t n_wrong;    /**< Elements that were not the serial sum, over all ranks. */
};

/** Parse "4", "64K", "25M", "1G": powers of 1024. @return INVALID with a sentence. */
weir_status allreduce_size_parse(const char *text, size_t *out_bytes,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The sizes to measure: the list `--bytes`, or from begin to end by a factor. @return INVALID,
 *  LIMIT. */
weir_status allreduce_sizes(const struct allreduce_options *options, struct allreduce_plan *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

const char *allreduce_type_name(enum weir_comm_type type);

/**
 * Check and measure one size. Collective.
 *
 * @param buf  As large as the largest of plan->sizes; overwritten.
 */
weir_status allreduce_measure(struct weir_comm *comm, const struct allreduce_plan *plan,
                              size_t bytes, void *buf, struct allreduce_row *out) WEIR_MUST_CHECK;

/**
 * Measure each size with every algorithm, and some algorithms with messages of several sizes. Put
 * the fastest of each size into *out_rows, and the resulting rules into the file --tune (rank 0).
 * Collective.
 *
 * @return UNSUPPORTED in shared memory.
 */
weir_status allreduce_tune(struct weir_comm *comm, const struct allreduce_plan *plan, void *buf,
                           struct allreduce_row *out_rows, struct weir_error *err) WEIR_MUST_CHECK;

/** Bandwidths in 1e9 bytes per second (bench.h). */
double allreduce_algorithm_gb_s(const struct allreduce_row *row);

void allreduce_print_head(const struct weir_comm *comm, const struct allreduce_plan *plan,
                          FILE *file);
void allreduce_print_row(const struct weir_comm *comm, const struct allreduce_plan *plan,
                         const struct allreduce_row *row, FILE *file);
void allreduce_print_foot(const struct weir_comm *comm, const struct allreduce_row *rows,
                          size_t n_rows, FILE *file);

/** Print everything as one JSON object. */
weir_status allreduce_print_json(const struct weir_comm *comm, const struct allreduce_plan *plan,
                                 const struct allreduce_row *rows, size_t n_rows,
                                 FILE *file) WEIR_MUST_CHECK;

#endif
