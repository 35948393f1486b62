/**
 * The built-in models by name, as far as the control plane must know them: a name that is none is
 * refused when it is handed in, and a gallery needs a model that gives embeddings. The models
 * themselves are nn's (nn/zoo.h), which the control plane does not link; model_names_test.c
 * compares the two.
 *
 * Pure; any thread.
 */
#ifndef WEIR_FRAMEWORK_MODEL_NAMES_H
#define WEIR_FRAMEWORK_MODEL_NAMES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct weir_model_name {
    const char *name;
    bool is_embedding, is_detector; /**< Neither: a classifier. */
};

/** All built-in models. Static. */
const struct weir_model_name *weir_model_names(size_t *out_n);

/** By name; NULL if there is none. */
const struct weir_model_name *weir_model_name_find(const char *name);

/** Does a model that is no built-in one name a file? Those contain "/" or ".". */
bool weir_model_is_file(const char *model);

/**
 * Can a training on any node find this model? A file must be given by its absolute path, because a
 * training works in a folder of its own; whether it is there is not looked at.
 *
 * @param place  Where it stands, for the message: "$.pipelines[0].model".
 * @return INVALID naming the model that was probably meant, or those there are.
 */
weir_status weir_model_name_check(const char *model, const char *place,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
