/* A file NAME.def of views after this declares their structs; base/view.h. It has no guard. */
#include "base/view.h"

#include "base/view_begin.h"

// clang-format off
#define VIEW(v, title)                   const struct weir_view_table *v##_view(void); struct v {
#define ANSWER(v, title, route)          VIEW(v, title)
#define PART(v)                          VIEW(v, NULL)
#define RECORD(v, title, r, filled)      VIEW(v, title) const struct r *row;
#define RECORD_ANSWER(v, title, r, filled, route) RECORD(v, title, r, filled)
#define OVER(v, title, s)                const struct weir_view_table *v##_view(void);
#define FIELD(presence, kind, m, name, doc)
#define END_OVER(v)
#define PLAIN(title, r, filled)
#define SAME(v, title, route)
#define SHAPE(title, record, filled, route)
#define BODY(title, record, route)
#define SAYS(presence, words, name, doc)
#define END_SHAPE
#define MEMBER(presence, kind, m, name, doc) WEIR_C_##kind(m)
#define HOLDS(presence, words, name, doc)
#define END(v)                           };

#ifndef WEIR_C_TEXT
/* How a member of each kind is declared. */
#define WEIR_C_TEXT(m)     const char *m;
#define WEIR_C_INT(m)      int64_t m;
#define WEIR_C_F64(m)      double m;
#define WEIR_C_BOOL(m)     bool m;
#define WEIR_C_TIME(m)     int64_t m;
#define WEIR_C_FROM_1(m)   int64_t m;
#define WEIR_C_MILLI(m)    int64_t m;
#define WEIR_C_TEXTS(m)    char *const *m; size_t n_##m;
#define WEIR_C_INTS(m)     const int64_t *m; size_t n_##m;
#define WEIR_C_VIEW_OF(v)  const struct v * WEIR_C_ONE
#define WEIR_C_ROW_OF(r)   const struct r * WEIR_C_ONE
#define WEIR_C_VIEWS(v)    const struct v * WEIR_C_MANY
#define WEIR_C_IN(v)       struct v WEIR_C_ONE
#define WEIR_C_FLAT(v)     struct v WEIR_C_ONE
#define WEIR_C_IN_AS(v, s)    struct s WEIR_C_ONE
#define WEIR_C_FLAT_AS(v, s)  struct s WEIR_C_ONE
#define WEIR_C_FLAT_OF(v)  const struct v * WEIR_C_ONE
#define WEIR_C_VIEW_AS(v, s)  const struct s * WEIR_C_ONE
#define WEIR_C_VIEWS_AS(v, s) const struct s * WEIR_C_MANY
#define WEIR_C_ROWS(r)     const struct r * WEIR_C_MANY
#define WEIR_C_MAP(s)      const struct s * WEIR_C_MANY
#define WEIR_C_MAP_F64(s)  const struct s * WEIR_C_MANY
#define WEIR_C_JSON(words) json_t * WEIR_C_ONE
#define WEIR_C_ONE(m)      m;
#define WEIR_C_MANY(m)     m; size_t n_##m;
#endif
// clang-format on
