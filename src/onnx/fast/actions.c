/* What a plan consists of: primitives, kernels, interpreted steps, and drops of values. */
#include "plan.h"

#include "alarm.h"
#include "onednn.h"
#include "plan_private.h"

#include "base/clock.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

static void *address_of(const struct fast_plan *plan, const struct fast_arg *arg)
{
    return arg->value >= 0 ? fast_tensor(plan, arg->value)->data : arg->data;
}

weir_status fast_action_run(struct fast_plan *plan, struct fast_action *action,
                            struct weir_error *err)
{
    uint64_t begin = plan->fast->profiles ? weir_mono_ns() : 0;
    bool listens = action->hides_nan && !plan->rings;
    if (listens) {
        alarm_silence_here();
    }
    WEIR_TRY(action->run(plan, action, err));
    plan->rings = plan->rings || (listens && alarm_rings(plan->fast->n_threads));
    if (plan->fast->profiles) {
        action->sum_ns += weir_mono_ns() - begin;
        action->n_runs++;
    }
    return WEIR_OK;
}

void fast_hide_nan(struct fast_plan *plan)
{
    plan->hides_next = true;
}

static weir_status add(struct fast_plan *plan, struct fast_action *action, struct weir_error *err)
{
    if (weir_grow(&plan->actions, sizeof(struct fast_action *), plan->n_actions,
                  &plan->actions_cap) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model's plan");
    }
    action->i_step = plan->i_step;
    action->hides_nan = plan->hides_next;
    plan->hides_next = false;
    plan->actions[plan->n_actions++] = action;
    return fast_action_run(plan, action, err);
}

static struct fast_action *make_action(struct fast_plan *plan, const struct fast_arg *args,
                                       int32_t n_args)
{
    struct fast_action *action = WEIR_ARENA_NEW(&plan->arena, struct fast_action);
    action->args = WEIR_ARENA_ARRAY(&plan->arena, (size_t)n_args + 1, struct fast_arg);
    action->n_args = n_args;
    if (n_args > 0) {
        memcpy(action->args, args, (size_t)n_args * sizeof *args);
    }
    return action;
}

/* ---- primitives ------------------------------------------------------------------------------- */

static weir_status run_primitive(struct fast_plan *plan, struct fast_action *action,
                                 struct weir_error *err)
{
    for (int32_t i = 0; i < action->n_args; i++) {
        if (action->args[i].value >= 0) {
            WEIR_TRY(onednn_check(dnnl_memory_set_data_handle(action->memories[i].memory,
                                                              address_of(plan, &action->args[i])),
                                  "setting an address", err));
        }
    }
    return onednn_check(dnnl_primitive_execute(action->primitive, plan->fast->stream,
                                               action->n_args, action->memories),
                        "running a primitive", err);
}

static weir_status make_memories(struct fast_plan *plan, struct fast_action *action,
                                 struct weir_error *err)
{
    action->memories = WEIR_ARENA_ARRAY(&plan->arena, (size_t)action->n_args, dnnl_exec_arg_t);
    for (int32_t i = 0; i < action->n_args; i++) {
        const struct fast_arg *arg = &action->args[i];
        action->memories[i].arg = arg->which;
        WEIR_TRY(onednn_check(weir_dnn_memory(&action->memories[i].memory, arg->md,
                                              plan->fast->engine, address_of(plan, arg)),
                              "creating a memory object", err));
    }
    return WEIR_OK;
}

static weir_status finish_primitive(struct fast_plan *plan, dnnl_primitive_desc_t desc,
                                    struct fast_action *action, struct weir_error *err)
{
    const struct weir_dnn_layout *scratch = onednn_query(plan, desc, dnnl_query_scratchpad_md);
    size_t n_bytes = scratch->n_bytes;
    struct region_block *block = NULL;
    if (n_bytes > 0) {
        void *data;
        WEIR_TRY(fast_scratch(plan, n_bytes, &block, &data, err));
        action->args[action->n_args++] = fast_arg_at(DNNL_ARG_SCRATCHPAD, scratch, data);
    }
    weir_status status = make_memories(plan, action, err);
    if (status == WEIR_OK) {
        status = onednn_check(dnnl_primitive_create(&action->primitive, desc),
                              "creating a primitive", err);
    }
    if (status == WEIR_OK) {
        status = add(plan, action, err);
    } else {
        fast_action_fini(action);
    }
    if (block != NULL) {
        region_give(&plan->fast->region, block);
    }
    return status;
}

weir_status fast_add_primitive(struct fast_plan *plan, dnnl_primitive_desc_t desc,
                               const struct fast_arg *args, int32_t n_args, struct weir_error *err)
{
    struct fast_action *action = make_action(plan, args, n_args);
    action->run = run_primitive;
    (void)dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &action->name);
    weir_status status = finish_primitive(plan, desc, action, err);
    dnnl_primitive_desc_destroy(desc);
    action->name = action->name != NULL ? action->name : "";
    return status;
}

void fast_action_fini(struct fast_action *action)
{
    for (int32_t i = 0; action->memories != NULL && i < action->n_args; i++) {
        if (action->memories[i].memory != NULL) {
            dnnl_memory_destroy(action->memories[i].memory);
            action->memories[i].memory = NULL;
        }
    }
    if (action->primitive != NULL) {
        dnnl_primitive_destroy(action->primitive);
        action->primitive = NULL;
    }
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static weir_status run_kernel(struct fast_plan *plan, struct fast_action *action,
                              struct weir_error *err)
{
    for (int32_t i = 0; i < action->n_args; i++) {
        action->at[i] = address_of(plan, &action->args[i]);
    }
    weir_status status = action->kernel(action->detail, action->at, plan->fast->n_threads);
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s failed", action->name);
}

weir_status fast_add_kernel(struct fast_plan *plan, const char *name, fast_kernel_fn kernel,
                            const void *detail, const struct fast_arg *args, int32_t n_args,
                            struct weir_error *err)
{
    struct fast_action *action = make_action(plan, args, n_args);
    action->run = run_kernel;
    action->name = name;
    action->kernel = kernel;
    action->detail = detail;
    action->at = WEIR_ARENA_ARRAY(&plan->arena, (size_t)n_args, void *);
    return add(plan, action, err);
}

/* ---- interpreted steps ------------------------------------------------------------------------ */

static weir_status interpret(struct fast_plan *plan, size_t i_step, struct weir_error *err)
{
    const struct onnx_step *step = &plan->fast->onnx->steps[i_step];
    WEIR_AUTO(weir_auto_free)
    struct weir_tensor **in = calloc(step->node->n_in + 1, sizeof(struct weir_tensor *));
    if (in == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a node's inputs");
    }
    for (size_t i = 0; i < step->node->n_in; i++) {
        in[i] = fast_tensor(plan, step->in[i]);
    }
    return onnx_step_run(plan->fast->onnx, step, in, err);
}

static bool is_shape(const struct fast_shape *shape, const struct weir_tensor *tensor)
{
    return shape->dtype == tensor->dtype && shape->rank == tensor->rank &&
           memcmp(shape->dims, tensor->dims, (size_t)shape->rank * sizeof *shape->dims) == 0;
}

static weir_status run_interpreted(struct fast_plan *plan, struct fast_action *action,
                                   struct weir_error *err)
{
    const struct onnx_step *step = &plan->fast->onnx->steps[action->i_step];
    WEIR_TRY(interpret(plan, action->i_step, err));
    for (size_t i = 0; action->shapes != NULL && i < step->node->n_out; i++) {
        if (step->out[i] >= 0 &&
            !is_shape(&action->shapes[i], plan->fast->onnx->values[step->out[i]])) {
            action->has_moved = true;
        }
    }
    return WEIR_OK;
}

/* Steps of constants and of shapes are computed while the plan is made, and never again. */
static bool is_fixed(const struct fast_plan *plan, const struct onnx_step *step)
{
    bool is = strcmp(step->node->type, "Shape") != 0 && strcmp(step->node->type, "Size") != 0;
    if (onnx_node_draws(step->node)) {
        return false;
    }
    for (size_t i = 0; is && i < step->node->n_in; i++) {
        if (step->in[i] >= 0 && !fast_is_constant(plan, step->in[i])) {
            return false;
        }
    }
    return true;
}

/* The input whose memory in the region the output is; -1: none, or other inputs may change what it
 * is. */
static int32_t aliased(const struct fast_plan *plan, const struct onnx_step *step,
                       const struct weir_tensor *out)
{
    const struct fast_value *first =
        step->node->n_in > 0 && step->in[0] >= 0 ? &plan->values[step->in[0]] : NULL;
    bool is = step->node->n_out == 1 && first != NULL && first->place == FAST_REGION &&
              first->tensor->data == out->data && out->owner != NULL;
    for (size_t i = 1; is && i < step->node->n_in; i++) {
        is = step->in[i] < 0 || fast_is_constant(plan, step->in[i]);
    }
    return is && onednn_has_dtype(out->dtype) ? step->in[0] : -1;
}

/* A view of memory in the region that is made again in each run: the memory is kept to the end. */
static void pin(struct fast_plan *plan, const struct onnx_step *step, const void *data)
{
    for (size_t i = 0; i < step->node->n_in; i++) {
        struct fast_form *form = step->in[i] >= 0 ? plan->values[step->in[i]].forms : NULL;
        for (; form != NULL; form = form->next) {
            if (form->block != NULL && form->data == data) {
                form->block->n_references++;
            }
        }
    }
}

static void note_shape(struct fast_action *action, size_t i, const struct weir_tensor *tensor)
{
    action->shapes[i].dtype = tensor->dtype;
    action->shapes[i].rank = tensor->rank;
    memcpy(action->shapes[i].dims, tensor->dims, sizeof tensor->dims);
}

static void place_outputs(struct fast_plan *plan, const struct onnx_step *step,
                          struct fast_action *action)
{
    struct weir_tensor **values = plan->fast->onnx->values;
    action->shapes = WEIR_ARENA_ARRAY(&plan->arena, step->node->n_out, struct fast_shape);
    for (size_t i = 0; i < step->node->n_out; i++) {
        if (step->out[i] >= 0) {
            plan->values[step->out[i]].place = FAST_RUNTIME;
            note_shape(action, i, values[step->out[i]]);
            const void *viewed = onnx_node_may_train(step->node)
                                     ? fast_tensor(plan, step->in[0])->data
                                     : values[step->out[i]]->data;
            if (region_has(&plan->fast->region, viewed)) {
                pin(plan, step, viewed);
            }
        }
    }
}

static void fix_outputs(struct fast_plan *plan, const struct onnx_step *step)
{
    struct weir_tensor **values = plan->fast->onnx->values;
    for (size_t i = 0; i < step->node->n_out; i++) {
        if (step->out[i] >= 0) {
            plan->values[step->out[i]].place = FAST_CONSTANT;
            plan->values[step->out[i]].tensor = values[step->out[i]];
            values[step->out[i]] = NULL;
        }
    }
}

static weir_status plain_inputs(struct fast_plan *plan, const struct onnx_step *step,
                                struct weir_error *err)
{
    bool looks = strcmp(step->node->type, "Shape") != 0 && strcmp(step->node->type, "Size") != 0;
    for (size_t i = 0; looks && i < step->node->n_in; i++) {
        struct fast_form *form;
        if (step->in[i] >= 0 && plan->values[step->in[i]].place == FAST_REGION) {
            WEIR_TRY(fast_form_plain(plan, step->in[i], &form, err));
        }
    }
    return WEIR_OK;
}

weir_status fast_add_interpreted(struct fast_plan *plan, size_t i_step, struct weir_error *err)
{
    const struct onnx_step *step = &plan->fast->onnx->steps[i_step];
    struct weir_tensor **values = plan->fast->onnx->values;
    plan->i_step = i_step;
    WEIR_TRY(plain_inputs(plan, step, err));
    if (is_fixed(plan, step)) {
        WEIR_TRY(interpret(plan, i_step, err));
        fix_outputs(plan, step);
        return WEIR_OK;
    }
    struct fast_action *action = make_action(plan, NULL, 0);
    action->run = run_interpreted;
    action->name = "interpreted";
    WEIR_TRY(add(plan, action, err));
    int32_t of =
        step->node->n_out > 0 && step->out[0] >= 0 ? aliased(plan, step, values[step->out[0]]) : -1;
    if (of >= 0) {
        struct weir_tensor *view = values[step->out[0]];
        plan->n_actions--; /* nothing is to be done in later runs */
        values[step->out[0]] = NULL;
        weir_status status = fast_make_alias(plan, step->out[0], of, view, err);
        weir_tensor_release(view);
        return status;
    }
    place_outputs(plan, step, action);
    plan->n_interpreted++;
    return WEIR_OK;
}

/* ---- drops ------------------------------------------------------------------------------------ */

static weir_status run_drop(struct fast_plan *plan, struct fast_action *action,
                            struct weir_error *err)
{
    (void)err;
    onnx_drop(plan->fast->onnx, action->drops);
    return WEIR_OK;
}

weir_status fast_add_drop(struct fast_plan *plan, int32_t value, struct weir_error *err)
{
    struct fast_action *action = make_action(plan, NULL, 0);
    action->run = run_drop;
    action->name = "drop";
    action->drops = value;
    return add(plan, action, err);
}
