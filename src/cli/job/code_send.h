/**
 * What a job brings along, from here to the server: the folder by content, so that only what has changed is
 * sent, and the state of its git working tree, for the record.
 */
#ifndef WEIR_CLI_CODE_SEND_H
#define WEIR_CLI_CODE_SEND_H

#include "base/json.h"
#include "cli/command.h"

/**
 * Send a folder's files, and its list, for jobs of a project; say on standard error what was sent and what
 * was left out. call->client is opened.
 * @param code  Gets "manifest"; in a git working tree also "repository", "commit", "branch", "dirty" and
 *              "patch".
 * @return as folder_read; INVALID if a file changed while it was sent; as weir_client_call.
 */
weir_status code_send_folder(struct cli_call *call, const char *dir, const char *project,
                             json_t *code, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * ADDRESS[@COMMIT], for a node to fetch. What is no commit by number (a branch, a tag, nothing) is looked up
 * by git here.
 * @param code  Gets "git" and "commit".
 * @return INVALID; UNAVAILABLE if git is needed and fails.
 */
weir_status code_read_git(struct cli_call *call, const char *text, json_t *code,
                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
