/**
 * A call: one request on its way through a route, and what the API has for it. The transactions of a call are here
 * (perform.c); what it reads of the request is in args.h, what it answers in answer.h.
 */
#ifndef WEIR_API_CALL_H
#define WEIR_API_CALL_H

#include "api/api.h"
#include "api/attempt_token.h"
#include "identity/identity.h"
#include "route/route.h"
#include "store/identity.h"
#include "store/row_scope.h"

#include <stdatomic.h>

struct weir_api {
    struct weir_store *store;
    struct weir_blobs *blobs;
    struct weir_retainer *retainer;
    struct weir_packs *pictures;
    struct vitals *vitals;
    const struct weir_clock *clock;
    char *state_dir, *server_url;
    unsigned char task_key[ATTEMPT_TOKEN_KEY_BYTES]; /**< Makes the tokens of attempts. */
    void (*notify)(void *context);
    void *notify_context;
    void (*told)(void *context);
    void *told_context;
    struct weir_http_server *http;
    struct weir_gateway *gateway;
    const char *services_domain; /**< NULL: services are found at paths. */
    int services_port;           /**< 0: there is no listener for them. */
    struct feed *feed;
    struct audit *audit;
    struct weir_identities *identities;
    struct weir_visits *visits; /**< Who is inside jobs. */
    struct beats *beats;        /**< What nodes said last. */
    struct uses *uses;          /**< What tasks use, by what nodes said last. */
    struct desk *desk;          /**< Live pictures, and looks at photos. */
    struct freezer *freezer;
    struct blob_files *blob_files;
    /** Datasets to freeze again, since the server was killed before they were. Of the tick's thread. */
    struct weir_arena unfrozen_arena;
    char **unfrozen;
    size_t n_unfrozen;
    struct inspector *inspector;
    const struct weir_registry *drivers; /**< A cluster names one. */
    struct slow *slow;                   /**< What is asked of drivers. */
    uint64_t artifact_max_bytes;
    atomic_flag makes_snapshot; /**< One is being made. */
    int64_t started_ms;
    _Atomic int64_t since_ms; /**< Since when nodes could be heard (job/node_watch.h). */
    int watch;                /**< Of the store; -1 before attach. */
};

struct api_form;
struct api_query_value;

/** One request on its way through a route. */
struct api_call {
    struct weir_api *api;
    const struct api_form *form;    /**< Of which API it is (dispatch.h). */
    const struct weir_route *route; /**< NULL: there is none. */
    struct weir_http_request *request;
    struct weir_http_response *response;
    struct weir_arena *arena; /**< Of this turn: freed when weir_api_handle returns. */
    struct weir_identity identity;
    struct weir_row_scope rows; /**< The projects in which the caller has the route's right. */
    const char *actor;          /**< identity.user.name */
    const struct weir_attempt *attempt; /**< Whose token was shown; NULL for people and agents. */
    const char
        *former; /**< SHA-256 of the token that tasks of before shared (job/former.h), if that was
                           shown; the attempt is then one of its. NULL: it was not. */
    const struct api_sender *sender; /**< Of that task, once it was asked for (sender.h). */
    const char *params[ROUTE_MAX_PARAMS];
    const char *path_project;      /**< Of "/p/PROJECT" before the path; NULL: none. */
    struct api_query_value *query; /**< By the route's row (query.h). */
    size_t n_query;
    struct weir_mlflow_call *mlflow; /**< Of MLflow's API, once its caller is known; else NULL. */
    json_t *body;                    /**< Parsed; NULL if the route takes none. Borrowed. */
    int64_t now_ms;
    bool is_routine; /**< Nothing that the engine should look at: ROUTE_NOTIFY does not hold. */
    bool is_trial;   /**< Asked with dry_run: api_write undoes all, nobody is told, no act. */
    bool is_act;     /**< To be in the audit (act.h). A route says false if this turn of it is
                               none: what an earlier turn has written. */
    bool is_audited; /**< It is, by this turn of its transaction. */
    const char *login_next;         /**< Where the login page goes on; NULL: to the console. */
    bool is_encoded;                /**< Its body is, in a manner that is not understood. */
    const char *allow;              /**< No route has the method: those that the path has, or "". */
    struct weir_guard_note guessed; /**< Of a password that was given. */
    const char *
        login_refused; /**< What the audit is told of a refusal that a page tells a person; NULL: none. */
    json_t *publish; /**< Array of [topic name, record]: sent to streams once the transaction is
                        durable. Emptied before each run of the transaction. */
};

/** Run a transaction in which the caller sees what they may. Route functions that open their own
 *  transactions use these, and no others. What a trial writes is undone. */
weir_status api_read(struct api_call *call, weir_txn_fn fn, void *context,
                     struct weir_error *err) WEIR_MUST_CHECK;
weir_status api_write(struct api_call *call, weir_txn_fn fn, void *context,
                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Write the call's act, unless it is written, in a transaction of its own: before what has none is done.
 * A later turn of the same request then sets is_act to false.
 */
weir_status api_act_first(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** Wake requests and streams that wait. */
void api_wake(struct weir_api *api);

/** The projects in which the caller has a right, perhaps another than the route's: whose things an
 *  answer about the whole cluster may name. Lies in the call's arena. */
struct weir_row_scope api_projects_with(const struct api_call *call, enum weir_right right);

/** Control with this call's arena, time, actor and publish list (borrowed). */
struct control;
struct control api_control(struct api_call *call);

/** For forget_run, on the API's store, blobs and pictures. */
struct forget;
struct forget api_forget(const struct weir_api *api);

/** Go on with what a killed server was forgetting. When the API is created. */
void api_forget_resume(struct weir_api *api);

/** Give back the folders of datasets that a killed server had begun to delete, and had not deleted. When the
 *  API is created; retention takes the others. */
void api_delete_resume(struct weir_api *api);

/** Freeze, as far as the freezer takes them, the datasets that have a tombstone in their newest version. */
void api_freeze_left(struct weir_api *api);

#endif
