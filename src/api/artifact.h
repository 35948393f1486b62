/** Files of runs that come in parts. */
#ifndef WEIR_API_ARTIFACT_H
#define WEIR_API_ARTIFACT_H

#include "api/call.h"

struct weir_artifact_upload;

/** Join the parts of an upload to a blob; a few at a time: UNAVAILABLE. */
weir_status api_artifact_join(struct api_call *call, const struct weir_artifact_upload *upload,
                              char *out_sha256, uint64_t *out_bytes,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
