/**
 * A training's options (framework/training.h has the table), read from a command line and its
 * files.
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
 * Parse a command line, without the program's and the role's name.
 *
 * @param arena  Owns the texts of *out.
 * @return INVALID, NOT_FOUND and what reading --spec gives: a sentence that names the flag or key.
 */
weir_status weir_train_config_parse(int argc, char *const *argv, struct weir_arena *arena,
                                    struct weir_train_config *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Check the values, alone and together. Parse calls it; call it for a config made otherwise.
 *  @return INVALID with a sentence. */
weir_status weir_train_config_check(const struct weir_train_config *config,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** --input as a shape; *out_is_given is false without one. @return INVALID. */
weir_status train_config_shape(const struct weir_train_config *config, bool *out_is_given,
                               struct weir_shape *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The optimiser of --optimizer, --momentum, --weight-decay and --clip-norm.
 *
 * @return INVALID with a sentence.
 */
weir_status train_config_optimizer(const struct weir_train_config *config,
                                   struct weir_optimizer_config *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The kind with this name. @return INVALID with the names of all kinds. */
weir_status train_data_kind(const char *name, enum weir_dataset_kind *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Does this process start the other ranks? */
bool train_is_launcher(const struct weir_train_config *config);

/** Does the group go on when a worker is lost, and accept joiners? */
bool train_is_elastic(const struct weir_train_config *config);

/** Is the model that of the best epoch (--keep best)? */
bool train_keeps_best(const struct weir_train_config *config);

/** Is this rank a parameter server? */
bool train_is_server(const struct weir_train_config *config);

#endif
