/**
 * Blob access: whose are the bytes of a SHA-256? Blobs lie once, whoever sent them; they belong to the
 * projects that have sent them (job/code.h) or that have a record which names them: a version of a model or
 * a dataset, a file of one, an artifact, code of a job. For everybody else they are not there.
 */
#ifndef WEIR_API_BLOB_ACCESS_H
#define WEIR_API_BLOB_ACCESS_H

#include "api/core/call.h"

/** Does a record name it (a version, an artifact, code), whosever? */
weir_status blob_is_named(struct api_call *call, const char *sha256, bool *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** May the caller, who has the route's right in call->rows, have or name this blob? A task: of its job's
 *  project. */
weir_status blob_is_callers(struct api_call *call, const char *sha256, bool *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Must the call's task have this blob for what it was started for: the code of its job, what its model and
 *  its dataset were found to be, what its ION or deployment serves? */
weir_status blob_is_for_task(struct api_call *call, const char *sha256, bool *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
