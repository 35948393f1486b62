/** What the files of the API share: a call, a route, and small answers. */
#ifndef WEIR_API_API_PRIVATE_H
#define WEIR_API_API_PRIVATE_H

#include "api/act.h"
#include "api/api.h"
#include "api/attempt_token.h"
#include "api/audit.h"
#include "api/basic.h"
#include "api/feed.h"
#include "base/record.h"
#include "store/identity.h"
#include "store/row_scope.h"
#include "store/table.h"
#include "track/run_search.h"

#include <pthread.h>
#include <stdatomic.h>

#define API_MAX_PARAMS 4

/** PUT /blobs/{sha256}?as=model */
#define API_BLOB_AS_MODEL "model"
#define API_BLOB_AS_CODE  "code"

/** Of weir_record_weight, in one answer: a list ends its page there. */
#define API_ANSWER_MAX_BYTES ((size_t)32 << 20)

/** Values in the JSON of one body, each of which takes memory however short it is written. */
#define API_BODY_MAX_VALUES ((size_t)256 << 10)

/** Text in a body that belongs to no record: as a record's. */
#define API_TEXT_MAX_BYTES WEIR_FIELD_TEXT_MAX_BYTES

struct weir_api {
    struct weir_store *store;
    struct weir_blobs *blobs;
    struct weir_retainer *retainer;
    struct weir_packs *pictures;
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
    struct basic *basic; /**< Passwords that were right a while ago. */
    struct freezer *freezer;
    struct inspector *inspector;
    uint64_t artifact_max_bytes;
    atomic_int n_joins;         /**< Artifacts that are being joined from their parts. */
    atomic_flag makes_snapshot; /**< One is being made. */
    int64_t started_ms; /**< By the wall clock: nodes have the full time to report since then. */
    int watch;          /**< Of the store; -1 before attach. */
};

/** One request on its way through a route. */
struct api_call {
    struct weir_api *api;
    const struct api_route *route;
    struct weir_http_request *request;
    struct weir_http_response *response;
    struct weir_arena *arena; /**< Of this turn: freed when weir_api_handle returns. */
    struct weir_identity identity;
    struct weir_row_scope rows; /**< The projects in which the caller has the route's right. */
    const char *actor;          /**< identity.user.name */
    const struct weir_attempt *attempt; /**< Whose token was shown; NULL for people and agents. */
    const char *params[API_MAX_PARAMS];
    json_t *body; /**< Parsed; NULL if the route takes none. Borrowed. */
    int64_t now_ms;
    bool is_routine; /**< Nothing that the engine should look at: API_NOTIFY does not hold. */
    bool is_trial;   /**< Asked with dry_run: api_write undoes all, nobody is told, no act. */
    bool is_act;     /**< To be in the audit (act.h). A route says false if this turn of it is
                               none: what an earlier turn has written. */
    bool is_audited; /**< It is, by this turn of its transaction. */
    const char *login_next; /**< Where the login page goes on; NULL: to the console. */
    bool is_link_refused;   /**< Answered so that a person can read it, and counted by the audit. */
    json_t *publish; /**< Array of [topic name, record]: sent to streams once the transaction is
                        durable. Emptied before each run of the transaction. */
};

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
        1 << 24,         /**< With UPLOAD: as large as an artifact may be; its digest is taken. */
    API_MAKES = 1 << 17, /**< The noun that the path begins with need not be there: it makes it. */
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

/* Route functions, by file. */
#define API_FN(name)                                                                               \
    weir_status name(struct api_call *call, struct weir_txn *txn, struct weir_error *err)

/* model.c */
struct inspect_question;
struct forget;

/** What a model's file takes and gives. *out_signature stays NULL if the call waits for it: then return
 *  WEIR_OK, without an answer. */
weir_status api_inspect(struct api_call *call, const struct inspect_question *question,
                        char **out_signature, struct weir_error *err) WEIR_MUST_CHECK;
API_FN(api_alias_list);
API_FN(api_alias_put);
API_FN(api_alias_delete);

/* deployment.c */
API_FN(api_deploy_list);
API_FN(api_deploy_get);
API_FN(api_deploy_put);
API_FN(api_deploy_delete);
API_FN(api_deploy_desired);
API_FN(api_deploy_figures);
API_FN(api_deploy_report);

/* kind.c */
struct weir_registry;
extern const struct weir_registry *const api_registries[];
extern const size_t api_n_registries;
API_FN(api_kind_list);
API_FN(api_role_list);

/** For forget_run, on the API's store, blobs and pictures. */
struct forget api_forget(const struct weir_api *api);
API_FN(api_person_forget);
API_FN(api_audit_list);
API_FN(api_audit_verify);
API_FN(api_session_get);
API_FN(api_session_delete);
API_FN(api_session_link);
API_FN(api_login_page);
API_FN(api_login);
API_FN(api_token_create);
API_FN(api_token_revoke);
API_FN(api_user_create);
API_FN(api_user_update);
API_FN(api_user_delete);
API_FN(api_session_list);
API_FN(api_session_end);
API_FN(api_project_create);
API_FN(api_project_members);
API_FN(api_project_grant);
API_FN(api_project_revoke);
API_FN(api_group_create);
API_FN(api_group_delete);
API_FN(api_group_members);
API_FN(api_group_add);
API_FN(api_group_remove);
API_FN(api_user_password);
API_FN(api_login_password);
API_FN(api_login_form);
API_FN(api_token_list);
API_FN(api_health);
API_FN(api_prometheus); /**< metrics.h */
API_FN(api_health_summary);
API_FN(api_openapi_get);
API_FN(api_list);
API_FN(api_list_numbered); /**< Records with `seq`: newest first, or from `after` on. */
API_FN(api_event_list);
API_FN(api_get);
API_FN(api_delete);

/* sweep.c */
API_FN(api_sweep_create);
API_FN(api_sweep_trials);
API_FN(api_sweep_pause);
API_FN(api_sweep_resume);
API_FN(api_sweep_stop);
API_FN(api_sweep_delete);

/* queue.c */
API_FN(api_queue_list);
API_FN(api_queue_get);
API_FN(api_queue_put);
API_FN(api_queue_delete);
API_FN(api_what_if);
API_FN(api_job_explain);
API_FN(api_job_hold);
API_FN(api_job_requeue);
API_FN(api_job_update);
API_FN(api_usage);
API_FN(api_usage_queues);
API_FN(api_job_release); /**< Also what resume does to a job that is held. */
API_FN(api_dataset_create);
API_FN(api_dataset_file_put);
API_FN(api_dataset_file_delete);
API_FN(api_dataset_class_delete);
API_FN(api_dataset_version_create);
API_FN(api_dataset_freeze_get);
API_FN(api_dataset_versions);
API_FN(api_job_create);
API_FN(api_job_cancel);
API_FN(api_job_restart);
API_FN(api_job_resume);
API_FN(api_job_tasks);
API_FN(api_board_list); /**< board.c */
API_FN(api_board_put);
API_FN(api_results_list);
API_FN(api_results_get);
API_FN(api_results_put);
API_FN(api_task_log_get);
API_FN(api_task_log_append);
API_FN(api_task_status);
API_FN(api_node_list);
API_FN(api_device_list);
API_FN(api_node_put);
API_FN(api_node_use);
API_FN(api_node_desired);
API_FN(api_node_get);
API_FN(api_node_update);
API_FN(api_node_leave);
API_FN(api_node_join_create);
API_FN(api_node_join);
API_FN(api_experiment_list);
API_FN(api_experiment_get);
API_FN(api_experiment_create);
API_FN(api_experiment_update);
API_FN(api_experiment_delete);
API_FN(api_experiment_restore);
API_FN(api_run_create);
API_FN(api_run_list);
API_FN(api_run_groups);
API_FN(api_run_lineage);
API_FN(api_run_summary);
API_FN(api_run_get);
API_FN(api_run_update);
API_FN(api_metrics_get);
API_FN(api_metrics_put);
API_FN(api_model_versions);
API_FN(api_model_update);
API_FN(api_model_version_update);
API_FN(api_model_version_get);
API_FN(api_model_register);
API_FN(api_model_list);
API_FN(api_model_get);
API_FN(api_model_delete);
API_FN(api_model_version_delete);

/* blob.c */
API_FN(api_blobs_missing);
API_FN(api_blob_put);
API_FN(api_blob_get);

/* secret.c */
API_FN(api_secret_list);
API_FN(api_secret_put);
API_FN(api_secret_delete);

/* artifact.c */
struct weir_artifact_upload;

/** Join the parts of an upload to a blob; a few at a time: UNAVAILABLE. */
weir_status api_artifact_join(struct api_call *call, const struct weir_artifact_upload *upload,
                              char *out_sha256, uint64_t *out_bytes,
                              struct weir_error *err) WEIR_MUST_CHECK;
API_FN(api_artifact_list);
API_FN(api_artifact_get);
API_FN(api_artifact_put);
API_FN(api_artifact_delete);
API_FN(api_artifact_upload_list);
API_FN(api_artifact_upload_begin);
API_FN(api_artifact_upload_part);
API_FN(api_artifact_upload_end);
API_FN(api_artifact_upload_delete);

API_FN(api_ion_apply);
API_FN(api_ion_list);
API_FN(api_ion_get);
API_FN(api_ion_delete);
API_FN(api_ion_trigger);
API_FN(api_ion_run);
API_FN(api_ion_promote);
API_FN(api_ion_approve);
API_FN(api_ion_reject);
API_FN(api_ion_rollback);
API_FN(api_ion_pause);
API_FN(api_ion_resume);
API_FN(api_ion_set_model);
API_FN(api_ion_candidates);
API_FN(api_policy_decisions);
API_FN(api_deployment_get);
API_FN(api_threshold_put);
API_FN(api_replica_put);
API_FN(api_replicas_get);
API_FN(api_members_get);
API_FN(api_member_put);
API_FN(api_member_delete);
API_FN(api_decision_list);
API_FN(api_decisions_put);
API_FN(api_decision_image);
API_FN(api_decisions_summary);
API_FN(api_health_report);
API_FN(api_kpi_add);
API_FN(api_kpi_list);
API_FN(api_statistics_add);
API_FN(api_statistics_list);
API_FN(api_ion_tell);
API_FN(api_feedback_give);
API_FN(api_ion_health);
API_FN(api_ion_drift);

/* alert.c */
API_FN(api_alert_list);
API_FN(api_alert_get);
API_FN(api_baseline_put);
API_FN(api_baseline_get);
API_FN(api_window_test);
API_FN(api_alert_acknowledge);
API_FN(api_alert_resolve);
API_FN(api_rule_list);
API_FN(api_rule_get);
API_FN(api_rule_put);
API_FN(api_rule_delete);
API_FN(api_silence_create);
API_FN(api_silence_end);
API_FN(api_receiver_list);
API_FN(api_receiver_get);
API_FN(api_receiver_put);
API_FN(api_receiver_delete);
API_FN(api_receiver_test);

/* service.c, service_visit.c */
struct weir_service;
/** May this caller open it? Whoever opens a notebook runs programs. */
bool service_is_open_to(const struct weir_service *service, const struct weir_identity *who);
API_FN(api_service_list);
API_FN(api_service_put);
API_FN(api_service_get);
API_FN(api_service_delete);
API_FN(api_service_start);
API_FN(api_service_stop);
API_FN(api_service_ticket);
API_FN(api_service_enter);

API_FN(api_stream);
API_FN(api_store_usage);
API_FN(api_store_sweep);
API_FN(api_retention_get);
API_FN(api_retention_put);

/* snapshot.c */
API_FN(api_snapshot_take);
API_FN(api_snapshot_import);
API_FN(api_snapshot_get);
API_FN(api_snapshot_export);
API_FN(api_snapshot_state);
API_FN(api_snapshot_replay);
API_FN(api_snapshot_delete);
API_FN(api_ion_revisions);

/* Small things every route needs. */

/** "view" of the query: active, deleted or all. */
weir_status api_query_view(const struct api_call *call, enum weir_view *out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** The projects a search looks in: "project" of the query, else all that the call sees; NULL: all there
 *  are. False if the one that is named is not seen. */
bool api_query_projects(const struct api_call *call, const char *const **out, size_t *out_n);

/** Which runs the query is about: "filter", "view", "experiment", "project", "ion", "status", "job".
 *  *out_has_any is false where the caller sees none of what it names. */
weir_status api_query_runs(struct api_call *call, struct weir_txn *txn, struct weir_run_search *out,
                           bool *out_has_any, struct weir_error *err) WEIR_MUST_CHECK;

/** A member "description" of the body becomes the tag that MLflow's page shows as such. @return INVALID. */
weir_status api_body_note(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** "tags" of a version, by its identifier. */
weir_status api_add_version_tags(struct api_call *call, struct weir_txn *txn, const char *version,
                                 json_t *view, struct weir_error *err) WEIR_MUST_CHECK;

/** A version's number as a path has it. @return INVALID. */
weir_status api_read_version(const char *text, int64_t *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** A model version with its names and tags, and where it serves; a new reference. */
weir_status api_version_view(struct api_call *call, struct weir_txn *txn,
                             const struct weir_model_version *version, json_t **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** A node with its state, as lists and GET /nodes/{name} tell it; a new reference. */
struct weir_node;
json_t *api_node_view(const struct api_call *call, const struct weir_node *node);

/** Tell of each device's holders only those of projects whose jobs the caller may read; the others are
 *  counted. */
struct weir_device;
weir_status api_devices_name(const struct api_call *call, struct weir_txn *txn,
                             struct weir_device *devices, size_t n,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take $.devices, $.unhealthy and $.time_ms of a heartbeat: what is wrong with the node goes into
 * node->unhealthy, how many accelerators it has into n_accelerators. Pure.
 * @param out  The devices, *out_n of them; NULL if the body has none: then nothing is known.
 */
struct weir_device_report;
weir_status api_node_read_devices(const struct api_call *call, struct weir_node *node,
                                  struct weir_device_report **out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** The projects in which the caller has a right, perhaps another than the route's: whose things an
 *  answer about the whole cluster may name. Lies in the call's arena. */
struct weir_row_scope api_projects_with(const struct api_call *call, enum weir_right right);

/** A new list of what a set of rights lets one do: ["read jobs", "submit jobs" …]. */
json_t *api_rights_list(weir_rights rights);

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

/** Answer one record / JSON value with 200; takes the reference. */
void api_answer(struct api_call *call, json_t *value);
void api_answer_record(struct api_call *call, const struct weir_resource *resource,
                       const void *record);

/** Answer {"items": […], "next": …} from an array of records; LIMIT if they weigh more than
 *  API_ANSWER_MAX_BYTES and one more record (give that as max_bytes of the query). */
void api_answer_list(struct api_call *call, const struct weir_resource *resource, const void *items,
                     size_t n_items, const char *next);

/** The records of the path's ION, newest first by order_by (NULL: by key, ascending). */
weir_status api_list_of_ion(struct api_call *call, struct weir_txn *txn,
                            const struct weir_resource *resource, const char *order_by,
                            struct weir_error *err) WEIR_MUST_CHECK;

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

/** api_list with one more condition; NULL: none. */
weir_status api_list_where(struct api_call *call, struct weir_txn *txn,
                           const struct weir_filter *more, struct weir_error *err) WEIR_MUST_CHECK;

/** api_list_numbered with one more condition; NULL: none. */
weir_status api_list_numbered_where(struct api_call *call, struct weir_txn *txn,
                                    const struct weir_filter *more, size_t n_more,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** {status, reason, since} */
struct weir_health;
json_t *api_health_view(const struct weir_health *health);

/** Is it one of these words, which blanks separate? NULL are none. Pure. */
bool api_words_have(const char *words, const char *word);

/** Integer query parameter within [lo, hi]; `fallback` if absent. */
weir_status api_query_int(const struct api_call *call, const char *name, int64_t fallback,
                          int64_t lo, int64_t hi, int64_t *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Store a report of drift, and raise or resolve its alert. */
struct weir_health_report;
weir_status api_health_store(struct api_call *call, struct weir_txn *txn,
                             const struct weir_health_report *report,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** A time in the query, as RFC 3339 text; `fallback` if absent. */
weir_status api_query_time(const struct api_call *call, const char *name, int64_t fallback,
                           int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;

/** How many records a list may answer with. */
weir_status api_query_limit(const struct api_call *call, int64_t *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Query parameters that are names of text fields of the answer filter by them. @return How many,
 * at most max. */
struct weir_filter;
size_t api_query_filters(const struct api_call *call, struct weir_filter *filters, size_t max);

/** Member of the JSON body: text (NULL if absent or null; at most API_TEXT_MAX_BYTES), integer,
 * true or false. */
weir_status api_body_text(const struct api_call *call, const char *name, const char **out,
                          struct weir_error *err) WEIR_MUST_CHECK;
weir_status api_body_int(const struct api_call *call, const char *name, int64_t fallback,
                         int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;
weir_status api_body_bool(const struct api_call *call, const char *name, bool fallback, bool *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Text that a person will read: of at most so many bytes, and without control characters, which could
 * act on a terminal. NULL is plain. */
bool api_is_plain(const char *text, size_t max_bytes);

/** Refuse members of the body that are not among `names` (ended by NULL). */
weir_status api_body_only(const struct api_call *call, const char *const *names,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Control with this call's arena, time, actor and publish list (borrowed). */
struct control;
struct control api_control(struct api_call *call);

/** Who calls? Identity from token or session; checks the CSRF header of a session's changes. */
weir_status api_identify(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** The same by a token, or else a session's cookie; either may be NULL. */
weir_status api_identify_by(struct api_call *call, const char *token, const char *session,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Let the audit know of a refusal, or that a token was used. Outside of any transaction. */
void api_note_for_audit(const struct api_call *call, weir_status status,
                        const struct weir_error *err);

/* What a request that is answered in another form than the API's own does all the same (mlflow.c). */

/** A call of one turn; its arena is to be freed. */
void api_call_init(struct api_call *call, struct weir_api *api, struct weir_http_request *request,
                   struct weir_http_response *response, struct weir_arena *arena);

/** DENIED unless the caller has the route's right; sets the rows that the call sees. */
weir_status api_check_right(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** Run the route as its access says, write its act, and tell whoever waits. */
weir_status api_perform(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/* mlflow.c: the handler, body rule and admission of paths that weir_mlflow_takes. */
void api_mlflow_handle(struct weir_api *api, struct weir_http_request *request,
                       struct weir_http_response *response);
void api_mlflow_body_rule(const struct weir_api *api, const struct weir_http_request *request,
                          struct weir_http_body_rule *rule);
void api_mlflow_admit(struct weir_api *api, struct weir_http_request *request,
                      struct weir_http_response *response);
API_FN(api_mlflow_version);

/** Answer one of the page's files ("/", "/app.js" …), or the way to the login page for who has no
 *  session; false if the path is none of them. */
bool api_page(struct api_call *call);

#endif
