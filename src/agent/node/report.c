/* What the agent tells the server. Everything here may be told twice. */
#include "agent/node/agent_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rolling.h"

#define LOG_FAILURES_MAX 3
#define LOG_TIMES_MAX    128 /* one chunk's: they stand in the URL */
#define LOG_TIME_BYTES   40

#define LEAVE_REASON_BYTES 160

bool report_is_quiet(const struct agent *agent)
{
    return weir_mono_ms() < agent->quiet_until_ms;
}

void report_note(struct agent *agent, weir_status status, const struct weir_error *err)
{
    bool is_away = weir_client_can_retry(status);
    if (connect_refresh(agent, &agent->client, status)) {
        agent->quiet_until_ms = 0;
        agent->next_heartbeat_ms = 0; /* register with it first */
        return;
    }
    if (is_away) {
        agent->quiet_until_ms = weir_mono_ms() + weir_backoff_next_ms(&agent->backoff);
    } else if (status != WEIR_ERR_CANCELLED) {
        weir_backoff_reset(&agent->backoff);
    }
    if (is_away && !agent->is_server_away) {
        weir_log(WEIR_LOG_WARN, "server_away", WEIR_KV_STR("error", err->message));
    } else if (status == WEIR_OK && agent->is_server_away) {
        weir_log(WEIR_LOG_INFO, "server_back",
                 WEIR_KV_STR("server", weir_client_server(agent->client)));
    }
    if (status == WEIR_OK || is_away) {
        agent->is_server_away = is_away;
    }
}

/* Will the same call never succeed? Trouble with the token is cured by people: keep trying. */
static bool is_final(weir_status status)
{
    return status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_CONFLICT ||
           status == WEIR_ERR_INVALID || status == WEIR_ERR_EXISTS || status == WEIR_ERR_CORRUPT ||
           status == WEIR_ERR_UNSUPPORTED;
}

static void add_disk(const struct agent *agent, json_t *body)
{
    int64_t total, free_bytes;
    char id[WEIR_DISK_ID_BYTES];
    struct weir_error ignored;
    if (weir_disk_space(agent->dir, &total, &free_bytes, &ignored) == WEIR_OK) {
        json_object_set_new(body, "disk_bytes", json_integer(total));
        json_object_set_new(body, "disk_free_bytes", json_integer(WEIR_MIN(free_bytes, total)));
        json_object_set_new(body, "disk_id", json_string(weir_disk_id(agent->dir, id)));
    }
}

/* What is known of a first round that is not over would be told as a loss of the rest. */
static void add_devices(const struct agent *agent, json_t *body)
{
    char reason[256];
    json_t *devices = NULL;
    if (agent->finder != NULL && weir_finder_is_complete(agent->finder)) {
        devices = weir_finder_devices(agent->finder);
        json_object_set(body, "devices", devices);
        json_object_set_new(json_object_get(body, "inventory"), "device_errors",
                            weir_finder_errors(agent->finder));
    }
    health_reason(agent, devices, reason, sizeof reason);
    if (reason[0] != '\0') {
        json_object_set_new(body, "unhealthy", json_string(reason));
    }
    json_decref(devices);
}

/* Then the server knows that the devices of all others are free. */
static void add_attempts(const struct agent *agent, json_t *body)
{
    json_t *alive = json_array();
    for (const struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        if (!a->has_exit_record) {
            json_array_append_new(
                alive, json_pack("{s:s,s:I}", "task", a->id, "attempt", (json_int_t)a->number));
        }
    }
    json_object_set_new(body, "attempts", alive);
}

weir_status report_heartbeat(struct agent *agent)
{
    struct weir_error err;
    struct weir_arena arena;
    char why[LEAVE_REASON_BYTES];
    weir_arena_init(&arena, 0);
    json_t *body =
        agent->config->inventory != NULL ? json_deep_copy(agent->config->inventory) : json_object();
    json_object_set_new(body, "agent_version", json_string(WEIR_VERSION));
    json_t *inventory = json_object_get(body, "inventory");
    if (inventory == NULL) {
        inventory = json_object();
        json_object_set_new(body, "inventory", inventory);
    }
    json_object_set(inventory, "isolation", agent->isolation);
    add_disk(agent, body);
    add_devices(agent, body);
    add_attempts(agent, body);
    bool is_leaving = leave_reason(agent, why, sizeof why) != NULL;
    if (is_leaving) {
        json_object_set_new(body, "leaving", json_string(why));
    }
    json_object_set_new(body, "time_ms", json_integer(weir_time_ms()));
    char *path = weir_client_path(&arena, "/api/v1/nodes/{}", &agent->config->node, 1);
    int64_t sent_ms = weir_boot_ms();
    weir_status status = weir_client_call(agent->client, "PUT", path, body, NULL, &err);
    if (status == WEIR_OK) {
        contact_note(agent->contact, sent_ms);
        agent->is_leave_told = agent->is_leave_told || is_leaving;
    }
    json_decref(body);
    weir_arena_fini(&arena);
    report_note(agent, status, &err);
    leave_note_answer(agent, status);
    if (status != WEIR_OK && !weir_client_can_retry(status) && status != WEIR_ERR_CANCELLED) {
        weir_log(WEIR_LOG_ERROR, "node_not_registered", WEIR_KV_STR("error", err.message));
    }
    return status;
}

weir_status report_left(struct agent *agent)
{
    struct weir_error err;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *path = weir_client_path(&arena, "/api/v1/nodes/{}", &agent->config->node, 1);
    weir_status status = weir_client_call(agent->client, "DELETE", path, NULL, NULL, &err);
    weir_arena_fini(&arena);
    report_note(agent, status, &err);
    return status;
}

/* PUT the status of an attempt; OK also if the server will never want it. Takes `body`. */
static weir_status put_status(struct agent *agent, const struct attempt *a, json_t *body)
{
    struct weir_error err;
    struct weir_arena arena;
    const char *id = a->id;
    weir_arena_init(&arena, 0);
    char *path = weir_client_path(&arena, "/api/v1/tasks/{}/status", &id, 1);
    weir_status status = weir_client_call(agent->client, "PUT", path, body, NULL, &err);
    json_decref(body);
    weir_arena_fini(&arena);
    report_note(agent, status, &err);
    if (is_final(status)) {
        weir_log(WEIR_LOG_WARN, "status_refused", WEIR_KV_STR("task", a->id),
                 WEIR_KV_INT("attempt", a->number), WEIR_KV_STR("error", err.message));
        return WEIR_OK;
    }
    return status;
}

/* Where the server reaches its port, if it has one: written before run.json was. */
static void add_tunnel(const struct attempt *a, json_t *body)
{
    char path[TASK_PATH_BYTES], text[TUNNEL_ADDRESS_BYTES];
    size_t len;
    if (weir_file_read_into(task_path(path, a->dir, "door"), text, sizeof text - 1, &len, NULL) ==
        WEIR_OK) {
        text[len] = '\0';
        json_object_set_new(body, "door", json_string(text));
    }
}

weir_status report_running(struct agent *agent, struct attempt *a)
{
    struct task_run run;
    WEIR_TRY(task_run_read(a->dir, &run, NULL));
    json_t *body =
        json_pack("{s:I, s:s, s:I, s:I}", "attempt", (json_int_t)a->number, "state", "running",
                  "pid", (json_int_t)run.process.pid, "time_ms", (json_int_t)run.time_ms);
    add_tunnel(a, body);
    WEIR_TRY(put_status(agent, a, body));
    a->seen.reported = PLAN_REPORTED_RUNNING;
    return WEIR_OK;
}

weir_status report_held(struct agent *agent, struct attempt *a)
{
    char path[TASK_PATH_BYTES], text[WEIR_ERROR_MESSAGE_BYTES];
    size_t len;
    WEIR_TRY(
        weir_file_read_into(task_path(path, a->dir, TASK_HELD), text, sizeof text - 1, &len, NULL));
    text[len] = '\0';
    json_t *body = json_pack("{s:I, s:s, s:s}", "attempt", (json_int_t)a->number, "state", "held",
                             "message", text);
    weir_status status = body != NULL ? put_status(agent, a, body) : WEIR_OK;
    a->is_held_told = status == WEIR_OK;
    return status;
}

weir_status report_saved(struct agent *agent, struct attempt *a)
{
    weir_status status = put_status(
        agent, a, json_pack("{s:I, s:s}", "attempt", (json_int_t)a->number, "state", "saved"));
    a->is_saved_told = status == WEIR_OK;
    return status;
}

weir_status report_exit(struct agent *agent, struct attempt *a)
{
    const struct task_exit *record = &a->exit;
    json_t *body =
        json_pack("{s:I, s:s, s:I, s:i, s:i, s:s, s:I, s:I, s:I}", "attempt", (json_int_t)a->number,
                  "state", record->is_lost ? "lost" : "exited", "pid", (json_int_t)record->pid,
                  "exit_code", record->exit_code, "signal", record->signal, "message",
                  record->message, "time_ms", (json_int_t)record->time_ms, "max_rss_bytes",
                  (json_int_t)record->max_rss_bytes, "cpu_ms", (json_int_t)record->cpu_ms);
    WEIR_TRY(put_status(agent, a, body));
    a->seen.reported = PLAN_REPORTED_EXIT;
    a->exit_acknowledged_ms = weir_mono_ms();
    weir_log(WEIR_LOG_INFO, "task_ended", WEIR_KV_STR("task", a->id),
             WEIR_KV_INT("attempt", a->number), WEIR_KV_INT("exit_code", record->exit_code),
             WEIR_KV_INT("signal", record->signal), WEIR_KV_STR("message", record->message));
    return WEIR_OK;
}

/* What the server's answer says about how much it has. */
static void take_offset(struct attempt *a, const json_t *answer, int64_t sent_to, int64_t size)
{
    const json_t *offset = json_object_get(answer, "offset");
    int64_t has = json_is_integer(offset) ? json_integer_value(offset) : sent_to;
    a->log_offset = WEIR_MAX((int64_t)0, WEIR_MIN(has, size));
}

static void note_log(struct agent *agent, struct attempt *a, weir_status status, int http_status,
                     const struct weir_error *err)
{
    if (status == WEIR_OK || http_status == 409) {
        a->n_log_failures = 0;
        a->seen.is_log_stuck = false;
        report_note(agent, WEIR_OK, err);
        return;
    }
    report_note(agent, status, err);
    if (weir_client_can_retry(status) && http_status == 0) {
        return; /* nobody answered: the exit could not be told either */
    }
    a->n_log_failures++;
    a->seen.is_log_stuck = a->n_log_failures >= LOG_FAILURES_MAX;
    if (is_final(status) || status == WEIR_ERR_LIMIT) {
        a->seen.is_log_complete = true;
        weir_log(WEIR_LOG_WARN, "log_refused", WEIR_KV_STR("task", a->id),
                 WEIR_KV_STR("error", err->message));
    }
}

/* When its lines came: ",BYTES:MS" each, as far behind the one before it, the first behind the chunk's begin and
 * 1970. What has more of them is made shorter. */
static char *log_times(const char *log, struct weir_rolling_part *part, struct weir_arena *arena)
{
    struct weir_rolling_time times[LOG_TIMES_MAX], before = {part->from, 0};
    struct weir_buf text;
    size_t n = weir_rolling_times(log, part, times, LOG_TIMES_MAX);
    weir_buf_init(&text, LOG_TIMES_MAX * LOG_TIME_BYTES);
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_printf(&text, "%s%lld:%lld", i > 0 ? "," : "&times=",
                              (long long)(times[i].position - before.position),
                              (long long)(times[i].time_ms - before.time_ms));
        before = times[i];
    }
    char *copy = weir_arena_memdup(arena, text.data != NULL ? text.data : "", text.len);
    weir_buf_fini(&text);
    return copy;
}

/* Where a chunk goes: what the server has ends at log_offset, and some of what came then may be gone. */
static char *log_url(const struct attempt *a, int64_t from, const char *times,
                     struct weir_arena *arena)
{
    const char *id = a->id;
    char *base = weir_client_path(arena, "/api/v1/tasks/{}/log", &id, 1);
    char *url = weir_arena_printf(arena, "%s?offset=%lld&attempt=%lld%s", base, (long long)from,
                                  (long long)a->number, times);
    int64_t n_left_out = a->log_offset >= 0 ? from - a->log_offset : 0;
    return n_left_out > 0 ? weir_arena_printf(arena, "%s&left_out=%lld", url, (long long)n_left_out)
                          : url;
}

/* Send a chunk from log_offset on; at first an empty one, to ask how much the server has. */
weir_status report_log(struct agent *agent, struct attempt *a, bool *out_more)
{
    static char chunk[LOG_CHUNK_BYTES];
    int64_t had = a->log_offset;
    bool is_probe = had < 0;
    char log[TASK_PATH_BYTES];
    struct weir_rolling_part part;
    struct weir_error err;
    struct weir_arena arena;
    *out_more = false;
    WEIR_TRY(weir_rolling_read(task_path(log, a->dir, "log"), is_probe ? 0 : had, chunk,
                               is_probe ? 0 : sizeof chunk, &part, &err));
    if (!is_probe && part.n == 0) {
        a->seen.is_log_complete = a->has_exit_record;
        return WEIR_OK;
    }
    weir_arena_init(&arena, 0);
    const char *times = log_times(log, &part, &arena);
    const char *path = log_url(a, part.from, times, &arena);
    json_t *answer = NULL;
    int http_status = 0;
    weir_status status = weir_client_call_raw(agent->client, "POST", path, "text/plain", chunk,
                                              part.n, &http_status, &answer, &err);
    weir_arena_fini(&arena);
    if (status == WEIR_OK || http_status == 409) {
        take_offset(a, answer, part.from + (int64_t)part.n, part.end);
        *out_more = a->log_offset < part.end && a->log_offset != had;
    }
    json_decref(answer);
    note_log(agent, a, status, http_status, &err);
    if (a->has_exit_record && a->log_offset >= part.end) {
        a->seen.is_log_complete = true;
    }
    return http_status == 409 ? WEIR_OK : status;
}
