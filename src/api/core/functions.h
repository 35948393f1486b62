/** The functions of all routes: their rows declare them (api/core/routes.def). */
#ifndef WEIR_API_FUNCTIONS_H
#define WEIR_API_FUNCTIONS_H

#include "base/status.h"

struct api_call;
struct weir_txn;

/** A route's function. */
#define API_FN(name)                                                                               \
    weir_status name(struct api_call *call, struct weir_txn *txn, struct weir_error *err)

#define ROUTE(fn, ...) API_FN(fn);
#include "api/core/routes.def"
#undef ROUTE

API_FN(api_job_release); /**< Also what resume does to a job that is held. */

#endif
