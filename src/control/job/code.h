/** What a job brings along, when it is made: is it its project's, and what its run tells of it. */
#ifndef WEIR_CONTROL_CODE_H
#define WEIR_CONTROL_CODE_H

#include "base/json.h"
#include "control/control.h"
#include "track/experiment.h"

#define CONTROL_CODE_TAGS_MAX 8

/** The code that a specification names is known to the project, and its secrets are there. */
weir_status control_code_bring(struct control *control, struct weir_txn *txn, const char *project,
                               const json_t *spec, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Tags of the run of a user's program, named as MLflow's clients do: where its code is from. In the control's
 * arena.
 * @return How many.
 */
size_t control_code_tags(const struct control *control, const json_t *spec,
                         struct weir_tag out[CONTROL_CODE_TAGS_MAX]);

#endif
