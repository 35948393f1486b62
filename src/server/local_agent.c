#include "server/local_agent.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "cluster/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define LOOK_MS      500
#define LOOK_SOON_MS 100  /* after a start: whether it has come up */
#define PACE_MS      1000 /* from one start to the next: by then it holds its lock */
#define IS_STABLE_MS 2000 /* an agent that lived so long is no crash loop */
#define N_TOLD       10   /* starts of a crash loop: each of the first is logged */
#define TOLD_EVERY   60   /* and of the others one in so many */

/* This machine as a node, by the driver that supplies it. */
static const struct weir_node_request wanted = {.tag = "own", .pool = "local", .n_nodes = 1};

static const struct weir_driver_ops *driver(void)
{
    return weir_driver_local.ops;
}

static bool is_running(const struct weir_local_agent *agent)
{
    struct weir_arena arena;
    struct weir_allocation_report report;
    struct weir_error ignored;
    weir_arena_init(&arena, 0);
    struct weir_driver_link link = {.options = agent};
    bool runs = driver()->poll(&link, &wanted.tag, 1, &arena, &report, &ignored) == WEIR_OK &&
                report.phase == WEIR_ALLOCATION_RUNNING;
    weir_arena_fini(&arena);
    return runs;
}

struct local_agent {
    struct weir_arena arena;
    struct weir_local_agent config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_stopping;
    struct local_agent_pace pace;
};

void local_agent_pace_begin(struct local_agent_pace *pace, int64_t now_ms)
{
    *pace = (struct local_agent_pace){.started_ms = now_ms};
}

bool local_agent_is_due(struct local_agent_pace *pace, bool is_running, int64_t now_ms)
{
    if (is_running) {
        if (now_ms - pace->started_ms >= IS_STABLE_MS) {
            pace->n_starts = 0;
        }
        return false;
    }
    if (now_ms < pace->started_ms + PACE_MS) {
        return false;
    }
    pace->n_starts++;
    pace->started_ms = now_ms;
    return true;
}

int64_t local_agent_look_ms(const struct local_agent_pace *pace, int64_t now_ms)
{
    return now_ms - pace->started_ms < IS_STABLE_MS ? LOOK_SOON_MS : LOOK_MS;
}

bool local_agent_is_told(const struct local_agent_pace *pace)
{
    return pace->n_starts <= N_TOLD || pace->n_starts % TOLD_EVERY == 0;
}

static bool wait_a_little(struct local_agent *agent)
{
    struct timespec until = weir_deadline_after(local_agent_look_ms(&agent->pace, weir_mono_ms()));
    pthread_mutex_lock(&agent->lock);
    while (!agent->is_stopping && weir_cond_wait_until(&agent->woken, &agent->lock, &until) == 0) {
    }
    bool goes_on = !agent->is_stopping;
    pthread_mutex_unlock(&agent->lock);
    return goes_on;
}

static void look(struct local_agent *agent)
{
    struct weir_error err = {0};
    int64_t now_ms = weir_mono_ms();
    if (!local_agent_is_due(&agent->pace, is_running(&agent->config), now_ms)) {
        return;
    }
    if (local_agent_is_told(&agent->pace)) {
        weir_log(WEIR_LOG_WARN, "agent_restarted", WEIR_KV_STR("dir", agent->config.dir),
                 WEIR_KV_STR("why", "the agent of this machine had ended"),
                 WEIR_KV_INT("n_starts", agent->pace.n_starts));
    }
    struct weir_driver_link link = {.options = &agent->config};
    if (driver()->request(&link, &wanted, &err) != WEIR_OK && local_agent_is_told(&agent->pace)) {
        weir_log(WEIR_LOG_ERROR, "agent_not_started", WEIR_KV_STR("error", err.message));
    }
}

static void *watch_main(void *context)
{
    struct local_agent *agent = context;
    while (wait_a_little(agent)) {
        look(agent);
    }
    return NULL;
}

weir_status local_agent_start(const struct weir_local_agent *config, struct local_agent **out,
                              struct weir_error *err)
{
    if (is_running(config) && weir_local_agent_differs(config)) {
        weir_log(WEIR_LOG_WARN, "agent_keeps_options", WEIR_KV_STR("dir", config->dir),
                 WEIR_KV_STR("why", "this machine's agent still runs, with the options of an "
                                    "earlier server: `weir server stop --tasks` ends it, and the "
                                    "next start gives it these"));
    }
    struct weir_driver_link link = {.options = config};
    weir_status status = driver()->request(&link, &wanted, err);
    if (status != WEIR_OK && status != WEIR_ERR_NOSPACE && status != WEIR_ERR_IO) {
        return status;
    }
    if (status !=
        WEIR_OK) { /* the disk does not take it: the server works without, and it is tried again */
        weir_log(WEIR_LOG_WARN, "agent_not_started", WEIR_KV_STR("dir", config->dir),
                 WEIR_KV_STR("error", err->message));
    }
    struct local_agent *agent = weir_xalloc(sizeof *agent);
    *agent = (struct local_agent){.config = *config};
    weir_arena_init(&agent->arena, 0);
    agent->config.dir = weir_arena_strdup(&agent->arena, config->dir);
    agent->config.server = weir_arena_strdup(&agent->arena, config->server);
    agent->config.ca_file = weir_arena_strdup(&agent->arena, config->ca_file);
    agent->config.node = weir_arena_strdup(&agent->arena, config->node);
    agent->config.onnxruntime = weir_arena_strdup(&agent->arena, config->onnxruntime);
    agent->config.shares = weir_arena_strdup(&agent->arena, config->shares);
    local_agent_pace_begin(&agent->pace, weir_mono_ms());
    pthread_mutex_init(&agent->lock, NULL);
    pthread_cond_init(&agent->woken, NULL);
    int reason = pthread_create(&agent->thread, NULL, watch_main, agent);
    if (reason != 0) {
        weir_arena_fini(&agent->arena);
        free(agent);
        return weir_error_set_errno(err, reason, "cannot start a thread");
    }
    *out = agent;
    return WEIR_OK;
}

void local_agent_stop(struct local_agent *agent)
{
    if (agent == NULL) {
        return;
    }
    pthread_mutex_lock(&agent->lock);
    agent->is_stopping = true;
    pthread_cond_signal(&agent->woken);
    pthread_mutex_unlock(&agent->lock);
    pthread_join(agent->thread, NULL);
    pthread_cond_destroy(&agent->woken);
    pthread_mutex_destroy(&agent->lock);
    weir_arena_fini(&agent->arena);
    free(agent);
}
