/**
 * Logged models: what a program kept as a model, with the run that made it, before anybody registers it.
 * They are MLflow 3's: every log_model of its client makes one, and a registered version is made from one.
 *
 * A logged model has a name in an experiment (not unique), parameters that are written once, tags, and
 * measurements that say how good it is: of each key the last one of each run, on each dataset. Its files
 * are artifacts of a run: folder WEIR_LOGGED_MODEL_FOLDER/ID of the run that it came from. A run *outputs*
 * models and has others as its *inputs*.
 *
 * Everything runs in the caller's transaction.
 */
#ifndef WEIR_TRACK_LOGGED_MODEL_H
#define WEIR_TRACK_LOGGED_MODEL_H

#include "store/store.h"
#include "track/run.h"
#include "track/search.h"

#define WEIR_LOGGED_MODEL_FOLDER     "models"
#define WEIR_LOGGED_MODEL_ID_BYTES   35   /**< "m-", 32 digits, NUL. */
#define WEIR_LOGGED_MODEL_NAME_MAX   256  /**< Bytes. */
#define WEIR_LOGGED_MODEL_PAIRS_MAX  1000 /**< Parameters, and tags. */
#define WEIR_LOGGED_MODEL_VALUE_MAX  8192 /**< Bytes of one's value. */
#define WEIR_LOGGED_MODEL_METRIC_MAX 1000 /**< That are told of one. */

struct weir_logged_model {
    char *id; /**< "m-" and 32 hexadecimal digits. */
    char *project;
    int64_t experiment;
    char *run;        /**< Whose artifacts its files are. */
    char *source_run; /**< The same; NULL: its maker named none. */
    char *name, *type;
    char *status; /**< PENDING, READY, FAILED. */
    char *status_message;
    char *created_by;
    int64_t created_ms, updated_ms, deleted_ms;
};

extern const struct weir_resource weir_logged_model_resource;
extern const struct weir_search_noun weir_logged_model_noun;

/** A measurement of a model, by a run. */
struct weir_logged_model_metric {
    char *model, *run;
    char *dataset, *digest; /**< "": none. */
    struct weir_metric metric;
};

/** A model that a run made or read. */
struct weir_logged_model_use {
    char *model;
    bool is_output;
    int64_t step;
};

/** Is it the form of an identifier? Pure. */
bool weir_logged_model_is_id(const char *text);

/** Also one that is deleted: its files are there, and versions may have been made of them.
 *  @return NOT_FOUND. */
weir_status weir_logged_model_get(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                                  struct weir_logged_model *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Set parameters; one that has the same value already is fine. @return CONFLICT if it has another;
 *  INVALID, LIMIT. */
weir_status weir_logged_model_params_put(struct weir_txn *txn, const char *model,
                                         const struct weir_tag *params, size_t n,
                                         struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_logged_model_params(struct weir_txn *txn, const char *model,
                                     struct weir_arena *arena, struct weir_tag **out, size_t *out_n,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Set tags, or give them new values. @return INVALID, LIMIT. */
weir_status weir_logged_model_tags_put(struct weir_txn *txn, const char *model,
                                       const struct weir_tag *tags, size_t n,
                                       struct weir_error *err) WEIR_MUST_CHECK;
/** @return NOT_FOUND. */
weir_status weir_logged_model_tag_delete(struct weir_txn *txn, const char *model, const char *key,
                                         struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_logged_model_tags(struct weir_txn *txn, const char *model,
                                   struct weir_arena *arena, struct weir_tag **out, size_t *out_n,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Keep a measurement, unless a later one is there: by step, then by time. */
weir_status weir_logged_model_metric_put(struct weir_txn *txn,
                                         const struct weir_logged_model_metric *metric,
                                         struct weir_error *err) WEIR_MUST_CHECK;
/** By key, run and dataset; at most WEIR_LOGGED_MODEL_METRIC_MAX. */
weir_status weir_logged_model_metrics(struct weir_txn *txn, const char *model,
                                      struct weir_arena *arena,
                                      struct weir_logged_model_metric **out, size_t *out_n,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** Note that a run made or read a model; once more changes the step. */
weir_status weir_logged_model_use_put(struct weir_txn *txn, const char *run,
                                      const struct weir_logged_model_use *use,
                                      struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_logged_model_uses(struct weir_txn *txn, const char *run, struct weir_arena *arena,
                                   struct weir_logged_model_use **out, size_t *out_n,
                                   struct weir_error *err) WEIR_MUST_CHECK;

struct weir_logged_model_search {
    const int64_t *experiments;
    size_t n_experiments; /**< 0: nothing is found. */
    const struct weir_search_node *filter;
    const struct weir_search_order *orders; /**< Then the newest first. */
    size_t n_orders;
    const char *cursor; /**< NULL: the first page. */
    size_t limit;
};

/**
 * A page of the models that are not deleted.
 * @param out_next  Cursor of the next page; NULL: there is none.
 * @return INVALID for a cursor that is none.
 * Cost: of all models of the experiments, if they are ordered by something else than time.
 */
weir_status weir_logged_model_search(struct weir_txn *txn,
                                     const struct weir_logged_model_search *search,
                                     struct weir_arena *arena, struct weir_logged_model **out,
                                     size_t *out_n, char **out_next,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
