/**
 * The training benchmark from inside: what is asked for (training_options.c, training_models.c),
 * the measured ranks (training_rank.c, training_steps.c), statistics (training_stats.c), an
 * emulated network (training_fabric.c), what is printed (training_print.c).
 */
#ifndef WEIR_BENCH_TRAINING_H
#define WEIR_BENCH_TRAINING_H

#include "bench/bench.h"
#include "train/worker.h"

#include "bench/spawn.h"

#include <stdio.h>

/* ---- what is asked for ---------------------------------------------------------------------- */

/** The options as given; the table of options fills it. */
struct training_options {
    char *model, *data_dir, *optimizer, *variable_update, *all_reduce_spec, *backend, *convolution,
        *data_format;
    char *hosts, *launcher, *wire, *transport, *rendezvous, *trace_file, *accelerator, *output;
    int64_t batch_size, num_batches, num_warmup_batches, display_every, workers, num_ps, threads;
    int64_t profile_steps, emulate_fabric, seed;
    double num_epochs, init_learning_rate, momentum, weight_decay;
    bool is_forward_only, uses_bf16, is_help;
};

/** Where gradients are summed and weights updated. */
enum training_exchange {
    TRAINING_ALL_REDUCE,
    TRAINING_SERVERS,    /**< Parameter servers. */
    TRAINING_SHARED,     /**< The workers, each of a part: with --num-ps 0. */
    TRAINING_INDEPENDENT /**< No exchange: the upper bound. */
};

/** A model of tf_cnn_benchmarks or of the zoo. */
struct training_model {
    const char *name;   /**< The name asked for. */
    const char *zoo;    /**< Its name in the zoo; NULL: the same. */
    int64_t batch_size; /**< tf_cnn_benchmarks' default per device. */
    double p100_speed;  /**< Published images/s of a P100 in training; 0: none. */
    int64_t p100_batch; /**< The batch of that figure. */
    const char *advice; /**< Not NULL: there is no such model; what to take instead. */
};

/** The row of a model; without one a row with its name and defaults. */
struct training_model training_model_find(const char *name);

/** What is measured: the options, checked and resolved. */
struct training_plan {
    struct training_options options;
    struct training_model model;
    enum training_exchange exchange;
    struct weir_train_config config; /**< Of the training that is measured. */
    int n_workers, n_servers;
    bool is_json;
};

/** The table of options, for --help and the manual. */
const struct weir_option *training_option_table(size_t *out_n);

/**
 * Parse a command line, without the program's and the role's name. Flags may be spelled with "_" or
 * "-". The arena owns everything in *out.
 *
 * @param n_ranks  Ranks of the group that this process is part of; 0: the group is to be started.
 * @return INVALID; UNSUPPORTED for a flag of tf_cnn_benchmarks that has no meaning here, with what
 *         to take instead.
 */
weir_status training_plan_parse(int argc, char *const *argv, int n_ranks, struct weir_arena *arena,
                                struct training_plan *out, struct weir_error *err) WEIR_MUST_CHECK;

/** config.algorithm of the group's communicator. */
const char *training_algorithm(const struct training_plan *plan);

/** How to start the ranks. @param argv  The whole command's; borrowed. */
struct weir_spawn_config training_spawn_config(const struct training_plan *plan, char *const *argv);

/* ---- statistics ----------------------------------------------------------------------------- */

/** tf_cnn_benchmarks' figures of some steps. */
struct training_timing {
    double mean;        /**< batch / mean(time). */
    double stddev;      /**< Of the steps' speeds. */
    double uncertainty; /**< stddev / sqrt(n). */
    double jitter;      /**< 1.4826 * median(|speed - median(speed)|). */
};

/** Compute them. @param times  n > 0, in seconds. @param scratch  n doubles. Pure. */
struct training_timing training_timing_of(double batch, const double *times, size_t n,
                                          double *scratch);

/** Step times in ms: mean, and percentiles by nearest rank. */
struct training_step_ms {
    double mean, p50, p90, p99, least, most;
};

struct training_step_ms training_step_ms_of(const double *times, size_t n, double *scratch);

/** The results of a run. */

struct training_result {
    const struct training_plan *plan;
    const struct train_task *task;
    const char *transport;
    double global_batch;     /**< Pictures of a step of all workers. */
    double scale;            /**< Number of workers without exchange; else 1. */
    double *times, *scratch; /**< Seconds of worker 0's steps. */
    size_t n_times;
    double loss;
    double total;      /**< Images per second, all workers, by the clock around all steps. */
    double peak_flops; /**< Of all workers' threads together, measured after the steps. */
    double flop_per_image, step_flop_per_image; /**< Of a forward pass; of a step. */
    double peak_rss_bytes, total_rss_bytes;     /**< Of the largest worker, of all. */
    double page_faults;                         /**< Minor, of all workers, during all steps. */
    double cpu_s;                               /**< Processor time of all workers, all steps. */
    /* With an emulated network: */
    double alone_step_s; /**< A step without exchange; 0: not measured. */
    double ratio;        /**< Of communication to computation. */
    double link_bytes_s; /**< Speed of the links here that gives it. */
};

void training_print_header(const struct training_result *result, FILE *file);
/** "Done warm up" and the titles of the columns. */
void training_print_titles(FILE *file);
void training_print_step(size_t step, const struct training_timing *timing, double scale,
                         double loss, FILE *file);
void training_print_total(const struct training_result *result, FILE *file);
/** New reference; NULL if memory is out. */
json_t *training_result_json(const struct training_result *result);

/* ---- an emulated network -------------------------------------------------------------------- */

/** Bytes that a step sends over the busiest link, in one direction. Pure. */
double training_busiest_bytes(enum training_exchange exchange, double gradient_bytes, int n_workers,
                              int n_servers);

/**
 * Time of a training step on an accelerator: the published one, else from the FLOP/s that it
 * reaches on ResNet-50.
 *
 * @param accelerator  "p100" or "v100".
 * @return INVALID with the names of the accelerators.
 */
weir_status training_accelerator_step_s(const char *accelerator, const struct training_model *model,
                                        double flop_per_image, double *out_s,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/* ---- ranks ---------------------------------------------------------------------------------- */

/** Run this rank: measure, and print as rank 0. Without a launcher me->size is 1. */
weir_status training_rank_run(const struct training_plan *plan, const struct weir_spawn_rank *me,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** training_steps.c: one worker of the product, and its input. */
struct training_worker {
    const struct training_plan *plan;
    struct train_task task;
    struct worker worker;
    struct weir_comm *group;              /**< All workers (and servers). */
    struct weir_comm *alone;              /**< This worker's own group of one; NULL: not needed. */
    struct weir_optimizer *own_optimizer; /**< For steps alone, while servers have the real one. */
    float *images;                        /**< The net's input; constant. */
    int32_t *labels;
    double loss;
};

/** Make everything but the communicators, which are the caller's; `group` is set. Collective. */
weir_status training_worker_open(struct training_worker *bench,
                                 struct weir_error *err) WEIR_MUST_CHECK;
void training_worker_close(struct training_worker *bench);

/** Take one step, or one forward pass. Collective, unless alone. */
weir_status training_worker_step(struct training_worker *bench,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** From now on take steps alone; or exchange gradients, beginning at worker 0's weights
 *  (collective, once). */
weir_status training_worker_set_alone(struct training_worker *bench, bool is_alone,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** The task of a plan: with its data, or with a list of pictures that are never read. */
weir_status training_task_open(const struct training_plan *plan, struct train_task *task,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
