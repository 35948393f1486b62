#include "sim/cluster_file.h"

#include "base/file.h"
#include "base/json.h"
#include "base/record.h"
#include "sim/csv.h"
#include "sim/import.h"

#include <string.h>

#define FILE_BYTES_MAX ((size_t)64 << 20)
#define GIB            ((double)((int64_t)1 << 30))
#define PLENTY         ((int64_t)1 << 40) /**< CPU and memory of a node that nobody runs out of. */

/** One entry of "nodes". */
struct node_class {
    char *name, *model, *labels;
    int64_t count, accelerators;
    double cpu, memory_gib, accelerator_memory_gib;
};

/** One entry of "queues". */
struct queue_entry {
    char *name, *parent, *models;
    int64_t priority, min_run_s;
    double quota, limit, weight, cpu_quota, cpu_limit, memory_quota_gib, memory_limit_gib;
};

/** One entry of its "models". */
struct model_entry {
    double quota, limit, weight;
};

// clang-format off
static const struct weir_field node_fields[] = {
    WEIR_FIELD(node_class, name,                   TEXT, WEIR_FIELD_REQUIRED, "", "Name; with count over 1 the prefix of NAME-0, NAME-1 …"),
    WEIR_FIELD(node_class, count,                  INT,  0, "", "How many such nodes; 1"),
    WEIR_FIELD(node_class, accelerators,           INT,  0, "", "Devices of each node; 0"),
    WEIR_FIELD(node_class, model,                  TEXT, 0, "", "Of its devices"),
    WEIR_FIELD(node_class, accelerator_memory_gib, F64,  0, "GiB", "Memory of each device; 0 is unknown"),
    WEIR_FIELD(node_class, cpu,                    F64,  0, "cores", "CPU of each node; more than enough"),
    WEIR_FIELD(node_class, memory_gib,             F64,  0, "GiB", "Memory of each node; more than enough"),
    WEIR_FIELD(node_class, labels,                 JSON, 0, "", "Labels, name to value"),
};

static const struct weir_field queue_fields[] = {
    WEIR_FIELD(queue_entry, name,             TEXT, WEIR_FIELD_REQUIRED, "", "Name, as the trace has it"),
    WEIR_FIELD(queue_entry, parent,           TEXT, 0, "", "A queue above it in the file"),
    WEIR_FIELD(queue_entry, quota,            F64,  0, "devices", "Guaranteed; -1 is unlimited; 0"),
    WEIR_FIELD(queue_entry, limit,            F64,  0, "devices", "Never more; -1 is no limit"),
    WEIR_FIELD(queue_entry, weight,           F64,  0, "", "Share of what is left over; 1"),
    WEIR_FIELD(queue_entry, priority,         INT,  0, "", "Of the queue; 100"),
    WEIR_FIELD(queue_entry, min_run_s,        INT,  0, "s", "How long a job runs before it may be evicted; 0"),
    WEIR_FIELD(queue_entry, cpu_quota,        F64,  0, "cores", "-1"),
    WEIR_FIELD(queue_entry, cpu_limit,        F64,  0, "cores", "-1"),
    WEIR_FIELD(queue_entry, memory_quota_gib, F64,  0, "GiB", "-1"),
    WEIR_FIELD(queue_entry, memory_limit_gib, F64,  0, "GiB", "-1"),
    WEIR_FIELD(queue_entry, models,           JSON, 0, "", "Its shares of single models, name to quota, limit and weight"),
};

static const struct weir_field model_fields[] = {
    WEIR_FIELD(model_entry, quota,  F64, 0, "devices", "Guaranteed; -1, and the default: as far as the queue's quota reaches"),
    WEIR_FIELD(model_entry, limit,  F64, 0, "devices", "Never more; -1 is no limit"),
    WEIR_FIELD(model_entry, weight, F64, 0, "", "Share of what is left over; 1"),
};

// clang-format on

static const struct weir_resource node_resource =
    WEIR_RESOURCE("node", "nodes", node_class, node_fields);
static const struct weir_resource queue_resource =
    WEIR_RESOURCE("queue", "queues", queue_entry, queue_fields);
static const struct weir_resource model_resource =
    WEIR_RESOURCE("model", "models", model_entry, model_fields);

struct reader {
    const char *what;
    struct weir_sim_cluster *cluster;
    struct weir_error *err;
};

static weir_status refuse(const struct reader *reader, const char *expected)
{
    return weir_error_set(reader->err, WEIR_ERR_INVALID, "%s", expected);
}

static bool is_in(double value, double low, double high)
{
    return value >= low && value <= high;
}

static weir_status check_class(const struct reader *reader, const struct node_class *class)
{
    if (!is_in((double)class->count, 1, WEIR_SIM_NODES_MAX)) {
        return refuse(reader, "count: expected 1 to 200000");
    }
    if (!is_in((double)class->accelerators, 0, 4096)) {
        return refuse(reader, "accelerators: expected 0 to 4096");
    }
    if (!is_in(class->cpu, 0, 1e9) || !is_in(class->memory_gib, 0, 1e9) ||
        !is_in(class->accelerator_memory_gib, 0, 1e6)) {
        return refuse(reader, "cpu, memory_gib, accelerator_memory_gib: expected numbers from 0");
    }
    if ((int64_t)reader->cluster->n_nodes + class->count > WEIR_SIM_NODES_MAX) {
        return refuse(reader, "more than 200000 nodes in all");
    }
    return WEIR_OK;
}

static weir_status read_labels(const struct reader *reader, const char *text,
                               struct weir_sched_label **out, int32_t *out_n)
{
    WEIR_AUTO(weir_json_auto_free) json_t *labels = NULL;
    *out = NULL;
    *out_n = 0;
    if (text == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), reader->what, &labels, reader->err));
    if (!json_is_object(labels)) {
        return refuse(reader, "labels: expected names with values");
    }
    struct weir_arena *arena = &reader->cluster->arena;
    *out = WEIR_ARENA_ARRAY(arena, json_object_size(labels), struct weir_sched_label);
    const char *key;
    json_t *value;
    json_object_foreach(labels, key, value)
    {
        if (!json_is_string(value)) {
            return refuse(reader, "labels: expected text as each value; quote it");
        }
        (*out)[(*out_n)++] =
            (struct weir_sched_label){.key = weir_arena_strdup(arena, key),
                                      .value = weir_arena_strdup(arena, json_string_value(value))};
    }
    return WEIR_OK;
}

static weir_status read_class(const struct reader *reader, const json_t *object)
{
    struct weir_sim_cluster *cluster = reader->cluster;
    struct node_class class = {.count = 1, .cpu = -1, .memory_gib = -1};
    WEIR_TRY(weir_record_from_json(&node_resource, object, WEIR_RECORD_CREATE, &cluster->arena,
                                   &class, reader->err));
    bool has_cpu = json_object_get(object, "cpu") != NULL,
         has_memory = json_object_get(object, "memory_gib") != NULL;
    class.cpu = has_cpu ? class.cpu : 0;
    class.memory_gib = has_memory ? class.memory_gib : 0;
    WEIR_TRY(check_class(reader, &class));
    struct weir_sched_node node = {
        .model = class.model,
        .n_devices = (int32_t) class.accelerators,
        .n_tasks_max = WEIR_SCHED_UNLIMITED,
        .device_memory_bytes = (int64_t)(class.accelerator_memory_gib * GIB),
        .cpu_milli = has_cpu ? (int64_t)(class.cpu * 1000) : PLENTY,
        .memory_bytes = has_memory ? (int64_t)(class.memory_gib * GIB) : PLENTY,
    };
    struct weir_sched_label *labels;
    WEIR_TRY(read_labels(reader, class.labels, &labels, &node.n_labels));
    node.labels = labels;
    for (int64_t i = 0; i < class.count; i++) {
        node.name = class.count == 1
                        ? class.name
                        : weir_arena_printf(&cluster->arena, "%s-%lld", class.name, (long long)i);
        cluster->nodes[cluster->n_nodes++] = node;
    }
    return WEIR_OK;
}

static int32_t find_queue(const struct weir_sim_cluster *cluster, const char *name)
{
    for (int32_t q = 0; q < cluster->n_queues; q++) {
        if (strcmp(cluster->queues[q].name, name) == 0) {
            return q;
        }
    }
    return WEIR_SCHED_NONE;
}

static int64_t bound(double value, double scale)
{
    return value < 0 ? WEIR_SCHED_UNLIMITED : (int64_t)(value * scale);
}

static bool are_bounds(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] != -1 && !is_in(values[i], 0, 1e8)) {
            return false;
        }
    }
    return true;
}

static bool has_model(const struct weir_sim_cluster *cluster, const char *model)
{
    for (int32_t i = 0; i < cluster->n_nodes; i++) {
        if (cluster->nodes[i].model != NULL && strcmp(cluster->nodes[i].model, model) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status read_model(const struct reader *reader, const char *model, const json_t *object,
                              struct weir_sched_model_share *out)
{
    struct weir_arena *arena = &reader->cluster->arena;
    struct model_entry entry = {.quota = -1, .limit = -1, .weight = 1};
    if (!has_model(reader->cluster, model)) {
        return refuse(reader, "expected the model of a node");
    }
    WEIR_TRY(weir_record_from_json(&model_resource, object, WEIR_RECORD_CREATE, arena, &entry,
                                   reader->err));
    const double values[] = {entry.quota, entry.limit};
    if (!are_bounds(values, WEIR_ARRAY_LEN(values)) || !is_in(entry.weight, 0, 1e6)) {
        return refuse(reader, "expected quota and limit -1, or from 0, and weight 0 to 1000000");
    }
    *out = (struct weir_sched_model_share){.model = weir_arena_strdup(arena, model),
                                           .share = {bound(entry.quota, 1000),
                                                     (int64_t)(entry.weight * 1000),
                                                     bound(entry.limit, 1000)}};
    return WEIR_OK;
}

static weir_status read_models(const struct reader *reader, const char *text,
                               struct weir_sched_queue *out)
{
    WEIR_AUTO(weir_json_auto_free) json_t *models = NULL;
    if (text == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), reader->what, &models, reader->err));
    if (!json_is_object(models)) {
        return refuse(reader, "models: expected names with quota, limit, weight");
    }
    struct weir_sched_model_share *list = WEIR_ARENA_ARRAY(
        &reader->cluster->arena, json_object_size(models) + 1, struct weir_sched_model_share);
    const char *model;
    json_t *value;
    json_object_foreach(models, model, value)
    {
        if (read_model(reader, model, value, &list[out->n_models++]) != WEIR_OK) {
            return weir_error_prefix(reader->err, "models: \"%.60s\": ", model);
        }
    }
    out->models = list;
    return WEIR_OK;
}

static weir_status read_queue(const struct reader *reader, const json_t *object)
{
    struct weir_sim_cluster *cluster = reader->cluster;
    struct queue_entry entry = {.limit = -1,
                                .weight = 1,
                                .priority = 100,
                                .cpu_quota = -1,
                                .cpu_limit = -1,
                                .memory_quota_gib = -1,
                                .memory_limit_gib = -1};
    WEIR_TRY(weir_record_from_json(&queue_resource, object, WEIR_RECORD_CREATE, &cluster->arena,
                                   &entry, reader->err));
    if (find_queue(cluster, entry.name) != WEIR_SCHED_NONE) {
        return refuse(reader, "this name was given before");
    }
    int32_t parent = entry.parent == NULL ? WEIR_SCHED_NONE : find_queue(cluster, entry.parent);
    if (entry.parent != NULL && parent == WEIR_SCHED_NONE) {
        return refuse(reader, "parent: expected a queue that stands above it");
    }
    const double values[] = {entry.quota,
                             entry.limit,
                             entry.cpu_quota,
                             entry.cpu_limit,
                             entry.memory_quota_gib,
                             entry.memory_limit_gib};
    if (!are_bounds(values, WEIR_ARRAY_LEN(values))) {
        return refuse(reader, "quotas and limits: expected -1, or from 0");
    }
    if (!is_in(entry.weight, 0, 1e6) || !is_in((double)entry.priority, -1e6, 1e6) ||
        !is_in((double)entry.min_run_s, 0, 1e9)) {
        return refuse(reader,
                      "weight: expected 0 to 1000000; min_run_s: from 0; priority: a whole number");
    }
    int64_t weight = (int64_t)(entry.weight * 1000);
    struct weir_sched_queue *queue = &cluster->queues[cluster->n_queues++];
    *queue = (struct weir_sched_queue){
        .name = entry.name,
        .parent = parent,
        .priority = (int32_t)entry.priority,
        .shares = {{bound(entry.quota, 1000), weight, bound(entry.limit, 1000)},
                   {bound(entry.cpu_quota, 1000), weight, bound(entry.cpu_limit, 1000)},
                   {bound(entry.memory_quota_gib, GIB), weight,
                    bound(entry.memory_limit_gib, GIB)}},
        .preempt_min_run_ms = entry.min_run_s * 1000,
        .reclaim_min_run_ms = entry.min_run_s * 1000,
    };
    return read_models(reader, entry.models, queue);
}

/** What concerns all of them together. */
static weir_status check_whole(const struct reader *reader)
{
    const struct weir_sched_snapshot snapshot = {.nodes = reader->cluster->nodes,
                                                 .n_nodes = reader->cluster->n_nodes,
                                                 .queues = reader->cluster->queues,
                                                 .n_queues = reader->cluster->n_queues};
    weir_status status = weir_sched_snapshot_check(&snapshot, reader->err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(reader->err, "%s: ", reader->what);
}

static weir_status read_document(const struct reader *reader, const json_t *document)
{
    const json_t *nodes = json_object_get(document, "nodes");
    const json_t *queues = json_object_get(document, "queues");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)document, key, value)
    {
        if (strcmp(key, "nodes") != 0 && strcmp(key, "queues") != 0) {
            return weir_error_set(reader->err, WEIR_ERR_INVALID,
                                  "%s: \"%.40s\": a cluster has \"nodes\" and \"queues\"",
                                  reader->what, key);
        }
    }
    if (json_array_size(nodes) == 0 || (queues != NULL && !json_is_array(queues))) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s: expected \"nodes\", a list of at least one, and perhaps "
                              "\"queues\", a list",
                              reader->what);
    }
    int64_t n_nodes = 0;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *count = json_object_get(json_array_get(nodes, i), "count");
        int64_t n = json_is_integer(count) ? json_integer_value(count) : 1;
        n_nodes =
            WEIR_MIN(n_nodes + WEIR_MAX(1, WEIR_MIN(n, WEIR_SIM_NODES_MAX)), WEIR_SIM_NODES_MAX);
    }
    struct weir_sim_cluster *cluster = reader->cluster;
    cluster->nodes = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_nodes, struct weir_sched_node);
    cluster->queues =
        WEIR_ARENA_ARRAY(&cluster->arena, json_array_size(queues), struct weir_sched_queue);
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        if (read_class(reader, json_array_get(nodes, i)) != WEIR_OK) {
            return weir_error_prefix(reader->err, "%s, nodes[%zu]: ", reader->what, i);
        }
    }
    for (size_t i = 0; i < json_array_size(queues); i++) {
        if (read_queue(reader, json_array_get(queues, i)) != WEIR_OK) {
            return weir_error_prefix(reader->err, "%s, queues[%zu]: ", reader->what, i);
        }
    }
    return check_whole(reader);
}

static weir_status read_yaml(const struct reader *reader, const char *text, size_t len)
{
    WEIR_AUTO(weir_json_auto_free) json_t *document = NULL;
    WEIR_TRY(weir_yaml_parse(text, len, reader->what, false, &document, reader->err));
    if (!json_is_object(document)) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s: expected \"nodes\" and \"queues\"", reader->what);
    }
    return read_document(reader, document);
}

/** Alibaba's list of nodes. */
static weir_status read_list(const struct reader *reader, const char *text, size_t len)
{
    struct csv csv;
    struct weir_error *err = reader->err;
    struct weir_sim_cluster *cluster = reader->cluster;
    int sn, cpu, memory, gpu, model;
    WEIR_TRY(csv_open(&csv, text, len, reader->what, err));
    WEIR_TRY(csv_need(&csv, "sn", &sn, err));
    WEIR_TRY(csv_need(&csv, "cpu_milli", &cpu, err));
    WEIR_TRY(csv_need(&csv, "memory_mib", &memory, err));
    WEIR_TRY(csv_need(&csv, "gpu", &gpu, err));
    WEIR_TRY(csv_need(&csv, "model", &model, err));
    size_t n_lines = 0;
    for (size_t i = 0; i < len; i++) {
        n_lines += text[i] == '\n';
    }
    cluster->nodes = WEIR_ARENA_ARRAY(
        &cluster->arena, WEIR_MIN(n_lines + 1, (size_t)WEIR_SIM_NODES_MAX), struct weir_sched_node);
    for (;;) {
        bool has;
        int64_t n_devices, mib;
        WEIR_TRY(csv_next(&csv, &has, err));
        if (!has) {
            break;
        }
        if (cluster->n_nodes == WEIR_SIM_NODES_MAX) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s: more than 200000 nodes", reader->what);
        }
        struct weir_sched_node node = {.n_tasks_max = WEIR_SCHED_UNLIMITED};
        WEIR_TRY(csv_int(&csv, cpu, 0, 1000000000, 0, &node.cpu_milli, err));
        WEIR_TRY(csv_int(&csv, memory, 0, 1000000000, 0, &mib, err));
        WEIR_TRY(csv_int(&csv, gpu, 0, 4096, 0, &n_devices, err));
        node.memory_bytes = mib << 20;
        node.n_devices = (int32_t)n_devices;
        node.name = weir_arena_memdup(&cluster->arena, csv.fields[sn].text, csv.fields[sn].len);
        if (!csv_is_empty(&csv, model)) {
            node.model =
                weir_arena_memdup(&cluster->arena, csv.fields[model].text, csv.fields[model].len);
        }
        cluster->nodes[cluster->n_nodes++] = node;
    }
    return cluster->n_nodes > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s: no nodes", reader->what);
}

weir_status weir_sim_cluster_parse(const char *text, size_t len, const char *what,
                                   struct weir_sim_cluster *out, struct weir_error *err)
{
    struct weir_sim_cluster cluster = {0};
    const char *dot = strrchr(what, '.');
    bool is_list = dot != NULL && strcmp(dot, ".csv") == 0;
    weir_arena_init(&cluster.arena, (size_t)1 << 30);
    struct reader reader = {.what = what, .cluster = &cluster, .err = err};
    weir_status status = is_list ? read_list(&reader, text, len) : read_yaml(&reader, text, len);
    if (status != WEIR_OK) {
        weir_sim_cluster_fini(&cluster);
        return status;
    }
    *out = cluster;
    return WEIR_OK;
}

weir_status weir_sim_cluster_load(const char *path, struct weir_sim_cluster *out,
                                  struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    char *text;
    size_t len;
    weir_arena_init(&arena, FILE_BYTES_MAX + ((size_t)1 << 20));
    WEIR_TRY(weir_file_read(path, FILE_BYTES_MAX, &arena, &text, &len, err));
    return weir_sim_cluster_parse(text, len, path, out, err);
}

weir_status weir_sim_cluster_uniform(int64_t n_devices, int64_t per_node,
                                     struct weir_sim_cluster *out, struct weir_error *err)
{
    if (n_devices < 1 || per_node < 1 || per_node > 4096 ||
        (n_devices - 1) / per_node >= WEIR_SIM_NODES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected at least one accelerator, 1 to 4096 on a node and at most "
                              "%d nodes",
                              WEIR_SIM_NODES_MAX);
    }
    struct weir_sim_cluster cluster = {.n_nodes = (int32_t)((n_devices - 1) / per_node + 1)};
    weir_arena_init(&cluster.arena, (size_t)1 << 30);
    cluster.nodes =
        WEIR_ARENA_ARRAY(&cluster.arena, (size_t)cluster.n_nodes, struct weir_sched_node);
    for (int32_t n = 0; n < cluster.n_nodes; n++) {
        cluster.nodes[n] = (struct weir_sched_node){
            .name = weir_arena_printf(&cluster.arena, "node-%d", n),
            .n_devices = (int32_t)WEIR_MIN(per_node, n_devices - n * per_node),
            .n_tasks_max = WEIR_SCHED_UNLIMITED,
            .cpu_milli = PLENTY,
            .memory_bytes = PLENTY};
    }
    *out = cluster;
    return WEIR_OK;
}

void weir_sim_cluster_fini(struct weir_sim_cluster *cluster)
{
    if (cluster != NULL) {
        weir_arena_fini(&cluster->arena);
        *cluster = (struct weir_sim_cluster){0};
    }
}
