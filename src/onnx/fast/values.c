/* Where the values of a plan lie, and in which layouts. */
#include "plan.h"

#include "onednn.h"
#include "plan_private.h"

#include <stdlib.h>

struct weir_tensor *fast_tensor(const struct fast_plan *plan, int32_t value)
{
    if (value < 0) {
        return NULL;
    }
    struct weir_tensor *given = plan->fast->onnx->values[value];
    return given != NULL ? given : plan->values[value].tensor;
}

bool fast_is_constant(const struct fast_plan *plan, int32_t value)
{
    return value >= 0 && plan->values[value].place == FAST_CONSTANT;
}

bool fast_is_given(const struct fast_plan *plan, int32_t value)
{
    return value >= 0 && plan->fast->onnx->is_constant[value];
}

bool fast_is_dying(const struct fast_plan *plan, int32_t value)
{
    return plan->fast->chains.last[value] == plan->i_chain;
}

/* ---- forms ------------------------------------------------------------------------------------ */

static struct fast_form *add_form(struct fast_plan *plan, int32_t value,
                                  const struct weir_dnn_layout *md)
{
    struct fast_form **at = &plan->values[value].forms;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = WEIR_ARENA_NEW(&plan->arena, struct fast_form);
    (*at)->md = *md;
    (*at)->value = -1;
    return *at;
}

/* What is not in the region has its one form from its tensor. */
static weir_status first_form(struct fast_plan *plan, int32_t value, struct weir_error *err)
{
    const struct fast_value *at = &plan->values[value];
    if (at->forms != NULL) {
        return WEIR_OK;
    }
    if (at->lazy != NULL) {
        return fast_unlazy(plan, value, err);
    }
    const struct weir_tensor *tensor = fast_tensor(plan, value);
    if (at->place == FAST_ABSENT || tensor == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "value %d is not there", value);
    }
    struct weir_dnn_layout md = onednn_plain(tensor->dtype, tensor->rank, tensor->dims);
    struct fast_form *form = add_form(plan, value, &md);
    form->data = tensor->data;
    form->value = at->place == FAST_RUNTIME ? value : -1;
    return WEIR_OK;
}

weir_status fast_form_any(struct fast_plan *plan, int32_t value, struct fast_form **out,
                          struct weir_error *err)
{
    WEIR_TRY(first_form(plan, value, err));
    *out = plan->values[value].forms;
    return WEIR_OK;
}

static weir_status reorder(struct fast_plan *plan, const struct fast_form *from,
                           struct fast_form *to, struct weir_error *err)
{
    dnnl_primitive_desc_t desc;
    dnnl_primitive_attr_t attr = onednn_attr(false, NULL, 0);
    if (attr == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "oneDNN: no memory for attributes");
    }
    const struct weir_dnn_op op = {.kind = WEIR_DNN_REORDER, .src = &from->md, .dst = &to->md};
    dnnl_status_t status = weir_dnn_describe(&op, plan->fast->engine, attr, NULL, &desc);
    dnnl_primitive_attr_destroy(attr);
    WEIR_TRY(onednn_check(status, "describing a reorder", err));
    const struct fast_arg args[] = {fast_arg_of(DNNL_ARG_FROM, &from->md, from),
                                    fast_arg_of(DNNL_ARG_TO, &to->md, to)};
    return fast_add_primitive(plan, desc, args, 2, err);
}

weir_status fast_form_as(struct fast_plan *plan, int32_t value, const struct weir_dnn_layout *md,
                         struct fast_form **out, struct weir_error *err)
{
    const struct weir_dnn_layout simple = onednn_simple(md);
    WEIR_TRY(first_form(plan, value, err));
    for (struct fast_form *form = plan->values[value].forms; form != NULL; form = form->next) {
        if (weir_dnn_layout_equal(&form->md, &simple)) {
            *out = form;
            return WEIR_OK;
        }
    }
    const struct fast_form *from = plan->values[value].forms;
    struct fast_form *form = add_form(plan, value, &simple);
    form->block = WEIR_ARENA_NEW(&plan->arena, struct region_block);
    WEIR_TRY(region_take(&plan->fast->region, simple.n_bytes, form->block, err));
    form->data = region_at(&plan->fast->region, form->block);
    WEIR_TRY(reorder(plan, from, form, err));
    if (plan->values[value].place == FAST_REGION && onednn_is_plain(&simple)) {
        plan->values[value].tensor->data = form->data;
    }
    *out = form;
    return WEIR_OK;
}

weir_status fast_form_plain(struct fast_plan *plan, int32_t value, struct fast_form **out,
                            struct weir_error *err)
{
    WEIR_TRY(first_form(plan, value, err));
    const struct weir_tensor *tensor = fast_tensor(plan, value);
    const struct weir_dnn_layout md = onednn_plain(tensor->dtype, tensor->rank, tensor->dims);
    return fast_form_as(plan, value, &md, out, err);
}

/* ---- new values ------------------------------------------------------------------------------- */

/* A tensor of the region: it describes, and never frees what it describes. */
static weir_status describe(struct fast_plan *plan, int32_t value, enum weir_dtype dtype,
                            int32_t rank, const int64_t *dims, struct weir_error *err)
{
    const int64_t none = 0;
    struct weir_tensor *view;
    WEIR_TRY(weir_tensor_view(plan->anchor, 1, &none, &view, err));
    view->dtype = dtype;
    view->rank = rank;
    view->n_elems = 1;
    view->data = NULL;
    for (int32_t i = 0; i < rank; i++) {
        view->dims[i] = dims[i];
        view->n_elems *= (size_t)dims[i];
    }
    plan->values[value].tensor = view;
    plan->values[value].place = FAST_REGION;
    return WEIR_OK;
}

static weir_status place(struct fast_plan *plan, int32_t value, enum weir_dtype dtype,
                         const struct weir_dnn_layout *md, struct region_block *block,
                         struct weir_error *err)
{
    const struct weir_dnn_layout simple = onednn_simple(md);
    WEIR_TRY(describe(plan, value, dtype, md->ndims, md->dims, err));
    struct fast_form *form = add_form(plan, value, &simple);
    form->block = block;
    form->data = region_at(&plan->fast->region, block);
    if (onednn_is_plain(&simple)) {
        plan->values[value].tensor->data = form->data;
    }
    return WEIR_OK;
}

weir_status fast_make(struct fast_plan *plan, int32_t value, enum weir_dtype dtype,
                      const struct weir_dnn_layout *md, void **out_data, struct weir_error *err)
{
    struct region_block *block = WEIR_ARENA_NEW(&plan->arena, struct region_block);
    WEIR_TRY(region_take(&plan->fast->region, md->n_bytes, block, err));
    WEIR_TRY(place(plan, value, dtype, md, block, err));
    *out_data = region_at(&plan->fast->region, block);
    return WEIR_OK;
}

weir_status fast_make_over(struct fast_plan *plan, int32_t value, enum weir_dtype dtype,
                           const struct weir_dnn_layout *md, struct fast_form *form,
                           struct weir_error *err)
{
    form->block->n_references++;
    return place(plan, value, dtype, md, form->block, err);
}

static bool reads(const struct onnx_step *step, int32_t value)
{
    for (size_t k = 0; k < step->node->n_in; k++) {
        if (step->in[k] == value) {
            return true;
        }
    }
    return false;
}

/* Steps of the chain that read the value, from the one that is being prepared on. */
static size_t count_readers(const struct fast_plan *plan, int32_t value)
{
    const struct fast_chain *chain = &plan->fast->chains.chains[plan->i_chain];
    size_t n = 0;
    for (size_t i = 0; i < chain->n; i++) {
        n += chain->steps[i] >= plan->i_step &&
             reads(&plan->fast->onnx->steps[chain->steps[i]], value);
    }
    return n;
}

bool fast_may_take(const struct fast_plan *plan, int32_t value, const struct fast_form *form)
{
    return form->block != NULL && form->block->n_references == 1 && fast_is_dying(plan, value) &&
           count_readers(plan, value) <= 1;
}

weir_status fast_add_form(struct fast_plan *plan, int32_t value, const struct weir_dnn_layout *md,
                          void **out_data, struct weir_error *err)
{
    const struct weir_dnn_layout simple = onednn_simple(md);
    struct fast_form *form = add_form(plan, value, &simple);
    form->block = WEIR_ARENA_NEW(&plan->arena, struct region_block);
    WEIR_TRY(region_take(&plan->fast->region, md->n_bytes, form->block, err));
    form->data = region_at(&plan->fast->region, form->block);
    if (onednn_is_plain(&simple)) {
        plan->values[value].tensor->data = form->data;
    }
    *out_data = form->data;
    return WEIR_OK;
}

weir_status fast_make_lazy(struct fast_plan *plan, int32_t value, struct fast_form *form,
                           const struct weir_tensor *x, float scale, int32_t zero,
                           struct weir_error *err)
{
    struct fast_lazy *lazy = WEIR_ARENA_NEW(&plan->arena, struct fast_lazy);
    struct fast_form *own = WEIR_ARENA_NEW(&plan->arena, struct fast_form);
    WEIR_TRY(describe(plan, value, WEIR_DTYPE_FLOAT, x->rank, x->dims, err));
    form->block->n_references++;
    *own = *form; /* that of x goes with x */
    own->next = NULL;
    *lazy = (struct fast_lazy){own, x->dtype, scale, zero};
    plan->values[value].lazy = lazy;
    return WEIR_OK;
}

weir_status fast_bytes_as(struct fast_plan *plan, int32_t value, const struct weir_dnn_layout *md,
                          struct fast_form **out, struct weir_error *err)
{
    const struct weir_dnn_layout simple = onednn_simple(md);
    struct fast_form *first = plan->values[value].lazy->form, *last = first;
    for (struct fast_form *form = first; form != NULL; form = form->next) {
        if (weir_dnn_layout_equal(&form->md, &simple)) {
            *out = form;
            return WEIR_OK;
        }
        last = form;
    }
    struct fast_form *form = WEIR_ARENA_NEW(&plan->arena, struct fast_form);
    *form = (struct fast_form){
        .md = simple, .value = -1, .block = WEIR_ARENA_NEW(&plan->arena, struct region_block)};
    WEIR_TRY(region_take(&plan->fast->region, md->n_bytes, form->block, err));
    form->data = region_at(&plan->fast->region, form->block);
    last->next = form;
    *out = form;
    return reorder(plan, first, form, err);
}

weir_status fast_make_shared(struct fast_plan *plan, int32_t value, const struct fast_lazy *lazy,
                             struct weir_error *err)
{
    lazy->form->block->n_references++;
    return place(plan, value, lazy->dtype, &lazy->form->md, lazy->form->block, err);
}

weir_status fast_make_alias(struct fast_plan *plan, int32_t value, int32_t of,
                            const struct weir_tensor *shape, struct weir_error *err)
{
    struct fast_form *form;
    WEIR_TRY(fast_form_plain(plan, of, &form, err));
    const struct weir_dnn_layout md = onednn_plain(shape->dtype, shape->rank, shape->dims);
    form->block->n_references++;
    WEIR_TRY(describe(plan, value, shape->dtype, shape->rank, shape->dims, err));
    struct fast_form *alias = add_form(plan, value, &md);
    alias->block = form->block;
    alias->data = form->data;
    plan->values[value].tensor->data = form->data;
    return WEIR_OK;
}

weir_status fast_scratch(struct fast_plan *plan, size_t n_bytes, struct region_block **out,
                         void **out_data, struct weir_error *err)
{
    *out = WEIR_ARENA_NEW(&plan->arena, struct region_block);
    WEIR_TRY(region_take(&plan->fast->region, n_bytes, *out, err));
    *out_data = region_at(&plan->fast->region, *out);
    return WEIR_OK;
}

void fast_forget(struct fast_plan *plan, int32_t value)
{
    for (struct fast_form *form = plan->values[value].forms; form != NULL; form = form->next) {
        if (form->block != NULL) {
            region_give(&plan->fast->region, form->block);
            form->block = NULL;
        }
    }
    struct fast_lazy *lazy = plan->values[value].lazy;
    for (struct fast_form *form = lazy != NULL ? lazy->form : NULL; form != NULL;
         form = form->next) {
        if (form->block != NULL) {
            region_give(&plan->fast->region, form->block);
            form->block = NULL;
        }
    }
}
