/**
 * A route, as a row of the table (routes.c): what of a request it takes, who may call it, what it answers, and the
 * function that does it.
 */
#ifndef WEIR_API_ROUTE_H
#define WEIR_API_ROUTE_H

#include "base/record.h"
#include "store/rights.h"
#include "store/store.h"

struct api_call;

enum api_access {
    API_NONE,  /**< No transaction: txn is NULL; the function opens its own. */
    API_READ,  /**< On a snapshot. */
    API_WRITE, /**< Durable when the answer leaves; may run twice. */
};

typedef weir_status (*api_fn)(struct api_call *call, struct weir_txn *txn, struct weir_error *err);

enum api_flags {
    API_OPEN = 1 << 0,      /**< Needs no identity. */
    API_LIST = 1 << 1,      /**< Answers {"items":[…],"next"}. */
    API_UPLOAD = 1 << 2,    /**< Body is bytes, to a file. */
    API_BYTES_IN = 1 << 3,  /**< Body is bytes, in memory. */
    API_BYTES_OUT = 1 << 4, /**< Answers bytes, not JSON. */
    API_NOTIFY = 1 << 5,    /**< The engine should look after it. */
    API_EVENTS = 1 << 6,    /**< Answers a stream of server-sent events. */
    API_WHOLE = 1 << 7,     /**< Once the path's noun is found to be the caller's, it looks at the
                               whole cluster, and answers about that noun alone. */
    /* What of the request must be the task's or the agent's own: scope.h. */
    API_FOR_TASKS = 1 << 8,      /**< Nothing: any task may call it. */
    API_OWN_RUN = 1 << 9,        /**< First parameter: the run. */
    API_OWN_MODEL = 1 << 10,     /**< $.run. */
    API_OWN_PIPELINE = 1 << 11,  /**< First parameters: ION, pipeline, and if named the replica. */
    API_OWN_REPORT = 1 << 12,    /**< $.ion, $.pipeline, and $.replica if it is there. */
    API_OWN_DECISIONS = 1 << 13, /**< The same of each decision. */
    API_OWN_NODE = 1 << 14,      /**< First parameter: the agent's node. */
    API_OWN_TASK = 1 << 15,      /**< First parameter and attempt: placed on the agent's node. */
    API_OWN_DEPLOYED = 1 << 16,  /**< First parameters: deployment, and if named the replica. */
    API_OWN_JOB = 1 << 18,       /**< First parameter: the job. */
    API_OWN_ION = 1 << 19,       /**< First parameter: the ION of the task. */
    API_FLOW = 1 << 20,          /**< Takes data in: the audit has the first of a minute (act.h). */
    API_ACT_FIRST = 1 << 21,     /**< Changes files: the audit is written before (act.h). */
    API_ASKS = 1 << 22,          /**< Changes nothing, whatever its method. */
    API_TELLS = 1 << 23,         /**< A message about alerts may wait after it: its sender looks. */
    API_ARTIFACT =
        1 << 24,          /**< With UPLOAD: as large as an artifact may be; its digest is taken. */
    API_BEYOND = 1 << 25, /**< What a task does by it is not its own run's alone: an act (act.h). */
    API_FORMER = 1 << 26, /**< Also by the token that tasks of before shared (job/former.h). */
    API_MAKES = 1 << 17,  /**< The noun that the path begins with need not be there: it makes it. */
};

/** Query parameters a route takes, for the document: "limit", "after" … separated by blanks. */
struct api_route {
    const char *method;
    const char
        *pattern; /**< "/api/v1/jobs/{id}"; "{path}" at the end is all that is left, slashes too. */
    const char *summary;
    enum weir_right right; /**< That the caller must have (store/rights.def). */
    enum api_access access;
    unsigned flags;
    const struct weir_resource *in;  /**< Record in the body, or NULL. */
    const struct weir_resource *out; /**< Record of the answer or of its items, or NULL. */
    const char *query;               /**< Query parameters, or NULL. */
    uint64_t max_body_bytes;         /**< 0 = 1 MiB. */
    api_fn fn;
};

extern const struct api_route api_routes[];
extern const size_t api_n_routes;

/** Declares a route's function (functions.h). */
#define API_FN(name)                                                                               \
    weir_status name(struct api_call *call, struct weir_txn *txn, struct weir_error *err)

#endif
