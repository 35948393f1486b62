/** A snapshot and a plan to JSON. A failed allocation inside jansson leaves a member out, which the
 *  callers find by asking for the root alone: it is NULL then. */
#include "sched/test_snapshot.h"

#include "base/macros.h"
#include "sched/io/snapshot_fields.h"

static int64_t load(const struct json_field *field, const void *from)
{
    const void *member = (const char *)from + field->offset;
    switch (field->type) {
    case JSON_FIELD_I32:
        return *(const int32_t *)member;
    case JSON_FIELD_I64:
        return *(const int64_t *)member;
    case JSON_FIELD_BOOL:
        return *(const bool *)member;
    case JSON_FIELD_WORD:
        return *(const int *)member;
    case JSON_FIELD_TEXT:
    case JSON_FIELD_OTHER:
        break;
    }
    return 0;
}

/** Add to `object` the members whose value is not the fallback. */
static void write_fields(const struct json_field *fields, size_t n_fields, const void *from,
                         json_t *object)
{
    for (size_t i = 0; i < n_fields; i++) {
        const struct json_field *field = &fields[i];
        int64_t value = load(field, from);
        if (field->type == JSON_FIELD_TEXT) {
            const char *text = *(const char *const *)((const char *)from + field->offset);
            if (text != NULL) {
                json_object_set_new(object, field->name, json_string(text));
            }
        } else if (field->type != JSON_FIELD_OTHER && value != field->fallback) {
            json_t *out = field->type == JSON_FIELD_BOOL   ? json_boolean(value)
                          : field->type == JSON_FIELD_WORD ? json_string(field->words[value])
                                                           : json_integer(value);
            json_object_set_new(object, field->name, out);
        }
    }
}

static void add(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

/** An array of objects with one table, if there are any. */
static void write_list(json_t *object, const char *key, const struct json_field *fields,
                       size_t n_fields, const void *list, size_t size, int32_t n)
{
    json_t *array = n > 0 ? json_array() : NULL;
    for (int32_t i = 0; i < n; i++) {
        json_t *item = json_object();
        write_fields(fields, n_fields, (const char *)list + (size_t)i * size, item);
        json_array_append_new(array, item);
    }
    if (n > 0) {
        add(object, key, array);
    }
}

static void write_labels(json_t *object, const char *key, const struct weir_sched_label *labels,
                         int32_t n)
{
    json_t *out = n > 0 ? json_object() : NULL;
    for (int32_t i = 0; i < n; i++) {
        add(out, labels[i].key,
            labels[i].value == NULL ? json_null() : json_string(labels[i].value));
    }
    if (n > 0) {
        add(object, key, out);
    }
}

#define WRITE_LIST(object, key, fields, list, n)                                                   \
    write_list((object), (key), (fields), WEIR_ARRAY_LEN(fields), (list), sizeof *(list), (n))

static json_t *write_node(const struct weir_sched_node *node)
{
    json_t *out = json_object();
    write_fields(node_fields, WEIR_ARRAY_LEN(node_fields), node, out);
    write_labels(out, "labels", node->labels, node->n_labels);
    WRITE_LIST(out, "taints", taint_fields, node->taints, node->n_taints);
    WRITE_LIST(out, "extras", extra_fields, node->extras, node->n_extras);
    WRITE_LIST(out, "zones", zone_fields, node->zones, node->n_zones);
    return out;
}

static void write_models(json_t *object, const struct weir_sched_model_share *models, int32_t n)
{
    json_t *out = n > 0 ? json_object() : NULL;
    for (int32_t i = 0; i < n; i++) {
        json_t *share = json_object();
        write_fields(share_fields, WEIR_ARRAY_LEN(share_fields), &models[i].share, share);
        add(out, models[i].model, share);
    }
    if (n > 0) {
        add(object, "models", out);
    }
}

static json_t *write_timed_quotas(const struct weir_sched_queue *queue)
{
    static const char *const keys[] = {"accelerator", "cpu", "memory"};
    json_t *list = json_array();
    for (int32_t i = 0; i < queue->n_timed_quotas; i++) {
        json_t *out = json_object();
        write_fields(timed_quota_fields, WEIR_ARRAY_LEN(timed_quota_fields),
                     &queue->timed_quotas[i], out);
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            json_t *share = json_object();
            const struct weir_sched_share *from = &queue->timed_quotas[i].shares[r];
            add(share, "quota", json_integer(from->quota));
            add(share, "weight", json_integer(from->weight));
            add(share, "limit", json_integer(from->limit));
            add(out, keys[r], share);
        }
        write_models(out, queue->timed_quotas[i].models, queue->timed_quotas[i].n_models);
        json_array_append_new(list, out);
    }
    return list;
}

static json_t *write_queue(const struct weir_sched_snapshot *snapshot,
                           const struct weir_sched_queue *queue)
{
    static const char *const keys[] = {"accelerator", "cpu", "memory"};
    json_t *out = json_object(), *usage = json_array();
    write_fields(queue_fields, WEIR_ARRAY_LEN(queue_fields), queue, out);
    if (queue->parent >= 0) {
        add(out, "parent", json_string(snapshot->queues[queue->parent].name));
    }
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        json_t *share = json_object();
        write_fields(share_fields, WEIR_ARRAY_LEN(share_fields), &queue->shares[r], share);
        add(out, keys[r], share);
        json_array_append_new(usage, json_integer(queue->usage_ppm[r]));
    }
    add(out, "usage_ppm", usage);
    write_models(out, queue->models, queue->n_models);
    if (queue->n_timed_quotas > 0) {
        add(out, "timed_quotas", write_timed_quotas(queue));
    }
    return out;
}

static json_t *write_topology(const struct weir_sched_topology *topology)
{
    json_t *out = json_object(), *levels = json_array();
    write_fields(topology_fields, WEIR_ARRAY_LEN(topology_fields), topology, out);
    for (int32_t i = 0; i < topology->n_levels; i++) {
        json_array_append_new(levels, json_string(topology->levels[i]));
    }
    add(out, "levels", levels);
    return out;
}

static json_t *write_group(const struct weir_sched_snapshot *snapshot,
                           const struct weir_sched_group *group)
{
    json_t *out = json_object();
    write_fields(group_fields, WEIR_ARRAY_LEN(group_fields), group, out);
    if (group->topology >= 0) {
        const struct weir_sched_topology *topology = &snapshot->topologies[group->topology];
        add(out, "topology", json_string(topology->name));
        if (group->required_level >= 0) {
            add(out, "required_level", json_string(topology->levels[group->required_level]));
        }
        if (group->preferred_level >= 0) {
            add(out, "preferred_level", json_string(topology->levels[group->preferred_level]));
        }
    }
    return out;
}

static json_t *write_indices(const int32_t *indices, int32_t n)
{
    json_t *out = json_array();
    for (int32_t i = 0; i < n; i++) {
        json_array_append_new(out, json_integer(indices[i]));
    }
    return out;
}

static json_t *write_zones(uint32_t zones)
{
    json_t *out = json_array();
    for (int32_t i = 0; zones >> i != 0; i++) {
        if ((zones >> i & 1) != 0) {
            json_array_append_new(out, json_integer(i));
        }
    }
    return out;
}

static void write_by_node(json_t *object, const char *key,
                          const struct weir_sched_snapshot *snapshot, const int32_t *numbers,
                          int32_t other)
{
    json_t *out = numbers != NULL ? json_object() : NULL;
    for (int32_t i = 0; numbers != NULL && i < snapshot->n_nodes; i++) {
        if (numbers[i] != other) {
            add(out, snapshot->nodes[i].name, json_integer(numbers[i]));
        }
    }
    if (numbers != NULL) {
        add(object, key, out);
    }
}

static void write_wishes(json_t *object, const struct weir_sched_snapshot *snapshot,
                         const struct weir_sched_task *task)
{
    json_t *list = task->n_wishes > 0 ? json_array() : NULL;
    write_by_node(object, "scores", snapshot, task->scores, 0);
    for (int32_t i = 0; i < task->n_wishes; i++) {
        const struct weir_sched_wish *wish = &task->wishes[i];
        json_t *out = json_object();
        write_fields(wish_fields, WEIR_ARRAY_LEN(wish_fields), wish, out);
        write_by_node(out, "domains", snapshot, wish->domains, -1);
        write_labels(out, "labels", wish->labels, wish->n_labels);
        json_array_append_new(list, out);
    }
    if (task->n_wishes > 0) {
        add(object, "wishes", list);
    }
}

static json_t *write_task(const struct weir_sched_snapshot *snapshot,
                          const struct weir_sched_task *task)
{
    json_t *out = json_object();
    write_fields(task_fields, WEIR_ARRAY_LEN(task_fields), task, out);
    if (weir_sched_task_has_node(task->state)) {
        add(out, "node", json_string(snapshot->nodes[task->node].name));
        if (task->devices != NULL && task->demand.n_devices > 0) {
            add(out, "devices", write_indices(task->devices, task->demand.n_devices));
        }
        if (task->zones != 0) {
            add(out, "zones", write_zones(task->zones));
        }
    }
    if (task->nomination != NULL) {
        json_t *nomination = json_object();
        add(nomination, "node", json_string(snapshot->nodes[task->nomination->node].name));
        if (task->nomination->devices != NULL) {
            add(nomination, "devices",
                write_indices(task->nomination->devices, task->demand.n_devices));
        }
        if (task->nomination->zones != 0) {
            add(nomination, "zones", write_zones(task->nomination->zones));
        }
        add(out, "nomination", nomination);
    }
    WRITE_LIST(out, "extras", extra_fields, task->demand.extras, task->demand.n_extras);
    WRITE_LIST(out, "tolerations", toleration_fields, task->tolerations, task->n_tolerations);
    write_labels(out, "selector", task->selector, task->n_selector);
    write_labels(out, "labels", task->labels, task->n_labels);
    write_labels(out, "affinity_labels", task->affinity_labels, task->n_affinity_labels);
    write_wishes(out, snapshot, task);
    return out;
}

static json_t *write_job(const struct weir_sched_snapshot *snapshot,
                         const struct weir_sched_job *job)
{
    json_t *out = json_object(), *tasks = json_array();
    write_fields(job_fields, WEIR_ARRAY_LEN(job_fields), job, out);
    add(out, "queue", json_string(snapshot->queues[job->queue].name));
    if (job->n_groups > 0) {
        json_t *groups = json_array();
        for (int32_t i = 0; i < job->n_groups; i++) {
            json_array_append_new(groups, write_group(snapshot, &job->groups[i]));
        }
        add(out, "groups", groups);
    }
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        json_array_append_new(tasks, write_task(snapshot, &snapshot->tasks[t]));
    }
    add(out, "tasks", tasks);
    return out;
}

static json_t *write_reservation(const struct weir_sched_snapshot *snapshot,
                                 const struct weir_sched_reservation *reservation)
{
    json_t *out = json_object(), *nodes = json_array();
    write_fields(reservation_fields, WEIR_ARRAY_LEN(reservation_fields), reservation, out);
    if (reservation->queue >= 0) {
        add(out, "queue", json_string(snapshot->queues[reservation->queue].name));
    }
    if (reservation->job >= 0) {
        add(out, "job", json_string(snapshot->jobs[reservation->job].name));
    }
    for (int32_t i = 0; i < reservation->n_nodes; i++) {
        json_array_append_new(nodes, json_string(snapshot->nodes[reservation->nodes[i]].name));
    }
    add(out, "nodes", nodes);
    return out;
}

json_t *weir_sched_snapshot_to_json(const struct weir_sched_snapshot *snapshot)
{
    json_t *out = json_object(), *nodes = json_array(), *queues = json_array();
    json_t *topologies = json_array(), *jobs = json_array(), *reservations = json_array();
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        json_array_append_new(nodes, write_node(&snapshot->nodes[i]));
    }
    for (int32_t i = 0; i < snapshot->n_queues; i++) {
        json_array_append_new(queues, write_queue(snapshot, &snapshot->queues[i]));
    }
    for (int32_t i = 0; i < snapshot->n_topologies; i++) {
        json_array_append_new(topologies, write_topology(&snapshot->topologies[i]));
    }
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        json_array_append_new(jobs, write_job(snapshot, &snapshot->jobs[i]));
    }
    for (int32_t i = 0; i < snapshot->n_reservations; i++) {
        json_array_append_new(reservations,
                              write_reservation(snapshot, &snapshot->reservations[i]));
    }
    write_fields(document_fields, WEIR_ARRAY_LEN(document_fields), snapshot, out);
    add(out, "nodes", nodes);
    add(out, "queues", queues);
    add(out, "topologies", topologies);
    add(out, "jobs", jobs);
    if (snapshot->n_reservations > 0) {
        add(out, "reservations", reservations);
    } else {
        json_decref(reservations);
    }
    return out;
}

static json_t *write_action(const struct weir_sched_snapshot *snapshot,
                            const struct weir_sched_action *action)
{
    static const char *const kinds[] = {"bind", "pipeline", "evict", "request_checkpoint"};
    static const char *const reasons[] = {"none",  "consolidation", "reclaim",    "preempt",
                                          "stale", "after_grace",   "time_limit", "idle"};
    json_t *out = json_object();
    add(out, "kind", json_string(kinds[action->kind]));
    add(out, "task", json_string(snapshot->tasks[action->task].name));
    add(out, "node", json_string(snapshot->nodes[action->node].name));
    add(out, "devices", write_indices(action->devices, action->n_devices));
    if (action->zones != 0) {
        add(out, "zones", write_zones(action->zones));
    }
    if (action->kind == WEIR_SCHED_EVICT || action->kind == WEIR_SCHED_REQUEST_CHECKPOINT) {
        add(out, "reason", json_string(reasons[action->reason]));
        add(out, "by",
            action->by_job < 0 ? json_null() : json_string(snapshot->jobs[action->by_job].name));
    }
    return out;
}

/** The name of what is in a job's way. */
static json_t *write_object(const struct weir_sched_snapshot *snapshot,
                            const struct weir_sched_wait *wait)
{
    if (wait->object < 0) {
        return json_null();
    }
    switch (wait->code) {
    case WEIR_SCHED_WAIT_ROOM_COMING:
    case WEIR_SCHED_WAIT_CLOSING:
    case WEIR_SCHED_WAIT_NODE_RESERVED:
        return json_string(snapshot->nodes[wait->object].name);
    case WEIR_SCHED_WAIT_QUEUE_LIMIT:
    case WEIR_SCHED_WAIT_QUEUE_QUOTA:
        return json_string(snapshot->queues[wait->object].name);
    case WEIR_SCHED_WAIT_GANG:
    case WEIR_SCHED_WAIT_NO_NODE:
    case WEIR_SCHED_WAIT_ZONES:
        return json_string(snapshot->tasks[wait->object].name);
    case WEIR_SCHED_WAIT_RESERVED:
        return json_string(snapshot->jobs[wait->object].name);
    default:
        return json_null();
    }
}

static json_t *write_wait(const struct weir_sched_snapshot *snapshot, const char *const *models,
                          const struct weir_sched_wait *wait)
{
    static const char *const resources[] = {"accelerator", "cpu", "memory"};
    json_t *out = json_object();
    bool is_model = wait->resource >= WEIR_SCHED_FIRST_MODEL;
    int resource = is_model ? WEIR_SCHED_ACCELERATOR : (int)wait->resource;
    add(out, "job", json_string(snapshot->jobs[wait->job].name));
    add(out, "code", json_string(weir_sched_wait_name(wait->code)));
    add(out, "resource", json_string(resources[resource]));
    if (is_model) {
        add(out, "model", json_string(models[wait->resource - WEIR_SCHED_FIRST_MODEL]));
    }
    add(out, "need", json_integer(wait->need));
    add(out, "have", json_integer(wait->have));
    add(out, "object", write_object(snapshot, wait));
    add(out, "expected_start_ms",
        wait->expected_start_ms > 0 ? json_integer(wait->expected_start_ms) : json_null());
    add(out, "after",
        wait->after_job >= 0 ? json_string(snapshot->jobs[wait->after_job].name) : json_null());
    add(out, "text", json_string(wait->text));
    return out;
}

static json_t *write_amount(const struct weir_sched_amount *amount)
{
    json_t *out = json_array();
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        json_array_append_new(out, json_integer(amount->of[r]));
    }
    return out;
}

static json_t *write_queue_share(const struct weir_sched_queue_share *share,
                                 const char *const *models, int32_t n_models)
{
    json_t *out = json_object(), *by_model = n_models > 0 ? json_object() : NULL;
    add(out, "fair_share", write_amount(&share->fair_share));
    add(out, "requested", write_amount(&share->requested));
    add(out, "allocated", write_amount(&share->allocated));
    for (int32_t i = 0; i < n_models; i++) {
        int r = WEIR_SCHED_FIRST_MODEL + i;
        json_t *of = json_object();
        add(of, "fair_share", json_integer(share->fair_share.of[r]));
        add(of, "requested", json_integer(share->requested.of[r]));
        add(of, "allocated", json_integer(share->allocated.of[r]));
        add(by_model, models[i], of);
    }
    if (n_models > 0) {
        add(out, "models", by_model);
    }
    return out;
}

json_t *weir_sched_plan_to_json(const struct weir_sched_snapshot *snapshot,
                                const struct weir_sched_plan *plan)
{
    json_t *out = json_object(), *actions = json_array(), *waits = json_array();
    json_t *queues = json_array();
    const char *models[WEIR_SCHED_MODELS_MAX];
    int32_t n_models = weir_sched_models(snapshot, models);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        json_array_append_new(actions, write_action(snapshot, &plan->actions[i]));
    }
    for (int32_t i = 0; i < plan->n_waits; i++) {
        json_array_append_new(waits, write_wait(snapshot, models, &plan->waits[i]));
    }
    for (int32_t i = 0; i < snapshot->n_queues; i++) {
        json_t *queue = write_queue_share(&plan->queues[i], models, n_models);
        add(queue, "name", json_string(snapshot->queues[i].name));
        json_array_append_new(queues, queue);
    }
    add(out, "actions", actions);
    add(out, "waits", waits);
    add(out, "queues", queues);
    return out;
}
