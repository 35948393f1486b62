/*
 * The driver of a cluster under Slurm: an allocation is one job of Slurm's, named as its tag, of one agent per node. It asks
 * by Slurm's commands (slurm/command.h) and keeps nothing: whatever is known of an allocation, Slurm is asked.
 */
#include "cluster/driver.h"

#include "cluster/slurm/check.h"
#include "cluster/slurm/job.h"
#include "cluster/slurm/pool.h"
#include "cluster/slurm/submission.h"

#include <string.h>

static weir_status check(struct weir_driver_link *link, struct weir_arena *arena,
                         const char **out_missing, struct weir_error *err)
{
    return slurm_check(link->options, arena, out_missing, err);
}

static weir_status list(struct weir_driver_link *link, struct weir_arena *arena,
                        struct weir_pool_offer **out, size_t *out_n, struct weir_error *err)
{
    struct slurm_pool *pools;
    size_t n;
    WEIR_TRY(slurm_pools_list(link->options, arena, &pools, &n, err));
    struct weir_pool_offer *offers = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_pool_offer);
    for (size_t i = 0; i < n; i++) {
        offers[i] = pools[i].offer;
    }
    *out = offers;
    *out_n = n;
    return WEIR_OK;
}

static weir_status find_pool(const struct slurm_options *options, const char *name,
                             struct weir_arena *arena, const struct slurm_pool **out,
                             struct weir_error *err)
{
    struct slurm_pool *pools;
    size_t n;
    WEIR_TRY(slurm_pools_list(options, arena, &pools, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(pools[i].offer.name, name) == 0) {
            *out = &pools[i];
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "the cluster has no pool \"%.80s\"", name);
}

/* Has a job of that name ever been asked for? */
static weir_status is_known(const struct slurm_options *options, const char *tag,
                            struct weir_arena *arena, bool *out, struct weir_error *err)
{
    struct slurm_jobs jobs = {0};
    WEIR_TRY(slurm_jobs_queued(options, tag, arena, &jobs, err));
    if (jobs.n == 0) {
        WEIR_TRY(slurm_jobs_past(options, &tag, 1, arena, &jobs, err));
    }
    *out = jobs.n > 0;
    return WEIR_OK;
}

static weir_status submit(const struct slurm_options *options,
                          const struct weir_node_request *request, struct weir_arena *arena,
                          struct weir_error *err)
{
    const struct slurm_pool *pool = NULL;
    WEIR_TRY(find_pool(options, request->pool, arena, &pool, err));
    return slurm_submit(options, pool, request, false, arena, err);
}

static weir_status request(struct weir_driver_link *link, const struct weir_node_request *request,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const struct slurm_options *options = link->options;
    bool is_there = false;
    weir_arena_init(&arena, 0);
    const char *wrong = slurm_options_wrong(options, &arena);
    if (wrong != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s", wrong);
    }
    WEIR_TRY(is_known(options, request->tag, &arena, &is_there, err));
    return is_there ? WEIR_OK : submit(options, request, &arena, err);
}

static weir_status poll(struct weir_driver_link *link, const char *const *tags, size_t n,
                        struct weir_arena *arena, struct weir_allocation_report *out,
                        struct weir_error *err)
{
    return slurm_poll(link->options, tags, n, arena, out, err);
}

static weir_status release(struct weir_driver_link *link, const char *tag, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct slurm_jobs jobs;
    weir_arena_init(&arena, 0);
    WEIR_TRY(slurm_jobs_queued(link->options, tag, &arena, &jobs, err));
    return slurm_jobs_cancel(link->options, &jobs, true, &arena, err);
}

static const struct weir_option options[] = {
    WEIR_OPT_JSON(slurm_options, partition, "partition", TEXT, 0, NULL, 0, 0,
                  "Partition whose nodes are asked for, or several with commas between; without it "
                  "Slurm's default one"),
    WEIR_OPT_JSON(slurm_options, account, "account", TEXT, 0, NULL, 0, 0,
                  "Account in Slurm that pays; without it the user's default one"),
    WEIR_OPT_JSON(slurm_options, qos, "qos", TEXT, 0, NULL, 0, 0,
                  "QOS in Slurm; without it the account's default one"),
    WEIR_OPT_JSON(slurm_options, queues, "queues", JSON, 0, NULL, 0, 0,
                  "Account and QOS of allocations for one queue: {\"vision\": {\"account\": "
                  "\"vis\", \"qos\": \"guar\"}}"),
    WEIR_OPT_JSON(slurm_options, constraint, "constraint", TEXT, 0, NULL, 0, 0,
                  "Features that nodes must have"),
    WEIR_OPT_JSON(slurm_options, reservation, "reservation", TEXT, 0, NULL, 0, 0,
                  "Reservation whose nodes are asked for"),
    WEIR_OPT_JSON(slurm_options, exclusive, "exclusive", BOOL, 0, "false", 0, 0,
                  "Share no node with jobs of others: an allocation has all of its nodes, whatever "
                  "it asks for"),
    WEIR_OPT_JSON(slurm_options, time, "time", TEXT, 0, NULL, 0, 0,
                  "For how long an allocation is asked for if its job does not say: \"8h\"; "
                  "without it as long as the partition has it"),
    WEIR_OPT_JSON(slurm_options, lines, "lines", TEXTS, 0, NULL, 0, 0,
                  "Further options of sbatch: [\"--licenses=matlab:1\"]"),
    WEIR_OPT_JSON(
        slurm_options, shares, "shares", TEXTS, 0, NULL, 0, 0,
        "Folders of a file system that all nodes have, which tasks see as theirs: [\"/home\", "
        "\"/scratch:rw\"], to read or (:rw) to change"),
    WEIR_OPT_JSON(slurm_options, bin, "bin", TEXT, 0, NULL, 0, 0,
                  "Folder of Slurm's commands on the server's machine; without it PATH"),
    WEIR_OPT_JSON(slurm_options, conf, "conf", TEXT, 0, NULL, 0, 0,
                  "The cluster's slurm.conf on the server's machine; without it SLURM_CONF, else "
                  "Slurm's own place"),
    WEIR_OPT_JSON(
        slurm_options, server, "server", TEXT, 0, NULL, 0, 0,
        "Address of this server as the nodes reach it; without it the one by which it is known"),
    WEIR_OPT_JSON(slurm_options, ca_file, "ca-file", TEXT, 0, NULL, 0, 0,
                  "Authorities to trust for https, a file of the nodes; without it the system's"),
    WEIR_OPT_JSON(slurm_options, program, "program", TEXT, 0, NULL, 0, 0,
                  "The program weir on the nodes; without it \"weir\", as PATH finds it"),
    WEIR_OPT_JSON(slurm_options, dir, "dir", TEXT, 0, NULL, 0, 0,
                  "Folder on the nodes in which each agent makes one of its own, and removes it at "
                  "its end; without it the node's temporary one"),
    WEIR_OPT_JSON(slurm_options, network, "network", TEXT, 0, NULL, 0, 0,
                  "Network of the nodes by which ranks reach each other: \"10.1.0.0/16\""),
};

/* Account and QOS: names of Slurm's, in which there is no "/". */
static const char *payer(const void *configured, const char *queue, struct weir_arena *arena)
{
    const struct slurm_payer pays = slurm_options_payer(configured, queue);
    return weir_arena_printf(arena, "%s/%s", pays.account != NULL ? pays.account : "",
                             pays.qos != NULL ? pays.qos : "");
}

static const struct weir_driver_ops ops = {.check = check,
                                           .list = list,
                                           .request = request,
                                           .poll = poll,
                                           .release = release,
                                           .guess = slurm_guess,
                                           .payer = payer};

const struct weir_kind weir_driver_slurm = {
    .name = "slurm",
    .doc = "A cluster under Slurm: an allocation is a job of Slurm's, of one agent per node, which "
           "the server's user submits with Slurm's commands.",
    .ops = &ops,
    WEIR_KIND_OPTIONS(slurm_options, options),
};
