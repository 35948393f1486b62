#include "track/model_search.h"

#include "base/grow.h"
#include "store/stmt.h"

static const struct weir_search_attribute model_attributes[] = {
    {"name", "m.name", false, false},
    {"creation_timestamp", "m.created_ms", true, false},
    {"last_updated_timestamp", "max(m.updated_ms, m.created_ms)", true, false},
};
const struct weir_search_noun weir_model_noun = {
    .name = "registered model",
    .attributes = model_attributes,
    .n_attributes = WEIR_ARRAY_LEN(model_attributes),
    .exists = {[WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM main.model_tags x WHERE "
                                   "x.model = m.name AND x.key = ? AND x.value"},
    .join = {[WEIR_SEARCH_TAG] =
                 " LEFT JOIN main.model_tags o# ON o#.model = m.name AND o#.key = ?"},
};

#define RUN_OF_VERSION "coalesce(v.source_run, v.run)"
#define LAST_UPDATE    "max(v.updated_ms, v.created_ms)"
static const struct weir_search_attribute version_attributes[] = {
    {"name", "v.model", false, false},
    {"version", "v.version", true, false},
    {"version_number", "v.version", true, false},
    {"run_id", RUN_OF_VERSION, false, true},
    {"source", "v.source", false, true},
    {"source_path", "v.source", false, true},
    {"stage", "v.stage", false, false},
    {"user_id", "v.created_by", false, true},
    {"creation_timestamp", "v.created_ms", true, false},
    {"last_updated_timestamp", LAST_UPDATE, true, false},
};
const struct weir_search_noun weir_version_noun = {
    .name = "model version",
    .attributes = version_attributes,
    .n_attributes = WEIR_ARRAY_LEN(version_attributes),
    .exists = {[WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM main.model_version_tags x WHERE "
                                   "x.version = v.id AND x.key = ? AND x.value"},
    .join = {[WEIR_SEARCH_TAG] =
                 " LEFT JOIN main.model_version_tags o# ON o#.version = v.id AND o#.key = ?"},
};

#define MODEL_COLUMNS                                                                              \
    "SELECT m.name, m.project, m.description, m.created_by, m.created_ms, m.updated_ms"
#define N_MODEL_COLUMNS 6
#define VERSION_COLUMNS                                                                            \
    "SELECT v.id, v.model, v.version, v.run, v.blob, v.bytes, v.created_by, v.created_ms,"         \
    " v.source, v.source_run, v.run_link, v.description, v.stage, v.unservable, v.updated_ms"
#define N_VERSION_COLUMNS 15

/** What is searched for: how its page is asked for and read. */
struct noun {
    const struct weir_search_noun *noun;
    const char *columns, *from, *where;
    int n_columns;
};

static const struct noun models = {&weir_model_noun, MODEL_COLUMNS, " FROM models m",
                                   " WHERE m.deleted_ms = 0", N_MODEL_COLUMNS};
static const struct noun versions = {&weir_version_noun, VERSION_COLUMNS, " FROM model_versions v",
                                     " WHERE v.deleted_ms = 0", N_VERSION_COLUMNS};

static struct weir_model read_model(const struct weir_stmt *stmt, struct weir_arena *arena)
{
    return (struct weir_model){.name = weir_stmt_text(stmt, 0, arena),
                               .project = weir_stmt_text(stmt, 1, arena),
                               .description = weir_stmt_text(stmt, 2, arena),
                               .created_by = weir_stmt_text(stmt, 3, arena),
                               .created_ms = weir_stmt_int(stmt, 4),
                               .updated_ms = weir_stmt_int(stmt, 5)};
}

static struct weir_model_version read_version(const struct weir_stmt *stmt,
                                              struct weir_arena *arena)
{
    return (struct weir_model_version){.id = weir_stmt_text(stmt, 0, arena),
                                       .model = weir_stmt_text(stmt, 1, arena),
                                       .version = weir_stmt_int(stmt, 2),
                                       .run = weir_stmt_text(stmt, 3, arena),
                                       .blob = weir_stmt_text(stmt, 4, arena),
                                       .bytes = weir_stmt_int(stmt, 5),
                                       .created_by = weir_stmt_text(stmt, 6, arena),
                                       .created_ms = weir_stmt_int(stmt, 7),
                                       .source = weir_stmt_text(stmt, 8, arena),
                                       .source_run = weir_stmt_text(stmt, 9, arena),
                                       .run_link = weir_stmt_text(stmt, 10, arena),
                                       .description = weir_stmt_text(stmt, 11, arena),
                                       .stage = weir_stmt_text(stmt, 12, arena),
                                       .unservable = weir_stmt_text(stmt, 13, arena),
                                       .updated_ms = weir_stmt_int(stmt, 14)};
}

/* The values of "?" are bound in the order in which they stand: joins come before conditions. */
static weir_status make_sql(const struct noun *noun, const struct weir_model_search *search,
                            const struct weir_search_columns *columns, struct weir_search_sql *sql,
                            struct weir_error *err)
{
    weir_search_sql_put(sql, noun->columns);
    weir_search_sql_columns(sql, columns);
    weir_search_sql_put(sql, noun->from);
    weir_search_sql_joins(sql, noun->noun, search->orders, search->n_orders);
    weir_search_sql_put(sql, noun->where);
    if (search->filter != NULL) {
        weir_search_sql_put(sql, " AND ");
        weir_search_sql_filter(sql, noun->noun, search->filter);
    }
    if (search->cursor != NULL) {
        WEIR_TRY(weir_search_sql_after(sql, columns, search->cursor, err));
    }
    weir_search_sql_order(sql, columns);
    weir_search_sql_put(sql, " LIMIT ?");
    weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, (int64_t)search->limit + 1));
    return sql->text.status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "the search is too long");
}

/** A page being read: one of the two arrays. */
struct page {
    const struct noun *noun;
    struct weir_arena *arena;
    struct weir_model *models;
    struct weir_model_version *versions;
    size_t n, cap;
    char *next;
};

static void add_row(struct page *page, const struct weir_stmt *stmt)
{
    if (page->noun == &models) {
        weir_arena_grow(page->arena, &page->models, sizeof *page->models, page->n, &page->cap);
        page->models[page->n++] = read_model(stmt, page->arena);
    } else {
        weir_arena_grow(page->arena, &page->versions, sizeof *page->versions, page->n, &page->cap);
        page->versions[page->n++] = read_version(stmt, page->arena);
    }
}

static weir_status read_page(struct weir_txn *txn, size_t limit,
                             const struct weir_search_columns *columns,
                             const struct weir_search_sql *sql, struct page *page,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql->text.data, sql->binds, sql->n_binds, &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            page->next = NULL;
            return WEIR_OK;
        }
        if (page->n == limit) {
            return WEIR_OK;
        }
        add_row(page, stmt);
        if (page->n == limit) {
            page->next = weir_search_cursor(stmt, page->noun->n_columns, columns, page->arena);
        }
        WEIR_TRY(weir_arena_check(page->arena, "models", err));
    }
}

static weir_status search_for(struct weir_txn *txn, const struct weir_model_search *search,
                              const struct weir_search_columns *columns, struct page *page,
                              struct weir_error *err)
{
    struct weir_search_sql sql;
    weir_search_sql_init(&sql, page->arena);
    weir_status status = make_sql(page->noun, search, columns, &sql, err);
    if (status == WEIR_OK) {
        status = read_page(txn, search->limit, columns, &sql, page, err);
    }
    weir_search_sql_fini(&sql);
    return status;
}

weir_status weir_model_search(struct weir_txn *txn, const struct weir_model_search *search,
                              struct weir_arena *arena, struct weir_model **out, size_t *out_n,
                              char **out_next, struct weir_error *err)
{
    struct weir_search_columns columns;
    struct page page = {.noun = &models, .arena = arena};
    weir_search_columns_of(search->orders, search->n_orders, arena, &columns);
    weir_search_columns_add(&columns, "m.name", false, WEIR_BIND_TYPE_TEXT);
    WEIR_TRY(search_for(txn, search, &columns, &page, err));
    *out = page.models;
    *out_n = page.n;
    *out_next = page.next;
    return WEIR_OK;
}

weir_status weir_version_search(struct weir_txn *txn, const struct weir_model_search *search,
                                struct weir_arena *arena, struct weir_model_version **out,
                                size_t *out_n, char **out_next, struct weir_error *err)
{
    struct weir_search_columns columns;
    struct page page = {.noun = &versions, .arena = arena};
    weir_search_columns_of(search->orders, search->n_orders, arena, &columns);
    weir_search_columns_add(&columns, LAST_UPDATE, true, WEIR_BIND_TYPE_INT);
    weir_search_columns_add(&columns, "v.model", false, WEIR_BIND_TYPE_TEXT);
    weir_search_columns_add(&columns, "v.version", true, WEIR_BIND_TYPE_INT);
    WEIR_TRY(search_for(txn, search, &columns, &page, err));
    *out = page.versions;
    *out_n = page.n;
    *out_next = page.next;
    return WEIR_OK;
}
