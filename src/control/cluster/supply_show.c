#include "control/cluster/supply_show.h"

#include "base/log.h"
#include "store/chain.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

/* Jobs that an allocation was asked for first, and those that have tasks on nodes of one. Each step finds its rows by an index, of
 * what is there now. */
static const char sql_here[] =
    "SELECT job FROM allocations WHERE cluster = :cluster AND state <> 'ended' AND job IS NOT NULL"
    " UNION SELECT t.job FROM allocations a CROSS JOIN nodes n CROSS JOIN tasks t"
    " WHERE a.cluster = :cluster AND a.state <> 'ended' AND n.allocation = a.id AND t.node = n.name"
    " AND t.state IN ('STARTING', 'RUNNING', 'STOPPING') ORDER BY 1 LIMIT :max";

/* A project without a queue of its own has one of its name (control/queue_tree.h). */
static const char sql_job[] =
    "SELECT name, project, coalesce((SELECT name FROM queues WHERE project = jobs.project), "
    "project),"
    " kind, state, reason, outcome, started_ms, finished_ms, (SELECT count(DISTINCT node) FROM "
    "tasks"
    " WHERE job = jobs.id AND state IN ('STARTING', 'RUNNING', 'STOPPING'))"
    " FROM jobs WHERE id = :id";

struct showing {
    const struct supply_show *show;
    struct weir_shown seen;
    struct weir_shown_job *jobs;
    size_t n;
};

/* ---- what is shown --------------------------------------------------------------------------- */

/* It is over, or being stopped for good; one that is stopped for others goes on later. */
static bool is_ending(const char *state, const char *outcome)
{
    int phase = weir_job_phase_from_text(state != NULL ? state : "");
    int then = weir_job_phase_from_text(outcome != NULL ? outcome : "");
    return phase < 0 || weir_job_phase_is_final((enum weir_job_phase)phase) ||
           (phase == WEIR_JOB_STOPPING && then != WEIR_JOB_PENDING);
}

static void take_row(struct weir_stmt *stmt, struct weir_shown_job *job, struct weir_arena *arena)
{
    job->name = weir_stmt_text(stmt, 0, arena);
    job->project = weir_stmt_text(stmt, 1, arena);
    job->queue = weir_stmt_text(stmt, 2, arena);
    job->kind = weir_stmt_text(stmt, 3, arena);
    job->state = weir_stmt_text(stmt, 4, arena);
    job->reason = weir_stmt_text(stmt, 5, arena);
    job->is_ending = is_ending(job->state, weir_stmt_peek(stmt, 6, NULL));
    job->started_ms = weir_stmt_int(stmt, 7);
    job->ended_ms = weir_stmt_int(stmt, 8);
    job->n_nodes = weir_stmt_int(stmt, 9);
}

/* One that is not there has an identifier and nothing else. */
static weir_status read_job(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                            struct weir_shown_job *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    *out = (struct weir_shown_job){.id = weir_arena_strdup(arena, id)};
    WEIR_TRY(weir_stmt_open(txn, sql_job, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (has_row) {
        take_row(stmt, out, arena);
    }
    return weir_arena_check(arena, "jobs to show", err);
}

static int compare(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

/* Those that are here, and those that something is seen of. */
static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct showing *showing = context;
    const struct supply_show *show = showing->show;
    char **here;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(txn, sql_here,
                                  WEIR_BINDS(WEIR_BIND_TEXT("cluster", show->cluster),
                                             WEIR_BIND_INT("max", SUPPLY_SHOWN_MAX)),
                                  show->arena, &here, &n, err));
    size_t n_all = n + showing->seen.n_ids;
    const char **all = WEIR_ARENA_ARRAY(show->arena, n_all + 1, const char *);
    for (size_t i = 0; i < n_all; i++) {
        all[i] = i < n ? here[i] : showing->seen.ids[i - n];
    }
    qsort(all, n_all, sizeof all[0], compare);
    showing->jobs = WEIR_ARENA_ARRAY(show->arena, n_all + 1, struct weir_shown_job);
    showing->n = 0;
    for (size_t i = 0; i < n_all; i++) {
        if (i == 0 || strcmp(all[i], all[i - 1]) != 0) {
            WEIR_TRY(read_job(txn, all[i], show->arena, &showing->jobs[showing->n++], err));
        }
    }
    return WEIR_OK;
}

static weir_status show_all(struct showing *showing, struct weir_error *err)
{
    const struct supply_show *show = showing->show;
    WEIR_TRY(weir_store_read(show->config->store, read_in, showing, err));
    const struct weir_showing what = {
        .server = show->config->server_url, .jobs = showing->jobs, .n = showing->n};
    return show->ops->show(show->link, &what, err);
}

/* ---- what is deleted ------------------------------------------------------------------------- */

struct cancelling {
    struct control control;
    const char *cluster, *job;
    bool is_cancelled;
};

/* In the audit as the route that does the same is. */
static weir_status note_act(struct cancelling *cancelling, struct weir_txn *txn,
                            struct weir_error *err)
{
    struct control *control = &cancelling->control;
    return control_log(control, txn, WEIR_AUDIT_TOPIC, "jobs_cancel",
                       weir_arena_printf(control->arena, "job/%s", cancelling->job),
                       weir_arena_printf(control->arena,
                                         "Cancel a job (its WeirJob was deleted), by %s.",
                                         control->actor),
                       err);
}

static weir_status cancel_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct cancelling *cancelling = context;
    struct control *control = &cancelling->control;
    struct weir_shown_job job;
    cancelling->is_cancelled = false;
    json_array_clear(control->publish);
    WEIR_TRY(read_job(txn, cancelling->job, control->arena, &job, err));
    if (job.state == NULL || job.is_ending) {
        return WEIR_OK;
    }
    WEIR_TRY(control_job_cancel(control, txn, cancelling->job, NULL, err));
    cancelling->is_cancelled = true;
    return note_act(cancelling, txn, err);
}

/* Each in a transaction of its own: one that fails holds up no other. */
static void cancel(const struct supply_show *show, const char *job)
{
    const struct supplier_config *config = show->config;
    struct cancelling cancelling = {
        .control = {.arena = show->arena,
                    .now_ms = show->now_ms,
                    .actor = weir_arena_printf(show->arena, "cluster/%s", show->cluster),
                    .state_dir = config->state_dir,
                    .server_url = config->server_url,
                    .publish = json_array()},
        .cluster = show->cluster,
        .job = job};
    struct weir_error err;
    weir_status status = weir_store_write(config->store, cancel_in, &cancelling, &err);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "job_not_cancelled", WEIR_KV_STR("job", job),
                 WEIR_KV_STR("cluster", show->cluster), WEIR_KV_STR("error", err.message));
    } else if (cancelling.is_cancelled) {
        control_publish_all(&config->listener, cancelling.control.publish);
        if (config->changed != NULL) {
            config->changed(config->changed_context);
        }
    }
    json_decref(cancelling.control.publish);
}

void supply_show(const struct supply_show *show)
{
    struct showing showing = {.show = show};
    struct weir_error err;
    if (show->ops->shown == NULL) {
        return;
    }
    /* A link that cannot be made is told of by what asks the cluster. */
    if (show->ops->shown(show->link, show->arena, &showing.seen, &err) != WEIR_OK ||
        !showing.seen.is_wanted) {
        return;
    }
    for (size_t i = 0; i < showing.seen.n_deleted; i++) {
        cancel(show, showing.seen.deleted[i]);
    }
    if (show_all(&showing, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "jobs_not_shown", WEIR_KV_STR("cluster", show->cluster),
                 WEIR_KV_STR("error", err.message));
    }
}
