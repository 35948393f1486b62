#include "job/device.h"

#include "base/json.h"
#include "store/event.h"
#include "store/stmt.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

#define DETAILS_MAX_BYTES ((size_t)64 << 10)

// clang-format off
static const struct weir_field device_fields[] = {
    WEIR_FIELD(weir_device, name,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "NODE/INDEX"),
    WEIR_FIELD(weir_device, node,              TEXT, WEIR_FIELD_READ_ONLY, "", "Node that has it"),
    WEIR_FIELD(weir_device, idx,               INT,  WEIR_FIELD_READ_ONLY, "", "Its index there, which it keeps"),
    WEIR_FIELD(weir_device, id,                TEXT, WEIR_FIELD_READ_ONLY, "", "What it is known by: a GPU's UUID, a network card's name"),
    WEIR_FIELD(weir_device, kind,              TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "cpu, memory, disk, nic, gpu, mig or declared"),
    WEIR_FIELD(weir_device, model,             TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Model"),
    WEIR_FIELD(weir_device, memory_bytes,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "bytes", "Memory; a disk's size; 0: none, or not told"),
    WEIR_FIELD(weir_device, parent,            INT,  WEIR_FIELD_READ_ONLY, "", "Index of the whole device that it is a slice of; -1: of none"),
    WEIR_FIELD(weir_device, profile,           TEXT, WEIR_FIELD_READ_ONLY, "", "Of a MIG slice: 1g.10gb"),
    WEIR_FIELD(weir_device, numa,              INT,  WEIR_FIELD_READ_ONLY, "", "NUMA node that it is nearest to; -1: not told"),
    WEIR_FIELD(weir_device, state,             TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ok, bad or gone"),
    WEIR_FIELD(weir_device, reason,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it is not ok"),
    WEIR_FIELD(weir_device, temperature_c,     F64,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "°C", "Temperature"),
    WEIR_FIELD(weir_device, power_w,           F64,  WEIR_FIELD_READ_ONLY, "W", "Power that it draws"),
    WEIR_FIELD(weir_device, utilisation_pct,   F64,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "%", "Share of the time that it computes"),
    WEIR_FIELD(weir_device, memory_used_bytes, INT,  WEIR_FIELD_READ_ONLY, "bytes", "Memory in use; -1: not told"),
    WEIR_FIELD(weir_device, ecc_errors,        INT,  WEIR_FIELD_READ_ONLY, "", "Memory errors that could not be corrected; -1: not told"),
    WEIR_FIELD(weir_device, idle_since_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when it has computed for less than 5 % of the time; null: it does, or does not tell"),
    WEIR_FIELD(weir_device, used_milli,        INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What of it is given to tasks, in thousandths"),
    WEIR_FIELD_SIZED(weir_device, holders, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, DETAILS_MAX_BYTES, "", "Those tasks: JOB/RANK"),
    WEIR_FIELD_SIZED(weir_device, details, JSON, WEIR_FIELD_READ_ONLY, DETAILS_MAX_BYTES, "", "What its kind tells besides: links, processes, speed"),
    WEIR_FIELD(weir_device, changed_ms,        TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when it is in its state"),
};
// clang-format on

const struct weir_resource weir_device_resource =
    WEIR_RESOURCE("device", "devices", weir_device, device_fields);

bool weir_device_is_accelerator(const struct weir_device *device)
{
    return strcmp(device->kind, "gpu") == 0 || strcmp(device->kind, "mig") == 0 ||
           strcmp(device->kind, "declared") == 0;
}

weir_status weir_devices_of_node(struct weir_txn *txn, const char *node, struct weir_arena *arena,
                                 struct weir_device **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("node", EQ, node)),
                                     .order_by = "idx", .limit = WEIR_DEVICE_ROWS_MAX};
    void *items;
    WEIR_TRY(weir_txn_list(txn, &weir_device_resource, &query, arena, &items, out_n, NULL, err));
    *out = items;
    return WEIR_OK;
}

static const char sql_forget[] = "DELETE FROM devices WHERE node = :node";
static const char sql_accelerators[] = "UPDATE nodes SET accelerators = :text WHERE name = :name";

weir_status weir_devices_forget(struct weir_txn *txn, const char *node, struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(txn, sql_forget, WEIR_BINDS(WEIR_BIND_TEXT("node", node)), NULL, err));
    return weir_txn_exec(txn, sql_accelerators, WEIR_BINDS(WEIR_BIND_TEXT("name", node)), NULL,
                         err);
}

/* ---- a report -------------------------------------------------------------------------------- */

/** One report on its way into the table. */
struct update {
    struct weir_txn *txn;
    const char *node;
    const struct weir_device_report *reports;
    size_t n_reports;
    struct weir_device *known; /* By index; those that were dropped have no name. */
    size_t n_known;
    int64_t *idx_of; /* Per report. */
    int64_t now_ms;
    struct weir_arena *arena;
    bool is_news;
};

static bool is_same_text(const char *left, const char *right)
{
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

static bool is_same_number(double left, double right)
{
    return (isnan(left) && isnan(right)) || left == right;
}

static bool is_same(const struct weir_device *left, const struct weir_device *right)
{
    return is_same_text(left->kind, right->kind) && is_same_text(left->model, right->model) &&
           left->memory_bytes == right->memory_bytes && left->parent == right->parent &&
           is_same_text(left->profile, right->profile) && left->numa == right->numa &&
           is_same_text(left->state, right->state) && is_same_text(left->reason, right->reason) &&
           is_same_number(left->temperature_c, right->temperature_c) &&
           is_same_number(left->power_w, right->power_w) &&
           is_same_number(left->utilisation_pct, right->utilisation_pct) &&
           left->memory_used_bytes == right->memory_used_bytes &&
           left->ecc_errors == right->ecc_errors && left->idle_since_ms == right->idle_since_ms &&
           is_same_text(left->details, right->details);
}

static weir_status check_reports(const struct update *update, struct weir_error *err)
{
    if (update->n_reports > WEIR_DEVICES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu devices: a node has at most %d",
                              update->n_reports, WEIR_DEVICES_MAX);
    }
    for (size_t i = 0; i < update->n_reports; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(update->reports[i].device.id, update->reports[j].device.id) == 0) {
                return weir_error_set(err, WEIR_ERR_INVALID, "two devices have the id \"%.60s\"",
                                      update->reports[i].device.id);
            }
        }
    }
    return WEIR_OK;
}

static struct weir_device *find_known(const struct update *update, const char *id)
{
    for (size_t i = 0; i < update->n_known; i++) {
        if (update->known[i].name != NULL && strcmp(update->known[i].id, id) == 0) {
            return &update->known[i];
        }
    }
    return NULL;
}

static bool is_reported(const struct update *update, const char *id)
{
    for (size_t i = 0; i < update->n_reports; i++) {
        if (strcmp(update->reports[i].device.id, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_gone(const struct weir_device *device)
{
    return strcmp(device->state, WEIR_DEVICE_GONE) == 0;
}

/* Behind all that are gone stands what this report leaves out. */
static int64_t gone_since(const struct weir_device *device)
{
    return is_gone(device) ? device->changed_ms : INT64_MAX;
}

static weir_status forget(struct update *update, struct weir_device *device, struct weir_error *err)
{
    WEIR_TRY(weir_txn_delete(update->txn, &weir_device_resource, device->name, err));
    device->name = NULL;
    return WEIR_OK;
}

/* What has been gone for long, and, where there would be too many records, what has been the longest. */
static weir_status forget_gone(struct update *update, struct weir_error *err)
{
    size_t n_new = 0, n_left = 0;
    for (size_t i = 0; i < update->n_reports; i++) {
        n_new += find_known(update, update->reports[i].device.id) == NULL;
    }
    for (size_t i = 0; i < update->n_known; i++) {
        struct weir_device *device = &update->known[i];
        bool is_old = update->now_ms - device->changed_ms >= WEIR_DEVICE_GONE_MS;
        if (is_gone(device) && is_old && !is_reported(update, device->id)) {
            WEIR_TRY(forget(update, device, err));
        }
        n_left += device->name != NULL;
    }
    while (n_left + n_new > WEIR_DEVICE_ROWS_MAX) {
        struct weir_device *oldest = NULL;
        for (size_t i = 0; i < update->n_known; i++) {
            struct weir_device *device = &update->known[i];
            if (device->name != NULL && !is_reported(update, device->id) &&
                (oldest == NULL || gone_since(device) < gone_since(oldest))) {
                oldest = device;
            }
        }
        WEIR_TRY(forget(update, oldest, err)); /* there is one: reports are fewer than records */
        n_left--;
    }
    return WEIR_OK;
}

static bool is_taken(const struct update *update, size_t n_indexed, int64_t idx)
{
    for (size_t i = 0; i < update->n_known; i++) {
        if (update->known[i].name != NULL && update->known[i].idx == idx) {
            return true;
        }
    }
    for (size_t i = 0; i < n_indexed; i++) {
        if (update->idx_of[i] == idx) {
            return true;
        }
    }
    return false;
}

static void give_indices(struct update *update)
{
    for (size_t i = 0; i < update->n_reports; i++) {
        const struct weir_device *known = find_known(update, update->reports[i].device.id);
        int64_t idx = known != NULL ? known->idx : 0;
        while (known == NULL && is_taken(update, i, idx)) {
            idx++;
        }
        update->idx_of[i] = idx;
    }
}

static int64_t parent_of(const struct update *update, const struct weir_device_report *report)
{
    for (size_t i = 0; report->parent_id != NULL && i < update->n_reports; i++) {
        if (strcmp(update->reports[i].device.id, report->parent_id) == 0) {
            return update->idx_of[i];
        }
    }
    return -1;
}

/* "Device n1/3 (H100) is bad: …" */
static weir_status tell(const struct update *update, const struct weir_device *device,
                        const char *kind, const char *what, struct weir_error *err)
{
    const char *model = device->model != NULL ? device->model : device->id;
    const char *reason = device->reason != NULL ? device->reason : "";
    const struct weir_event event = {
        .time_ms = update->now_ms,
        .topic = "nodes",
        .kind = (char *)kind,
        .subject = weir_arena_printf(update->arena, "node/%s", device->node),
        .actor = "system",
        .message = weir_arena_printf(update->arena, "Device %s (%s) %s%s%s", device->name, model,
                                     what, reason[0] != '\0' ? ": " : ".", reason)};
    return weir_event_append(update->txn, &event, NULL, err);
}

/* A state that changed: its time, and an event; of those that come with the first report none. */
static weir_status change_state(struct update *update, struct weir_device *device,
                                const struct weir_device *known, struct weir_error *err)
{
    bool is_same_state = known != NULL && strcmp(known->state, device->state) == 0;
    device->changed_ms = is_same_state ? known->changed_ms : update->now_ms;
    if (is_same_state) {
        return WEIR_OK;
    }
    if (is_gone(device)) {
        return tell(update, device, "device_gone", "is gone", err);
    }
    if (strcmp(device->state, WEIR_DEVICE_BAD) == 0) {
        return tell(update, device, "device_bad", "is bad", err);
    }
    if (known == NULL) {
        return update->n_known > 0 ? tell(update, device, "device_found", "was found", err)
                                   : WEIR_OK;
    }
    return tell(update, device, "device_ok", "is well again", err);
}

/* What placement looks at. */
static bool is_same_to_placement(const struct weir_device *left, const struct weir_device *right)
{
    return is_same_text(left->kind, right->kind) && is_same_text(left->model, right->model) &&
           left->memory_bytes == right->memory_bytes && left->parent == right->parent &&
           is_same_text(left->profile, right->profile) && left->numa == right->numa &&
           is_same_text(left->state, right->state);
}

static void look_for_news(struct update *update, const struct weir_device *known,
                          const struct weir_device *device)
{
    bool computes =
        weir_device_is_accelerator(device) || (known != NULL && weir_device_is_accelerator(known));
    update->is_news =
        update->is_news || (computes && (known == NULL || !is_same_to_placement(known, device)));
}

static int64_t idle_since(const struct weir_device *device, const struct weir_device *known,
                          int64_t now_ms)
{
    bool is_idle = device->utilisation_pct < WEIR_DEVICE_IDLE_PCT; /* NaN is not */
    bool was_idle = known != NULL && known->idle_since_ms > 0;
    return !is_idle ? 0 : was_idle ? known->idle_since_ms : now_ms;
}

static weir_status put_reported(struct update *update, size_t i, struct weir_error *err)
{
    const struct weir_device_report *report = &update->reports[i];
    const struct weir_device *known = find_known(update, report->device.id);
    struct weir_device device = report->device;
    device.node = (char *)update->node;
    device.idx = update->idx_of[i];
    device.name = weir_arena_printf(update->arena, "%s/%lld", update->node, (long long)device.idx);
    device.parent = parent_of(update, report);
    look_for_news(update, known, &device);
    device.used_milli = known != NULL ? known->used_milli : 0;
    device.holders = known != NULL ? known->holders : NULL;
    device.idle_since_ms = idle_since(&device, known, update->now_ms);
    WEIR_TRY(change_state(update, &device, known, err));
    if (known != NULL && is_same(known, &device)) {
        return WEIR_OK;
    }
    return known != NULL ? weir_txn_upsert(update->txn, &weir_device_resource, &device, err)
                         : weir_txn_insert(update->txn, &weir_device_resource, &device, err);
}

static weir_status put_gone(struct update *update, struct weir_device *known,
                            struct weir_error *err)
{
    if (known->name == NULL || is_gone(known) || is_reported(update, known->id)) {
        return WEIR_OK;
    }
    struct weir_device device = *known;
    device.state = WEIR_DEVICE_GONE;
    device.reason = "its node's agent does not see it any more: look at the machine and its driver";
    device.temperature_c = device.power_w = device.utilisation_pct = NAN;
    device.memory_used_bytes = WEIR_DEVICE_NOT_TOLD;
    device.idle_since_ms = 0;
    look_for_news(update, known, &device);
    WEIR_TRY(change_state(update, &device, known, err));
    return weir_txn_upsert(update->txn, &weir_device_resource, &device, err);
}

/* Into the node's record, for placement. */
static weir_status put_accelerators(const struct update *update, struct weir_error *err)
{
    struct weir_device *devices;
    size_t n;
    WEIR_TRY(weir_devices_of_node(update->txn, update->node, update->arena, &devices, &n, err));
    WEIR_AUTO(weir_json_auto_free) json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct weir_device *device = &devices[i];
        if (weir_device_is_accelerator(device)) {
            json_array_append_new(list, json_pack("[I,s,s?,I,I,s?,I,s]", (json_int_t)device->idx,
                                                  device->kind, device->model,
                                                  (json_int_t)device->memory_bytes,
                                                  (json_int_t)device->parent, device->profile,
                                                  (json_int_t)device->numa, device->state));
        }
    }
    const char *text = json_array_size(list) > 0 ? weir_json_text(list, update->arena) : NULL;
    return weir_txn_exec(
        update->txn, sql_accelerators,
        WEIR_BINDS(WEIR_BIND_TEXT("name", update->node), WEIR_BIND_TEXT("text", text)), NULL, err);
}

weir_status weir_devices_report(struct weir_txn *txn, const char *node,
                                const struct weir_device_report *reports, size_t n_reports,
                                int64_t now_ms, struct weir_arena *arena, bool *out_is_news,
                                struct weir_error *err)
{
    struct update update = {.txn = txn,
                            .node = node,
                            .reports = reports,
                            .n_reports = n_reports,
                            .idx_of = WEIR_ARENA_ARRAY(arena, n_reports + 1, int64_t),
                            .now_ms = now_ms,
                            .arena = arena};
    WEIR_TRY(check_reports(&update, err));
    WEIR_TRY(weir_devices_of_node(txn, node, arena, &update.known, &update.n_known, err));
    WEIR_TRY(forget_gone(&update, err));
    give_indices(&update);
    for (size_t i = 0; i < n_reports; i++) {
        WEIR_TRY(put_reported(&update, i, err));
    }
    for (size_t i = 0; i < update.n_known; i++) {
        WEIR_TRY(put_gone(&update, &update.known[i], err));
    }
    *out_is_news = update.is_news;
    return update.is_news ? put_accelerators(&update, err) : WEIR_OK;
}
