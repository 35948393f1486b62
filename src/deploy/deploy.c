#include "deploy/deploy.h"

#include "base/json.h"
#include "base/names.h"
#include "deploy/step.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field deployment_fields[] = {
    WEIR_FIELD(weir_deployment, name,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Name, in the address of requests"),
    WEIR_FIELD(weir_deployment, project,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Project it belongs to"),
    WEIR_FIELD(weir_deployment, model,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Model whose versions answer"),
    WEIR_FIELD(weir_deployment, follows,       TEXT, WEIR_FIELD_READ_ONLY, "", "Alias whose version gets all traffic, wherever it moves; null: none"),
    WEIR_FIELD(weir_deployment, mirror,        INT,  WEIR_FIELD_READ_ONLY, "", "Version that gets a copy of each request, whose answer is compared and dropped; 0: none"),
    WEIR_FIELD(weir_deployment, replicas_min,  INT,  WEIR_FIELD_READ_ONLY, "", "Replicas at least"),
    WEIR_FIELD(weir_deployment, replicas_max,  INT,  WEIR_FIELD_READ_ONLY, "", "Replicas at most"),
    WEIR_FIELD(weir_deployment, batch_max,     INT,  WEIR_FIELD_READ_ONLY, "", "Requests that one computation takes at most"),
    WEIR_FIELD(weir_deployment, delay_max_us,  INT,  WEIR_FIELD_READ_ONLY, "us", "How long a request waits for others at most"),
    WEIR_FIELD(weir_deployment, queue_max,     INT,  WEIR_FIELD_READ_ONLY, "", "Requests that wait in one replica at most; more get 503"),
    WEIR_FIELD(weir_deployment, cpu_millis,    INT,  WEIR_FIELD_READ_ONLY, "", "CPUs that are kept for each replica, in thousandths of one"),
    WEIR_FIELD(weir_deployment, memory_bytes,  INT,  WEIR_FIELD_READ_ONLY, "bytes", "Memory of each replica; 0: no limit"),
    WEIR_FIELD(weir_deployment, gpus,          INT,  WEIR_FIELD_READ_ONLY, "", "Accelerators of each replica"),
    WEIR_FIELD(weir_deployment, idle_after_ms, INT,  WEIR_FIELD_READ_ONLY, "ms", "Load that fewer replicas could bear for so long makes them fewer"),
    WEIR_FIELD(weir_deployment, hold_ms,       INT,  WEIR_FIELD_READ_ONLY, "ms", "How long a request waits at most for a first replica"),
    WEIR_FIELD(weir_deployment, secret,        TEXT, WEIR_FIELD_SECRET, "", "What replicas demand of who calls them"),
    WEIR_FIELD(weir_deployment, state,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "DEPLOYING, SERVING, IDLE or FAILED"),
    WEIR_FIELD(weir_deployment, reason,        TEXT, WEIR_FIELD_READ_ONLY, "", "Why it does not serve, or not what was asked for"),
    WEIR_FIELD(weir_deployment, state_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when it is in this state"),
    WEIR_FIELD(weir_deployment, revision,      INT,  WEIR_FIELD_READ_ONLY, "", "Counts changes of what replicas must load"),
    WEIR_FIELD(weir_deployment, previous,      JSON, WEIR_FIELD_READ_ONLY, "", "Shares in effect before these: [{version, percent}]"),
    WEIR_FIELD(weir_deployment, n_wanted,      INT,  WEIR_FIELD_READ_ONLY, "", "Replicas that there should be now"),
    WEIR_FIELD(weir_deployment, n_started,     INT,  WEIR_FIELD_READ_ONLY, "", "Replicas started so far"),
    WEIR_FIELD(weir_deployment, n_failures,    INT,  WEIR_FIELD_READ_ONLY, "", "Replicas that ended in a row, since one was ready"),
    WEIR_FIELD(weir_deployment, failure,       TEXT, WEIR_FIELD_READ_ONLY, "", "Why the last one ended"),
    WEIR_FIELD(weir_deployment, next_start_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "No replica is started before"),
    WEIR_FIELD(weir_deployment, more_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when the load asks for more replicas"),
    WEIR_FIELD(weir_deployment, less_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when fewer would do"),
    WEIR_FIELD(weir_deployment, created_by,    TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it"),
    WEIR_FIELD(weir_deployment, created_ms,    TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
    WEIR_FIELD(weir_deployment, updated_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When a person changed it last"),
};
static const struct weir_field version_fields[] = {
    WEIR_FIELD(weir_deployment_version, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "DEPLOYMENT:VERSION"),
    WEIR_FIELD(weir_deployment_version, deployment, TEXT, WEIR_FIELD_READ_ONLY, "", "Deployment"),
    WEIR_FIELD(weir_deployment_version, model,      TEXT, WEIR_FIELD_READ_ONLY, "", "Model"),
    WEIR_FIELD(weir_deployment_version, version,    INT,  WEIR_FIELD_READ_ONLY, "", "Number of the version"),
    WEIR_FIELD(weir_deployment_version, wanted_ppm, INT,  WEIR_FIELD_READ_ONLY, "", "Share that is asked for, in millionths"),
    WEIR_FIELD(weir_deployment_version, live_ppm,   INT,  WEIR_FIELD_READ_ONLY, "", "Share in effect, in millionths"),
    WEIR_FIELD(weir_deployment_version, keep_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "Without a share: loaded until then"),
    WEIR_FIELD(weir_deployment_version, failure,    TEXT, WEIR_FIELD_READ_ONLY, "", "Why a replica could not load it"),
};
static const struct weir_field replica_fields[] = {
    WEIR_FIELD(weir_deployment_replica, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "DEPLOYMENT-NUMBER"),
    WEIR_FIELD(weir_deployment_replica, deployment, TEXT, WEIR_FIELD_READ_ONLY, "", "Deployment"),
    WEIR_FIELD(weir_deployment_replica, number,     INT,  WEIR_FIELD_READ_ONLY, "", "Number, counted up"),
    WEIR_FIELD(weir_deployment_replica, job,        TEXT, WEIR_FIELD_READ_ONLY, "", "Its job"),
    WEIR_FIELD(weir_deployment_replica, state,      TEXT, WEIR_FIELD_READ_ONLY, "", "WANTED, STARTING, READY, SILENT or STOPPING"),
    WEIR_FIELD(weir_deployment_replica, url,        TEXT, 0, "", "Where it answers"),
    WEIR_FIELD(weir_deployment_replica, revision,   INT,  0, "", "Revision of the deployment that it knows"),
    WEIR_FIELD_SIZED(weir_deployment_replica, versions, JSON, 0, WEIR_DEPLOY_REPORT_BYTES, "", "What it has loaded: [{version, state, reason, executor, place, load_ms}]"),
    WEIR_FIELD(weir_deployment_replica, n_running,  INT,  0, "", "Requests that it works at"),
    WEIR_FIELD_SIZED(weir_deployment_replica, stats, JSON, 0, WEIR_DEPLOY_REPORT_BYTES, "", "Its figures"),
    WEIR_FIELD(weir_deployment_replica, time_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When it reported last"),
    WEIR_FIELD(weir_deployment_replica, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was wanted first"),
};
static const struct weir_field alias_fields[] = {
    WEIR_FIELD(weir_model_alias, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "MODEL:ALIAS"),
    WEIR_FIELD(weir_model_alias, model,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Model"),
    WEIR_FIELD(weir_model_alias, alias,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Alias"),
    WEIR_FIELD(weir_model_alias, version,    INT,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Version that it names"),
    WEIR_FIELD(weir_model_alias, actor,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who set it"),
    WEIR_FIELD(weir_model_alias, updated_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_deployment_resource =
    WEIR_RESOURCE("deployment", "deployments", weir_deployment, deployment_fields);
const struct weir_resource weir_deployment_version_resource = WEIR_RESOURCE(
    "deployment version", "deployment_versions", weir_deployment_version, version_fields);
const struct weir_resource weir_deployment_replica_resource = WEIR_RESOURCE(
    "deployment replica", "deployment_replicas", weir_deployment_replica, replica_fields);
const struct weir_resource weir_model_alias_resource =
    WEIR_RESOURCE("model alias", "model_aliases", weir_model_alias, alias_fields);

#define COUNTER "serving"

static const char sql_forget_versions[] =
    "DELETE FROM deployment_versions WHERE deployment = :name";
static const char sql_forget_replicas[] =
    "DELETE FROM deployment_replicas WHERE deployment = :name";
static const char sql_deployment_of_job[] =
    "SELECT deployment FROM deployment_replicas WHERE job = :job";
static const char sql_replica_of_job[] = "SELECT id FROM deployment_replicas WHERE job = :job";
static const char sql_heartbeat[] = "UPDATE deployment_replicas SET time_ms = :now, n_running ="
                                    " :running, stats = :stats WHERE id = :id";
static const char sql_change[] = "SELECT value FROM counters WHERE name = '" COUNTER "'";

/* ---- loading --------------------------------------------------------------------------------- */

static weir_status list_of(struct weir_txn *txn, const struct weir_resource *resource,
                           const char *name, const char *order_by, struct weir_arena *arena,
                           void **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("deployment", EQ, name)),
                                     .order_by = order_by, .limit = WEIR_QUERY_LIMIT_MAX};
    return weir_txn_list(txn, resource, &query, arena, out, out_n, NULL, err);
}

static weir_status load_replicas(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                                 struct weir_deploy_state *state, struct weir_error *err)
{
    void *rows;
    WEIR_TRY(list_of(txn, &weir_deployment_replica_resource, name, "number", arena, &rows,
                     &state->n_replicas, err));
    state->replicas = WEIR_ARENA_ARRAY(arena, state->n_replicas + 1, struct weir_deploy_replica);
    for (size_t i = 0; i < state->n_replicas; i++) {
        struct weir_deploy_replica *replica = &state->replicas[i];
        json_t *versions = NULL;
        replica->row = ((struct weir_deployment_replica *)rows)[i];
        const char *text = replica->row.versions;
        if (text != NULL) {
            WEIR_TRY(weir_json_parse(text, strlen(text), "stored report", &versions, err));
            weir_status status =
                weir_deploy_loaded_read(versions, arena, &replica->loaded, &replica->n_loaded, err);
            json_decref(versions);
            WEIR_TRY(status);
        }
    }
    return WEIR_OK;
}

static weir_status load_parts(struct weir_txn *txn, struct weir_arena *arena,
                              struct weir_deploy_state *state, struct weir_error *err)
{
    void *rows;
    const char *name = state->deployment.name;
    WEIR_TRY(list_of(txn, &weir_deployment_version_resource, name, "version", arena, &rows,
                     &state->n_versions, err));
    state->versions = WEIR_ARENA_ARRAY(arena, state->n_versions + 1, struct weir_deploy_version);
    for (size_t i = 0; i < state->n_versions; i++) {
        state->versions[i].row = ((struct weir_deployment_version *)rows)[i];
    }
    return load_replicas(txn, name, arena, state, err);
}

static weir_status no_deployment(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                                 struct weir_error *err)
{
    const struct weir_query query = {.limit = WEIR_DEPLOY_LISTED_MAX};
    struct weir_nearest nearest = {0};
    void *rows; /* by the record table, which shows what the caller may see */
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_deployment_resource, &query, arena, &rows, &n, NULL, err));
    for (size_t i = 0; i < n; i++) {
        weir_nearest_see(&nearest, name, strlen(name), ((struct weir_deployment *)rows)[i].name);
    }
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no deployment \"%.80s\"; did you mean \"%s\"?", name,
                              nearest.name);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "there is no deployment \"%.80s\": `weir get deployments` lists them, "
                          "`weir deploy MODEL` makes one",
                          name);
}

weir_status weir_deploy_load(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                             struct weir_deploy_state *out, struct weir_error *err)
{
    struct weir_deploy_state state = {0};
    weir_status status =
        weir_txn_get(txn, &weir_deployment_resource, name, arena, &state.deployment, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return no_deployment(txn, name, arena, err);
    }
    WEIR_TRY(status);
    WEIR_TRY(load_parts(txn, arena, &state, err));
    *out = state;
    return WEIR_OK;
}

weir_status weir_deploy_load_all(struct weir_txn *txn, struct weir_arena *arena,
                                 struct weir_deploy_state **out, size_t *out_n,
                                 struct weir_error *err)
{
    const struct weir_query query = {.limit = WEIR_DEPLOY_LISTED_MAX};
    void *rows;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_deployment_resource, &query, arena, &rows, &n, NULL, err));
    struct weir_deploy_state *states = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_deploy_state);
    for (size_t i = 0; i < n; i++) {
        states[i].deployment = ((struct weir_deployment *)rows)[i];
        WEIR_TRY(load_parts(txn, arena, &states[i], err));
    }
    *out = states;
    *out_n = n;
    return WEIR_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static weir_status remove_all(struct weir_txn *txn, const char *name, struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(txn, sql_forget_versions, WEIR_BINDS(WEIR_BIND_TEXT("name", name)), NULL,
                           err));
    WEIR_TRY(weir_txn_exec(txn, sql_forget_replicas, WEIR_BINDS(WEIR_BIND_TEXT("name", name)), NULL,
                           err));
    return weir_txn_delete(txn, &weir_deployment_resource, name, err);
}

static weir_status save_row(struct weir_txn *txn, const struct weir_resource *resource,
                            const char *id, const void *row, bool is_gone, struct weir_error *err)
{
    if (!is_gone) {
        return weir_txn_upsert(txn, resource, row, err);
    }
    weir_status status = weir_txn_delete(txn, resource, id, err);
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status; /* it came and went in one step */
}

weir_status weir_deploy_save(struct weir_txn *txn, const struct weir_deploy_state *state,
                             struct weir_error *err)
{
    int64_t change;
    WEIR_TRY(weir_txn_next(txn, COUNTER, &change, err));
    if (state->is_deleted) {
        return remove_all(txn, state->deployment.name, err);
    }
    /* A name that is taken in a project that the caller does not see must not be overwritten. */
    WEIR_TRY(state->is_new
                 ? weir_txn_insert(txn, &weir_deployment_resource, &state->deployment, err)
                 : weir_txn_upsert(txn, &weir_deployment_resource, &state->deployment, err));
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deploy_version *version = &state->versions[i];
        WEIR_TRY(save_row(txn, &weir_deployment_version_resource, version->row.id, &version->row,
                          version->is_gone, err));
    }
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deploy_replica *replica = &state->replicas[i];
        WEIR_TRY(save_row(txn, &weir_deployment_replica_resource, replica->row.id, &replica->row,
                          replica->is_gone, err));
    }
    return WEIR_OK;
}

/* ---- small questions ------------------------------------------------------------------------- */

weir_status weir_deploy_of_job(struct weir_txn *txn, const char *job, struct weir_arena *arena,
                               char **out_deployment, char **out_replica, struct weir_error *err)
{
    char **deployments, **replicas;
    size_t n, n_replicas;
    WEIR_TRY(weir_txn_query_texts(txn, sql_deployment_of_job,
                                  WEIR_BINDS(WEIR_BIND_TEXT("job", job)), arena, &deployments, &n,
                                  err));
    WEIR_TRY(weir_txn_query_texts(txn, sql_replica_of_job, WEIR_BINDS(WEIR_BIND_TEXT("job", job)),
                                  arena, &replicas, &n_replicas, err));
    *out_deployment = n > 0 ? deployments[0] : NULL;
    *out_replica = n_replicas > 0 ? replicas[0] : NULL;
    return WEIR_OK;
}

weir_status weir_deploy_heartbeat(struct weir_txn *txn, const char *replica, int64_t n_running,
                                  const char *stats, int64_t now_ms, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_heartbeat,
                         WEIR_BINDS(WEIR_BIND_INT("now", now_ms),
                                    WEIR_BIND_INT("running", n_running),
                                    WEIR_BIND_TEXT("stats", stats), WEIR_BIND_TEXT("id", replica)),
                         NULL, err);
}

weir_status weir_deploy_change(struct weir_txn *txn, int64_t *out, struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_change, WEIR_NO_BINDS, 0, out, err);
}
