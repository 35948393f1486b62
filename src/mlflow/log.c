/** Operations that write what programs log. Bodies are read on the caller's thread; only what goes into the
 *  database is done in the transaction. */
#include "mlflow/call.h"

#include "store/table.h"

#include <string.h>

#define METRICS_MAX        1000
#define PAIRS_MAX          100
#define ENTITIES_MAX       1000
#define BATCH_MAX_BYTES    1000000
#define DATASETS_MAX       1000
#define PUBLISHED_MAX      32
#define TAG_MODELS         "mlflow.log-model.history"
#define TAG_NAME           "mlflow.runName"
#define TAG_CONTEXT        "mlflow.data.context"
#define INPUT_TAG_KEY_MAX  255
#define INPUT_TAG_TEXT_MAX 500

/** What one call logs. */
struct log {
    struct weir_mlflow_call *call;
    const char *run_id;
    struct weir_metric *metrics;
    struct weir_tag *parameters, *tags;
    size_t n_metrics, n_parameters, n_tags;
    struct weir_run_input *inputs;
    size_t n_inputs;
    const char *deleted_tag;                    /**< To be taken away. */
    const char *model;                          /**< JSON, to be added to the run's models. */
    struct weir_logged_model_metric *of_models; /**< Measurements that are of logged models, too. */
    size_t n_of_models;
    struct weir_logged_model_use *uses; /**< Logged models that the run read. */
    size_t n_uses;
};

/* The last point of each key, for charts that are open. */
static void publish(const struct log *log)
{
    json_t *points = json_array();
    for (size_t i = log->n_metrics; i-- > 0 && json_array_size(points) < PUBLISHED_MAX;) {
        const struct weir_metric *metric = &log->metrics[i];
        bool is_last = true;
        for (size_t k = i + 1; k < log->n_metrics && is_last; k++) {
            is_last = strcmp(log->metrics[k].key, metric->key) != 0;
        }
        if (is_last) {
            json_array_append_new(points, weir_record_to_json(&weir_metric_resource, metric));
        }
    }
    json_array_append_new(log->call->publish,
                          json_pack("[s,{s:s,s:o}]", "runs", "id", log->run_id, "metrics", points));
}

/* A run's name is what its tag says. */
static weir_status take_name(struct weir_txn *txn, struct mlflow_run *run, const struct log *log,
                             struct weir_error *err);
static weir_status add_model(struct weir_txn *txn, const struct mlflow_run *run,
                             const struct log *log, struct weir_error *err);

static weir_status store_of_models(struct weir_txn *txn, const struct mlflow_run *run,
                                   const struct log *log, struct weir_error *err)
{
    for (size_t i = 0; i < log->n_of_models; i++) {
        struct weir_logged_model model;
        struct weir_logged_model_metric *metric = &log->of_models[i];
        metric->run = run->record.id;
        if (i == 0 || strcmp(metric->model, metric[-1].model) != 0) {
            WEIR_TRY(mlflow_find_logged_model(log->call, txn, metric->model, &model, err));
        }
        WEIR_TRY(weir_logged_model_metric_put(txn, metric, err));
    }
    return mlflow_store_uses(log->call, txn, run->record.id, log->uses, log->n_uses, err);
}

static weir_status write_log(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct log *log = context;
    struct mlflow_run run;
    WEIR_TRY(mlflow_find_run_to_change(log->call, txn, log->run_id, false, &run, err));
    WEIR_TRY(weir_run_parameters_put(txn, run.number, log->parameters, log->n_parameters, err));
    WEIR_TRY(weir_metrics_log(txn, run.number, log->metrics, log->n_metrics, err));
    WEIR_TRY(store_of_models(txn, &run, log, err));
    WEIR_TRY(weir_run_tags_put(txn, run.number, log->tags, log->n_tags, err));
    WEIR_TRY(take_name(txn, &run, log, err));
    for (size_t i = 0; i < log->n_inputs; i++) {
        WEIR_TRY(weir_run_input_put(txn, run.number, run.record.experiment, &log->inputs[i], err));
    }
    if (log->deleted_tag != NULL) {
        weir_status status = weir_run_tag_delete(txn, run.number, log->deleted_tag, err);
        if (status == WEIR_ERR_NOT_FOUND) {
            return weir_error_set(err, status, "No tag with name: %.250s in run with id %.64s",
                                  log->deleted_tag, log->run_id);
        }
        WEIR_TRY(status);
    }
    return log->model != NULL ? add_model(txn, &run, log, err) : WEIR_OK;
}

static weir_status run_log(struct log *log, struct weir_error *err)
{
    WEIR_TRY(mlflow_write(log->call, write_log, log, err));
    if (log->n_metrics > 0) {
        publish(log);
    }
    mlflow_answer_nothing(log->call);
    return WEIR_OK;
}

static weir_status begin(struct weir_mlflow_call *call, struct log *log, struct weir_error *err)
{
    *log = (struct log){.call = call};
    return mlflow_run_id(call, &log->run_id, err);
}

static weir_status take_name(struct weir_txn *txn, struct mlflow_run *run, const struct log *log,
                             struct weir_error *err)
{
    const char *name = NULL;
    for (size_t i = 0; i < log->n_tags; i++) {
        name = strcmp(log->tags[i].key, TAG_NAME) == 0 ? log->tags[i].value : name;
    }
    if (name == NULL || *name == '\0') {
        return WEIR_OK;
    }
    run->record.name = (char *)name;
    return weir_txn_update(txn, &weir_run_resource, &run->record, WEIR_FIELDS("name"), err);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Where a member of the metric stands: "value", or "metrics[3].value". */
static const char *place_of(struct weir_arena *arena, const char *place, const char *name)
{
    return *place == '\0' ? name : weir_arena_printf(arena, "%s.%s", place, name);
}

static weir_status read_metric(struct weir_mlflow_call *call, const char *place, const json_t *from,
                               struct weir_metric *out, struct weir_error *err)
{
    struct weir_arena *arena = call->arena;
    const json_t *key = json_object_get(from, "key"), *value = json_object_get(from, "value");
    const json_t *time = json_object_get(from, "timestamp"), *step = json_object_get(from, "step");
    *out = (struct weir_metric){.key = (char *)json_string_value(key)};
    if (out->key == NULL || *out->key == '\0') {
        return key == NULL || json_is_null(key) || json_is_string(key)
                   ? mlflow_missing(place_of(arena, place, "key"), err)
                   : mlflow_invalid(arena, place_of(arena, place, "key"), key, "", err);
    }
    if (value == NULL || json_is_null(value)) {
        return mlflow_missing(place_of(arena, place, "value"), err);
    }
    if (time == NULL || json_is_null(time)) {
        return mlflow_missing(place_of(arena, place, "timestamp"), err);
    }
    WEIR_TRY(mlflow_number_of(arena, value, place_of(arena, place, "value"), &out->value, err));
    WEIR_TRY(mlflow_int_of(arena, time, place_of(arena, place, "timestamp"), &out->time_ms, err));
    if (step != NULL && !json_is_null(step)) {
        WEIR_TRY(mlflow_int_of(arena, step, place_of(arena, place, "step"), &out->step, err));
    }
    if (out->time_ms < 0) {
        return mlflow_invalid(arena, place_of(arena, place, "timestamp"), time,
                              "Timestamp must be a nonnegative long (64-bit integer)", err);
    }
    return mlflow_check_key(arena, place_of(arena, place, "name"), out->key, err);
}

/* A measurement that says of which logged model it is is that one's, too. */
static weir_status note_model(struct log *log, const json_t *from, const struct weir_metric *metric,
                              struct weir_error *err)
{
    const char *model = json_string_value(json_object_get(from, "model_id"));
    const char *dataset = json_string_value(json_object_get(from, "dataset_name"));
    const char *digest = json_string_value(json_object_get(from, "dataset_digest"));
    if (model == NULL || *model == '\0') {
        return WEIR_OK;
    }
    WEIR_TRY(mlflow_check_length("dataset_name", dataset != NULL ? dataset : "", 500, err));
    WEIR_TRY(mlflow_check_length("dataset_digest", digest != NULL ? digest : "", 36, err));
    log->of_models[log->n_of_models++] =
        (struct weir_logged_model_metric){.model = (char *)model,
                                          .dataset = (char *)(dataset != NULL ? dataset : ""),
                                          .digest = (char *)(digest != NULL ? digest : ""),
                                          .metric = *metric};
    return WEIR_OK;
}

weir_status mlflow_log_metric(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct log log;
    struct weir_metric metric;
    (void)txn;
    WEIR_TRY(begin(call, &log, err));
    struct weir_logged_model_metric of_model;
    WEIR_TRY(read_metric(call, "", call->body, &metric, err));
    log.of_models = &of_model;
    WEIR_TRY(note_model(&log, call->body, &metric, err));
    log.metrics = &metric;
    log.n_metrics = 1;
    return run_log(&log, err);
}

static weir_status read_metrics(struct weir_mlflow_call *call, struct log *log,
                                struct weir_error *err)
{
    const json_t *list;
    size_t i;
    json_t *item;
    WEIR_TRY(mlflow_array(call, "metrics", &list, err));
    log->metrics = WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, struct weir_metric);
    log->of_models =
        WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, struct weir_logged_model_metric);
    json_array_foreach(list, i, item)
    {
        struct weir_error ignored;
        if (read_metric(call, "", item, &log->metrics[i], &ignored) != WEIR_OK) {
            return read_metric(call, weir_arena_printf(call->arena, "metrics[%zu]", i), item,
                               &log->metrics[i], err);
        }
        WEIR_TRY(note_model(log, item, &log->metrics[i], err));
    }
    log->n_metrics = json_array_size(list);
    return WEIR_OK;
}

/* ---- parameters and tags --------------------------------------------------------------------- */

static weir_status check_pairs(struct weir_mlflow_call *call, const char *name,
                               struct weir_tag *pairs, size_t n, size_t max_characters,
                               struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *place =
            *name == '\0' ? "key" : weir_arena_printf(call->arena, "%s[%zu].key", name, i);
        WEIR_TRY(mlflow_check_key(call->arena, place, pairs[i].key, err));
        pairs[i].value = mlflow_cut(call->arena, pairs[i].value, max_characters);
    }
    return WEIR_OK;
}

static weir_status read_pair(struct weir_mlflow_call *call, size_t max_characters,
                             struct weir_tag *out, struct weir_error *err)
{
    const char *key, *value;
    WEIR_TRY(mlflow_text_required(call, "key", &key, err));
    WEIR_TRY(mlflow_text(call, "value", &value, err));
    *out = (struct weir_tag){(char *)key, (char *)(value != NULL ? value : "")};
    return check_pairs(call, "", out, 1, max_characters, err);
}

weir_status mlflow_log_parameter(struct weir_mlflow_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct log log;
    struct weir_tag parameter;
    (void)txn;
    WEIR_TRY(begin(call, &log, err));
    WEIR_TRY(read_pair(call, MLFLOW_PARAMETER_MAX, &parameter, err));
    log.parameters = &parameter;
    log.n_parameters = 1;
    return run_log(&log, err);
}

weir_status mlflow_set_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                           struct weir_error *err)
{
    struct log log;
    struct weir_tag tag;
    (void)txn;
    WEIR_TRY(begin(call, &log, err));
    WEIR_TRY(read_pair(call, MLFLOW_TAG_MAX, &tag, err));
    log.tags = &tag;
    log.n_tags = 1;
    return run_log(&log, err);
}

weir_status mlflow_delete_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct log log;
    (void)txn;
    WEIR_TRY(begin(call, &log, err));
    WEIR_TRY(mlflow_text_required(call, "key", &log.deleted_tag, err));
    return run_log(&log, err);
}

/* ---- a batch --------------------------------------------------------------------------------- */

static weir_status check_limit(const char *what, size_t n, size_t most, struct weir_error *err)
{
    return n <= most ? WEIR_OK
                     : weir_error_set(err, WEIR_ERR_INVALID,
                                      "A batch logging request can contain at most %zu %s. Got "
                                      "%zu %s. Please split up %s across multiple requests and "
                                      "try again.",
                                      most, what, n, what, what);
}

static weir_status check_unique(const struct log *log, struct weir_error *err)
{
    for (size_t i = 0; i < log->n_parameters; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(log->parameters[i].key, log->parameters[k].key) == 0) {
                return weir_error_set(err, WEIR_ERR_INVALID,
                                      "Duplicate parameter keys have been submitted: ['%.250s']. "
                                      "Please ensure the request contains only one param value "
                                      "per param key.",
                                      log->parameters[i].key);
            }
        }
    }
    return WEIR_OK;
}

weir_status mlflow_log_batch(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct log log;
    (void)txn;
    if (call->request->body_len > BATCH_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Batched logging API requests must be at most %d bytes, got a "
                              "request of size %zu.",
                              BATCH_MAX_BYTES, call->request->body_len);
    }
    if (call->batch != NULL) {
        log = (struct log){.call = call,
                           .run_id = call->batch->run_id,
                           .metrics = call->batch->metrics,
                           .n_metrics = call->batch->n};
        return run_log(&log, err);
    }
    WEIR_TRY(begin(call, &log, err));
    WEIR_TRY(read_metrics(call, &log, err));
    WEIR_TRY(mlflow_tags(call, "params", &log.parameters, &log.n_parameters, err));
    WEIR_TRY(mlflow_tags(call, "tags", &log.tags, &log.n_tags, err));
    WEIR_TRY(check_limit("metrics", log.n_metrics, METRICS_MAX, err));
    WEIR_TRY(check_limit("params", log.n_parameters, PAIRS_MAX, err));
    WEIR_TRY(check_limit("tags", log.n_tags, PAIRS_MAX, err));
    WEIR_TRY(check_limit("metrics, params, and tags", log.n_metrics + log.n_parameters + log.n_tags,
                         ENTITIES_MAX, err));
    WEIR_TRY(
        check_pairs(call, "params", log.parameters, log.n_parameters, MLFLOW_PARAMETER_MAX, err));
    WEIR_TRY(check_pairs(call, "tags", log.tags, log.n_tags, MLFLOW_TAG_MAX, err));
    WEIR_TRY(check_unique(&log, err));
    return run_log(&log, err);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* The run's models are a JSON array in one of its tags. */
static weir_status add_model(struct weir_txn *txn, const struct mlflow_run *run,
                             const struct log *log, struct weir_error *err)
{
    struct weir_arena *arena = log->call->arena;
    struct weir_error ignored;
    struct weir_tag *tags;
    size_t n;
    json_t *list = NULL, *model = NULL;
    WEIR_TRY(weir_run_tags(txn, run->number, arena, &tags, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tags[i].key, TAG_MODELS) == 0 &&
            weir_json_parse(tags[i].value, strlen(tags[i].value), TAG_MODELS, &list, &ignored) !=
                WEIR_OK) {
            list = NULL; /* somebody wrote another thing there: it begins again */
        }
    }
    if (!json_is_array(list)) {
        json_decref(list);
        list = json_array();
    }
    weir_status status = weir_json_parse(log->model, strlen(log->model), "model_json", &model, err);
    if (status == WEIR_OK) {
        json_array_append_new(list, model);
        struct weir_tag tag = {TAG_MODELS, weir_json_text(list, arena)};
        status = weir_run_tags_put(txn, run->number, &tag, 1, err);
    }
    json_decref(list);
    return status;
}

weir_status mlflow_log_model(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    static const char *const needed[] = {"artifact_path", "flavors", "utc_time_created", "run_id"};
    WEIR_AUTO(weir_json_auto_free) json_t *model = NULL;
    struct weir_error why;
    struct log log;
    (void)txn;
    WEIR_TRY(begin(call, &log, err));
    WEIR_TRY(mlflow_text_required(call, "model_json", &log.model, err));
    if (weir_json_parse(log.model, strlen(log.model), "model_json", &model, &why) != WEIR_OK ||
        !json_is_object(model)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Malformed model info. \n %.100s \n is not a valid JSON.", log.model);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(needed); i++) {
        if (json_object_get(model, needed[i]) == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "Model json is missing mandatory fields: {'%s'}", needed[i]);
        }
    }
    return run_log(&log, err);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static weir_status read_input_tags(struct weir_mlflow_call *call, const char *place,
                                   const json_t *list, struct weir_run_input *out,
                                   struct weir_error *err)
{
    size_t i;
    json_t *item, *tags = json_array();
    weir_status status = WEIR_OK;
    json_array_foreach(list, i, item)
    {
        const char *key = json_string_value(json_object_get(item, "key"));
        const char *value = json_string_value(json_object_get(item, "value"));
        if (key == NULL || *key == '\0') {
            status =
                mlflow_missing(weir_arena_printf(call->arena, "%s.tags[%zu].key", place, i), err);
            break;
        }
        value = value != NULL ? value : "";
        status = mlflow_check_length("key", key, INPUT_TAG_KEY_MAX, err);
        status = status == WEIR_OK ? mlflow_check_length("value", value, INPUT_TAG_TEXT_MAX, err)
                                   : status;
        if (status != WEIR_OK) {
            break;
        }
        json_array_append_new(tags, json_pack("{s:s,s:s}", "key", key, "value", value));
        if (strcmp(key, TAG_CONTEXT) == 0) {
            out->context = (char *)value;
        }
    }
    out->tags = status == WEIR_OK ? weir_json_text(tags, call->arena) : NULL;
    json_decref(tags);
    return status;
}

static weir_status read_input(struct weir_mlflow_call *call, size_t i, const json_t *from,
                              struct weir_run_input *out, struct weir_error *err)
{
    const json_t *dataset = json_object_get(from, "dataset");
    char *place = weir_arena_printf(call->arena, "datasets[%zu]", i);

    const struct {
        const char *name;
        char **text;
        bool is_required;
    } members[] = {{"name", &out->name, true},
                   {"digest", &out->digest, true},
                   {"source_type", &out->source_type, true},
                   {"source", &out->source, true},
                   {"schema", &out->schema, false},
                   {"profile", &out->profile, false}};

    *out = (struct weir_run_input){0};
    if (!json_is_object(dataset)) {
        return mlflow_missing(weir_arena_printf(call->arena, "%s.dataset", place), err);
    }
    for (size_t k = 0; k < WEIR_ARRAY_LEN(members); k++) {
        const json_t *value = json_object_get(dataset, members[k].name);
        *members[k].text = (char *)json_string_value(value);
        if (members[k].is_required && json_string_length(value) == 0) {
            return mlflow_missing(
                weir_arena_printf(call->arena, "%s.dataset.%s", place, members[k].name), err);
        }
    }
    return read_input_tags(call, place, json_object_get(from, "tags"), out, err);
}

weir_status mlflow_log_inputs(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct log log;
    const json_t *list;
    size_t i;
    json_t *item;
    (void)txn;
    WEIR_TRY(begin(call, &log, err));
    WEIR_TRY(mlflow_array(call, "datasets", &list, err));
    WEIR_TRY(mlflow_read_uses(call, false, &log.uses, &log.n_uses, err));
    if (list == NULL && log.n_uses == 0) {
        return mlflow_missing("datasets", err);
    }
    WEIR_TRY(check_limit("datasets", json_array_size(list), DATASETS_MAX, err));
    log.inputs = WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, struct weir_run_input);
    json_array_foreach(list, i, item)
    {
        WEIR_TRY(read_input(call, i, item, &log.inputs[i], err));
    }
    log.n_inputs = json_array_size(list);
    return run_log(&log, err);
}
