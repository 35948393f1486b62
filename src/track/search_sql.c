/** SQL of filters, orders and cursors. Nothing that a caller wrote stands in it: it is bound. */
#include "track/search.h"

#include "base/base64.h"
#include "base/grow.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

#define SQL_MAX_BYTES    ((size_t)1 << 20)
#define CURSOR_MAX_BYTES 65536

void weir_search_sql_init(struct weir_search_sql *sql, struct weir_arena *arena)
{
    *sql = (struct weir_search_sql){.arena = arena};
    weir_buf_init(&sql->text, SQL_MAX_BYTES);
}

void weir_search_sql_fini(struct weir_search_sql *sql)
{
    weir_buf_fini(&sql->text);
}

void weir_search_sql_put(struct weir_search_sql *sql, const char *text)
{
    (void)weir_buf_puts(&sql->text, text);
}

void weir_search_sql_bind(struct weir_search_sql *sql, struct weir_bind bind)
{
    weir_arena_grow(sql->arena, &sql->binds, sizeof *sql->binds, sql->n_binds, &sql->cap);
    sql->binds[sql->n_binds++] = bind;
}

weir_status weir_search_sql_check(const struct weir_search_sql *sql, struct weir_error *err)
{
    return sql->text.status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "the search is too long");
}

weir_status weir_search_sql_open(const struct weir_search_sql *sql, struct weir_txn *txn,
                                 struct weir_stmt **out, struct weir_error *err)
{
    return sql->proven.project != NULL
               ? weir_stmt_open_proven(txn, sql->proven, sql->text.data, sql->binds, sql->n_binds,
                                       out, err)
               : weir_stmt_open(txn, sql->text.data, sql->binds, sql->n_binds, out, err);
}

/* ---- filters ----------------------------------------------------------------------------------- */

/* Append "COLUMN OP ?" or "COLUMN IN (?, …)" with its values. */
static void put_comparison(struct weir_search_sql *sql, const char *column,
                           const struct weir_search_node *node)
{
    static const char *const ops[] = {
        [WEIR_SEARCH_EQ] = " = ",      [WEIR_SEARCH_NE] = " <> ",
        [WEIR_SEARCH_LT] = " < ",      [WEIR_SEARCH_LE] = " <= ",
        [WEIR_SEARCH_GT] = " > ",      [WEIR_SEARCH_GE] = " >= ",
        [WEIR_SEARCH_LIKE] = " LIKE ", [WEIR_SEARCH_ILIKE] = ") LIKE lower(",
        [WEIR_SEARCH_IN] = " IN (",    [WEIR_SEARCH_NOT_IN] = " NOT IN (",
    };
    bool is_open = node->op >= WEIR_SEARCH_ILIKE; /* "(" behind it */
    weir_search_sql_put(sql, node->op == WEIR_SEARCH_ILIKE ? "lower(" : "");
    weir_search_sql_put(sql, column);
    weir_search_sql_put(sql, ops[node->op]);
    if (node->is_number) {
        weir_search_sql_put(sql, "?");
        weir_search_sql_bind(sql, WEIR_BIND_F64(NULL, node->number));
        return;
    }
    for (size_t i = 0; i < node->n_texts; i++) {
        weir_search_sql_put(sql, i > 0 ? ", ?" : "?");
        weir_search_sql_bind(sql, WEIR_BIND_TEXT(NULL, node->texts[i]));
    }
    weir_search_sql_put(sql, is_open ? ")" : "");
}

/* What is absent matches no comparison. Beneath a NOT it must be told so; elsewhere NULL does as well as false, and what
 * is bare finds its index. */
static void put_node(struct weir_search_sql *sql, const struct weir_search_noun *noun,
                     const struct weir_search_node *node, bool is_negated)
{
    if (node->kind == WEIR_SEARCH_NOT) {
        weir_search_sql_put(sql, "(NOT ");
        put_node(sql, noun, node->left, true);
        weir_search_sql_put(sql, ")");
    } else if (node->kind != WEIR_SEARCH_COMPARE) {
        weir_search_sql_put(sql, "(");
        put_node(sql, noun, node->left, is_negated);
        weir_search_sql_put(sql, node->kind == WEIR_SEARCH_AND ? " AND " : " OR ");
        put_node(sql, noun, node->right, is_negated);
        weir_search_sql_put(sql, ")");
    } else if (node->entity == WEIR_SEARCH_ATTRIBUTE) {
        const bool is_nullable = node->attribute->is_nullable && is_negated;
        weir_search_sql_put(sql, is_nullable ? "(" : "");
        put_comparison(sql, node->attribute->sql, node);
        weir_search_sql_put(sql, is_nullable ? ") IS TRUE" : "");
    } else if (node->entity == WEIR_SEARCH_DATASET) {
        weir_search_sql_put(sql, noun->exists[node->entity]);
        put_comparison(sql,
                       strcmp(node->key, "context") == 0 ? "i.context"
                       : strcmp(node->key, "name") == 0  ? "d.name"
                                                         : "d.digest",
                       node);
        weir_search_sql_put(sql, ")");
    } else {
        weir_search_sql_put(sql, noun->exists[node->entity]);
        weir_search_sql_bind(sql, WEIR_BIND_TEXT(NULL, node->key));
        put_comparison(sql,
                       node->entity == WEIR_SEARCH_METRIC && noun->metric != NULL ? noun->metric
                                                                                  : "x.value",
                       node);
        weir_search_sql_put(sql, ")");
    }
}

void weir_search_sql_filter(struct weir_search_sql *sql, const struct weir_search_noun *noun,
                            const struct weir_search_node *filter)
{
    if (filter == NULL) {
        weir_search_sql_put(sql, "1 = 1");
    } else {
        put_node(sql, noun, filter, false);
    }
}

/* ---- orders ------------------------------------------------------------------------------------ */

void weir_search_columns_add(struct weir_search_columns *columns, const char *sql,
                             bool is_descending, enum weir_bind_type type)
{
    columns->items[columns->n].sql = (char *)sql;
    columns->items[columns->n].is_descending = is_descending;
    columns->items[columns->n++].type = type;
}

void weir_search_columns_of(const struct weir_search_order *orders, size_t n,
                            struct weir_arena *arena, struct weir_search_columns *out)
{
    *out = (struct weir_search_columns){0};
    for (size_t i = 0; i < n && i < WEIR_SEARCH_ORDERS_MAX; i++) {
        bool is_metric = orders[i].entity == WEIR_SEARCH_METRIC;
        const struct weir_search_attribute *attribute = orders[i].attribute;
        const char *value =
            attribute != NULL ? attribute->sql : weir_arena_printf(arena, "o%zu.value", i);
        bool is_number = is_metric || (attribute != NULL && attribute->is_number);
        if (attribute != NULL && !attribute->is_nullable) {
            weir_search_columns_add(out, value, orders[i].is_descending,
                                    is_number ? WEIR_BIND_TYPE_INT : WEIR_BIND_TYPE_TEXT);
            continue;
        }
        weir_search_columns_add(
            out, weir_arena_printf(arena, "CASE WHEN %s IS NULL THEN 1 ELSE 0 END", value), false,
            WEIR_BIND_TYPE_INT);
        if (is_metric) {
            weir_search_columns_add(out, weir_arena_printf(arena, "coalesce(o%zu.is_nan, 0)", i),
                                    false, WEIR_BIND_TYPE_INT);
        }
        weir_search_columns_add(
            out, weir_arena_printf(arena, "coalesce(%s, %s)", value, is_number ? "0" : "''"),
            orders[i].is_descending, is_number ? WEIR_BIND_TYPE_F64 : WEIR_BIND_TYPE_TEXT);
    }
}

void weir_search_sql_joins(struct weir_search_sql *sql, const struct weir_search_noun *noun,
                           const struct weir_search_order *orders, size_t n)
{
    for (size_t i = 0; i < n && i < WEIR_SEARCH_ORDERS_MAX; i++) {
        if (orders[i].entity == WEIR_SEARCH_ATTRIBUTE) {
            continue;
        }
        for (const char *p = noun->join[orders[i].entity]; *p != '\0'; p++) {
            if (*p == '#') {
                (void)weir_buf_printf(&sql->text, "%zu", i);
            } else {
                (void)weir_buf_append(&sql->text, p, 1);
            }
        }
        weir_search_sql_bind(sql, WEIR_BIND_TEXT(NULL, orders[i].key));
    }
}

void weir_search_sql_columns(struct weir_search_sql *sql, const struct weir_search_columns *columns)
{
    for (size_t i = 0; i < columns->n; i++) {
        weir_search_sql_put(sql, ", ");
        weir_search_sql_put(sql, columns->items[i].sql);
    }
}

void weir_search_sql_order(struct weir_search_sql *sql, const struct weir_search_columns *columns)
{
    for (size_t i = columns->n_fixed; i < columns->n; i++) {
        weir_search_sql_put(sql, i > columns->n_fixed ? ", " : " ORDER BY ");
        weir_search_sql_put(sql, columns->items[i].sql);
        weir_search_sql_put(sql, columns->items[i].is_descending ? " DESC" : "");
    }
}

/* ---- cursors ----------------------------------------------------------------------------------- */

/* A cursor is the base64 of a JSON array: the order columns of the last row of the page before. */
static weir_status read_cursor(const char *cursor, const struct weir_search_columns *columns,
                               struct weir_arena *arena, struct weir_bind *out,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *values = NULL;
    struct weir_error ignored;
    size_t len = strnlen(cursor, CURSOR_MAX_BYTES + 1), n = 0;
    char *text = weir_arena_alloc(arena, len + 4);
    bool is_good = len <= CURSOR_MAX_BYTES &&
                   weir_base64_decode(cursor, text, len + 3, &n) == WEIR_OK &&
                   weir_json_parse(text, n, "cursor", &values, &ignored) == WEIR_OK &&
                   json_is_array(values) && json_array_size(values) == columns->n;
    for (size_t i = 0; is_good && i < columns->n; i++) {
        const json_t *value = json_array_get(values, i);
        enum weir_bind_type type = columns->items[i].type;
        if (type == WEIR_BIND_TYPE_TEXT) {
            is_good = json_is_string(value);
            out[i] = WEIR_BIND_TEXT(NULL, weir_arena_strdup(arena, json_string_value(value)));
        } else if (type == WEIR_BIND_TYPE_INT) {
            is_good = json_is_integer(value);
            out[i] = WEIR_BIND_INT(NULL, json_integer_value(value));
        } else {
            is_good = json_is_number(value);
            out[i] = WEIR_BIND_F64(NULL, json_number_value(value));
        }
    }
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "Invalid page token: \"%.40s\" is not a cursor of this search",
                                    cursor);
}

weir_status weir_search_sql_after(struct weir_search_sql *sql,
                                  const struct weir_search_columns *columns, const char *cursor,
                                  struct weir_error *err)
{
    struct weir_bind *values = WEIR_ARENA_ARRAY(sql->arena, columns->n + 1, struct weir_bind);
    WEIR_TRY(read_cursor(cursor, columns, sql->arena, values, err));
    /* a > x OR (a = x AND (b > y OR …)), and before it a >= x, which an index can follow. */
    size_t first = columns->n_fixed;
    weir_search_sql_put(sql, " AND ");
    weir_search_sql_put(sql, columns->items[first].sql);
    weir_search_sql_put(sql, columns->items[first].is_descending ? " <= ?" : " >= ?");
    weir_search_sql_bind(sql, values[first]);
    weir_search_sql_put(sql, " AND (");
    for (size_t i = first; i < columns->n; i++) {
        bool is_last = i + 1 == columns->n;
        weir_search_sql_put(sql, columns->items[i].sql);
        weir_search_sql_put(sql, columns->items[i].is_descending ? " < ?" : " > ?");
        weir_search_sql_bind(sql, values[i]);
        if (!is_last) {
            weir_search_sql_put(sql, " OR (");
            weir_search_sql_put(sql, columns->items[i].sql);
            weir_search_sql_put(sql, " = ? AND (");
            weir_search_sql_bind(sql, values[i]);
        }
    }
    for (size_t i = first; i + 1 < columns->n; i++) {
        weir_search_sql_put(sql, "))");
    }
    weir_search_sql_put(sql, ")");
    return WEIR_OK;
}

bool weir_search_cursor_fits(const struct weir_search_columns *columns, const char *cursor,
                             struct weir_arena *arena)
{
    struct weir_error ignored;
    struct weir_bind *values = WEIR_ARENA_ARRAY(arena, columns->n + 1, struct weir_bind);
    bool fits = true;
    if (read_cursor(cursor, columns, arena, values, &ignored) == WEIR_OK) {
        for (size_t i = 0; i < columns->n_fixed; i++) {
            fits = fits && values[i].i64 == 0;
        }
    }
    return fits;
}

char *weir_search_cursor(const struct weir_stmt *stmt, int i_first,
                         const struct weir_search_columns *columns, struct weir_arena *arena)
{
    json_t *values = json_array();
    for (size_t i = 0; i < columns->n; i++) {
        int at = i_first + (int)i;
        enum weir_bind_type type = columns->items[i].type;
        json_array_append_new(
            values, type == WEIR_BIND_TYPE_TEXT  ? json_string(weir_stmt_text(stmt, at, arena))
                    : type == WEIR_BIND_TYPE_INT ? json_integer(weir_stmt_int(stmt, at))
                                                 : json_real(weir_stmt_f64(stmt, at)));
    }
    char *text = weir_json_text(values, arena);
    json_decref(values);
    if (text == NULL) {
        return NULL;
    }
    char *cursor = weir_arena_alloc(arena, WEIR_BASE64_TEXT_BYTES(strlen(text)));
    return weir_base64_encode(text, strlen(text), cursor);
}
