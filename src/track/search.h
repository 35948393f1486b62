/**
 * Search: filters and orders as text, in MLflow's grammar and a little more, made into SQL with bound
 * values.
 *
 *     metrics.loss < 0.2 and (params.`learning rate` = '0.1' or tags.team like 'vis%') and not status = 'FAILED'
 *
 *     filter     := or
 *     or         := and (OR and)*
 *     and        := not (AND not)*
 *     not        := NOT not | "(" or ")" | comparison
 *     comparison := name op value | name [NOT] IN "(" text ("," text)* ")"
 *     name       := [entity "."] key        entity: metrics, params, tags, attributes, datasets …
 *     key        := bare (letters, digits, "_./-:") | `quoted` | "quoted"
 *     op         := "=" "==" "!=" "<" "<=" ">" ">=" LIKE ILIKE
 *     order      := name [ASC | DESC]
 *
 * Words are read in any case. Numbers compare with metrics and times, quoted text with all else; LIKE
 * looks at case, ILIKE does not. A run without that key fits no comparison with it.
 *
 * A *noun* says what can be searched for: attributes with their SQL, and how metrics, tags and so on are
 * found. The parser is pure; the SQL holds "?" wherever something of the text stands.
 */
#ifndef WEIR_TRACK_SEARCH_H
#define WEIR_TRACK_SEARCH_H

#include "base/arena.h"
#include "base/buf.h"
#include "store/row_scope.h"
#include "store/stmt.h"

#define WEIR_SEARCH_TEXT_MAX        16384 /**< Bytes of a filter. */
#define WEIR_SEARCH_COMPARISONS_MAX 64
#define WEIR_SEARCH_DEPTH_MAX       32
#define WEIR_SEARCH_LISTED_MAX      1000 /**< Values behind IN. */
#define WEIR_SEARCH_ORDERS_MAX      8

enum weir_search_entity {
    WEIR_SEARCH_ATTRIBUTE,
    WEIR_SEARCH_METRIC,
    WEIR_SEARCH_PARAMETER,
    WEIR_SEARCH_TAG,
    WEIR_SEARCH_DATASET, /**< Keys: name, digest, context. */
    WEIR_SEARCH_ENTITIES
};

enum weir_search_op {
    WEIR_SEARCH_EQ,
    WEIR_SEARCH_NE,
    WEIR_SEARCH_LT,
    WEIR_SEARCH_LE,
    WEIR_SEARCH_GT,
    WEIR_SEARCH_GE,
    WEIR_SEARCH_LIKE,
    WEIR_SEARCH_ILIKE,
    WEIR_SEARCH_IN,
    WEIR_SEARCH_NOT_IN,
};

/** An attribute of a noun. */
struct weir_search_attribute {
    const char *name;
    const char *sql; /**< Its value in a row: "r.start_ms". */
    bool is_number;
    bool is_nullable;
};

struct weir_search_noun {
    const char *name; /**< For messages: "run". */
    const struct weir_search_attribute *attributes;
    size_t n_attributes;
    /** By entity, SQL that goes on with the value's column, x.value, and has one "?" for the key:
     *  "EXISTS (SELECT 1 FROM … x WHERE … = ? AND "; NULL: the noun has none. */
    const char *exists[WEIR_SEARCH_ENTITIES];
    const char *metric; /**< The value of a metric; NULL: x.value. */
    /** By entity, a join whose alias is "o#", with one "?" for the key; NULL: nothing is ordered by it. Its
     *  column `value`, and for metrics `is_nan`, are ordered by. */
    const char *join[WEIR_SEARCH_ENTITIES];
};

enum weir_search_kind {
    WEIR_SEARCH_COMPARE,
    WEIR_SEARCH_AND,
    WEIR_SEARCH_OR,
    WEIR_SEARCH_NOT,
};

struct weir_search_node {
    enum weir_search_kind kind;
    struct weir_search_node *left, *right; /**< Of AND and OR; NOT has `left` only. */
    enum weir_search_entity entity;
    const char *key;
    const struct weir_search_attribute *attribute; /**< Of ATTRIBUTE. */
    enum weir_search_op op;
    bool is_number;
    double number;
    const char **texts; /**< One, or the list of IN. */
    size_t n_texts;
};

struct weir_search_order {
    enum weir_search_entity entity;
    const char *key;
    const struct weir_search_attribute *attribute;
    bool is_descending;
};

/**
 * Read a filter. *out is NULL for an empty text (or NULL).
 * @return INVALID, with the place: "filter, character 9: …". Pure; everything lies in the arena.
 */
weir_status weir_search_parse(const char *text, const struct weir_search_noun *noun,
                              struct weir_arena *arena, struct weir_search_node **out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** "a AND b"; one of them if the other is NULL. */
struct weir_search_node *weir_search_and(struct weir_arena *arena, struct weir_search_node *a,
                                         struct weir_search_node *b);

/** "NAME = 'value'" of an attribute that the noun has, and whose values are texts. */
struct weir_search_node *weir_search_equals(struct weir_arena *arena,
                                            const struct weir_search_noun *noun, const char *name,
                                            const char *value);

/** Read one order: "metrics.loss DESC". @return INVALID. */
weir_status weir_search_parse_order(const char *text, const struct weir_search_noun *noun,
                                    struct weir_arena *arena, struct weir_search_order *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** SQL that grows, with the values of its "?" in order. */
struct weir_search_sql {
    struct weir_buf text;
    struct weir_bind *binds;
    size_t n_binds, cap;
    struct weir_arena *arena;
    struct weir_proven proven; /**< With what it is opened; its text names :project. */
};

void weir_search_sql_init(struct weir_search_sql *sql, struct weir_arena *arena);
void weir_search_sql_fini(struct weir_search_sql *sql);
void weir_search_sql_put(struct weir_search_sql *sql, const char *text);
void weir_search_sql_bind(struct weir_search_sql *sql, struct weir_bind bind);
/** @return INVALID: the text has become too long, and is not whole. */
weir_status weir_search_sql_check(const struct weir_search_sql *sql,
                                  struct weir_error *err) WEIR_MUST_CHECK;

weir_status weir_search_sql_open(const struct weir_search_sql *sql, struct weir_txn *txn,
                                 struct weir_stmt **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Append the condition of a filter, in parentheses; "1" for NULL. */
void weir_search_sql_filter(struct weir_search_sql *sql, const struct weir_search_noun *noun,
                            const struct weir_search_node *filter);

/**
 * What rows are ordered by, as columns that are never NULL: what is missing comes last, before it what is
 * not a number. The last columns make the order total.
 */
struct weir_search_columns {
    struct {
        char *sql;
        bool is_descending;
        enum weir_bind_type type;
    } items[3 * WEIR_SEARCH_ORDERS_MAX + 4];

    size_t n;
    /** The first so many are 0 in every row of this search: nothing is ordered by them. */
    size_t n_fixed;
};

/** Columns of the orders; the caller adds those that make them total with weir_search_columns_add. */
void weir_search_columns_of(const struct weir_search_order *orders, size_t n,
                            struct weir_arena *arena, struct weir_search_columns *out);
void weir_search_columns_add(struct weir_search_columns *columns, const char *sql,
                             bool is_descending, enum weir_bind_type type);

/** Append the joins that the columns of these orders need. */
void weir_search_sql_joins(struct weir_search_sql *sql, const struct weir_search_noun *noun,
                           const struct weir_search_order *orders, size_t n);
/** Append ", COLUMN, …": for the cursor. */
void weir_search_sql_columns(struct weir_search_sql *sql,
                             const struct weir_search_columns *columns);
/** Append " ORDER BY …". */
void weir_search_sql_order(struct weir_search_sql *sql, const struct weir_search_columns *columns);

/** Append " AND …": only rows behind the one that a cursor names. @return INVALID if it is none, or of
 *  another order. */
weir_status weir_search_sql_after(struct weir_search_sql *sql,
                                  const struct weir_search_columns *columns, const char *cursor,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Are the fixed columns 0 at the row that a cursor names? Also if it is no cursor: the search says so. */
bool weir_search_cursor_fits(const struct weir_search_columns *columns, const char *cursor,
                             struct weir_arena *arena);

/** The cursor of a statement's row, whose order columns begin at i_first; in the arena. */
char *weir_search_cursor(const struct weir_stmt *stmt, int i_first,
                         const struct weir_search_columns *columns, struct weir_arena *arena);

#endif
