/** Descriptions and tags of what is tracked. */
#ifndef WEIR_API_LABEL_H
#define WEIR_API_LABEL_H

#include "api/core/call.h"

/** A member "description" of the body becomes the tag that MLflow's page shows as such. @return INVALID. */
weir_status api_body_note(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

#endif
