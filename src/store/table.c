#include "store/table.h"

#include "store/store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** Longest generated statement; the widest record needs a third of it. */
#define SQL_MAX_BYTES 16384

/** Between the order value and the key in a cursor; keys do not contain it. */
#define CURSOR_SEPARATOR '~'

static const char *const op_texts[] = {
    [WEIR_OP_EQ] = "=",  [WEIR_OP_NE] = "<>", [WEIR_OP_LT] = "<",
    [WEIR_OP_LE] = "<=", [WEIR_OP_GT] = ">",  [WEIR_OP_GE] = ">=",
};

static void sql_auto_fini(struct weir_buf *sql)
{
    weir_buf_fini(sql);
}

static weir_status check_sql(const struct weir_buf *sql, struct weir_error *err)
{
    if (sql->status != WEIR_OK) {
        return weir_error_set(err, sql->status, "building a statement: %s",
                              weir_status_text(sql->status));
    }
    return WEIR_OK;
}

static const struct weir_field *find_field(const struct weir_resource *resource, const char *name,
                                           struct weir_error *err)
{
    const struct weir_field *field = weir_resource_field(resource, name);
    if (field == NULL) {
        (void)weir_error_set(err, WEIR_ERR_INVALID, "a %s has no field \"%s\"", resource->name,
                             name);
    }
    return field;
}

static const struct weir_field *find_key(const struct weir_resource *resource,
                                         struct weir_error *err)
{
    const struct weir_field *field = weir_resource_key(resource);
    if (field == NULL) {
        (void)weir_error_set(err, WEIR_ERR_INTERNAL, "a %s has no key field", resource->name);
    }
    return field;
}

static void put_columns(struct weir_buf *sql, const struct weir_resource *resource)
{
    for (size_t i = 0; i < resource->n_fields; i++) {
        weir_buf_printf(sql, "%s\"%s\"", i > 0 ? ", " : "", resource->fields[i].name);
    }
}

static void put_select(struct weir_buf *sql, const struct weir_resource *resource)
{
    const char *key;
    weir_buf_puts(sql, "SELECT ");
    for (size_t i = 0; i < resource->n_fields; i++) {
        const char *name = resource->fields[i].name, *comma = i > 0 ? ", " : "";
        if (live_is_column(resource->plural, name, &key)) {
            weir_buf_printf(sql, "%sweir_live('%s.%s', %s, \"%s\")", comma, resource->plural, name,
                            key, name);
        } else {
            weir_buf_printf(sql, "%s\"%s\"", comma, name);
        }
    }
    weir_buf_printf(sql, " FROM \"%s\"", resource->plural);
}

static weir_status bind_field(struct weir_stmt *stmt, int i_param, const struct weir_field *field,
                              const void *record, struct weir_error *err)
{
    const void *value = weir_field_cptr(field, record);
    switch (field->type) {
    case WEIR_FIELD_TYPE_TEXT:
    case WEIR_FIELD_TYPE_JSON:
        return stmt_bind_text(stmt, i_param, *(char *const *)value, err);
    case WEIR_FIELD_TYPE_INT:
    case WEIR_FIELD_TYPE_TIME:
        return stmt_bind_int(stmt, i_param, *(const int64_t *)value, err);
    case WEIR_FIELD_TYPE_BOOL:
        return stmt_bind_int(stmt, i_param, *(const bool *)value ? 1 : 0, err);
    case WEIR_FIELD_TYPE_F64:
        return stmt_bind_f64(stmt, i_param, *(const double *)value, err);
    case WEIR_FIELD_TYPE_RECORD:
    case WEIR_FIELD_TYPE_RECORDS:
        return stmt_bind_taken(stmt, i_param, weir_field_text(field, record), err);
    }
    return weir_error_set(err, WEIR_ERR_INTERNAL, "field %s has no known type", field->name);
}

/** A key as text, bound as what the column is. */
static weir_status bind_key(struct weir_stmt *stmt, int i_param, const struct weir_field *field,
                            const char *key, struct weir_error *err)
{
    if (field->type == WEIR_FIELD_TYPE_TEXT) {
        return stmt_bind_text(stmt, i_param, key, err);
    }
    char *end;
    int64_t value = strtoll(key, &end, 10);
    if (end == key || *end != '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%s\" is not an integer", key);
    }
    return stmt_bind_int(stmt, i_param, value, err);
}

static void read_record(const struct weir_stmt *stmt, const struct weir_resource *resource,
                        struct weir_arena *arena, void *out)
{
    memset(out, 0, resource->size);
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        void *value = weir_field_ptr(field, out);
        switch (field->type) {
        case WEIR_FIELD_TYPE_TEXT:
        case WEIR_FIELD_TYPE_JSON:
            *(char **)value = weir_stmt_text(stmt, (int)i, arena);
            break;
        case WEIR_FIELD_TYPE_INT:
        case WEIR_FIELD_TYPE_TIME:
            *(int64_t *)value = weir_stmt_int(stmt, (int)i);
            break;
        case WEIR_FIELD_TYPE_BOOL:
            *(bool *)value = weir_stmt_int(stmt, (int)i) != 0;
            break;
        case WEIR_FIELD_TYPE_F64:
            *(double *)value = weir_stmt_f64(stmt, (int)i);
            break;
        case WEIR_FIELD_TYPE_RECORD:
        case WEIR_FIELD_TYPE_RECORDS:
            weir_field_of_text(field, weir_stmt_text(stmt, (int)i, arena), arena, out);
            break;
        }
    }
}

/** "project "vision"" for messages: the record's key if it is text. */
static void describe(const struct weir_resource *resource, const void *record, char *out,
                     size_t size)
{
    const struct weir_field *key = weir_resource_key(resource);
    const char *text = key != NULL && key->type == WEIR_FIELD_TYPE_TEXT
                           ? *(char *const *)weir_field_cptr(key, record)
                           : NULL;
    if (text != NULL) {
        (void)snprintf(out, size, "%s \"%s\"", resource->name, text);
    } else {
        (void)snprintf(out, size, "%s", resource->name);
    }
}

/** Say it about the record, not about the SQL. */
static weir_status explain(weir_status status, const struct weir_resource *resource,
                           const void *record, struct weir_error *err)
{
    char what[160];
    describe(resource, record, what, sizeof(what));
    struct weir_error cause = err != NULL ? *err : (struct weir_error){0};
    const char *detail = strstr(cause.message, "constraint failed: ");
    detail = detail != NULL ? detail + strlen("constraint failed: ") : cause.message;
    const struct weir_field *key = weir_resource_key(resource);
    const char *dot = strrchr(detail, '.');
    size_t len = dot != NULL ? strcspn(dot + 1, ")") : 0;
    switch (status) {
    case WEIR_ERR_EXISTS:
        if (key != NULL && len == strlen(key->name) && strncmp(dot + 1, key->name, len) == 0) {
            return weir_error_set(err, status, "%s exists already", what);
        }
        return weir_error_set(err, status, "%s exists already (%.*s)", what,
                              (int)strcspn(detail, ")"), detail);
    case WEIR_ERR_CONFLICT:
        return weir_error_set(err, status, "%s: refers to something that does not exist", what);
    case WEIR_ERR_INVALID:
        return weir_error_set(err, status, "%s: a value is missing or not allowed (%.200s)", what,
                              detail);
    default:
        return status;
    }
}

static void put_insert(struct weir_buf *sql, const struct weir_resource *resource)
{
    weir_buf_printf(sql, "INSERT INTO \"%s\" (", resource->plural);
    put_columns(sql, resource);
    weir_buf_puts(sql, ") VALUES (");
    for (size_t i = 0; i < resource->n_fields; i++) {
        weir_buf_printf(sql, "%s:p%zu", i > 0 ? ", " : "", i + 1);
    }
    weir_buf_puts(sql, ")");
}

static weir_status run_with_record(struct weir_txn *txn, const struct weir_resource *resource,
                                   const struct weir_buf *sql, const void *record,
                                   struct weir_error *err)
{
    WEIR_TRY(check_sql(sql, err));
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql->data, WEIR_NO_BINDS, &stmt, err));
    for (size_t i = 0; i < resource->n_fields; i++) {
        WEIR_TRY(bind_field(stmt, (int)i + 1, &resource->fields[i], record, err));
    }
    bool has_row;
    weir_status status = weir_stmt_step(stmt, &has_row, err);
    return status == WEIR_OK ? WEIR_OK : explain(status, resource, record, err);
}

weir_status weir_txn_insert(struct weir_txn *txn, const struct weir_resource *resource,
                            const void *record, struct weir_error *err)
{
    WEIR_AUTO(sql_auto_fini) struct weir_buf sql;
    weir_buf_init(&sql, SQL_MAX_BYTES);
    put_insert(&sql, resource);
    return run_with_record(txn, resource, &sql, record, err);
}

weir_status weir_txn_upsert(struct weir_txn *txn, const struct weir_resource *resource,
                            const void *record, struct weir_error *err)
{
    const struct weir_field *key = find_key(resource, err);
    if (key == NULL) {
        return WEIR_ERR_INTERNAL;
    }
    WEIR_AUTO(sql_auto_fini) struct weir_buf sql;
    weir_buf_init(&sql, SQL_MAX_BYTES);
    put_insert(&sql, resource);
    weir_buf_printf(&sql, " ON CONFLICT (\"%s\") DO UPDATE SET ", key->name);
    const char *separator = "";
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        if (field != key) {
            weir_buf_printf(&sql, "%s\"%s\" = excluded.\"%s\"", separator, field->name,
                            field->name);
            separator = ", ";
        }
    }
    return run_with_record(txn, resource, &sql, record, err);
}

static weir_status get_where(struct weir_txn *txn, const struct weir_resource *resource,
                             const struct weir_field *field, const char *value,
                             struct weir_arena *arena, void *out, struct weir_error *err)
{
    WEIR_AUTO(sql_auto_fini) struct weir_buf sql;
    weir_buf_init(&sql, SQL_MAX_BYTES);
    put_select(&sql, resource);
    weir_buf_printf(&sql, " WHERE \"%s\" = :p1", field->name);
    WEIR_TRY(check_sql(&sql, err));
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql.data, WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(bind_key(stmt, 1, field, value, err));
    bool has_row;
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (!has_row) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no %s \"%s\"", resource->name,
                              value);
    }
    read_record(stmt, resource, arena, out);
    return weir_arena_check(arena, resource->name, err);
}

weir_status weir_txn_get(struct weir_txn *txn, const struct weir_resource *resource,
                         const char *key, struct weir_arena *arena, void *out,
                         struct weir_error *err)
{
    const struct weir_field *field = find_key(resource, err);
    if (field == NULL) {
        return WEIR_ERR_INTERNAL;
    }
    return get_where(txn, resource, field, key, arena, out, err);
}

weir_status weir_txn_get_by(struct weir_txn *txn, const struct weir_resource *resource,
                            const char *field, const char *value, struct weir_arena *arena,
                            void *out, struct weir_error *err)
{
    const struct weir_field *column = find_field(resource, field, err);
    if (column == NULL) {
        return WEIR_ERR_INVALID;
    }
    return get_where(txn, resource, column, value, arena, out, err);
}

weir_status weir_txn_update(struct weir_txn *txn, const struct weir_resource *resource,
                            const void *record, const char *const *fields, size_t n_fields,
                            struct weir_error *err)
{
    const struct weir_field *key = find_key(resource, err);
    if (key == NULL) {
        return WEIR_ERR_INTERNAL;
    }
    for (size_t i = 0; i < n_fields; i++) {
        if (find_field(resource, fields[i], err) == NULL) {
            return WEIR_ERR_INVALID;
        }
    }
    WEIR_AUTO(sql_auto_fini) struct weir_buf sql;
    weir_buf_init(&sql, SQL_MAX_BYTES);
    weir_buf_printf(&sql, "UPDATE \"%s\" SET ", resource->plural);
    for (size_t i = 0; i < n_fields; i++) {
        weir_buf_printf(&sql, "%s\"%s\" = :p%zu", i > 0 ? ", " : "", fields[i], i + 1);
    }
    weir_buf_printf(&sql, " WHERE \"%s\" = :p%zu", key->name, n_fields + 1);
    WEIR_TRY(check_sql(&sql, err));
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql.data, WEIR_NO_BINDS, &stmt, err));
    for (size_t i = 0; i < n_fields; i++) {
        WEIR_TRY(
            bind_field(stmt, (int)i + 1, weir_resource_field(resource, fields[i]), record, err));
    }
    WEIR_TRY(bind_field(stmt, (int)n_fields + 1, key, record, err));
    bool has_row;
    weir_status status = weir_stmt_step(stmt, &has_row, err);
    if (status != WEIR_OK) {
        return explain(status, resource, record, err);
    }
    if (txn_changes(txn) == 0) {
        char what[160];
        describe(resource, record, what, sizeof(what));
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no %s", what);
    }
    return WEIR_OK;
}

weir_status weir_txn_delete(struct weir_txn *txn, const struct weir_resource *resource,
                            const char *key, struct weir_error *err)
{
    const struct weir_field *field = find_key(resource, err);
    if (field == NULL) {
        return WEIR_ERR_INTERNAL;
    }
    WEIR_AUTO(sql_auto_fini) struct weir_buf sql;
    weir_buf_init(&sql, SQL_MAX_BYTES);
    weir_buf_printf(&sql, "DELETE FROM \"%s\" WHERE \"%s\" = :p1", resource->plural, field->name);
    WEIR_TRY(check_sql(&sql, err));
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql.data, WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(bind_key(stmt, 1, field, key, err));
    bool has_row;
    weir_status status = weir_stmt_step(stmt, &has_row, err);
    if (status == WEIR_ERR_CONFLICT) {
        return weir_error_set(err, status, "%s \"%s\" is still in use", resource->name, key);
    }
    WEIR_TRY(status);
    if (txn_changes(txn) == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no %s \"%s\"", resource->name,
                              key);
    }
    return WEIR_OK;
}

/** A query made ready: fields looked up, cursor taken apart. */
struct plan {
    const struct weir_query *query;
    const struct weir_field *fields[WEIR_QUERY_FILTERS_MAX];
    const struct weir_field *order; /**< NULL: by key alone. */
    const struct weir_field *key;
    char *cursor_value; /**< Of `order`; NULL: no cursor, or order by key. */
    char *cursor_key;   /**< NULL: no cursor. */
    size_t limit;
};

static weir_status plan_filters(const struct weir_resource *resource,
                                const struct weir_query *query, struct plan *plan,
                                struct weir_error *err)
{
    if (query->n_filters > WEIR_QUERY_FILTERS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a query has at most %d filters",
                              WEIR_QUERY_FILTERS_MAX);
    }
    for (size_t i = 0; i < query->n_filters; i++) {
        plan->fields[i] = find_field(resource, query->filters[i].field, err);
        if (plan->fields[i] == NULL) {
            return WEIR_ERR_INVALID;
        }
    }
    plan->query = query;
    return WEIR_OK;
}

static weir_status plan_order(const struct weir_resource *resource, const struct weir_query *query,
                              struct weir_arena *arena, struct plan *plan, struct weir_error *err)
{
    plan->key = find_key(resource, err);
    if (plan->key == NULL) {
        return WEIR_ERR_INTERNAL;
    }
    plan->limit = query->limit != 0 ? query->limit : WEIR_QUERY_LIMIT_DEFAULT;
    plan->limit = WEIR_MIN(plan->limit, (size_t)WEIR_QUERY_LIMIT_MAX);
    if (query->order_by != NULL) {
        plan->order = find_field(resource, query->order_by, err);
        if (plan->order == NULL) {
            return WEIR_ERR_INVALID;
        }
        if (plan->order->type == WEIR_FIELD_TYPE_F64 || plan->order->type >= WEIR_FIELD_TYPE_JSON) {
            return weir_error_set(err, WEIR_ERR_INVALID, "a list cannot be ordered by \"%s\"",
                                  query->order_by);
        }
        if (plan->order == plan->key) {
            plan->order = NULL;
        }
    }
    if (query->cursor != NULL) {
        plan->cursor_key = weir_arena_strdup(arena, query->cursor);
        if (plan->order != NULL) {
            char *separator = strrchr(plan->cursor_key, CURSOR_SEPARATOR);
            if (separator == NULL) {
                return weir_error_set(err, WEIR_ERR_INVALID, "\"%s\" is not a cursor",
                                      query->cursor);
            }
            *separator = '\0';
            plan->cursor_value = plan->cursor_key;
            plan->cursor_key = separator + 1;
        }
    }
    return WEIR_OK;
}

/** The order's SQL; absent text counts as empty, so that every row has its place. */
static void order_column(const struct weir_field *field, char *out, size_t size)
{
    bool is_text = field->type == WEIR_FIELD_TYPE_TEXT;
    (void)snprintf(out, size, is_text ? "COALESCE(\"%s\", '')" : "\"%s\"", field->name);
}

/** WHERE …; parameters are f0, f1 … for filters, c for the cursor's value and k for its key. */
static void put_where(struct weir_buf *sql, const struct plan *plan)
{
    const char *word = " WHERE ";
    for (size_t i = 0; i < plan->query->n_filters; i++) {
        const struct weir_filter *filter = &plan->query->filters[i];
        bool is_text = plan->fields[i]->type == WEIR_FIELD_TYPE_TEXT ||
                       plan->fields[i]->type == WEIR_FIELD_TYPE_JSON;
        if (is_text && filter->text == NULL) {
            weir_buf_printf(sql, "%s\"%s\" IS %sNULL", word, plan->fields[i]->name,
                            filter->op == WEIR_OP_EQ ? "" : "NOT ");
        } else {
            /* SQLite enters no index by what has a sign. */
            weir_buf_printf(sql, "%s%s\"%s\" %s :f%zu", word, filter->is_common ? "+" : "",
                            plan->fields[i]->name, op_texts[filter->op], i);
        }
        word = " AND ";
    }
    if (plan->query->condition != NULL) {
        weir_buf_printf(sql, "%s%s", word, plan->query->condition);
        word = " AND ";
    }
    if (plan->cursor_key == NULL) {
        return;
    }
    const char *op = plan->query->is_descending ? "<" : ">";
    if (plan->order == NULL) {
        weir_buf_printf(sql, "%s\"%s\" %s :k", word, plan->key->name, op);
        return;
    }
    char column[96];
    order_column(plan->order, column, sizeof(column));
    /* As one value of two members, which an index can be entered by: a page costs as much as the first. */
    weir_buf_printf(sql, "%s(%s, \"%s\") %s (:c, :k)", word, column, plan->key->name, op);
}

static void put_order(struct weir_buf *sql, const struct plan *plan)
{
    const char *direction = plan->query->is_descending ? "DESC" : "ASC";
    weir_buf_puts(sql, " ORDER BY ");
    if (plan->order != NULL) {
        char column[96];
        order_column(plan->order, column, sizeof(column));
        weir_buf_printf(sql, "%s %s, ", column, direction);
    }
    weir_buf_printf(sql, "\"%s\" %s LIMIT %zu", plan->key->name, direction, plan->limit + 1);
}

static weir_status bind_filter(struct weir_stmt *stmt, int i_param, const struct weir_field *field,
                               const struct weir_filter *filter, struct weir_error *err)
{
    switch (field->type) {
    case WEIR_FIELD_TYPE_TEXT:
    case WEIR_FIELD_TYPE_JSON:
        return stmt_bind_text(stmt, i_param, filter->text, err);
    case WEIR_FIELD_TYPE_F64:
        return stmt_bind_f64(stmt, i_param, filter->f64, err);
    default:
        return stmt_bind_int(stmt, i_param, filter->i64, err);
    }
}

static weir_status bind_plan(struct weir_stmt *stmt, const struct plan *plan,
                             struct weir_error *err)
{
    for (size_t i = 0; i < plan->query->n_filters; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), ":f%zu", i);
        int i_param = stmt_find_param(stmt, name);
        if (i_param > 0) {
            WEIR_TRY(bind_filter(stmt, i_param, plan->fields[i], &plan->query->filters[i], err));
        }
    }
    int i_value = stmt_find_param(stmt, ":c");
    if (i_value > 0) {
        WEIR_TRY(bind_key(stmt, i_value, plan->order, plan->cursor_value, err));
    }
    int i_key = stmt_find_param(stmt, ":k");
    if (i_key > 0) {
        WEIR_TRY(bind_key(stmt, i_key, plan->key, plan->cursor_key, err));
    }
    return WEIR_OK;
}

static const char *value_text(const struct weir_field *field, const void *record,
                              struct weir_arena *arena)
{
    const void *value = weir_field_cptr(field, record);
    if (field->type == WEIR_FIELD_TYPE_TEXT) {
        const char *text = *(char *const *)value;
        return text != NULL ? text : "";
    }
    if (field->type == WEIR_FIELD_TYPE_BOOL) {
        return *(const bool *)value ? "1" : "0";
    }
    return weir_arena_printf(arena, "%" PRId64, *(const int64_t *)value);
}

static char *cursor_after(const struct plan *plan, const void *record, struct weir_arena *arena)
{
    if (plan->order == NULL) {
        return weir_arena_strdup(arena, value_text(plan->key, record, arena));
    }
    return weir_arena_printf(arena, "%s%c%s", value_text(plan->order, record, arena),
                             CURSOR_SEPARATOR, value_text(plan->key, record, arena));
}

/** Read all rows into one array that doubles in the arena. */
static weir_status read_rows(struct weir_stmt *stmt, const struct weir_resource *resource,
                             const struct plan *plan, struct weir_arena *arena, char **out_items,
                             size_t *out_n, bool *out_has_more, struct weir_error *err)
{
    char *items = NULL;
    size_t n = 0, cap = 0, weight = 0;
    size_t max_weight = plan->query->max_bytes != 0 ? plan->query->max_bytes : SIZE_MAX;
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row || n == plan->limit || weight > max_weight) {
            *out_has_more = has_row;
            break;
        }
        if (n == cap) {
            size_t new_cap = cap == 0 ? 16 : cap * 2;
            char *grown = weir_arena_calloc(arena, new_cap, resource->size);
            if (n > 0) {
                memcpy(grown, items, n * resource->size);
            }
            items = grown;
            cap = new_cap;
        }
        read_record(stmt, resource, arena, items + n * resource->size);
        WEIR_TRY(weir_arena_check(arena, resource->plural, err));
        weight +=
            max_weight < SIZE_MAX ? weir_record_weight(resource, items + n * resource->size) : 0;
        n++;
    }
    *out_items = items;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_txn_list(struct weir_txn *txn, const struct weir_resource *resource,
                          const struct weir_query *query, struct weir_arena *arena,
                          void **out_items, size_t *out_n, char **out_next, struct weir_error *err)
{
    static const struct weir_query everything = {0};
    struct plan plan = {0};
    if (query == NULL) {
        query = &everything;
    }
    WEIR_TRY(plan_filters(resource, query, &plan, err));
    WEIR_TRY(plan_order(resource, query, arena, &plan, err));
    WEIR_AUTO(sql_auto_fini) struct weir_buf sql;
    weir_buf_init(&sql, SQL_MAX_BYTES);
    put_select(&sql, resource);
    put_where(&sql, &plan);
    put_order(&sql, &plan);
    WEIR_TRY(check_sql(&sql, err));
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql.data, WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(bind_plan(stmt, &plan, err));
    char *items;
    size_t n;
    bool has_more;
    WEIR_TRY(read_rows(stmt, resource, &plan, arena, &items, &n, &has_more, err));
    *out_items = items;
    *out_n = n;
    if (out_next != NULL) {
        *out_next = has_more ? cursor_after(&plan, items + (n - 1) * resource->size, arena) : NULL;
    }
    return WEIR_OK;
}

weir_status weir_txn_count(struct weir_txn *txn, const struct weir_resource *resource,
                           const struct weir_query *query, int64_t *out, struct weir_error *err)
{
    static const struct weir_query everything = {0};
    struct plan plan = {0};
    WEIR_TRY(plan_filters(resource, query != NULL ? query : &everything, &plan, err));
    WEIR_AUTO(sql_auto_fini) struct weir_buf sql;
    weir_buf_init(&sql, SQL_MAX_BYTES);
    weir_buf_printf(&sql, "SELECT count(*) FROM \"%s\"", resource->plural);
    put_where(&sql, &plan);
    WEIR_TRY(check_sql(&sql, err));
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql.data, WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(bind_plan(stmt, &plan, err));
    bool has_row;
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    *out = weir_stmt_int(stmt, 0);
    return WEIR_OK;
}
