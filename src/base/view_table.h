/* A file NAME.def of views after this defines their tables, in one C file; base/view.h. It has no guard. */
#include "base/view.h"

#include "base/view_begin.h"

// clang-format off
#define WEIR_VIEW_BEGIN(v, s, title, record)                                                       \
    static const struct weir_view_head v##_head = {title, sizeof(struct s), record};               \
    const struct weir_view_table *v##_view(void)                                                         \
    {                                                                                              \
        typedef struct s this_view;                                                                \
        static const struct weir_member members[] = {
#define VIEW(v, title)              WEIR_VIEW_BEGIN(v, v, title, NULL)
#define ANSWER(v, title, route)     WEIR_VIEW_BEGIN(v, v, title, NULL)
#define PART(v)                     WEIR_VIEW_BEGIN(v, v, NULL, NULL)
#define RECORD(v, title, r, filled) WEIR_VIEW_BEGIN(v, v, title, &r##_resource)
#define RECORD_ANSWER(v, title, r, filled, route) WEIR_VIEW_BEGIN(v, v, title, &r##_resource)
#define OVER(v, title, s)           WEIR_VIEW_BEGIN(v, s, title, NULL)
#define FIELD                       MEMBER
#define END_OVER(v)                 END(v)
#define PLAIN(title, r, filled)
#define SAME(v, title, route)
#define SHAPE(title, record, filled, route)
#define BODY(title, record, route)
#define SAYS(presence, words, name, doc)
#define END_SHAPE
#define MEMBER(presence_, kind, m, name_, doc_)                                                    \
            {.name = (name_), .presence = WEIR_MEMBER_##presence_, .doc = (doc_),                  \
             .offset = offsetof(this_view, m), WEIR_T_##kind(m)},
#define HOLDS(presence_, words_, field, doc_)                                                      \
            {.name = #field, .type = WEIR_MEMBER_HOLDS, .presence = WEIR_MEMBER_##presence_,       \
             .words = (words_), .doc = (doc_)},
#define END(v)                                                                                     \
        };                                                                                         \
        static const struct weir_view_table view = {&v##_head, members, WEIR_ARRAY_LEN(members)};        \
        return &view;                                                                              \
    }

#ifndef WEIR_T_TEXT
/* The kind, if the C type fits it; else it does not compile. */
#define WEIR_IS(m, c_type) __builtin_types_compatible_p(__typeof__(((this_view *)0)->m), c_type)
#define WEIR_T(kind, fits) .type = WEIR_MEMBER_##kind + 0 * sizeof(char[(fits) ? 1 : -1])
#define WEIR_T_TEXT(m)      WEIR_T(TEXT, WEIR_IS(m, const char *) || WEIR_IS(m, char *))
#define WEIR_T_INT(m)       WEIR_T(INT, WEIR_IS(m, int64_t))
#define WEIR_T_F64(m)       WEIR_T(F64, WEIR_IS(m, double))
#define WEIR_T_BOOL(m)      WEIR_T(BOOL, WEIR_IS(m, bool))
#define WEIR_T_TIME(m)      WEIR_T(TIME, WEIR_IS(m, int64_t))
#define WEIR_T_FROM_1(m)    WEIR_T(FROM_1, WEIR_IS(m, int64_t))
#define WEIR_T_MILLI(m)     WEIR_T(MILLI, WEIR_IS(m, int64_t))
#define WEIR_T_TEXTS(m)     .type = WEIR_MEMBER_TEXTS, WEIR_T_MANY(m)
#define WEIR_T_INTS(m)      .type = WEIR_MEMBER_INTS, WEIR_T_MANY(m)
#define WEIR_T_VIEW_OF(v)   .type = WEIR_MEMBER_VIEW_OF, .view = v##_view WEIR_T_ONE
#define WEIR_T_ROW_OF(r)    .type = WEIR_MEMBER_ROW_OF, .resource = &r##_resource WEIR_T_ONE
#define WEIR_T_VIEWS(v)     .type = WEIR_MEMBER_VIEWS, .view = v##_view, WEIR_T_MANY
#define WEIR_T_IN(v)        .type = WEIR_MEMBER_IN, .view = v##_view WEIR_T_ONE
#define WEIR_T_FLAT(v)      .type = WEIR_MEMBER_FLAT, .view = v##_view WEIR_T_ONE
#define WEIR_T_IN_AS(v, s)    WEIR_T_IN(v)
#define WEIR_T_FLAT_AS(v, s)  WEIR_T_FLAT(v)
#define WEIR_T_FLAT_OF(v)   .type = WEIR_MEMBER_FLAT_OF, .view = v##_view WEIR_T_ONE
#define WEIR_T_VIEW_AS(v, s)  WEIR_T_VIEW_OF(v)
#define WEIR_T_VIEWS_AS(v, s) WEIR_T_VIEWS(v)
#define WEIR_T_ROWS(r)      .type = WEIR_MEMBER_ROWS, .resource = &r##_resource, WEIR_T_MANY
#define WEIR_MAP_OF(s)                                                                             \
    .stride = sizeof(struct s), .key = offsetof(struct s, key), .value = offsetof(struct s, value)
#define WEIR_T_MAP(s)                                                                              \
    .type = WEIR_MEMBER_MAP, .words = "map of text", WEIR_MAP_OF(s), WEIR_T_MANY
#define WEIR_T_MAP_F64(s)                                                                          \
    .type = WEIR_MEMBER_MAP_F64, .words = "map of number", WEIR_MAP_OF(s), WEIR_T_MANY
#define WEIR_T_JSON(words_) .type = WEIR_MEMBER_JSON, .words = words_ WEIR_T_ONE
#define WEIR_T_ONE(m)
#define WEIR_T_MANY(m)      .n_offset = offsetof(this_view, n_##m)
#endif
// clang-format on
