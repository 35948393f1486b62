#include "api/api.h"

#include "api/auth/audit.h"
#include "api/cluster/beats.h"
#include "api/cluster/cluster_ask.h"
#include "api/core/call.h"
#include "api/core/feed.h"
#include "api/core/slow.h"
#include "api/core/uses.h"
#include "api/data/blob_files.h"
#include "api/ion/desk.h"
#include "api/job/visit.h"
#include "base/log.h"
#include "cluster/driver.h"
#include "control/control.h"
#include "control/forget.h"
#include "control/freeze.h"
#include "control/inspector.h"
#include "job/job.h"
#include "visit/hub.h"

#include <stdlib.h>
#include <string.h>

const char weir_api_content_security_policy[] =
    "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

void api_wake(struct weir_api *api)
{
    if (api->http != NULL) {
        weir_http_wake(api->http, WEIR_TOPIC_GENERAL);
    }
}

/* Tell live streams (GET /api/v1/stream): topics are "runs", "jobs", "alerts", "ions", "models",
 * "nodes". Events and decisions need no call: they are read from the store. */
static void publish(void *context, const char *topic, const json_t *record)
{
    struct weir_api *api = context;
    int index = feed_topic_from_text(topic);
    char *text = json_dumps(record, JSON_COMPACT | JSON_ENCODE_ANY);
    if (index >= 0 && text != NULL) {
        feed_publish(api->feed, (enum feed_topic)index, text);
        api_wake(api);
    }
    free(text);
}

static void wake(void *context)
{
    api_wake(context);
}

/* Write what is due by time: counts of the audit. */
static void tick(void *context, int64_t now_ms, int64_t since_ms)
{
    struct weir_api *api = context;
    api->since_ms = since_ms;
    audit_flush(api->audit, now_ms);
    weir_guard_tick(weir_identities_guard(api->identities), now_ms);
    api_freeze_left(api);
}

struct freezer *weir_api_freezer(struct weir_api *api)
{
    return api->freezer;
}

struct control_listener weir_api_listener(struct weir_api *api)
{
    return (struct control_listener){
        .publish = publish, .wake = wake, .tick = tick, .context = api};
}

struct forget api_forget(const struct weir_api *api)
{
    return (struct forget){.store = api->store,
                           .blobs = api->blobs,
                           .pictures = api->pictures,
                           .state_dir = api->state_dir,
                           .now_ms = weir_clock_now_ms(api->clock)};
}

weir_status weir_api_create(const struct weir_api_config *config, struct weir_api **out,
                            struct weir_error *err)
{
    const struct weir_identities_config proofs = {
        .store = config->store, .proofs = config->proofs, .kinds = config->proof_kinds};
    struct weir_identities *identities;
    WEIR_TRY(weir_identities_create(&proofs, &identities, err));
    struct weir_api *api = weir_xalloc(sizeof *api);
    api->identities = identities;
    api->store = config->store;
    api->blobs = config->blobs;
    api->retainer = config->retainer;
    api->pictures = config->pictures;
    api->vitals = config->vitals;
    api->clock = config->clock != NULL ? config->clock : &weir_system_clock;
    api->artifact_max_bytes =
        config->artifact_max_bytes != 0 ? config->artifact_max_bytes : WEIR_API_ARTIFACT_MAX_BYTES;
    api->state_dir = weir_xstrdup(config->state_dir);
    memcpy(api->task_key, config->task_key, sizeof api->task_key);
    api->server_url = weir_xstrdup(config->server_url != NULL ? config->server_url : "");
    api->notify = config->notify;
    api->notify_context = config->notify_context;
    api->told = config->told;
    api->told_context = config->told_context;
    api->gateway = config->gateway;
    struct freezer_config freezer = {.store = api->store,
                                     .blobs = api->blobs,
                                     .clock = api->clock,
                                     .state_dir = api->state_dir,
                                     .listener = weir_api_listener(api),
                                     .notify = api->notify,
                                     .notify_context = api->notify_context};
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct inspector_config inspector = {
        .blobs = api->blobs,
        .dir = weir_arena_printf(&arena, "%s/uploads/inspect", api->state_dir),
        .onnxruntime = config->onnxruntime,
        .inspect = config->inspect,
        .context = config->inspect_context,
        .listener = weir_api_listener(api)};
    api->inspector = inspector_create(&inspector);
    weir_arena_fini(&arena);
    api->feed = feed_create();
    api->audit = audit_create(config->store);
    api->blob_files = blob_files_create(config->blobs, WEIR_BLOB_FILES_MAX_BYTES);
    api->beats = beats_create();
    api->uses = uses_create();
    api->desk = desk_create();
    api->freezer = freezer_create(&freezer);
    const struct control_listener listener = weir_api_listener(api);
    api->drivers = config->drivers != NULL ? config->drivers : &weir_drivers;
    api->slow = slow_create(cluster_ask_run, (void *)api->drivers, &listener);
    api->started_ms = weir_clock_now_ms(api->clock);
    api->since_ms = api->started_ms;
    api->watch = -1;
    if (weir_visits_create(&api_visits_ops, api, &api->visits, err) != WEIR_OK) {
        weir_api_destroy(api);
        return err->status;
    }
    api_forget_resume(api);
    api_delete_resume(api);
    *out = api;
    return WEIR_OK;
}

void weir_api_stop(struct weir_api *api)
{
    if (api == NULL) {
        return;
    }
    weir_visits_stop(api->visits); /* their ends are written while the store is open */
    freezer_stop(api->freezer);
    inspector_stop(api->inspector);
    slow_stop(api->slow);
    if (api->watch >= 0) { /* commits go on, and soon there is no server to wake */
        weir_store_unwatch(api->store, api->watch);
        api->watch = -1;
    }
}

void weir_api_destroy(struct weir_api *api)
{
    if (api == NULL) {
        return;
    }
    weir_api_stop(api);
    weir_visits_destroy(api->visits);
    freezer_destroy(api->freezer);
    weir_arena_fini(&api->unfrozen_arena);
    inspector_destroy(api->inspector);
    slow_destroy(api->slow);
    feed_destroy(api->feed);
    audit_destroy(api->audit, weir_clock_now_ms(api->clock));
    blob_files_destroy(api->blob_files);
    weir_identities_destroy(api->identities);
    beats_destroy(api->beats);
    uses_destroy(api->uses);
    desk_destroy(api->desk);
    free(api->state_dir);
    free((char *)api->services_domain);
    explicit_bzero(api->task_key, sizeof api->task_key);
    free(api->server_url);
    free(api);
}

/* Agents wait for their node's topic alone: most commits are none of their business. */
static void on_commit(void *context, uint64_t change, uint64_t marks)
{
    struct weir_api *api = context;
    (void)change;
    weir_http_wake(api->http, WEIR_TOPIC_GENERAL | marks);
}

void weir_api_attach(struct weir_api *api, struct weir_http_server *http, const char *url)
{
    struct weir_error err;
    api->http = http;
    free(api->server_url);
    api->server_url = weir_xstrdup(url);
    if (weir_store_watch(api->store, on_commit, api, &api->watch, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "api_watch_failed", WEIR_KV_STR("error", err.message));
    }
}

struct control api_control(struct api_call *call)
{
    return (struct control){.arena = call->arena,
                            .now_ms = call->now_ms,
                            .actor = call->actor,
                            .limited_to = call->identity.limited_to,
                            .state_dir = call->api->state_dir,
                            .server_url = call->api->server_url,
                            .publish = call->publish};
}
