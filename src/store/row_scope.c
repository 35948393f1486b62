#include "store/row_scope.h"

#include "store/stmt.h"
#include "store/store_private.h"

#include <string.h>

#define OF_JOB "(SELECT project FROM main.jobs WHERE id = job)"
#define OF_TASK                                                                                    \
    "(SELECT project FROM main.jobs WHERE id = (SELECT job FROM main.tasks WHERE id = task))"
#define OF_DATASET    "(SELECT project FROM main.datasets WHERE name = dataset)"
#define OF_NUMBER     "(SELECT project FROM main.runs WHERE number = run)"
#define OF_EXPERIMENT "(SELECT project FROM main.experiments WHERE id = experiment)"
#define OF_RUN        "(SELECT project FROM main.runs WHERE id = run)"
#define OF_MODEL      "(SELECT project FROM main.models WHERE name = model)"
/* With the table's name: model_versions has a column `version` of its own. */
#define OF_VERSION(table)                                                                          \
    "(SELECT project FROM main.models WHERE name = "                                               \
    "(SELECT model FROM main.model_versions WHERE id = " table ".version))"
#define OF_LOGGED_MODEL "(SELECT project FROM main.logged_models WHERE id = model)"
#define OF_ION          "(SELECT project FROM main.ions WHERE name = ion)"
#define OF_DEPLOYMENT   "(SELECT project FROM main.deployments WHERE name = deployment)"
#define OF_SWEEP        "(SELECT project FROM main.sweeps WHERE id = sweep)"

/* The name in a subject "NOUN/NAME" or "NOUN/NAME/…", whose noun and slash take so many bytes. */
#define NAME_AT(n) "substr(subject, " #n " + 1, instr(substr(subject, " #n " + 1) || '/', '/') - 1)"
#define OF_SUBJECT                                                                                 \
    "(CASE substr(subject, 1, instr(subject, '/'))"                                                \
    " WHEN 'job/' THEN (SELECT project FROM main.jobs WHERE id = " NAME_AT(                        \
        4) ")"                                                                                     \
           " WHEN 'ion/' THEN (SELECT project FROM main.ions WHERE name = " NAME_AT(               \
               4) ")"                                                                              \
                  " WHEN 'run/' THEN (SELECT project FROM main.runs WHERE id = " NAME_AT(          \
                      4) ")"                                                                       \
                         " WHEN 'model/' THEN (SELECT project FROM main.models WHERE name "        \
                         "= " NAME_AT(                                                             \
                             6) ")"                                                                \
                                " WHEN 'dataset/' THEN (SELECT project FROM "                      \
                                "main.datasets WHERE name = " NAME_AT(                             \
                                    8) ")"                                                         \
                                       " WHEN 'project/' THEN " NAME_AT(                           \
                                           8) " WHEN 'deployment/' THEN (SELECT project "          \
                                              "FROM main.deployments WHERE name = " NAME_AT(       \
                                                  11) ") WHEN 'sweep/' THEN (SELECT project FROM " \
                                                      "main.sweeps WHERE id = " NAME_AT(           \
                                                          6) ") END)"

/* Tables whose rows belong to projects, and SQL for the project of a row. */
static const struct {
    const char *table, *project;
} tables[] = {
    {"projects", "name"},
    {"project_members", "project"},
    {"queues", "project"},
    {"jobs", "project"},
    {"job_totals", "project"},
    {"tasks", OF_JOB},
    {"attempts", OF_TASK},
    {"former_attempts", OF_TASK},
    {"board", OF_JOB},
    {"task_devices", OF_TASK},
    {"datasets", "project"},
    {"dataset_versions", OF_DATASET},
    {"runs", "project"},
    {"experiments", "project"},
    {"experiment_tags", OF_EXPERIMENT},
    {"metrics", OF_NUMBER},
    {"latest_metrics", OF_NUMBER},
    {"run_parameters", OF_NUMBER},
    {"run_tags", OF_NUMBER},
    {"input_datasets", OF_EXPERIMENT},
    {"run_inputs", OF_NUMBER},
    {"run_artifacts", OF_RUN},
    {"artifact_uploads", OF_RUN},
    {"comparisons", OF_RUN},
    {"disagreements", OF_RUN},
    {"models", "project"},
    {"model_versions", OF_MODEL},
    {"model_aliases", OF_MODEL},
    {"model_tags", OF_MODEL},
    {"model_version_tags", OF_VERSION("model_version_tags")},
    {"model_baselines", OF_VERSION("model_baselines")},
    {"logged_models", "project"},
    {"logged_model_params", OF_LOGGED_MODEL},
    {"logged_model_tags", OF_LOGGED_MODEL},
    {"logged_model_metrics", OF_LOGGED_MODEL},
    {"run_logged_models", OF_LOGGED_MODEL},
    {"deployments", "project"},
    {"deployment_versions", OF_DEPLOYMENT},
    {"deployment_replicas", OF_DEPLOYMENT},
    {"ions", "project"},
    {"ion_pipelines", OF_ION},
    {"ion_revisions", OF_ION},
    {"snapshots", "project"},
    {"sweeps", "project"},
    {"sweep_trials", OF_SWEEP},
    {"ion_candidates", OF_ION},
    {"ion_members", OF_ION},
    {"ion_replicas", OF_ION},
    {"ion_triggers", OF_ION},
    {"trigger_firings", OF_ION},
    {"policy_decisions", OF_ION},
    {"decisions", OF_ION},
    {"decision_totals", OF_ION},
    {"health_reports", OF_ION},
    {"kpis", OF_ION},
    {"feedback", OF_ION},
    {"outcomes", OF_DEPLOYMENT},
    {"ion_arms", OF_ION},
    {"statistics", OF_ION},
    {"events", OF_SUBJECT},
    {"alerts", OF_SUBJECT},
    {"alert_rules", "project"},
    {"alert_silences", "project"},
    {"alert_firings", "project"},
    {"alert_deliveries", "project"},
    {"usage", "project"},
    {"usage_meters", "project"},
    {"usage_totals", "project"},
    {"queue_history", "project"},
    {"reservations", "project"},
    {"forgotten_people", "project"},
    {"dataset_tombstones", OF_DATASET},
    {"sent_blobs", "project"},
    {"code_manifests", "project"},
    {"secrets", "project"},
    {"project_retention", "project"},
    {"services", "project"},
    {"service_logins", "(SELECT project FROM main.services WHERE id = service)"},
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

static const char sql_project_of[] = "SELECT " OF_SUBJECT " FROM (SELECT :subject AS subject)";

/* Of the transaction that this thread runs; NULL: it sees all. */
static _Thread_local const struct weir_row_scope *current;

bool weir_row_scope_sees(const struct weir_row_scope *scope, const char *project)
{
    bool sees = scope == NULL || scope->is_all;
    for (size_t i = 0; !sees && project != NULL && i < scope->n_projects; i++) {
        sees = strcmp(scope->projects[i], project) == 0;
    }
    return sees;
}

weir_status weir_subject_project(struct weir_txn *txn, const char *subject,
                                 struct weir_arena *arena, char **out, struct weir_error *err)
{
    char **found;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(txn, sql_project_of,
                                  WEIR_BINDS(WEIR_BIND_TEXT("subject", subject)), arena, &found, &n,
                                  err));
    *out = n > 0 ? found[0] : NULL;
    return WEIR_OK;
}

const char *row_scope_condition(const struct weir_txn *txn, const char *table)
{
    bool is_limited = current != NULL && !current->is_all;
    for (size_t i = 0; is_limited && !txn->connection->hides_rows && i < WEIR_ARRAY_LEN(tables);
         i++) {
        if (strcmp(tables[i].table, table) == 0) {
            return tables[i].project;
        }
    }
    return NULL;
}

weir_status row_scope_check_insert(const struct weir_resource *resource, const void *record,
                                   struct weir_error *err)
{
    const struct weir_field *field = weir_resource_field(resource, "project");
    if (current == NULL || current->is_all || field == NULL) {
        return WEIR_OK;
    }
    const char *project = *(char *const *)weir_field_cptr(field, record);
    return weir_row_scope_sees(current, project)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "you may not do this in project \"%s\": name one of yours, or ask "
                                "who administers it",
                                project != NULL ? project : "");
}

weir_status row_scope_run(const struct weir_row_scope *scope, weir_txn_fn fn, struct weir_txn *txn,
                          void *context, struct weir_error *err)
{
    current = scope;
    weir_status status = fn(txn, context, err);
    current = NULL;
    return status;
}

const struct weir_row_scope *weir_row_scope_enter(const struct weir_row_scope *scope)
{
    const struct weir_row_scope *before = current;
    current = scope;
    return before;
}

bool row_scope_knows(const char *table)
{
    bool knows = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tables); i++) {
        knows = knows || strcmp(tables[i].table, table) == 0;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(platform_tables); i++) {
        knows = knows || strcmp(platform_tables[i], table) == 0;
    }
    return knows;
}

/* weir_sees(PROJECT): is it in the scope of the transaction that runs? */
static void sql_sees(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    const char *project = (const char *)sqlite3_value_text(values[0]);
    (void)n_values;
    sqlite3_result_int(context, weir_row_scope_sees(current, project));
}

static weir_status hide_table(struct connection *connection, size_t i, struct weir_error *err)
{
    char sql[2048];
    (void)snprintf(sql, sizeof sql,
                   "CREATE TEMP VIEW \"%s\" AS SELECT * FROM main.\"%s\" WHERE weir_sees(%s)",
                   tables[i].table, tables[i].table, tables[i].project);
    return connection_exec(connection, sql, err);
}

weir_status row_scope_prepare(struct connection *connection, bool hides_rows,
                              struct weir_error *err)
{
    int code = sqlite3_create_function(connection->db, "weir_sees", 1,
                                       SQLITE_UTF8 | SQLITE_INNOCUOUS, NULL, sql_sees, NULL, NULL);
    if (code != SQLITE_OK) {
        return connection_error(connection, code, "setting up scopes", err);
    }
    if (hides_rows) {
        WEIR_TRY(connection_exec(connection, "PRAGMA query_only = OFF", err));
        for (size_t i = 0; i < WEIR_ARRAY_LEN(tables); i++) {
            WEIR_TRY(hide_table(connection, i, err));
        }
        WEIR_TRY(connection_exec(connection, "PRAGMA query_only = ON", err));
    }
    connection->hides_rows = hides_rows;
    return WEIR_OK;
}
