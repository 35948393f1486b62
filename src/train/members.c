#include "comm/elastic.h"
#include "train/report.h"
#include "train/worker.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/** Member status: what each member sends the others before they rely on it. */
enum member_status {
    MEMBER_STEP,              /**< Its next step, plus 1; 0: it knows nothing yet. */
    MEMBER_PENDING_EPOCH_END, /**< Is the end of an epoch not done? */
    MEMBER_TASK,              /**< Digest of what is trained. */
    MEMBER_NO_MEMORY,         /**< Is there no memory for its share? */
    MEMBER_STATUS_COUNT
};

struct member_statuses {
    int64_t of[WEIR_COMM_MAX_RANKS][MEMBER_STATUS_COUNT];
};

bool worker_can_regroup(const struct worker *worker, weir_status status)
{
    /* A lone worker cannot lose another, and its step may have been half done. */
    return train_is_elastic(worker->task->config) && worker->comm != NULL &&
           !worker->updates_in_backward &&
           (status == WEIR_ERR_PEER || status == WEIR_ERR_TIMEOUT) &&
           (weir_comm_failure(worker->comm, NULL, NULL) != WEIR_OK ||
            worker->exchange.gpu_failure.status != WEIR_OK);
}

/* ---- one group's end ------------------------------------------------------------------------ */

/** Free the net before the communicator's memory, in which its gradients lie. */
static weir_status take_apart(struct worker *worker, struct weir_error *err)
{
    worker_forget_ahead(worker);
    weir_loader_destroy(worker->loader);
    worker->loader = NULL;
    if (worker->net == NULL) {
        return WEIR_OK;
    }
    size_t n = 0;
    const float *weights = weir_net_weights(worker->net, &n);
    if (worker->has_state && worker->kept_weights == NULL) {
        worker->kept_weights = malloc(n * sizeof *weights);
        if (worker->kept_weights == NULL) {
            return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to keep the weights");
        }
        memcpy(worker->kept_weights, weights, worker->n_gradients * sizeof *weights);
        /* The step that was cut short has changed the net's own. */
        memcpy(worker->kept_weights + worker->n_gradients, worker->kept_statistics,
               worker->n_statistics * sizeof *weights);
    }
    weir_profile_destroy(worker->trace.profile); /* a record of the old net's steps: it ends here */
    worker->trace.profile = NULL;
    if (worker->has_state) {
        worker_keep_scale(worker);
    }
    weir_net_destroy(worker->net);
    worker->net = NULL;
    worker->gradients = worker->run_gradients = worker->statistics = NULL;
    return WEIR_OK;
}

/* ---- the next one's beginning --------------------------------------------------------------- */

static weir_status plan(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(worker_plan_net(worker, err));
    if (worker->sums == NULL) {
        WEIR_TRY(worker_make_state(worker, err));
    }
    if (worker->kept_weights != NULL) {
        size_t n = 0;
        float *weights = weir_net_weights(worker->net, &n);
        memcpy(weights, worker->kept_weights, n * sizeof *weights);
        weir_net_weights_changed(worker->net);
        free(worker->kept_weights);
        worker->kept_weights = NULL;
        WEIR_TRY(worker_set_scale(worker));
    }
    worker_exchange_choose(worker);
    return WEIR_OK;
}

/** Digest of what two members must have in common. */
static int64_t task_digest(const struct train_task *task)
{
    char sha[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(task->identity, strlen(task->identity), sha);
    sha[15] = '\0';
    return (int64_t)strtoll(sha, NULL, 16);
}

/** All members get the status of all. */
static weir_status compare(struct worker *worker, bool is_planned, struct member_statuses *out,
                           struct weir_error *err)
{
    memset(out, 0, sizeof *out);
    int64_t *own = out->of[worker->rank];
    own[MEMBER_STEP] = worker->has_state ? (int64_t)worker->state.step + 1 : 0;
    own[MEMBER_PENDING_EPOCH_END] = worker->has_pending_epoch_end;
    own[MEMBER_TASK] = task_digest(worker->task);
    own[MEMBER_NO_MEMORY] = !is_planned;
    weir_status status = weir_comm_allreduce(
        worker->comm, out->of, (size_t)worker->n_workers * MEMBER_STATUS_COUNT, WEIR_COMM_I64);
    return status == WEIR_OK ? WEIR_OK : worker_comm_error(worker, status, err);
}

static bool has_member(const struct progress_group *group, int member)
{
    for (int i = 0; i < group->n; i++) {
        if (group->members[i] == member) {
            return true;
        }
    }
    return false;
}

/** The root is the member that has reached the furthest step; is_shared: all members have. */
static weir_status choose_root(struct worker *worker, const struct member_statuses *statuses,
                               int *out_root, bool *out_is_shared, struct weir_error *err)
{
    int root = 0;
    *out_is_shared = true;
    for (int r = 0; r < worker->n_workers; r++) {
        if (statuses->of[r][MEMBER_NO_MEMORY] != 0) {
            return weir_error_set(err, WEIR_ERR_PEER,
                                  "worker %d has no memory for its part of the batch among %d",
                                  weir_comm_member(worker->comm, r), worker->n_workers);
        }
        if (statuses->of[r][MEMBER_STEP] > statuses->of[root][MEMBER_STEP]) {
            root = r;
        }
    }
    for (int r = 0; r < worker->n_workers; r++) {
        int member = weir_comm_member(worker->comm, r);
        if (statuses->of[r][MEMBER_STEP] == 0 && !has_member(&worker->newcomers, member)) {
            worker->newcomers.members[worker->newcomers.n++] = member;
        }
        *out_is_shared =
            *out_is_shared && statuses->of[r][MEMBER_STEP] == statuses->of[root][MEMBER_STEP];
        worker->has_pending_epoch_end =
            worker->has_pending_epoch_end || statuses->of[r][MEMBER_PENDING_EPOCH_END] != 0;
    }
    if (statuses->of[root][MEMBER_STEP] == 0) {
        return weir_error_set(err, WEIR_ERR_PEER,
                              "nobody is left who knows where the training stands");
    }
    if (statuses->of[worker->rank][MEMBER_TASK] != statuses->of[root][MEMBER_TASK]) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "join: this worker was given another training than the group's: other "
            "options or other data");
    }
    *out_root = root;
    return WEIR_OK;
}

static weir_status sync_once(struct worker *worker, struct weir_error *err)
{
    const struct weir_train_config *config = worker->task->config;
    struct member_statuses statuses;
    int root = 0;
    bool is_shared = false;
    worker->rank = weir_comm_rank(worker->comm);
    worker->n_workers = weir_comm_size(worker->comm);
    if (worker->n_workers < config->group.min_workers) {
        return weir_error_set(err, WEIR_ERR_PEER,
                              "%d workers are left, fewer than min_workers %lld", worker->n_workers,
                              (long long)config->group.min_workers);
    }
    weir_status planned = plan(worker, err);
    if (planned != WEIR_OK && weir_comm_failure(worker->comm, NULL, NULL) != WEIR_OK) {
        return planned;
    }
    WEIR_TRY(compare(worker, planned == WEIR_OK, &statuses, err));
    WEIR_TRY(choose_root(worker, &statuses, &root, &is_shared, err));
    if (!is_shared) {
        /* A member that is behind has half of two states if this fails. */
        worker->has_state =
            statuses.of[worker->rank][MEMBER_STEP] == statuses.of[root][MEMBER_STEP];
        weir_status status = worker_share_state(worker, root);
        if (status != WEIR_OK) {
            return worker_comm_error(worker, status, err);
        }
    }
    WEIR_TRY(worker_start_loader(worker, err));
    return worker->rank == 0 && !worker->reporting.has_begun ? worker_start_reports(worker, err)
                                                             : WEIR_OK;
}

weir_status worker_sync_group(struct worker *worker, struct weir_error *err)
{
    weir_status status = sync_once(worker, err);
    while (status != WEIR_OK && worker_can_regroup(worker, status)) {
        WEIR_TRY(take_apart(worker, err));
        WEIR_TRY(weir_comm_regroup(&worker->comm, err));
        status = sync_once(worker, err);
    }
    return status;
}

/* ---- from one group to the next ------------------------------------------------------------- */

static void list_members(const struct worker *worker, struct progress_group *out)
{
    out->n = weir_comm_size(worker->comm);
    for (int r = 0; r < out->n; r++) {
        out->members[r] = weir_comm_member(worker->comm, r);
    }
}

/** Members in one group and not in the other; a newcomer with an old number is another member. */
static void find_changes(const struct worker *worker, const struct progress_group *before,
                         const struct progress_group *now, struct progress_change *out)
{
    for (int i = 0; i < before->n; i++) {
        int member = before->members[i];
        if (!has_member(now, member) || has_member(&worker->newcomers, member)) {
            out->lost.members[out->lost.n++] = member;
        }
    }
    for (int i = 0; i < now->n; i++) {
        int member = now->members[i];
        if (!has_member(before, member) || has_member(&worker->newcomers, member)) {
            out->joined.members[out->joined.n++] = member;
        }
    }
}

static void report_change(struct worker *worker, const struct progress_group *before,
                          double seconds)
{
    struct progress_group now;
    struct progress_change change = {.step = worker->state.step, .seconds = seconds};
    list_members(worker, &now);
    change.n_workers = now.n;
    find_changes(worker, before, &now, &change);
    for (int i = 0; i < change.lost.n; i++) {
        weir_log(WEIR_LOG_WARN, "worker_lost", WEIR_KV_INT("worker", change.lost.members[i]),
                 WEIR_KV_INT("left", now.n), WEIR_KV_INT("step", (int64_t)worker->state.step),
                 WEIR_KV_F64("seconds", seconds));
    }
    if (worker->rank == 0) {
        struct train_tick tick = {.step = worker->state.step};
        train_tick_add(&tick, "workers", now.n);
        train_tick_add(&tick, "regroup_seconds", seconds);
        worker_tell(worker, &tick);
        train_progress_members(&worker->reporting.progress, &change);
    }
}

weir_status worker_regroup(struct worker *worker, struct weir_error *err)
{
    struct progress_group before;
    const int64_t begin_ms = weir_mono_ms();
    worker->newcomers.n = 0;
    list_members(worker, &before);
    WEIR_TRY(take_apart(worker, err));
    WEIR_TRY(weir_comm_regroup(&worker->comm, err));
    WEIR_TRY(worker_sync_group(worker, err));
    report_change(worker, &before, (double)(weir_mono_ms() - begin_ms) / 1000);
    return WEIR_OK;
}
