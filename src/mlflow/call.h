/**
 * What the routes share: arguments, checks of names, runs that a call may see, and answers.
 */
#ifndef WEIR_MLFLOW_CALL_H
#define WEIR_MLFLOW_CALL_H

#include "base/buf.h"
#include "mlflow/mlflow.h"
#include "track/logged_model.h"
#include "track/run.h"

#define MLFLOW_ARTIFACTS "mlflow-artifacts:"

/* Longest values, in characters; what is longer is cut, as MLflow's own server does. */
#define MLFLOW_PARAMETER_MAX 6000
#define MLFLOW_TAG_MAX       8000

/* The rows declare the functions of the routes. */
#define ROUTE(fn, ...)                                                                             \
    weir_status fn(struct weir_mlflow_call *call, struct weir_txn *txn, struct weir_error *err);
#include "mlflow/routes.def"
#undef ROUTE

/** Answer a file of a folder that a model version came from. */
weir_status mlflow_answer_source_file(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      const char *source, const char *path,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/* ---- arguments (args.c) -----------------------------------------------------------------------
 * From the query with GET, else from the body. Errors are MLflow's words: "Missing value for required
 * parameter 'x'", "Invalid value 5 for parameter 'x' supplied". */

/** A text; *out NULL: it is not there. */
weir_status mlflow_text(const struct weir_mlflow_call *call, const char *name, const char **out,
                        struct weir_error *err) WEIR_MUST_CHECK;
/** The same, and it must be there and not empty. */
weir_status mlflow_text_required(const struct weir_mlflow_call *call, const char *name,
                                 const char **out, struct weir_error *err) WEIR_MUST_CHECK;
/** "run_id", or "run_uuid" of old clients. */
weir_status mlflow_run_id(const struct weir_mlflow_call *call, const char **out,
                          struct weir_error *err) WEIR_MUST_CHECK;
/** An integer, as a number or as text. */
weir_status mlflow_int(const struct weir_mlflow_call *call, const char *name, int64_t fallback,
                       int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;
/** true or false, as it is or as text. */
weir_status mlflow_bool(const struct weir_mlflow_call *call, const char *name, bool fallback,
                        bool *out, struct weir_error *err) WEIR_MUST_CHECK;
bool mlflow_has(const struct weir_mlflow_call *call, const char *name);
/** An array of objects of the body; *out NULL: none. */
weir_status mlflow_array(const struct weir_mlflow_call *call, const char *name, const json_t **out,
                         struct weir_error *err) WEIR_MUST_CHECK;
/** A list of texts. */
weir_status mlflow_texts(const struct weir_mlflow_call *call, const char *name, const char ***out,
                         size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;
/** max_results: 1 to `most`. */
weir_status mlflow_max_results(const struct weir_mlflow_call *call, int64_t fallback, int64_t most,
                               int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;
/** [{"key", "value"}] of the body's array `name`. */
weir_status mlflow_tags(const struct weir_mlflow_call *call, const char *name,
                        struct weir_tag **out, size_t *out_n,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** A number of JSON, or text of one, also "NaN" and "Infinity". `what` is its name. */
weir_status mlflow_number_of(struct weir_arena *arena, const json_t *value, const char *what,
                             double *out, struct weir_error *err) WEIR_MUST_CHECK;
weir_status mlflow_int_of(struct weir_arena *arena, const json_t *value, const char *what,
                          int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;

/** INVALID: "Invalid value JSON for parameter 'NAME' supplied: WHY"; value NULL is null, why may be "". */
weir_status mlflow_invalid(struct weir_arena *arena, const char *name, const json_t *value,
                           const char *why, struct weir_error *err);
weir_status mlflow_missing(const char *name, struct weir_error *err);

/** Is it a name that a parameter, a tag or a metric can have? `place` is where it stands. */
weir_status mlflow_check_key(struct weir_arena *arena, const char *place, const char *key,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status mlflow_check_length(const char *place, const char *text, size_t max_characters,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** At most the first so many characters of a text; the text itself if it has no more. */
char *mlflow_cut(struct weir_arena *arena, const char *text, size_t max_characters);

/** A name for what was given none: two words and a number. */
char *mlflow_make_name(struct weir_arena *arena);
/** A new identifier, as long as those that clients know: 32 hexadecimal digits. */
char *mlflow_make_id(struct weir_arena *arena);

struct weir_search_noun;
struct weir_search_node;
struct weir_search_order;

/** order_by, filter and page_token of a search (search.c). */
weir_status mlflow_read_orders(const struct weir_mlflow_call *call,
                               const struct weir_search_noun *noun, struct weir_search_order **out,
                               size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;
weir_status mlflow_read_filter(const struct weir_mlflow_call *call,
                               const struct weir_search_noun *noun, struct weir_search_node **out,
                               struct weir_error *err) WEIR_MUST_CHECK;
weir_status mlflow_read_cursor(const struct weir_mlflow_call *call, const char **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/* ---- what a call may see (find.c) -------------------------------------------------------------- */

/** The usual body of log-batch. */
struct mlflow_batch {
    const char *run_id;
    struct weir_metric *metrics; /**< Checked. */
    size_t n;
};

/** The body as a batch of metrics of one run, in the arena; NULL: it is something else, or wrong: parse it. */
struct mlflow_batch *mlflow_scan_batch(const struct weir_http_request *request,
                                       struct weir_arena *arena);

/** A run with its number. */
struct mlflow_run {
    int64_t number;
    struct weir_run record;
};

/** For routes without a transaction: run `fn` in one, in the call's scope. */
weir_status mlflow_read(struct weir_mlflow_call *call, weir_txn_fn fn, void *context,
                        struct weir_error *err) WEIR_MUST_CHECK;
weir_status mlflow_write(struct weir_mlflow_call *call, weir_txn_fn fn, void *context,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** DENIED: a call that sees its own only (call->sees_own_only) asked for something else. */
weir_status mlflow_refuse_others(struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND, also of another's project. */
weir_status mlflow_find_run(const struct weir_mlflow_call *call, struct weir_txn *txn,
                            const char *id, struct mlflow_run *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The experiment that new things go to: the one that `experiment_id` names, or the project's "Default".
 *  @return NOT_FOUND; INVALID if it is deleted. */
weir_status mlflow_target_experiment(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     struct weir_experiment *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;
/** Those of `experiment_ids` that the call sees. */
weir_status mlflow_read_experiments(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                    int64_t **out, size_t *out_n,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND, also of another's project, and if it is deleted. */
weir_status mlflow_find_logged_model(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                     const char *id, struct weir_logged_model *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;
/** Where its files are, for MLflow's clients. */
char *mlflow_logged_model_uri(const struct weir_mlflow_call *call, const struct weir_run *run,
                              const char *id);
/** `models` of a body: what a run made or read. */
weir_status mlflow_read_uses(struct weir_mlflow_call *call, bool is_output,
                             struct weir_logged_model_use **out, size_t *out_n,
                             struct weir_error *err) WEIR_MUST_CHECK;
/** Store them. @return NOT_FOUND: one of the models is not there. */
weir_status mlflow_store_uses(struct weir_mlflow_call *call, struct weir_txn *txn, const char *run,
                              const struct weir_logged_model_use *uses, size_t n,
                              struct weir_error *err) WEIR_MUST_CHECK;
/** "model_outputs":[…] or "model_inputs":[…] of a run. */
weir_status mlflow_put_uses(struct weir_mlflow_call *call, struct weir_txn *txn,
                            struct weir_buf *buf, const char *run, bool is_output,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** A folder of a run's artifacts that is told of as a place of its own. */
struct mlflow_folder {
    const char *run, *path, *uri;
};

/** Answer what lies in `path` of the folder. */
weir_status mlflow_answer_folder(struct weir_mlflow_call *call, struct weir_txn *txn,
                                 const struct mlflow_folder *folder, const char *path,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** For a change: a task's token changes the runs of its job only. */
weir_status mlflow_find_run_to_change(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                      const char *id, bool may_be_deleted, struct mlflow_run *out,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** The experiment of a number; "0" is the call's project's "Default". */
weir_status mlflow_find_experiment(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                   const char *id, struct weir_experiment *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/* ---- answers (answer.c) ------------------------------------------------------------------------ */

/** A JSON object; takes the reference. */
void mlflow_answer(struct weir_mlflow_call *call, json_t *object);
void mlflow_answer_nothing(struct weir_mlflow_call *call); /**< {} */
/** Takes the buffer's memory. */
void mlflow_answer_buf(struct weir_mlflow_call *call, struct weir_buf *buf);
/** The end of an object that was put into the buffer with this status: closes and answers with it, or
 *  frees it. @return The status. */
weir_status mlflow_answer_made(struct weir_mlflow_call *call, weir_status status,
                               struct weir_buf *buf) WEIR_MUST_CHECK;

/** A JSON string, number. NULL is "". */
void mlflow_put_text(struct weir_buf *buf, const char *text);
void mlflow_put_int(struct weir_buf *buf, int64_t value);
/** "name":"text", with a comma before it unless it is the first of its object. NULL is left out. */
void mlflow_put_member(struct weir_buf *buf, const char *name, const char *text);

/** {"run_id", …}: RunInfo. */
void mlflow_put_run_info(struct weir_buf *buf, const struct weir_run *run);
/** {"info", "data", "inputs"}: the whole of one run. */
weir_status mlflow_put_run(struct weir_mlflow_call *call, struct weir_txn *txn,
                           struct weir_buf *buf, const struct mlflow_run *run,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** ,"inputs":{"dataset_inputs":[…]} of a run. With its identifier also its models, as "model_inputs" there,
 *  and ,"outputs":{"model_outputs":[…]}; `id` NULL: without. */
weir_status mlflow_put_inputs(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_buf *buf, int64_t run, const char *id,
                              struct weir_error *err) WEIR_MUST_CHECK;
/** `before` and [{"key", "value"}, …] */
void mlflow_put_pairs(struct weir_buf *buf, const char *before, const struct weir_tag *pairs,
                      size_t n);
/** An experiment with its tags. */
weir_status mlflow_put_experiment(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_buf *buf, const struct weir_experiment *experiment,
                                  struct weir_error *err) WEIR_MUST_CHECK;
/** {"key", "value", "timestamp", "step"}, and "run_id" if it is not NULL. */
void mlflow_put_metric(struct weir_buf *buf, const struct weir_metric *metric, const char *run_id);

/** Answers are at most so long. */
#define MLFLOW_ANSWER_MAX_BYTES ((size_t)256 << 20)

#endif
