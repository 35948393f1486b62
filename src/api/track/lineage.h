/** Lineage crosses nouns: whoever asks must be allowed to read all of them. */
#ifndef WEIR_API_LINEAGE_H
#define WEIR_API_LINEAGE_H

#include "api/core/call.h"

/**
 * Read in the projects in which the caller may read datasets, runs, models, IONs, decisions and health, whatever right
 * the route names: what is of others is not there.
 * @return NOT_FOUND: there is no such project, with which right is missing; what fn returned.
 */
weir_status api_lineage_read(struct api_call *call, weir_txn_fn fn, void *context,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
