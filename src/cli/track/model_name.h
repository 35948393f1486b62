/** What people call a version of a model: NAME, NAME@v3, NAME@3 or NAME@ALIAS. */
#ifndef WEIR_CLI_MODEL_NAME_H
#define WEIR_CLI_MODEL_NAME_H

#include "cli/command.h"

/** The word in two parts, in the arena; *out_version is NULL without "@". INVALID if one is empty. */
weir_status cli_model_split(struct cli_call *call, const char *word, char **out_name,
                            char **out_version, struct weir_error *err) WEIR_MUST_CHECK;

/** The number of a version by what people call it; NULL: the newest. NOT_FOUND with what there is. */
weir_status cli_model_version(struct cli_call *call, const char *model, const char *version,
                              int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make NAME of the call's first word, and if it names a version or an alias, the version's number of a second one.
 * @param out_is_version  Does it name one?
 */
weir_status cli_model_words(struct cli_call *call, bool *out_is_version,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The record of a version; a new reference. */
weir_status cli_model_record(struct cli_call *call, const char *model, int64_t version,
                             json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
