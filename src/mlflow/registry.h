/** What the registry's operations share (registered_model.c, model_version.c, model_search.c). */
#ifndef WEIR_MLFLOW_REGISTRY_H
#define WEIR_MLFLOW_REGISTRY_H

#include "control/control.h"
#include "deploy/deploy.h"
#include "mlflow/call.h"
#include "mlflow/source.h"
#include "track/registry.h"

/** Control with the call's arena, time, actor and publish list (borrowed). */
struct control mlflow_control(const struct weir_mlflow_call *call);

/** @return NOT_FOUND: "Registered Model with name=X not found", also of another's project. */
weir_status mlflow_find_model(const struct weir_mlflow_call *call, struct weir_txn *txn,
                              const char *name, struct weir_model *out,
                              struct weir_error *err) WEIR_MUST_CHECK;
/** The model, or the version, that the call's arguments name. */
weir_status mlflow_named_model(const struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_model *out, struct weir_error *err) WEIR_MUST_CHECK;
weir_status mlflow_named_version(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                 struct weir_model_version *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/** key and value. */
weir_status mlflow_read_tag(const struct weir_mlflow_call *call, struct weir_tag *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

weir_status mlflow_list_aliases(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                const char *model, struct weir_model_alias **out, size_t *out_n,
                                struct weir_error *err) WEIR_MUST_CHECK;
/** Take the names of a version away; 0: of all. */
weir_status mlflow_drop_aliases(struct weir_mlflow_call *call, struct weir_txn *txn,
                                const char *model, int64_t version,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** RegisteredModel and ModelVersion, with what belongs to them. */
weir_status mlflow_put_model(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_buf *buf, const struct weir_model *model,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status mlflow_put_version(struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_buf *buf, const struct weir_model_version *version,
                               struct weir_error *err) WEIR_MUST_CHECK;
/** {"model_version": …} */
weir_status mlflow_answer_version(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  const struct weir_model_version *version,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Members with a comma before them. */
void mlflow_put_times(struct weir_buf *buf, int64_t created_ms, int64_t updated_ms);

/** DENIED for a task that registers under another name than it may (call->own_model). */
weir_status mlflow_check_own_model(const struct weir_mlflow_call *call, const char *name,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
