#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* A task or combine with its stage, before they are sorted by stage. */
struct staged_task {
    struct plan_task task;
    int32_t stage;
    int32_t deadline; /* of a deferred task: the stage that waits for it */
    int32_t rank;     /* order within the stage; a recomputed value comes before its first reader */
};

/* When a recomputed value is first read. INT32_MAX as a rank: by a deferred task that the stage
 * opens. */
struct demand {
    int32_t stage, rank;
};

struct builder {
    const struct net_plan *plan;
    bool is_training;
    struct staged_task *tasks, *combines, *deferred;
    int32_t n_tasks, n_combines, n_deferred, loss_stage;
    int32_t *data_stage;    /* by value: the stage that makes it */
    int32_t *grad_stage;    /* by value: the stage that completes its gradient; -1 = none so far */
    struct demand *demands; /* by value */
    int32_t n_stages;
};

static void put(struct builder *b, struct staged_task *list, int32_t *n, int32_t i_op,
                enum task_phase phase, int32_t stage)
{
    list[*n] =
        (struct staged_task){.task = {.i_op = i_op, .phase = phase}, .stage = stage, .rank = *n};
    (*n)++;
    b->n_stages = WEIR_MAX(b->n_stages, stage + 1);
}

static void put_task(struct builder *b, int32_t i_op, enum task_phase phase, int32_t stage)
{
    put(b, b->tasks, &b->n_tasks, i_op, phase, stage);
}

/* The op that makes a value; NULL: the caller. */
static const struct op *producer(const struct net_plan *plan, weir_value_t value)
{
    for (int32_t i = 0; i < plan->n_ops; i++) {
        if (plan->ops[i].out == value && !plan->ops[i].op.is_folded) {
            return &plan->ops[i].op;
        }
    }
    return NULL;
}

/* The first stage in which input j is there for the op: the one that makes it, unless other tiles
 * of the image make parts of what this one's reads. */
static int32_t input_stage(const struct builder *b, const struct plan_op *o, int32_t j)
{
    const struct op *from = b->plan->n_row_tiles > 1 ? producer(b->plan, o->in[j]) : NULL;
    int32_t stage = b->data_stage[o->in[j]];
    if (!from || (o->op.n_row_tiles == 0 && from->n_row_tiles == 0)) {
        return stage;
    }
    bool is_own = o->op.n_row_tiles > 0 && from->n_row_tiles > 0 && plan_reads_own_rows(&o->op, j);
    return is_own ? stage : stage + 1;
}

/* A deferred task that the end of stage `opens` opens. */
static void put_deferred(struct builder *b, int32_t i_op, enum task_phase phase, int32_t opens,
                         int32_t deadline)
{
    put(b, b->deferred, &b->n_deferred, i_op, phase, opens);
    b->deferred[b->n_deferred - 1].deadline = deadline;
}

/* The packed weights that the op's task in `stage` reads. */
static void put_pack(struct builder *b, int32_t i_op, enum task_phase phase, int32_t stage)
{
    if (b->plan->ops[i_op].op.packed_bytes > 0) {
        put_deferred(b, i_op, phase, WEIR_MAX(stage - 1 - PLAN_PACK_LEAD, 0), stage);
    }
}

/* Forward: every op as early as its inputs allow; statistics end a stage. */
static void schedule_forward(struct builder *b)
{
    for (int32_t i = 0; i < b->plan->n_ops; i++) {
        const struct plan_op *o = &b->plan->ops[i];
        int32_t stage = b->plan->has_packed ? 1 : 0;
        if (o->op.is_folded) {
            continue;
        }
        for (int32_t j = 0; j < o->op.n_in; j++) {
            stage = WEIR_MAX(stage, input_stage(b, o, j));
        }
        if (o->op.kind == LAYER_BATCH_NORM && b->is_training) {
            int32_t sums = b->data_stage[o->in[0]];
            put_task(b, i, TASK_FORWARD_SUMS, sums);
            put(b, b->combines, &b->n_combines, i, TASK_FORWARD_SUMS, sums);
            stage = WEIR_MAX(stage, sums + 1);
        }
        /* An op that batches slices needs all slices' inputs, and all slices need its outputs. */
        stage += o->op.n_batched_slices > 0;
        put_task(b, i, i == b->plan->i_loss ? TASK_LOSS : TASK_FORWARD, stage);
        put_pack(b, i, TASK_PACK_FORWARD, stage);
        b->loss_stage = i == b->plan->i_loss ? stage : b->loss_stage;
        b->data_stage[o->out] = stage + (o->op.n_batched_slices > 0);
    }
}

/* A backward task that is put next reads the value. */
static void demand(struct builder *b, weir_value_t value, int32_t stage, int32_t rank)
{
    struct demand *d = &b->demands[value];
    if (stage < d->stage || (stage == d->stage && rank < d->rank)) {
        *d = (struct demand){stage, rank};
    }
}

static void demand_reads(struct builder *b, const struct plan_op *o, int32_t stage)
{
    const struct op_reads reads = plan_op_reads(&o->op);
    if (reads.backward_x) {
        demand(b, o->in[0], stage, b->n_tasks);
    }
    if (reads.backward_y) {
        demand(b, o->out, stage, b->n_tasks);
    }
}

static bool wants_any_dx(const struct net_plan *plan, const struct plan_op *o)
{
    for (int32_t j = 0; j < o->op.n_in && o->op.kind != LAYER_INPUT; j++) {
        if (plan->needs_gradient[o->in[j]]) {
            return true;
        }
    }
    return false;
}

/* Must what follows it in backward wait? For an op that batches slices, all slices must be there.
 * Where one slice is the batch no thread is kept waiting, and other threads can begin to update. */
static bool ends_stage(const struct net_plan *plan, const struct op *op)
{
    return op->n_batched_slices > 0 || (op->n_updates > 1 && plan->n_slices == 1);
}

/* What makes the gradients of an op's parameters, from the end of stage `opens` on. */
static void put_gradient(struct builder *b, int32_t i_op, int32_t opens)
{
    const struct plan_op *o = &b->plan->ops[i_op];
    bool is_split = o->op.n_batched_slices == 0 && ends_stage(b->plan, &o->op) &&
                    b->plan->needs_gradient[o->in[0]];
    if (plan_op_reads(&o->op).deferred_x) {
        demand(b, o->in[0], opens, INT32_MAX);
    }
    for (int32_t i = 0; i < WEIR_MAX(o->op.n_updates, 1); i++) {
        /* The later half waits for another stage, which opens what takes longer than a part. */
        bool is_late = is_split && 2 * i >= o->op.n_updates;
        put_deferred(b, i_op, TASK_WEIGHT_GRADIENT, opens + is_late,
                     opens + 1 + is_late +
                         (b->plan->is_in_order ? PLAN_LANE_SLACK : PLAN_DEFERRED_SLACK));
        b->deferred[b->n_deferred - 1].task.i_part = i;
    }
}

/*
 * Backward of one op. Several readers of a value write its gradient one after the other: the first
 * overwrites, the others add, never earlier than the one before, so the order of the sum is fixed.
 */
static void schedule_backward_of(struct builder *b, int32_t i, struct plan_op *o)
{
    int32_t dy_stage = i == b->plan->i_loss ? b->data_stage[o->out] : b->grad_stage[o->out];
    int32_t stage = dy_stage;
    if (o->op.kind == LAYER_BATCH_NORM) {
        demand_reads(b, o, dy_stage);
        put_task(b, i, TASK_BACKWARD_SUMS, dy_stage);
        put(b, b->combines, &b->n_combines, i, TASK_BACKWARD_SUMS, dy_stage);
        stage = dy_stage + 1;
    }
    for (int32_t j = 0; j < o->op.n_in; j++) {
        stage = WEIR_MAX(stage, b->grad_stage[o->in[j]]);
    }
    stage += o->op.n_batched_slices > 0;
    bool has_task = wants_any_dx(b->plan, o) || o->op.kind == LAYER_PRELU;
    if (has_task) {
        demand_reads(b, o, stage);
        put_task(b, i, TASK_BACKWARD, stage);
        put_pack(b, i, TASK_PACK_BACKWARD, stage);
    }
    if (has_task && b->plan->refreshes_backward && o->op.kind == LAYER_CONV &&
        b->data_stage[o->out] + 1 < stage) {
        o->op.refreshes_backward = true;
        put_deferred(b, i, TASK_REFRESH_BACKWARD,
                     WEIR_MAX(stage - 1 - PLAN_REFRESH_LEAD, b->data_stage[o->out]), stage);
    }
    for (int32_t j = o->op.n_in - 1; j >= 0; j--) {
        if (b->plan->needs_gradient[o->in[j]]) {
            o->dx_adds[j] = b->grad_stage[o->in[j]] >= 0;
            o->op.wants_dx = o->op.wants_dx || j == 0;
            o->op.adds_dx = o->dx_adds[0];
            b->grad_stage[o->in[j]] = stage + ends_stage(b->plan, &o->op);
        }
    }
    if (plan_has_deferred(&o->op)) {
        /* A task that updates parameters waits for those that read them. */
        bool is_last = o->op.kind == LAYER_PRELU || o->op.n_updates > 0;
        put_gradient(b, i, is_last && has_task ? stage : dy_stage);
    }
}

static void schedule_backward(struct builder *b, struct net_plan *plan)
{
    for (int32_t i = plan->n_ops - 1; i >= 0; i--) {
        struct plan_op *o = &plan->ops[i];
        if (o->op.kind != LAYER_INPUT && plan->needs_gradient[o->out]) {
            schedule_backward_of(b, i, o);
        }
    }
}

/* Recomputes the values that backward reads and that can be recomputed, except those made in the
 * same stage. The values that such a value is made of come before it. */
static void schedule_recomputed(struct builder *b, struct net_plan *plan)
{
    for (int32_t i = plan->n_ops - 1; i >= 0; i--) {
        const struct plan_op *o = &plan->ops[i];
        struct demand first = b->demands[o->out];
        bool *is_recomputed = &plan->is_recomputed[o->out];
        *is_recomputed =
            *is_recomputed && first.stage < INT32_MAX && first.stage > b->data_stage[o->out];
        for (int32_t j = 0; *is_recomputed && j < o->op.n_in; j++) {
            demand(b, o->in[j], first.stage, first.rank);
        }
        if (*is_recomputed) {
            put_task(b, i, TASK_RECOMPUTE, first.stage);
            b->tasks[b->n_tasks - 1].rank = first.rank;
        }
    }
}

static int compare_tasks(const void *a_, const void *b_)
{
    const struct staged_task *a = a_, *b = b_;
    const int32_t differences[] = {a->stage - b->stage, a->rank - b->rank,
                                   (b->task.phase == TASK_RECOMPUTE) -
                                       (a->task.phase == TASK_RECOMPUTE),
                                   a->task.i_op - b->task.i_op};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(differences); i++) {
        if (differences[i] != 0) {
            return differences[i];
        }
    }
    return 0;
}

/* Stable sort by stage into `out`, with the bounds of each stage. */
static void sort_by_stage(const struct staged_task *list, int32_t n, int32_t n_stages,
                          struct plan_task *out, int32_t *first)
{
    int32_t at = 0;
    for (int32_t s = 0; s < n_stages; s++) {
        first[s] = at;
        for (int32_t i = 0; i < n; i++) {
            if (list[i].stage == s) {
                out[at++] = list[i].task;
            }
        }
    }
    first[n_stages] = at;
}

/* Order of the deferred tasks that a stage opens: first those with a reader soon, last the parts of
 * an op that has several, so that no thread is left with much work when the others are done. */
static int rank_of(const struct builder *b, const struct plan_task *task)
{
    if (task->phase != TASK_WEIGHT_GRADIENT) {
        return 0;
    }
    return b->plan->ops[task->i_op].op.n_updates > 1 ? 2 : 1;
}

/* By the stage that opens them. */
static void list_deferred(const struct builder *b, struct task_schedule *s)
{
    for (int32_t stage = 0; stage < s->n_stages; stage++) {
        s->stages[stage].i_deferred = s->n_deferred;
        for (int32_t i = 0; i < 3 * b->n_deferred; i++) {
            const struct staged_task *deferred = &b->deferred[i % b->n_deferred];
            if (deferred->stage != stage || rank_of(b, &deferred->task) != i / b->n_deferred) {
                continue;
            }
            int32_t deadline = WEIR_MIN(deferred->deadline, s->n_stages);
            s->deferred_tasks[s->n_deferred] = deferred->task;
            s->deferred[s->n_deferred++].deadline = deadline;
            s->stages[stage].n_deferred++;
            s->stages[deadline].n_due++; /* row n_stages is a spare */
        }
    }
}

static weir_status finish(const struct builder *b, struct task_schedule *s)
{
    size_t n_stages = (size_t)b->n_stages, n_deferred = (size_t)b->n_deferred;
    s->n_stages = b->n_stages;
    s->loss_stage = b->loss_stage;
    s->tasks = calloc((size_t)b->n_tasks + 1, sizeof(*s->tasks));
    s->first_task = calloc(n_stages + 1, sizeof(int32_t));
    s->combines = calloc((size_t)b->n_combines + 1, sizeof(*s->combines));
    s->first_combine = calloc(n_stages + 1, sizeof(int32_t));
    s->stages = calloc(n_stages + 1, sizeof(*s->stages));
    s->deferred_tasks = calloc(n_deferred + 1, sizeof(*s->deferred_tasks));
    s->deferred = calloc(n_deferred + 1, sizeof(*s->deferred));
    if (!s->tasks || !s->first_task || !s->combines || !s->first_combine || !s->stages ||
        !s->deferred_tasks || !s->deferred) {
        return WEIR_ERR_NOMEM;
    }
    qsort(b->tasks, (size_t)b->n_tasks, sizeof(*b->tasks), compare_tasks);
    sort_by_stage(b->tasks, b->n_tasks, s->n_stages, s->tasks, s->first_task);
    sort_by_stage(b->combines, b->n_combines, s->n_stages, s->combines, s->first_combine);
    list_deferred(b, s);
    return WEIR_OK;
}

static size_t max_deferred(const struct net_plan *plan)
{
    size_t n = 4 * (size_t)plan->n_ops;
    for (int32_t i = 0; i < plan->n_ops; i++) {
        n += (size_t)plan->ops[i].op.n_updates;
    }
    return n;
}

weir_status plan_make_schedule(struct net_plan *plan, struct task_schedule *schedule,
                               bool is_training)
{
    size_t n_ops = (size_t)plan->n_ops, n_values = (size_t)plan->n_values;
    struct builder b = {.plan = plan,
                        .is_training = is_training,
                        .tasks = calloc(5 * n_ops, sizeof(struct staged_task)),
                        .combines = calloc(2 * n_ops, sizeof(struct staged_task)),
                        .deferred = calloc(max_deferred(plan), sizeof(struct staged_task)),
                        .data_stage = calloc(n_values, sizeof(int32_t)),
                        .grad_stage = calloc(n_values, sizeof(int32_t)),
                        .demands = calloc(n_values, sizeof(struct demand))};
    weir_status status = WEIR_ERR_NOMEM;
    if (b.tasks && b.combines && b.deferred && b.data_stage && b.grad_stage && b.demands) {
        memset(b.grad_stage, -1, n_values * sizeof(int32_t));
        for (size_t i = 0; i < n_values; i++) {
            b.demands[i] = (struct demand){INT32_MAX, INT32_MAX};
        }
        schedule_forward(&b);
        if (is_training) {
            schedule_backward(&b, plan);
            schedule_recomputed(&b, plan);
        }
        status = finish(&b, schedule);
    }
    free(b.tasks);
    free(b.combines);
    free(b.deferred);
    free(b.data_stage);
    free(b.grad_stage);
    free(b.demands);
    return status;
}
