/** Operations on logged models, which MLflow's clients of version 3 make with every log_model. */
#include "mlflow/call.h"

#include "store/table.h"
#include "track/logged_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEARCH_DEFAULT 100
#define SEARCH_MAX     1000
#define ORDER_MAX      (WEIR_RUN_KEY_MAX + 16)
#define USES_MAX       1000

/* What the protocol calls the states; places are its numbers. */
static const struct {
    const char *theirs, *ours;
} states[] = {{"LOGGED_MODEL_STATUS_UNSPECIFIED", NULL},
              {"LOGGED_MODEL_PENDING", "PENDING"},
              {"LOGGED_MODEL_READY", "READY"},
              {"LOGGED_MODEL_UPLOAD_FAILED", "FAILED"}};

/* ---- telling --------------------------------------------------------------------------------- */

static const char *state_of(const struct weir_logged_model *model)
{
    for (size_t i = 1; i < WEIR_ARRAY_LEN(states); i++) {
        if (strcmp(states[i].ours, model->status) == 0) {
            return states[i].theirs;
        }
    }
    return states[0].theirs;
}

char *mlflow_logged_model_uri(const struct weir_mlflow_call *call, const struct weir_run *run,
                              const char *id)
{
    const char *root =
        run->artifact_root != NULL
            ? run->artifact_root
            : weir_arena_printf(call->arena, MLFLOW_ARTIFACTS "/%" PRId64 "/%s/artifacts",
                                run->experiment, run->id);
    return weir_arena_printf(call->arena, "%s/" WEIR_LOGGED_MODEL_FOLDER "/%s", root, id);
}

static void put_info(struct weir_mlflow_call *call, struct weir_buf *buf,
                     const struct weir_logged_model *model, const struct weir_run *run,
                     const struct weir_tag *tags, size_t n_tags)
{
    (void)weir_buf_puts(buf, "{\"info\":{");
    mlflow_put_member(buf, "model_id", model->id);
    (void)weir_buf_printf(buf, ",\"experiment_id\":\"%" PRId64 "\"", model->experiment);
    mlflow_put_member(buf, "name", model->name);
    (void)weir_buf_printf(
        buf, ",\"creation_timestamp_ms\":%" PRId64 ",\"last_updated_timestamp_ms\":%" PRId64,
        model->created_ms, model->updated_ms);
    mlflow_put_member(buf, "artifact_uri", mlflow_logged_model_uri(call, run, model->id));
    mlflow_put_member(buf, "status", state_of(model));
    mlflow_put_member(buf, "model_type", model->type);
    mlflow_put_member(buf, "source_run_id", model->source_run);
    mlflow_put_member(buf, "status_message", model->status_message);
    mlflow_put_pairs(buf, ",\"tags\":", tags, n_tags);
    (void)weir_buf_puts(buf, "}");
}

static const char *unless_empty(const char *text)
{
    return text != NULL && *text != '\0' ? text : NULL;
}

static void put_metric(struct weir_buf *buf, const char *model,
                       const struct weir_logged_model_metric *metric)
{
    mlflow_put_metric(buf, &metric->metric, metric->run);
    buf->len--; /* its brace: there is more to say */
    mlflow_put_member(buf, "model_id", model);
    mlflow_put_member(buf, "dataset_name", unless_empty(metric->dataset));
    mlflow_put_member(buf, "dataset_digest", unless_empty(metric->digest));
    (void)weir_buf_append(buf, "}", 1);
}

static weir_status put_model(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_buf *buf, const struct weir_logged_model *model,
                             struct weir_error *err)
{
    struct mlflow_run run;
    struct weir_tag *pairs;
    struct weir_logged_model_metric *metrics;
    size_t n;
    WEIR_TRY(mlflow_find_run(call, txn, model->run, &run, err));
    WEIR_TRY(weir_logged_model_tags(txn, model->id, call->arena, &pairs, &n, err));
    put_info(call, buf, model, &run.record, pairs, n);
    WEIR_TRY(weir_logged_model_params(txn, model->id, call->arena, &pairs, &n, err));
    mlflow_put_pairs(buf, ",\"data\":{\"params\":", pairs, n);
    WEIR_TRY(weir_logged_model_metrics(txn, model->id, call->arena, &metrics, &n, err));
    (void)weir_buf_puts(buf, ",\"metrics\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(buf, i > 0 ? "," : "");
        put_metric(buf, model->id, &metrics[i]);
    }
    (void)weir_buf_puts(buf, "]}}");
    return buf->status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "the page is too large: ask for fewer models");
}

static weir_status answer_model(struct weir_mlflow_call *call, struct weir_txn *txn,
                                const struct weir_logged_model *model, struct weir_error *err)
{
    struct weir_buf buf;
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"model\":");
    weir_status status = put_model(call, txn, &buf, model, err);
    return mlflow_answer_made(call, status, &buf);
}

/* ---- finding --------------------------------------------------------------------------------- */

weir_status mlflow_find_logged_model(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                     const char *id, struct weir_logged_model *out,
                                     struct weir_error *err)
{
    struct weir_logged_model model;
    struct mlflow_run run;
    weir_status status = weir_logged_model_get(txn, id, call->arena, &model, err);
    if (call->sees_own_only) {
        WEIR_TRY(status == WEIR_ERR_NOT_FOUND ? mlflow_refuse_others(err) : status);
        WEIR_TRY(mlflow_find_run(call, txn, model.run, &run, err));
    }
    WEIR_TRY(status);
    *out = model;
    return model.deleted_ms == 0 && weir_row_scope_sees(&call->rows, model.project)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOT_FOUND, "Logged model with ID '%.100s' not found.",
                                id);
}

/* The one that the path names, for a change: a task changes those of its job's runs. */
static weir_status find_to_change(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_logged_model *out, struct weir_error *err)
{
    struct mlflow_run run;
    WEIR_TRY(mlflow_find_logged_model(call, txn, call->params[0], out, err));
    return mlflow_find_run_to_change(call, txn, out->run, true, &run, err);
}

static weir_status touch(const struct weir_mlflow_call *call, struct weir_txn *txn,
                         struct weir_logged_model *model, struct weir_error *err)
{
    model->updated_ms = call->now_ms;
    return weir_txn_update(txn, &weir_logged_model_resource, model,
                           WEIR_FIELDS("status", "updated_ms", "deleted_ms"), err);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* A model that is of no run gets one of its name, for its files. */
static weir_status make_run(struct weir_mlflow_call *call, struct weir_txn *txn,
                            const struct weir_experiment *experiment, const char *name,
                            struct mlflow_run *out, struct weir_error *err)
{
    const struct weir_tag tag = {"mlflow.runName", (char *)name};
    *out = (struct mlflow_run){.record = {.id = mlflow_make_id(call->arena),
                                          .name = (char *)name,
                                          .project = experiment->project,
                                          .experiment = experiment->id,
                                          .kind = "external",
                                          .status = "FINISHED",
                                          .user = (char *)call->actor,
                                          .created_by = (char *)call->actor,
                                          .created_ms = call->now_ms,
                                          .start_ms = call->now_ms,
                                          .finished_ms = call->now_ms}};
    if (experiment->artifact_location != NULL) {
        out->record.artifact_root = weir_arena_printf(
            call->arena, "%s/%s/artifacts", experiment->artifact_location, out->record.id);
    }
    WEIR_TRY(weir_run_insert(txn, &out->record, &out->number, err));
    return weir_run_tags_put(txn, out->number, &tag, 1, err);
}

static weir_status choose_run(struct weir_mlflow_call *call, struct weir_txn *txn,
                              const struct weir_experiment *experiment, const char *source,
                              const char *name, struct mlflow_run *out, struct weir_error *err)
{
    const char *id = source != NULL ? source : call->own_run;
    struct weir_error unknown;
    if (id == NULL || mlflow_find_run(call, txn, id, out, &unknown) == WEIR_ERR_NOT_FOUND) {
        return make_run(call, txn, experiment, name, out, err); /* a run of elsewhere is noted */
    }
    WEIR_TRY(mlflow_find_run_to_change(call, txn, id, false, out, err));
    return strcmp(out->record.project, experiment->project) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "Run '%.64s' is not of the project of experiment %" PRId64, id,
                                experiment->id);
}

weir_status mlflow_logged_model_create(struct weir_mlflow_call *call, struct weir_txn *txn,
                                       struct weir_error *err)
{
    struct weir_experiment experiment;
    struct mlflow_run run;
    struct weir_tag *params, *tags;
    const char *name, *type, *source;
    size_t n_params, n_tags;
    WEIR_TRY(mlflow_target_experiment(call, txn, &experiment, err));
    WEIR_TRY(mlflow_text(call, "name", &name, err));
    WEIR_TRY(mlflow_text(call, "model_type", &type, err));
    WEIR_TRY(mlflow_text(call, "source_run_id", &source, err));
    WEIR_TRY(mlflow_tags(call, "params", &params, &n_params, err));
    WEIR_TRY(mlflow_tags(call, "tags", &tags, &n_tags, err));
    name = unless_empty(name) != NULL ? name : mlflow_make_name(call->arena);
    source = unless_empty(source);
    if (strpbrk(name, "/:.%\"'") != NULL || strlen(name) > WEIR_LOGGED_MODEL_NAME_MAX) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "Invalid model name (%.100s) provided. Model name must be a non-empty "
            "string of at most %d bytes and cannot contain the following "
            "characters: ('/', ':', '.', '%%', '\"', \"'\")",
            name, WEIR_LOGGED_MODEL_NAME_MAX);
    }
    WEIR_TRY(choose_run(call, txn, &experiment, source, name, &run, err));
    const struct weir_logged_model model = {
        .id = weir_arena_printf(call->arena, "m-%s", mlflow_make_id(call->arena)),
        .project = experiment.project,
        .experiment = experiment.id,
        .run = run.record.id,
        .source_run = source != NULL ? (char *)source : (char *)call->own_run,
        .name = (char *)name,
        .type = (char *)unless_empty(type),
        .status = "PENDING",
        .created_by = (char *)call->actor,
        .created_ms = call->now_ms,
        .updated_ms = call->now_ms};
    WEIR_TRY(weir_txn_insert(txn, &weir_logged_model_resource, &model, err));
    WEIR_TRY(weir_logged_model_params_put(txn, model.id, params, n_params, err));
    WEIR_TRY(weir_logged_model_tags_put(txn, model.id, tags, n_tags, err));
    return answer_model(call, txn, &model, err);
}

/* ---- one ------------------------------------------------------------------------------------- */

weir_status mlflow_logged_model_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                                    struct weir_error *err)
{
    struct weir_logged_model model;
    WEIR_TRY(mlflow_find_logged_model(call, txn, call->params[0], &model, err));
    return answer_model(call, txn, &model, err);
}

weir_status mlflow_logged_model_finalize(struct weir_mlflow_call *call, struct weir_txn *txn,
                                         struct weir_error *err)
{
    struct weir_logged_model model;
    const json_t *value = json_object_get(call->body, "status");
    WEIR_TRY(find_to_change(call, txn, &model, err));
    for (size_t i = 1; i < WEIR_ARRAY_LEN(states); i++) {
        const char *text = json_string_value(value);
        if ((text != NULL && strcmp(text, states[i].theirs) == 0) ||
            (json_is_integer(value) && json_integer_value(value) == (json_int_t)i)) {
            model.status = (char *)states[i].ours;
            WEIR_TRY(touch(call, txn, &model, err));
            return answer_model(call, txn, &model, err);
        }
    }
    return mlflow_invalid(call->arena, "status", value,
                          "expected LOGGED_MODEL_READY or LOGGED_MODEL_UPLOAD_FAILED", err);
}

weir_status mlflow_logged_model_delete(struct weir_mlflow_call *call, struct weir_txn *txn,
                                       struct weir_error *err)
{
    struct weir_logged_model model;
    WEIR_TRY(find_to_change(call, txn, &model, err));
    model.deleted_ms = call->now_ms;
    WEIR_TRY(touch(call, txn, &model, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_logged_model_log_params(struct weir_mlflow_call *call, struct weir_txn *txn,
                                           struct weir_error *err)
{
    struct weir_logged_model model;
    struct weir_tag *params;
    size_t n;
    WEIR_TRY(mlflow_tags(call, "params", &params, &n, err));
    WEIR_TRY(find_to_change(call, txn, &model, err));
    WEIR_TRY(weir_logged_model_params_put(txn, model.id, params, n, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_logged_model_set_tags(struct weir_mlflow_call *call, struct weir_txn *txn,
                                         struct weir_error *err)
{
    struct weir_logged_model model;
    struct weir_tag *tags;
    size_t n;
    WEIR_TRY(mlflow_tags(call, "tags", &tags, &n, err));
    WEIR_TRY(find_to_change(call, txn, &model, err));
    WEIR_TRY(weir_logged_model_tags_put(txn, model.id, tags, n, err));
    WEIR_TRY(touch(call, txn, &model, err));
    return answer_model(call, txn, &model, err);
}

weir_status mlflow_logged_model_delete_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                                           struct weir_error *err)
{
    struct weir_logged_model model;
    WEIR_TRY(find_to_change(call, txn, &model, err));
    WEIR_TRY(weir_logged_model_tag_delete(txn, model.id, call->params[1], err));
    WEIR_TRY(touch(call, txn, &model, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_logged_model_files(struct weir_mlflow_call *call, struct weir_txn *txn,
                                      struct weir_error *err)
{
    struct weir_logged_model model;
    struct mlflow_run run;
    const char *path;
    WEIR_TRY(mlflow_text(call, "artifact_directory_path", &path, err));
    WEIR_TRY(mlflow_find_logged_model(call, txn, call->params[0], &model, err));
    WEIR_TRY(mlflow_find_run(call, txn, model.run, &run, err));
    const struct mlflow_folder folder = {
        .run = model.run,
        .path = weir_arena_printf(call->arena, WEIR_LOGGED_MODEL_FOLDER "/%s", model.id),
        .uri = mlflow_logged_model_uri(call, &run.record, model.id)};
    return mlflow_answer_folder(call, txn, &folder, path != NULL ? path : "", err);
}

/* ---- of runs --------------------------------------------------------------------------------- */

weir_status mlflow_put_uses(struct weir_mlflow_call *call, struct weir_txn *txn,
                            struct weir_buf *buf, const char *run, bool is_output,
                            struct weir_error *err)
{
    struct weir_logged_model_use *uses;
    size_t n;
    bool is_first = true;
    WEIR_TRY(weir_logged_model_uses(txn, run, call->arena, &uses, &n, err));
    (void)weir_buf_puts(buf, is_output ? "\"model_outputs\":[" : "\"model_inputs\":[");
    for (size_t i = 0; i < n; i++) {
        if (uses[i].is_output == is_output) {
            (void)weir_buf_printf(buf, "%s{\"model_id\":\"%s\"", is_first ? "" : ",",
                                  uses[i].model);
            (void)weir_buf_printf(buf, is_output ? ",\"step\":%" PRId64 "}" : "}", uses[i].step);
            is_first = false;
        }
    }
    (void)weir_buf_puts(buf, "]");
    return WEIR_OK;
}

weir_status mlflow_read_uses(struct weir_mlflow_call *call, bool is_output,
                             struct weir_logged_model_use **out, size_t *out_n,
                             struct weir_error *err)
{
    const json_t *list;
    size_t i;
    json_t *item;
    WEIR_TRY(mlflow_array(call, "models", &list, err));
    if (json_array_size(list) > USES_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "'models' has more than %d members", USES_MAX);
    }
    *out = WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, struct weir_logged_model_use);
    *out_n = json_array_size(list);
    json_array_foreach(list, i, item)
    {
        const char *id = json_string_value(json_object_get(item, "model_id"));
        const json_t *step = json_object_get(item, "step");
        (*out)[i] = (struct weir_logged_model_use){.model = (char *)id, .is_output = is_output};
        if (id == NULL || *id == '\0') {
            return mlflow_missing(weir_arena_printf(call->arena, "models[%zu].model_id", i), err);
        }
        if (step != NULL && !json_is_null(step)) {
            WEIR_TRY(mlflow_int_of(call->arena, step, "step", &(*out)[i].step, err));
        }
    }
    return WEIR_OK;
}

weir_status mlflow_store_uses(struct weir_mlflow_call *call, struct weir_txn *txn, const char *run,
                              const struct weir_logged_model_use *uses, size_t n,
                              struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct weir_logged_model model;
        WEIR_TRY(mlflow_find_logged_model(call, txn, uses[i].model, &model, err));
        WEIR_TRY(weir_logged_model_use_put(txn, run, &uses[i], err));
    }
    return WEIR_OK;
}

weir_status mlflow_log_outputs(struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_error *err)
{
    struct weir_logged_model_use *uses;
    struct mlflow_run run;
    const char *id;
    size_t n;
    WEIR_TRY(mlflow_run_id(call, &id, err));
    WEIR_TRY(mlflow_read_uses(call, true, &uses, &n, err));
    WEIR_TRY(mlflow_find_run_to_change(call, txn, id, false, &run, err));
    WEIR_TRY(mlflow_store_uses(call, txn, run.record.id, uses, n, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

/* ---- searching ------------------------------------------------------------------------------- */

static weir_status refuse_dataset(const char *where, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "%s: searching logged models by a dataset is not supported: leave it "
                          "out, and the greatest value on any dataset counts",
                          where);
}

/* order_by: {"field_name", "ascending"}, in the words of other searches. */
static weir_status read_orders(struct weir_mlflow_call *call, struct weir_search_order **out,
                               size_t *out_n, struct weir_error *err)
{
    const json_t *list;
    size_t i;
    json_t *item;
    WEIR_TRY(mlflow_array(call, "order_by", &list, err));
    if (json_array_size(list) > WEIR_SEARCH_ORDERS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "'order_by' has more than %d members",
                              WEIR_SEARCH_ORDERS_MAX);
    }
    *out = WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, struct weir_search_order);
    *out_n = json_array_size(list);
    json_array_foreach(list, i, item)
    {
        const char *field = json_string_value(json_object_get(item, "field_name"));
        const json_t *ascending = json_object_get(item, "ascending");
        if (field == NULL || strlen(field) > ORDER_MAX) {
            return mlflow_missing(weir_arena_printf(call->arena, "order_by[%zu].field_name", i),
                                  err);
        }
        if (json_string_length(json_object_get(item, "dataset_name")) > 0) {
            return refuse_dataset("order_by", err);
        }
        const char *text = weir_arena_printf(call->arena, "%s %s", field,
                                             json_is_false(ascending) ? "DESC" : "ASC");
        WEIR_TRY(
            weir_search_parse_order(text, &weir_logged_model_noun, call->arena, &(*out)[i], err));
    }
    return WEIR_OK;
}

static weir_status answer_page(struct weir_mlflow_call *call, struct weir_txn *txn,
                               const struct weir_logged_model *models, size_t n, const char *next,
                               struct weir_error *err)
{
    struct weir_buf buf;
    weir_status status = WEIR_OK;
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"models\":[");
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        (void)weir_buf_puts(&buf, i > 0 ? "," : "");
        status = put_model(call, txn, &buf, &models[i], err);
    }
    if (status != WEIR_OK) {
        weir_buf_fini(&buf);
        return status;
    }
    (void)weir_buf_puts(&buf, "]");
    mlflow_put_member(&buf, "next_page_token", next);
    (void)weir_buf_puts(&buf, "}");
    mlflow_answer_buf(call, &buf);
    return WEIR_OK;
}

weir_status mlflow_logged_model_search(struct weir_mlflow_call *call, struct weir_txn *txn,
                                       struct weir_error *err)
{
    struct weir_logged_model_search search = {0};
    struct weir_search_node *filter;
    struct weir_search_order *orders = NULL;
    struct weir_logged_model *models;
    const json_t *datasets;
    int64_t *experiments, limit;
    size_t n;
    char *next;
    WEIR_TRY(mlflow_max_results(call, SEARCH_DEFAULT, SEARCH_MAX, &limit, err));
    WEIR_TRY(mlflow_read_filter(call, &weir_logged_model_noun, &filter, err));
    WEIR_TRY(mlflow_read_cursor(call, &search.cursor, err));
    WEIR_TRY(read_orders(call, &orders, &search.n_orders, err));
    WEIR_TRY(mlflow_read_experiments(call, txn, &experiments, &search.n_experiments, err));
    WEIR_TRY(mlflow_array(call, "datasets", &datasets, err));
    if (json_array_size(datasets) > 0) {
        return refuse_dataset("datasets", err);
    }
    search.experiments = experiments;
    search.filter = filter;
    search.orders = orders;
    search.limit = (size_t)limit;
    WEIR_TRY(weir_logged_model_search(txn, &search, call->arena, &models, &n, &next, err));
    return answer_page(call, txn, models, n, next, err);
}
