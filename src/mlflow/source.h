/**
 * Where the files of a model version come from, as MLflow's clients write it.
 */
#ifndef WEIR_MLFLOW_SOURCE_H
#define WEIR_MLFLOW_SOURCE_H

#include "mlflow/mlflow.h"

/** A folder of artifacts of a run of this server. */
struct mlflow_source {
    const char *run;
    const char *path; /**< "": all of the run. */
};

/**
 * Read "mlflow-artifacts:/EXPERIMENT/RUN/artifacts/PATH", the same behind "http://…/mlflow-artifacts/artifacts/",
 * or "runs:/RUN/PATH". Pure. @return False: it is elsewhere.
 */
bool mlflow_source_read(const char *source, struct weir_arena *arena, struct mlflow_source *out);

/** Read "models:/m-…", a logged model. Pure. */
bool mlflow_source_is_logged_model(const char *source, const char **out_id);

/** The logged model that a source is, or is the folder of; NULL: none. In the arena. Pure. */
const char *mlflow_source_logged_model(const char *source, struct weir_arena *arena);

/**
 * The folder of artifacts that a source names, also by a logged model that the call sees.
 * @param out_is_here  False: it names none of this server, and *out is as it was.
 */
weir_status mlflow_source_find(struct weir_mlflow_call *call, struct weir_txn *txn,
                               const char *source, struct mlflow_source *out, bool *out_is_here,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Read "models:/NAME/VERSION". Pure. */
bool mlflow_source_is_model(const char *source, struct weir_arena *arena, const char **out_name,
                            int64_t *out_version);

/**
 * May a version say that it comes from there? No path that leads elsewhere; a local one only of a run's
 * own artifacts, which are none of this server. Pure.
 * @return INVALID, in MLflow's words: "Invalid model version source: 'X'. …"
 */
weir_status mlflow_source_check(const char *source, struct weir_error *err) WEIR_MUST_CHECK;

#endif
