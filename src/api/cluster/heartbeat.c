/** Heartbeats: what is news is written; of the others it is noted that they came, and what they read. */
#include "api/auth/audit.h"
#include "api/cluster/beats.h"
#include "api/cluster/node.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "control/control.h"
#include "control/node_gone.h"
#include "control/remake.h"
#include "job/heard.h"
#include "job/task_device.h"
#include "store/live.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

/* More than any machine has: what an agent says of itself decides what is placed on it. */
#define NODE_SLOTS_MAX        ((int64_t)4096)
#define NODE_MEMORY_MAX       ((int64_t)1 << 50)
#define NODE_DISK_MAX         ((int64_t)1 << 60)
#define NODE_ACCELERATORS_MAX ((int64_t)1024)
#define NODE_ATTEMPTS_MAX     4096
#define NODE_VERSION_MAX      ((size_t)64)
#define LEAVING_MAX           ((size_t)200)
#define TIME_MAX              ((int64_t)253402300799999) /* the year 9999 */

static weir_status body_int_within(const struct api_call *call, const char *name, int64_t fallback,
                                   int64_t lo, int64_t hi, int64_t *out, struct weir_error *err)
{
    int64_t value;
    WEIR_TRY(api_body_int(call, name, fallback, &value, err));
    if (value < lo || value > hi) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected %lld to %lld, got %lld", name,
                              (long long)lo, (long long)hi, (long long)value);
    }
    *out = value;
    return WEIR_OK;
}

/* A token of before is bound to the first node that its agent registers. */
static weir_status bind_token(struct api_call *call, struct weir_txn *txn, const char *node,
                              struct weir_error *err)
{
    if (call->identity.role != WEIR_ROLE_AGENT || call->identity.node != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_token_bind(txn, call->identity.token, node, err));
    return audit_act(
        call, txn, "token_bound", weir_arena_printf(call->arena, "token/%s", call->identity.token),
        weir_arena_printf(call->arena, "An agent's token was bound to node %s", node), err);
}

/* What has not ended there; an agent that does not say it has nothing settled. */
static weir_status settle_attempts(struct api_call *call, struct weir_txn *txn, const char *node,
                                   size_t *out_n_freed, struct weir_error *err)
{
    const json_t *items = json_object_get(call->body, "attempts"), *item;
    size_t n = json_array_size(items), i;
    *out_n_freed = 0;
    if (items == NULL) {
        return WEIR_OK;
    }
    if (!json_is_array(items) || n > NODE_ATTEMPTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.attempts: expected a list of at most %d",
                              NODE_ATTEMPTS_MAX);
    }
    struct weir_attempt_name *alive =
        WEIR_ARENA_ARRAY(call->arena, n + 1, struct weir_attempt_name);
    json_array_foreach(items, i, item)
    {
        alive[i].task = json_string_value(json_object_get(item, "task"));
        alive[i].attempt = json_integer_value(json_object_get(item, "attempt"));
        if (alive[i].task == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.attempts[%zu]: expected {task, attempt}", i);
        }
    }
    return weir_task_devices_settle(txn, node, alive, n, out_n_freed, err);
}

static weir_status read_node(struct api_call *call, struct weir_node *node, struct weir_error *err)
{
    const char *version, *disk_id, *leaving;
    const json_t *inventory = json_object_get(call->body, "inventory");
    WEIR_TRY(body_int_within(call, "cpu_slots", 1, 1, NODE_SLOTS_MAX, &node->cpu_slots, err));
    WEIR_TRY(
        body_int_within(call, "memory_bytes", 0, 0, NODE_MEMORY_MAX, &node->memory_bytes, err));
    WEIR_TRY(body_int_within(call, "n_accelerators", 0, 0, NODE_ACCELERATORS_MAX,
                             &node->n_accelerators, err));
    WEIR_TRY(body_int_within(call, "disk_bytes", 0, 0, NODE_DISK_MAX, &node->disk_bytes, err));
    WEIR_TRY(body_int_within(call, "disk_free_bytes", 0, 0, node->disk_bytes,
                             &node->disk_free_bytes, err));
    WEIR_TRY(api_body_text(call, "disk_id", &disk_id, err));
    if (disk_id != NULL && strlen(disk_id) >= WEIR_DISK_ID_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.disk_id: longer than %d bytes",
                              WEIR_DISK_ID_BYTES - 1);
    }
    WEIR_TRY(api_body_text(call, "agent_version", &version, err));
    if (version != NULL && strlen(version) > NODE_VERSION_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.agent_version: longer than %zu bytes",
                              NODE_VERSION_MAX);
    }
    WEIR_TRY(api_body_text(call, "leaving", &leaving, err));
    if (leaving != NULL && (leaving[0] == '\0' || strlen(leaving) > LEAVING_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.leaving: expected why, in 1 to %zu bytes, or null", LEAVING_MAX);
    }
    WEIR_TRY(body_int_within(call, "ends_ms", 0, 0, TIME_MAX, &node->ends_ms, err));
    node->leaving = weir_arena_strdup(call->arena, leaving);
    if (leaving != NULL && node->ends_ms == 0) {
        node->ends_ms = call->now_ms; /* nobody says how long it has: it may be gone at any time */
    }
    node->name = weir_arena_strdup(call->arena, call->params[0]);
    if (!weir_name_is_valid(node->name)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "node \"%.60s\": not a name (1 to 63 of a-z 0-9 . _ -, first a letter or digit)",
            node->name);
    }
    node->disk_id = weir_arena_strdup(call->arena, disk_id);
    node->agent_version = weir_arena_strdup(call->arena, version);
    node->inventory = inventory != NULL ? weir_json_text(inventory, call->arena) : NULL;
    const struct weir_field *field = weir_resource_field(&weir_node_resource, "inventory");
    if (node->inventory != NULL && strlen(node->inventory) > weir_field_max_bytes(field)) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.inventory: at most %zu bytes are allowed",
                              weir_field_max_bytes(field));
    }
    return WEIR_OK;
}

/** One heartbeat on its way. */
struct heartbeat {
    struct api_call *call;
    struct weir_node node;
    struct weir_device_report *devices; /* NULL: it says nothing of them */
    size_t n_devices;
    char digest[WEIR_SHA256_TEXT_BYTES];
    bool is_enough; /* out of look_in: it need not be written */
};

/* What is another each time goes, once it is read: what is left tells heartbeats apart. Of a device's use that is left
 * whether it computes at all, by which jobs are found that use nothing. */
static void take_digest(struct heartbeat *beat)
{
    static const char *const readings[] = {"temperature_c", "power_w", "utilisation_pct",
                                           "memory_used_bytes", "ecc_errors"};
    struct api_call *call = beat->call;
    struct weir_buf text;
    size_t i;
    json_t *device;
    weir_buf_init(&text, SIZE_MAX);
    (void)weir_buf_printf(&text, "%s\n", beat->node.unhealthy != NULL ? beat->node.unhealthy : "");
    for (i = 0; i < beat->n_devices; i++) {
        double pct = beat->devices[i].device.utilisation_pct;
        (void)weir_buf_puts(&text, pct < WEIR_DEVICE_IDLE_PCT ? "i" : pct >= 0 ? "b" : "-");
    }
    json_object_del(call->body, "time_ms");
    json_object_del(call->body, "disk_free_bytes");
    json_array_foreach(json_object_get(call->body, "devices"), i, device)
    {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(readings); k++) {
            json_object_del(device, readings[k]);
        }
    }
    char *said = json_dumps(call->body, JSON_COMPACT | JSON_SORT_KEYS);
    (void)weir_buf_puts(&text, said != NULL ? said : "");
    weir_sha256(text.data, text.len, beat->digest);
    free(said);
    weir_buf_fini(&text);
}

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct heartbeat *beat = context;
    bool is_due;
    WEIR_TRY(weir_heard_is_enough(txn, beat->node.name, &beat->is_enough, err));
    WEIR_TRY(control_remake_is_due(txn, beat->node.name, &is_due, err));
    beat->is_enough = beat->is_enough && !is_due;
    return WEIR_OK;
}

/* Has all that it says been said by the one before, of a node that is as it should be? */
static weir_status is_old(struct heartbeat *beat, bool *out, struct weir_error *err)
{
    struct api_call *call = beat->call;
    double seen_ms = 0;
    *out = false;
    bool must_bind = call->identity.role == WEIR_ROLE_AGENT && call->identity.node == NULL;
    if (must_bind || !beats_has(call->api->beats, beat->node.name, beat->digest, weir_mono_ms()) ||
        !weir_live_get(call->api->store, WEIR_LIVE_NODES, beat->node.name, WEIR_LIVE_LAST_SEEN,
                       &seen_ms)) {
        return WEIR_OK;
    }
    const struct weir_node known = {.last_seen_ms = (int64_t)seen_ms};
    if (weir_node_takes_tasks(&known, call->now_ms, call->api->since_ms)) {
        WEIR_TRY(api_read(call, look_in, beat, err));
        *out = beat->is_enough;
    }
    return WEIR_OK;
}

/* What runs there moves on before it is taken away. */
static weir_status take_leave(struct api_call *call, struct weir_txn *txn,
                              const struct weir_node *node, bool was_leaving,
                              struct weir_error *err)
{
    struct control control = api_control(call);
    int64_t n = 0;
    const char *why =
        weir_arena_printf(call->arena, "node %s leaves: %s", node->name, node->leaving);
    WEIR_TRY(control_node_evict(&control, txn, node->name, why, &n, err));
    if (was_leaving) {
        return WEIR_OK;
    }
    return api_node_tell(call, txn, "node_leaving",
                         weir_arena_printf(call->arena,
                                           "Node %s takes no new tasks, since it leaves: %s. What "
                                           "runs there was told to save and move on (%lld times).",
                                           node->name, node->leaving, (long long)n),
                         err);
}

static weir_status write_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct heartbeat *beat = context;
    struct api_call *call = beat->call;
    const struct weir_node *node = &beat->node;
    const json_t *inventory = json_object_get(call->body, "inventory");
    bool is_news, was_leaving, has_device_news = false;
    size_t n_freed;
    json_array_clear(call->publish);
    WEIR_TRY(bind_token(call, txn, node->name, err));
    WEIR_TRY(weir_node_is_news(txn, node, call->now_ms, call->api->since_ms, &is_news, err));
    WEIR_TRY(weir_node_is_leaving(txn, node->name, &was_leaving, err));
    WEIR_TRY(weir_node_heartbeat(txn, node, call->now_ms, err));
    if (node->leaving != NULL) {
        WEIR_TRY(take_leave(call, txn, node, was_leaving, err));
    }
    WEIR_TRY(weir_node_note_images(txn, node->name, inventory, call->arena, err));
    if (beat->devices != NULL) {
        WEIR_TRY(weir_devices_report(txn, node->name, beat->devices, beat->n_devices, call->now_ms,
                                     call->arena, &has_device_news, err));
    }
    WEIR_TRY(settle_attempts(call, txn, node->name, &n_freed, err));
    if (json_object_get(call->body, "attempts") != NULL) { /* no agent of before says them */
        struct control control = api_control(call);
        WEIR_TRY(control_remake_replica(&control, txn, node->name, err));
    }
    call->is_routine = !is_news && !has_device_news && n_freed == 0;
    return WEIR_OK;
}

weir_status api_node_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct heartbeat beat = {.call = call};
    bool is_routine;
    (void)txn; /* none: most need not write */
    WEIR_TRY(read_node(call, &beat.node, err));
    WEIR_TRY(api_node_read_devices(call, &beat.node, &beat.devices, &beat.n_devices, err));
    take_digest(&beat);
    WEIR_TRY(is_old(&beat, &is_routine, err));
    if (!is_routine) {
        WEIR_TRY(api_write(call, write_in, &beat, err));
        beats_keep(call->api->beats, beat.node.name, beat.digest, weir_mono_ms());
    }
    call->is_routine = call->is_routine || is_routine;
    weir_heard_put(call->api->store, &beat.node, beat.devices, beat.n_devices,
                   !is_routine && beat.devices != NULL, call->now_ms);
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
