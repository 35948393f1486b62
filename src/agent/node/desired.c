/* The thread that holds a long poll on "what should run on this node". */
#include "agent/node/agent_private.h"
#include "agent/visit/visit.h"

#include "base/clock.h"
#include "base/log.h"

#include <poll.h>
#include <unistd.h>

/* Pause that the end of the agent interrupts: wake_fd becomes readable then. */
static void pause_ms(struct agent *agent, int64_t ms)
{
    struct pollfd fd = {.fd = agent->wake_fd, .events = POLLIN};
    (void)poll(&fd, 1, (int)ms);
}

/* Hand a desired state to the main thread. An older one that it has not taken is outdated. */
static void publish(struct agent *agent, json_t *document, int64_t asked_at_ms)
{
    uint64_t one = 1;
    pthread_mutex_lock(&agent->lock);
    json_decref(agent->latest_desired.document);
    agent->latest_desired = (struct desired){document, asked_at_ms};
    pthread_mutex_unlock(&agent->lock);
    (void)!write(agent->event_fd, &one, sizeof one);
}

/* What the server is asked for: all that is newer than this. */
struct asked {
    int64_t revision, visits;
};

static weir_status ask(struct agent *agent, const struct asked *asked, json_t **out,
                       struct weir_error *err)
{
    const struct weir_agent_config *config = agent->config;
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    int64_t wait_s = config->poll_wait_s > 0 ? config->poll_wait_s : 20;
    char *node = weir_client_path(&arena, "/api/v1/nodes/{}/desired", &config->node, 1);
    char *path =
        weir_arena_printf(&arena, "%s?after=%lld&wait_s=%lld&visits=%lld", node,
                          (long long)asked->revision, (long long)wait_s, (long long)asked->visits);
    weir_client_set_timeout(agent->desired_client, wait_s * 1000 + CALL_TIMEOUT_MS);
    WEIR_AUTO(weir_json_auto_free) json_t *document = NULL;
    WEIR_TRY(weir_client_call(agent->desired_client, "GET", path, NULL, &document, err));
    bool is_whole = json_is_array(json_object_get(document, "tasks")) ||
                    json_is_array(json_object_get(document, "visits"));
    if (!is_whole || !json_is_integer(json_object_get(document, "revision"))) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "the server's answer has no \"revision\" and \"tasks\"");
    }
    *out = json_incref(document);
    return WEIR_OK;
}

/* A person who wants to look into a task does not wait for the main thread. */
static void take(struct agent *agent, json_t *document, int64_t asked_at_ms, struct asked *asked)
{
    const json_t *visits = json_object_get(document, "visits");
    asked->revision = json_integer_value(json_object_get(document, "revision"));
    if (visits == NULL) {
        publish(agent, document, asked_at_ms);
        return;
    }
    asked->visits = json_integer_value(json_object_get(document, "serial"));
    visit_leave_orders(agent->tasks_dir, weir_client_server(agent->desired_client), agent->ca_path,
                       visits);
    json_decref(document);
}

void *desired_main(void *context)
{
    struct agent *agent = context;
    struct weir_backoff backoff = {.base_ms = 100, .max_ms = 5000};
    struct asked asked = {-1, -1};
    int n_failures = 0;
    while (!atomic_load(&agent->is_stopping)) {
        struct weir_error err;
        json_t *document = NULL;
        int64_t asked_at_ms = weir_mono_ms();
        weir_status status = ask(agent, &asked, &document, &err);
        if (status == WEIR_OK) {
            if (asked.revision < 0) {
                atomic_store(&agent->is_use_asked, true);
            }
            take(agent, document, asked_at_ms, &asked);
            weir_backoff_reset(&backoff);
            n_failures = 0;
        } else if (status != WEIR_ERR_CANCELLED) {
            /* Once per trouble. The first failure is usual: the node is not registered yet. */
            if (++n_failures == 2) {
                weir_log(WEIR_LOG_WARN, "desired_state_not_fetched",
                         WEIR_KV_STR("error", err.message));
            }
            asked = (struct asked){-1, -1}; /* it may be another server, or an older state of it */
            if (connect_refresh(agent, &agent->desired_client, status)) {
                continue;
            }
            pause_ms(agent, weir_backoff_next_ms(&backoff));
        }
    }
    return NULL;
}
