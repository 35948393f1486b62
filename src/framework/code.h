/**
 * Code: what a user's program brings along, beside text files: its folder by content or a commit of a
 * repository, Python packages, secrets. Checked here as far as no database must be asked (job/code.h,
 * job/secret.h).
 *
 *   code     {"manifest": sha256 of a folder's list (base/tree.h)}, or
 *            {"git": address, "commit": 7 to 64 hexadecimal digits}; with either, for the record of the run:
 *            "repository", "commit", "branch", "dirty", "patch" (sha256)
 *   python   text of a requirements.txt
 *   secrets  list of NAME or VARIABLE=NAME
 */
#ifndef WEIR_FRAMEWORK_CODE_H
#define WEIR_FRAMEWORK_CODE_H

#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

/** Most bytes of a requirements.txt, and lines that count. */
#define CODE_PYTHON_MAX_BYTES ((size_t)64 << 10)

/** @return INVALID with the place, "$.spec.code.git: …". NULL: there is none. */
weir_status code_check(const json_t *code, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Each line must mean the same on every node and in every folder, since the environment is made once for
 * the text: no files of the folder, and no password.
 * @return INVALID with the number of the line.
 */
weir_status code_check_python(const char *text, struct weir_error *err) WEIR_MUST_CHECK;

#endif
