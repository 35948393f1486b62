/** Try it: how a deployment is asked, by what its model's signature says that it takes. */
#ifndef WEIR_CLI_TRY_IT_H
#define WEIR_CLI_TRY_IT_H

#include "cli/command.h"

/** What requests bring. */
enum try_it_input {
    TRY_IT_UNKNOWN, /**< There is no signature. */
    TRY_IT_PICTURE, /**< Pictures: the signature says how one becomes the input. */
    TRY_IT_IMAGE,   /**< Tensors of the shape of a picture: a rule would make them of pictures. */
    TRY_IT_TENSOR,  /**< Numbers. */
    TRY_IT_TEXT,    /**< Texts, perhaps beside numbers. */
};

/** @param signature  Of a model version (GET /api/v1/models/NAME/versions/N); NULL: unknown. */
enum try_it_input try_it_input_of(const json_t *signature);

/** Print the command, and for tensors the request that its file must hold: whole if it is short, so
 *  that it can be sent as it stands; else with "…" for the values. */
void try_it_print(struct cli_call *call, const char *deployment, const json_t *signature);

#endif
