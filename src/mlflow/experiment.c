/** Operations on experiments. */
#include "mlflow/call.h"

#include <inttypes.h>
#include <string.h>

#define NAME_MAX_CHARACTERS      500
#define TAG_KEY_MAX_CHARACTERS   250
#define TAG_VALUE_MAX_CHARACTERS 5000

static void put_experiment(struct weir_buf *buf, const struct weir_experiment *experiment,
                           const struct weir_tag *tags, size_t n_tags)
{
    (void)weir_buf_printf(buf, "{\"experiment_id\":\"%" PRId64 "\"", experiment->id);
    mlflow_put_member(buf, "name", experiment->name);
    if (experiment->artifact_location != NULL) {
        mlflow_put_member(buf, "artifact_location", experiment->artifact_location);
    } else {
        (void)weir_buf_printf(buf, ",\"artifact_location\":\"" MLFLOW_ARTIFACTS "/%" PRId64 "\"",
                              experiment->id);
    }
    mlflow_put_member(buf, "lifecycle_stage", experiment->deleted_ms != 0 ? "deleted" : "active");
    (void)weir_buf_printf(buf, ",\"last_update_time\":%" PRId64 ",\"creation_time\":%" PRId64,
                          experiment->updated_ms, experiment->created_ms);
    mlflow_put_pairs(buf, ",\"tags\":", tags, n_tags);
    (void)weir_buf_puts(buf, "}");
}

weir_status mlflow_put_experiment(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_buf *buf, const struct weir_experiment *experiment,
                                  struct weir_error *err)
{
    struct weir_tag *tags;
    size_t n;
    WEIR_TRY(weir_experiment_tags(txn, experiment->id, call->arena, &tags, &n, err));
    put_experiment(buf, experiment, tags, n);
    return WEIR_OK;
}

static weir_status answer_experiment(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     const struct weir_experiment *experiment,
                                     struct weir_error *err)
{
    struct weir_buf buf;
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"experiment\":");
    weir_status status = mlflow_put_experiment(call, txn, &buf, experiment, err);
    return mlflow_answer_made(call, status, &buf);
}

static weir_status check_location(const char *location, struct weir_error *err)
{
    if (location == NULL) {
        return WEIR_OK;
    }
    if (strncmp(location, "runs:", 5) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Artifact location cannot be a runs:/ URI. Given: '%.200s'",
                              location);
    }
    if (strlen(location) > WEIR_EXPERIMENT_LOCATION_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "'artifact_location' exceeds the maximum length of %d bytes",
                              WEIR_EXPERIMENT_LOCATION_MAX);
    }
    if (strpbrk(location, "#;") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "'artifact_location' URL can't include fragments or params.");
    }
    const char *query = strchr(location, '?');
    return query == NULL || strstr(query, "..") == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "Invalid query string: %.200s", query + 1);
}

static weir_status check_tag(const struct weir_tag *tag, struct weir_error *err)
{
    WEIR_TRY(mlflow_check_length("key", tag->key, TAG_KEY_MAX_CHARACTERS, err));
    return mlflow_check_length("value", tag->value, TAG_VALUE_MAX_CHARACTERS, err);
}

/* A program says by an experiment's name where it works before it takes up the run that its job has
 * made, and MLflow's client refuses a run of another experiment: so that run comes along, as long as
 * the program has logged nothing. */
static weir_status take_run_along(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                  int64_t experiment, struct weir_error *err)
{
    return call->own_run != NULL ? weir_run_move(txn, call->own_run, experiment, err) : WEIR_OK;
}

weir_status mlflow_experiment_create(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    const char *name, *location;
    struct weir_tag *tags;
    size_t n_tags;
    int64_t id;
    WEIR_TRY(mlflow_text_required(call, "name", &name, err));
    WEIR_TRY(mlflow_text(call, "artifact_location", &location, err));
    WEIR_TRY(mlflow_tags(call, "tags", &tags, &n_tags, err));
    WEIR_TRY(mlflow_check_length("name", name, NAME_MAX_CHARACTERS, err));
    location = location != NULL && *location != '\0' ? location : NULL;
    WEIR_TRY(check_location(location, err));
    const struct weir_experiment made = {.project = (char *)call->project,
                                         .name = (char *)name,
                                         .artifact_location = (char *)location,
                                         .created_by = (char *)call->actor,
                                         .created_ms = call->now_ms};
    weir_status status = weir_experiment_create(txn, &made, &id, err);
    if (status == WEIR_ERR_EXISTS) {
        return weir_error_set(err, status, "Experiment(name=%.300s) already exists.", name);
    }
    WEIR_TRY(status);
    for (size_t i = 0; i < n_tags; i++) {
        WEIR_TRY(check_tag(&tags[i], err));
        WEIR_TRY(weir_experiment_tag(txn, id, &tags[i], call->now_ms, err));
    }
    WEIR_TRY(take_run_along(call, txn, id, err));
    mlflow_answer(call, json_pack("{s:o}", "experiment_id", json_sprintf("%" PRId64, id)));
    return WEIR_OK;
}

/* The one that the call names. */
static weir_status find(struct weir_mlflow_call *call, struct weir_txn *txn,
                        struct weir_experiment *out, struct weir_error *err)
{
    const char *id;
    WEIR_TRY(mlflow_text_required(call, "experiment_id", &id, err));
    return mlflow_find_experiment(call, txn, id, out, err);
}

weir_status mlflow_experiment_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_experiment experiment;
    WEIR_TRY(find(call, txn, &experiment, err));
    return answer_experiment(call, txn, &experiment, err);
}

static weir_status get_by_name_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_mlflow_call *call = context;
    const char *name;
    struct weir_experiment experiment;
    WEIR_TRY(mlflow_text_required(call, "experiment_name", &name, err));
    weir_status status =
        weir_experiment_find(txn, call->project, name, call->arena, &experiment, err);
    if (call->sees_own_only && (status != WEIR_OK || experiment.id != call->own_experiment)) {
        return mlflow_refuse_others(err);
    }
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "Could not find experiment with name '%.300s'", name);
    }
    WEIR_TRY(status);
    if (experiment.deleted_ms == 0) {
        WEIR_TRY(take_run_along(call, txn, experiment.id, err));
    }
    return answer_experiment(call, txn, &experiment, err);
}

weir_status mlflow_experiment_get_by_name(struct weir_mlflow_call *call, struct weir_txn *txn,
                                          struct weir_error *err)
{
    (void)txn;
    return (call->own_run != NULL ? mlflow_write : mlflow_read)(call, get_by_name_in, call, err);
}

/* A task works inside of an experiment; it does not delete or rename one. */
static weir_status find_to_change(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_experiment *out, struct weir_error *err)
{
    WEIR_TRY(find(call, txn, out, err));
    return call->job == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED, "a task's token does not change experiments");
}

weir_status mlflow_experiment_delete(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct weir_experiment experiment;
    WEIR_TRY(find_to_change(call, txn, &experiment, err));
    if (experiment.deleted_ms != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "No Experiment with id=%" PRId64 " exists",
                              experiment.id);
    }
    WEIR_TRY(weir_experiment_delete(txn, experiment.id, call->now_ms, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_experiment_restore(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      struct weir_error *err)
{
    struct weir_experiment experiment;
    WEIR_TRY(find_to_change(call, txn, &experiment, err));
    if (experiment.deleted_ms == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "No deleted Experiment with id=%" PRId64 " exists", experiment.id);
    }
    WEIR_TRY(weir_experiment_restore(txn, experiment.id, call->now_ms, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_experiment_update(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct weir_experiment experiment;
    const char *name;
    WEIR_TRY(find_to_change(call, txn, &experiment, err));
    WEIR_TRY(mlflow_text_required(call, "new_name", &name, err));
    WEIR_TRY(mlflow_check_length("new_name", name, NAME_MAX_CHARACTERS, err));
    if (experiment.deleted_ms != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "Cannot rename a non-active experiment.");
    }
    weir_status status = weir_experiment_rename(txn, experiment.id, name, call->now_ms, err);
    if (status == WEIR_ERR_EXISTS) {
        return weir_error_set(err, status, "Experiment(name=%.300s) already exists.", name);
    }
    WEIR_TRY(status);
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_experiment_set_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      struct weir_error *err)
{
    struct weir_experiment experiment;
    const char *key, *value;
    WEIR_TRY(find(call, txn, &experiment, err));
    WEIR_TRY(mlflow_text_required(call, "key", &key, err));
    WEIR_TRY(mlflow_text(call, "value", &value, err));
    const struct weir_tag tag = {(char *)key, (char *)(value != NULL ? value : "")};
    WEIR_TRY(check_tag(&tag, err));
    WEIR_TRY(weir_experiment_tag(txn, experiment.id, &tag, call->now_ms, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_experiment_delete_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                                         struct weir_error *err)
{
    struct weir_experiment experiment;
    const char *key;
    WEIR_TRY(find(call, txn, &experiment, err));
    WEIR_TRY(mlflow_text_required(call, "key", &key, err));
    weir_status status = weir_experiment_untag(txn, experiment.id, key, call->now_ms, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "No tag with name: %.250s", key);
    }
    WEIR_TRY(status);
    mlflow_answer_nothing(call);
    return WEIR_OK;
}
