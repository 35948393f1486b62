/* What running attempts use of this machine, for the charts of their runs. What their devices do the
 * server knows from the heartbeats. */
#include "agent/node/agent_private.h"

#include "base/clock.h"

/* A short run wants many points, a long one is no worse with fewer. */
#define YOUNG_MS       (10 * 60 * 1000)
#define YOUNG_EVERY_MS 10000
#define OLD_EVERY_MS   60000
#define FIRST_AFTER_MS 1000

/* Read it; a new reference once there are two readings to compare, else NULL. */
static json_t *look(struct attempt *a, int64_t now_ms)
{
    struct task_run run;
    struct use now;
    if (task_run_read(a->dir, &run, NULL) != WEIR_OK || !use_read(&run, &now)) {
        a->use_due_ms = now_ms + YOUNG_EVERY_MS;
        return NULL;
    }
    bool is_young = weir_time_ms() - run.time_ms < YOUNG_MS;
    double cores = use_cores(&a->use, &now, now_ms - a->use_ms);
    bool is_first = a->use_ms == 0;
    a->use = now;
    a->use_ms = now_ms;
    a->use_due_ms = now_ms + (is_first ? FIRST_AFTER_MS : is_young ? YOUNG_EVERY_MS : OLD_EVERY_MS);
    return is_first
               ? NULL
               : json_pack("{s:s,s:I,s:f,s:I}", "task", a->id, "attempt", (json_int_t)a->number,
                           "cpu_cores", cores, "memory_bytes", (json_int_t)now.memory_bytes);
}

static void send(struct agent *agent, json_t *tasks)
{
    struct weir_error err;
    struct weir_arena arena;
    json_t *body = json_pack("{s:O}", "tasks", tasks);
    weir_arena_init(&arena, 0);
    char *path = weir_client_path(&arena, "/api/v1/nodes/{}/use", &agent->config->node, 1);
    weir_status status = weir_client_call(agent->client, "POST", path, body, NULL, &err);
    report_note(agent, status, &err);
    if (weir_client_can_retry(status)) { /* it has moved, perhaps: the next one knows nothing yet */
        atomic_store(&agent->is_use_asked, true);
    }
    weir_arena_fini(&arena);
    json_decref(body);
}

void report_use(struct agent *agent)
{
    int64_t now_ms = weir_mono_ms();
    if (!report_is_quiet(agent) && atomic_exchange(&agent->is_use_asked, false)) {
        for (struct attempt *a = agent->attempts; a != NULL; a = a->next) {
            a->use_due_ms =
                WEIR_MAX(now_ms, a->use_ms + FIRST_AFTER_MS); /* a shorter span tells nothing */
        }
        agent->next_use_ms = now_ms;
    }
    if (now_ms < agent->next_use_ms || report_is_quiet(agent)) {
        return;
    }
    json_t *tasks = json_array();
    agent->next_use_ms = INT64_MAX;
    for (struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        bool is_running = a->seen.has_run && !a->seen.has_exit && a->seen.is_supervised;
        json_t *view = is_running && now_ms >= a->use_due_ms ? look(a, now_ms) : NULL;
        if (view != NULL) {
            json_array_append_new(tasks, view);
        }
        if (!a->seen.has_exit) { /* one that has not begun yet is looked at soon */
            agent->next_use_ms =
                WEIR_MIN(agent->next_use_ms, is_running ? a->use_due_ms : now_ms + FIRST_AFTER_MS);
        }
    }
    if (json_array_size(tasks) > 0) {
        send(agent, tasks);
    }
    json_decref(tasks);
}
