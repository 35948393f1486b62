/**
 * The files of a user's own program: the folder that goes with it, or the commit of a repository; and what can be
 * said of them before anything is submitted. A job begins in a folder of its own: a script that was not sent is
 * not there.
 */
#ifndef WEIR_CLI_JOB_CODE_H
#define WEIR_CLI_JOB_CODE_H

#include "cli/command.h"

/** Texts of options; `project` and `image` have rows of each command's own. NULL: not given. */
struct job_code {
    char *dir, *git;
    bool has_files;
    const char *project, *image;
};

/** Rows of a table of options; `code` is a member of the struct. */
#define JOB_CODE_OPTIONS(strct)                                                                    \
    CLI_TEXT(strct, code.dir, "dir", 0, "DIR",                                                     \
             "Folder whose files go with it (else this one, if the command names a file in it)"),  \
        WEIR_OPT(strct, code.has_files, "files", 0, BOOL, "true", 0, 0, NULL,                      \
                 "Send files (--no-files: none)"),                                                 \
        CLI_TEXT(strct, code.git, "git", 0, "ADDRESS@COMMIT",                                      \
                 "Run in a commit of a repository, which the node fetches; a branch or tag is "    \
                 "looked up here")

/**
 * Send what goes with this command, and put it into the specification. What looks wrong from here, and may be
 * right on the nodes, is warned of on standard error.
 *
 * @return INVALID if a script is named that will not be there, with the name that was probably meant; else as
 *         code_send_folder.
 */
weir_status job_code_add(struct cli_call *call, const struct job_code *code, char **words, size_t n,
                         json_t *spec, struct weir_error *err) WEIR_MUST_CHECK;

#endif
