/**
 * Files of this machine that a document names: in what a job, a sweep or an ION says of a program,
 * `code: ./src` is a folder and `python: requirements.txt` a file, beside the document. The server does
 * not see them. The folder is sent, as `weir job run` sends one, and its list stands in the document
 * instead; so does the file's text.
 *
 * `python` may be the text itself: it names a file if it is one line that ends in ".txt".
 */
#ifndef WEIR_CLI_PROGRAM_FILES_H
#define WEIR_CLI_PROGRAM_FILES_H

#include "base/json.h"
#include "cli/command.h"

/**
 * Send what a program's specification names, and change the specification.
 * @param path     The document's file, from whose folder paths are; "-": from this one.
 * @param project  NULL: as cli_project_find.
 * @param place    Where the specification stands, for messages: "$.job.spec".
 * @return as code_send_folder and weir_file_read, with the place in front.
 */
weir_status program_files_send(struct cli_call *call, const char *path, const char *project,
                               const char *place, json_t *spec,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The same for each pipeline of an ION. */
weir_status program_files_send_ion(struct cli_call *call, const char *path, json_t *document,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The text of a requirements.txt as `python` of a specification. @return INVALID: it is no text; or as
 *  weir_file_read. */
weir_status program_files_read_python(struct cli_call *call, const char *path, json_t *spec,
                                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
