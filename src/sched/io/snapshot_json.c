#include "sched/snapshot_json.h"

#include "base/macros.h"
#include "sched/io/snapshot_fields.h"
#include "sched/place/zones.h"

#include <stdlib.h>
#include <string.h>

#define WHERE_BYTES 96

/** A name and its index, sorted for bsearch. */
struct named {
    const char *name;
    int32_t index;
};

/** Sorted names of a kind of object, and what a member that is none of them should have been. */
struct directory {
    const struct named *names;
    size_t n;
    const char *expected;
};

struct reader {
    struct weir_arena *arena;
    struct weir_error *err;
    struct directory nodes, queues;
    const struct weir_sched_topology *topologies;
    size_t n_topologies;
};

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct named *)left)->name, ((const struct named *)right)->name);
}

/** Of an array of structs that begin with their name. */
static struct directory make_directory(struct weir_arena *arena, const void *list, size_t n,
                                       size_t size, const char *expected)
{
    struct named *names = WEIR_ARENA_ARRAY(arena, n + 1, struct named);
    for (size_t i = 0; i < n; i++) {
        const void *item = (const char *)list + i * size;
        names[i] = (struct named){*(const char *const *)item, (int32_t)i};
    }
    qsort(names, n, sizeof *names, by_name);
    return (struct directory){names, n, expected};
}

static weir_status refuse(const struct reader *reader, const char *where, const char *member,
                          const char *expected)
{
    return weir_error_set(reader->err, WEIR_ERR_INVALID, "%.80s: %.60s: expected %s", where, member,
                          expected);
}

/** The index of what a text names; no text, or null, is WEIR_SCHED_NONE where that may be. */
static weir_status read_name(const struct reader *reader, const json_t *text, const char *where,
                             const char *member, const struct directory *directory, bool is_needed,
                             int32_t *out)
{
    bool is_absent = text == NULL || json_is_null(text);
    const struct named key = {.name = json_string_value(text)};
    const struct named *found = NULL;
    if (key.name != NULL && directory->n > 0) {
        found = bsearch(&key, directory->names, directory->n, sizeof key, by_name);
    }
    if (found == NULL && (is_needed || !is_absent)) {
        return refuse(reader, where, member, directory->expected);
    }
    *out = found == NULL ? WEIR_SCHED_NONE : found->index;
    return WEIR_OK;
}

/** The array `key` of an object; none is empty. */
static weir_status get_array(const struct reader *reader, const json_t *object, const char *key,
                             const char *where, const json_t **out, size_t *out_n)
{
    *out = json_object_get(object, key);
    *out_n = json_array_size(*out);
    if (*out != NULL && !json_is_array(*out)) {
        return refuse(reader, where, key, "an array");
    }
    return *out_n <= INT32_MAX / 2 ? WEIR_OK : refuse(reader, where, key, "fewer elements");
}

/** An array of objects with one table. */
static weir_status read_list(const struct reader *reader, const json_t *object, const char *key,
                             const struct json_field *fields, size_t n_fields, size_t size,
                             void **out, int32_t *out_n, const char *where)
{
    const json_t *array;
    size_t n;
    WEIR_TRY(get_array(reader, object, key, where, &array, &n));
    char *list = weir_arena_calloc(reader->arena, n + 1, size);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(json_fields_read(fields, n_fields, json_array_get(array, i), where,
                                  list + i * size, reader->err));
    }
    *out = list;
    *out_n = (int32_t)n;
    return WEIR_OK;
}

static weir_status read_labels(const struct reader *reader, const json_t *object, const char *key,
                               const char *where, const struct weir_sched_label **out,
                               int32_t *out_n)
{
    const json_t *from = json_object_get(object, key);
    if (from != NULL && !json_is_object(from)) {
        return refuse(reader, where, key, "an object of texts");
    }
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(reader->arena, json_object_size(from) + 1, struct weir_sched_label);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)from, name, value)
    {
        if (!json_is_string(value) && !json_is_null(value)) {
            return refuse(reader, where, key, "an object of texts");
        }
        labels[(*out_n)++] = (struct weir_sched_label){name, json_string_value(value)};
    }
    *out = labels;
    return WEIR_OK;
}

#define READ_LIST(key, fields, strct, member, where)                                               \
    do {                                                                                           \
        void *list_ = NULL;                                                                        \
        WEIR_TRY(read_list(reader, from, (key), (fields), WEIR_ARRAY_LEN(fields),                  \
                           sizeof(struct strct), &list_, &out->n_##member, (where)));              \
        out->member = list_;                                                                       \
    } while (0)

static weir_status read_node(const struct reader *reader, const json_t *from,
                             struct weir_sched_node *out)
{
    char where[WHERE_BYTES];
    const char *name = json_string_value(json_object_get(from, "name"));
    snprintf(where, sizeof where, "node \"%.60s\"", name == NULL ? "" : name);
    WEIR_TRY(
        json_fields_read(node_fields, WEIR_ARRAY_LEN(node_fields), from, where, out, reader->err));
    WEIR_TRY(read_labels(reader, from, "labels", where, &out->labels, &out->n_labels));
    READ_LIST("taints", taint_fields, weir_sched_taint, taints, where);
    READ_LIST("extras", extra_fields, weir_sched_extra, extras, where);
    READ_LIST("zones", zone_fields, weir_sched_numa_zone, zones, where);
    return WEIR_OK;
}

/** Shares by resource; what is left out stays as it is. */
static weir_status read_shares(const struct reader *reader, const json_t *from, const char *where,
                               struct weir_sched_share *shares)
{
    static const char *const keys[] = {"accelerator", "cpu", "memory"};
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        const json_t *share = json_object_get(from, keys[r]);
        if (share != NULL) {
            WEIR_TRY(json_fields_read(share_fields, WEIR_ARRAY_LEN(share_fields), share, where,
                                      &shares[r], reader->err));
        }
    }
    return WEIR_OK;
}

/** Shares by model. */
static weir_status read_models(const struct reader *reader, const json_t *from, const char *where,
                               const struct weir_sched_model_share **out, int32_t *out_n)
{
    const json_t *models = json_object_get(from, "models");
    if (models != NULL && !json_is_object(models)) {
        return refuse(reader, where, "models", "an object of shares");
    }
    struct weir_sched_model_share *list = WEIR_ARENA_ARRAY(
        reader->arena, json_object_size(models) + 1, struct weir_sched_model_share);
    const char *model;
    json_t *share;
    json_object_foreach((json_t *)models, model, share)
    {
        list[*out_n].model = model;
        WEIR_TRY(json_fields_read(share_fields, WEIR_ARRAY_LEN(share_fields), share, where,
                                  &list[*out_n].share, reader->err));
        ++*out_n;
    }
    *out = list;
    return WEIR_OK;
}

static weir_status read_timed_quotas(const struct reader *reader, const json_t *from,
                                     const char *where, struct weir_sched_queue *queue)
{
    struct weir_sched_queue *out = queue;
    READ_LIST("timed_quotas", timed_quota_fields, weir_sched_timed_quota, timed_quotas, where);
    struct weir_sched_timed_quota *timed_quotas =
        (struct weir_sched_timed_quota *)queue->timed_quotas;
    const json_t *list = json_object_get(from, "timed_quotas");
    for (int32_t i = 0; i < queue->n_timed_quotas; i++) {
        memcpy(timed_quotas[i].shares, queue->shares, sizeof queue->shares);
        const json_t *given = json_array_get(list, (size_t)i);
        WEIR_TRY(read_shares(reader, given, where, timed_quotas[i].shares));
        WEIR_TRY(
            read_models(reader, given, where, &timed_quotas[i].models, &timed_quotas[i].n_models));
    }
    return WEIR_OK;
}

static weir_status read_queue(const struct reader *reader, const json_t *from,
                              const struct weir_sched_queue *before, int32_t n_before,
                              struct weir_sched_queue *out)
{
    char where[WHERE_BYTES];
    const char *name = json_string_value(json_object_get(from, "name"));
    snprintf(where, sizeof where, "queue \"%.60s\"", name == NULL ? "" : name);
    WEIR_TRY(json_fields_read(queue_fields, WEIR_ARRAY_LEN(queue_fields), from, where, out,
                              reader->err));
    const json_t *usage = json_object_get(from, "usage_ppm");
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        out->shares[r] = (struct weir_sched_share){-1, 1, -1};
        out->usage_ppm[r] = json_integer_value(json_array_get(usage, (size_t)r));
    }
    WEIR_TRY(read_shares(reader, from, where, out->shares));
    WEIR_TRY(read_models(reader, from, where, &out->models, &out->n_models));
    WEIR_TRY(read_timed_quotas(reader, from, where, out));
    const char *parent = json_string_value(json_object_get(from, "parent"));
    out->parent = WEIR_SCHED_NONE;
    for (int32_t i = n_before - 1; i >= 0 && parent != NULL && out->parent < 0; i--) {
        out->parent = strcmp(before[i].name, parent) == 0 ? i : WEIR_SCHED_NONE;
    }
    return parent == NULL || out->parent >= 0
               ? WEIR_OK
               : refuse(reader, where, "parent", "the name of a queue before it");
}

static weir_status read_levels(const struct reader *reader, const json_t *from,
                               struct weir_sched_topology *out)
{
    const json_t *levels;
    size_t n;
    WEIR_TRY(json_fields_read(topology_fields, WEIR_ARRAY_LEN(topology_fields), from, "topology",
                              out, reader->err));
    WEIR_TRY(get_array(reader, from, "levels", "topology", &levels, &n));
    const char **keys = WEIR_ARENA_ARRAY(reader->arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        keys[i] = json_string_value(json_array_get(levels, i));
    }
    out->levels = keys;
    out->n_levels = (int32_t)n;
    return WEIR_OK;
}

/** A level by its label; none is WEIR_SCHED_NONE. */
static weir_status read_level(const struct reader *reader, const json_t *from, const char *key,
                              const struct weir_sched_topology *topology, int32_t *out)
{
    const char *label = json_string_value(json_object_get(from, key));
    *out = WEIR_SCHED_NONE;
    for (int32_t i = 0; label != NULL && topology != NULL && i < topology->n_levels; i++) {
        if (topology->levels[i] != NULL && strcmp(topology->levels[i], label) == 0) {
            *out = i;
        }
    }
    return label == NULL || *out >= 0 ? WEIR_OK
                                      : refuse(reader, "sub-group", key, "a level of its topology");
}

static weir_status read_group(const struct reader *reader, const json_t *from,
                              struct weir_sched_group *out)
{
    const char *name = json_string_value(json_object_get(from, "topology"));
    out->topology = WEIR_SCHED_NONE;
    for (size_t i = 0; name != NULL && i < reader->n_topologies; i++) {
        if (strcmp(reader->topologies[i].name, name) == 0) {
            out->topology = (int32_t)i;
        }
    }
    if (name != NULL && out->topology < 0) {
        return refuse(reader, "sub-group", "topology", "the name of a topology");
    }
    const struct weir_sched_topology *topology =
        name == NULL ? NULL : &reader->topologies[out->topology];
    WEIR_TRY(read_level(reader, from, "required_level", topology, &out->required_level));
    return read_level(reader, from, "preferred_level", topology, &out->preferred_level);
}

static weir_status read_devices(const struct reader *reader, const json_t *from, const char *where,
                                int32_t n_devices, const int32_t **out)
{
    const json_t *array;
    size_t n;
    WEIR_TRY(get_array(reader, from, "devices", where, &array, &n));
    if (n == 0) {
        return WEIR_OK;
    }
    if (n != (size_t)WEIR_MAX(n_devices, 0)) {
        return refuse(reader, where, "devices", "as many as n_devices");
    }
    int32_t *devices = WEIR_ARENA_ARRAY(reader->arena, n, int32_t);
    for (size_t i = 0; i < n; i++) {
        json_int_t device = json_integer_value(json_array_get(array, i));
        if (device < 0 || device > INT32_MAX || !json_is_integer(json_array_get(array, i))) {
            return refuse(reader, where, "devices", "indices");
        }
        devices[i] = (int32_t)device;
    }
    *out = devices;
    return WEIR_OK;
}

static weir_status read_zones(const struct reader *reader, const json_t *from, const char *where,
                              uint32_t *out)
{
    const json_t *array;
    size_t n;
    WEIR_TRY(get_array(reader, from, "zones", where, &array, &n));
    for (size_t i = 0; i < n; i++) {
        json_int_t zone = json_integer_value(json_array_get(array, i));
        if (zone < 0 || zone >= ZONES_MAX || !json_is_integer(json_array_get(array, i))) {
            return refuse(reader, where, "zones", "indices of the node's NUMA zones");
        }
        *out |= 1U << zone;
    }
    return WEIR_OK;
}

static weir_status read_nomination(const struct reader *reader, const json_t *from,
                                   const char *where, struct weir_sched_task *out)
{
    const json_t *nomination = json_object_get(from, "nomination");
    int32_t node;
    if (nomination == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(read_name(reader, json_object_get(nomination, "node"), where, "promise: node",
                       &reader->nodes, true, &node));
    struct weir_sched_nomination *made =
        WEIR_ARENA_ARRAY(reader->arena, 1, struct weir_sched_nomination);
    made->node = node;
    out->nomination = made;
    WEIR_TRY(read_zones(reader, nomination, where, &made->zones));
    return read_devices(reader, nomination, where, out->demand.n_devices, &made->devices);
}

/** Numbers by the names of nodes; `other` where none is said. NULL: there are none. */
static weir_status read_by_node(const struct reader *reader, const json_t *from, const char *key,
                                const char *where, int32_t other, const int32_t **out)
{
    const json_t *numbers = json_object_get(from, key);
    const char *name;
    json_t *value;
    if (numbers == NULL) {
        return WEIR_OK;
    }
    int32_t *list = WEIR_ARENA_ARRAY(reader->arena, reader->nodes.n + 1, int32_t);
    for (size_t i = 0; i < reader->nodes.n; i++) {
        list[i] = other;
    }
    json_object_foreach((json_t *)numbers, name, value)
    {
        json_int_t number = json_integer_value(value);
        const struct named wanted = {.name = name};
        const struct named *found =
            reader->nodes.n == 0
                ? NULL
                : bsearch(&wanted, reader->nodes.names, reader->nodes.n, sizeof wanted, by_name);
        if (found == NULL || !json_is_integer(value) || number < INT32_MIN || number > INT32_MAX) {
            return refuse(reader, where, key, "numbers by the names of nodes");
        }
        list[found->index] = (int32_t)number;
    }
    *out = list;
    return WEIR_OK;
}

static weir_status read_wishes(const struct reader *reader, const json_t *from, const char *where,
                               struct weir_sched_task *out)
{
    WEIR_TRY(read_by_node(reader, from, "scores", where, 0, &out->scores));
    READ_LIST("wishes", wish_fields, weir_sched_wish, wishes, where);
    for (int32_t i = 0; i < out->n_wishes; i++) {
        struct weir_sched_wish *wish = (struct weir_sched_wish *)&out->wishes[i];
        const json_t *given = json_array_get(json_object_get(from, "wishes"), (size_t)i);
        WEIR_TRY(read_by_node(reader, given, "domains", where, -1, &wish->domains));
        WEIR_TRY(read_labels(reader, given, "labels", where, &wish->labels, &wish->n_labels));
    }
    return WEIR_OK;
}

static weir_status read_task(const struct reader *reader, const json_t *from,
                             struct weir_sched_task *task)
{
    char where[WHERE_BYTES];
    const char *name = json_string_value(json_object_get(from, "name"));
    snprintf(where, sizeof where, "task \"%.60s\"", name == NULL ? "" : name);
    WEIR_TRY(
        json_fields_read(task_fields, WEIR_ARRAY_LEN(task_fields), from, where, task, reader->err));
    WEIR_TRY(read_name(reader, json_object_get(from, "node"), where, "node", &reader->nodes, false,
                       &task->node));
    WEIR_TRY(read_devices(reader, from, where, task->demand.n_devices, &task->devices));
    WEIR_TRY(read_zones(reader, from, where, &task->zones));
    WEIR_TRY(read_nomination(reader, from, where, task));
    WEIR_TRY(read_labels(reader, from, "selector", where, &task->selector, &task->n_selector));
    WEIR_TRY(read_labels(reader, from, "labels", where, &task->labels, &task->n_labels));
    WEIR_TRY(read_labels(reader, from, "affinity_labels", where, &task->affinity_labels,
                         &task->n_affinity_labels));
    WEIR_TRY(read_wishes(reader, from, where, task));
    {
        struct weir_sched_task *out = task;
        READ_LIST("tolerations", toleration_fields, weir_sched_toleration, tolerations, where);
    }
    struct weir_sched_demand *out = &task->demand;
    READ_LIST("extras", extra_fields, weir_sched_extra, extras, where);
    return WEIR_OK;
}

static weir_status read_job(const struct reader *reader, const json_t *from,
                            struct weir_sched_job *out)
{
    char where[WHERE_BYTES];
    const char *name = json_string_value(json_object_get(from, "name"));
    snprintf(where, sizeof where, "job \"%.60s\"", name == NULL ? "" : name);
    WEIR_TRY(
        json_fields_read(job_fields, WEIR_ARRAY_LEN(job_fields), from, where, out, reader->err));
    WEIR_TRY(read_name(reader, json_object_get(from, "queue"), where, "queue", &reader->queues,
                       true, &out->queue));
    READ_LIST("groups", group_fields, weir_sched_group, groups, where);
    const json_t *groups = json_object_get(from, "groups");
    for (int32_t i = 0; i < out->n_groups; i++) {
        WEIR_TRY(read_group(reader, json_array_get(groups, (size_t)i),
                            (struct weir_sched_group *)&out->groups[i]));
    }
    return WEIR_OK;
}

static weir_status read_cluster(struct reader *reader, const json_t *document,
                                struct weir_sched_snapshot *out)
{
    const json_t *nodes, *queues, *topologies;
    size_t n_nodes, n_queues, n_topologies;
    WEIR_TRY(get_array(reader, document, "nodes", "snapshot", &nodes, &n_nodes));
    WEIR_TRY(get_array(reader, document, "queues", "snapshot", &queues, &n_queues));
    WEIR_TRY(get_array(reader, document, "topologies", "snapshot", &topologies, &n_topologies));
    struct weir_sched_node *node_list =
        WEIR_ARENA_ARRAY(reader->arena, n_nodes + 1, struct weir_sched_node);
    struct weir_sched_queue *queue_list =
        WEIR_ARENA_ARRAY(reader->arena, n_queues + 1, struct weir_sched_queue);
    struct weir_sched_topology *topology_list =
        WEIR_ARENA_ARRAY(reader->arena, n_topologies + 1, struct weir_sched_topology);
    for (size_t i = 0; i < n_nodes; i++) {
        WEIR_TRY(read_node(reader, json_array_get(nodes, i), &node_list[i]));
    }
    for (size_t i = 0; i < n_queues; i++) {
        WEIR_TRY(
            read_queue(reader, json_array_get(queues, i), queue_list, (int32_t)i, &queue_list[i]));
    }
    for (size_t i = 0; i < n_topologies; i++) {
        WEIR_TRY(read_levels(reader, json_array_get(topologies, i), &topology_list[i]));
    }
    reader->nodes =
        make_directory(reader->arena, node_list, n_nodes, sizeof *node_list, "the name of a node");
    reader->queues = make_directory(reader->arena, queue_list, n_queues, sizeof *queue_list,
                                    "the name of a queue");
    reader->topologies = topology_list;
    reader->n_topologies = n_topologies;
    out->nodes = node_list;
    out->n_nodes = (int32_t)n_nodes;
    out->queues = queue_list;
    out->n_queues = (int32_t)n_queues;
    out->topologies = topology_list;
    out->n_topologies = (int32_t)n_topologies;
    return WEIR_OK;
}

static weir_status read_work(const struct reader *reader, const json_t *document,
                             struct weir_sched_snapshot *out)
{
    const json_t *jobs, *tasks;
    size_t n_jobs, n_tasks, n_all = 0;
    WEIR_TRY(get_array(reader, document, "jobs", "snapshot", &jobs, &n_jobs));
    for (size_t i = 0; i < n_jobs; i++) {
        WEIR_TRY(get_array(reader, json_array_get(jobs, i), "tasks", "job", &tasks, &n_tasks));
        n_all += n_tasks;
    }
    struct weir_sched_job *job_list =
        WEIR_ARENA_ARRAY(reader->arena, n_jobs + 1, struct weir_sched_job);
    struct weir_sched_task *task_list =
        WEIR_ARENA_ARRAY(reader->arena, n_all + 1, struct weir_sched_task);
    for (size_t i = 0; i < n_jobs; i++) {
        const json_t *from = json_array_get(jobs, i);
        WEIR_TRY(read_job(reader, from, &job_list[i]));
        WEIR_TRY(get_array(reader, from, "tasks", "job", &tasks, &n_tasks));
        job_list[i].first_task = out->n_tasks;
        job_list[i].n_tasks = (int32_t)n_tasks;
        for (size_t t = 0; t < n_tasks; t++) {
            WEIR_TRY(read_task(reader, json_array_get(tasks, t), &task_list[out->n_tasks++]));
        }
    }
    out->jobs = job_list;
    out->n_jobs = (int32_t)n_jobs;
    out->tasks = task_list;
    return WEIR_OK;
}

static weir_status read_reservation(const struct reader *reader, const json_t *from,
                                    const struct directory *jobs,
                                    struct weir_sched_reservation *out)
{
    char where[WHERE_BYTES];
    const json_t *nodes;
    size_t n_nodes;
    const char *name = json_string_value(json_object_get(from, "name"));
    snprintf(where, sizeof where, "reservation \"%.60s\"", name == NULL ? "" : name);
    WEIR_TRY(json_fields_read(reservation_fields, WEIR_ARRAY_LEN(reservation_fields), from, where,
                              out, reader->err));
    WEIR_TRY(read_name(reader, json_object_get(from, "queue"), where, "queue", &reader->queues,
                       false, &out->queue));
    WEIR_TRY(read_name(reader, json_object_get(from, "job"), where, "job", jobs, false, &out->job));
    WEIR_TRY(get_array(reader, from, "nodes", where, &nodes, &n_nodes));
    int32_t *indices = WEIR_ARENA_ARRAY(reader->arena, n_nodes + 1, int32_t);
    for (size_t i = 0; i < n_nodes; i++) {
        WEIR_TRY(read_name(reader, json_array_get(nodes, i), where, "nodes", &reader->nodes, true,
                           &indices[i]));
    }
    out->nodes = indices;
    out->n_nodes = (int32_t)n_nodes;
    return WEIR_OK;
}

static weir_status read_reservations(const struct reader *reader, const json_t *document,
                                     struct weir_sched_snapshot *out)
{
    const json_t *array;
    size_t n;
    WEIR_TRY(get_array(reader, document, "reservations", "snapshot", &array, &n));
    struct weir_sched_reservation *list =
        WEIR_ARENA_ARRAY(reader->arena, n + 1, struct weir_sched_reservation);
    const struct directory jobs =
        make_directory(reader->arena, out->jobs, n == 0 ? 0 : (size_t)out->n_jobs,
                       sizeof *out->jobs, "the name of a job");
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(read_reservation(reader, json_array_get(array, i), &jobs, &list[i]));
    }
    out->reservations = list;
    out->n_reservations = (int32_t)n;
    return WEIR_OK;
}

weir_status weir_sched_snapshot_from_json(const json_t *document, struct weir_arena *arena,
                                          struct weir_sched_snapshot *out, struct weir_error *err)
{
    struct reader reader = {.arena = arena, .err = err};
    struct weir_sched_snapshot snapshot = {0};
    WEIR_TRY(json_fields_read(document_fields, WEIR_ARRAY_LEN(document_fields), document,
                              "snapshot", &snapshot, err));
    WEIR_TRY(read_cluster(&reader, document, &snapshot));
    WEIR_TRY(read_work(&reader, document, &snapshot));
    WEIR_TRY(read_reservations(&reader, document, &snapshot));
    WEIR_TRY(weir_sched_snapshot_check(&snapshot, err));
    *out = snapshot;
    return WEIR_OK;
}
