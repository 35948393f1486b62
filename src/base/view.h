/**
 * Views: what an answer says is a plain struct with a table of its members, and one function writes the JSON of both.
 * The schema of the answer comes from the same table, so that an answer and what is said of it cannot differ.
 *
 * A view is written down once, in a file NAME.def that has no guard:
 *
 *     VIEW(api_link, "link")
 *     ALWAYS(TEXT, id, "FROM:TO")
 *     OR_NULL(INT, serving_version, "What replicas serve")
 *     ALWAYS(VIEWS(api_waiting), waiting, "What stands in the chain")
 *     END(api_link)
 *
 * Between base/view_struct.h and base/view_end.h it declares `struct api_link` and `api_link_view`; between
 * base/view_table.h and base/view_end.h, in one C file, it defines the table. The first argument of a member is its kind:
 *
 *     TEXT, INT, F64, BOOL, TIME   as of a record (base/record.h); the text is borrowed
 *     FROM_1                       int64_t that counts from 1 on; 0 is not known either
 *     MILLI                        int64_t thousandths, a JSON number
 *     TEXTS, INTS                  an array `m` of `n_m`: char *const *, const int64_t *
 *     VIEW_OF(v), VIEWS(v)         const struct v *; and as an array `m` of `n_m`
 *     IN(v)                        struct v, by value
 *     FLAT(v)                      struct v, by value; its members stand among these
 *     FLAT_OF(v)                   const struct v *; its members stand among these, or are all missing if it is NULL
 *     VIEW_AS(v, s), VIEWS_AS, IN_AS, FLAT_AS
 *                                  the same with struct s instead of struct v: v is a view OVER(s)
 *     ROW_OF(r), ROWS(r)           const struct r *, a record whose table is r_resource; and as an array `m` of `n_m`
 *     MAP(s), MAP_F64(s)           an array `m` of `n_m` of struct s with a text `key` and a `value`, text or double
 *     JSON(words)                  json_t *, which is taken; its type in words, see struct weir_member
 *
 * Not known is: NULL, WEIR_INT_NONE, a number that is not finite, the time 0. ALWAYS is a member that is always known
 * (no text is ""; no items are []), OR_NULL one that is null if it is not known, MAY_MISS one that is left out then.
 * Other lines: MEMBER(presence, kind, m, "name", doc), whose name in JSON is not that in C; HOLDS(presence, "words",
 * field, doc), what a JSON field of the record holds, which the record writes.
 *
 * What a file is made of:
 *
 *     VIEW(v, "title") … END(v)
 *     ANSWER(v, "title", "GET /route") … END(v)     a view that this route alone answers
 *     PART(v) … END(v)                              what is only ever FLAT in others, and has no schema of its own
 *     OVER(v, "title", s) … END_OVER(v)             a view of struct s, which is there already: its lines are
 *                                                   FIELD(presence, kind, m, "name", doc)
 *     RECORD(v, "title", r, "filled") … END(v)      fields of a record, and members beside them. `row` points to the
 *                                                   record (NULL: the members alone); a member replaces a field of its
 *                                                   name, where that stands. `filled`: texts and times of the record
 *                                                   that are never null
 *     RECORD_ANSWER(v, "title", r, "filled", "GET /route") … END(v)
 *     PLAIN("title", r, "filled")                   a record that answers show as it is
 *     SAME(v, "title", "GET /route")                another route that answers the view v
 *     SHAPE("title", &r_resource or NULL, "filled", "GET /route" or NULL) … END_SHAPE
 *                                                   an answer that no struct says, in words: its lines are
 *                                                   SAYS(presence, "words", name, doc)
 *     BODY("title", &r_resource or NULL, "POST /route") … END_SHAPE
 *                                                   the same of what a route takes
 */
#ifndef WEIR_BASE_VIEW_H
#define WEIR_BASE_VIEW_H

#include "base/record.h"

enum weir_member_type {
    WEIR_MEMBER_TEXT,
    WEIR_MEMBER_INT,
    WEIR_MEMBER_F64,
    WEIR_MEMBER_BOOL,
    WEIR_MEMBER_TIME,
    WEIR_MEMBER_FROM_1,
    WEIR_MEMBER_MILLI,
    WEIR_MEMBER_TEXTS,
    WEIR_MEMBER_INTS,
    WEIR_MEMBER_VIEW_OF,
    WEIR_MEMBER_VIEWS,
    WEIR_MEMBER_IN,
    WEIR_MEMBER_FLAT,
    WEIR_MEMBER_FLAT_OF,
    WEIR_MEMBER_HOLDS, /**< Words for what a JSON field of the record holds; nothing is written. */
    WEIR_MEMBER_ROW_OF,
    WEIR_MEMBER_ROWS,
    WEIR_MEMBER_MAP,
    WEIR_MEMBER_MAP_F64,
    WEIR_MEMBER_JSON,
};

enum weir_member_presence {
    WEIR_MEMBER_ALWAYS,
    WEIR_MEMBER_OR_NULL,
    WEIR_MEMBER_MAY_MISS,
};

struct weir_view_table;

struct weir_member {
    const char *name;
    enum weir_member_type type;
    enum weir_member_presence presence;
    size_t offset, n_offset;                     /**< n_offset: of the count of an array. */
    const struct weir_view_table *(*view)(void); /**< Of VIEW_OF and VIEWS. */
    const struct weir_resource *resource;        /**< Of ROW_OF and ROWS. */
    size_t stride, key, value; /**< Of a MAP: size of its struct, and where these lie. */
    /** Of JSON: "text", "integer", "number", "bool", "time", "any", the title of a view or a record, or one of
     *  those after "list of " or "map of " (by text). */
    const char *words;
    const char *doc; /**< One sentence. */
};

struct weir_view_head {
    const char *title; /**< As a record's name: "link". */
    size_t size;       /**< sizeof the struct. */
    /** Whose `row` is the struct's first member; NULL: none. */
    const struct weir_resource *record;
};

struct weir_view_table {
    const struct weir_view_head *head;
    const struct weir_member *members;
    size_t n_members;
};

/** Of an INT: it is not known. */
#define WEIR_INT_NONE INT64_MIN

/** A new JSON object with what the struct `what` says, in the table's order; its JSON values are taken, so that it is
 *  written once. Aborts if no memory. */
json_t *weir_view_to_json(const struct weir_view_table *view, const void *what);

/** The same, into an object that is there; a member replaces one of its name, where that stands. */
void weir_view_add_to_json(const struct weir_view_table *view, const void *what, json_t *object);

/** The JSON of a view whose members are named here: WEIR_VIEW_JSON(api_link, .id = id, .policy = policy). */
#define WEIR_VIEW_JSON(name, ...)                                                                  \
    weir_view_to_json(name##_view(), &(const struct name){__VA_ARGS__})

#endif
