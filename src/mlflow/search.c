/** Searches: a page is written as JSON while its rows are read. */
#include "mlflow/call.h"

#include "store/row_scope.h"
#include "store/stmt.h"
#include "track/run_search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_DEFAULT            1000
#define RUNS_MAX                50000
#define EXPERIMENTS_MAX         50000
#define EXPERIMENTS_DEFAULT     1000
#define DATASETS_MAX            1000
#define DATASET_EXPERIMENTS_MAX 20 /* of a search for datasets */

/* Most servers have none: then nobody asks each run for its own. */
static const char sql_has_models[] = "SELECT EXISTS (SELECT 1 FROM run_logged_models)";
static const char sql_datasets[] =
    "SELECT DISTINCT d.experiment, d.name, d.digest, i.context FROM input_datasets d"
    " JOIN run_inputs i ON i.dataset = d.id WHERE d.experiment = :experiment"
    " ORDER BY d.name, d.digest, i.context LIMIT :limit";

/* ---- arguments --------------------------------------------------------------------------------- */

/* "ACTIVE_ONLY", or its number in the protocol's enumeration. */
static weir_status read_view(const struct weir_mlflow_call *call, const char *name,
                             enum weir_view *out, struct weir_error *err)
{
    static const char *const words[] = {"ACTIVE_ONLY", "DELETED_ONLY", "ALL"};
    const json_t *value = json_object_get(call->body, name);
    const char *text = call->body == NULL ? weir_http_request_query(call->request, name)
                                          : json_string_value(value);
    *out = WEIR_VIEW_ACTIVE;
    if (text == NULL && (value == NULL || json_is_null(value))) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(words); i++) {
        bool is_number = json_is_integer(value)
                             ? json_integer_value(value) == (json_int_t)i + 1
                             : text != NULL && text[0] == (char)('1' + i) && text[1] == '\0';
        if (is_number || (text != NULL && strcmp(text, words[i]) == 0)) {
            *out = (enum weir_view)i;
            return WEIR_OK;
        }
    }
    return mlflow_invalid(call->arena, name, value, "expected ACTIVE_ONLY, DELETED_ONLY or ALL",
                          err);
}

weir_status mlflow_read_orders(const struct weir_mlflow_call *call,
                               const struct weir_search_noun *noun, struct weir_search_order **out,
                               size_t *out_n, struct weir_error *err)
{
    const char **texts;
    WEIR_TRY(mlflow_texts(call, "order_by", &texts, out_n, err));
    if (*out_n > WEIR_SEARCH_ORDERS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "'order_by' has more than %d clauses",
                              WEIR_SEARCH_ORDERS_MAX);
    }
    *out = WEIR_ARENA_ARRAY(call->arena, *out_n + 1, struct weir_search_order);
    for (size_t i = 0; i < *out_n; i++) {
        struct weir_error why;
        if (weir_search_parse_order(texts[i], noun, call->arena, &(*out)[i], &why) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_INVALID, "Invalid order_by clause '%.200s': %s",
                                  texts[i], why.message);
        }
    }
    return WEIR_OK;
}

weir_status mlflow_read_filter(const struct weir_mlflow_call *call,
                               const struct weir_search_noun *noun, struct weir_search_node **out,
                               struct weir_error *err)
{
    const char *text;
    struct weir_error why;
    WEIR_TRY(mlflow_text(call, "filter", &text, err));
    if (text == NULL) {
        WEIR_TRY(mlflow_text(call, "filter_string", &text, err));
    }
    weir_status status = weir_search_parse(text, noun, call->arena, out, &why);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, status, "Invalid clause(s) in filter string: %s", why.message);
}

weir_status mlflow_read_cursor(const struct weir_mlflow_call *call, const char **out,
                               struct weir_error *err)
{
    WEIR_TRY(mlflow_text(call, "page_token", out, err));
    *out = *out != NULL && **out != '\0' ? *out : NULL;
    return WEIR_OK;
}

/* The experiments that are named, but for those that are not there or another's: they have no runs. */
weir_status mlflow_read_experiments(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                    int64_t **out, size_t *out_n, struct weir_error *err)
{
    const char **ids;
    size_t n;
    WEIR_TRY(mlflow_texts(call, "experiment_ids", &ids, &n, err));
    *out = WEIR_ARENA_ARRAY(call->arena, n + 1, int64_t);
    *out_n = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir_experiment experiment;
        struct weir_error ignored;
        weir_status status = mlflow_find_experiment(call, txn, ids[i], &experiment, &ignored);
        if (status == WEIR_OK) {
            (*out)[(*out_n)++] = experiment.id;
        } else if (status != WEIR_ERR_NOT_FOUND && status != WEIR_ERR_INVALID) {
            return weir_error_set(err, status, "%s", ignored.message);
        }
    }
    return WEIR_OK;
}

/* ---- runs -------------------------------------------------------------------------------------- */

static weir_status put_metrics(struct weir_run_reader *reader, struct weir_buf *buf, int64_t run,
                               struct weir_error *err)
{
    bool has_item, is_first = true;
    WEIR_TRY(weir_run_reader_begin(reader, WEIR_RUN_METRICS, run, err));
    for (;;) {
        struct weir_run_item item;
        WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
        if (!has_item) {
            return WEIR_OK;
        }
        const struct weir_metric metric = {.key = (char *)item.key,
                                           .value = item.value,
                                           .step = item.step,
                                           .time_ms = item.time_ms};
        (void)weir_buf_append(buf, ",", is_first ? 0 : 1);
        mlflow_put_metric(buf, &metric, NULL);
        is_first = false;
    }
}

static weir_status put_pairs(struct weir_run_reader *reader, struct weir_buf *buf,
                             enum weir_run_part part, int64_t run, struct weir_error *err)
{
    bool has_item, is_first = true;
    WEIR_TRY(weir_run_reader_begin(reader, part, run, err));
    for (;;) {
        struct weir_run_item item;
        WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
        if (!has_item) {
            return WEIR_OK;
        }
        (void)weir_buf_puts(buf, is_first ? "{\"key\":" : ",{\"key\":");
        mlflow_put_text(buf, item.key);
        (void)weir_buf_puts(buf, ",\"value\":");
        mlflow_put_text(buf, item.text);
        (void)weir_buf_append(buf, "}", 1);
        is_first = false;
    }
}

static weir_status put_run(struct weir_mlflow_call *call, struct weir_txn *txn,
                           struct weir_run_reader *reader, struct weir_buf *buf,
                           const struct weir_run_row *row, bool has_models, struct weir_error *err)
{
    (void)weir_buf_puts(buf, "{\"info\":");
    mlflow_put_run_info(buf, &row->record);
    (void)weir_buf_puts(buf, ",\"data\":{\"metrics\":[");
    WEIR_TRY(put_metrics(reader, buf, row->number, err));
    (void)weir_buf_puts(buf, "],\"params\":[");
    WEIR_TRY(put_pairs(reader, buf, WEIR_RUN_PARAMETERS, row->number, err));
    (void)weir_buf_puts(buf, "],\"tags\":[");
    WEIR_TRY(put_pairs(reader, buf, WEIR_RUN_TAGS, row->number, err));
    (void)weir_buf_puts(buf, "]}");
    bool has_inputs;
    WEIR_TRY(weir_run_reader_has_inputs(reader, row->number, &has_inputs, err));
    if (has_inputs || has_models) {
        WEIR_TRY(mlflow_put_inputs(call, txn, buf, row->number, has_models ? row->record.id : NULL,
                                   err));
    } else {
        (void)weir_buf_puts(buf, ",\"inputs\":{\"dataset_inputs\":[]}");
    }
    (void)weir_buf_append(buf, "}", 1);
    return buf->status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "the page is more than %zu MiB: ask for fewer with max_results",
                                MLFLOW_ANSWER_MAX_BYTES >> 20);
}

static weir_status put_page(struct weir_mlflow_call *call, struct weir_txn *txn,
                            struct weir_buf *buf, const struct weir_run_row *rows, size_t n,
                            const char *next, struct weir_error *err)
{
    WEIR_AUTO(weir_run_reader_auto_close) struct weir_run_reader *reader = NULL;
    int64_t has_models;
    WEIR_TRY(weir_run_reader_open(txn, call->arena, &reader, err));
    WEIR_TRY(weir_txn_query_int_of_all(txn, sql_has_models, WEIR_NO_BINDS, 0, &has_models, err));
    (void)weir_buf_puts(buf, "{\"runs\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_append(buf, ",", i > 0 ? 1 : 0);
        WEIR_TRY(put_run(call, txn, reader, buf, &rows[i], has_models != 0, err));
    }
    (void)weir_buf_puts(buf, "]");
    mlflow_put_member(buf, "next_page_token", next);
    (void)weir_buf_puts(buf, "}");
    return WEIR_OK;
}

static weir_status answer_page(struct weir_mlflow_call *call, struct weir_txn *txn,
                               const struct weir_run_row *rows, size_t n, const char *next,
                               struct weir_error *err)
{
    struct weir_buf buf;
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    weir_status status = put_page(call, txn, &buf, rows, n, next, err);
    if (status != WEIR_OK) {
        weir_buf_fini(&buf);
        return status;
    }
    mlflow_answer_buf(call, &buf);
    return WEIR_OK;
}

weir_status mlflow_run_search(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct weir_run_search search = {0};
    struct weir_search_node *filter;
    struct weir_search_order *orders;
    struct weir_run_row *rows;
    int64_t *experiments, limit;
    size_t n;
    char *next;
    WEIR_TRY(mlflow_max_results(call, RUNS_DEFAULT, RUNS_MAX, &limit, err));
    WEIR_TRY(mlflow_read_filter(call, &weir_run_noun, &filter, err));
    WEIR_TRY(mlflow_read_orders(call, &weir_run_noun, &orders, &search.n_orders, err));
    WEIR_TRY(read_view(call, "run_view_type", &search.view, err));
    WEIR_TRY(mlflow_read_cursor(call, &search.cursor, err));
    WEIR_TRY(mlflow_read_experiments(call, txn, &experiments, &search.n_experiments, err));
    search.experiments = experiments;
    search.filter = filter;
    search.orders = orders;
    search.limit = (size_t)limit;
    if (search.n_experiments == 0) {
        return answer_page(call, txn, NULL, 0, NULL, err);
    }
    WEIR_TRY(weir_run_search(txn, &search, call->arena, &rows, &n, &next, err));
    return answer_page(call, txn, rows, n, next, err);
}

/* ---- experiments ------------------------------------------------------------------------------- */

weir_status mlflow_experiment_search(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct weir_experiment_search search = {.projects = &call->project, .n_projects = 1};
    struct weir_search_node *filter;
    struct weir_search_order *orders;
    struct weir_experiment *found;
    struct weir_buf buf;
    int64_t limit;
    size_t n;
    char *next;
    WEIR_TRY(mlflow_max_results(call, EXPERIMENTS_DEFAULT, EXPERIMENTS_MAX, &limit, err));
    WEIR_TRY(mlflow_read_filter(call, &weir_experiment_noun, &filter, err));
    WEIR_TRY(mlflow_read_orders(call, &weir_experiment_noun, &orders, &search.n_orders, err));
    if (search.n_orders == 0) { /* its clients expect the newest first */
        WEIR_TRY(weir_search_parse_order("creation_time DESC", &weir_experiment_noun, call->arena,
                                         orders, err));
        search.n_orders = 1;
    }
    WEIR_TRY(read_view(call, "view_type", &search.view, err));
    WEIR_TRY(mlflow_read_cursor(call, &search.cursor, err));
    search.filter = filter;
    search.orders = orders;
    search.limit = (size_t)limit;
    WEIR_TRY(weir_experiment_search(txn, &search, call->arena, &found, &n, &next, err));
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"experiments\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_append(&buf, ",", i > 0 ? 1 : 0);
        weir_status status = mlflow_put_experiment(call, txn, &buf, &found[i], err);
        if (status != WEIR_OK) {
            weir_buf_fini(&buf);
            return status;
        }
    }
    (void)weir_buf_puts(&buf, "]");
    mlflow_put_member(&buf, "next_page_token", next);
    (void)weir_buf_puts(&buf, "}");
    mlflow_answer_buf(call, &buf);
    return WEIR_OK;
}

/* ---- datasets ---------------------------------------------------------------------------------- */

static weir_status list_datasets(struct weir_txn *txn, int64_t experiment, struct weir_arena *arena,
                                 json_t *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    int64_t limit = DATASETS_MAX - (int64_t)json_array_size(out);
    WEIR_TRY(weir_stmt_open(
        txn, sql_datasets,
        WEIR_BINDS(WEIR_BIND_INT("experiment", experiment), WEIR_BIND_INT("limit", limit)), &stmt,
        err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        json_array_append_new(out, json_pack("{s:o,s:s,s:s,s:s*}", "experiment_id",
                                             json_sprintf("%" PRId64, experiment), "name",
                                             weir_stmt_text(stmt, 1, arena), "digest",
                                             weir_stmt_text(stmt, 2, arena), "context",
                                             weir_stmt_text(stmt, 3, arena)));
    }
}

weir_status mlflow_dataset_search(struct weir_mlflow_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    int64_t *experiments;
    const char **ids;
    size_t n;
    WEIR_TRY(mlflow_texts(call, "experiment_ids", &ids, &n, err));
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "SearchDatasets request must specify at least one experiment_id.");
    }
    if (n > DATASET_EXPERIMENTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "SearchDatasets request cannot specify more than %d experiment_ids. "
                              "Received %zu experiment_ids.",
                              DATASET_EXPERIMENTS_MAX, n);
    }
    WEIR_TRY(mlflow_read_experiments(call, txn, &experiments, &n, err));
    json_t *summaries = json_array();
    for (size_t i = 0; i < n; i++) {
        weir_status status = list_datasets(txn, experiments[i], call->arena, summaries, err);
        if (status != WEIR_OK) {
            json_decref(summaries);
            return status;
        }
    }
    mlflow_answer(call, json_pack("{s:o}", "dataset_summaries", summaries));
    return WEIR_OK;
}
