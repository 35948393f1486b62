/**
 * MLflow's REST API, version 2.0, in front of Weir's own nouns: experiments, runs, artifacts and models are
 * the ones of domain `track`; nothing is stored here. An unmodified client works against
 * MLFLOW_TRACKING_URI=https://SERVER/p/PROJECT, or https://SERVER for who has one project only.
 *
 * Two nouns: a *call* is one request on its way through a route (routes.c). An *answer* is a JSON object, or an error
 * {"error_code", "message"} whose code MLflow knows.
 *
 * Nothing here knows how callers prove who they are: `api` finds the route, identifies the caller, checks
 * the right, fills the call, and runs it in the transaction that the route asks for, as it does with
 * its own routes. So whatever is done through MLflow is in the audit, too.
 */
#ifndef WEIR_MLFLOW_MLFLOW_H
#define WEIR_MLFLOW_MLFLOW_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "blob/blob.h"
#include "http/http.h"
#include "route/route.h"
#include "store/row_scope.h"
#include "store/store.h"

/** What MLflow's clients are told at /version: the version whose API this is. */
#define WEIR_MLFLOW_VERSION "2.22.0"

struct weir_mlflow_call;
struct inspect_question;

/** What a call needs of its maker, who is `owner`. */
struct weir_mlflow_ops {
    /** Run `fn` in a transaction that changes things, in the call's scope, with its event of the audit. */
    weir_status (*write)(struct api_call *owner, weir_txn_fn fn, void *context,
                         struct weir_error *err);
    /** What a model's file takes and gives (control/inspector.h). *out_signature stays NULL while it is looked
     *  at: then return WEIR_OK without an answer, and be called again. */
    weir_status (*inspect)(struct api_call *owner, const struct inspect_question *question,
                           char **out_signature, struct weir_error *err);
};

/** One request. Everything is borrowed and lives until its answer has been sent. */
struct weir_mlflow_call {
    const struct weir_route *route;
    struct weir_http_request *request;
    struct weir_http_response *response;
    struct weir_arena *arena;
    json_t *body;               /**< A JSON object; NULL with GET and uploads. */
    struct mlflow_batch *batch; /**< The usual body of log-batch; then there is no `body`. */
    const char *params[ROUTE_MAX_PARAMS]; /**< Of the path. */

    const char *actor;      /**< Who has made what is made: of a task, who submitted its job. */
    const char *acting;     /**< Who calls, for events: "task/ID" of a task, else the actor. */
    const char *job;        /**< Of a task's token; NULL: a person's or a service's. */
    int64_t own_experiment; /**< Of that job's run. */
    bool sees_own_only;     /**< Looks at runs of that job only, and at that experiment. */
    const char *own_model;  /**< Registers under this name only, from that job's runs; NULL: any. */
    const char *own_run;    /**< Of that job; may be NULL. */
    /** The project that new things are made in and searches look in; never NULL. */
    const char *project;
    struct weir_row_scope rows; /**< The projects that the call sees. */
    int64_t now_ms;

    struct weir_store *store;
    struct weir_blobs *blobs;
    const char *state_dir, *server_url;
    json_t *publish; /**< [topic, record] pairs for the live streams; as struct control has it. */

    uint64_t artifact_max_bytes;
    const struct weir_mlflow_ops *ops;
    struct api_call *owner;

    const char *error_code; /**< Set with an error: its code, where the status would say another. */
};

/** Is this path one of MLflow's? "/api/2.0/mlflow/…", "/p/PROJECT/ajax-api/2.0/mlflow-artifacts/…" … */
bool weir_mlflow_takes(const struct weir_http_request *request);

/** Every route of that API. */
extern const struct weir_route_table *const weir_mlflow_routes[];

/**
 * The route of such a request; NULL: there is none.
 * @param out_params   As weir_route_find has them.
 * @param out_project  Of "/p/PROJECT" before the path; NULL: none.
 */
const struct weir_route *weir_mlflow_find(const struct weir_http_request *request,
                                          const char *out_params[ROUTE_MAX_PARAMS],
                                          const char **out_project);

/** The methods for which the path is there, "GET, HEAD, POST"; "": it is not. In the arena. */
const char *weir_mlflow_allowed(const struct weir_http_request *request, struct weir_arena *arena);

/** Read the body into call->body: a JSON object, {} if it is empty; of log-batch, if it is as usual, into call->batch.
 *  "NaN" and "Infinity" may stand bare. @return INVALID. */
weir_status weir_mlflow_parse(struct weir_mlflow_call *call,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Which one the call is about, for the audit: the value of route->named_by, or what the path has; NULL. */
const char *weir_mlflow_name(const struct weir_mlflow_call *call);

/** {"error_code", "message"}. `code` NULL: by the status. */
void weir_mlflow_answer_error(struct weir_http_response *response, const char *code,
                              const struct weir_error *err);

#endif
