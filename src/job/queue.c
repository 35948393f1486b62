#include "job/queue.h"

#include "job/cluster.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHARES_MAX_BYTES ((size_t)16 << 10)
#define WEIGHT_MAX       1000000
#define COUNT_MAX        1e7 /* Accelerators or CPUs: a cluster has fewer. */
#define MEMORY_MAX       ((double)((int64_t)1 << 55))
#define PRIORITY_MAX     1000000
#define MIN_RUN_MAX_MS   ((int64_t)30 * 24 * 3600 * 1000)
#define MINUTES_OF_DAY   1440

// clang-format off
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_queue, name,       TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_queue, parent,     TEXT, WEIR_FIELD_COLUMN, "", "Queue that it is part of; null: at the root"),
    WEIR_FIELD(weir_queue, project,    TEXT, WEIR_FIELD_COLUMN, "", "Project whose jobs wait in it; null: it only has parts"),
    WEIR_FIELD(weir_queue, priority,   INT,  0, "", "Among its siblings: the higher gets what is left over first"),
    WEIR_FIELD_SIZED(weir_queue, shares, JSON, 0, SHARES_MAX_BYTES, "", "What is its: {accelerators, cpus, memory, models}, each {guarantee, weight, limit}"),
    WEIR_FIELD_SIZED(weir_queue, times,  JSON, 0, SHARES_MAX_BYTES, "", "Other shares at times of the week: [{days, from, until, shares}], by UTC"),
    WEIR_FIELD(weir_queue, min_run_ms, INT,  0, "ms", "A job of it is not stopped for others before it has run for so long; -1: as the parent says"),
    WEIR_FIELD(weir_queue, idle_after_ms, INT, 0, "ms", "A job of it whose devices have been idle for so long is held; 0: none is; -1: as the parent says"),
    WEIR_FIELD(weir_queue, clusters,   JSON, 0, "", "Where its jobs may run that name no clusters, in order: [\"local\", \"slurm-a\"]; null: as the parent says"),
    WEIR_FIELD(weir_queue, overflow_after_ms, INT, 0, "ms", "A job of it has waited for so long before nodes are asked of a cluster for it; -1: as the parent says"),
    WEIR_FIELD(weir_queue, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was made"),
};
// clang-format on

const struct weir_resource weir_queue_resource =
    WEIR_RESOURCE("queue", "queues", weir_queue, fields);

static const char *const resource_names[] = {"accelerators", "cpus", "memory"};

const char *weir_queue_amount_name(enum weir_queue_amount amount)
{
    return resource_names[amount];
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* An amount: a number of at most three decimals, in thousandths, or of bytes; null is no bound. */
static weir_status read_amount(const json_t *share, const char *path, const char *name,
                               bool is_memory, int64_t fallback, int64_t *out,
                               struct weir_error *err)
{
    const json_t *value = json_object_get(share, name);
    double most = is_memory ? MEMORY_MAX : COUNT_MAX;
    if (value == NULL || json_is_null(value)) {
        *out = value == NULL ? fallback : WEIR_QUEUE_UNLIMITED;
        return WEIR_OK;
    }
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0) || number > most) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.%s: expected a number from 0 to %.0f, or null for no bound", path,
                              name, most);
    }
    *out = llround(is_memory ? number : number * 1000);
    return WEIR_OK;
}

static weir_status refuse_others(const json_t *object, const char *path, const char *const *known,
                                 size_t n_known, struct weir_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        size_t i = 0;
        while (i < n_known && strcmp(known[i], name) != 0) {
            i++;
        }
        if (i == n_known) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: \"%.60s\" is not known here", path,
                                  name);
        }
    }
    return WEIR_OK;
}

static weir_status read_share(const json_t *share, const char *path, bool is_memory,
                              struct weir_queue_share *out, struct weir_error *err)
{
    static const char *const known[] = {"guarantee", "weight", "limit"};
    const json_t *weight = json_object_get(share, "weight");
    *out = (struct weir_queue_share){0, 1, WEIR_QUEUE_UNLIMITED};
    if (share == NULL) {
        return WEIR_OK;
    }
    if (!json_is_object(share)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected {guarantee, weight, limit}",
                              path);
    }
    WEIR_TRY(refuse_others(share, path, known, WEIR_ARRAY_LEN(known), err));
    WEIR_TRY(read_amount(share, path, "guarantee", is_memory, 0, &out->guarantee, err));
    WEIR_TRY(read_amount(share, path, "limit", is_memory, WEIR_QUEUE_UNLIMITED, &out->limit, err));
    out->weight = weight != NULL ? json_integer_value(weight) : 1;
    if (weight != NULL &&
        (!json_is_integer(weight) || out->weight < 0 || out->weight > WEIGHT_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.weight: expected an integer from 0 to %d",
                              path, WEIGHT_MAX);
    }
    bool is_over = out->limit != WEIR_QUEUE_UNLIMITED &&
                   (out->guarantee == WEIR_QUEUE_UNLIMITED || out->guarantee > out->limit);
    return is_over ? weir_error_set(err, WEIR_ERR_INVALID,
                                    "%s: its guarantee is more than its limit", path)
                   : WEIR_OK;
}

static weir_status read_models(const json_t *models, const char *path, struct weir_arena *arena,
                               struct weir_queue_shares *out, struct weir_error *err)
{
    const char *name;
    json_t *share;
    if (models == NULL) {
        return WEIR_OK;
    }
    if (!json_is_object(models) || json_object_size(models) > WEIR_QUEUE_MODELS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected an object of at most %d models, each {guarantee, "
                              "weight, limit}",
                              path, WEIR_QUEUE_MODELS_MAX);
    }
    out->models = WEIR_ARENA_ARRAY(arena, json_object_size(models) + 1, struct weir_queue_model);
    json_object_foreach((json_t *)models, name, share)
    {
        struct weir_queue_model *model = &out->models[out->n_models];
        const char *at = weir_arena_printf(arena, "%s.%.60s", path, name);
        if (name[0] == '\0') {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: a model has no name", path);
        }
        WEIR_TRY(read_share(share, at, false, &model->share, err));
        model->model = weir_arena_strdup(arena, name);
        out->n_models++;
    }
    return WEIR_OK;
}

static weir_status read_shares(const json_t *object, const char *path, struct weir_arena *arena,
                               struct weir_queue_shares *out, struct weir_error *err)
{
    static const char *const known[] = {"accelerators", "cpus", "memory", "models"};
    *out = (struct weir_queue_shares){0};
    if (object != NULL && !json_is_object(object)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected {accelerators, cpus, memory, models}", path);
    }
    WEIR_TRY(refuse_others(object, path, known, WEIR_ARRAY_LEN(known), err));
    for (int r = 0; r < WEIR_QUEUE_N_RESOURCES; r++) {
        const char *at = weir_arena_printf(arena, "%s.%s", path, resource_names[r]);
        WEIR_TRY(read_share(json_object_get(object, resource_names[r]), at, r == WEIR_QUEUE_MEMORY,
                            &out->of[r], err));
    }
    return read_models(json_object_get(object, "models"),
                       weir_arena_printf(arena, "%s.models", path), arena, out, err);
}

weir_status weir_queue_shares_read(const char *text, const char *path, struct weir_arena *arena,
                                   struct weir_queue_shares *out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *object = NULL;
    if (text != NULL && strcmp(text, "null") != 0) {
        WEIR_TRY(weir_json_parse(text, strlen(text), path, &object, err));
    }
    return read_shares(object, path, arena, out, err);
}

/* ---- times ----------------------------------------------------------------------------------- */

static weir_status read_days(const json_t *days, int *out, struct weir_error *err)
{
    static const char *const names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    *out = days == NULL ? 127 : 0;
    for (size_t i = 0; i < json_array_size(days); i++) {
        const char *name = json_string_value(json_array_get(days, i));
        size_t day = 0;
        while (name != NULL && day < WEIR_ARRAY_LEN(names) && strcmp(names[day], name) != 0) {
            day++;
        }
        *out = name == NULL || day == WEIR_ARRAY_LEN(names) ? -1 : *out | 1 << day;
        if (*out < 0) {
            break;
        }
    }
    return *out > 0 ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_INVALID,
                                     "$.times: days: expected a list of mon, tue, wed, thu, fri, "
                                     "sat and sun");
}

static weir_status read_minute(const json_t *time, const char *name, int *out,
                               struct weir_error *err)
{
    const char *text = json_string_value(json_object_get(time, name));
    int hours, minutes, n = 0;
    if (text == NULL || sscanf(text, "%2d:%2d%n", &hours, &minutes, &n) != 2 || text[n] != '\0' ||
        hours < 0 || minutes < 0 || minutes > 59 || hours * 60 + minutes > MINUTES_OF_DAY) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.times: %s: expected HH:MM", name);
    }
    *out = hours * 60 + minutes;
    return WEIR_OK;
}

static weir_status read_time(const json_t *time, struct weir_arena *arena,
                             struct weir_queue_time *out, struct weir_error *err)
{
    static const char *const known[] = {"days", "from", "until", "shares"};
    if (!json_is_object(time)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.times: expected objects {days, from, until, shares}");
    }
    WEIR_TRY(refuse_others(time, "$.times", known, WEIR_ARRAY_LEN(known), err));
    WEIR_TRY(read_days(json_object_get(time, "days"), &out->days, err));
    WEIR_TRY(read_minute(time, "from", &out->from_min, err));
    WEIR_TRY(read_minute(time, "until", &out->until_min, err));
    return read_shares(json_object_get(time, "shares"), "$.times.shares", arena, &out->shares, err);
}

static weir_status read_times(const json_t *list, struct weir_arena *arena,
                              struct weir_queue_time **out, size_t *out_n, struct weir_error *err)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > WEIR_QUEUE_TIMES_MAX) {
        return weir_error_set(err, n > 0 ? WEIR_ERR_LIMIT : WEIR_ERR_INVALID,
                              "$.times: expected a list of at most %d", WEIR_QUEUE_TIMES_MAX);
    }
    struct weir_queue_time *times = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_queue_time);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(read_time(json_array_get(list, i), arena, &times[i], err));
    }
    *out = times;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_queue_times_read(const char *text, struct weir_arena *arena,
                                  struct weir_queue_time **out, size_t *out_n,
                                  struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *list = NULL;
    if (text == NULL || strcmp(text, "null") == 0) {
        *out = NULL;
        *out_n = 0;
        return WEIR_OK;
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), "$.times", &list, err));
    return read_times(list, arena, out, out_n, err);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The counter that says whether a copy of the queues is out of date. */
#define REVISIONS "queue_revisions"

static const char sql_revision[] = "SELECT value FROM counters WHERE name = '" REVISIONS "'";

weir_status weir_queue_revision(struct weir_txn *txn, int64_t *out, struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_revision, WEIR_NO_BINDS, 0, out, err);
}

weir_status weir_queue_list(struct weir_txn *txn, struct weir_arena *arena, struct weir_queue **out,
                            size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {.order_by = "created_ms", .limit = WEIR_QUEUES_MAX + 1};
    void *items;
    WEIR_TRY(weir_txn_list(txn, &weir_queue_resource, &query, arena, &items, out_n, NULL, err));
    *out = items;
    return WEIR_OK;
}

static const struct weir_queue *find(const struct weir_queue *queues, size_t n, const char *name)
{
    for (size_t i = 0; name != NULL && i < n; i++) {
        if (strcmp(queues[i].name, name) == 0) {
            return &queues[i];
        }
    }
    return NULL;
}

/* Where it may hang: below a queue without a project that is not below it. */
static weir_status check_place(const struct weir_queue *queue, const struct weir_queue *queues,
                               size_t n, struct weir_error *err)
{
    const struct weir_queue *parent = find(queues, n, queue->parent);
    if (queue->parent != NULL && parent == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "$.parent: there is no queue \"%.60s\"",
                              queue->parent);
    }
    if (parent != NULL && parent->project != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.parent: queue %s is project %s's: only a queue without a project "
                              "has parts",
                              parent->name, parent->project);
    }
    for (size_t steps = 0; parent != NULL; parent = find(queues, n, parent->parent), steps++) {
        if (strcmp(parent->name, queue->name) == 0 || steps > n) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.parent: queue %s would be part of itself", queue->name);
        }
    }
    for (size_t i = 0; i < n; i++) {
        bool is_child = queues[i].parent != NULL && strcmp(queues[i].parent, queue->name) == 0;
        if (is_child && queue->project != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.project: queue %s has parts (%s): a project's queue has none",
                                  queue->name, queues[i].name);
        }
        if (queue->project != NULL && queues[i].project != NULL &&
            strcmp(queues[i].project, queue->project) == 0 &&
            strcmp(queues[i].name, queue->name) != 0) {
            return weir_error_set(err, WEIR_ERR_CONFLICT,
                                  "$.project: project %s has queue %s already", queue->project,
                                  queues[i].name);
        }
    }
    return WEIR_OK;
}

/* Names that are not in the list yet are added. */
static size_t add_models(const struct weir_queue_shares *shares, const char **names, size_t n)
{
    for (size_t i = 0; i < shares->n_models; i++) {
        size_t k = 0;
        while (k < n && strcmp(names[k], shares->models[i].model) != 0) {
            k++;
        }
        if (k == n && n <= WEIR_QUEUE_MODELS_MAX) {
            names[n++] = shares->models[i].model;
        }
    }
    return n;
}

static weir_status count_models(const struct weir_queue *queue, struct weir_arena *arena,
                                const char **names, size_t *n, struct weir_error *err)
{
    struct weir_queue_shares shares;
    struct weir_queue_time *times;
    size_t n_times;
    WEIR_TRY(weir_queue_shares_read(queue->shares, "$.shares", arena, &shares, err));
    WEIR_TRY(weir_queue_times_read(queue->times, arena, &times, &n_times, err));
    *n = add_models(&shares, names, *n);
    for (size_t i = 0; i < n_times; i++) {
        *n = add_models(&times[i].shares, names, *n);
    }
    return *n <= WEIR_QUEUE_MODELS_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "$.shares.models: queues name more than %d models in all",
                                WEIR_QUEUE_MODELS_MAX);
}

/* Each is looked for when a job waits: one may be added later, and be gone. */
static weir_status check_clusters(const char *clusters, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *list = clusters != NULL ? json_loads(clusters, JSON_DECODE_ANY, NULL) : NULL;
    bool is_good = clusters == NULL || json_is_null(list) ||
                   (json_array_size(list) > 0 && json_array_size(list) <= WEIR_CLUSTERS_MAX);
    for (size_t i = 0; i < json_array_size(list) && is_good; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        is_good = name != NULL && weir_name_is_valid(name);
    }
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "$.clusters: expected a list of names of clusters, in order: "
                                    "[\"" WEIR_CLUSTER_OWN "\", \"slurm-a\"]");
}

static weir_status check_queue(const struct weir_queue *queue, const struct weir_queue *queues,
                               size_t n, struct weir_arena *arena, struct weir_error *err)
{
    const char *names[WEIR_QUEUE_MODELS_MAX + 1];
    size_t n_names = 0;
    if (queue->priority < -PRIORITY_MAX || queue->priority > PRIORITY_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.priority: expected -%d to %d", PRIORITY_MAX,
                              PRIORITY_MAX);
    }
    if (queue->min_run_ms < -1 || queue->min_run_ms > MIN_RUN_MAX_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.min_run_ms: expected -1 to %lld (30 days)",
                              (long long)MIN_RUN_MAX_MS);
    }
    if (queue->idle_after_ms < -1 || queue->idle_after_ms > MIN_RUN_MAX_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.idle_after_ms: expected -1 to %lld (30 days)",
                              (long long)MIN_RUN_MAX_MS);
    }
    if (queue->overflow_after_ms < -1 || queue->overflow_after_ms > MIN_RUN_MAX_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.overflow_after_ms: expected -1 to %lld (30 days)",
                              (long long)MIN_RUN_MAX_MS);
    }
    WEIR_TRY(check_clusters(queue->clusters, err));
    WEIR_TRY(count_models(queue, arena, names, &n_names, err));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(queues[i].name, queue->name) != 0) {
            WEIR_TRY(count_models(&queues[i], arena, names, &n_names, err));
        }
    }
    return check_place(queue, queues, n, err);
}

static weir_status check_in(struct weir_txn *txn, const struct weir_queue *queue,
                            struct weir_arena *arena, const struct weir_queue **out_old,
                            struct weir_error *err)
{
    struct weir_queue *queues;
    struct weir_project project;
    size_t n;
    WEIR_TRY(weir_queue_list(txn, arena, &queues, &n, err));
    WEIR_TRY(check_queue(queue, queues, n, arena, err));
    const struct weir_queue *old = find(queues, n, queue->name);
    if (queue->project != NULL) {
        WEIR_TRY(weir_txn_get(txn, &weir_project_resource, queue->project, arena, &project, err));
    }
    if (old == NULL && n >= WEIR_QUEUES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "there are %d queues: no more can be set",
                              WEIR_QUEUES_MAX);
    }
    *out_old = old;
    return WEIR_OK;
}

weir_status weir_queue_check(struct weir_txn *txn, const struct weir_queue *queue,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const struct weir_queue *old;
    weir_arena_init(&arena, 0);
    return check_in(txn, queue, &arena, &old, err);
}

static weir_status set_in(struct weir_txn *txn, const struct weir_queue *queue, int64_t now_ms,
                          struct weir_arena *arena, struct weir_error *err)
{
    struct weir_queue made = *queue;
    const struct weir_queue *old;
    int64_t n_changes;
    WEIR_TRY(check_in(txn, queue, arena, &old, err));
    made.created_ms = old != NULL ? old->created_ms : now_ms;
    WEIR_TRY(weir_txn_next(txn, REVISIONS, &n_changes, err));
    return weir_txn_upsert(txn, &weir_queue_resource, &made, err);
}

weir_status weir_queue_set(struct weir_txn *txn, const struct weir_queue *queue, int64_t now_ms,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return set_in(txn, queue, now_ms, &arena, err);
}

weir_status weir_queue_delete(struct weir_txn *txn, const char *name, struct weir_error *err)
{
    const struct weir_query children = {WEIR_FILTERS(WEIR_FILTER_TEXT("parent", EQ, name))};
    int64_t n, n_changes;
    WEIR_TRY(weir_txn_next(txn, REVISIONS, &n_changes, err));
    WEIR_TRY(weir_txn_count(txn, &weir_queue_resource, &children, &n, err));
    if (n > 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "queue %s has %lld parts: delete them first, or hang them elsewhere",
                              name, (long long)n);
    }
    return weir_txn_delete(txn, &weir_queue_resource, name, err);
}
