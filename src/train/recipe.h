/**
 * Recipes: how a built-in model is trained unless the user says otherwise.
 *
 * A recipe has its place between the options' defaults and everything from the user: default <
 * recipe < spec.json < environment < flag. It is found by the model's name; a model file has none.
 */
#ifndef WEIR_TRAIN_RECIPE_H
#define WEIR_TRAIN_RECIPE_H

#include "train/config.h"

/** The recipe, a JSON object with the keys of spec.json; NULL if the model has none. Static. */
const char *train_recipe_find(const char *model);

/** Write the recipe of `model`, if it has one, over `config`; texts go to the arena. */
weir_status train_recipe_apply(const char *model, struct weir_arena *arena,
                               struct weir_train_config *config,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
