#include "comm/elastic.h"
#include "train/report.h"
#include "train/worker.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/** What a member tells the others before they rely on it. */
enum standing {
    STANDING_STEP,   /**< Its next step, plus 1; 0: it knows nothing yet. */
    STANDING_OWES,   /**< The end of an epoch is not done. */
    STANDING_TASK,   /**< Digest of what is trained. */
    STANDING_CANNOT, /**< It has no memory for its share. */
    STANDING_COUNT
};

struct standings {
    int64_t of[WEIR_COMM_MAX_RANKS][STANDING_COUNT];
};

bool worker_can_regroup(const struct worker *worker, weir_status status)
{
    /* Nobody can be lost to a lone worker, and its step may have been half done. */
    return train_is_elastic(worker->task->config) && worker->comm != NULL &&
           !worker->updates_in_backward &&
           (status == WEIR_ERR_PEER || status == WEIR_ERR_TIMEOUT) &&
           weir_comm_failure(worker->comm, NULL, NULL) != WEIR_OK;
}

/* ---- one group's end ---------------------------------------------------------------------- */

/** The communicator's memory goes, and with it the net whose gradients lie there. */
static weir_status take_apart(struct worker *worker, struct weir_error *err)
{
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
    weir_profile_destroy(worker->profile); /* a record of the old net's steps: it ends here */
    worker->profile = NULL;
    weir_net_destroy(worker->net);
    worker->net = NULL;
    worker->gradients = worker->run_gradients = worker->statistics = NULL;
    return WEIR_OK;
}

/* ---- the next one's beginning ------------------------------------------------------------- */

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
    }
    return WEIR_OK;
}

/** Of the task: what two members must have alike. */
static int64_t task_digest(const struct train_task *task)
{
    char sha[WEIR_SHA256_TEXT_BYTES];
    weir_sha256(task->identity, strlen(task->identity), sha);
    sha[15] = '\0';
    return (int64_t)strtoll(sha, NULL, 16);
}

/** Everybody hears where everybody stands. */
static weir_status compare(struct worker *worker, bool is_planned, struct standings *out,
                           struct weir_error *err)
{
    memset(out, 0, sizeof *out);
    int64_t *own = out->of[worker->rank];
    own[STANDING_STEP] = worker->has_state ? (int64_t)worker->state.step + 1 : 0;
    own[STANDING_OWES] = worker->owes_epoch_end;
    own[STANDING_TASK] = task_digest(worker->task);
    own[STANDING_CANNOT] = !is_planned;
    weir_status status = weir_comm_allreduce(
        worker->comm, out->of, (size_t)worker->n_workers * STANDING_COUNT, WEIR_COMM_I64);
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

/** What the standings mean: whose state counts, and whether anybody lacks it. */
static weir_status judge(struct worker *worker, const struct standings *standings, int *out_root,
                         bool *out_is_shared, struct weir_error *err)
{
    int root = 0;
    *out_is_shared = true;
    for (int r = 0; r < worker->n_workers; r++) {
        if (standings->of[r][STANDING_CANNOT] != 0) {
            return weir_error_set(err, WEIR_ERR_PEER,
                                  "worker %d has no memory for its part of the batch among %d",
                                  weir_comm_member(worker->comm, r), worker->n_workers);
        }
        if (standings->of[r][STANDING_STEP] > standings->of[root][STANDING_STEP]) {
            root = r;
        }
    }
    for (int r = 0; r < worker->n_workers; r++) {
        int member = weir_comm_member(worker->comm, r);
        if (standings->of[r][STANDING_STEP] == 0 && !has_member(&worker->newcomers, member)) {
            worker->newcomers.members[worker->newcomers.n++] = member;
        }
        *out_is_shared =
            *out_is_shared && standings->of[r][STANDING_STEP] == standings->of[root][STANDING_STEP];
        worker->owes_epoch_end = worker->owes_epoch_end || standings->of[r][STANDING_OWES] != 0;
    }
    if (standings->of[root][STANDING_STEP] == 0) {
        return weir_error_set(err, WEIR_ERR_PEER,
                              "nobody is left who knows where the training stands");
    }
    if (standings->of[worker->rank][STANDING_TASK] != standings->of[root][STANDING_TASK]) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "join: this worker was given another training than the group's: other "
            "options or other data");
    }
    *out_root = root;
    return WEIR_OK;
}

static weir_status settle_once(struct worker *worker, struct weir_error *err)
{
    const struct weir_train_config *config = worker->task->config;
    struct standings standings;
    int root = 0;
    bool is_shared = false;
    worker->rank = weir_comm_rank(worker->comm);
    worker->n_workers = weir_comm_size(worker->comm);
    if (worker->n_workers < config->min_workers) {
        return weir_error_set(err, WEIR_ERR_PEER,
                              "%d workers are left, fewer than min_workers %lld", worker->n_workers,
                              (long long)config->min_workers);
    }
    weir_status planned = plan(worker, err);
    if (planned != WEIR_OK && weir_comm_failure(worker->comm, NULL, NULL) != WEIR_OK) {
        return planned;
    }
    WEIR_TRY(compare(worker, planned == WEIR_OK, &standings, err));
    WEIR_TRY(judge(worker, &standings, &root, &is_shared, err));
    if (!is_shared) {
        /* Who is behind has half of two states if this fails. */
        worker->has_state =
            standings.of[worker->rank][STANDING_STEP] == standings.of[root][STANDING_STEP];
        weir_status status = worker_share_state(worker, root);
        if (status != WEIR_OK) {
            return worker_comm_error(worker, status, err);
        }
    }
    WEIR_TRY(worker_start_loader(worker, err));
    return worker->rank == 0 && !worker->has_reports ? worker_start_reports(worker, err) : WEIR_OK;
}

weir_status worker_settle(struct worker *worker, struct weir_error *err)
{
    weir_status status = settle_once(worker, err);
    while (status != WEIR_OK && worker_can_regroup(worker, status)) {
        WEIR_TRY(take_apart(worker, err));
        WEIR_TRY(weir_comm_regroup(&worker->comm, err));
        status = settle_once(worker, err);
    }
    return status;
}

/* ---- from one to the other ---------------------------------------------------------------- */

static void list_members(const struct worker *worker, struct progress_group *out)
{
    out->n = weir_comm_size(worker->comm);
    for (int r = 0; r < out->n; r++) {
        out->members[r] = weir_comm_member(worker->comm, r);
    }
}

/** Who was in one group and is not in the other, where a newcomer with an old number is another. */
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

static void tell_change(struct worker *worker, const struct progress_group *before, double seconds)
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
        train_report_add(worker->report, &tick);
        train_progress_members(&worker->progress, &change);
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
    WEIR_TRY(worker_settle(worker, err));
    tell_change(worker, &before, (double)(weir_mono_ms() - begin_ms) / 1000);
    return WEIR_OK;
}
