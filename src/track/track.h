/**
 * Tracking: datasets and their versions, runs and their metrics, models and their versions with
 * lineage. Records and the few functions that need more than record access. Each function runs
 * inside the caller's transaction.
 *
 * Datasets and models are named once and for all; versions count 1, 2, 3 … within them and never
 * change. A model version is made once per client-made identifier: a trainer that is not sure
 * whether its request arrived sends it again and gets the same version.
 */
#ifndef WEIR_TRACK_TRACK_H
#define WEIR_TRACK_TRACK_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

struct weir_dataset {
    char *name;
    char *project;
    char *kind;       /**< "folder" (classes are folders) or "idx". */
    char *path;       /**< Folder on the server. */
    bool is_uploaded; /**< Its files came through the API and lie in the server's state folder. */
    char *created_by;
    int64_t created_ms;
};

struct weir_dataset_version {
    char *id;
    char *dataset;
    int64_t version;
    char *digest; /**< SHA-256 over names and contents. */
    char *blob;   /**< SHA-256 of the manifest. */
    int64_t n_files;
    int64_t n_classes;
    int64_t n_rows;   /**< Of .csv, .tsv and .jsonl files. */
    int64_t n_unread; /**< Files that are no whole pictures, of a dataset of kind "folder". */
    int64_t bytes;
    int64_t created_ms;
    char *created_by; /**< "ion/NAME": by its preparation; NULL: not written down. */
    char *run;        /**< Whose program wrote the files; NULL: none of this server's. */
};

struct weir_run {
    char *id;
    char *name;
    char *project;
    int64_t experiment; /**< Its number (track/experiment.h). */
    char *kind;   /**< "train", "evaluate" …; "external": of a program that Weir did not start. */
    char *status; /**< "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED" */
    char *job;
    char *ion;
    char *pipeline;
    char *dataset;
    int64_t dataset_version; /**< 0 = none. */
    char *code_version;
    char *parameters;    /**< JSON object. */
    char *summary;       /**< JSON object. */
    char *artifact_root; /**< Where its artifacts are; NULL: with the server. */
    char *user;          /**< Whom its program names; NULL: nobody. */
    char *created_by;
    int64_t created_ms;
    int64_t start_ms; /**< When it began, as its program says. */
    int64_t finished_ms;
    int64_t deleted_ms; /**< 0: it is there. */
};

struct weir_metric {
    char *run;
    char *key;
    int64_t step;
    double value; /**< NaN allowed. */
    int64_t time_ms;
};

struct weir_model {
    char *name;
    char *project;
    char *description;
    char *created_by;
    int64_t created_ms;
    int64_t deleted_ms; /**< 0: it is there. */
    int64_t updated_ms; /**< 0: never, since it was made. */
};

struct weir_model_version {
    char *id; /**< Client-made UUIDv7. */
    char *model;
    int64_t version;
    char *run;
    char *blob; /**< SHA-256 of the model file; "": it has none (unservable says why). */
    int64_t bytes;
    char *dataset;
    int64_t dataset_version; /**< 0 = unknown. */
    char *code_version;
    char *parameters; /**< JSON object. */
    char *metrics;    /**< JSON object. */
    char *baseline;   /**< JSON: histograms of the training data. */
    char *signature;  /**< JSON: what it takes and gives (serve/signature.h); NULL: its file
                           has not been looked at. */
    char *golden; /**< SHA-256 of the file of golden inputs (serve/replica/golden.h); NULL: none. */
    char *created_by;
    int64_t created_ms;
    int64_t deleted_ms; /**< 0: it is there. The row stays for what names it. */
    char *deleted_by;
    char *source; /**< Where its files came from, as its maker says; NULL: they were uploaded. */
    char *source_run;  /**< The run, as its maker says; `run` is set if it is one of this server. */
    char *run_link;    /**< Address of a page about that run. */
    char *description; /**< For people. */
    char *stage;       /**< registry.h; NULL when it is registered: "None". */
    char *unservable;  /**< A sentence: why it cannot be served; NULL: it can. */
    int64_t updated_ms;
};

extern const struct weir_resource weir_dataset_resource;
extern const struct weir_resource weir_dataset_version_resource;
extern const struct weir_resource weir_run_resource;
extern const struct weir_resource
    weir_metric_resource; /**< No key field: use the functions below. */
extern const struct weir_resource weir_model_resource;
extern const struct weir_resource weir_model_version_resource;

/**
 * Add a version of a dataset if its digest is not the latest version's.
 *
 * @param version  id (for a new one), dataset, digest, blob and counts are read.
 * @param out      The new version or the latest.
 * @param out_is_new  May be NULL.
 * @return NOT_FOUND if there is no such dataset.
 */
weir_status weir_dataset_add_version(struct weir_txn *txn,
                                     const struct weir_dataset_version *version, int64_t now_ms,
                                     struct weir_arena *arena, struct weir_dataset_version *out,
                                     bool *out_is_new, struct weir_error *err) WEIR_MUST_CHECK;

/** A version by number; 0 = the latest. @return NOT_FOUND. */
weir_status weir_dataset_version_get(struct weir_txn *txn, const char *dataset, int64_t version,
                                     struct weir_arena *arena, struct weir_dataset_version *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Store measurements of Weir's own programs; a (run, key, step) that is there takes the new value.
 *  track/run.h has the way of others. @return NOT_FOUND: no such run. */
weir_status weir_metrics_put(struct weir_txn *txn, const char *run,
                             const struct weir_metric *metrics, size_t n,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Measurements of a run, by key and step.
 *
 * @param key         One key, or NULL for all.
 * @param after_step  With a key: only steps greater than it (INT64_MIN = all).
 * @param limit       At most so many.
 */
weir_status weir_metrics_list(struct weir_txn *txn, const char *run, const char *key,
                              int64_t after_step, size_t limit, struct weir_arena *arena,
                              struct weir_metric **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Called for each measurement, which lives for that call. Another status than WEIR_OK ends it. */
typedef weir_status (*weir_metric_fn)(void *context, const struct weir_metric *metric,
                                      struct weir_error *err);

/** All measurements of a run, however many, by key and step. */
weir_status weir_metrics_each(struct weir_txn *txn, const char *run, weir_metric_fn fn,
                              void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** The last measurement (greatest step) of a key of a run; NaN if there is none. */
weir_status weir_metric_last(struct weir_txn *txn, const char *run, const char *key, double *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The last measurement (greatest step) of every key of a run. */
weir_status weir_metrics_latest(struct weir_txn *txn, const char *run, struct weir_arena *arena,
                                struct weir_metric **out, size_t *out_n,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Register a model version; the model is made if it does not exist (in `project`). Its number is
 * the model's next. The same id again gives the version that is there, and *out_is_new false.
 *
 * @param version  All fields but version and created_ms are read.
 * @param out_is_new  May be NULL.
 * @return CONFLICT if the id exists with another model or blob, or the run does not exist.
 */
weir_status weir_model_register(struct weir_txn *txn, const struct weir_model_version *version,
                                const char *project, int64_t now_ms, struct weir_arena *arena,
                                struct weir_model_version *out, bool *out_is_new,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** A model that was not deleted. @return NOT_FOUND. */
weir_status weir_model_get(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                           struct weir_model *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Mark a version as deleted. What uses it the caller has looked for. */
weir_status weir_model_version_delete(struct weir_txn *txn, const char *id, const char *actor,
                                      int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** A version by number; 0 = the latest. @return NOT_FOUND. */
weir_status weir_model_version_get(struct weir_txn *txn, const char *model, int64_t version,
                                   struct weir_arena *arena, struct weir_model_version *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
