/** Answers: one value, one record, a list. */
#include "api/core/answer.h"

void api_answer(struct api_call *call, json_t *value)
{
    weir_http_response_json(call->response, 200, value);
}

void api_answer_record(struct api_call *call, const struct weir_resource *resource,
                       const void *record)
{
    api_answer(call, weir_record_to_json(resource, record));
}

void api_answer_items(struct api_call *call, json_t *items, const char *next)
{
    api_answer(call, json_pack("{s:o,s:s?}", "items", items, "next", next));
}

void api_answer_views(struct api_call *call, const struct weir_view_table *view, const void *items,
                      size_t n_items, const char *next)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n_items; i++) {
        const void *item = (const char *)items + i * view->head->size;
        json_array_append_new(array, weir_view_to_json(view, item));
    }
    api_answer_items(call, array, next);
}

void api_answer_list(struct api_call *call, const struct weir_resource *resource, const void *items,
                     size_t n_items, const char *next)
{
    json_t *array = json_array();
    size_t weight = 0;
    for (size_t i = 0; i < n_items; i++) {
        const void *item = (const char *)items + i * resource->size;
        if (weight > API_ANSWER_MAX_BYTES) {
            json_decref(array);
            weir_http_response_errorf(call->response, WEIR_ERR_LIMIT,
                                      "the %zu %s are more than one answer may hold (%zu MiB)",
                                      n_items, resource->plural, API_ANSWER_MAX_BYTES >> 20);
            return;
        }
        weight += weir_record_weight(resource, item);
        json_array_append_new(array, weir_record_to_json(resource, item));
    }
    api_answer_items(call, array, next);
}
