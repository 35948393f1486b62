/**
 * Farthest: the frames of a span of time whose value of one signal lies farthest from training, by the reports of
 * replicas, each of which names its farthest (predict/farthest.h). No decision is looked through for it.
 */
#ifndef WEIR_API_FARTHEST_H
#define WEIR_API_FARTHEST_H

#include "api/call.h"
#include "api/views.h"
#include "store/table.h"

#include <jansson.h>

#define API_FARTHEST_MAX 10

/** Of one signal; zero-initialised it has none. */
struct api_farthest {
    struct api_far_frame items[API_FARTHEST_MAX]; /**< The farthest first. */
    size_t n;
};

/** Takes what a report's detail names that is farther than what is there; a frame is there once. Whatever in it is no
 *  frame is passed over: a replica may say anything. */
void api_farthest_add(struct api_farthest *farthest, const json_t *detail,
                      struct weir_arena *arena);

/** Note the decision of each frame that is still kept. Cost: one look-up for each frame. */
weir_status api_farthest_find(struct api_farthest *farthest, struct api_call *call,
                              struct weir_txn *txn, const char *ion,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
