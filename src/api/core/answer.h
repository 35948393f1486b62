/** Answers of routes. */
#ifndef WEIR_API_ANSWER_H
#define WEIR_API_ANSWER_H

#include "api/core/call.h"
#include "base/view.h"

/** Of weir_record_weight, in one answer: a list ends its page there. */
#define API_ANSWER_MAX_BYTES ((size_t)32 << 20)

/** Answer one record / JSON value with 200; takes the reference. */
void api_answer(struct api_call *call, json_t *value);
void api_answer_record(struct api_call *call, const struct weir_resource *resource,
                       const void *record);

/** Answer a view whose members are named here (base/view.h). */
#define API_ANSWER(call, view, ...) api_answer(call, WEIR_VIEW_JSON(view, __VA_ARGS__))

/** Answer {"items": items, "next": next}; takes the reference. next NULL: it is the last page. */
void api_answer_items(struct api_call *call, json_t *items, const char *next);

/** The same from an array of structs of a view. */
void api_answer_views(struct api_call *call, const struct weir_view_table *view, const void *items,
                      size_t n_items, const char *next);

/** Answer {"items": […], "next": …} from an array of records; LIMIT if they weigh more than
 *  API_ANSWER_MAX_BYTES and one more record (give that as max_bytes of the query). */
void api_answer_list(struct api_call *call, const struct weir_resource *resource, const void *items,
                     size_t n_items, const char *next);

#endif
