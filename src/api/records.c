/** Routes that need nothing but the record table: list, get, delete, health, the document. */

#include "api/records.h"

#include "api/answer.h"
#include "api/functions.h"
#include "api/query.h"
#include "api/views.h"
#include "api/word.h"
#include "control/vitals.h"
#include "store/event.h"

#include <string.h>

weir_status api_query_filters(const struct api_call *call, struct weir_filter *filters, size_t max,
                              size_t *out_n, struct weir_error *err)
{
    const struct weir_resource *resource = call->route->out;
    size_t n = 0;
    for (size_t i = 0; i < resource->n_fields && n < max; i++) {
        const struct weir_field *field = &resource->fields[i];
        bool is_hidden = (field->flags & WEIR_FIELD_SECRET) != 0;
        const char *value = weir_http_request_query(call->request, field->name);
        if (field->type == WEIR_FIELD_TYPE_TEXT && !is_hidden && value != NULL) {
            WEIR_TRY(api_word_read(resource, field->name, value, call->arena, &value, err));
            filters[n++] = WEIR_FILTER_TEXT(field->name, EQ, value);
        } else if (field->type == WEIR_FIELD_TYPE_INT && api_query_has(call, field->name)) {
            filters[n++] = WEIR_FILTER_INT(field->name, EQ, api_query_int(call, field->name));
        }
    }
    *out_n = n;
    return WEIR_OK;
}

static weir_status answer_page(struct api_call *call, struct weir_txn *txn,
                               const struct weir_query *query, struct weir_error *err)
{
    void *items;
    size_t n;
    char *next;
    if (call->route->out == &weir_event_resource) {
        WEIR_TRY(weir_events_list(txn, query, call->arena, &items, &n, &next, err));
    } else {
        WEIR_TRY(weir_txn_list(txn, call->route->out, query, call->arena, &items, &n, &next, err));
    }
    api_answer_list(call, call->route->out, items, n, next);
    return WEIR_OK;
}

weir_status api_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_where(call, txn, NULL, err);
}

weir_status api_list_where(struct api_call *call, struct weir_txn *txn,
                           const struct weir_filter *more, struct weir_error *err)
{
    struct weir_filter filters[WEIR_QUERY_FILTERS_MAX];
    struct weir_query query = {.filters = filters,
                               .cursor = api_query_text(call, "cursor"),
                               .is_descending = api_query_bool(call, "newest")};
    WEIR_TRY(api_query_filters(call, filters, WEIR_QUERY_FILTERS_MAX - 1, &query.n_filters, err));
    query.limit = (size_t)api_query_int(call, "limit");
    query.max_bytes = API_ANSWER_MAX_BYTES;
    if (more != NULL) {
        filters[query.n_filters++] = *more;
    }
    /* What has no name but an identifier is in order of time, for which there is an index. */
    bool has_name = strcmp(weir_resource_key(call->route->out)->name, "id") != 0;
    if ((query.is_descending || !has_name) &&
        weir_resource_field(call->route->out, "created_ms") != NULL) {
        query.order_by = "created_ms";
    }
    return answer_page(call, txn, &query, err);
}

weir_status api_list_numbered_where(struct api_call *call, struct weir_txn *txn,
                                    const struct weir_filter *more, size_t n_more,
                                    struct weir_error *err)
{
    struct weir_filter filters[WEIR_QUERY_FILTERS_MAX];
    int64_t after = api_query_int(call, "after");
    struct weir_query query = {.filters = filters,
                               .order_by = "seq",
                               .is_descending = after < 0,
                               .limit = (size_t)api_query_int(call, "limit"),
                               .max_bytes = API_ANSWER_MAX_BYTES,
                               .cursor = api_query_text(call, "cursor")};
    WEIR_TRY(api_query_filters(call, filters, WEIR_QUERY_FILTERS_MAX - 1 - n_more, &query.n_filters,
                               err));
    if (after >= 0) {
        filters[query.n_filters++] = WEIR_FILTER_INT("seq", GT, after);
    }
    for (size_t i = 0; i < n_more; i++) {
        filters[query.n_filters++] = more[i];
    }
    return answer_page(call, txn, &query, err);
}

weir_status api_list_numbered(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_numbered_where(call, txn, NULL, 0, err);
}

weir_status api_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    void *record = weir_arena_alloc(call->arena, call->route->out->size);
    WEIR_TRY(weir_txn_get(txn, call->route->out, call->params[0], call->arena, record, err));
    api_answer_record(call, call->route->out, record);
    return WEIR_OK;
}

weir_status api_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(weir_txn_delete(txn, call->route->in, call->params[0], err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_health(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    (void)err;
    const char *worst = vitals_worst(call->api->vitals, call->arena);
    json_t *view = WEIR_VIEW_JSON(api_alive, .status = worst == NULL ? "ok" : "down",
                                  .version = WEIR_VERSION, .reason = worst);
    weir_http_response_json(call->response, worst == NULL ? 200 : 503, view);
    return WEIR_OK;
}

weir_status api_openapi_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    (void)err;
    api_answer(call, weir_api_openapi());
    return WEIR_OK;
}
