/*
 * The driver of the machine on which it runs: one pool with one node, whose agent is a process beside this one. It has
 * room for one allocation, whatever its tag: the agent of its folder (cluster/local_agent.h), which outlives us.
 */
#include "cluster/cluster.h"
#include "cluster/driver.h"
#include "cluster/local_agent.h"

#include "base/file.h"

#include <string.h>
#include <unistd.h>

#define POOL "local"

static weir_status check(struct weir_driver_link *link, struct weir_arena *arena,
                         const char **out_missing, struct weir_error *err)
{
    const struct weir_local_agent *agent = link->options;
    (void)err;
    *out_missing = weir_path_exists(agent->dir) && access(agent->dir, W_OK) != 0
                       ? weir_arena_printf(arena, "the folder %s cannot be written", agent->dir)
                       : NULL;
    return WEIR_OK;
}

static weir_status list(struct weir_driver_link *link, struct weir_arena *arena,
                        struct weir_pool_offer **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_local_agent *agent = link->options;
    json_t *inventory = weir_cluster_inventory(agent->cpu_slots);
    const json_t *accelerators =
        json_object_get(json_object_get(inventory, "inventory"), "accelerators");
    const char *model =
        json_string_value(json_object_get(json_array_get(accelerators, 0), "model"));
    (void)err;
    struct weir_pool_offer *pool = WEIR_ARENA_ARRAY(arena, 1, struct weir_pool_offer);
    *pool = (struct weir_pool_offer){
        .cpus_busy = -1,
        .name = POOL,
        .cpu_slots = json_integer_value(json_object_get(inventory, "cpu_slots")),
        .memory_bytes = json_integer_value(json_object_get(inventory, "memory_bytes")),
        .n_accelerators = (int64_t)json_array_size(accelerators),
        .accelerator = weir_arena_strdup(arena, model),
        .max_nodes = 1,
        .weight = 1};
    json_decref(inventory);
    *out = pool;
    *out_n = 1;
    return WEIR_OK;
}

static weir_status request(struct weir_driver_link *link, const struct weir_node_request *request,
                           struct weir_error *err)
{
    if (strcmp(request->pool, POOL) != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "this machine has the pool " POOL " alone, not \"%s\"",
                              request->pool);
    }
    if (request->n_nodes != 1) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "this machine is one node, not %lld",
                              (long long)request->n_nodes);
    }
    if (request->time_ms != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "this machine's node has no end: it is there until it is released");
    }
    return weir_local_agent_start(link->options, err);
}

/* Whatever the tags are: there is one agent. */
static weir_status poll(struct weir_driver_link *link, const char *const *tags, size_t n,
                        struct weir_arena *arena, struct weir_allocation_report *out,
                        struct weir_error *err)
{
    const struct weir_local_agent *agent = link->options;
    bool is_running = weir_local_agent_is_running(agent->dir);
    (void)tags;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const char **nodes = WEIR_ARENA_ARRAY(arena, 1, const char *);
        nodes[0] = agent->node != NULL ? weir_arena_strdup(arena, agent->node)
                                       : weir_cluster_node_name(arena);
        out[i] =
            is_running
                ? (struct weir_allocation_report){.phase = WEIR_ALLOCATION_RUNNING,
                                                  .nodes = nodes,
                                                  .n_nodes = 1}
                : (struct weir_allocation_report){.phase = WEIR_ALLOCATION_ENDED,
                                                  .why = "the agent of this machine had ended"};
    }
    return WEIR_OK;
}

static weir_status release(struct weir_driver_link *link, const char *tag, struct weir_error *err)
{
    const struct weir_local_agent *agent = link->options;
    (void)tag;
    return weir_local_agent_end(agent->dir, err);
}

static const struct weir_driver_ops ops = {
    .check = check, .list = list, .request = request, .poll = poll, .release = release};

const struct weir_kind weir_driver_local = {
    .name = "local",
    .doc = "The server's own machine: its agent is a process that outlives the server.",
    .ops = &ops,
};
