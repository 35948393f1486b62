/*
 * NCCL: the workers' GPUs sum the gradients among themselves while the backward pass runs, and each
 * updates all weights. Gradients and weights never pass the processor's memory, unless the optimiser
 * needs norms, which the processor takes (weir_optimizer_needs_all).
 *
 * Whether it can be is compared before the nets are made, over the communicator, which also notices
 * when a worker is lost. GPUs wait for half of its timeout: what they found out is told to the others by
 * a collective of the communicator after each step, and that has a deadline of its own.
 */
#include "train/exchange/nccl.h"

#include "base/log.h"
#include "nn/net_group.h"

#include <stdlib.h>
#include <string.h>

/** What a worker tells the others of its GPU. */
struct member {
    bool can;
    struct weir_net_gpu gpu;
    struct weir_error reason; /**< Why it cannot. */
};

static const char *word_of(const struct worker *worker)
{
    const char *word = worker->task->config->exchange.strategy;
    return word != NULL ? word : "auto";
}

/** Do the options ask for it, or leave it open? The same on all workers. */
static bool is_wanted(const struct worker *worker)
{
    const struct weir_train_config *config = worker->task->config;
    return worker->n_workers > 1 &&
           weir_backend_is_on_gpu(weir_backend_find(config->model.backend)) &&
           config->group.parameter_servers == 0 && !config->exchange.shard_update &&
           strcmp(word_of(worker), "memory") != 0;
}

/* ---- before the nets are made --------------------------------------------------------------- */

static void describe(const struct worker *worker, struct member *out)
{
    const struct weir_net_config config =
        train_net_config(worker->task, (uint32_t)worker->rank, (uint32_t)worker->n_workers);
    *out = (struct member){0};
    if (worker->exchange.avoids_gpus) {
        (void)weir_error_set(&out->reason, WEIR_ERR_PEER, "the GPUs' exchange failed before");
        return;
    }
    out->can = weir_net_gpu_find(&config, &out->gpu, &out->reason) == WEIR_OK;
}

/** Can these be a group? Pure. @return UNSUPPORTED with the reason. */
static weir_status check_members(const struct member *members, int n, struct weir_error *out_reason)
{
    for (int i = 0; i < n; i++) {
        if (!members[i].can) {
            return weir_error_set(out_reason, WEIR_ERR_UNSUPPORTED, "worker %d: %s", i,
                                  members[i].reason.message);
        }
        for (int j = 0; j < i; j++) {
            if (strcmp(members[i].gpu.place, members[j].gpu.place) == 0) {
                return weir_error_set(out_reason, WEIR_ERR_UNSUPPORTED,
                                      "workers %d and %d have the same GPU, and NCCL wants one for "
                                      "each: there are fewer than workers",
                                      j, i);
            }
        }
    }
    return WEIR_OK;
}

/** It cannot be: an error if it was asked for by name, else a line in the log. */
static weir_status do_without(struct worker *worker, const struct weir_error *reason,
                              struct weir_error *err)
{
    worker->exchange.is_on_gpus = false;
    if (strcmp(word_of(worker), "nccl") == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "exchange: nccl: %s", reason->message);
    }
    if (worker->rank == 0) {
        weir_log(WEIR_LOG_WARN, "gradients_pass_memory", WEIR_KV_STR("reason", reason->message),
                 WEIR_KV_STR("meaning", "workers exchange gradients through the processor's "
                                        "memory, not from GPU to GPU"));
    }
    return WEIR_OK;
}

static weir_status tell_all(const struct worker *worker, struct member *members)
{
    describe(worker, &members[worker->rank]);
    for (int r = 0; r < worker->n_workers; r++) {
        WEIR_TRY(weir_comm_broadcast(worker->comm, &members[r], sizeof members[r], r));
    }
    return WEIR_OK;
}

weir_status exchange_nccl_compare(struct worker *worker, struct weir_error *err)
{
    struct weir_error reason = {.status = WEIR_OK};
    worker->exchange.is_on_gpus = false;
    worker->exchange.gpu_failure = reason;
    if (!is_wanted(worker)) {
        return WEIR_OK;
    }
    struct member *members = calloc((size_t)worker->n_workers, sizeof *members);
    if (members == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to compare the workers' GPUs");
    }
    weir_status told = tell_all(worker, members);
    weir_status checked =
        told == WEIR_OK ? check_members(members, worker->n_workers, &reason) : WEIR_ERR_PEER;
    free(members);
    if (told != WEIR_OK) {
        return worker_comm_error(worker, told, err);
    }
    worker->exchange.is_on_gpus = checked == WEIR_OK;
    return checked == WEIR_OK ? WEIR_OK : do_without(worker, &reason, err);
}

/* ---- when they are made --------------------------------------------------------------------- */

static weir_status check_comm(void *context)
{
    return weir_comm_failure(((const struct worker *)context)->comm, NULL, NULL);
}

/** How many workers have failed at it; all learn the same. */
static weir_status count_failures(const struct worker *worker, weir_status own, int64_t *out)
{
    *out = own != WEIR_OK;
    return weir_comm_allreduce(worker->comm, out, 1, WEIR_COMM_I64);
}

/** What failed, of all that workers say: not that one waited in vain, if another knows more. */
static weir_status find_cause(const struct worker *worker, const struct weir_error *own,
                              struct weir_error *out)
{
    *out = (struct weir_error){.status = WEIR_OK};
    for (int r = 0; r < worker->n_workers; r++) {
        struct weir_error said = r == worker->rank ? *own : (struct weir_error){.status = WEIR_OK};
        WEIR_TRY(weir_comm_broadcast(worker->comm, &said, sizeof said, r));
        if (said.status != WEIR_OK &&
            (out->status == WEIR_OK ||
             (out->status == WEIR_ERR_TIMEOUT && said.status != WEIR_ERR_TIMEOUT))) {
            (void)weir_error_set(out, said.status, "worker %d: %s", r, said.message);
        }
    }
    return WEIR_OK;
}

/** @param out_opened  How it went on this worker, with `why`. @return The communicator's failure. */
static weir_status open_group(struct worker *worker, weir_status *out_opened,
                              struct weir_error *why)
{
    const struct weir_train_config *config = worker->task->config;

    struct {
        weir_status status;
        struct weir_net_group_id id;
        struct weir_error err;
    } made = {.status = WEIR_OK};

    if (worker->rank == 0) {
        made.status = weir_net_group_make_id(worker->net, &made.id, &made.err);
    }
    WEIR_TRY(weir_comm_broadcast(worker->comm, &made, sizeof made, 0));
    *out_opened = made.status;
    *why = made.err;
    if (made.status != WEIR_OK) {
        return WEIR_OK;
    }
    const struct weir_net_group group = {.id = made.id,
                                         .rank = worker->rank,
                                         .size = worker->n_workers,
                                         .timeout_ms = (int)(config->group.timeout_s * 500),
                                         .accumulates = config->loop.micro_batches > 1,
                                         .check = check_comm,
                                         .context = worker};
    *out_opened = weir_net_group_open(worker->net, &group, why);
    return WEIR_OK;
}

weir_status exchange_nccl_open(struct worker *worker, weir_status created, struct weir_error *err)
{
    struct weir_error why = {.status = WEIR_OK};
    weir_status opened = WEIR_OK, status;
    int64_t n_failed = 0;
    status = count_failures(worker, created, &n_failed);
    if (created != WEIR_OK) {
        return created;
    }
    if (status == WEIR_OK && n_failed > 0) {
        return weir_error_set(err, WEIR_ERR_PEER, "another worker could not make its net");
    }
    status = status == WEIR_OK ? open_group(worker, &opened, &why) : status;
    status = status == WEIR_OK ? count_failures(worker, opened, &n_failed) : status;
    if (status != WEIR_OK) {
        return worker_comm_error(worker, status, err);
    }
    if (n_failed == 0) {
        return WEIR_OK;
    }
    struct weir_error cause;
    weir_net_group_close(worker->net);
    status = find_cause(worker, &why, &cause);
    return status == WEIR_OK ? do_without(worker, &cause, err)
                             : worker_comm_error(worker, status, err);
}

/* ---- a step --------------------------------------------------------------------------------- */

/* The gradients' sums are there, or this worker's run would have failed: are they everywhere? A run that
 * failed for another reason ends this worker, which the others' GPUs are told by `check`. */
static weir_status wait(struct worker *worker)
{
    struct worker_exchange *exchange = &worker->exchange;
    struct weir_error why = {.status = WEIR_OK};
    int64_t n_failed = 0;
    weir_status failure = weir_net_group_failure(worker->net, &why);
    if (exchange->run_status != WEIR_OK && failure == WEIR_OK) {
        return exchange->run_status;
    }
    WEIR_TRY(count_failures(worker, failure, &n_failed));
    if (n_failed == 0) {
        return WEIR_OK;
    }
    exchange->avoids_gpus = true;
    return weir_error_set(&exchange->gpu_failure, WEIR_ERR_PEER,
                          "worker %d: GPUs of %lld of %d workers could not sum their gradients: %s",
                          worker->rank, (long long)n_failed, worker->n_workers,
                          failure != WEIR_OK ? why.message : "others'");
}

static weir_status finish(struct worker *worker)
{
    weir_net_statistics_changed(worker->net); /* they are the workers' mean now */
    return exchange_update_all(worker);
}

const struct exchange_strategy exchange_nccl = {
    .name = "nccl",
    .doc = "GPUs sum gradients among themselves, and each updates all weights",
    .post = exchange_post_nothing,
    .wait = wait,
    .finish = finish};
