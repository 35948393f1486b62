/** Answers of routes. */
#ifndef WEIR_API_ANSWER_H
#define WEIR_API_ANSWER_H

#include "api/call.h"
#include "base/record.h"

/** Of weir_record_weight, in one answer: a list ends its page there. */
#define API_ANSWER_MAX_BYTES ((size_t)32 << 20)

/** Answer one record / JSON value with 200; takes the reference. */
void api_answer(struct api_call *call, json_t *value);
void api_answer_record(struct api_call *call, const struct weir_resource *resource,
                       const void *record);

/** Answer {"items": […], "next": …} from an array of records; LIMIT if they weigh more than
 *  API_ANSWER_MAX_BYTES and one more record (give that as max_bytes of the query). */
void api_answer_list(struct api_call *call, const struct weir_resource *resource, const void *items,
                     size_t n_items, const char *next);

#endif
