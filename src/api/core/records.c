/** Routes that need nothing but the record table: list, get, delete, health, the document. */

#include "api/core/records.h"

#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/core/word.h"
#include "control/vitals.h"
#include "store/event.h"

#include <string.h>

#define PAGE_OF_PATH 1000 /* of what lists of parts have no limit of their own */

/** A query of the call: what it may add stands behind what its route asks for. */
struct list_query {
    struct weir_query query;
    struct weir_filter filters[WEIR_QUERY_FILTERS_MAX];
    size_t n;
};

static weir_status add_filter(struct list_query *list, const struct weir_filter *filter,
                              struct weir_error *err)
{
    if (list->n == WEIR_QUERY_FILTERS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter %s: one filter too many: ask for fewer fields",
                              filter->field);
    }
    list->filters[list->n++] = *filter;
    return WEIR_OK;
}

static weir_status add_field(const struct api_call *call, const struct weir_field *field,
                             struct list_query *list, struct weir_error *err)
{
    const char *value = weir_http_request_query(call->request, field->name);
    if (api_query_filters_by(call->route, field) && value != NULL) {
        WEIR_TRY(api_word_read(call->route->out, field->name, value, call->arena, &value, err));
        return add_filter(list, &WEIR_FILTER_TEXT(field->name, EQ, value), err);
    }
    if (field->type == WEIR_FIELD_TYPE_INT && api_query_has(call, field->name)) {
        return add_filter(list, &WEIR_FILTER_INT(field->name, EQ, api_query_int(call, field->name)),
                          err);
    }
    return WEIR_OK;
}

static weir_status make_query(const struct api_call *call, const struct weir_query *of,
                              struct list_query *out, struct weir_error *err)
{
    const struct weir_resource *resource = call->route->out;
    out->query = *of;
    out->n = 0;
    for (size_t i = 0; i < resource->n_fields; i++) {
        WEIR_TRY(add_field(call, &resource->fields[i], out, err));
    }
    for (size_t i = 0; i < of->n_filters; i++) {
        WEIR_TRY(add_filter(out, &of->filters[i], err));
    }
    out->query.filters = out->filters;
    out->query.n_filters = out->n;
    out->query.cursor = api_query_text(call, "cursor");
    out->query.limit = of->limit != 0 ? of->limit : (size_t)api_query_int(call, "limit");
    out->query.max_bytes = API_ANSWER_MAX_BYTES;
    return WEIR_OK;
}

static weir_status read_page(struct api_call *call, struct weir_txn *txn,
                             const struct weir_query *query, struct api_rows *out,
                             struct weir_error *err)
{
    char *next;
    WEIR_TRY(call->route->out == &weir_event_resource
                 ? weir_events_list(txn, query, call->arena, &out->items, &out->n, &next, err)
                 : weir_txn_list(txn, call->route->out, query, call->arena, &out->items, &out->n,
                                 &next, err));
    out->next = next;
    return WEIR_OK;
}

static weir_status answer_page(struct api_call *call, struct weir_txn *txn,
                               const struct weir_query *query, struct weir_error *err)
{
    struct api_rows rows;
    WEIR_TRY(read_page(call, txn, query, &rows, err));
    api_answer_list(call, call->route->out, rows.items, rows.n, rows.next);
    return WEIR_OK;
}

weir_status api_rows_read(struct api_call *call, struct weir_txn *txn, const struct weir_query *of,
                          struct api_rows *out, struct weir_error *err)
{
    struct list_query list;
    WEIR_TRY(make_query(call, of, &list, err));
    return read_page(call, txn, &list.query, out, err);
}

weir_status api_row_fits(const struct api_call *call, const void *record, bool *out,
                         struct weir_error *err)
{
    struct list_query list;
    bool fits = true;
    WEIR_TRY(make_query(call, &(struct weir_query){.limit = 1}, &list, err));
    for (size_t i = 0; i < list.n; i++) {
        const struct weir_field *field =
            weir_resource_field(call->route->out, list.filters[i].field);
        const char *text = *(char *const *)weir_field_cptr(field, record);
        fits = fits && text != NULL && strcmp(text, list.filters[i].text) == 0;
    }
    *out = fits;
    return WEIR_OK;
}

weir_status api_list_of(struct api_call *call, struct weir_txn *txn, const struct weir_query *of,
                        struct weir_error *err)
{
    struct list_query list;
    WEIR_TRY(make_query(call, of, &list, err));
    return answer_page(call, txn, &list.query, err);
}

weir_status api_list_timed(struct api_call *call, struct weir_txn *txn, const char *time,
                           const struct weir_query *of, struct weir_error *err)
{
    struct weir_filter filters[5];
    struct weir_query query = *of;
    int64_t after = api_query_int(call, "after");
    int64_t since = api_query_time(call, "since", INT64_MIN);
    int64_t until = api_query_time(call, "until", INT64_MAX);
    for (query.n_filters = 0; query.n_filters < of->n_filters; query.n_filters++) {
        filters[query.n_filters] = of->filters[query.n_filters];
    }
    /* Newest first, the bounds are always there: without one, SQLite takes the index of the frames
     * for an ION and a camera, and sorts all that it finds. */
    if (after < 0 || since != INT64_MIN || until != INT64_MAX) {
        filters[query.n_filters++] = WEIR_FILTER_INT(time, GE, since);
        filters[query.n_filters++] = WEIR_FILTER_INT(time, LT, until);
    }
    if (after >= 0) {
        filters[query.n_filters++] = WEIR_FILTER_INT("seq", GT, after);
    }
    query.filters = filters;
    query.order_by = after >= 0 ? "seq" : time;
    query.is_descending = after < 0;
    return api_list_of(call, txn, &query, err);
}

weir_status api_list_of_path(struct api_call *call, struct weir_txn *txn, const char *field,
                             struct weir_error *err)
{
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT(field, EQ, call->params[0])),
                                  .limit = PAGE_OF_PATH};
    return api_list_of(call, txn, &of, err);
}

weir_status api_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_where(call, txn, NULL, err);
}

weir_status api_list_where(struct api_call *call, struct weir_txn *txn,
                           const struct weir_filter *more, struct weir_error *err)
{
    const struct weir_resource *resource = call->route->out;
    struct weir_query of = {.filters = more,
                            .n_filters = more != NULL ? 1 : 0,
                            .is_descending = api_query_bool(call, "newest")};
    /* What has no name but an identifier is in order of time, for which there is an index. */
    bool has_name = strcmp(weir_resource_key(resource)->name, "id") != 0;
    if ((of.is_descending || !has_name) && weir_resource_field(resource, "created_ms") != NULL) {
        of.order_by = "created_ms";
    }
    return api_list_of(call, txn, &of, err);
}

weir_status api_list_numbered_where(struct api_call *call, struct weir_txn *txn,
                                    const struct weir_filter *more, size_t n_more,
                                    struct weir_error *err)
{
    struct list_query list;
    int64_t after = api_query_int(call, "after");
    const struct weir_query of = {
        .filters = more, .n_filters = n_more, .order_by = "seq", .is_descending = after < 0};
    WEIR_TRY(make_query(call, &of, &list, err));
    if (after >= 0) {
        WEIR_TRY(add_filter(&list, &WEIR_FILTER_INT("seq", GT, after), err));
        list.query.n_filters = list.n;
    }
    return answer_page(call, txn, &list.query, err);
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
