#include "control/cluster/supply_line.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/uuid.h"
#include "control/cluster/allocation_step.h"
#include "control/cluster/supply_show.h"
#include "control/node_gone.h"
#include "control/queue_tree.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

/* One look. What it reads, asks and writes lies in its arena. */
struct look {
    struct supply_line *line;
    struct weir_arena arena;
    struct control control;
    int64_t now_ms;
    struct weir_cluster cluster;
    struct weir_allocation *allocations;
    struct allocation_step *steps;
    size_t n;
    json_t *document; /* The link's options point into it. */
    bool is_other;    /* What is known of the cluster has changed. */
    struct weir_pool *pools;
    size_t n_pools;
    bool has_pools;             /* They were listed. */
    struct queue_tree tree;     /* The queues, where the driver wants them. */
    struct weir_node_join join; /* For the allocation that is being asked for. */
};

static const char sql_ends[] = "UPDATE nodes SET ends_ms = :ends WHERE allocation = :id"
                               " AND left_ms = 0 AND ends_ms <> :ends";

/* ---- read ------------------------------------------------------------------------------------ */

/* A driver that wants the queues gets those of the store, and of all that it may be told: each queue of an allocation, and
 * "default" for what names none. */
static weir_status read_queues(struct look *look, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_kind *kind =
        weir_registry_get(look->line->config->drivers, look->cluster.driver);
    const struct weir_driver_ops *ops = kind != NULL ? kind->ops : NULL;
    bool is_changed;
    if (ops == NULL || ops->tend == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(queue_tree_read(&look->tree, txn, &is_changed, err));
    queue_tree_begin(&look->tree);
    queue_tree_add(&look->tree, SUPPLY_QUEUE);
    for (size_t i = 0; i < look->n; i++) {
        if (look->allocations[i].queue != NULL) {
            queue_tree_add(&look->tree, look->allocations[i].queue);
        }
    }
    queue_tree_end(&look->tree);
    return WEIR_OK;
}

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    WEIR_TRY(weir_txn_get(txn, &weir_cluster_resource, look->line->cluster, &look->arena,
                          &look->cluster, err));
    WEIR_TRY(weir_allocation_list_open(txn, look->line->cluster, &look->arena, &look->allocations,
                                       &look->n, err));
    return read_queues(look, txn, err);
}

/* ---- what is known of the cluster ------------------------------------------------------------ */

static void note(struct look *look, const char *state, const char *said)
{
    struct weir_cluster *cluster = &look->cluster;
    bool is_same = strcmp(cluster->state, state) == 0 &&
                   (said == NULL) == (cluster->said == NULL) &&
                   (said == NULL || strcmp(said, cluster->said) == 0);
    if (strcmp(state, WEIR_CLUSTER_SILENT) != 0) {
        /* Half a minute of rest is no news: each would be a write. */
        is_same = is_same && look->now_ms - cluster->heard_ms < SUPPLY_CHECK_MS / 2;
        cluster->heard_ms = is_same ? cluster->heard_ms : look->now_ms;
    }
    cluster->state = (char *)state;
    cluster->said = weir_arena_strdup(&look->arena, said);
    look->is_other = look->is_other || !is_same;
}

/* An answer that is no answer. @return False: it was one. */
static bool note_failure(struct look *look, weir_status status, const struct weir_error *err)
{
    if (status != WEIR_OK) {
        note(look, status == WEIR_ERR_UNAVAILABLE ? WEIR_CLUSTER_SILENT : WEIR_CLUSTER_WRONG,
             err->message);
    }
    return status != WEIR_OK;
}

/* What the driver keeps is of the options that it was made with. */
static void relink(struct supply_line *line, const struct weir_driver_ops *ops, const char *options)
{
    uint64_t linked = weir_hash_text(WEIR_HASH_BEGIN, options);
    if (line->ops != ops || line->linked != linked) {
        supply_line_end(line);
    }
    line->ops = ops;
    line->linked = linked;
}

void supply_line_end(struct supply_line *line)
{
    if (line->ops != NULL) {
        weir_driver_close(line->ops, &line->link);
    }
    line->ops = NULL;
}

/* @return Can it be asked anything? */
static bool read_options(struct look *look)
{
    const struct weir_registry *drivers = look->line->config->drivers;
    const struct weir_kind *kind = weir_registry_get(drivers, look->cluster.driver);
    struct weir_configured configured;
    struct weir_error err;
    look->document = json_loads(look->cluster.options, 0, NULL);
    if (kind == NULL || kind->options_bytes == 0) {
        note(look, WEIR_CLUSTER_WRONG,
             weir_arena_printf(&look->arena, "driver: this server has no driver \"%.60s\" for it",
                               look->cluster.driver));
        return false;
    }
    if (weir_kind_read(kind, look->document, "$.options", &look->arena, &configured, &err) !=
        WEIR_OK) {
        note(look, WEIR_CLUSTER_WRONG, err.message);
        return false;
    }
    relink(look->line, kind->ops, look->cluster.options);
    look->line->link.options = configured.options;
    return true;
}

struct weir_pool supplier_pool(const char *cluster, const struct weir_pool_offer *offer,
                               struct weir_arena *arena)
{
    return (struct weir_pool){.id = weir_arena_printf(arena, "%s%s%s", cluster,
                                                      cluster[0] != '\0' ? "/" : "", offer->name),
                              .cluster = (char *)cluster,
                              .name = (char *)offer->name,
                              .cpu_slots = offer->cpu_slots,
                              .memory_bytes = offer->memory_bytes,
                              .n_accelerators = offer->n_accelerators,
                              .accelerator = (char *)offer->accelerator,
                              .accelerator_parts = offer->accelerator_parts,
                              .max_nodes = offer->max_nodes,
                              .time_max_ms = offer->time_max_ms,
                              .weight = offer->weight,
                              .cpus_busy = offer->cpus_busy,
                              .why = (char *)offer->why};
}

static void list_pools(struct look *look)
{
    struct weir_pool_offer *offers;
    struct weir_error err;
    size_t n;
    if (note_failure(look,
                     look->line->ops->list(&look->line->link, &look->arena, &offers, &n, &err),
                     &err)) {
        return;
    }
    look->pools = WEIR_ARENA_ARRAY(&look->arena, n + 1, struct weir_pool);
    for (size_t i = 0; i < n; i++) {
        look->pools[look->n_pools++] = supplier_pool(look->cluster.name, &offers[i], &look->arena);
    }
    look->has_pools = true;
    note(look, WEIR_CLUSTER_READY, NULL);
}

/* Whatever else lacks: what runs over there is not only ours. */
static void tend(struct look *look)
{
    struct weir_error err;
    if (look->line->ops->tend != NULL) {
        (void)note_failure(look,
                           look->line->ops->tend(&look->line->link, look->tree.rows,
                                                 (size_t)look->tree.n_rows, &err),
                           &err);
    }
}

/* Now and then, and soon after the options have changed or something lacked. */
static void check(struct look *look)
{
    struct supply_line *line = look->line;
    const char *missing = NULL;
    struct weir_error err;
    uint64_t options = weir_hash_text(WEIR_HASH_BEGIN, look->cluster.options) | 1;
    if (weir_mono_ms() < line->check_due_ms && options == line->checked) {
        return;
    }
    line->checked = options;
    if (!note_failure(look, look->line->ops->check(&look->line->link, &look->arena, &missing, &err),
                      &err)) {
        if (missing != NULL) {
            note(look, WEIR_CLUSTER_WRONG, missing);
        } else {
            list_pools(look);
        }
    }
    line->check_due_ms = weir_mono_ms() + SUPPLY_CHECK_MS;
}

static bool has_closed_pool(const struct look *look)
{
    bool has = false;
    for (size_t i = 0; i < look->n_pools; i++) {
        has = has || look->pools[i].why != NULL;
    }
    return has;
}

/* One that is not ready is checked again soon: also one that has fallen silent since, and one of which a pool is closed. */
static void look_soon(struct look *look)
{
    int64_t soon_ms = weir_mono_ms() + SUPPLY_CHECK_SOON_MS;
    if (strcmp(look->cluster.state, WEIR_CLUSTER_READY) != 0 || has_closed_pool(look)) {
        look->line->check_due_ms = WEIR_MIN(look->line->check_due_ms, soon_ms);
    }
}

/* ---- allocations ----------------------------------------------------------------------------- */

/* How all of them are that it may know. @return False: it does not answer, and nothing is known. */
static bool poll(struct look *look, struct weir_allocation_report *reports)
{
    const char **tags = WEIR_ARENA_ARRAY(&look->arena, look->n + 1, const char *);
    struct weir_error err;
    for (size_t i = 0; i < look->n; i++) {
        tags[i] = look->allocations[i].id;
    }
    weir_status status = look->n > 0 ? look->line->ops->poll(&look->line->link, tags, look->n,
                                                             &look->arena, reports, &err)
                                     : WEIR_OK;
    if (status != WEIR_OK) {
        note(look, WEIR_CLUSTER_SILENT, err.message);
    }
    return status == WEIR_OK;
}

/* A secret for its nodes, and that it is asked for: durable before it is. */
static weir_status begin_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    WEIR_TRY(weir_node_join_insert(txn, &look->join, look->now_ms, err));
    return weir_allocation_begin(txn, look->join.allocation, look->now_ms, err);
}

static weir_status begin(struct look *look, struct weir_allocation *allocation,
                         char secret[WEIR_SECRET_BYTES], struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    allocation->asked_ms = look->now_ms;
    look->join = (struct weir_node_join){.id = id,
                                         .secret_hash = hash,
                                         .created_by = "system",
                                         .created_ms = look->now_ms,
                                         .expires_ms = look->now_ms + SUPPLY_JOIN_MS,
                                         .n_nodes = allocation->n_nodes,
                                         .allocation = allocation->id};
    return weir_store_write(look->line->config->store, begin_in, look, err);
}

static weir_status request(struct look *look, const struct weir_allocation *allocation,
                           const char *secret, struct weir_error *err)
{
    const struct supplier_config *config = look->line->config;
    WEIR_AUTO(weir_json_auto_free)
    json_t *pod = allocation->pod != NULL ? json_loads(allocation->pod, 0, NULL) : NULL;
    const struct weir_node_request wanted = {
        .tag = allocation->id,
        .pool = allocation->pool,
        .n_nodes = allocation->n_nodes,
        .time_ms = allocation->time_ms,
        .cpu_slots = allocation->cpu_slots,
        .memory_bytes = allocation->memory_bytes,
        .n_accelerators = allocation->n_accelerators,
        .accelerator_milli = allocation->accelerator_milli,
        .accelerator = allocation->accelerator,
        .queue = allocation->queue,
        .pod = pod,
        .text = allocation->job != NULL ? weir_arena_printf(&look->arena, "job %s", allocation->job)
                                        : NULL,
        .agent = {.server = config->server_url, .secret = secret, .ca_file = config->ca_file}};
    return look->line->ops->request(&look->line->link, &wanted, err);
}

/* What it refuses has ended; when it does not answer, the next look asks. */
static void ask(struct look *look, size_t i)
{
    struct weir_allocation *allocation = &look->allocations[i];
    char secret[WEIR_SECRET_BYTES];
    struct weir_error err;
    weir_status status = begin(look, allocation, secret, &err);
    if (status == WEIR_ERR_CONFLICT) {
        return; /* It was released meanwhile. */
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "allocation_not_noted", WEIR_KV_STR("id", allocation->id),
                 WEIR_KV_STR("error", err.message));
        return;
    }
    look->steps[i].is_changed = true;
    switch (request(look, allocation, secret, &err)) {
    case WEIR_OK:
        allocation->state = (char *)WEIR_ALLOCATION_PENDS;
        break;
    case WEIR_ERR_UNAVAILABLE:
        note(look, WEIR_CLUSTER_SILENT, err.message);
        allocation->why = weir_arena_strdup(&look->arena, err.message);
        break;
    default:
        allocation_refuse(allocation, weir_arena_strdup(&look->arena, err.message), look->now_ms);
        look->steps[i].has_ended = true;
    }
}

static void release(struct look *look, const struct weir_allocation *allocation)
{
    struct weir_error err;
    if (look->line->ops->release(&look->line->link, allocation->id, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "allocation_not_released", WEIR_KV_STR("id", allocation->id),
                 WEIR_KV_STR("error", err.message));
    }
}

/* Nothing is asked of one that is being drained, or that has something missing: what is wanted waits. */
static bool may_ask(const struct look *look)
{
    return !look->cluster.is_draining && strcmp(look->cluster.state, WEIR_CLUSTER_READY) == 0;
}

static void bring_about(struct look *look)
{
    struct weir_allocation_report *reports =
        WEIR_ARENA_ARRAY(&look->arena, look->n + 1, struct weir_allocation_report);
    size_t n_asked = 0;
    if (!poll(look, reports)) {
        return;
    }
    for (size_t i = 0; i < look->n; i++) {
        struct weir_allocation *allocation = &look->allocations[i];
        look->steps[i] = allocation_step(allocation, &reports[i], look->now_ms, &look->arena);
        if (look->steps[i].asks && n_asked < SUPPLY_ASKS_MAX && may_ask(look)) {
            ask(look, i);
            n_asked++;
        } else if (look->steps[i].releases) {
            release(look, allocation);
        }
    }
}

/* ---- write ----------------------------------------------------------------------------------- */

static const char *tell_end(struct look *look, const struct weir_allocation *allocation)
{
    return weir_arena_printf(&look->arena, "its nodes of cluster %s were given back%s%s",
                             allocation->cluster, allocation->why != NULL ? ": " : "",
                             allocation->why != NULL ? allocation->why : "");
}

static weir_status end_nodes(struct look *look, struct weir_txn *txn,
                             const struct weir_allocation *allocation, struct weir_error *err)
{
    char **nodes;
    size_t n;
    const char *why = tell_end(look, allocation);
    WEIR_TRY(weir_allocation_nodes(txn, allocation->id, &look->arena, &nodes, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(control_node_gone(&look->control, txn, nodes[i],
                                   allocation_ended_as_foreseen(allocation), why, err));
    }
    WEIR_TRY(weir_node_join_end(txn, allocation->id, look->now_ms, err));
    return control_log(&look->control, txn, "jobs", "allocation_ended",
                       weir_arena_printf(&look->arena, "allocation/%s", allocation->id),
                       weir_arena_printf(&look->arena, "Allocation %s (%s) has ended, %s%s%s.",
                                         allocation->id,
                                         allocation->their_id != NULL ? allocation->their_id : "-",
                                         allocation->ending, allocation->why != NULL ? ": " : "",
                                         allocation->why != NULL ? allocation->why : ""),
                       err);
}

static weir_status write_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    json_array_clear(look->control.publish);
    if (look->is_other) {
        WEIR_TRY(weir_cluster_note(txn, &look->cluster, err));
    }
    if (look->has_pools) {
        WEIR_TRY(weir_pools_put(txn, look->cluster.name, look->pools, look->n_pools, err));
    }
    for (size_t i = 0; i < look->n; i++) {
        const struct weir_allocation *allocation = &look->allocations[i];
        if (!look->steps[i].is_changed) {
            continue;
        }
        WEIR_TRY(weir_allocation_save(txn, allocation, err));
        WEIR_TRY(weir_txn_exec(txn, sql_ends,
                               WEIR_BINDS(WEIR_BIND_INT("ends", allocation->ends_ms),
                                          WEIR_BIND_TEXT("id", allocation->id)),
                               NULL, err));
        if (look->steps[i].has_ended) {
            WEIR_TRY(end_nodes(look, txn, allocation, err));
        }
    }
    return WEIR_OK;
}

static bool has_news(const struct look *look)
{
    bool is_any = look->is_other || look->has_pools;
    for (size_t i = 0; i < look->n; i++) {
        is_any = is_any || look->steps[i].is_changed;
    }
    return is_any;
}

static void show(struct look *look)
{
    const struct supply_show what = {.config = look->line->config,
                                     .cluster = look->cluster.name,
                                     .ops = look->line->ops,
                                     .link = &look->line->link,
                                     .now_ms = look->now_ms,
                                     .arena = &look->arena};
    supply_show(&what);
}

static weir_status look_at(struct look *look, struct weir_error *err)
{
    const struct supplier_config *config = look->line->config;
    WEIR_TRY(weir_store_read(config->store, read_in, look, err));
    look->steps = WEIR_ARENA_ARRAY(&look->arena, look->n + 1, struct allocation_step);
    bool is_linked = read_options(look);
    if (is_linked) {
        check(look);
        tend(look);
        bring_about(look);
        look_soon(look);
    }
    if (has_news(look)) {
        WEIR_TRY(weir_store_write(config->store, write_in, look, err));
        control_publish_all(&config->listener, look->control.publish);
        if (config->changed != NULL) {
            config->changed(config->changed_context);
        }
    }
    if (is_linked) {
        show(look);
    }
    return WEIR_OK;
}

weir_status supply_line_look(struct supply_line *line, struct weir_error *err)
{
    const struct supplier_config *config = line->config;
    struct look look = {.line = line, .now_ms = weir_clock_now_ms(config->clock)};
    weir_arena_init(&look.arena, (size_t)1 << 30);
    queue_tree_init(&look.tree);
    look.control = (struct control){.arena = &look.arena,
                                    .now_ms = look.now_ms,
                                    .actor = "system",
                                    .state_dir = config->state_dir,
                                    .server_url = config->server_url,
                                    .publish = json_array()};
    weir_status status = look_at(&look, err);
    json_decref(look.control.publish);
    json_decref(look.document);
    queue_tree_fini(&look.tree);
    weir_arena_fini(&look.arena);
    return status;
}
