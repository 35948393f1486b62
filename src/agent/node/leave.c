/* The end of an agent in an allocation: the cluster that lent the node takes it back, and every process on it. */
#include "agent/node/agent_private.h"

#include "agent/shutdown.h"
#include "base/clock.h"
#include "base/log.h"

#define HOLD_MS         200  /* until a signal that everybody gets has come to all */
#define UNTOLD_MS       100  /* until the server is told again that the node leaves */
#define GRACE_MARGIN_MS 3000 /* from the end of a task's grace until its end is told */
#define TIME_ENDS_MS    120000
#define SEND_MOST_MS                                                                               \
    600000 /* for what a task leaves to be sent, if nobody says how long there is */
#define REST_PATIENCE_MS 2000
#define REFUSED_MAX      10 /* heartbeats in a row, for want of a good token */

int64_t leave_ends_ms(const struct agent *agent)
{
    return json_integer_value(json_object_get(agent->config->inventory, "ends_ms"));
}

/* How much of its time is left; INT64_MAX: nobody says. */
static int64_t left_ms(const struct agent *agent)
{
    int64_t ends_ms = leave_ends_ms(agent);
    return ends_ms > 0 ? ends_ms - weir_time_ms() : INT64_MAX;
}

const char *leave_reason(const struct agent *agent, char *out, size_t size)
{
    if (!atomic_load(&agent->is_leaving)) {
        return NULL;
    }
    (void)snprintf(out, size,
                   left_ms(agent) <= TIME_ENDS_MS ? "the time of allocation %s is over"
                                                  : "allocation %s has ended",
                   agent->config->allocation);
    return out;
}

static void ask(struct agent *agent, const struct attempt *a)
{
    struct weir_error err;
    int64_t left = left_ms(agent);
    int64_t grace_ms = WEIR_MIN(a->stop_grace_ms, WEIR_MAX(left - GRACE_MARGIN_MS, (int64_t)0));
    int64_t until_ms = weir_mono_ms() + WEIR_MIN(left, (int64_t)SEND_MOST_MS);
    if (task_interrupt_write(a->dir, grace_ms, until_ms, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "task_not_stopped", WEIR_KV_STR("task", a->id),
                 WEIR_KV_STR("error", err.message));
    }
}

/* The folder says what was asked: a task that comes late is asked too, before anything of it is started. */
void leave_ask(struct agent *agent)
{
    char why[160];
    if (!agent->has_begun_leave) {
        agent->has_begun_leave = true;
        agent->quiet_until_ms = 0;
        weir_log(WEIR_LOG_INFO, "node_leaves",
                 WEIR_KV_STR("why", leave_reason(agent, why, sizeof why)));
    }
    for (struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        if (!a->has_exit_record && task_has(a->dir, "task.json") &&
            !task_has(a->dir, "exit.json") && !task_has(a->dir, "stop")) {
            ask(agent, a);
        }
    }
    if (!agent->is_leave_told && !agent->is_disowned) {
        agent->next_heartbeat_ms = 0;
    }
}

int64_t leave_hold_ms(const struct agent *agent, const struct attempt *a)
{
    if (agent->config->allocation == NULL || !a->has_exit_record ||
        a->seen.reported == PLAN_REPORTED_EXIT) {
        return 0;
    }
    if (atomic_load(&agent->is_leaving)) {
        return agent->is_leave_told ? 0 : UNTOLD_MS;
    }
    bool has_failed = a->exit.is_lost || a->exit.signal != 0 || a->exit.exit_code != 0;
    int64_t age_ms = weir_time_ms() - a->exit.time_ms;
    return has_failed && age_ms >= 0 ? WEIR_MAX(HOLD_MS - age_ms, (int64_t)0) : 0;
}

/* A server that was restored from a backup does not know its token, and will not take its nodes back either. */
void leave_note_answer(struct agent *agent, weir_status status)
{
    bool is_refused = agent->config->allocation != NULL && status == WEIR_ERR_UNAUTH;
    agent->n_refused = is_refused ? agent->n_refused + 1 : 0;
    if (agent->n_refused == REFUSED_MAX && !agent->is_disowned) {
        weir_log_event(WEIR_LOG_ERROR, "server_knows_no_such_node");
        agent->is_disowned = true;
        atomic_store(&agent->is_leaving, true);
    }
}

bool leave_is_over(struct agent *agent)
{
    if (left_ms(agent) <= 0) {
        weir_log_event(WEIR_LOG_WARN, "allocation_is_over");
        return true;
    }
    for (const struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        bool has_begun = a->seen.has_run || a->seen.is_supervised || a->has_exit_record;
        bool is_settled =
            agent->is_disowned ? a->has_exit_record : a->seen.reported == PLAN_REPORTED_EXIT;
        if (has_begun && !is_settled) {
            return false;
        }
    }
    if (agent->is_disowned) {
        return true;
    }
    if (!agent->is_leave_told || report_is_quiet(agent)) {
        return false;
    }
    weir_status status = report_left(agent);
    return status != WEIR_ERR_CANCELLED && !weir_client_can_retry(status);
}

void leave_end_rest(const struct weir_agent_config *config)
{
    struct weir_error err;
    enum weir_lock_end how;
    size_t n_tasks;
    const struct weir_agent_shutdown shutdown = {
        .dir = config->dir, .program = config->executable, .patience_ms = REST_PATIENCE_MS};
    if (weir_agent_shutdown(&shutdown, &how, &n_tasks, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "tasks_not_ended", WEIR_KV_STR("error", err.message));
    }
}
