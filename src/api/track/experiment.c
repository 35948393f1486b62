/** Experiments: listed, searched, made, changed, deleted and restored. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/data/label.h"
#include "api/track/run.h"
#include "store/table.h"

#include "store/stmt.h"
#include "track/run_search.h"

#define TAGS_MAX 1000

static const char sql_counts[] =
    "SELECT count(*) FROM runs WHERE experiment = :id AND deleted_ms = 0";

/* The record with its tags, and how many runs it has. */
static weir_status experiment_view(struct api_call *call, struct weir_txn *txn,
                                   const struct weir_experiment *experiment,
                                   struct api_experiment *out, struct weir_error *err)
{
    struct weir_tag *tags;
    *out = (struct api_experiment){.row = experiment};
    WEIR_TRY(weir_experiment_tags(txn, experiment->id, call->arena, &tags, &out->n_tags, err));
    out->tags = tags;
    return weir_txn_query_int(txn, sql_counts, WEIR_BINDS(WEIR_BIND_INT("id", experiment->id)), 0,
                              &out->n_runs, err);
}

static weir_status answer_experiment(struct api_call *call, struct weir_txn *txn, int64_t id,
                                     struct weir_error *err)
{
    struct weir_experiment experiment;
    struct api_experiment view;
    WEIR_TRY(weir_experiment_get(txn, id, call->arena, &experiment, err));
    WEIR_TRY(experiment_view(call, txn, &experiment, &view, err));
    api_answer(call, weir_view_to_json(api_experiment_view(), &view));
    return WEIR_OK;
}

weir_status api_experiment_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_experiment_search search = {.cursor = api_query_text(call, "cursor")};
    struct weir_search_order order;
    struct weir_search_node *filter;
    struct weir_experiment *found = NULL;
    const char *text = api_query_text(call, "order");
    size_t n = 0;
    char *next = NULL;
    WEIR_TRY(weir_search_parse(api_query_text(call, "filter"), &weir_experiment_noun, call->arena,
                               &filter, err));
    if (text != NULL) {
        WEIR_TRY(weir_search_parse_order(text, &weir_experiment_noun, call->arena, &order, err));
        search.orders = &order;
        search.n_orders = 1;
    }
    search.view = api_query_view(call);
    search.filter = filter;
    search.limit = (size_t)api_query_int(call, "limit");
    if (api_query_projects(call, &search.projects, &search.n_projects)) {
        WEIR_TRY(weir_experiment_search(txn, &search, call->arena, &found, &n, &next, err));
    }
    struct api_experiment *views = WEIR_ARENA_ARRAY(call->arena, n, struct api_experiment);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(experiment_view(call, txn, &found[i], &views[i], err));
    }
    api_answer_views(call, api_experiment_view(), views, n, next);
    return WEIR_OK;
}

/* The number in the path, of one that the caller sees. */
static weir_status find(struct api_call *call, struct weir_txn *txn, struct weir_experiment *out,
                        struct weir_error *err)
{
    return weir_txn_get(txn, &weir_experiment_resource, call->params[0], call->arena, out, err);
}

weir_status api_experiment_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_experiment experiment;
    WEIR_TRY(find(call, txn, &experiment, err));
    return answer_experiment(call, txn, experiment.id, err);
}

/* {"key": "text"}; null takes a tag away. */
static weir_status put_tags(struct api_call *call, struct weir_txn *txn, int64_t id,
                            struct weir_error *err)
{
    json_t *tags = json_object_get(call->body, "tags"), *value;
    const char *key;
    if (tags != NULL && (!json_is_object(tags) || json_object_size(tags) > TAGS_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.tags: expected an object of at most %d",
                              TAGS_MAX);
    }
    json_object_foreach(tags, key, value)
    {
        struct weir_error missing;
        weir_status status;
        if (json_is_null(value)) {
            status = weir_experiment_untag(txn, id, key, call->now_ms, &missing);
            status = status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
        } else if (json_is_string(value)) {
            status = weir_experiment_tag(
                txn, id, &(struct weir_tag){(char *)key, (char *)json_string_value(value)},
                call->now_ms, err);
        } else {
            status =
                weir_error_set(err, WEIR_ERR_INVALID, "$.tags.%.80s: expected text or null", key);
        }
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

weir_status api_experiment_create(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    static const char *const fields[] = {"name",        "project", "artifact_location",
                                         "description", "tags",    NULL};
    struct weir_experiment experiment = {0};
    const char *name, *project, *location;
    int64_t id;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "name", &name, err));
    WEIR_TRY(api_body_text(call, "project", &project, err));
    WEIR_TRY(api_body_text(call, "artifact_location", &location, err));
    WEIR_TRY(api_body_note(call, err));
    if (name == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected $.name");
    }
    experiment =
        (struct weir_experiment){.project = (char *)(project != NULL ? project : "default"),
                                 .name = (char *)name,
                                 .artifact_location = (char *)location,
                                 .created_by = (char *)call->actor,
                                 .created_ms = call->now_ms};
    WEIR_TRY(weir_experiment_create(txn, &experiment, &id, err));
    WEIR_TRY(put_tags(call, txn, id, err));
    return answer_experiment(call, txn, id, err);
}

weir_status api_experiment_update(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    static const char *const fields[] = {"name", "description", "tags", NULL};
    struct weir_experiment experiment;
    const char *name;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "name", &name, err));
    WEIR_TRY(api_body_note(call, err));
    WEIR_TRY(find(call, txn, &experiment, err));
    if (name != NULL) {
        WEIR_TRY(weir_experiment_rename(txn, experiment.id, name, call->now_ms, err));
    }
    WEIR_TRY(put_tags(call, txn, experiment.id, err));
    return answer_experiment(call, txn, experiment.id, err);
}

weir_status api_experiment_delete(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_experiment experiment;
    WEIR_TRY(find(call, txn, &experiment, err));
    WEIR_TRY(weir_experiment_delete(txn, experiment.id, call->now_ms, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_experiment_restore(struct api_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    struct weir_experiment experiment;
    WEIR_TRY(find(call, txn, &experiment, err));
    WEIR_TRY(weir_experiment_restore(txn, experiment.id, call->now_ms, err));
    return answer_experiment(call, txn, experiment.id, err);
}
