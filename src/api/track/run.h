/** Which runs and experiments a query is about. */
#ifndef WEIR_API_RUN_H
#define WEIR_API_RUN_H

#include "api/core/call.h"
#include "track/run_search.h"

/** "view" of the query: active, deleted or all. */
enum weir_view api_query_view(const struct api_call *call);
/** The projects a search looks in: "project" of the query, else all that the call sees; NULL: all there
 *  are. False if the one that is named is not seen. */
bool api_query_projects(const struct api_call *call, const char *const **out, size_t *out_n);

/** Which runs the query is about: "filter", "view", "experiment", "project", "ion", "status", "job".
 *  *out_has_any is false where the caller sees none of what it names. */
weir_status api_query_runs(struct api_call *call, struct weir_txn *txn, struct weir_run_search *out,
                           bool *out_has_any, struct weir_error *err) WEIR_MUST_CHECK;

#endif
