#include "track/run_search.h"

#include "store/row_scope.h"
#include "store/stmt.h"
#include "track/run_search_private.h"
#include "track/search_page.h"

#define KEY_OF_NAME "(SELECT id FROM track_keys WHERE name = ?)"

static const struct weir_search_attribute run_attributes[] = {
    {"run_id", "r.id", false, false},
    {"run_name", "r.name", false, false},
    {"run name", "r.name", false, false},
    {"name", "r.name", false, false},
    {"status", "r.status", false, false},
    {"artifact_uri",
     "coalesce(r.artifact_root, 'mlflow-artifacts:/' || r.experiment || '/' || r.id || "
     "'/artifacts')",
     false, false},
    {"user_id", "r.\"user\"", false, true},
    {"user", "r.\"user\"", false, true},
    {"start_time", "r.start_ms", true, false},
    {"created", "r.start_ms", true, false},
    {"end_time", "nullif(r.finished_ms, 0)", true, true},
    {"experiment_id", "CAST(r.experiment AS TEXT)", false, false},
    {"project", "r.project", false, false},
    {"kind", "r.kind", false, false},
    {"job", "r.job", false, true},
    {"ion", "r.ion", false, true},
    {"dataset", "r.dataset", false, true},
};

const struct weir_search_noun weir_run_noun = {
    .name = "run",
    .attributes = run_attributes,
    .n_attributes = WEIR_ARRAY_LEN(run_attributes),
    .exists =
        {
            [WEIR_SEARCH_METRIC] = "EXISTS (SELECT 1 FROM latest_metrics x WHERE x.run = "
                                   "r.number AND x.key = " KEY_OF_NAME " AND ",
            [WEIR_SEARCH_PARAMETER] = "EXISTS (SELECT 1 FROM run_parameters x WHERE x.run = "
                                      "r.number AND x.key = " KEY_OF_NAME " AND ",
            [WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM run_tags x WHERE x.run = r.number AND "
                                "x.key = " KEY_OF_NAME " AND ",
            [WEIR_SEARCH_DATASET] = "EXISTS (SELECT 1 FROM run_inputs i JOIN "
                                    "input_datasets d ON d.id = i.dataset WHERE i.run = "
                                    "r.number AND ",
        },
    .metric = "CASE x.is_nan WHEN 0 THEN x.value END",
    .join =
        {
            [WEIR_SEARCH_METRIC] = " LEFT JOIN latest_metrics o# ON o#.run = r.number AND "
                                   "o#.key = " KEY_OF_NAME,
            [WEIR_SEARCH_PARAMETER] = " LEFT JOIN run_parameters o# ON o#.run = r.number AND "
                                      "o#.key = " KEY_OF_NAME,
            [WEIR_SEARCH_TAG] = " LEFT JOIN run_tags o# ON o#.run = r.number AND o#.key = "
                                "" KEY_OF_NAME,
        },
};

static const struct weir_search_attribute experiment_attributes[] = {
    {"name", "e.name", false, false},
    {"experiment_id", "e.id", true, false},
    {"creation_time", "e.created_ms", true, false},
    {"last_update_time", "e.updated_ms", true, false},
    {"project", "e.project", false, false},
};

const struct weir_search_noun weir_experiment_noun = {
    .name = "experiment",
    .attributes = experiment_attributes,
    .n_attributes = WEIR_ARRAY_LEN(experiment_attributes),
    .exists = {[WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM experiment_tags x WHERE "
                                   "x.experiment = e.id AND x.key = ? AND "},
    .join = {[WEIR_SEARCH_TAG] = " LEFT JOIN experiment_tags o# ON o#.experiment = e.id AND "
                                 "o#.key = ?"},
};

#define RUN_COLUMNS                                                                                \
    "SELECT r.number, r.id, r.name, r.project, r.experiment, r.kind, r.status, r.job, r.ion,"      \
    " r.pipeline, r.dataset, r.dataset_version, r.code_version, r.artifact_root, r.\"user\","      \
    " r.created_by, r.created_ms, r.start_ms, r.finished_ms, r.deleted_ms"
#define RUN_TEXTS     ", r.parameters, r.summary"
#define RUN_NO_TEXTS  ", NULL, NULL"
#define N_RUN_COLUMNS 22

static const char *const view_conditions[] = {
    [WEIR_VIEW_ACTIVE] = ".deleted_ms = 0",
    [WEIR_VIEW_DELETED] = ".deleted_ms <> 0",
    [WEIR_VIEW_ALL] = ".deleted_ms >= 0",
};

/* Of a search in one project, or in a scope of one, that looks at many runs. What is read off an index, a page alone, is
 * found through views: so these know its runs, of which more is read. */
static struct weir_proven proven_of(const struct weir_txn *txn,
                                    const struct weir_run_search *search)
{
    const struct weir_row_scope *scope = weir_txn_scope(txn);
    bool is_of_one =
        search->n_experiments == 0 && search->projects != NULL && search->n_projects == 1;
    if (scope == NULL || (!is_of_one && scope->n_projects != 1) ||
        (search->filter == NULL && search->n_orders == 0)) {
        return (struct weir_proven){NULL};
    }
    return weir_txn_proven(txn, is_of_one ? search->projects[0] : scope->projects[0]);
}

static void search_sql_init(struct weir_search_sql *sql, const struct weir_txn *txn,
                            const struct weir_run_search *search, struct weir_arena *arena)
{
    weir_search_sql_init(sql, arena);
    sql->proven = proven_of(txn, search);
}

/* " AND x IN (?, …)", or " AND x = ?". */
static void put_texts(struct weir_search_sql *sql, const char *column, const char *const *texts,
                      size_t n)
{
    weir_search_sql_put(sql, " AND ");
    weir_search_sql_put(sql, column);
    weir_search_sql_put(sql, n == 1 ? " = ?" : " IN (");
    for (size_t i = 0; i < n; i++) {
        weir_search_sql_put(sql, n == 1 ? "" : i > 0 ? ", ?" : "?");
        weir_search_sql_bind(sql, WEIR_BIND_TEXT(NULL, texts[i]));
    }
    weir_search_sql_put(sql, n == 1 ? "" : ")");
}

static void put_experiments(struct weir_search_sql *sql, const int64_t *ids, size_t n)
{
    weir_search_sql_put(sql, n == 1 ? " AND r.experiment = ?" : " AND r.experiment IN (");
    for (size_t i = 0; i < n; i++) {
        weir_search_sql_put(sql, n == 1 ? "" : i > 0 ? ", ?" : "?");
        weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, ids[i]));
    }
    weir_search_sql_put(sql, n == 1 ? "" : ")");
}

void weir_run_search_conditions(struct weir_search_sql *sql, const struct weir_run_search *search)
{
    weir_search_sql_put(sql, " WHERE ");
    if (sql->proven.project !=
        NULL) { /* first, and by no index: what else is asked for finds one */
        weir_search_sql_put(sql, "+r.project = :project AND ");
        weir_search_sql_bind(sql, WEIR_BIND_NULL(NULL));
    }
    weir_search_sql_put(sql, "r");
    weir_search_sql_put(sql, view_conditions[search->view]);
    if (search->n_experiments > 0) {
        put_experiments(sql, search->experiments, search->n_experiments);
    } else if (search->projects != NULL) {
        put_texts(sql, "r.project", search->projects, search->n_projects);
    }
    if (search->filter != NULL) {
        weir_search_sql_put(sql, " AND ");
        weir_search_sql_filter(sql, &weir_run_noun, search->filter);
    }
}

/* The values of "?" are bound in the order in which they stand: joins come before conditions. */
static weir_status make_sql(const struct weir_run_search *search,
                            const struct weir_search_page *page, struct weir_search_sql *sql,
                            struct weir_error *err)
{
    weir_search_sql_put(sql, RUN_COLUMNS);
    weir_search_sql_put(sql, search->with_texts ? RUN_TEXTS : RUN_NO_TEXTS);
    weir_search_sql_columns(sql, &page->columns);
    weir_search_sql_put(sql, " FROM runs r");
    weir_search_sql_joins(sql, &weir_run_noun, search->orders, search->n_orders);
    weir_run_search_conditions(sql, search);
    return weir_search_page_sql(page, sql, err);
}

static void read_run(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item)
{
    struct weir_run_row *row = out_item;
    struct weir_run *run = &row->record;
    *row = (struct weir_run_row){.number = weir_stmt_int(stmt, 0)};

    struct {
        char **text;
        int column;
    } const texts[] = {{&run->id, 1},
                       {&run->name, 2},
                       {&run->project, 3},
                       {&run->kind, 5},
                       {&run->status, 6},
                       {&run->job, 7},
                       {&run->ion, 8},
                       {&run->pipeline, 9},
                       {&run->dataset, 10},
                       {&run->code_version, 12},
                       {&run->artifact_root, 13},
                       {&run->user, 14},
                       {&run->created_by, 15},
                       {&run->parameters, 20},
                       {&run->summary, 21}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        *texts[i].text = weir_stmt_text(stmt, texts[i].column, arena);
    }
    run->experiment = weir_stmt_int(stmt, 4);
    run->dataset_version = weir_stmt_int(stmt, 11);
    run->created_ms = weir_stmt_int(stmt, 16);
    run->start_ms = weir_stmt_int(stmt, 17);
    run->finished_ms = weir_stmt_int(stmt, 18);
    run->deleted_ms = weir_stmt_int(stmt, 19);
}

static size_t weigh_run(const void *item)
{
    return weir_record_weight(&weir_run_resource, &((const struct weir_run_row *)item)->record);
}

static const struct weir_search_rows run_rows = {.name = "runs",
                                                 .item_bytes = sizeof(struct weir_run_row),
                                                 .n_columns = N_RUN_COLUMNS,
                                                 .read = read_run,
                                                 .weigh = weigh_run};

static struct weir_search_page page_of(const struct weir_run_search *search)
{
    return (struct weir_search_page){.rows = &run_rows,
                                     .cursor = search->cursor,
                                     .skip = search->skip,
                                     .limit = search->limit,
                                     .max_bytes = search->max_bytes};
}

/* ---- by one metric --------------------------------------------------------------------------- */

/* All runs that have a metric lie in the order of its values in an index: a page is read off it, without a
 * look at the others. Runs without it, and those where it is not a number, come last, and are found as
 * those of any other search. */

static const char sql_n_runs[] = "SELECT max(number) FROM runs";
static const char sql_n_of_experiment[] =
    "SELECT count(*) FROM (SELECT 1 FROM runs WHERE experiment = :experiment LIMIT :most) AS these";

#define WALK_PART 8 /* of all runs: of fewer too many others would be walked past */

static void walk_columns(const struct weir_run_search *search, struct weir_search_columns *out)
{
    *out = (struct weir_search_columns){.n_fixed = 2};
    weir_search_columns_add(out, "(0 + 0)", false, WEIR_BIND_TYPE_INT); /* it has the metric */
    weir_search_columns_add(out, "(0 + 0)", false, WEIR_BIND_TYPE_INT); /* and that is a number */
    weir_search_columns_add(out, "o0.value", search->orders[0].is_descending, WEIR_BIND_TYPE_F64);
    weir_search_columns_add(out, "r.start_ms", true, WEIR_BIND_TYPE_INT);
    weir_search_columns_add(out, "r.id", false, WEIR_BIND_TYPE_TEXT);
}

static weir_status can_walk(struct weir_txn *txn, const struct weir_run_search *search,
                            const struct weir_search_columns *columns, struct weir_arena *arena,
                            bool *out, struct weir_error *err)
{
    int64_t n_all, n_here = 0;
    *out = search->n_experiments == 0 && search->projects == NULL;
    if (search->cursor != NULL && !weir_search_cursor_fits(columns, search->cursor, arena)) {
        *out = false;
        return WEIR_OK;
    }
    if (search->n_experiments > 0) {
        WEIR_TRY(weir_txn_query_int_of_all(txn, sql_n_runs, WEIR_NO_BINDS, 0, &n_all, err));
        for (size_t i = 0; i < search->n_experiments && n_here * WALK_PART < n_all; i++) {
            int64_t n;
            WEIR_TRY(weir_txn_query_int_of_all(
                txn, sql_n_of_experiment,
                WEIR_BINDS(WEIR_BIND_INT("experiment", search->experiments[i]),
                           WEIR_BIND_INT("most", n_all / WALK_PART + 1)),
                0, &n, err));
            n_here += n;
        }
        *out = n_here * WALK_PART >= n_all;
    }
    return WEIR_OK;
}

static weir_status make_walk_sql(const struct weir_run_search *search,
                                 const struct weir_search_page *page, struct weir_search_sql *sql,
                                 struct weir_error *err)
{
    weir_search_sql_put(sql, RUN_COLUMNS);
    weir_search_sql_put(sql, search->with_texts ? RUN_TEXTS : RUN_NO_TEXTS);
    weir_search_sql_columns(sql, &page->columns);
    weir_search_sql_put(sql, " FROM latest_metrics o0 CROSS JOIN runs r");
    weir_run_search_conditions(sql, search);
    weir_search_sql_put(sql, " AND r.number = o0.run"
                             " AND o0.key = (SELECT id FROM track_keys WHERE name = ?)"
                             " AND o0.is_nan = 0");
    weir_search_sql_bind(sql, WEIR_BIND_TEXT(NULL, search->orders[0].key));
    return weir_search_page_sql(page, sql, err);
}

/* Read *page so, if that can be done; `next` is NULL unless the page is full, and behind it are more runs that
 * have the metric. */
static weir_status walk(struct weir_txn *txn, const struct weir_run_search *search,
                        struct weir_arena *arena, struct weir_search_page *page,
                        struct weir_error *err)
{
    bool can;
    if (search->filter != NULL || search->n_orders != 1 ||
        search->orders[0].entity != WEIR_SEARCH_METRIC) {
        return WEIR_OK;
    }
    *page = page_of(search);
    walk_columns(search, &page->columns);
    WEIR_TRY(can_walk(txn, search, &page->columns, arena, &can, err));
    if (!can) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_search_sql_fini) struct weir_search_sql sql;
    weir_search_sql_init(&sql, arena);
    WEIR_TRY(make_walk_sql(search, page, &sql, err));
    return weir_search_page_read(page, txn, &sql, err);
}

static weir_status sort_all(struct weir_txn *txn, const struct weir_run_search *search,
                            struct weir_arena *arena, struct weir_search_page *page,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_search_sql_fini) struct weir_search_sql sql;
    *page = page_of(search);
    weir_search_columns_of(search->orders, search->n_orders, arena, &page->columns);
    weir_search_columns_add(&page->columns, "r.start_ms", true, WEIR_BIND_TYPE_INT);
    weir_search_columns_add(&page->columns, "r.id", false, WEIR_BIND_TYPE_TEXT);
    search_sql_init(&sql, txn, search, arena);
    WEIR_TRY(make_sql(search, page, &sql, err));
    return weir_search_page_read(page, txn, &sql, err);
}

weir_status weir_run_search(struct weir_txn *txn, const struct weir_run_search *search,
                            struct weir_arena *arena, struct weir_run_row **out, size_t *out_n,
                            char **out_next, struct weir_error *err)
{
    struct weir_search_page page = {0};
    if (search->n_experiments > 0 || search->projects == NULL || search->n_projects > 0) {
        WEIR_TRY(walk(txn, search, arena, &page, err));
        if (page.next == NULL) {
            WEIR_TRY(sort_all(txn, search, arena, &page, err));
        }
    }
    *out = page.items;
    *out_n = page.n_items;
    *out_next = page.next;
    return WEIR_OK;
}

weir_status weir_run_count(struct weir_txn *txn, const struct weir_run_search *search,
                           struct weir_arena *arena, int64_t *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    *out = 0;
    if (search->n_experiments == 0 && search->projects != NULL && search->n_projects == 0) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_search_sql_fini) struct weir_search_sql sql;
    search_sql_init(&sql, txn, search, arena);
    weir_search_sql_put(&sql, "SELECT count(*) FROM runs r");
    weir_run_search_conditions(&sql, search);
    WEIR_TRY(weir_search_sql_check(&sql, err));
    WEIR_TRY(weir_search_sql_open(&sql, txn, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    *out = weir_stmt_int(stmt, 0);
    return WEIR_OK;
}

/* ---- experiments ------------------------------------------------------------------------------- */

#define EXPERIMENT_COLUMNS                                                                         \
    "SELECT e.id, e.project, e.name, e.artifact_location, e.created_by, e.created_ms,"             \
    " e.updated_ms, e.deleted_ms"
#define N_EXPERIMENT_COLUMNS 8

static void read_experiment(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item)
{
    *(struct weir_experiment *)out_item =
        (struct weir_experiment){.id = weir_stmt_int(stmt, 0),
                                 .project = weir_stmt_text(stmt, 1, arena),
                                 .name = weir_stmt_text(stmt, 2, arena),
                                 .artifact_location = weir_stmt_text(stmt, 3, arena),
                                 .created_by = weir_stmt_text(stmt, 4, arena),
                                 .created_ms = weir_stmt_int(stmt, 5),
                                 .updated_ms = weir_stmt_int(stmt, 6),
                                 .deleted_ms = weir_stmt_int(stmt, 7)};
}

static const struct weir_search_rows experiment_rows = {.name = "experiments",
                                                        .item_bytes =
                                                            sizeof(struct weir_experiment),
                                                        .n_columns = N_EXPERIMENT_COLUMNS,
                                                        .read = read_experiment};

static weir_status make_experiment_sql(const struct weir_experiment_search *search,
                                       const struct weir_search_page *page,
                                       struct weir_search_sql *sql, struct weir_error *err)
{
    weir_search_sql_put(sql, EXPERIMENT_COLUMNS);
    weir_search_sql_columns(sql, &page->columns);
    weir_search_sql_put(sql, " FROM experiments e");
    weir_search_sql_joins(sql, &weir_experiment_noun, search->orders, search->n_orders);
    weir_search_sql_put(sql, " WHERE e");
    weir_search_sql_put(sql, view_conditions[search->view]);
    if (search->projects != NULL) {
        put_texts(sql, "e.project", search->projects, search->n_projects);
    }
    if (search->filter != NULL) {
        weir_search_sql_put(sql, " AND ");
        weir_search_sql_filter(sql, &weir_experiment_noun, search->filter);
    }
    return weir_search_page_sql(page, sql, err);
}

weir_status weir_experiment_search(struct weir_txn *txn,
                                   const struct weir_experiment_search *search,
                                   struct weir_arena *arena, struct weir_experiment **out,
                                   size_t *out_n, char **out_next, struct weir_error *err)
{
    struct weir_search_sql sql;
    struct weir_search_page page = {
        .rows = &experiment_rows, .cursor = search->cursor, .limit = search->limit};
    if (search->projects == NULL || search->n_projects > 0) {
        weir_search_columns_of(search->orders, search->n_orders, arena, &page.columns);
        weir_search_columns_add(&page.columns, "e.updated_ms", true, WEIR_BIND_TYPE_INT);
        weir_search_columns_add(&page.columns, "e.id", true, WEIR_BIND_TYPE_INT);
        weir_search_sql_init(&sql, arena);
        weir_status status = make_experiment_sql(search, &page, &sql, err);
        if (status == WEIR_OK) {
            status = weir_search_page_read(&page, txn, &sql, err);
        }
        weir_search_sql_fini(&sql);
        WEIR_TRY(status);
    }
    *out = page.items;
    *out_n = page.n_items;
    *out_next = page.next;
    return WEIR_OK;
}
