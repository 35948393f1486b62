#include "plan.h"

/* Tensors start on a cache line. */
#define ALIGN_BYTES 64

/* Memory shared by values whose lifetimes follow one another in place (y written over x). */
struct buffer {
    int32_t first_stage, last_stage; /* first_stage > last_stage: not used */
    int32_t first_task, last_task;
    bool is_shared; /* read by a deferred task, or by other tiles of its image */
    size_t image_bytes;
    size_t whole_bytes; /* instead, of what images share */
    size_t offset;
};

/* Buffers 0 .. n_values are data of values. Behind them lie their gradients, then the data of
 * recomputed values in backward, then packed weights, two per op. */
struct memory {
    const struct net_plan *plan;
    struct task_schedule *schedule;
    bool is_training;
    int32_t n_buffers;
    int32_t *buffer_of; /* by buffer: the one it lives in (itself, or in place of another) */
    int32_t *n_readers; /* by value */
    struct buffer *buffers;
};

struct op_reads plan_op_reads(const struct op *op)
{
    static const struct op_reads reads[LAYER_KIND_COUNT] = {
        [LAYER_CONV] = {.deferred_x = true, .deferred_dy = true},
        [LAYER_LINEAR] = {.deferred_x = true, .deferred_dy = true},
        [LAYER_BATCH_NORM] = {.backward_x = true},
        [LAYER_RELU] = {.backward_y = true},
        [LAYER_RELU6] = {.backward_y = true},
        [LAYER_PRELU] = {.backward_x = true},
        [LAYER_L2_NORMALISE] = {.backward_x = true},
        [LAYER_LAYER_NORM] = {.backward_x = true},
        [LAYER_SOFTMAX_LOSS] = {.backward_x = true},
        [LAYER_MARGIN_LOSS] = {.deferred_x = true},
        [LAYER_DETECT_LOSS] = {.backward_x = true},
    };
    struct op_reads result = reads[op->kind];
    result.backward_y = result.backward_y || (op->has_relu && !op->knows_sign);
    return result;
}

static int32_t root(const struct memory *m, int32_t i_buffer)
{
    while (m->buffer_of[i_buffer] != i_buffer) {
        i_buffer = m->buffer_of[i_buffer];
    }
    return i_buffer;
}

static int32_t gradient_buffer(const struct memory *m, weir_value_t value)
{
    return m->plan->n_values + value;
}

/* The data of a value as backward reads it. */
static int32_t backward_buffer(const struct memory *m, weir_value_t value)
{
    return m->plan->is_recomputed[value] ? 2 * m->plan->n_values + value : value;
}

static int32_t packed_buffer(const struct memory *m, int32_t i_op, bool is_backward)
{
    return 3 * m->plan->n_values + 2 * i_op + is_backward;
}

/* May op write its result over in[0]? Nobody must need that later, neither forward nor backward. */
static bool can_overwrite_x(const struct memory *m, const struct plan_op *o)
{
    weir_value_t x = o->in[0];
    enum layer_kind kind = o->op.kind;
    bool is_inplace_kind = kind == LAYER_RELU || kind == LAYER_RELU6 || kind == LAYER_DROPOUT ||
                           kind == LAYER_ADD || kind == LAYER_PRELU || kind == LAYER_BATCH_NORM ||
                           kind == LAYER_SCALE;
    if (!is_inplace_kind || m->n_readers[x] != 1 || x == m->plan->output ||
        o->out == m->plan->output) {
        return false;
    }
    const struct plan_op *producer = NULL;
    for (int32_t i = 0; i < m->plan->n_ops; i++) {
        producer = m->plan->ops[i].out == x ? &m->plan->ops[i] : producer;
    }
    if (!producer) {
        return false; /* the caller's input */
    }
    return !m->is_training ||
           (!plan_op_reads(&producer->op).backward_y && !plan_op_reads(&o->op).backward_x);
}

static int32_t forward_stage(const struct memory *m, int32_t i_op)
{
    int32_t stage = 0;
    while (stage < m->schedule->n_stages) {
        for (int32_t i = m->schedule->first_task[stage]; i < m->schedule->first_task[stage + 1];
             i++) {
            if (m->schedule->tasks[i].i_op == i_op) {
                return stage;
            }
        }
        stage++;
    }
    return stage;
}

/* May a convolution add to its residual where that lies? It must be the last to read it. With row
 * tiles it must be alone in its stage, because another tile may still be at those rows. */
static bool can_overwrite_residual(const struct memory *m, int32_t i_op)
{
    const struct plan_op *o = &m->plan->ops[i_op];
    if (o->op.kind != LAYER_CONV || !o->op.has_residual || o->in[0] == o->in[1] ||
        o->out == m->plan->output || o->in[1] == m->plan->output) {
        return false;
    }
    bool is_made_here = false;
    for (int32_t i = 0; i < m->plan->n_ops; i++) {
        const struct plan_op *other = &m->plan->ops[i];
        is_made_here = is_made_here || other->out == o->in[1];
        for (int32_t j = 0; i != i_op && j < other->op.n_in; j++) {
            bool is_before =
                m->plan->n_row_tiles == 1 ? i < i_op : forward_stage(m, i) < forward_stage(m, i_op);
            if (other->in[j] == o->in[1] && !is_before) {
                return false;
            }
        }
    }
    return is_made_here;
}

/* dy is read by its op alone, so an element-wise op may leave one dx in its place. */
static int32_t input_over_dy(const struct memory *m, const struct plan_op *o)
{
    enum layer_kind kind = o->op.kind;
    if (kind != LAYER_RELU && kind != LAYER_RELU6 && kind != LAYER_DROPOUT && kind != LAYER_ADD &&
        kind != LAYER_PRELU && kind != LAYER_BATCH_NORM && kind != LAYER_SCALE) {
        return -1;
    }
    /* The residual first: its gradient is dy behind the ReLU, and usually flows on unchanged. */
    for (int32_t j = o->op.has_residual ? 1 : 0; j >= 0; j--) {
        if (m->plan->needs_gradient[o->in[j]] && !o->dx_adds[j]) {
            return j;
        }
    }
    return -1;
}

static void merge_in_place(struct memory *m)
{
    for (int32_t i = 0; i < m->plan->n_ops; i++) {
        const struct plan_op *o = &m->plan->ops[i];
        if (!layer_is_loss(o->op.kind) && can_overwrite_x(m, o)) {
            m->buffer_of[o->out] = root(m, o->in[0]);
            if (m->is_training && m->plan->is_recomputed[o->out]) {
                m->buffer_of[backward_buffer(m, o->out)] = root(m, backward_buffer(m, o->in[0]));
            }
        } else if (can_overwrite_residual(m, i)) {
            m->buffer_of[o->out] = root(m, o->in[1]);
        }
    }
    for (int32_t i = m->plan->n_ops - 1; m->is_training && i >= 0; i--) {
        const struct plan_op *o = &m->plan->ops[i];
        int32_t j = m->plan->needs_gradient[o->out] ? input_over_dy(m, o) : -1;
        if (j >= 0) {
            m->buffer_of[gradient_buffer(m, o->in[j])] = root(m, gradient_buffer(m, o->out));
        }
    }
}

static void touch(struct memory *m, int32_t i_buffer, int32_t i_task, int32_t stage)
{
    struct buffer *b = &m->buffers[root(m, i_buffer)];
    b->first_stage = WEIR_MIN(b->first_stage, stage);
    b->last_stage = WEIR_MAX(b->last_stage, stage);
    b->first_task = WEIR_MIN(b->first_task, i_task);
    b->last_task = WEIR_MAX(b->last_task, i_task);
}

static void touch_backward(struct memory *m, const struct plan_op *o, int32_t i_task, int32_t stage)
{
    struct op_reads reads = plan_op_reads(&o->op);
    if (reads.backward_x) {
        touch(m, backward_buffer(m, o->in[0]), i_task, stage);
    }
    if (reads.backward_y) {
        touch(m, backward_buffer(m, o->out), i_task, stage);
    }
    if (!layer_is_loss(o->op.kind)) {
        touch(m, gradient_buffer(m, o->out), i_task, stage);
    }
}

static void touch_task(struct memory *m, int32_t i_task, int32_t stage)
{
    struct plan_task task = m->schedule->tasks[i_task];
    const struct plan_op *o = &m->plan->ops[task.i_op];
    switch (task.phase) {
    case TASK_FORWARD:
    case TASK_LOSS:
        for (int32_t j = 0; j < o->op.n_in; j++) {
            touch(m, o->in[j], i_task, stage);
        }
        if (!layer_is_loss(o->op.kind)) {
            touch(m, o->out, i_task, stage);
        }
        break;
    case TASK_FORWARD_SUMS:
        touch(m, o->in[0], i_task, stage);
        break;
    case TASK_RECOMPUTE:
        for (int32_t j = 0; j < o->op.n_in; j++) {
            touch(m, backward_buffer(m, o->in[j]), i_task, stage);
        }
        touch(m, backward_buffer(m, o->out), i_task, stage);
        break;
    case TASK_WEIGHT_GRADIENT:
    case TASK_REFRESH_BACKWARD:
    case TASK_PACK_FORWARD:
    case TASK_PACK_BACKWARD:
        break; /* touch_deferred */
    case TASK_BACKWARD_SUMS:
        touch_backward(m, o, i_task, stage);
        break;
    case TASK_BACKWARD:
        touch_backward(m, o, i_task, stage);
        for (int32_t j = 0; j < o->op.n_in; j++) {
            if (m->plan->needs_gradient[o->in[j]]) {
                touch(m, gradient_buffer(m, o->in[j]), i_task, stage);
            }
        }
        break;
    }
}

/* From the stage that opens the pack task, whose own deferred tasks may still run, to its deadline.
 * In inference to the end, as the next call may find the weights unchanged. */
static void touch_packed(struct memory *m, int32_t i_op, bool is_backward, int32_t opens,
                         int32_t deadline)
{
    const struct task_schedule *s = m->schedule;
    struct buffer *b = &m->buffers[packed_buffer(m, i_op, is_backward)];
    b->whole_bytes = m->plan->ops[i_op].op.packed_bytes;
    b->is_shared = true;
    b->first_stage = m->is_training ? opens : 0;
    b->last_stage = m->is_training ? deadline : s->n_stages - 1;
}

/* A deferred task may run from the stage that opens it to the one before its deadline. */
static void touch_deferred(struct memory *m)
{
    const struct task_schedule *s = m->schedule;
    int32_t opens = 0;
    for (int32_t i = 0; i < s->n_deferred; i++) {
        const struct plan_op *o = &m->plan->ops[s->deferred_tasks[i].i_op];
        struct op_reads reads = plan_op_reads(&o->op);
        int32_t last = s->deferred[i].deadline - 1;
        while (i >= s->stages[opens].i_deferred + s->stages[opens].n_deferred) {
            opens++;
        }
        enum task_phase phase = s->deferred_tasks[i].phase;
        if (phase == TASK_PACK_FORWARD || phase == TASK_PACK_BACKWARD) {
            touch_packed(m, s->deferred_tasks[i].i_op, phase == TASK_PACK_BACKWARD, opens,
                         s->deferred[i].deadline);
        }
        if (phase != TASK_WEIGHT_GRADIENT) {
            continue;
        }
        if (reads.deferred_x) {
            int32_t x = backward_buffer(m, o->in[0]);
            touch(m, x, s->first_task[last], last);
            m->buffers[root(m, x)].is_shared = true;
        }
        if (reads.deferred_dy) {
            touch(m, gradient_buffer(m, o->out), s->first_task[last], last);
            m->buffers[root(m, gradient_buffer(m, o->out))].is_shared = true;
        }
    }
}

static bool is_tile_local(const struct buffer *b)
{
    return b->first_stage == b->last_stage && !b->is_shared;
}

static bool do_overlap(const struct buffer *a, const struct buffer *b)
{
    if (is_tile_local(a)) {
        return a->first_task <= b->last_task && b->first_task <= a->last_task;
    }
    return a->first_stage <= b->last_stage && b->first_stage <= a->last_stage;
}

static size_t buffer_bytes(const struct memory *m, const struct buffer *b)
{
    size_t n_images = (size_t)(is_tile_local(b) ? plan_tile_max(m->plan) : m->plan->batch);
    size_t n = b->whole_bytes > 0 ? b->whole_bytes : b->image_bytes * n_images;
    return (n + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* Lowest offset at which `b` meets no placed buffer that lives at the same time. */
static size_t find_gap(const struct memory *m, const struct buffer *b, int32_t *const order,
                       int32_t n_placed)
{
    size_t offset = 0;
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int32_t i = 0; i < n_placed; i++) {
            const struct buffer *other = &m->buffers[order[i]];
            if (do_overlap(b, other) && offset < other->offset + buffer_bytes(m, other) &&
                other->offset < offset + buffer_bytes(m, b)) {
                offset = other->offset + buffer_bytes(m, other);
                has_moved = true;
            }
        }
    }
    return offset;
}

/* What is placed early is placed well: large buffers, or those that are in the way for long too. */
static uint64_t claim_of(const struct memory *m, const struct buffer *b, bool by_lifetime)
{
    uint64_t n_stages = (uint64_t)(b->last_stage - b->first_stage) + 1;
    return (uint64_t)buffer_bytes(m, b) * (by_lifetime ? n_stages : 1);
}

/* Greedy: the one with the largest claim first, each as low as it fits. `order` has room for all
 * buffers. */
static size_t place_all(struct memory *m, bool is_local, bool by_lifetime, int32_t *order)
{
    size_t top = 0;
    int32_t n_placed = 0;
    for (int32_t i = 0; i < m->n_buffers; i++) {
        struct buffer *b = &m->buffers[i];
        b->offset = is_tile_local(b) == is_local ? SIZE_MAX : b->offset;
    }
    for (;;) {
        int32_t next = -1;
        uint64_t most = 0;
        for (int32_t i = 0; i < m->n_buffers; i++) {
            const struct buffer *b = &m->buffers[i];
            if (b->first_stage <= b->last_stage && b->offset == SIZE_MAX &&
                is_tile_local(b) == is_local && claim_of(m, b, by_lifetime) > most) {
                next = i;
                most = claim_of(m, b, by_lifetime);
            }
        }
        if (next < 0) {
            return top;
        }
        struct buffer *b = &m->buffers[next];
        b->offset = find_gap(m, b, order, n_placed);
        order[n_placed++] = next;
        top = WEIR_MAX(top, b->offset + buffer_bytes(m, b));
    }
}

/* The better of both orders. */
static size_t place_best(struct memory *m, bool is_local, int32_t *order)
{
    size_t by_size = place_all(m, is_local, false, order);
    size_t by_lifetime = place_all(m, is_local, true, order);
    return by_lifetime < by_size ? by_lifetime : place_all(m, is_local, false, order);
}

static struct location location_of(const struct memory *m, int32_t i_buffer)
{
    const struct buffer *b = &m->buffers[root(m, i_buffer)];
    if (b->offset == SIZE_MAX) {
        return (struct location){LOCATION_NONE, 0};
    }
    return (struct location){is_tile_local(b) ? LOCATION_TILE : LOCATION_SLAB, b->offset};
}

static void measure(struct memory *m)
{
    const struct net_plan *plan = m->plan;
    for (int32_t i = 0; i < m->n_buffers; i++) {
        m->buffer_of[i] = i;
        m->buffers[i] = (struct buffer){.first_stage = INT32_MAX,
                                        .last_stage = -1,
                                        .first_task = INT32_MAX,
                                        .last_task = -1,
                                        .image_bytes = plan_image_bytes(plan, i % plan->n_values),
                                        .offset = SIZE_MAX,
                                        .is_shared = plan->n_row_tiles > 1};
    }
    for (int32_t i = 0; i < plan->n_ops; i++) {
        for (int32_t j = 0; j < plan->ops[i].op.n_in; j++) {
            m->n_readers[plan->ops[i].in[j]]++;
        }
    }
    merge_in_place(m);
    for (int32_t stage = 0; stage < m->schedule->n_stages; stage++) {
        for (int32_t i = m->schedule->first_task[stage]; i < m->schedule->first_task[stage + 1];
             i++) {
            touch_task(m, i, stage);
        }
    }
    touch_deferred(m);
    /* The input belongs to the caller unless an op converts it; the output has its own location. */
    if (plan->n_ops == 0 || plan->ops[0].op.kind != LAYER_INPUT) {
        m->buffers[plan->input].last_stage = -1;
    }
    m->buffers[plan->output].last_stage = -1;
}

static weir_status place_values(struct memory *m, int32_t *order)
{
    struct task_schedule *s = m->schedule;
    size_t n_values = (size_t)m->plan->n_values;
    measure(m);
    s->slab_bytes = place_best(m, false, order);
    s->tile_bytes = place_all(m, true, false, order);
    s->data = calloc(n_values, sizeof(*s->data));
    s->gradients = calloc(n_values, sizeof(*s->gradients));
    s->again = calloc(n_values, sizeof(*s->again));
    s->packed_weights = calloc(2 * (size_t)m->plan->n_ops + 1, sizeof(*s->packed_weights));
    if (!s->data || !s->gradients || !s->again || !s->packed_weights) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 0; i < 2 * m->plan->n_ops; i++) {
        s->packed_weights[i] = location_of(m, packed_buffer(m, i / 2, i % 2));
    }
    for (int32_t v = 0; v < m->plan->n_values; v++) {
        s->data[v] = location_of(m, v);
        s->gradients[v] = location_of(m, gradient_buffer(m, v));
    }
    if (s->data[m->plan->input].kind == LOCATION_NONE) {
        s->data[m->plan->input].kind = LOCATION_INPUT;
    }
    s->data[m->plan->output] = (struct location){LOCATION_OUTPUT, 0};
    for (int32_t v = 0; v < m->plan->n_values; v++) {
        int32_t i_buffer = backward_buffer(m, v);
        s->again[v] = i_buffer == v || !m->is_training ? s->data[v] : location_of(m, i_buffer);
    }
    return WEIR_OK;
}

weir_status plan_assign_locations(const struct net_plan *plan, struct task_schedule *schedule,
                                  bool is_training)
{
    size_t n_buffers = 3 * (size_t)plan->n_values + 2 * (size_t)plan->n_ops;
    struct memory m = {.plan = plan,
                       .schedule = schedule,
                       .is_training = is_training,
                       .n_buffers = (int32_t)n_buffers,
                       .buffer_of = calloc(n_buffers, sizeof(int32_t)),
                       .n_readers = calloc(n_buffers, sizeof(int32_t)),
                       .buffers = calloc(n_buffers, sizeof(struct buffer))};
    int32_t *order = calloc(n_buffers, sizeof(int32_t));
    weir_status status = WEIR_ERR_NOMEM;
    if (m.buffer_of && m.n_readers && m.buffers && order) {
        status = place_values(&m, order);
    }
    free(m.buffer_of);
    free(m.n_readers);
    free(m.buffers);
    free(order);
    return status;
}
