/**
 * What a training is: one table of options, which is also the form of spec.json.
 *
 * Precedence: default < the model's recipe (recipe.h) < spec.json < environment (WEIR_<NAME>) <
 * flag. A key of the file is the flag's name with "_" for "-" ("batch_size" is --batch-size).
 * Unknown keys are refused.
 */
#ifndef WEIR_TRAIN_CONFIG_H
#define WEIR_TRAIN_CONFIG_H

#include "base/arena.h"
#include "base/options.h"
#include "data/data.h"
#include "nn/nn.h"
#include "nn/optimizer.h"

/** Numbers are int64_t because the option table fills them; texts live in the caller's arena. */
struct weir_train_config {
    char *spec; /**< The file the rest was read from; NULL if none. */
    bool is_help;

    /* What is trained on what. */
    char *model, *weights, *backend, *precision, *convolution, *input;
    char *data, *data_kind, *validation;
    char *augment, *on_damage;

    /* How. */
    int64_t seed, epochs, steps, batch_size, micro_batches, gradient_parts;
    bool mirror_classes;
    char *optimizer, *schedule;
    double learning_rate, momentum, weight_decay, clip_norm, warmup_epochs, label_smoothing,
        average_decay;

    /* By whom. */
    int64_t workers, parameter_servers, staleness, rank, threads, attempt;
    char *role, *rendezvous, *secret, *transport, *all_reduce_spec, *tuning, *wire;
    int64_t timeout_s, max_restarts, min_workers;
    bool elastic, join, shard_update;

    /* What is kept, shown and reported. */
    char *checkpoint_dir, *keep, *output, *format;
    int64_t display_every, profile_steps;
    char *profile;
    double checkpoint_every_s;
    char *server, *token_file, *ca_file, *run, *model_name, *dataset, *code_version, *job;
    int64_t dataset_version;
    double register_timeout_s;
};

/** The table, for help and the manual. */
const struct weir_option *weir_train_options(size_t *out_n);

/**
 * From a command line (without the program's and the role's name).
 * @return INVALID, NOT_FOUND and what reading --spec gives: a sentence that names the flag or key.
 */
weir_status weir_train_config_parse(int argc, char *const *argv, struct weir_arena *arena,
                                    struct weir_train_config *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Do the values make sense together? Called by parse, and for a config made otherwise. */
weir_status weir_train_config_check(const struct weir_train_config *config,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** The defaults of the table, without any recipe. */
void weir_train_config_defaults(struct weir_train_config *out, struct weir_arena *arena);

/** --input as a shape; false if none was given. @return INVALID. */
weir_status train_config_shape(const struct weir_train_config *config, bool *out_is_given,
                               struct weir_shape *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * --optimizer with --momentum, --weight-decay and --clip-norm.
 * @return INVALID naming what is wrong.
 */
weir_status train_config_optimizer(const struct weir_train_config *config,
                                   struct weir_optimizer_config *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** @return INVALID naming the kinds. */
weir_status train_data_kind(const char *name, enum weir_dataset_kind *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Does this process start the others? */
bool train_is_launcher(const struct weir_train_config *config);

/** Does the group go on when a worker is lost, and take in others? */
bool train_is_elastic(const struct weir_train_config *config);

/** Is the model that of the best epoch? */
bool train_keeps_best(const struct weir_train_config *config);

/** Is this rank a parameter server? */
bool train_is_server(const struct weir_train_config *config);

#endif
