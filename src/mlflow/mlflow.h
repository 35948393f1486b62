/**
 * MLflow's REST API, version 2.0, in front of Weir's own nouns: experiments, runs, artifacts and models are
 * the ones of domain `track`; nothing is stored here. An unmodified client works against
 * MLFLOW_TRACKING_URI=https://SERVER/p/PROJECT, or https://SERVER for who has one project only.
 *
 * Three nouns: an *operation* is a row of one table (operations.c): method, path, right, access, function.
 * A *call* is one request on its way through an operation. An *answer* is a JSON object, or an error
 * {"error_code", "message"} whose code MLflow knows.
 *
 * Nothing here knows how callers prove who they are: `api` finds the operation, identifies the caller, checks
 * the right, fills the call, and runs it in the transaction that the operation asks for, as it does with
 * its own routes. So whatever is done through MLflow is in the audit, too.
 */
#ifndef WEIR_MLFLOW_MLFLOW_H
#define WEIR_MLFLOW_MLFLOW_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "blob/blob.h"
#include "http/http.h"
#include "store/rights.h"
#include "store/row_scope.h"

/** What MLflow's clients are told at /version: the version whose API this is. */
#define WEIR_MLFLOW_VERSION "2.22.0"

enum weir_mlflow_access {
    WEIR_MLFLOW_READ,  /**< On a snapshot. */
    WEIR_MLFLOW_WRITE, /**< Durable when the answer leaves; may run twice. */
    WEIR_MLFLOW_NONE,  /**< No transaction: the function opens its own with the call's. */
};

enum weir_mlflow_flags {
    WEIR_MLFLOW_FLOW =
        1 << 0, /**< Programs call it all the time: the audit has the first of a minute. */
    WEIR_MLFLOW_ASKS = 1 << 1,   /**< Changes nothing, though its method is POST. */
    WEIR_MLFLOW_UPLOAD = 1 << 2, /**< Its body is bytes, to a file, with their SHA-256. */
    WEIR_MLFLOW_NOTIFY = 1 << 3, /**< The engine should look after it. */
    WEIR_MLFLOW_BATCH = 1 << 4,  /**< Its body may be a batch (weir_mlflow_scan_batch). */
    WEIR_MLFLOW_OF_RUN =
        1
        << 5, /**< Looks at runs or an experiment that it names: a task, always at its job's own. */
    WEIR_MLFLOW_MAKES = 1 << 6, /**< Registers a model: what an ION starts, always its own. */
};

struct weir_mlflow_call;
struct weir_artifact_upload;

typedef weir_status (*weir_mlflow_fn)(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      struct weir_error *err);

struct weir_mlflow_operation {
    const char *method;
    /** Behind "/api/2.0" or "/ajax-api/2.0": "mlflow/runs/get". A part "?" takes one part, a last part "*" what is
     *  left. */
    const char *path;
    const char *noun; /**< Of Weir, for the audit: "runs". */
    const char *name; /**< The argument that names which: "run_id". */
    enum weir_right right;
    enum weir_mlflow_access access;
    unsigned flags;
    uint64_t max_body_bytes; /**< 0: 1 MiB. */
    weir_mlflow_fn fn;
};

/** What a path says. In the request's arena. */
struct weir_mlflow_place {
    const char *project; /**< Of "/p/PROJECT"; NULL: none. */
    const char *id;      /**< What "?" took, decoded; NULL: no "?". */
    const char *rest;    /**< What "*" took, decoded, parts joined with "/"; NULL: no "*". */
};

/** One request. Everything is borrowed and lives until its answer has been sent. */
struct weir_mlflow_call {
    const struct weir_mlflow_operation *operation;
    struct weir_http_request *request;
    struct weir_http_response *response;
    struct weir_arena *arena;
    json_t *body;               /**< A JSON object; NULL with GET and uploads. */
    struct mlflow_batch *batch; /**< Of weir_mlflow_scan_batch; then there is no `body`. */
    const char *id, *rest;      /**< Of the path: struct weir_mlflow_place. */

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

    /** For operations without a transaction: run `fn` in one, in the call's scope. */
    weir_status (*read)(struct weir_mlflow_call *call, weir_txn_fn fn, void *context,
                        struct weir_error *err);
    weir_status (*write)(struct weir_mlflow_call *call, weir_txn_fn fn, void *context,
                         struct weir_error *err);
    uint64_t artifact_max_bytes;
    /** What a model's file takes and gives (control/inspector.h). *out_signature stays NULL while it is looked
     *  at: then return WEIR_OK without an answer, and be called again. May be NULL. */
    weir_status (*inspect)(struct weir_mlflow_call *call, const char *blob, const char *name,
                           char **out_signature, struct weir_error *err);
    /** Join the parts of an upload to a blob. UNAVAILABLE: others are being joined. */
    weir_status (*join)(struct weir_mlflow_call *call, const struct weir_artifact_upload *upload,
                        char *out_sha256, uint64_t *out_bytes, struct weir_error *err);
    void *owner; /**< Of whoever made the call. */

    const char *error_code; /**< Set with an error: its code, where the status would say another. */
};

/** Is this path one of MLflow's? "/api/2.0/mlflow/…", "/p/PROJECT/ajax-api/2.0/mlflow-artifacts/…" … */
bool weir_mlflow_takes(const struct weir_http_request *request);

/** The operation of such a request; NULL: there is none. */
const struct weir_mlflow_operation *weir_mlflow_find(const struct weir_http_request *request,
                                                     struct weir_arena *arena,
                                                     struct weir_mlflow_place *out);

/** The methods for which the path is there, "GET, HEAD, POST"; "": it is not. In the arena. */
const char *weir_mlflow_allowed(const struct weir_http_request *request, struct weir_arena *arena);

/** Parse the body of a request: a JSON object, {} if it is empty. "NaN" and "Infinity" may stand bare.
 *  @return INVALID, LIMIT. */
weir_status weir_mlflow_parse(const struct weir_http_request *request, struct weir_arena *arena,
                              json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** The body as a batch of metrics of one run, in the arena; NULL: it is something else, or wrong: parse it. */
struct mlflow_batch *weir_mlflow_scan_batch(const struct weir_http_request *request,
                                            struct weir_arena *arena);

/** Which one the call is about, for the audit: the value of operation->name, or NULL. */
const char *weir_mlflow_name(const struct weir_mlflow_call *call);

/** {"error_code", "message"}. `code` NULL: by the status. */
void weir_mlflow_answer_error(struct weir_http_response *response, const char *code,
                              const struct weir_error *err);

#endif
