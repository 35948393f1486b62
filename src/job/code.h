/**
 * Code: the folders that jobs bring along, by their content (base/tree.h).
 *
 * A project has *sent* a blob when somebody who may submit its jobs has handed in its bytes; that is
 * remembered by the hour. Only then may a folder of the project hold it: a user who knows no more than a
 * SHA-256 gets no bytes by naming it. A folder's manifest is checked when it is handed in and noted as
 * *known* to the project; a job may bring what is known along.
 *
 * What is known keeps its blobs for two days after it was last handed in or brought along, and as long as a
 * record names it. Then it is forgotten, before its blobs are swept, so that what is known is there
 * (retain/blobs.c).
 */
#ifndef WEIR_JOB_CODE_H
#define WEIR_JOB_CODE_H

#include "base/arena.h"
#include "base/json.h"
#include "store/store.h"

#include <stdbool.h>

/** Note that a project has sent a blob. */
weir_status weir_code_sent(struct weir_txn *txn, const char *project, const char *sha256,
                           int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** Which of n blobs has a project sent? out[i]: that of sha256[i]. */
weir_status weir_code_has_sent(struct weir_txn *txn, const char *project, const char *const *sha256,
                               size_t n, bool *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Note that a folder, whose files were all found to be sent and there, is known. */
weir_status weir_code_know(struct weir_txn *txn, const char *project, const char *manifest,
                           int64_t n_files, int64_t n_bytes, int64_t now_ms,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A job of the project is to bring along what its specification names: "code" with a manifest or a
 * patch. It is then kept from now on.
 * @return INVALID with the place, for a folder that is not known, or a patch that was not sent.
 */
weir_status weir_code_bring(struct weir_txn *txn, const char *project, const json_t *spec,
                            int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

#endif
