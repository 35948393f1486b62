#include "api/core/query.h"

#include "api/core/rows.h"
#include "api/core/word.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** A parameter of the route, and what the request says of it. */
struct api_query_value {
    const struct weir_route_param *param;
    const char *text; /**< NULL: it was not given. */
    int64_t number;
};

/* Of every list. One that is short enough to come whole takes a limit, too, and has no need of it. */
static const struct weir_route_param list_params[] = {Q_CURSOR, Q_NEWEST, Q_TEXT("limit", ""), {0}};

/* ---- which parameters there are ---------------------------------------------------------------- */

static const struct api_query_value *find(const struct api_call *call, const char *name)
{
    for (size_t i = 0; i < call->n_query; i++) {
        if (strcmp(call->query[i].param->name, name) == 0) {
            return &call->query[i];
        }
    }
    return NULL;
}

static size_t count(const struct weir_route_param *params)
{
    size_t n = 0;
    while (params != NULL && params[n].name != NULL) {
        n++;
    }
    return n;
}

/* The row's, and of a list those of all lists. */
static void collect(struct api_call *call)
{
    const struct weir_route *route = call->route;
    size_t n_max = count(route->query) + WEIR_ARRAY_LEN(list_params);
    call->query = WEIR_ARENA_ARRAY(call->arena, n_max, struct api_query_value);
    call->n_query = 0;
    for (const struct weir_route_param *param = route->query; param != NULL && param->name != NULL;
         param++) {
        call->query[call->n_query++].param = param;
    }
    for (const struct weir_route_param *param = list_params;
         (route->flags & ROUTE_LIST) != 0 && param->name != NULL; param++) {
        if (find(call, param->name) == NULL) {
            call->query[call->n_query++].param = param;
        }
    }
    for (size_t i = 0; i < call->n_query; i++) {
        struct api_query_value *value = &call->query[i];
        value->text = weir_http_request_query(call->request, value->param->name);
        value->number = value->param->fallback;
    }
}

bool api_query_filters_by(const struct weir_route *route, const struct weir_field *field)
{
    return (route->flags & ROUTE_FILTERS) != 0 && field != NULL &&
           field->type == WEIR_FIELD_TYPE_TEXT && (field->flags & WEIR_FIELD_SECRET) == 0;
}

/** What the route takes, for a refusal. */
struct known {
    const char *name; /**< That it does not take. */
    struct weir_names all;
    struct weir_nearest nearest;
};

static void add_known(struct known *known, const char *name)
{
    weir_names_add(&known->all, name, strlen(name));
    weir_nearest_see(&known->nearest, known->name, strlen(known->name), name);
}

static weir_status refuse_unknown(const struct api_call *call, const char *name,
                                  struct weir_error *err)
{
    const struct weir_route *route = call->route;
    struct known known = {.name = name};
    for (size_t i = 0; i < call->n_query; i++) {
        add_known(&known, call->query[i].param->name);
    }
    for (size_t i = 0; route->out != NULL && i < route->out->n_fields; i++) {
        const struct weir_field *field = &route->out->fields[i];
        if (api_query_filters_by(route, field) && find(call, field->name) == NULL) {
            add_known(&known, field->name);
        }
    }
    const char *meant = known.nearest.name;
    return weir_error_set(err, WEIR_ERR_INVALID, "query parameter %.60s: %s %s takes %s%s%s%s",
                          name, route->method, route->pattern,
                          known.all.len > 0 ? known.all.text : "none",
                          meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
                          meant != NULL ? "?" : "");
}

static weir_status check_known(const struct api_call *call, struct weir_error *err)
{
    const struct weir_resource *out = call->route->out;
    const char *name;
    for (size_t i = 0; (name = weir_http_request_query_name(call->request, i)) != NULL; i++) {
        const struct weir_field *field = out != NULL ? weir_resource_field(out, name) : NULL;
        if (find(call, name) == NULL && !api_query_filters_by(call->route, field)) {
            return refuse_unknown(call, name, err);
        }
    }
    return WEIR_OK;
}

/* ---- by type ------------------------------------------------------------------------------------ */

static weir_status parse_int(struct api_query_value *value, struct weir_error *err)
{
    const struct weir_route_param *param = value->param;
    bool is_bool = param->type == ROUTE_BOOL;
    int64_t lo = is_bool ? 0 : param->lo, hi = is_bool ? 1 : param->hi;
    char *end;
    errno = 0;
    long long number = strtoll(value->text, &end, 10);
    if (end == value->text || *end != '\0' || errno != 0 || number < lo || number > hi) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "query parameter %s: expected an integer from %lld to %lld, got \"%.40s\"", param->name,
            (long long)lo, (long long)hi, value->text);
    }
    value->number = number;
    return WEIR_OK;
}

/* A day is its first moment. */
static weir_status parse_time(struct api_query_value *value, struct weir_arena *arena,
                              struct weir_error *err)
{
    bool is_day = strlen(value->text) == sizeof "2026-01-31" - 1;
    const char *text = is_day ? weir_arena_printf(arena, "%sT00:00:00Z", value->text) : value->text;
    if (weir_time_parse(text, &value->number) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter %s: expected a time like 2026-01-31T10:00:00Z, or a "
                              "day like 2026-01-31, got \"%.40s\"",
                              value->param->name, value->text);
    }
    return WEIR_OK;
}

static weir_status parse_value(struct api_query_value *value, struct weir_arena *arena,
                               struct weir_error *err)
{
    switch (value->param->type) {
    case ROUTE_INT:
    case ROUTE_BOOL:
        return parse_int(value, err);
    case ROUTE_TIME:
        return parse_time(value, arena, err);
    case ROUTE_WORD:
        return api_word_among(weir_arena_printf(arena, "query parameter %s", value->param->name),
                              value->param->words, value->text, arena, &value->text, err);
    case ROUTE_GIVEN:
        value->number = 1;
        return WEIR_OK;
    default: /* text; the words of a field are its list's to check (records.c) */
        return WEIR_OK;
    }
}

weir_status api_query_parse(struct api_call *call, struct weir_error *err)
{
    collect(call);
    for (size_t i = 0; i < call->n_query; i++) {
        if (call->query[i].text != NULL) {
            WEIR_TRY(parse_value(&call->query[i], call->arena, err));
        }
    }
    return (call->route->flags & ROUTE_OPEN) != 0 ? WEIR_OK : check_known(call, err);
}

/* ---- what routes read --------------------------------------------------------------------------- */

bool api_query_has(const struct api_call *call, const char *name)
{
    return api_query_text(call, name) != NULL;
}

int64_t api_query_int(const struct api_call *call, const char *name)
{
    const struct api_query_value *value = find(call, name);
    if (value == NULL || value->param->type != ROUTE_INT) { /* a mistake in the row */
        weir_log(WEIR_LOG_ERROR, "query_parameter_not_in_row",
                 WEIR_KV_STR("pattern", call->route->pattern), WEIR_KV_STR("name", name));
        return 0;
    }
    return value->number;
}

bool api_query_bool(const struct api_call *call, const char *name)
{
    const struct api_query_value *value = find(call, name);
    return value != NULL && value->number != 0;
}

int64_t api_query_time(const struct api_call *call, const char *name, int64_t fallback)
{
    const struct api_query_value *value = find(call, name);
    return value != NULL && value->text != NULL ? value->number : fallback;
}

const char *api_query_text(const struct api_call *call, const char *name)
{
    const struct api_query_value *value = find(call, name);
    return value != NULL ? value->text : NULL;
}
