#include "control/supply.h"

#include "base/json.h"
#include "control/offers.h"
#include "job/device.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_ACCELERATORS, TEXT_LABELS, TEXT_TAINTS, N_TEXTS };

/* Sevenths of a device, if its size and its parent's are not known: the number of "3g.40gb". */
#define MIG_PARTS 7

/* Of a device; the planner adds them up (WEIR_SCHED_AMOUNT_MAX), whatever an agent says. */
#define MEMORY_MOST ((int64_t)1 << 39)

void supply_init(struct supply *supply)
{
    *supply = (struct supply){0};
    weir_arena_init(&supply->arena, 0);
}

void supply_fini(struct supply *supply)
{
    weir_arena_fini(&supply->arena);
}

static bool is_same_text(const char *left, const char *right)
{
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

bool supply_is_of(const struct supply *supply, const struct weir_node *node)
{
    return is_same_text(supply->texts[TEXT_ACCELERATORS], node->accelerators) &&
           is_same_text(supply->texts[TEXT_LABELS], node->labels) &&
           is_same_text(supply->texts[TEXT_TAINTS], node->taints) &&
           is_same_text(supply->cluster, node->cluster) &&
           is_same_text(supply->allocation, node->allocation);
}

/* ---- reading ---------------------------------------------------------------------------------- */

static const char *text_at(struct supply *supply, const json_t *row, size_t i)
{
    const char *text = json_string_value(json_array_get(row, i));
    return text != NULL ? weir_arena_strdup(&supply->arena, text) : "";
}

static int64_t int_at(const json_t *row, size_t i)
{
    return json_integer_value(json_array_get(row, i));
}

static void read_devices(struct supply *supply, const json_t *rows)
{
    size_t i;
    const json_t *row;
    supply->devices =
        WEIR_ARENA_ARRAY(&supply->arena, json_array_size(rows) + 1, struct supply_device);
    supply->slots = WEIR_ARENA_ARRAY(&supply->arena, json_array_size(rows) + 1, int64_t);
    json_array_foreach(rows, i, row)
    {
        struct supply_device *device = &supply->devices[supply->n_devices++];
        *device = (struct supply_device){
            .idx = int_at(row, 0),
            .kind = text_at(supply, row, 1),
            .model = text_at(supply, row, 2),
            .memory_bytes = WEIR_MAX(WEIR_MIN(int_at(row, 3), MEMORY_MOST), (int64_t)0),
            .parent = int_at(row, 4),
            .profile = text_at(supply, row, 5),
            .state = text_at(supply, row, 7),
            .slot = -1};
        supply->n_unfit += strcmp(device->state, WEIR_DEVICE_OK) != 0;
    }
}

static bool is_slice(const struct supply_device *device)
{
    return strcmp(device->kind, "mig") == 0;
}

static bool has_slices(const struct supply *supply, const struct supply_device *device)
{
    for (int32_t i = 0; i < supply->n_devices; i++) {
        const struct supply_device *other = &supply->devices[i];
        if (is_slice(other) && other->parent == device->idx &&
            strcmp(other->state, WEIR_DEVICE_GONE) != 0) {
            return true;
        }
    }
    return false;
}

static bool is_alike(const struct supply_device *left, const struct supply_device *right)
{
    return strcmp(left->model, right->model) == 0 && left->memory_bytes == right->memory_bytes;
}

/* The model with the most whole devices, also of such as cannot be given now: it does not change
 * because one of them goes bad. Of equal numbers the first. */
static void choose_model(struct supply *supply)
{
    const struct supply_device *best = NULL;
    int32_t most = 0;
    for (int32_t i = 0; i < supply->n_devices; i++) {
        int32_t n = 0;
        for (int32_t k = 0; k < supply->n_devices; k++) {
            n += !is_slice(&supply->devices[k]) &&
                 is_alike(&supply->devices[i], &supply->devices[k]);
        }
        if (!is_slice(&supply->devices[i]) && n > most) {
            best = &supply->devices[i];
            most = n;
        }
    }
    supply->model = best != NULL && best->model[0] != '\0' ? best->model : NULL;
    supply->memory_bytes = best != NULL ? best->memory_bytes : 0;
}

static void add_label(struct supply *supply, const char *key, const char *value)
{
    if (supply->n_labels < SUPPLY_MARKS_MAX) {
        supply->labels[supply->n_labels++] = (struct weir_sched_label){
            weir_arena_strdup(&supply->arena, key), weir_arena_strdup(&supply->arena, value)};
    }
}

/* Whatever begins as ours do is ours; one of them is in the record. */
static void read_labels(struct supply *supply, const struct weir_node *node, const json_t *labels)
{
    const char *key;
    json_t *value;
    supply->labels = WEIR_ARENA_ARRAY(&supply->arena, SUPPLY_MARKS_MAX, struct weir_sched_label);
    add_label(supply, SUPPLY_LABEL_NODE, node->name);
    add_label(supply, OFFERS_CLUSTER_KEY, node->cluster != NULL ? node->cluster : WEIR_CLUSTER_OWN);
    if (supply->model != NULL) {
        add_label(supply, SUPPLY_LABEL_MODEL, supply->model);
    }
    json_object_foreach((json_t *)labels, key, value)
    {
        bool is_ours = strncmp(key, "weir/", 5) == 0 && strcmp(key, WEIR_NODE_LABEL_IMAGES) != 0;
        if (json_is_string(value) && !is_ours) {
            add_label(supply, key, json_string_value(value));
        }
    }
}

static void read_taints(struct supply *supply, const json_t *taints)
{
    size_t i;
    const json_t *taint;
    supply->taints = WEIR_ARENA_ARRAY(&supply->arena, SUPPLY_MARKS_MAX, struct weir_sched_taint);
    json_array_foreach(taints, i, taint)
    {
        const char *key = json_string_value(json_object_get(taint, "key"));
        const char *value = json_string_value(json_object_get(taint, "value"));
        if (key != NULL && supply->n_taints < SUPPLY_MARKS_MAX) {
            supply->taints[supply->n_taints++] = (struct weir_sched_taint){
                weir_arena_strdup(&supply->arena, key),
                weir_arena_strdup(&supply->arena, value != NULL ? value : "")};
        }
    }
}

static json_t *parse(const char *text)
{
    return text != NULL ? json_loads(text, 0, NULL) : NULL;
}

static int32_t part_of(const struct weir_node *node)
{
    bool is_part = node->device_milli > 0 && node->device_milli < WEIR_SCHED_DEVICE;
    return is_part ? (int32_t)node->device_milli : WEIR_SCHED_DEVICE;
}

bool supply_read(struct supply *supply, const struct weir_node *node)
{
    const char *const texts[N_TEXTS] = {node->accelerators, node->labels, node->taints};
    if (supply->labels != NULL && supply_is_of(supply, node)) {
        return false;
    }
    supply_fini(supply);
    supply_init(supply);
    for (int i = 0; i < N_TEXTS; i++) {
        supply->texts[i] = weir_arena_strdup(&supply->arena, texts[i]);
    }
    WEIR_AUTO(weir_json_auto_free) json_t *devices = parse(node->accelerators);
    WEIR_AUTO(weir_json_auto_free) json_t *labels = parse(node->labels);
    WEIR_AUTO(weir_json_auto_free) json_t *taints = parse(node->taints);
    read_devices(supply, devices);
    choose_model(supply);
    supply->device_milli = part_of(node);
    supply->cluster = weir_arena_strdup(&supply->arena, node->cluster);
    supply->allocation = weir_arena_strdup(&supply->arena, node->allocation);
    read_labels(supply, node, labels);
    read_taints(supply, taints);
    supply_number(supply);
    return true;
}

/* ---- slots ------------------------------------------------------------------------------------ */

struct supply_device *supply_device(const struct supply *supply, int64_t idx)
{
    int32_t low = 0, high = supply->n_devices;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (supply->devices[middle].idx == idx) {
            return &supply->devices[middle];
        }
        if (supply->devices[middle].idx < idx) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

bool supply_device_is_fit(const struct supply_device *device)
{
    return strcmp(device->state, WEIR_DEVICE_OK) == 0 && !device->is_left;
}

int64_t supply_milli_of(const struct weir_task *task, const struct supply_device *device)
{
    int64_t bytes = WEIR_MAX(device->memory_bytes, (int64_t)1);
    int64_t milli =
        task->accelerator_milli > 0
            ? task->accelerator_milli
            : (int64_t)(((__int128)task->accelerator_memory_bytes * WEIR_SCHED_DEVICE + bytes - 1) /
                        bytes);
    return WEIR_MIN(milli, (int64_t)WEIR_SCHED_DEVICE + 1);
}

void supply_hold(struct supply *supply, int64_t idx, const struct weir_task *task)
{
    struct supply_device *device = supply_device(supply, idx);
    if (device != NULL) {
        device->held_milli += (int32_t)supply_milli_of(task, device);
    }
}

void supply_clear_left(struct supply *supply)
{
    for (int32_t i = 0; i < supply->n_devices; i++) {
        supply->devices[i].is_left = false;
    }
}

void supply_mark_left(struct supply *supply, int64_t idx)
{
    struct supply_device *device = supply_device(supply, idx);
    if (device != NULL) {
        device->is_left = true;
    }
}

/* What a slice counts as, of its queue's accelerators. */
static int64_t milli_of(const struct supply *supply, const struct supply_device *slice)
{
    const struct supply_device *parent = supply_device(supply, slice->parent);
    int64_t milli = 0;
    if (parent != NULL && parent->memory_bytes > 0) {
        milli = (int64_t)((__int128)slice->memory_bytes * WEIR_SCHED_DEVICE / parent->memory_bytes);
    }
    if (milli <= 0) {
        milli = strtoll(slice->profile, NULL, 10) * WEIR_SCHED_DEVICE / MIG_PARTS;
    }
    return WEIR_MAX((int64_t)1, WEIR_MIN(milli, (int64_t)WEIR_SCHED_DEVICE));
}

static void count_slice(struct supply *supply, const struct supply_device *slice)
{
    int32_t i = 0;
    while (i < supply->n_extras && strcmp(supply->extras[i].name, slice->profile) != 0) {
        i++;
    }
    if (i == supply->n_extras) {
        supply->n_extras++;
        supply->extras[i] = (struct weir_sched_extra){slice->profile, 0, milli_of(supply, slice)};
    }
    supply->extras[i].count++;
}

void supply_number(struct supply *supply)
{
    const struct supply_device kind = {.model = supply->model != NULL ? supply->model : "",
                                       .memory_bytes = supply->memory_bytes};
    supply->n_slots = supply->n_extras = 0;
    if (supply->extras == NULL && supply->n_devices > 0) {
        supply->extras =
            WEIR_ARENA_ARRAY(&supply->arena, (size_t)supply->n_devices, struct weir_sched_extra);
    }
    for (int32_t i = 0; i < supply->n_devices; i++) {
        struct supply_device *device = &supply->devices[i];
        bool is_fit = supply_device_is_fit(device);
        device->slot = -1;
        if (is_fit && is_slice(device)) {
            count_slice(supply, device);
        } else if (is_fit && is_alike(device, &kind) && !has_slices(supply, device)) {
            device->slot = supply->n_slots;
            supply->slots[supply->n_slots++] = device->idx;
        }
    }
}

bool supply_has_labels(const struct supply *supply, const struct weir_sched_label *labels,
                       int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t k = 0;
        while (k < supply->n_labels && (strcmp(supply->labels[k].key, labels[i].key) != 0 ||
                                        strcmp(supply->labels[k].value, labels[i].value) != 0)) {
            k++;
        }
        if (k == supply->n_labels) {
            return false;
        }
    }
    return true;
}

void supply_fill(const struct supply *supply, struct weir_sched_node *row)
{
    row->model = supply->model;
    row->n_devices = supply->n_slots;
    row->device_memory_bytes = supply->memory_bytes;
    row->device_milli = supply->device_milli;
    row->labels = supply->labels;
    row->n_labels = supply->n_labels;
    row->taints = supply->taints;
    row->n_taints = supply->n_taints;
    row->extras = supply->extras;
    row->n_extras = supply->n_extras;
}
