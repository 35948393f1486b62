/**
 * What replicas say to the desk (api/ion/desk.h), checked: it is shown to people, and a replica may be anything that has the
 * token. What is known is taken into new JSON, and the rest is left. Pure.
 */
#ifndef WEIR_API_DESK_SAID_H
#define WEIR_API_DESK_SAID_H

#include "base/json.h"
#include "base/status.h"

#define DESK_BOXES_MAX   64
#define DESK_NEAREST_MAX 5

/**
 * A picture of a camera with what was found in it.
 * @param[out] out  A new reference: {time_ms, width, height, boxes, picture}.
 * @return INVALID with the place below `where`: what is missing, of another type, not finite, no JPEG or too large.
 */
weir_status desk_said_live(const json_t *given, const char *where, json_t **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The answer to a look at n photos.
 * @param[out] out  A new reference: {pictures, nearest, threshold, confused_from}.
 * @return INVALID likewise, and for another number of pictures.
 */
weir_status desk_said_look(const json_t *given, size_t n, const char *where, json_t **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
