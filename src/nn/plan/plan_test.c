/*
 * The memory plan by a second, simpler model. It runs the schedule task by task over a map that
 * says which tensor was last written to each grain of memory. At every read it asks whether the
 * tensor is still there, for every image of it. Weight gradients run as early and as late as the
 * schedule allows.
 */
#include "plan.h"

#include "base/test_main.h"
#include "nn/backend/test_backends.h"
#include "nn/graph/random_graph_test.h"

#include <string.h>

/* The size of the smallest element; it divides every offset and size. */
#define GRAIN_BYTES 2

/* A tensor: data of value v, its gradient (v + n_values), its recomputed data (v + 2 n_values), or
 * packed weights of op i for forward (3 n_values + 2 i) and backward (the next). */
struct memory_model {
    const struct net_plan *plan;
    const struct task_schedule *s;
    int32_t *slab, *tile; /* by GRAIN_BYTES of memory: tensor last written there, plus one */
    int32_t *n_updates;   /* by op: how often its parameters were updated, in part or whole */
    const char *where;
};

static struct location location_of(const struct memory_model *m, int32_t tensor)
{
    int32_t n = m->plan->n_values;
    if (tensor >= 3 * n) {
        return m->s->packed_weights[tensor - 3 * n];
    }
    if (tensor >= 2 * n) {
        return m->s->again[tensor - 2 * n];
    }
    return tensor < n ? m->s->data[tensor] : m->s->gradients[tensor - n];
}

static int32_t *grains(const struct memory_model *m, int32_t tensor, int32_t first, size_t *out_n,
                       int32_t n)
{
    struct location location = location_of(m, tensor);
    int32_t i_packed = tensor - 3 * m->plan->n_values;
    size_t image = plan_image_bytes(m->plan, tensor % m->plan->n_values) / GRAIN_BYTES;
    size_t at = location.offset / GRAIN_BYTES;
    *out_n = image * (size_t)n;
    if (i_packed >= 0) {
        ck_assert_int_eq(location.kind, LOCATION_SLAB);
        *out_n = m->plan->ops[i_packed / 2].op.packed_bytes / GRAIN_BYTES;
        return m->slab + at;
    }
    if (location.kind == LOCATION_SLAB) {
        return m->slab + at + image * (size_t)first;
    }
    return location.kind == LOCATION_TILE ? m->tile + at : NULL;
}

static void write_tensor(const struct memory_model *m, int32_t tensor, int32_t first, int32_t n)
{
    size_t n_grains;
    int32_t *at = grains(m, tensor, first, &n_grains, n);
    for (size_t i = 0; at && i < n_grains; i++) {
        at[i] = tensor + 1;
    }
}

static void read_tensor(const struct memory_model *m, int32_t tensor, int32_t first, int32_t n)
{
    size_t n_grains;
    int32_t *at = grains(m, tensor, first, &n_grains, n);
    for (size_t i = 0; at && i < n_grains; i++) {
        if (at[i] != tensor + 1) { /* an assertion per grain would be slow: Check reports each */
            ck_abort_msg("%s: tensor %d was overwritten by %d (image %d)", m->where, tensor,
                         at[i] - 1, first);
        }
    }
}

/* A value as backward reads it. */
static int32_t later(const struct memory_model *m, int32_t value)
{
    return m->plan->is_recomputed[value] ? 2 * m->plan->n_values + value : value;
}

static int32_t packed_weights(const struct memory_model *m, int32_t i_op, bool is_backward)
{
    return 3 * m->plan->n_values + 2 * i_op + is_backward;
}

/* A task that reads an op's parameters reads all of them, unchanged since the step began. */
static void expect_old_parameters(const struct memory_model *m, int32_t i_op)
{
    if (m->n_updates[i_op] != 0) {
        ck_abort_msg("%s: op %d reads parameters that are updated", m->where, i_op);
    }
}

/* What each kind of task must find and what it leaves; written from op.h, not from the planner. */
static void model_task(const struct memory_model *m, struct plan_task task, int32_t first,
                       int32_t n)
{
    const struct plan_op *o = &m->plan->ops[task.i_op];
    int32_t n_values = m->plan->n_values;
    bool is_backward = task.phase == TASK_BACKWARD || task.phase == TASK_BACKWARD_SUMS;
    bool is_loss = task.i_op == m->plan->i_loss;
    int32_t n_read = task.phase == TASK_FORWARD_SUMS ? 1 : o->op.n_in;
    bool is_again = task.phase == TASK_RECOMPUTE;
    expect_old_parameters(m, task.i_op);
    if (o->op.packed_bytes > 0) {
        read_tensor(m, packed_weights(m, task.i_op, is_backward), 0, 1);
    }
    for (int32_t j = 0; !is_backward && j < n_read; j++) {
        read_tensor(m, is_again ? later(m, o->in[j]) : o->in[j], first, n);
    }
    if (is_again) {
        ck_assert(m->plan->is_recomputed[o->out]);
        write_tensor(m, later(m, o->out), first, n);
    }
    if (task.phase == TASK_FORWARD) {
        write_tensor(m, o->out, first, n);
    }
    if (!is_backward) {
        return;
    }
    enum layer_kind kind = o->op.kind;
    if (kind == LAYER_BATCH_NORM || kind == LAYER_PRELU || kind == LAYER_L2_NORMALISE ||
        kind == LAYER_LAYER_NORM || kind == LAYER_SOFTMAX_LOSS) {
        read_tensor(m, later(m, o->in[0]), first, n);
    }
    if (kind == LAYER_RELU || kind == LAYER_RELU6 || o->op.has_relu) {
        read_tensor(m, later(m, o->out), first, n);
    }
    if (!is_loss) {
        read_tensor(m, n_values + o->out, first, n);
    }
    for (int32_t j = 0; task.phase == TASK_BACKWARD && j < o->op.n_in; j++) {
        if (m->plan->needs_gradient[o->in[j]] && o->dx_adds[j] &&
            (j == o->op.n_in - 1 || o->in[j] != o->in[j + 1])) {
            bool is_own = false; /* the same value, written by this very task for a later input */
            for (int32_t i = j + 1; i < o->op.n_in; i++) {
                is_own = is_own || o->in[i] == o->in[j];
            }
            if (!is_own) {
                read_tensor(m, n_values + o->in[j], first, n);
            }
        }
    }
    for (int32_t j = 0; task.phase == TASK_BACKWARD && j < o->op.n_in; j++) {
        if (m->plan->needs_gradient[o->in[j]]) {
            write_tensor(m, n_values + o->in[j], first, n);
        }
    }
}

static void model_deferred(const struct memory_model *m, int32_t i_deferred)
{
    struct plan_task task = m->s->deferred_tasks[i_deferred];
    const struct plan_op *o = &m->plan->ops[task.i_op];
    if (task.phase != TASK_WEIGHT_GRADIENT) {
        expect_old_parameters(m, task.i_op);
    } else if (o->op.n_updates > 0) {
        ck_assert_int_eq(m->s->deferred_tasks[i_deferred].i_part, m->n_updates[task.i_op]);
        ck_assert_int_lt(m->n_updates[task.i_op]++, o->op.n_updates);
    }
    if (task.phase == TASK_REFRESH_BACKWARD) {
        ck_assert(o->op.refreshes_backward);
    } else if (task.phase != TASK_WEIGHT_GRADIENT) {
        write_tensor(m, packed_weights(m, task.i_op, task.phase == TASK_PACK_BACKWARD), 0, 1);
    } else if (o->op.kind == LAYER_CONV || o->op.kind == LAYER_LINEAR) {
        read_tensor(m, later(m, o->in[0]), 0, m->plan->batch);
        read_tensor(m, m->plan->n_values + o->out, 0, m->plan->batch);
    } else if (o->op.kind == LAYER_MARGIN_LOSS) {
        read_tensor(m, later(m, o->in[0]), 0, m->plan->batch);
    }
}

/* Deferred tasks that are due before stage `stage` opens (late), or that stage - 1 has opened
 * (early). */
static void model_due(const struct memory_model *m, int32_t stage, bool is_late, bool *is_done)
{
    for (int32_t i = 0; i < m->s->n_deferred; i++) {
        int32_t opened_by = 0;
        while (i >= m->s->stages[opened_by].i_deferred + m->s->stages[opened_by].n_deferred) {
            opened_by++;
        }
        if (!is_done[i] && (is_late ? m->s->deferred[i].deadline <= stage : opened_by < stage)) {
            bool is_update = m->plan->ops[m->s->deferred_tasks[i].i_op].op.n_updates > 0 &&
                             m->s->deferred_tasks[i].phase == TASK_WEIGHT_GRADIENT;
            ck_assert(!is_update || opened_by >= m->s->loss_stage); /* the loss decides */
            model_deferred(m, i);
            is_done[i] = true;
        }
    }
}

/* Every op finds its inputs in its own type, and the caller the output in f32. */
static void check_types(const struct net_plan *plan, const char *where)
{
    for (int32_t i = 0; i < plan->n_ops; i++) {
        const struct plan_op *o = &plan->ops[i];
        if (o->op.is_folded) {
            continue;
        }
        bool is_head = o->op.kind == LAYER_L2_NORMALISE || o->op.kind == LAYER_LAYER_NORM ||
                       o->op.kind == LAYER_SOFTMAX_LOSS || o->op.kind == LAYER_MARGIN_LOSS;
        ck_assert_int_eq(plan->types[o->out], o->op.type);
        if (o->op.kind == LAYER_CAST) {
            ck_assert_int_ne(plan->types[o->in[0]], o->op.type);
            continue;
        }
        ck_assert_int_eq(o->op.type, is_head ? WEIR_PRECISION_F32 : plan->precision);
        for (int32_t j = 0; j < o->op.n_in && o->op.kind != LAYER_INPUT; j++) {
            ck_assert_msg(plan->types[o->in[j]] == o->op.type, "%s: input of %s", where,
                          o->op.name);
        }
    }
    ck_assert_int_eq(plan->types[plan->output], WEIR_PRECISION_F32);
}

static void check_schedule(const struct net_plan *plan, const struct task_schedule *s, bool is_late,
                           const char *where)
{
    struct memory_model m = {.plan = plan,
                             .s = s,
                             .slab = calloc(s->slab_bytes / GRAIN_BYTES + 1, sizeof(int32_t)),
                             .tile = calloc(s->tile_bytes / GRAIN_BYTES + 1, sizeof(int32_t)),
                             .n_updates = calloc((size_t)plan->n_ops + 1, sizeof(int32_t)),
                             .where = where};
    bool *is_done = calloc((size_t)s->n_deferred + 1, sizeof(bool));
    if (s->data[plan->input].kind == LOCATION_SLAB) {
        ck_assert_int_eq(plan->ops[0].op.kind, LAYER_INPUT);
    }
    for (int32_t stage = 0; stage < s->n_stages; stage++) {
        model_due(&m, stage, is_late, is_done);
        /* Slices of a stage may run in any order: odd stages go backwards. */
        for (int32_t i = 0; i < plan->n_slices; i++) {
            int32_t slice = stage % 2 ? plan->n_slices - 1 - i : i;
            int32_t first;
            for (int32_t t = s->first_task[stage]; t < s->first_task[stage + 1]; t++) {
                int32_t n = plan_tile_images(plan, &plan->ops[s->tasks[t].i_op].op, slice, &first);
                if (n > 0) {
                    model_task(&m, s->tasks[t], first, n);
                }
            }
            memset(m.tile, 0,
                   s->tile_bytes / GRAIN_BYTES * sizeof(int32_t)); /* another thread's next */
        }
    }
    model_due(&m, s->n_stages, is_late, is_done);
    for (int32_t i = 0; i < s->n_deferred; i++) {
        ck_assert(is_done[i]);
    }
    for (int32_t i = 0; s == &plan->training && i < plan->n_ops; i++) {
        ck_assert_int_eq(m.n_updates[i], plan->ops[i].op.n_updates);
    }
    free(m.n_updates);
    free(m.slab);
    free(m.tile);
    free(is_done);
}

/* Half of the nets of oneDNN in f32 pack the weights of their convolutions. */
static enum weir_convolution convolution_of(uint64_t seed, size_t i)
{
    bool is_possible = backends[i % 2] == &weir_onednn_backend && i / 2 % 2 == 0;
    return is_possible && seed % 2 == 0 ? WEIR_CONVOLUTION_WINOGRAD : WEIR_CONVOLUTION_AUTO;
}

START_TEST(no_tensor_is_overwritten_while_it_is_needed)
{
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 8), NULL);
        struct weir_error err = {0};
        for (size_t i = 0; i < 4 * WEIR_ARRAY_LEN(backends); i++) {
            struct weir_net_config config = {.batch = 5,
                                             .n_slices = 3,
                                             .is_training = i < 4,
                                             .updates_in_backward = i < 4 && seed % 2 == 1,
                                             .keeps_all = seed % 3 == 2,
                                             .precision = (enum weir_precision)(i / 2 % 2),
                                             .convolution = convolution_of(seed, i),
                                             .backend = backends[i % 2]};
            struct net_plan *plan;
            char where[64];
            ck_assert_msg(plan_create(graph, &config, &plan, &err) == WEIR_OK, "seed %d: %s",
                          (int)seed, err.message);
            snprintf(where, sizeof(where), "seed %d, %s, %s", (int)seed, backends[i % 2]->name,
                     weir_precision_text(config.precision));
            check_types(plan, where);
            if (config.is_training) {
                check_schedule(plan, &plan->training, true, where);
                check_schedule(plan, &plan->training, false, where);
            }
            check_schedule(plan, &plan->inference, true, where);
            plan_destroy(plan);
        }
        weir_graph_destroy(graph);
    }
}

END_TEST

/* The bytes of an image that a value lies in; none outside the slab. */
static bool do_locations_overlap(const struct net_plan *plan, const struct task_schedule *s,
                                 int32_t a, int32_t b)
{
    if (s->data[a].kind != LOCATION_SLAB || s->data[b].kind != LOCATION_SLAB) {
        return false;
    }
    size_t batch = (size_t)plan->batch;
    return s->data[a].offset < s->data[b].offset + batch * plan_image_bytes(plan, b) &&
           s->data[b].offset < s->data[a].offset + batch * plan_image_bytes(plan, a);
}

static bool reads_other_rows(const struct plan_op *o, int32_t j)
{
    bool is_local =
        o->op.kind == LAYER_CONV
            ? j > 0 || (o->op.conv.kernel_h == 1 && o->op.conv.stride == 1 && o->op.conv.pad_h == 0)
            : true;
    return o->op.n_row_tiles == 0 || !is_local;
}

/* With row tiles, tiles of an image run a stage's tasks at any time: a stage must not read what
 * another tile makes or overwrites in it. */
static void check_row_tiles(const struct net_plan *plan, const char *where)
{
    const struct task_schedule *s = &plan->inference;
    for (int32_t stage = 0; stage < s->n_stages; stage++) {
        for (int32_t i = s->first_task[stage]; i < s->first_task[stage + 1]; i++) {
            const struct plan_op *reader = &plan->ops[s->tasks[i].i_op];
            for (int32_t k = s->first_task[stage]; k < s->first_task[stage + 1]; k++) {
                const struct plan_op *writer = &plan->ops[s->tasks[k].i_op];
                for (int32_t j = 0; j < reader->op.n_in; j++) {
                    bool is_alone = reader->op.n_row_tiles == 0 && writer->op.n_row_tiles == 0;
                    bool can_differ = writer->op.n_row_tiles == 0 || reads_other_rows(reader, j);
                    if (!is_alone && can_differ && reader->op.kind != LAYER_INPUT &&
                        (reader->in[j] == writer->out ||
                         do_locations_overlap(plan, s, reader->in[j], writer->out))) {
                        ck_abort_msg("%s: %s reads what %s writes in stage %d", where,
                                     reader->op.name, writer->op.name, stage);
                    }
                }
            }
        }
    }
}

static bool batch_all(const struct op *op)
{
    return op->kind == LAYER_LINEAR || op->conv.groups == 1;
}

/* All ops with weights batch four slices, whatever their size. */
START_TEST(ops_that_batch_slices_find_what_they_need)
{
    struct weir_backend batching = weir_onednn_backend;
    batching.batches_slices = batch_all;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 8), NULL);
        struct weir_error err = {0};
        struct weir_net_config config = {.batch = 7,
                                         .n_slices = 6,
                                         .is_training = true,
                                         .updates_in_backward = seed % 4 < 2,
                                         .precision = (enum weir_precision)(seed % 2),
                                         .backend = &batching};
        struct net_plan *plan;
        char where[32];
        ck_assert_msg(plan_create(graph, &config, &plan, &err) == WEIR_OK, "%s", err.message);
        snprintf(where, sizeof(where), "seed %d, batched slices", (int)seed);
        check_schedule(plan, &plan->training, true, where);
        check_schedule(plan, &plan->training, false, where);
        check_schedule(plan, &plan->inference, true, where);
        plan_destroy(plan);
        weir_graph_destroy(graph);
    }
}

END_TEST

START_TEST(row_tiles_of_an_image_do_not_disturb_each_other)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 8), NULL);
        struct weir_error err = {0};
        struct weir_net_config config = {.batch = 3,
                                         .n_row_tiles = 2 + (int32_t)(seed % 3),
                                         .precision = (enum weir_precision)(seed % 2),
                                         .backend = &weir_onednn_backend};
        struct net_plan *plan;
        char where[32];
        ck_assert_msg(plan_create(graph, &config, &plan, &err) == WEIR_OK, "%s", err.message);
        snprintf(where, sizeof(where), "seed %d", (int)seed);
        check_row_tiles(plan, where);
        check_schedule(plan, &plan->inference, true, where);
        plan_destroy(plan);
        weir_graph_destroy(graph);
    }
}

END_TEST

/* x -> n times (conv, bn, relu) -> loss. */
static struct weir_graph *deep_graph(int n)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){8, 8, 8});
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "conv%d", i);
        x = weir_graph_conv(graph, name, x,
                            &(struct weir_conv_params){.k = 8,
                                                       .kernel_h = 3,
                                                       .kernel_w = 3,
                                                       .stride = 1,
                                                       .pad_h = 1,
                                                       .pad_w = 1,
                                                       .has_bias = false});
        snprintf(name, sizeof(name), "bn%d", i);
        x = weir_graph_batch_norm(graph, name, x);
        snprintf(name, sizeof(name), "relu%d", i);
        x = weir_graph_relu(graph, name, x);
    }
    x = weir_graph_linear(graph, "fc", x, 4, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

START_TEST(memory_grows_as_lifetimes_ask)
{
    size_t batch = 16;
    for (int i = 0; i < 8; i++) {
        int n = i % 2 ? 10 : 40;
        size_t image = 8 * 8 * 8 * (i / 2 % 2 ? sizeof(uint16_t) : sizeof(float));
        struct weir_graph *graph = deep_graph(n);
        struct weir_net_config config = {.batch = (int32_t)batch,
                                         .is_training = true,
                                         .keeps_all = i / 4,
                                         .precision = (enum weir_precision)(i / 2 % 2),
                                         .backend = &weir_onednn_backend};
        struct net_plan *plan;
        ck_assert_int_eq(plan_create(graph, &config, &plan, NULL), WEIR_OK);
        /* Training keeps the outputs of the convolution and of the norm, or only the first, and a
         * handful of gradients (and of recomputed values), however deep the net. */
        size_t kept = (config.keeps_all ? 2 : 1) * (size_t)n * image * batch;
        ck_assert_uint_ge(plan->training.slab_bytes, kept - 2 * image * batch);
        ck_assert_uint_le(plan->training.slab_bytes,
                          kept + (PLAN_DEFERRED_SLACK + 5) * image * batch);
        /* Inference keeps nothing for the batch and two tensors per tile. */
        ck_assert_uint_eq(plan->inference.slab_bytes, 0);
        ck_assert_uint_le(plan->inference.tile_bytes, 2 * image);
        ck_assert_int_eq(plan->inference.n_stages, 1);
        plan_destroy(plan);
        weir_graph_destroy(graph);
    }
}

END_TEST

WEIR_TEST_MAIN("plan", ops_that_batch_slices_find_what_they_need,
               row_tiles_of_an_image_do_not_disturb_each_other,
               no_tensor_is_overwritten_while_it_is_needed, memory_grows_as_lifetimes_ask)
