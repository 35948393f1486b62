/**
 * Plan: what a run does for inputs of one shape. It is made while the first such run goes on: each
 * action is carried out as it is added, so that tensors that decide about shapes are there.
 *
 * A value of the model is in one of these places. RUNTIME: an input, or what the interpreter makes
 * in each run. CONSTANT: of the model, or of every run of this shape. REGION: in the region, in one
 * or several layouts (forms).
 *
 * An action may make a number of a NaN. If one has met a NaN (alarm.h), the run is done again by a plan that
 * keeps NaN, whose activations and largest of windows the interpreter computes.
 */
#ifndef WEIR_ONNX_FAST_PLAN_H
#define WEIR_ONNX_FAST_PLAN_H

#include "fast_private.h"

enum fast_place { FAST_ABSENT, FAST_RUNTIME, FAST_CONSTANT, FAST_REGION };

/** A layout of a value. */
struct fast_form {
    struct weir_dnn_layout md;
    void *data;
    int32_t value;              /**< Its data are where this value is in each run; -1: at data. */
    struct region_block *block; /**< NULL: not in the region. */
    struct fast_form *next;
};

/** Bytes that a value is to be made from, when somebody needs it. */
struct fast_lazy {
    struct fast_form *form; /**< What there is, and behind it other layouts. Each has its block. */
    enum weir_dtype dtype;
    float scale;
    int32_t zero;
};

struct fast_value {
    enum fast_place place;
    struct weir_tensor *tensor; /**< REGION: its shape, and data if they are in plain order.
                                     CONSTANT: of this plan, with a reference. */
    struct fast_form *forms;    /**< The first is what was made; none: it is lazy. */
    struct fast_lazy *lazy;     /**< NULL: it does not come from bytes (quant.h). */
};

/** A memory that an action reads or writes. */
struct fast_arg {
    int which; /**< DNNL_ARG_…; of kernels any number. */
    const struct weir_dnn_layout *md;
    void *data;
    int32_t value; /**< As in a form. */
};

/** A kernel of our own: the addresses of its arguments, in their order. */
typedef weir_status (*fast_kernel_fn)(const void *detail, void *const *at, int32_t n_threads);

struct fast_shape {
    enum weir_dtype dtype;
    int32_t rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
};

struct fast_action {
    weir_status (*run)(struct fast_plan *plan, struct fast_action *action, struct weir_error *err);
    size_t i_step; /**< For messages and times. */
    const char *name;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t *memories;
    void **at;
    struct fast_arg *args;
    int32_t n_args;
    fast_kernel_fn kernel;
    const void *detail;
    int32_t drops;             /**< A value that is not needed any more. */
    struct fast_shape *shapes; /**< Of the outputs that the interpreter made. */
    bool has_moved;            /**< The shapes were others: the plan does not hold. */
    bool hides_nan;            /**< It may make a number of a NaN (alarm.h). */
    uint64_t sum_ns, n_runs;
};

struct fast_plan {
    struct fast *fast;
    struct weir_arena arena;
    struct fast_shape *inputs;
    struct fast_value *values;
    struct fast_action **actions;
    size_t n_actions, actions_cap;
    size_t i_chain, i_step; /**< While it is made: what is prepared. */
    uint64_t last_run;
    size_t n_interpreted;
    int64_t n_images; /**< The inputs' first dimension, if it is free; else 0. */
    bool keeps_apart; /**< No step mixes images (batch.h). */
    bool keeps_nan;   /**< No action makes a number of a NaN: slower. */
    bool hides_next;  /**< The action that is added next may. */
    bool rings;       /**< In its last run one may have done so: the run does not count. */
    struct weir_tensor *anchor; /**< Owner of the tensors in the region. */
};

/** Makes the plan and, by that, runs it. */
weir_status fast_plan_make(struct fast *fast, bool keeps_nan, struct fast_plan **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** Repeats it. *out_holds false: a tensor had another shape than planned; nothing was returned. */
weir_status fast_plan_run(struct fast_plan *plan, bool *out_holds,
                          struct weir_error *err) WEIR_MUST_CHECK;
void fast_plan_free(struct fast_plan *plan);

/* ---- for operators ---------------------------------------------------------------------------- */

/** The tensor of a value: its type and shape, and its data if they are there in plain order. NULL:
 *  left out. */
struct weir_tensor *fast_tensor(const struct fast_plan *plan, int32_t value);
/** Do the data never change in runs of this plan? */
bool fast_is_constant(const struct fast_plan *plan, int32_t value);
/** Are they the same in all plans? Only then may they be packed (fast_pack_find): a plan's own constants
 *  come from the shape of its inputs. */
bool fast_is_given(const struct fast_plan *plan, int32_t value);
/** Does nobody read the value behind the chain that is being prepared? */
bool fast_is_dying(const struct fast_plan *plan, int32_t value);

/** The value in a layout; it is reordered if it is in none such. */
weir_status fast_form_as(struct fast_plan *plan, int32_t value, const struct weir_dnn_layout *md,
                         struct fast_form **out, struct weir_error *err) WEIR_MUST_CHECK;
/** The value as it was made. */
weir_status fast_form_any(struct fast_plan *plan, int32_t value, struct fast_form **out,
                          struct weir_error *err) WEIR_MUST_CHECK;
/** The value in plain order. */
weir_status fast_form_plain(struct fast_plan *plan, int32_t value, struct fast_form **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Makes a value of the region. *out_data is where it lies. */
weir_status fast_make(struct fast_plan *plan, int32_t value, enum weir_dtype dtype,
                      const struct weir_dnn_layout *md, void **out_data,
                      struct weir_error *err) WEIR_MUST_CHECK;
/** The same in the memory of a form, which must be one that nobody needs any more. */
weir_status fast_make_over(struct fast_plan *plan, int32_t value, enum weir_dtype dtype,
                           const struct weir_dnn_layout *md, struct fast_form *form,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** May a new value take a form's memory? Only if nobody reads the value but one step of the chain that
 *  is being prepared: another step of that chain would read what the first has written over it. */
bool fast_may_take(const struct fast_plan *plan, int32_t value, const struct fast_form *form);

/** A value that is only made when somebody needs it: from bytes in the region, of x's shape. */
weir_status fast_make_lazy(struct fast_plan *plan, int32_t value, struct fast_form *form,
                           const struct weir_tensor *x, float scale, int32_t zero,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** A value that is the bytes of a lazy one. */
weir_status fast_make_shared(struct fast_plan *plan, int32_t value, const struct fast_lazy *lazy,
                             struct weir_error *err) WEIR_MUST_CHECK;
/** The bytes of a lazy value in a layout. */
weir_status fast_bytes_as(struct fast_plan *plan, int32_t value, const struct weir_dnn_layout *md,
                          struct fast_form **out, struct weir_error *err) WEIR_MUST_CHECK;
/** Memory of the region for one more layout of a value. */
weir_status fast_add_form(struct fast_plan *plan, int32_t value, const struct weir_dnn_layout *md,
                          void **out_data, struct weir_error *err) WEIR_MUST_CHECK;

/** Adds a primitive and runs it. The descriptor is destroyed. md of the arguments are those that
 *  the descriptor tells, or others of the same layout. */
weir_status fast_add_primitive(struct fast_plan *plan, dnnl_primitive_desc_t desc,
                               const struct fast_arg *args, int32_t n_args,
                               struct weir_error *err) WEIR_MUST_CHECK;
/** Adds a kernel and runs it. The detail lies in the plan's arena. */
weir_status fast_add_kernel(struct fast_plan *plan, const char *name, fast_kernel_fn kernel,
                            const void *detail, const struct fast_arg *args, int32_t n_args,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The action that is added next may make a number of a NaN. */
void fast_hide_nan(struct fast_plan *plan);

/** Memory for the action that is added next only. */
weir_status fast_scratch(struct fast_plan *plan, size_t n_bytes, struct region_block **out,
                         void **out_data, struct weir_error *err) WEIR_MUST_CHECK;

static inline struct fast_arg fast_arg_of(int which, const struct weir_dnn_layout *md,
                                          const struct fast_form *form)
{
    return (struct fast_arg){which, md, form->data, form->value};
}

static inline struct fast_arg fast_arg_at(int which, const struct weir_dnn_layout *md, void *data)
{
    return (struct fast_arg){which, md, data, -1};
}

#endif
