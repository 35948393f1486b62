/**
 * What a training is: one table of options, which is also the form of spec.json and of a job's
 * "spec"; and what can be said of its values without the parts that compute.
 *
 * The server checks a specification with this when it is handed in, weir-worker again when it
 * begins; `train/config.h` adds what only the network's and the data's code knows. The names of
 * optimisers, schedules and other words stand here a second time, because the server links no nn; a
 * test of `train` compares them with the tables that they are of.
 */
#ifndef WEIR_FRAMEWORK_TRAINING_H
#define WEIR_FRAMEWORK_TRAINING_H

#include "base/arena.h"
#include "base/json.h"
#include "base/options.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Ranks of one training: workers and parameter servers. */
#define WEIR_TRAINING_RANKS_MAX 256

/* The options in parts, by what they are about. The table says what each means. Numbers are int64_t
 * because the table fills them; texts live in the caller's arena. */

/** The network. */
struct weir_train_model {
    char *name, *weights, *backend, *precision, *convolution, *input;
};

/** The pictures. */
struct weir_train_data {
    char *path, *kind, *validation, *augment, *on_damage;
    bool mirror_classes;
    /* A detector has these: */
    char *backgrounds, *face_box;
    int64_t scenes;
    /* An embedding's photos may be cut (endpoint/cut.h): */
    char *detector, *detect, *align, *detector_blob, *detector_signature;
};

/** Steps and epochs. */
struct weir_train_loop {
    int64_t seed, epochs, steps, batch_size, micro_batches, gradient_parts;
};

/** The optimiser, its learning rate, and regularisation. */
struct weir_train_optimizer {
    char *name, *schedule;
    double learning_rate, momentum, weight_decay, clip_norm, warmup_epochs, label_smoothing,
        average_decay;
};

/** The ranks, and what happens when one is lost. */
struct weir_train_group {
    int64_t workers, parameter_servers, threads, rank, attempt;
    char *role, *rendezvous, *secret;
    int64_t timeout_s, max_restarts, min_workers;
    bool elastic, join;
};

/** The exchange of gradients and weights. */
struct weir_train_exchange {
    char *strategy; /**< "auto", "nccl", "memory". */
    char *transport, *all_reduce_spec, *tuning, *wire;
    int64_t staleness;
    bool shard_update;
};

/** Checkpoints, and which epoch is kept. */
struct weir_train_checkpoint {
    char *dir, *keep;
    double every_s;
};

/** What is written and shown. */
struct weir_train_output {
    char *file, *format, *profile, *tensorboard;
    int64_t display_every, profile_steps;
};

/** The server, and what is reported and registered. */
struct weir_train_reporting {
    char *server, *token_file, *ca_file, *run, *model_name, *dataset, *code_version, *job;
    int64_t dataset_version;
    double register_timeout_s;
};

/** All options of a training. */
struct weir_train_config {
    char *spec; /**< The file the rest was read from; NULL if none. */
    bool is_help;
    struct weir_train_model model;
    struct weir_train_data data;
    struct weir_train_loop loop;
    struct weir_train_optimizer optimizer;
    struct weir_train_group group;
    struct weir_train_exchange exchange;
    struct weir_train_checkpoint checkpoint;
    struct weir_train_output output;
    struct weir_train_reporting report;
};

/** The table, for reading, help and the manual; INTERNAL options of a job the server sets. */
#define WEIR_TRAINING_N_OPTIONS 76
extern const struct weir_option weir_training_table[WEIR_TRAINING_N_OPTIONS];
const struct weir_option *weir_training_options(size_t *out_n);

/** The defaults of the table, without any recipe. Texts go to the arena. */
void weir_training_defaults(struct weir_train_config *out, struct weir_arena *arena);

/** Words that the option `key` ("data_kind") takes; NULL if it is no choice among words. */
const char *const *weir_training_words(const char *key, size_t *out_n);

/**
 * Do the values make sense, alone and together? Not whether files are there, and not the settings
 * behind an optimiser's or a schedule's name.
 * @return INVALID, UNSUPPORTED or LIMIT; the sentence begins with the key.
 */
weir_status weir_training_check(const struct weir_train_config *config,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A job's "spec", as a user gave it: known keys, types, ranges, words, the model's name, data, and
 * absolute paths. "validation" and "backgrounds" without a slash are names of datasets, "detector" is that of a model. What the server sets
 * itself is refused.
 * @return as weir_training_check; the sentence begins with the key.
 */
weir_status weir_training_spec_check(const json_t *spec, struct weir_arena *arena,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
