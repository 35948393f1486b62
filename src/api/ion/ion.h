/** IONs, for whatever belongs to one. */
#ifndef WEIR_API_ION_H
#define WEIR_API_ION_H

#include "api/core/call.h"
#include "base/record.h"

/** The path's ION. A deleted one is gone for readers; its history stays in events and decisions. */
struct weir_ion_state;
weir_status api_ion_load(struct api_call *call, struct weir_txn *txn, struct weir_ion_state *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** An ION with its pipelines and links; the caller's reference. */
weir_status api_ion_look(struct api_call *call, struct weir_txn *txn, const char *name,
                         json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Answer what a document would come to: the ION as it would be, the warnings, and `effects`, a list of
 *  {kind, pipeline, link, text} of what the engine would do at once. */
struct weir_ion_actions;
weir_status api_ion_plan(struct api_call *call, struct weir_txn *txn, const char *name,
                         const struct weir_ion_actions *actions, json_t *warnings,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Answer an ION with its pipelines and links, and with warnings (an array; NULL: without). */
weir_status api_ion_answer(struct api_call *call, struct weir_txn *txn, const char *name,
                           json_t *warnings, struct weir_error *err) WEIR_MUST_CHECK;

/** The records of the path's ION, newest first by order_by. */
weir_status api_list_of_ion(struct api_call *call, struct weir_txn *txn, const char *order_by,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
