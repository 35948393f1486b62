/**
 * Folders that a document names: `code: ./src` in what an ION or a sweep says of a program is a folder here,
 * which the server does not see. It is sent, as `weir job run` sends one, and its list stands in the
 * document instead.
 */
#ifndef WEIR_CLI_APPLY_CODE_H
#define WEIR_CLI_APPLY_CODE_H

#include "base/json.h"
#include "cli/command.h"

/**
 * Send the folder that a program's specification names, if it does, and change the specification.
 * @param path   The document's file, from whose folder the path is; "-": from this one.
 * @param place  Where the specification stands, for messages: "$.job.spec".
 * @return as code_send_folder, with the place of the folder in front.
 */
weir_status apply_code_send_one(struct cli_call *call, const char *path, const char *project,
                                const char *place, json_t *spec,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Send what the document's pipelines name, and change the document.
 * @param path  The document's file, from whose folder paths are; "-": from this one.
 * @return as code_send_folder, with the place of the folder in front.
 */
weir_status apply_code_send(struct cli_call *call, const char *path, json_t *document,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
