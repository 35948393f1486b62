#include "store/row_scope.h"

#include "base/hash.h"
#include "store/scope_sql.h"
#include "store/sqlite/sqlite.h"
#include "store/stmt.h"
#include "store/store_private.h"

#include <stdlib.h>
#include <string.h>

/** What a row's project is found by. */
enum owner {
    PROJECT, /* its name: nothing is to be found */
    JOB,
    TASK,
    DATASET,
    RUN,
    RUN_NUMBER,
    EXPERIMENT,
    MODEL,
    VERSION,
    LOGGED_MODEL,
    ION,
    DEPLOYMENT,
    SWEEP,
    SERVICE,
    N_OWNERS
};

/* The table of each, the project of one by its key, and as what it stands in a subject "NOUN/KEY". */
static const struct {
    const char *table, *sql, *noun;
} owners[N_OWNERS] = {
    [PROJECT] = {"projects", NULL, "project"},
    [JOB] = {"jobs", "SELECT project FROM main.jobs WHERE id = ?", "job"},
    [TASK] = {"tasks",
              "SELECT project FROM main.jobs WHERE id = (SELECT job FROM main.tasks WHERE id = ?)",
              NULL},
    [DATASET] = {"datasets", "SELECT project FROM main.datasets WHERE name = ?", "dataset"},
    [RUN] = {"runs", "SELECT project FROM main.runs WHERE id = ?", "run"},
    [RUN_NUMBER] = {"runs", "SELECT project FROM main.runs WHERE number = ?", NULL},
    [EXPERIMENT] = {"experiments", "SELECT project FROM main.experiments WHERE id = ?", NULL},
    [MODEL] = {"models", "SELECT project FROM main.models WHERE name = ?", "model"},
    [VERSION] = {"model_versions",
                 "SELECT project FROM main.models WHERE name = (SELECT model FROM "
                 "main.model_versions WHERE id = ?)",
                 NULL},
    [LOGGED_MODEL] = {"logged_models", "SELECT project FROM main.logged_models WHERE id = ?", NULL},
    [ION] = {"ions", "SELECT project FROM main.ions WHERE name = ?", "ion"},
    [DEPLOYMENT] = {"deployments", "SELECT project FROM main.deployments WHERE name = ?",
                    "deployment"},
    [SWEEP] = {"sweeps", "SELECT project FROM main.sweeps WHERE id = ?", "sweep"},
    [SERVICE] = {"services", "SELECT project FROM main.services WHERE id = ?", NULL},
};

/* Tables whose rows belong to projects: by which column, and what that names. A row that is seen and owns many, which are
 * looked at with it, is remembered by its key. */
static const struct {
    const char *table, *column;
    enum owner owner, is;
    const char *key;
} tables[] = {
    {"projects", "name", PROJECT, 0, NULL},
    {"project_members", "project", PROJECT, 0, NULL},
    {"queues", "project", PROJECT, 0, NULL},
    {"jobs", "project", PROJECT, 0, NULL},
    {"job_totals", "project", PROJECT, 0, NULL},
    {"tasks", "job", JOB, 0, NULL},
    {"attempts", "task", TASK, 0, NULL},
    {"former_attempts", "task", TASK, 0, NULL},
    {"board", "job", JOB, 0, NULL},
    {"task_devices", "task", TASK, 0, NULL},
    {"datasets", "project", PROJECT, 0, NULL},
    {"dataset_versions", "dataset", DATASET, 0, NULL},
    {"runs", "project", PROJECT, RUN_NUMBER, "number"},
    {"experiments", "project", PROJECT, 0, NULL},
    {"experiment_tags", "experiment", EXPERIMENT, 0, NULL},
    {"metrics", "run", RUN_NUMBER, 0, NULL},
    {"latest_metrics", "run", RUN_NUMBER, 0, NULL},
    {"run_parameters", "run", RUN_NUMBER, 0, NULL},
    {"run_tags", "run", RUN_NUMBER, 0, NULL},
    {"input_datasets", "experiment", EXPERIMENT, 0, NULL},
    {"run_inputs", "run", RUN_NUMBER, 0, NULL},
    {"run_artifacts", "run", RUN, 0, NULL},
    {"artifact_uploads", "run", RUN, 0, NULL},
    {"comparisons", "run", RUN, 0, NULL},
    {"disagreements", "run", RUN, 0, NULL},
    {"models", "project", PROJECT, 0, NULL},
    {"model_versions", "model", MODEL, 0, NULL},
    {"model_aliases", "model", MODEL, 0, NULL},
    {"model_tags", "model", MODEL, 0, NULL},
    {"model_version_tags", "version", VERSION, 0, NULL},
    {"model_baselines", "version", VERSION, 0, NULL},
    {"logged_models", "project", PROJECT, 0, NULL},
    {"logged_model_params", "model", LOGGED_MODEL, 0, NULL},
    {"logged_model_tags", "model", LOGGED_MODEL, 0, NULL},
    {"logged_model_metrics", "model", LOGGED_MODEL, 0, NULL},
    {"run_logged_models", "model", LOGGED_MODEL, 0, NULL},
    {"deployments", "project", PROJECT, 0, NULL},
    {"deployment_versions", "deployment", DEPLOYMENT, 0, NULL},
    {"deployment_replicas", "deployment", DEPLOYMENT, 0, NULL},
    {"ions", "project", PROJECT, 0, NULL},
    {"ion_pipelines", "ion", ION, 0, NULL},
    {"ion_revisions", "ion", ION, 0, NULL},
    {"snapshots", "project", PROJECT, 0, NULL},
    {"sweeps", "project", PROJECT, 0, NULL},
    {"sweep_trials", "sweep", SWEEP, 0, NULL},
    {"ion_candidates", "ion", ION, 0, NULL},
    {"ion_members", "ion", ION, 0, NULL},
    {"ion_replicas", "ion", ION, 0, NULL},
    {"ion_triggers", "ion", ION, 0, NULL},
    {"trigger_firings", "ion", ION, 0, NULL},
    {"policy_decisions", "ion", ION, 0, NULL},
    {"decisions", "ion", ION, 0, NULL},
    {"decision_totals", "ion", ION, 0, NULL},
    {"health_reports", "ion", ION, 0, NULL},
    {"kpis", "ion", ION, 0, NULL},
    {"feedback", "ion", ION, 0, NULL},
    {"outcomes", "deployment", DEPLOYMENT, 0, NULL},
    {"ion_arms", "ion", ION, 0, NULL},
    {"statistics", "ion", ION, 0, NULL},
    {"events", "project", PROJECT, 0, NULL},
    {"alerts", "project", PROJECT, 0, NULL},
    {"alert_rules", "project", PROJECT, 0, NULL},
    {"alert_silences", "project", PROJECT, 0, NULL},
    {"alert_firings", "project", PROJECT, 0, NULL},
    {"alert_deliveries", "project", PROJECT, 0, NULL},
    {"usage", "project", PROJECT, 0, NULL},
    {"usage_meters", "project", PROJECT, 0, NULL},
    {"usage_totals", "project", PROJECT, 0, NULL},
    {"queue_history", "project", PROJECT, 0, NULL},
    {"past_use", "project", PROJECT, 0, NULL},
    {"reservations", "project", PROJECT, 0, NULL},
    {"forgotten_people", "project", PROJECT, 0, NULL},
    {"dataset_tombstones", "dataset", DATASET, 0, NULL},
    {"sent_blobs", "project", PROJECT, 0, NULL},
    {"code_manifests", "project", PROJECT, 0, NULL},
    {"secrets", "project", PROJECT, 0, NULL},
    {"project_retention", "project", PROJECT, 0, NULL},
    {"services", "project", PROJECT, 0, NULL},
    {"service_logins", "service", SERVICE, 0, NULL},
};

/* Tables of the platform: routes say by rights who reads them. */
static const char *const platform_tables[] = {
    "counters",
    "settings",
    "users",
    "tokens",
    "sessions",
    "login_links",
    "outbox",
    "nodes",
    "devices",
    "node_joins",
    "nodes_heard",
    "groups",
    "group_members",
    "schema_migrations",
    "audit_chains",
    "alert_receivers",
    "track_keys",
    "custom_roles",
    "retention_bounds",
};

/** Answers that are kept: a power of two. */
#define ANSWERS 2048

/** Whether the owner with this key is in scope, as it was found in `round`. */
struct answer {
    uint64_t round;
    enum owner owner;
    bool is_number, is_seen;
    int64_t number;
    size_t len; /* of text, which is not ended */
    char text[48];
};

/** Of one connection that hides rows. */
struct row_guard {
    sqlite3 *db;
    struct weir_txn *txn; /**< That runs; NULL: none. */
    sqlite3_stmt *owners[N_OWNERS];

    struct {
        int i_column; /**< Of the column that says whose a row is, counted from 1; 0: not looked up. */
        bool is_owner;
    } tables[WEIR_ARRAY_LEN(tables)];

    size_t i_last;  /**< Table of the row that was changed last. */
    uint64_t round; /**< Grows when an answer may have become another. */
    struct answer answers[ANSWERS];
};

bool weir_row_scope_sees(const struct weir_row_scope *scope, const char *project)
{
    bool sees = scope == NULL || scope->is_all;
    for (size_t i = 0; !sees && project != NULL && i < scope->n_projects; i++) {
        sees = strcmp(scope->projects[i], project) == 0;
    }
    return sees;
}

/* ---- whose a row is ---------------------------------------------------------------------------- */

static size_t find_table(const char *name)
{
    size_t i = 0;
    while (i < WEIR_ARRAY_LEN(tables) && strcmp(tables[i].table, name) != 0) {
        i++;
    }
    return i;
}

bool row_scope_knows(const char *table)
{
    bool knows = find_table(table) < WEIR_ARRAY_LEN(tables);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(platform_tables); i++) {
        knows = knows || strcmp(platform_tables[i], table) == 0;
    }
    return knows;
}

/* The bytes of a text, which need not end with a NUL: nothing is copied. "" for what is no text. */
static const char *text_of(sqlite3_value *value, size_t *out_len)
{
    bool is_text = sqlite3_value_type(value) == SQLITE_TEXT;
    const char *text = is_text ? sqlite3_value_blob(value) : NULL;
    *out_len = text != NULL ? (size_t)sqlite3_value_bytes(value) : 0;
    return text != NULL ? text : "";
}

static bool sees_project(const struct weir_row_scope *scope, sqlite3_value *value)
{
    size_t len;
    const char *project = text_of(value, &len);
    bool sees = false;
    for (size_t i = 0; !sees && i < scope->n_projects; i++) {
        sees = strlen(scope->projects[i]) == len && memcmp(scope->projects[i], project, len) == 0;
    }
    return sees && sqlite3_value_type(value) == SQLITE_TEXT;
}

/* The place where the answer for this key is kept, made to be its; NULL: it is not one that is kept. */
static struct answer *answer_of(struct row_guard *guard, enum owner owner, sqlite3_value *key,
                                bool *out_is_known)
{
    bool is_number = sqlite3_value_type(key) == SQLITE_INTEGER;
    int64_t number = is_number ? sqlite3_value_int64(key) : 0;
    size_t len;
    const char *text = text_of(key, &len);
    uint64_t hash = is_number ? (uint64_t)number * 0x9e3779b97f4a7c15u >> 40
                              : weir_hash_bytes(WEIR_HASH_BEGIN, text, len);
    struct answer *answer = &guard->answers[(hash + owner) % ANSWERS];
    *out_is_known = false;
    if (len > sizeof answer->text || (!is_number && sqlite3_value_type(key) != SQLITE_TEXT)) {
        return NULL;
    }
    *out_is_known = answer->round == guard->round && answer->owner == owner &&
                    answer->is_number == is_number && answer->number == number &&
                    answer->len == len && memcmp(answer->text, text, len) == 0;
    if (!*out_is_known) {
        answer->round = 0;
        answer->owner = owner;
        answer->is_number = is_number;
        answer->number = number;
        answer->len = len;
        memcpy(answer->text, text, len);
    }
    return answer;
}

/* Is what the owner with this key owns in the scope? SQLITE_OK, or what SQLite says. */
static int look_up(struct row_guard *guard, enum owner owner, sqlite3_value *key, bool *out)
{
    sqlite3_stmt **stmt = &guard->owners[owner];
    int code = *stmt != NULL ? SQLITE_OK
                             : sqlite3_prepare_v3(guard->db, owners[owner].sql, -1,
                                                  SQLITE_PREPARE_PERSISTENT, stmt, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_bind_value(*stmt, 1, key);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_step(*stmt);
        *out = code == SQLITE_ROW &&
               weir_row_scope_sees(guard->txn->scope, (const char *)sqlite3_column_text(*stmt, 0));
        code = code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
    }
    sqlite3_reset(*stmt);
    return code;
}

static void remember(struct row_guard *guard, enum owner owner, sqlite3_value *key)
{
    bool is_known;
    struct answer *answer = answer_of(guard, owner, key, &is_known);
    if (answer != NULL && !is_known) {
        answer->is_seen = true;
        answer->round = guard->round;
    }
}

static int is_in_scope(struct row_guard *guard, enum owner owner, sqlite3_value *key, bool *out)
{
    bool is_known;
    *out = guard->txn == NULL || guard->txn->scope == NULL;
    if (*out || sqlite3_value_type(key) == SQLITE_NULL) {
        return SQLITE_OK;
    }
    if (owner == PROJECT) {
        *out = sees_project(guard->txn->scope, key);
        return SQLITE_OK;
    }
    struct answer *answer = answer_of(guard, owner, key, &is_known);
    if (is_known) {
        *out = answer->is_seen;
        return SQLITE_OK;
    }
    int code = look_up(guard, owner, key, out);
    if (answer != NULL && code == SQLITE_OK) {
        answer->is_seen = *out;
        answer->round = guard->round;
    }
    return code;
}

/* The owner with this key, as a subject has it: in place. @return N_OWNERS: of no project. */
static enum owner owner_of_subject(const char *subject, const char **out_key, size_t *out_len)
{
    size_t len = strcspn(subject, "/");
    enum owner owner = PROJECT;
    while (owner < N_OWNERS && (owners[owner].noun == NULL || strlen(owners[owner].noun) != len ||
                                strncmp(owners[owner].noun, subject, len) != 0)) {
        owner++;
    }
    *out_key = subject[len] == '/' ? subject + len + 1 : "";
    *out_len = strcspn(*out_key, "/");
    return owner;
}

weir_status weir_subject_project(struct weir_txn *txn, const char *subject,
                                 struct weir_arena *arena, char **out, struct weir_error *err)
{
    const char *at;
    size_t len;
    enum owner owner = owner_of_subject(subject != NULL ? subject : "", &at, &len);
    char *key = weir_arena_memdup(arena, at, len);
    if (owner == PROJECT || owner == N_OWNERS) {
        *out = owner == PROJECT ? key : NULL;
        return weir_arena_check(arena, "a subject", err);
    }
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(stmt_open_unscoped(txn, owners[owner].sql, WEIR_BINDS(WEIR_BIND_TEXT(NULL, key)),
                                &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    *out = has_row ? weir_stmt_text(stmt, 0, arena) : NULL;
    return weir_arena_check(arena, "a subject", err);
}

/* ---- what is read ------------------------------------------------------------------------------ */

/* weir_scoped(): has the transaction that runs a scope? One answer while a statement runs. */
static void sql_scoped(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    const struct row_guard *guard = sqlite3_user_data(context);
    (void)n_values;
    (void)values;
    sqlite3_result_int(context, guard->txn != NULL && guard->txn->scope != NULL);
}

/* weir_sees(OWNER, KEY): is what it owns in the scope of the transaction that runs? With two values more: and then
 * remember that the owner IS, with this KEY, is. */
static void sql_sees(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    struct row_guard *guard = sqlite3_user_data(context);
    bool sees;
    int code = is_in_scope(guard, (enum owner)sqlite3_value_int(values[0]), values[1], &sees);
    if (sees && n_values == 4) {
        remember(guard, (enum owner)sqlite3_value_int(values[2]), values[3]);
    }
    if (code != SQLITE_OK) {
        sqlite3_result_error_code(context, code);
    } else {
        sqlite3_result_int(context, sees);
    }
}

static bool put_condition(const char *table, const char *name, size_t len, struct weir_buf *out)
{
    size_t i = find_table(table);
    if (i == WEIR_ARRAY_LEN(tables)) {
        return false;
    }
    weir_buf_printf(out, "NOT weir_scoped() OR weir_sees(%d, %.*s.\"%s\"", (int)tables[i].owner,
                    (int)len, name, tables[i].column);
    if (tables[i].key != NULL) {
        weir_buf_printf(out, ", %d, %.*s.\"%s\"", (int)tables[i].is, (int)len, name, tables[i].key);
    }
    weir_buf_puts(out, ")");
    return true;
}

/* Where no rows are hidden, tables are tables. */
static bool put_none(const char *table, const char *name, size_t len, struct weir_buf *out)
{
    (void)table;
    (void)name;
    (void)len;
    (void)out;
    return false;
}

weir_status sqlite_write_scoped(const struct connection *connection, const char *sql,
                                struct weir_buf *out, struct weir_error *err)
{
    return scope_sql_write(sql, connection->guard != NULL ? put_condition : put_none, out, err);
}

static weir_status hide_table(struct connection *connection, size_t i, struct weir_error *err)
{
    struct weir_buf sql;
    weir_buf_init(&sql, 1024);
    weir_buf_printf(&sql, "CREATE TEMP VIEW \"%s\" AS SELECT * FROM main.\"%s\" t WHERE ",
                    tables[i].table, tables[i].table);
    (void)put_condition(tables[i].table, "t", 1, &sql);
    weir_status status = connection_exec(connection, sql.data, err);
    weir_buf_fini(&sql);
    return status;
}

weir_status sqlite_hide(struct connection *connection, struct weir_error *err)
{
    struct row_guard *guard = calloc(1, sizeof *guard);
    connection->guard = guard;
    if (guard == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "setting up scopes: out of memory");
    }
    guard->db = connection->db->handle;
    /* Deterministic: while a statement runs the answer stays, so that what it asks of one key is asked once. */
    const int flags = SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC;
    int code =
        sqlite3_create_function(guard->db, "weir_sees", -1, flags, guard, sql_sees, NULL, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_create_function(guard->db, "weir_scoped", 0, flags, guard, sql_scoped, NULL,
                                       NULL);
    }
    if (code != SQLITE_OK) {
        return sqlite_fail(connection->db, code, "setting up scopes", err);
    }
    WEIR_TRY(connection_exec(connection, "PRAGMA query_only = OFF", err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tables); i++) {
        WEIR_TRY(hide_table(connection, i, err));
    }
    return connection->is_reader ? connection_exec(connection, "PRAGMA query_only = ON", err)
                                 : WEIR_OK;
}

void sqlite_unhide(struct connection *connection)
{
    for (size_t i = 0; connection->guard != NULL && i < N_OWNERS; i++) {
        sqlite3_finalize(connection->guard->owners[i]);
    }
    free(connection->guard);
    connection->guard = NULL;
}

/* ---- what is written --------------------------------------------------------------------------- */

/* project: of the row that would come; NULL: it is not told. */
static void deny(struct weir_txn *txn, const char *project)
{
    if (txn->broken.status != WEIR_OK) {
        return;
    }
    (void)(project != NULL
               ? weir_error_set(&txn->broken, WEIR_ERR_DENIED,
                                "you may not do this in project \"%s\": name one of yours, or ask "
                                "who administers it",
                                project)
               : weir_error_set(&txn->broken, WEIR_ERR_DENIED,
                                "this is of a project in which you may not do it: name what is "
                                "yours, or ask who administers it"));
}

/* Learn about a table what its first changed row needs. */
static void meet_table(struct row_guard *guard, size_t i_table)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(guard->db,
                           "SELECT cid + 1 FROM pragma_table_info(?, 'main') WHERE name = ?", -1,
                           &stmt, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_text(stmt, 1, tables[i_table].table, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(stmt, 2, tables[i_table].column, -1, SQLITE_STATIC);
        guard->tables[i_table].i_column =
            sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int(stmt, 0) : 0;
    }
    sqlite3_finalize(stmt);
    for (size_t k = 0; k < N_OWNERS; k++) {
        guard->tables[i_table].is_owner |= strcmp(owners[k].table, tables[i_table].table) == 0;
    }
}

/* Are the row that goes and the row that comes of the scope? */
static bool is_allowed(struct row_guard *guard, size_t i_table, int op, const char **out_project)
{
    enum owner owner = tables[i_table].owner;
    int i_column = guard->tables[i_table].i_column - 1;
    sqlite3_value *value = NULL;
    bool is_in = true;
    int code = SQLITE_OK;
    *out_project = NULL;
    if (op != SQLITE_INSERT) {
        code = sqlite3_preupdate_old(guard->db, i_column, &value);
        code = code == SQLITE_OK ? is_in_scope(guard, owner, value, &is_in) : code;
    }
    if (op != SQLITE_DELETE && code == SQLITE_OK && is_in) {
        code = sqlite3_preupdate_new(guard->db, i_column, &value);
        code = code == SQLITE_OK ? is_in_scope(guard, owner, value, &is_in) : code;
        *out_project = owner == PROJECT ? (const char *)sqlite3_value_text(value) : NULL;
    }
    return code == SQLITE_OK && is_in;
}

/* Before a row is changed by a transaction in a scope, by whatever statement. What triggers and references of
 * the schema change behind it is theirs. */
static void check_row(void *context, sqlite3 *db, int op, const char *schema, const char *name,
                      sqlite3_int64 old_id, sqlite3_int64 new_id)
{
    struct row_guard *guard = context;
    const char *project;
    (void)old_id;
    (void)new_id;
    if (strcmp(tables[guard->i_last].table, name) != 0) {
        size_t i = find_table(name);
        if (i == WEIR_ARRAY_LEN(tables)) {
            return;
        }
        guard->i_last = i;
    }
    if (strcmp(schema, "main") != 0) {
        return;
    }
    if (guard->tables[guard->i_last].i_column == 0) {
        meet_table(guard, guard->i_last);
    }
    if (sqlite3_preupdate_depth(db) == 0 && !is_allowed(guard, guard->i_last, op, &project)) {
        deny(guard->txn, project);
    }
    guard->round += guard->tables[guard->i_last].is_owner;
}

void sqlite_limit(struct weir_txn *txn, const struct weir_row_scope *scope)
{
    struct row_guard *guard = txn->connection->guard;
    txn->scope = scope;
    if (guard != NULL) {
        guard->txn = txn;
        guard->round++;
        (void)sqlite3_preupdate_hook(guard->db, scope != NULL ? check_row : NULL, guard);
    }
}

weir_status row_scope_set(struct weir_txn *txn, const struct weir_row_scope *scope,
                          struct weir_error *err)
{
    const struct weir_row_scope *limit = scope != NULL && !scope->is_all ? scope : NULL;
    if (limit != NULL && txn->connection->guard == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "this transaction sees all and cannot have a scope");
    }
    txn->connection->ops->limit(txn, limit);
    return WEIR_OK;
}

void sqlite_unlimit(struct weir_txn *txn)
{
    struct row_guard *guard = txn->connection->guard;
    if (guard != NULL) {
        guard->txn = NULL;
        (void)sqlite3_preupdate_hook(guard->db, NULL, NULL);
    }
}

void row_scope_end(struct weir_txn *txn)
{
    txn->connection->ops->unlimit(txn);
}

const struct weir_row_scope *weir_txn_scope(const struct weir_txn *txn)
{
    return txn->scope;
}

weir_status weir_txn_as(struct weir_txn *txn, const struct weir_row_scope *scope, weir_txn_fn fn,
                        void *context, struct weir_error *err)
{
    const struct weir_row_scope *before = txn->scope;
    WEIR_TRY(row_scope_set(txn, scope, err));
    weir_status status = fn(txn, context, err);
    txn->connection->ops->limit(txn, before);
    return status;
}
