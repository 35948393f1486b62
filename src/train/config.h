/**
 * A training's options (framework/training.h has the table) from a command line and its files.
 *
 * Precedence: default < the model's recipe (recipe.h) < spec.json < environment (WEIR_<NAME>) <
 * flag. A key of the file is the flag's name with "_" for "-" ("batch_size" is --batch-size).
 * Unknown keys are refused.
 */
#ifndef WEIR_TRAIN_CONFIG_H
#define WEIR_TRAIN_CONFIG_H

#include "base/arena.h"
#include "data/data.h"
#include "framework/training.h"
#include "nn/nn.h"
#include "nn/optimizer.h"

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
