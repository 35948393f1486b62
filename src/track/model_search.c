#include "track/model_search.h"

#include "store/stmt.h"
#include "track/search_page.h"

static const struct weir_search_attribute model_attributes[] = {
    {"name", "m.name", false, false},
    {"creation_timestamp", "m.created_ms", true, false},
    {"last_updated_timestamp",
     "CASE WHEN m.updated_ms > m.created_ms THEN m.updated_ms ELSE m.created_ms END", true, false},
};
const struct weir_search_noun weir_model_noun = {
    .name = "registered model",
    .attributes = model_attributes,
    .n_attributes = WEIR_ARRAY_LEN(model_attributes),
    .exists = {[WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM model_tags x WHERE "
                                   "x.model = m.name AND x.key = ? AND "},
    .join = {[WEIR_SEARCH_TAG] = " LEFT JOIN model_tags o# ON o#.model = m.name AND o#.key = ?"},
};

#define RUN_OF_VERSION "coalesce(v.source_run, v.run)"
#define LAST_UPDATE    "CASE WHEN v.updated_ms > v.created_ms THEN v.updated_ms ELSE v.created_ms END"
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
    .exists = {[WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM model_version_tags x WHERE "
                                   "x.version = v.id AND x.key = ? AND "},
    .join = {[WEIR_SEARCH_TAG] =
                 " LEFT JOIN model_version_tags o# ON o#.version = v.id AND o#.key = ?"},
};

#define MODEL_COLUMNS                                                                              \
    "SELECT m.name, m.project, m.description, m.created_by, m.created_ms, m.updated_ms"
#define N_MODEL_COLUMNS 6
#define VERSION_COLUMNS                                                                            \
    "SELECT v.id, v.model, v.version, v.run, v.blob, v.bytes, v.created_by, v.created_ms,"         \
    " v.source, v.source_run, v.run_link, v.description, v.stage, v.unservable, v.updated_ms"
#define N_VERSION_COLUMNS 15

static void read_model(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item)
{
    *(struct weir_model *)out_item =
        (struct weir_model){.name = weir_stmt_text(stmt, 0, arena),
                            .project = weir_stmt_text(stmt, 1, arena),
                            .description = weir_stmt_text(stmt, 2, arena),
                            .created_by = weir_stmt_text(stmt, 3, arena),
                            .created_ms = weir_stmt_int(stmt, 4),
                            .updated_ms = weir_stmt_int(stmt, 5)};
}

static void read_version(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item)
{
    *(struct weir_model_version *)out_item =
        (struct weir_model_version){.id = weir_stmt_text(stmt, 0, arena),
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

/** What is searched for: how its page is asked for and read. */
struct noun {
    const struct weir_search_noun *noun;
    const char *columns, *from, *where;
    struct weir_search_rows rows;
};

static const struct noun models = {.noun = &weir_model_noun,
                                   .columns = MODEL_COLUMNS,
                                   .from = " FROM models m",
                                   .where = " WHERE m.deleted_ms = 0",
                                   .rows = {.name = "models",
                                            .item_bytes = sizeof(struct weir_model),
                                            .n_columns = N_MODEL_COLUMNS,
                                            .read = read_model}};
static const struct noun versions = {.noun = &weir_version_noun,
                                     .columns = VERSION_COLUMNS,
                                     .from = " FROM model_versions v",
                                     .where = " WHERE v.deleted_ms = 0",
                                     .rows = {.name = "models",
                                              .item_bytes = sizeof(struct weir_model_version),
                                              .n_columns = N_VERSION_COLUMNS,
                                              .read = read_version}};

/* The values of "?" are bound in the order in which they stand: joins come before conditions. */
static weir_status make_sql(const struct noun *noun, const struct weir_model_search *search,
                            const struct weir_search_page *page, struct weir_search_sql *sql,
                            struct weir_error *err)
{
    weir_search_sql_put(sql, noun->columns);
    weir_search_sql_columns(sql, &page->columns);
    weir_search_sql_put(sql, noun->from);
    weir_search_sql_joins(sql, noun->noun, search->orders, search->n_orders);
    weir_search_sql_put(sql, noun->where);
    if (search->filter != NULL) {
        weir_search_sql_put(sql, " AND ");
        weir_search_sql_filter(sql, noun->noun, search->filter);
    }
    return weir_search_page_sql(page, sql, err);
}

static struct weir_search_page
page_of(const struct noun *noun, const struct weir_model_search *search, struct weir_arena *arena)
{
    struct weir_search_page page = {
        .rows = &noun->rows, .cursor = search->cursor, .limit = search->limit};
    weir_search_columns_of(search->orders, search->n_orders, arena, &page.columns);
    return page;
}

static weir_status read_page(struct weir_txn *txn, const struct noun *noun,
                             const struct weir_model_search *search, struct weir_arena *arena,
                             struct weir_search_page *page, struct weir_error *err)
{
    WEIR_AUTO(weir_search_sql_fini) struct weir_search_sql sql;
    weir_search_sql_init(&sql, arena);
    WEIR_TRY(make_sql(noun, search, page, &sql, err));
    return weir_search_page_read(page, txn, &sql, err);
}

weir_status weir_model_search(struct weir_txn *txn, const struct weir_model_search *search,
                              struct weir_arena *arena, struct weir_model **out, size_t *out_n,
                              char **out_next, struct weir_error *err)
{
    struct weir_search_page page = page_of(&models, search, arena);
    weir_search_columns_add(&page.columns, "m.name", false, WEIR_BIND_TYPE_TEXT);
    WEIR_TRY(read_page(txn, &models, search, arena, &page, err));
    *out = page.items;
    *out_n = page.n_items;
    *out_next = page.next;
    return WEIR_OK;
}

weir_status weir_version_search(struct weir_txn *txn, const struct weir_model_search *search,
                                struct weir_arena *arena, struct weir_model_version **out,
                                size_t *out_n, char **out_next, struct weir_error *err)
{
    struct weir_search_page page = page_of(&versions, search, arena);
    if (search->n_orders == 0) {
        weir_search_columns_add(&page.columns, LAST_UPDATE, true, WEIR_BIND_TYPE_INT);
    }
    weir_search_columns_add(&page.columns, "v.model", false, WEIR_BIND_TYPE_TEXT);
    weir_search_columns_add(&page.columns, "v.version", true, WEIR_BIND_TYPE_INT);
    WEIR_TRY(read_page(txn, &versions, search, arena, &page, err));
    *out = page.items;
    *out_n = page.n_items;
    *out_next = page.next;
    return WEIR_OK;
}
