/** Nodes as people handle them, and what a heartbeat says of devices and health. */

#include "api/cluster/node.h"

#include "api/cluster/beats.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "base/clock.h"
#include "control/control.h"
#include "control/node_gone.h"
#include "job/device.h"
#include "job/job.h"
#include "job/node_window.h"
#include "store/event.h"
#include "store/stmt.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

#define MARKS_MAX       64
#define MARK_BYTES_MAX  63
#define CLOCK_SKEW_MS   10000
#define HEALTH_MAX      ((size_t)400)
#define DEVICE_TEXT_MAX ((size_t)200)

/* ---- looking at one -------------------------------------------------------------------------- */

static weir_status answer_node(struct api_call *call, struct weir_txn *txn, const char *name,
                               struct weir_error *err)
{
    struct weir_node node;
    struct weir_device *devices;
    struct api_node *view;
    size_t n;
    WEIR_TRY(weir_txn_get(txn, &weir_node_resource, name, call->arena, &node, err));
    WEIR_TRY(weir_devices_of_node(txn, name, call->arena, &devices, &n, err));
    WEIR_TRY(api_devices_name(call, txn, devices, n, err));
    WEIR_TRY(api_node_views(call, txn, &node, 1, &view, err));
    view->devices = devices;
    view->n_devices = n;
    api_answer(call, weir_view_to_json(api_node_view(), view));
    return WEIR_OK;
}

weir_status api_node_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return answer_node(call, txn, call->params[0], err);
}

/* ---- a heartbeat ----------------------------------------------------------------------------- */

static bool is_known_kind(const char *kind)
{
    static const char *const kinds[] = {"cpu", "memory", "disk", "nic", "gpu", "mig", "declared"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        if (kind != NULL && strcmp(kinds[i], kind) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_short(const char *text)
{
    return text == NULL || strlen(text) <= DEVICE_TEXT_MAX;
}

static weir_status read_device(const struct api_call *call, const json_t *item, size_t i,
                               struct weir_device_report *out, struct weir_error *err)
{
    *out = (struct weir_device_report){.device = {.numa = -1,
                                                  .memory_used_bytes = WEIR_DEVICE_NOT_TOLD,
                                                  .ecc_errors = WEIR_DEVICE_NOT_TOLD,
                                                  .temperature_c = NAN,
                                                  .power_w = NAN,
                                                  .utilisation_pct = NAN}};
    struct weir_device *device = &out->device;
    WEIR_TRY(weir_record_from_json(&weir_device_resource, item, WEIR_RECORD_TRUSTED, call->arena,
                                   device, err));
    const char *parent = json_string_value(json_object_get(item, "parent_id"));
    out->parent_id = weir_arena_strdup(call->arena, parent);
    bool has_state = device->state != NULL && (strcmp(device->state, WEIR_DEVICE_OK) == 0 ||
                                               strcmp(device->state, WEIR_DEVICE_BAD) == 0);
    if (device->id == NULL || device->id[0] == '\0' || !has_state || !is_known_kind(device->kind)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.devices[%zu]: expected an id, a known kind, and ok or bad as its "
                              "state",
                              i);
    }
    if (!is_short(device->id) || !is_short(device->model) || !is_short(device->profile) ||
        !is_short(device->reason)) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.devices[%zu]: a text is over %zu bytes", i,
                              DEVICE_TEXT_MAX);
    }
    return WEIR_OK;
}

/* The clock of the node is compared with the server's, whose time is that of all records. */
static weir_status read_health(const struct api_call *call, struct weir_node *node,
                               struct weir_error *err)
{
    const char *reason;
    int64_t time_ms;
    WEIR_TRY(api_body_text(call, "unhealthy", &reason, err));
    WEIR_TRY(api_body_int(call, "time_ms", call->now_ms, &time_ms, err));
    if (reason != NULL && strlen(reason) > HEALTH_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.unhealthy: over %zu bytes", HEALTH_MAX);
    }
    node->unhealthy =
        reason != NULL && reason[0] != '\0' ? weir_arena_strdup(call->arena, reason) : NULL;
    bool is_ahead = time_ms > call->now_ms;
    if (node->unhealthy == NULL && (time_ms < call->now_ms - CLOCK_SKEW_MS ||
                                    (is_ahead && time_ms - CLOCK_SKEW_MS > call->now_ms))) {
        node->unhealthy = weir_arena_printf(
            call->arena,
            "its clock is more than %d s %s the server's: let both follow a time server",
            CLOCK_SKEW_MS / 1000, is_ahead ? "ahead of" : "behind");
    }
    return WEIR_OK;
}

weir_status api_node_read_devices(const struct api_call *call, struct weir_node *node,
                                  struct weir_device_report **out, size_t *out_n,
                                  struct weir_error *err)
{
    const json_t *items = json_object_get(call->body, "devices"), *item;
    size_t n = json_array_size(items), i;
    *out = NULL;
    *out_n = 0;
    WEIR_TRY(read_health(call, node, err));
    if (items == NULL) {
        return WEIR_OK;
    }
    if (!json_is_array(items) || n > WEIR_DEVICES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.devices: expected a list of at most %d",
                              WEIR_DEVICES_MAX);
    }
    struct weir_device_report *reports =
        WEIR_ARENA_ARRAY(call->arena, n + 1, struct weir_device_report);
    node->n_accelerators = 0;
    json_array_foreach(items, i, item)
    {
        WEIR_TRY(read_device(call, item, i, &reports[i], err));
        node->n_accelerators +=
            weir_device_is_accelerator(&reports[i].device) && reports[i].parent_id == NULL;
    }
    *out = reports;
    *out_n = n;
    return WEIR_OK;
}

/* ---- changes --------------------------------------------------------------------------------- */

weir_status api_node_tell(struct api_call *call, struct weir_txn *txn, const char *kind,
                          const char *message, struct weir_error *err)
{
    const struct weir_event event = {.time_ms = call->now_ms,
                                     .topic = "nodes",
                                     .kind = (char *)kind,
                                     .subject =
                                         weir_arena_printf(call->arena, "node/%s", call->params[0]),
                                     .actor = (char *)call->actor,
                                     .message = (char *)message};
    return weir_event_append(txn, &event, NULL, err);
}

/* Letters, digits and ". _ - /"; a key has some. */
static bool is_mark(const char *text, bool is_key)
{
    size_t len = text != NULL ? strlen(text) : 0;
    return text != NULL && len <= MARK_BYTES_MAX && (len > 0 || !is_key) &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") ==
               len;
}

static weir_status check_key(const char *what, const char *key, struct weir_error *err)
{
    return is_mark(key, true)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.%s: \"%.80s\" is no key: 1 to %d letters, digits, . _ - /", what,
                                key, MARK_BYTES_MAX);
}

static json_t *parse_or(const char *text, json_t *empty)
{
    json_t *value = text != NULL ? json_loads(text, 0, NULL) : NULL;
    if (value == NULL) {
        return empty;
    }
    json_decref(empty);
    return value;
}

/* {"KEY": "VALUE"} sets, {"KEY": null} takes away. */
static weir_status merge_labels(struct api_call *call, json_t *labels, struct weir_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(call->body, "labels"), key, value)
    {
        WEIR_TRY(check_key("labels", key, err));
        if (json_is_null(value)) {
            json_object_del(labels, key);
        } else if (is_mark(json_string_value(value), false)) {
            json_object_set(labels, key, value);
        } else {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.labels.%s: expected a text of at most %d letters, digits, . _ "
                                  "- /, or null",
                                  key, MARK_BYTES_MAX);
        }
    }
    return WEIR_OK;
}

static void remove_taint(json_t *taints, const char *key)
{
    for (size_t i = json_array_size(taints); i-- > 0;) {
        const json_t *known = json_object_get(json_array_get(taints, i), "key");
        if (strcmp(json_string_value(known), key) == 0) {
            json_array_remove(taints, i);
        }
    }
}

/* {"KEY": {"value", "effect"}} sets, {"KEY": null} takes away. */
static weir_status merge_taints(struct api_call *call, json_t *taints, struct weir_error *err)
{
    static const char only[] = "NoSchedule";
    const char *key;
    json_t *taint;
    json_object_foreach(json_object_get(call->body, "taints"), key, taint)
    {
        WEIR_TRY(check_key("taints", key, err));
        remove_taint(taints, key);
        if (json_is_null(taint)) {
            continue;
        }
        const json_t *given = json_object_get(taint, "value");
        const char *value = given != NULL ? json_string_value(given) : "";
        const char *effect = json_string_value(json_object_get(taint, "effect"));
        if (effect != NULL && strcmp(effect, only) != 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "$.taints.%s.effect: \"%.40s\" is not supported yet; there is %s",
                                  key, effect, only);
        }
        if (!json_is_object(taint) || !is_mark(value, false)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.taints.%s: expected {value, effect} or null", key);
        }
        json_array_append_new(
            taints, json_pack("{s:s,s:s,s:s}", "key", key, "value", value, "effect", only));
    }
    return WEIR_OK;
}

static weir_status check_update(const struct api_call *call, struct weir_error *err)
{
    static const char *const members[] = {
        "is_draining", "evict", "closed_from_ms", "closed_until_ms", "labels", "taints", NULL};
    const json_t *labels = json_object_get(call->body, "labels");
    const json_t *taints = json_object_get(call->body, "taints");
    WEIR_TRY(api_body_only(call, members, err));
    if ((labels != NULL && !json_is_object(labels)) ||
        (taints != NULL && !json_is_object(taints))) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected an object by key",
                              labels != NULL && !json_is_object(labels) ? "labels" : "taints");
    }
    return WEIR_OK;
}

static weir_status set_marks(struct api_call *call, struct weir_node *node, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *labels = parse_or(node->labels, json_object());
    WEIR_AUTO(weir_json_auto_free) json_t *taints = parse_or(node->taints, json_array());
    WEIR_TRY(merge_labels(call, labels, err));
    WEIR_TRY(merge_taints(call, taints, err));
    if (json_object_size(labels) > MARKS_MAX || json_array_size(taints) > MARKS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a node has at most %d labels and %d taints",
                              MARKS_MAX, MARKS_MAX);
    }
    bool has_labels = json_object_size(labels) > 0, has_taints = json_array_size(taints) > 0;
    node->labels = has_labels ? weir_json_text(labels, call->arena) : NULL;
    node->taints = has_taints ? weir_json_text(taints, call->arena) : NULL;
    return WEIR_OK;
}

static const char *marks_text(const char *marks)
{
    return marks != NULL ? marks : "none";
}

static bool differ(const char *left, const char *right)
{
    return strcmp(marks_text(left), marks_text(right)) != 0;
}

static weir_status tell_marks(struct api_call *call, struct weir_txn *txn,
                              const struct weir_node *before, const struct weir_node *after,
                              struct weir_error *err)
{
    bool has_labels = differ(before->labels, after->labels);
    bool has_taints = differ(before->taints, after->taints);
    if (!has_labels && !has_taints) {
        return WEIR_OK;
    }
    const char *labels = weir_arena_printf(call->arena, "labels %s, before %s",
                                           marks_text(after->labels), marks_text(before->labels));
    const char *taints = weir_arena_printf(call->arena, "taints %s, before %s",
                                           marks_text(after->taints), marks_text(before->taints));
    return api_node_tell(
        call, txn, "node_marked",
        weir_arena_printf(call->arena, "Node %s has %s%s%s.", after->name, has_labels ? labels : "",
                          has_labels && has_taints ? "; " : "", has_taints ? taints : ""),
        err);
}

/* ---- what runs there moves on ----------------------------------------------------------------- */

static weir_status tell_draining(struct api_call *call, struct weir_txn *txn,
                                 const struct weir_node *node, bool evicts, int64_t n_evicted,
                                 struct weir_error *err)
{
    const char *message =
        !node->is_draining
            ? weir_arena_printf(call->arena, "Node %s takes tasks again.", node->name)
        : evicts
            ? weir_arena_printf(call->arena,
                                "Node %s takes no new tasks; what runs there was asked to save "
                                "and move on (%lld times).",
                                node->name, (long long)n_evicted)
            : weir_arena_printf(call->arena, "Node %s takes no new tasks; what runs there goes on.",
                                node->name);
    return api_node_tell(call, txn, node->is_draining ? "node_drained" : "node_resumed", message,
                         err);
}

/* ---- maintenance ------------------------------------------------------------------------------ */

/* A time of the body; `fallback` if it says nothing, 0 if null. */
static weir_status read_time(const struct api_call *call, const char *name, int64_t fallback,
                             int64_t *out, struct weir_error *err)
{
    const char *text;
    WEIR_TRY(api_body_text(call, name, &text, err));
    *out = json_object_get(call->body, name) == NULL ? fallback : 0;
    return text == NULL || weir_time_parse(text, out) == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.%s: expected a time like 2026-01-31T10:00:00Z, or null", name);
}

/* Who lets a node take tasks again ends its window too. */
static weir_status set_window(struct api_call *call, struct weir_txn *txn, struct weir_node *node,
                              struct weir_error *err)
{
    bool opens = json_is_false(json_object_get(call->body, "is_draining"));
    const int64_t was_from_ms = node->closed_from_ms, was_until_ms = node->closed_until_ms;
    int64_t from_ms, until_ms;
    WEIR_TRY(read_time(call, "closed_from_ms", opens ? 0 : was_from_ms, &from_ms, err));
    WEIR_TRY(read_time(call, "closed_until_ms", opens || from_ms == 0 ? 0 : was_until_ms, &until_ms,
                       err));
    if (from_ms == was_from_ms && until_ms == was_until_ms) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_node_window_set(node, from_ms, until_ms, call->now_ms, err));
    const char *text = weir_node_window_text(node, call->now_ms, call->arena);
    const char *rest = text != NULL ? "; what runs there then goes on" : "";
    return api_node_tell(
        call, txn, text != NULL ? "node_closing" : "node_window_ended",
        weir_arena_printf(call->arena, "Node %s %s%s.", node->name,
                          text != NULL ? text : "has no maintenance window any more", rest),
        err);
}

weir_status api_node_update(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_node node;
    bool evicts;
    int64_t n_evicted = 0;
    WEIR_TRY(check_update(call, err));
    WEIR_TRY(api_body_bool(call, "evict", false, &evicts, err));
    WEIR_TRY(weir_txn_get(txn, &weir_node_resource, call->params[0], call->arena, &node, err));
    bool was_draining = node.is_draining;
    const struct weir_node before = node;
    WEIR_TRY(api_body_bool(call, "is_draining", node.is_draining, &node.is_draining, err));
    WEIR_TRY(set_marks(call, &node, err));
    WEIR_TRY(set_window(call, txn, &node, err));
    beats_forget(call->api->beats, node.name); /* it says a label too */
    WEIR_TRY(weir_txn_update(
        txn, &weir_node_resource, &node,
        WEIR_FIELDS("is_draining", "labels", "taints", "closed_from_ms", "closed_until_ms"), err));
    if (evicts && !node.is_draining) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.evict: what runs on node %s can move on while it takes nothing new: "
            "give is_draining too",
            node.name);
    }
    if (evicts) {
        struct control control = api_control(call);
        const char *why =
            weir_arena_printf(call->arena, "node %s is drained by %s", node.name, call->actor);
        WEIR_TRY(control_node_evict(&control, txn, node.name, why, &n_evicted, err));
    }
    if (node.is_draining != was_draining || evicts) {
        WEIR_TRY(tell_draining(call, txn, &node, evicts, n_evicted, err));
    }
    if (json_object_get(call->body, "labels") != NULL ||
        json_object_get(call->body, "taints") != NULL) {
        WEIR_TRY(tell_marks(call, txn, &before, &node, err));
    }
    return answer_node(call, txn, node.name, err);
}

static const char sql_tasks_there[] = "SELECT count(*) FROM tasks WHERE node = :node"
                                      " AND state IN ('STARTING', 'RUNNING', 'STOPPING')";

weir_status api_node_leave(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_node node;
    int64_t n;
    WEIR_TRY(weir_txn_get(txn, &weir_node_resource, call->params[0], call->arena, &node, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_tasks_there, WEIR_BINDS(WEIR_BIND_TEXT("node", node.name)),
                                0, &n, err));
    if (n > 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "%lld tasks are on node %s: `weir node drain %s`, and let it leave "
                              "when they have ended",
                              (long long)n, node.name, node.name);
    }
    WEIR_TRY(weir_node_leave(txn, node.name, call->now_ms, err));
    WEIR_TRY(api_node_tell(
        call, txn, "node_left",
        weir_arena_printf(call->arena, "Node %s has left the cluster.", node.name), err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
