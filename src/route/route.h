/**
 * Routes: what a request can ask for, as rows of tables. A row says which requests it takes, what right the caller needs, in
 * what transaction it runs, what goes in and what comes out, and which function does it. A new route is one row and
 * its function.
 *
 * Three nouns. A *route* is a row. A *table* holds the routes of one family of nouns, or of one API. A *parameter* is
 * what a route reads of the query: its name, its type and its bounds stand in the row, so that one place parses it and refuses
 * it (api/core/query.h), and the OpenAPI document says the same.
 *
 *     {.method = "GET", .pattern = "/api/v1/jobs/{id}", .summary = "Look at a job", .right = WEIR_RIGHT_JOBS_READ,
 *      .access = ROUTE_READ, .out = &weir_job_resource, .fn = api_get},
 *
 * Rows are written in files of their own, shorter, and declare their functions, too (route/rows.h).
 *
 * Everything here is constant or pure; any thread.
 */
#ifndef WEIR_ROUTE_ROUTE_H
#define WEIR_ROUTE_ROUTE_H

#include "base/arena.h"
#include "base/record.h"
#include "base/status.h"
#include "http/http.h"
#include "store/rights.h"

#define ROUTE_MAX_PARAMS 4 /* of a path */

enum route_access {
    ROUTE_ALONE, /**< No transaction: the function opens its own. */
    ROUTE_READ,  /**< On a snapshot. */
    ROUTE_WRITE, /**< Durable when the answer leaves; may run twice. */
};

/** What of the request must be the caller's own, if the caller is a task or an agent (api/core/scope.c, api/track/mlflow.c). */
enum route_owns {
    ROUTE_OWNS_CLOSED,    /**< Neither may call it. */
    ROUTE_OWNS_ANY,       /**< Nothing: any task may call it. */
    ROUTE_OWNS_RUN,       /**< First parameter: the run. */
    ROUTE_OWNS_MODEL,     /**< $.run. */
    ROUTE_OWNS_PIPELINE,  /**< First parameters: ION, pipeline, and if named the replica. */
    ROUTE_OWNS_REPORT,    /**< $.ion, $.pipeline, and $.replica if it is there. */
    ROUTE_OWNS_DECISIONS, /**< The same of each decision. */
    ROUTE_OWNS_DEPLOYED,  /**< First parameters: deployment, and if named the replica. */
    ROUTE_OWNS_JOB,       /**< First parameter: the job. */
    ROUTE_OWNS_ION,       /**< First parameter: the ION of the task. */
    ROUTE_OWNS_NODE,      /**< First parameter: the agent's node. */
    ROUTE_OWNS_TASK,      /**< First parameter and attempt: placed on the agent's node. */
    ROUTE_OWNS_LOOK, /**< Runs or an experiment that it looks at: those of the task's job, always. */
    ROUTE_OWNS_NAME, /**< A model that it registers: under the name that an ION gave the task, always. */
    ROUTE_N_OWNS,
};

enum route_flags {
    ROUTE_OPEN = 1 << 0,      /**< Needs no identity. */
    ROUTE_LIST = 1 << 1,      /**< Answers {"items":[…],"next"}. */
    ROUTE_UPLOAD = 1 << 2,    /**< Body is bytes, to a file. */
    ROUTE_BYTES_IN = 1 << 3,  /**< Body is bytes, in memory. */
    ROUTE_BYTES_OUT = 1 << 4, /**< Answers bytes, not JSON. */
    ROUTE_EVENTS = 1 << 5,    /**< Answers a stream of server-sent events. */
    ROUTE_NOTIFY = 1 << 6,    /**< The engine should look after it. */
    ROUTE_TELLS = 1 << 7,     /**< A message about alerts may wait after it: its sender looks. */
    ROUTE_WHOLE = 1 << 8,     /**< Once the path's noun is found to be the caller's, it looks at the
                                    whole cluster, and answers about that noun alone. */
    ROUTE_MAKES = 1 << 9, /**< The noun that the path begins with need not be there: it makes it. */
    ROUTE_IN_PROJECT =
        1 << 10, /**< Makes a noun of a project: a caller with only one need not name it. */
    ROUTE_FLOW =
        1 << 11, /**< Takes data in: the audit has the first of a minute (api/core/act.h). */
    ROUTE_ACT_FIRST = 1 << 12, /**< Changes files: the audit is written before (api/core/act.h). */
    ROUTE_ASKS = 1 << 13,      /**< Changes nothing, whatever its method. */
    ROUTE_BEYOND = 1 << 14,    /**< What a task does by it is not its own run's alone: an act. */
    ROUTE_ARTIFACT =
        1 << 15, /**< With UPLOAD: as large as an artifact may be; its digest is taken. */
    ROUTE_FORMER = 1 << 16, /**< Also by the token that tasks of before shared (job/former.h). */
    ROUTE_FILTERS =
        1 << 17, /**< With LIST: filters by each text field of `out` that is no secret, too. */
    ROUTE_SHOWS = 1 << 18, /**< Shows people or their photos: looking is an act (api/core/act.h). */
    ROUTE_RECORDS =
        ROUTE_LIST | ROUTE_FILTERS, /**< Lists the records of `out`, or what it shows of them. */
};

enum route_param_type {
    ROUTE_TEXT, /**< Anything. */
    ROUTE_NAME, /**< The name of a record: anything. */
    ROUTE_FIELD, /**< Filters by the text field of `out` that has its name: its words, its meaning. */
    ROUTE_INT,   /**< Within [lo, hi]. */
    ROUTE_BOOL,  /**< 0 or 1. */
    ROUTE_GIVEN, /**< It holds if it is there, whatever its value. */
    ROUTE_TIME,  /**< RFC 3339. */
    ROUTE_WORD,  /**< One of `words`. */
};

/** A parameter of the query. */
struct weir_route_param {
    const char *name; /**< NULL: the end of the row's parameters. */
    enum route_param_type type;
    int64_t lo, hi,
        fallback;      /**< Of an INT; `fallback` is what it is if absent, and may lie outside. */
    const char *words; /**< Of a WORD, blanks between. */
    const char *doc;   /**< NULL of a FIELD: the field's. */
};

struct api_call;
struct weir_mlflow_call;
struct weir_txn;

typedef weir_status (*api_fn)(struct api_call *call, struct weir_txn *txn, struct weir_error *err);
typedef weir_status (*weir_mlflow_fn)(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      struct weir_error *err);

struct weir_route {
    const char *method;
    /** "/api/v1/jobs/{id}": "{…}" takes one segment; "{path}" at the end takes all that are left, slashes too. */
    const char *pattern;
    const char *summary;   /**< NULL in tables that no document shows. */
    enum weir_right right; /**< That the caller must have (store/rights.def). */
    enum route_access access;
    enum route_owns owns;
    unsigned flags;                       /**< enum route_flags */
    const struct weir_resource *in;       /**< Record in the body, or NULL. */
    const struct weir_resource *out;      /**< Record of the answer or of its items, or NULL. */
    const struct weir_route_param *query; /**< NULL: takes none. */
    uint64_t max_body_bytes;              /**< 0 = 1 MiB. */
    /** What it is done to, for the audit: "runs". NULL: the pattern's first word. */
    const char *noun;
    const char *named_by; /**< The argument that says which one; NULL: the path does. */

    union { /* by its table */
        api_fn fn;
        weir_mlflow_fn mlflow;
    };
};

struct weir_route_table {
    const struct weir_route *rows;
    size_t n;
};

/**
 * The route of a request whose path begins, for these tables, at its i_first-th segment; GET takes HEAD, too.
 * @param tables  Ended by NULL.
 * @param out_params  What "{…}" took, in the request's memory; NULL where there are fewer.
 * @return NULL: there is none, for this method at least; out_params is then undefined.
 * Cost: a comparison of text for each row.
 */
const struct weir_route *weir_route_find(const struct weir_route_table *const *tables,
                                         const struct weir_http_request *request, size_t i_first,
                                         const char *out_params[ROUTE_MAX_PARAMS]);

/** The methods for which the path is there, "GET, HEAD, PUT"; "": it is not. In the arena. */
const char *weir_route_allowed(const struct weir_route_table *const *tables,
                               const struct weir_http_request *request, size_t i_first,
                               struct weir_arena *arena);

/** The i-th route of all tables; NULL: there are fewer. */
const struct weir_route *weir_route_at(const struct weir_route_table *const *tables, size_t i);

#endif
