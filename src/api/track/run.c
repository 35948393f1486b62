/** Runs: listed, searched, made from outside, changed. */

#include "api/track/run.h"

#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/core/word.h"
#include "api/data/label.h"
#include "control/control.h"
#include "store/table.h"
#include "track/run_search.h"

#include "base/uuid.h"

#include <math.h>
#include <string.h>

#define LIST_MAX    1000
#define COLUMNS_MAX 256
#define PAIRS_MAX   1000

/** Which metrics, parameters and tags a view has: "metrics.loss", "params.*"; n 0: all. */
struct columns {
    const char *names[COLUMNS_MAX];
    size_t n;
};

static weir_status read_columns(const struct api_call *call, struct columns *out,
                                struct weir_error *err)
{
    const char *text;
    out->n = 0;
    for (size_t i = 0; (text = weir_http_request_query_at(call->request, "columns", i)) != NULL;
         i++) {
        for (const char *p = text; *p != '\0';) {
            size_t len = strcspn(p, ",");
            if (out->n == COLUMNS_MAX) {
                return weir_error_set(err, WEIR_ERR_INVALID, "query parameter columns: at most %d",
                                      COLUMNS_MAX);
            }
            out->names[out->n++] = weir_arena_memdup(call->arena, p, len);
            p += len;
            p += *p == ',';
        }
    }
    return WEIR_OK;
}

static bool has_column(const struct columns *columns, const char *part, const char *key)
{
    size_t len = strlen(part);
    for (size_t i = 0; columns != NULL && i < columns->n; i++) {
        const char *name = columns->names[i];
        if (strncmp(name, part, len) == 0 && name[len] == '.' &&
            (strcmp(name + len + 1, key) == 0 || strcmp(name + len + 1, "*") == 0)) {
            return true;
        }
    }
    return columns == NULL || columns->n == 0;
}

/* ---- a view ------------------------------------------------------------------------------------ */

/* The model version that a run made; without a number if there is none (any more). */
static weir_status find_registered(struct api_call *call, struct weir_txn *txn, const char *run,
                                   struct api_registered_version *out, struct weir_error *err)
{
    struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("run", EQ, run), WEIR_FILTER_INT("deleted_ms", EQ, 0)),
        .order_by = "created_ms", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_model_version_resource, &query, call->arena, &items, &n, NULL,
                           err));
    const struct weir_model_version *made = items;
    *out = (struct api_registered_version){0};
    if (n > 0) {
        *out = (struct api_registered_version){made->model, made->version};
    }
    return WEIR_OK;
}

/* When a run began to work: when its job did, not when that was handed in; 0 = not yet. One that no
 * job was started for says so itself. */
static weir_status find_started(struct weir_txn *txn, const struct weir_run *run, int64_t *out,
                                struct weir_error *err)
{
    *out = run->start_ms != 0 ? run->start_ms : run->created_ms;
    return run->job != NULL ? weir_job_started_ms(txn, run->job, out, err) : WEIR_OK;
}

/* Where a measurement that people ask for is noted beside all of them; NULL: it is another. */
static double *shown_at(struct api_run_progress *progress, const char *key)
{
    const struct weir_view_table *view = api_run_progress_view();
    for (size_t i = 0; i < view->n_members; i++) { /* all are F64 */
        if (strcmp(view->members[i].name, key) == 0) {
            return (double *)(void *)((char *)progress + view->members[i].offset);
        }
    }
    return NULL;
}

/* The last measurements of a run: all of them as "metrics", those that people ask for beside the
 * record too. */
static weir_status add_metrics(struct api_run *view, struct weir_run_reader *reader, int64_t run,
                               const struct columns *columns, struct weir_error *err)
{
    view->progress = (struct api_run_progress){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    view->metrics = json_object();
    WEIR_TRY(weir_run_reader_begin(reader, WEIR_RUN_METRICS, run, err));
    for (;;) {
        struct weir_run_item item;
        bool has_item;
        WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
        if (!has_item) {
            return WEIR_OK;
        }
        double *shown = shown_at(&view->progress, item.key);
        if (shown != NULL) {
            *shown = item.value;
        }
        if (has_column(columns, "metrics", item.key)) {
            json_object_set_new(view->metrics, item.key, weir_json_real(item.value));
        }
    }
}

static weir_status add_pairs(json_t **out, struct weir_run_reader *reader, const char *name,
                             enum weir_run_part part, int64_t run, const struct columns *columns,
                             struct weir_error *err)
{
    *out = json_object();
    WEIR_TRY(weir_run_reader_begin(reader, part, run, err));
    for (;;) {
        struct weir_run_item item;
        bool has_item;
        WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
        if (!has_item) {
            return WEIR_OK;
        }
        if (has_column(columns, name, item.key)) {
            json_object_set_new(*out, item.key, json_stringn(item.text, item.text_len));
        }
    }
}

/** Views of the runs of one answer. */
struct viewing {
    struct api_call *call;
    struct weir_txn *txn;
    struct weir_run_reader *reader;
    const struct columns *columns;
    int64_t experiment; /**< Whose name is known. */
    char *experiment_name;
};

static weir_status name_experiment(struct viewing *viewing, int64_t id, struct weir_error *err)
{
    struct weir_experiment experiment;
    if (viewing->experiment_name != NULL && viewing->experiment == id) {
        return WEIR_OK;
    }
    weir_status status =
        weir_experiment_get(viewing->txn, id, viewing->call->arena, &experiment, err);
    viewing->experiment = id;
    viewing->experiment_name = status == WEIR_OK ? experiment.name : "";
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

static weir_status fill_view(struct viewing *viewing, const struct weir_run_row *row,
                             struct api_run *view, struct api_registered_version *registered,
                             struct weir_error *err)
{
    WEIR_TRY(add_metrics(view, viewing->reader, row->number, viewing->columns, err));
    WEIR_TRY(add_pairs(&view->params, viewing->reader, "params", WEIR_RUN_PARAMETERS, row->number,
                       viewing->columns, err));
    WEIR_TRY(add_pairs(&view->tags, viewing->reader, "tags", WEIR_RUN_TAGS, row->number,
                       viewing->columns, err));
    WEIR_TRY(name_experiment(viewing, row->record.experiment, err));
    view->experiment_name = viewing->experiment_name;
    WEIR_TRY(find_started(viewing->txn, &row->record, &view->started_ms, err));
    WEIR_TRY(find_registered(viewing->call, viewing->txn, row->record.id, registered, err));
    view->registered = registered->version > 0 ? registered : NULL;
    return WEIR_OK;
}

/* A run as people want to see it: its record, its parameters, tags and last measurements, how far it is,
 * and what came of it. */
static weir_status run_view(struct viewing *viewing, const struct weir_run_row *row, json_t **out,
                            struct weir_error *err)
{
    struct api_run view = {0};
    struct api_registered_version registered;
    weir_status status = fill_view(viewing, row, &view, &registered, err);
    if (status != WEIR_OK) {
        json_decref(view.metrics);
        json_decref(view.params);
        json_decref(view.tags);
        return status;
    }
    *out = weir_record_to_json(&weir_run_resource, &row->record);
    view.model = json_incref(json_object_get(json_object_get(*out, "parameters"), "model"));
    weir_view_add_to_json(api_run_view(), &view, *out);
    return WEIR_OK;
}

/* ---- lists ------------------------------------------------------------------------------------- */

/* A comparison with a status that no run can have would find nothing, or everything. MLflow's clients, who
 * have a search of their own, are answered as MLflow does. */
static weir_status check_words(struct weir_search_node *node, struct weir_arena *arena,
                               struct weir_error *err)
{
    if (node == NULL) {
        return WEIR_OK;
    }
    if (node->kind != WEIR_SEARCH_COMPARE) {
        WEIR_TRY(check_words(node->left, arena, err));
        return check_words(node->right, arena, err);
    }
    bool is_equal = node->op == WEIR_SEARCH_EQ || node->op == WEIR_SEARCH_NE ||
                    node->op == WEIR_SEARCH_IN || node->op == WEIR_SEARCH_NOT_IN;
    if (node->entity != WEIR_SEARCH_ATTRIBUTE || !is_equal) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < node->n_texts; i++) {
        WEIR_TRY(api_word_read(&weir_run_resource, node->attribute->name, node->texts[i], arena,
                               &node->texts[i], err));
    }
    return WEIR_OK;
}

/* Conditions of the query beside its filter: "ion", "status", "job". */
static weir_status read_filter(const struct api_call *call, struct weir_search_node **out,
                               struct weir_error *err)
{
    static const char *const names[] = {"ion", "status", "job"};
    const char *text = api_query_text(call, "filter");
    WEIR_TRY(weir_search_parse(text, &weir_run_noun, call->arena, out, err));
    WEIR_TRY(check_words(*out, call->arena, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        const char *value = api_query_text(call, names[i]);
        if (value != NULL) {
            WEIR_TRY(api_word_read(&weir_run_resource, names[i], value, call->arena, &value, err));
            *out =
                weir_search_and(call->arena, *out,
                                weir_search_equals(call->arena, &weir_run_noun, names[i], value));
        }
    }
    return WEIR_OK;
}

static weir_status read_orders(const struct api_call *call, struct weir_run_search *search,
                               struct weir_error *err)
{
    struct weir_search_order *orders =
        WEIR_ARENA_ARRAY(call->arena, WEIR_SEARCH_ORDERS_MAX, struct weir_search_order);
    const char *text;
    search->orders = orders;
    while ((text = weir_http_request_query_at(call->request, "order", search->n_orders)) != NULL) {
        if (search->n_orders == WEIR_SEARCH_ORDERS_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "query parameter order: at most %d times",
                                  WEIR_SEARCH_ORDERS_MAX);
        }
        WEIR_TRY(weir_search_parse_order(text, &weir_run_noun, call->arena,
                                         &orders[search->n_orders], err));
        search->n_orders++;
    }
    return WEIR_OK;
}

enum weir_view api_query_view(const struct api_call *call)
{
    const char *text = api_query_text(call, "view"); /* the row has the words */
    return text == NULL || strcmp(text, "active") == 0 ? WEIR_VIEW_ACTIVE
           : strcmp(text, "deleted") == 0              ? WEIR_VIEW_DELETED
                                                       : WEIR_VIEW_ALL;
}

bool api_query_projects(const struct api_call *call, const char *const **out, size_t *out_n)
{
    const char *named = api_query_text(call, "project");
    *out = call->rows.is_all ? NULL : call->rows.projects;
    *out_n = call->rows.is_all ? 0 : call->rows.n_projects;
    if (named != NULL) {
        const char **one = WEIR_ARENA_NEW(call->arena, const char *);
        *one = named;
        *out = one;
        *out_n = 1;
    }
    return named == NULL || weir_row_scope_sees(&call->rows, named);
}

/* By its number, or by its name in the project that is asked for. */
static weir_status find_named(struct api_call *call, struct weir_txn *txn, const char *text,
                              struct weir_experiment *out, struct weir_error *err)
{
    if (*text != '\0' && text[strspn(text, "0123456789")] == '\0') {
        return weir_txn_get(txn, &weir_experiment_resource, text, call->arena, out, err);
    }
    const char *project = api_query_text(call, "project");
    if (project == NULL) {
        project = call->rows.n_projects == 1 ? call->rows.projects[0] : "default";
    }
    return weir_experiment_find(txn, project, text, call->arena, out, err);
}

/* The experiments that are named, of those that the caller sees. */
static weir_status read_experiments(struct api_call *call, struct weir_txn *txn,
                                    struct weir_run_search *search, struct weir_error *err)
{
    int64_t *ids = WEIR_ARENA_ARRAY(call->arena, LIST_MAX, int64_t);
    const char *text;
    search->experiments = ids;
    for (size_t i = 0; (text = weir_http_request_query_at(call->request, "experiment", i)) != NULL;
         i++) {
        struct weir_experiment experiment;
        if (i == LIST_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "query parameter experiment: at most %d times", LIST_MAX);
        }
        WEIR_TRY(find_named(call, txn, text, &experiment, err));
        ids[search->n_experiments++] = experiment.id;
    }
    return WEIR_OK;
}

weir_status api_query_runs(struct api_call *call, struct weir_txn *txn, struct weir_run_search *out,
                           bool *out_has_any, struct weir_error *err)
{
    struct weir_search_node *filter;
    WEIR_TRY(read_filter(call, &filter, err));
    out->view = api_query_view(call);
    WEIR_TRY(read_experiments(call, txn, out, err));
    out->filter = filter;
    *out_has_any = api_query_projects(call, &out->projects, &out->n_projects);
    return WEIR_OK;
}

static weir_status answer_views(struct viewing *viewing, const struct weir_run_row *rows, size_t n,
                                const char *next, struct weir_error *err)
{
    json_t *views = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *view;
        weir_status status = run_view(viewing, &rows[i], &view, err);
        if (status != WEIR_OK) {
            json_decref(views);
            return status;
        }
        json_array_append_new(views, view);
    }
    api_answer_items(viewing->call, views, next);
    return WEIR_OK;
}

weir_status api_run_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_AUTO(weir_run_reader_auto_close) struct weir_run_reader *reader = NULL;
    struct weir_run_search search = {.with_texts = true,
                                     .max_bytes = API_ANSWER_MAX_BYTES,
                                     .cursor = api_query_text(call, "cursor")};
    struct columns columns;
    struct weir_run_row *rows;
    size_t n;
    char *next;
    bool has_any;
    search.skip = api_query_int(call, "skip");
    if (search.skip > 0 && search.cursor != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameters skip and cursor: a page begins by one of them");
    }
    WEIR_TRY(read_columns(call, &columns, err));
    WEIR_TRY(read_orders(call, &search, err));
    WEIR_TRY(api_query_runs(call, txn, &search, &has_any, err));
    WEIR_TRY(weir_run_reader_open(txn, call->arena, &reader, err));
    struct viewing viewing = {.call = call, .txn = txn, .reader = reader, .columns = &columns};
    search.limit = (size_t)api_query_int(call, "limit");
    if (!has_any) {
        return answer_views(&viewing, NULL, 0, NULL, err);
    }
    WEIR_TRY(weir_run_search(txn, &search, call->arena, &rows, &n, &next, err));
    return answer_views(&viewing, rows, n, next, err);
}

/* The whole view of one run. */
static weir_status answer_run(struct api_call *call, struct weir_txn *txn, const char *id,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_run_reader_auto_close) struct weir_run_reader *reader = NULL;
    struct weir_run_row row;
    json_t *view;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, id, call->arena, &row.record, err));
    WEIR_TRY(weir_run_number(txn, id, &row.number, err));
    WEIR_TRY(weir_run_reader_open(txn, call->arena, &reader, err));
    struct viewing viewing = {.call = call, .txn = txn, .reader = reader};
    WEIR_TRY(run_view(&viewing, &row, &view, err));
    api_answer(call, view);
    return WEIR_OK;
}

weir_status api_run_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return answer_run(call, txn, call->params[0], err);
}

/* ---- changes ----------------------------------------------------------------------------------- */

/* An object of texts. A null is a tag to be taken away; numbers and truth values become text. */
static weir_status read_pairs(struct api_call *call, const char *name, struct weir_tag **out,
                              size_t *out_n, struct weir_error *err)
{
    json_t *object = json_object_get(call->body, name), *value;
    const char *key;
    *out_n = 0;
    if (object != NULL && !json_is_object(object)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected an object", name);
    }
    if (json_object_size(object) > PAIRS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.%s: at most %d", name, PAIRS_MAX);
    }
    *out = WEIR_ARENA_ARRAY(call->arena, json_object_size(object) + 1, struct weir_tag);
    json_object_foreach(object, key, value)
    {
        if (json_is_object(value) || json_is_array(value)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s.%.80s: expected text", name, key);
        }
        char *text = json_is_string(value) ? (char *)json_string_value(value)
                     : json_is_null(value) ? NULL
                                           : weir_json_text(value, call->arena);
        (*out)[(*out_n)++] = (struct weir_tag){(char *)key, text};
    }
    return WEIR_OK;
}

static weir_status put_pairs(struct api_call *call, struct weir_txn *txn, int64_t number,
                             struct weir_error *err)
{
    struct weir_tag *pairs;
    size_t n;
    WEIR_TRY(read_pairs(call, "params", &pairs, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].value == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.params.%.80s: a parameter is not taken away", pairs[i].key);
        }
        WEIR_TRY(weir_run_parameters_put(txn, number, &pairs[i], 1, err));
    }
    WEIR_TRY(read_pairs(call, "tags", &pairs, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct weir_error missing;
        weir_status status = pairs[i].value != NULL
                                 ? weir_run_tags_put(txn, number, &pairs[i], 1, err)
                                 : weir_run_tag_delete(txn, number, pairs[i].key, &missing);
        if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
            return status;
        }
    }
    return WEIR_OK;
}

/* One that is not there yet is made by who may make experiments. */
static weir_status check_makes_experiment(struct api_call *call, struct weir_txn *txn,
                                          const char *project, const char *name,
                                          struct weir_error *err)
{
    struct weir_experiment found;
    const struct weir_row_scope may = api_projects_with(call, WEIR_RIGHT_EXPERIMENTS_CHANGE);
    weir_status status = weir_experiment_find(txn, project, name, call->arena, &found, err);
    if (status != WEIR_ERR_NOT_FOUND || weir_row_scope_sees(&may, project) ||
        strcmp(name, WEIR_EXPERIMENT_DEFAULT) == 0) {
        return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
    }
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "$.experiment: there is no \"%.300s\" in project %.63s, and making one "
                          "needs the right to change experiments",
                          name, project);
}

/* $.experiment, by number or name; else the project's "Default". */
static weir_status find_experiment(struct api_call *call, struct weir_txn *txn, const char *project,
                                   int64_t *out, struct weir_error *err)
{
    const json_t *given = json_object_get(call->body, "experiment");
    struct weir_experiment found;
    if (given == NULL || json_is_null(given) || json_is_string(given)) {
        const char *name =
            json_string_length(given) > 0 ? json_string_value(given) : WEIR_EXPERIMENT_DEFAULT;
        WEIR_TRY(check_makes_experiment(call, txn, project, name, err));
        return weir_experiment_ensure(txn, project, name, call->actor, call->now_ms, out, err);
    }
    if (!json_is_integer(given)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.experiment: expected a number or a name");
    }
    *out = json_integer_value(given);
    WEIR_TRY(weir_experiment_get(txn, *out, call->arena, &found, err));
    return strcmp(found.project, project) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.experiment: experiment %lld is of project \"%s\"",
                                (long long)*out, found.project);
}

/* A run of a program that Weir did not start. */
weir_status api_run_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"name", "project", "experiment", "params",
                                         "tags", "user",    "start_ms",   NULL};
    char *id = weir_arena_alloc(call->arena, WEIR_UUID_BYTES);
    const char *name, *project, *user;
    int64_t number;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "name", &name, err));
    WEIR_TRY(api_body_text(call, "project", &project, err));
    WEIR_TRY(api_body_text(call, "user", &user, err));
    weir_uuid_make(id);
    struct weir_run run = {.id = id,
                           .name = (char *)(name != NULL && *name != '\0' ? name : id),
                           .project = (char *)(project != NULL ? project : "default"),
                           .kind = "external",
                           .status = "RUNNING",
                           .user = weir_arena_strdup(call->arena, user),
                           .created_by = (char *)call->actor,
                           .created_ms = call->now_ms};
    WEIR_TRY(api_body_int(call, "start_ms", call->now_ms, &run.start_ms, err));
    if (!weir_row_scope_sees(&call->rows, run.project)) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "you may not do this in project \"%.63s\": name one of yours",
                              run.project);
    }
    WEIR_TRY(find_experiment(call, txn, run.project, &run.experiment, err));
    WEIR_TRY(weir_run_insert(txn, &run, &number, err));
    WEIR_TRY(put_pairs(call, txn, number, err));
    struct control control = api_control(call);
    control_publish(&control, "runs", json_pack("{s:s,s:s}", "id", id, "status", run.status));
    return answer_run(call, txn, id, err);
}

/* A task that reports its own run does what it is there for; a person who changes one acts. */
static weir_status tell_update(const struct api_call *call, struct control *control,
                               struct weir_txn *txn, const struct weir_run *run,
                               const char *old_status, bool has_summary, struct weir_error *err)
{
    if (call->attempt != NULL) {
        return WEIR_OK;
    }
    return control_log(
        control, txn, "runs", "run_changed", weir_arena_printf(call->arena, "run/%s", run->id),
        weir_arena_printf(call->arena, "Run %s has status %s, before %s%s.", run->name, run->status,
                          old_status, has_summary ? ", and another summary" : ""),
        err);
}

static weir_status read_status(const struct api_call *call, struct weir_run *run,
                               struct weir_error *err)
{
    static const char *const known[] = {"RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"};
    const char *status;
    WEIR_TRY(api_body_text(call, "status", &status, err));
    for (size_t i = 0; status != NULL && i < WEIR_ARRAY_LEN(known); i++) {
        if (strcmp(known[i], status) == 0) {
            run->status = (char *)known[i];
            run->finished_ms = i < 2 ? 0 : call->now_ms;
            return WEIR_OK;
        }
    }
    return status == NULL ? WEIR_OK
                          : weir_error_set(err, WEIR_ERR_INVALID,
                                           "$.status: expected RUNNING, SCHEDULED, FINISHED, "
                                           "FAILED or KILLED");
}

static weir_status read_changes(struct api_call *call, struct weir_run *run, struct weir_error *err)
{
    const char *name, *lifecycle;
    const json_t *summary = json_object_get(call->body, "summary");
    WEIR_TRY(api_body_text(call, "name", &name, err));
    WEIR_TRY(api_body_text(call, "lifecycle", &lifecycle, err));
    WEIR_TRY(read_status(call, run, err));
    if (name != NULL && *name != '\0') {
        run->name = weir_arena_strdup(call->arena, name);
    }
    if (summary != NULL) {
        run->summary = weir_json_text(summary, call->arena);
    }
    if (lifecycle == NULL) {
        return WEIR_OK;
    }
    bool is_deleted = strcmp(lifecycle, "deleted") == 0;
    if (!is_deleted && strcmp(lifecycle, "active") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.lifecycle: expected active or deleted");
    }
    run->deleted_ms = is_deleted ? call->now_ms : 0;
    return WEIR_OK;
}

weir_status api_run_update(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"status", "summary",     "name", "lifecycle",
                                         "params", "description", "tags", NULL};
    struct weir_run run;
    int64_t number;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_note(call, err));
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    WEIR_TRY(weir_run_number(txn, run.id, &number, err));
    const char *old_status = run.status;
    WEIR_TRY(read_changes(call, &run, err));
    WEIR_TRY(weir_txn_update(txn, &weir_run_resource, &run,
                             WEIR_FIELDS("status", "summary", "finished_ms", "name", "deleted_ms"),
                             err));
    WEIR_TRY(put_pairs(call, txn, number, err));
    struct control control = api_control(call);
    bool has_summary = json_object_get(call->body, "summary") != NULL;
    if (has_summary || json_object_get(call->body, "status") != NULL) {
        WEIR_TRY(tell_update(call, &control, txn, &run, old_status, has_summary, err));
    }
    control_publish(&control, "runs", json_pack("{s:s,s:s}", "id", run.id, "status", run.status));
    api_answer_record(call, &weir_run_resource, &run);
    return WEIR_OK;
}
