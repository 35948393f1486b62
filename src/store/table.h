/**
 * Record access: insert, get, update, delete and list any record that a `struct weir_resource`
 * (base/record.h) describes. The resource's plural is the SQL table, its fields are the columns.
 *
 *     struct weir_project project;
 *     WEIR_TRY(weir_txn_get(txn, &weir_project_resource, id, arena, &project, err));
 *     project.description = "…";
 *     WEIR_TRY(weir_txn_update(txn, &weir_project_resource, &project,
 *                              WEIR_FIELDS("description"), err));
 *
 * Absent text (NULL) and NaN are SQL NULL; integers, times and booleans are never NULL. Text of a
 * record that comes out lives in the arena. Messages use the resource's singular: "project \"x\"
 * not found". For use inside a transaction function only.
 */
#ifndef WEIR_STORE_TABLE_H
#define WEIR_STORE_TABLE_H

#include "base/arena.h"
#include "base/record.h"
#include "base/status.h"
#include "store/store.h"

/** @return EXISTS, CONFLICT (reference to what is not there), INVALID (a missing value), DENIED (of a project
 *  that is out of the scope). */
weir_status weir_txn_insert(struct weir_txn *txn, const struct weir_resource *resource,
                            const void *record, struct weir_error *err) WEIR_MUST_CHECK;

/** The record with this key (as text, also for integer keys). @return NOT_FOUND; LIMIT if it is
 *  more than the arena may hold. */
weir_status weir_txn_get(struct weir_txn *txn, const struct weir_resource *resource,
                         const char *key, struct weir_arena *arena, void *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** The record whose unique text column `field` has `value`. @return NOT_FOUND. */
weir_status weir_txn_get_by(struct weir_txn *txn, const struct weir_resource *resource,
                            const char *field, const char *value, struct weir_arena *arena,
                            void *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Two arguments: names of fields and their number. */
#define WEIR_FIELDS(...)                                                                           \
    (const char *const[]){__VA_ARGS__},                                                            \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

/** Write the named fields of the record with *record's key. @return NOT_FOUND, EXISTS, CONFLICT. */
weir_status weir_txn_update(struct weir_txn *txn, const struct weir_resource *resource,
                            const void *record, const char *const *fields, size_t n_fields,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Insert, or replace every field if the key is there already. */
weir_status weir_txn_upsert(struct weir_txn *txn, const struct weir_resource *resource,
                            const void *record, struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND; CONFLICT if other records refer to it. */
weir_status weir_txn_delete(struct weir_txn *txn, const struct weir_resource *resource,
                            const char *key, struct weir_error *err) WEIR_MUST_CHECK;

enum weir_op { WEIR_OP_EQ, WEIR_OP_NE, WEIR_OP_LT, WEIR_OP_LE, WEIR_OP_GT, WEIR_OP_GE };

/** `field op value`; the value's member is the one of the field's type (TIME and BOOL: i64). */
struct weir_filter {
    const char *field;
    enum weir_op op;
    const char *text; /**< TEXT: with EQ and NE, NULL means absent. */
    int64_t i64;
    double f64;
    bool is_common; /**< Many rows pass: an index of another filter's is to be entered. */
};

#define WEIR_FILTER_TEXT(f, o, v)                                                                  \
    ((struct weir_filter){.field = (f), .op = WEIR_OP_##o, .text = (v)})
#define WEIR_FILTER_INT(f, o, v) ((struct weir_filter){.field = (f), .op = WEIR_OP_##o, .i64 = (v)})
#define WEIR_FILTER_F64(f, o, v) ((struct weir_filter){.field = (f), .op = WEIR_OP_##o, .f64 = (v)})

#define WEIR_QUERY_FILTERS_MAX   16
#define WEIR_QUERY_LIMIT_MAX     100000
#define WEIR_QUERY_LIMIT_DEFAULT 100

struct weir_query {
    const struct weir_filter *filters; /**< All must hold; at most WEIR_QUERY_FILTERS_MAX. */
    size_t n_filters;
    /** A condition of the table's columns more, in SQL: a constant of the program. As a filter's value stands beside the
     *  statement, an index of some rows only is found by this alone. NULL: none. */
    const char *condition;
    const char *order_by; /**< TEXT, INT or TIME field; NULL = the key. Ties go by key. */
    bool is_descending;
    const char *cursor; /**< out_next of the page before; NULL = from the start. */
    size_t limit;       /**< 0 = WEIR_QUERY_LIMIT_DEFAULT; at most WEIR_QUERY_LIMIT_MAX. */
    size_t max_bytes;   /**< 0 = none. End the page after the record with which the sum of
                           weir_record_weight passes this. */
};

#define WEIR_FILTERS(...)                                                                          \
    .filters = (const struct weir_filter[]){__VA_ARGS__},                                          \
    .n_filters = sizeof((const struct weir_filter[]){__VA_ARGS__}) / sizeof(struct weir_filter)

/**
 * The records that match, in order: *out_items is an array of *out_n structs (NULL if none).
 *
 * @param query     NULL = all, by key, the first 100.
 * @param out_next  May be NULL. The cursor of the next page; NULL after the last.
 * @return INVALID for an unknown field or a cursor that is none; LIMIT if the records are more than
 *         the arena may hold.
 */
weir_status weir_txn_list(struct weir_txn *txn, const struct weir_resource *resource,
                          const struct weir_query *query, struct weir_arena *arena,
                          void **out_items, size_t *out_n, char **out_next,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** How many records match; cursor, order and limit are not looked at. */
weir_status weir_txn_count(struct weir_txn *txn, const struct weir_resource *resource,
                           const struct weir_query *query, int64_t *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
