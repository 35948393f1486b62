/** What the files of a plan share: plan.c, values.c, actions.c. */
#ifndef WEIR_ONNX_FAST_PLAN_PRIVATE_H
#define WEIR_ONNX_FAST_PLAN_PRIVATE_H

#include "plan.h"

/** Runs an action, and takes its time where that is asked for. */
weir_status fast_action_run(struct fast_plan *plan, struct fast_action *action,
                            struct weir_error *err) WEIR_MUST_CHECK;
void fast_action_fini(struct fast_action *action);

/** A step that the interpreter runs. */
weir_status fast_add_interpreted(struct fast_plan *plan, size_t i_step,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/** A value that the interpreter made and nobody needs any more. */
weir_status fast_add_drop(struct fast_plan *plan, int32_t value,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** A value whose elements are those of another, in plain order. */
weir_status fast_make_alias(struct fast_plan *plan, int32_t value, int32_t of,
                            const struct weir_tensor *shape,
                            struct weir_error *err) WEIR_MUST_CHECK;
/** Makes the first form of a lazy value. */
weir_status fast_unlazy(struct fast_plan *plan, int32_t value,
                        struct weir_error *err) WEIR_MUST_CHECK;
/** The value's memory is free for others. */
void fast_forget(struct fast_plan *plan, int32_t value);

#endif
