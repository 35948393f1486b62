/*
 * MLflow's scoring protocol (mlflow.org, "Inference Server Specification"): /invocations with
 * dataframe_split, dataframe_records, instances or inputs, and /ping, /health, /version.
 *
 * A table of numbers is either the matrix of the model's one input, a row each, or has a column for
 * each of the model's inputs.
 */
#include "serve/protocol/rows.h"

#include "base/grow.h"

#include <string.h>
#include <strings.h>

#define COLUMNS_MAX 65536

/** Which input a column of a table is; all of them one matrix. */
struct table {
    struct rows *rows;
    bool is_matrix;
    const char *columns[SERVE_PORTS_MAX]; /**< By place: names, of a table by columns. */
    size_t inputs[SERVE_PORTS_MAX];       /**< And inputs. */
    size_t n_columns;
};

/* ---- tables ---------------------------------------------------------------------------------- */

/* Are these columns the model's inputs? Else they are a matrix, if the model has one input. */
static weir_status set_columns(struct table *table, const char *const *names, size_t n,
                               struct weir_error *err)
{
    const struct infer *infer = table->rows->infer;
    size_t n_found = 0;
    struct weir_error ignored;
    for (size_t i = 0; i < n && i < SERVE_PORTS_MAX; i++) {
        n_found += infer_find_input(infer, names[i], &table->inputs[i], &ignored) == WEIR_OK;
    }
    if (n_found == n && n <= SERVE_PORTS_MAX && n > 0) {
        memcpy(table->columns, names, n * sizeof *names);
        table->n_columns = n;
        return WEIR_OK;
    }
    table->is_matrix = true;
    if (infer->signature->n_inputs == 1) {
        return WEIR_OK;
    }
    return n > 0 ? infer_find_input(infer, names[n_found < n ? n_found : 0], &table->inputs[0], err)
                 : weir_error_set(err, WEIR_ERR_INVALID, "the table has no columns");
}

static weir_status read_names(struct weir_json_scan *scan, struct weir_arena *arena,
                              const char ***out, size_t *out_n)
{
    const char **names = NULL;
    size_t n = 0, cap = 0;
    struct weir_json_text text;
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    while (weir_json_scan_element(scan)) {
        if (weir_json_scan_peek(scan) == '"') {
            WEIR_TRY(weir_json_scan_text(scan, arena, &text));
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, &text)); /* pandas numbers columns without names */
            text.bytes = weir_arena_memdup(arena, text.bytes, text.len);
        }
        if (n == COLUMNS_MAX) {
            return weir_json_scan_fail(scan, "at most 65,536 columns");
        }
        weir_arena_grow(arena, &names, sizeof *names, n, &cap);
        names[n++] = text.bytes;
    }
    *out = names;
    *out_n = n;
    return scan->status;
}

/* A row of a table: an array with a value for each column. */
static weir_status read_cells(struct table *table)
{
    struct weir_json_scan *scan = table->rows->scan;
    size_t i = 0;
    if (table->is_matrix) {
        return tensor_fill_row(&table->rows->fills[0], scan);
    }
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    while (weir_json_scan_element(scan)) {
        if (i == table->n_columns) {
            return weir_json_scan_fail(scan, "as many values in a row as there are columns");
        }
        WEIR_TRY(tensor_fill_row(&table->rows->fills[table->inputs[i++]], scan));
    }
    return scan->status == WEIR_OK && i < table->n_columns
               ? weir_json_scan_fail(scan, "as many values in a row as there are columns")
               : scan->status;
}

/* {"columns": […], "data": [[…], …]}, in any order. */
static weir_status read_split(struct rows *rows)
{
    struct weir_json_scan *scan = rows->scan, at_data = {0};
    struct weir_arena *arena = rows->infer->arena;
    struct table table = {.rows = rows};
    const char *key, **names = NULL;
    size_t n_names = 0;
    struct weir_json_text data = {0};
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, arena, &key)) {
        if (strcmp(key, "columns") == 0) {
            WEIR_TRY(read_names(scan, arena, &names, &n_names));
        } else if (strcmp(key, "data") == 0) {
            WEIR_TRY(weir_json_scan_skip(scan, &data));
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    WEIR_TRY(scan->status);
    if (data.bytes == NULL) {
        return weir_json_scan_fail(scan, "\"data\" in dataframe_split");
    }
    if (names != NULL) {
        WEIR_TRY(set_columns(&table, names, n_names, scan->err));
    } else {
        table.is_matrix = true;
    }
    at_data = *scan;
    at_data.at = data.bytes;
    at_data.end = data.bytes + data.len;
    rows->scan = &at_data;
    weir_status status = weir_json_scan_enter(&at_data, '[');
    while (status == WEIR_OK && weir_json_scan_element(&at_data)) {
        status = read_cells(&table);
    }
    rows->scan = scan;
    return status != WEIR_OK ? status : at_data.status;
}

/* ---- records --------------------------------------------------------------------------------- */

/* The members of a record as a row of the matrix, in the order of the first record. */
static weir_status read_record_row(struct rows *rows, const char ***names, size_t *n_names,
                                   size_t *cap, bool is_first)
{
    struct weir_json_scan *scan = rows->scan;
    struct tensor_fill *fill = &rows->fills[0];
    const char *key;
    size_t i = 0;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, rows->infer->arena, &key)) {
        if (is_first && i < COLUMNS_MAX) {
            weir_arena_grow(rows->infer->arena, names, sizeof **names, i, cap);
            (*names)[i] = key;
            *n_names = i + 1;
        } else if (i >= *n_names || strcmp((*names)[i], key) != 0) {
            return weir_json_scan_fail(scan, "the same members in each record, in the same order");
        }
        WEIR_TRY(tensor_fill_row(fill, scan));
        i++;
    }
    return scan->status == WEIR_OK && i < *n_names
               ? weir_json_scan_fail(scan, "the same members in each record")
               : scan->status;
}

/* What was filled as one value after the other has rows of n_columns. */
static weir_status fold(struct tensor_fill *fill, size_t n_columns, struct weir_json_scan *scan)
{
    if (n_columns == 0 || fill->rank != 1) {
        return weir_json_scan_fail(scan, "single values in the records");
    }
    fill->rank = 2;
    fill->dims[0] = fill->n_rows / (int64_t)n_columns;
    fill->dims[1] = (int64_t)n_columns;
    return WEIR_OK;
}

/* Is the first member of the first record an input's name? Then all are. */
static bool has_inputs(const struct rows *rows)
{
    struct weir_json_scan ahead = *rows->scan;
    struct weir_error ignored;
    const char *key;
    size_t i_input;
    ahead.err = NULL;
    return weir_json_scan_peek(&ahead) == '{' && weir_json_scan_enter(&ahead, '{') == WEIR_OK &&
           weir_json_scan_member(&ahead, rows->infer->arena, &key) &&
           infer_find_input(rows->infer, key, &i_input, &ignored) == WEIR_OK;
}

/* [{"a": 1, "b": 2}, …] */
static weir_status read_records(struct rows *rows)
{
    struct weir_json_scan *scan = rows->scan;
    const char **names = NULL;
    size_t n_names = 0, cap = 0;
    bool is_first = true, is_matrix = false;
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    while (weir_json_scan_element(scan)) {
        if (is_first) {
            is_matrix = rows->infer->signature->n_inputs == 1 && !has_inputs(rows);
        }
        WEIR_TRY(is_matrix ? read_record_row(rows, &names, &n_names, &cap, is_first)
                           : rows_read_instance(rows));
        is_first = false;
    }
    WEIR_TRY(scan->status);
    return is_matrix ? fold(&rows->fills[0], n_names, scan) : WEIR_OK;
}

/* ---- invocations ----------------------------------------------------------------------------- */

static weir_status read_member(struct rows *rows, const char *key, int *n_tables)
{
    static const struct {
        const char *key;
        weir_status (*read)(struct rows *rows);
    } forms[] = {{"dataframe_split", read_split},
                 {"dataframe_records", read_records},
                 {"instances", rows_read_instances},
                 {"inputs", rows_read_columns}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(forms); i++) {
        if (strcmp(forms[i].key, key) == 0) {
            if ((*n_tables)++ > 0) {
                return weir_json_scan_fail(rows->scan, "one of dataframe_split, dataframe_records, "
                                                       "instances and inputs");
            }
            return forms[i].read(rows);
        }
    }
    return weir_json_scan_skip(rows->scan, NULL);
}

static weir_status read_json(struct rows *rows, struct weir_error *err)
{
    const char *key;
    int n_tables = 0;
    WEIR_TRY(weir_json_scan_enter(rows->scan, '{'));
    while (weir_json_scan_member(rows->scan, rows->infer->arena, &key)) {
        WEIR_TRY(read_member(rows, key, &n_tables));
    }
    WEIR_TRY(weir_json_scan_end(rows->scan));
    return n_tables == 1
               ? rows_take(rows, err)
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "the request has none of dataframe_split, dataframe_records, "
                                "instances and inputs");
}

static weir_status read_invocations(const struct protocol_request *request, struct infer *infer,
                                    struct weir_error *err)
{
    struct weir_json_scan scan;
    struct rows rows;
    if (protocol_is_picture(request)) {
        WEIR_TRY(protocol_read_picture(request->body, request->body_len, infer, err));
        return infer_check(infer, err);
    }
    if (request->content_type != NULL && strncasecmp(request->content_type, "text/csv", 8) == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "text/csv is not supported: send JSON");
    }
    WEIR_TRY(protocol_check_json(request, err));
    weir_json_scan_init(&scan, request->body, request->body_len, err);
    rows_init(&rows, infer, &scan);
    weir_status status = read_json(&rows, err);
    rows_fini(&rows);
    return status;
}

static void write_invocations(const struct infer *infer, struct protocol_answer *answer)
{
    (void)weir_buf_puts(&answer->body, "{\"predictions\":");
    rows_write_columns(infer, &answer->body);
    (void)weir_buf_puts(&answer->body, "}");
}

/* ---- questions ------------------------------------------------------------------------------- */

static weir_status answer_ping(const struct protocol_request *request,
                               const struct protocol_state *state, struct protocol_answer *answer,
                               struct weir_error *err)
{
    const struct version_row *row;
    if (request->model != NULL) {
        WEIR_TRY(protocol_ready_row(request, state, &row, err));
    } else if (!state->is_ready) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no version is ready yet");
    }
    answer->content_type = "text/plain";
    (void)weir_buf_puts(&answer->body, "\n");
    return WEIR_OK;
}

static weir_status answer_version(const struct protocol_request *request,
                                  const struct protocol_state *state,
                                  struct protocol_answer *answer, struct weir_error *err)
{
    (void)request;
    (void)state;
    (void)err;
    answer->content_type = "text/plain";
    (void)weir_buf_puts(&answer->body, WEIR_VERSION);
    return WEIR_OK;
}

static void write_error(const struct weir_error *error, struct protocol_answer *answer)
{
    static const struct {
        weir_status status;
        const char *code;
    } codes[] = {{WEIR_ERR_INVALID, "BAD_REQUEST"},
                 {WEIR_ERR_CORRUPT, "BAD_REQUEST"},
                 {WEIR_ERR_LIMIT, "BAD_REQUEST"},
                 {WEIR_ERR_NOT_FOUND, "RESOURCE_DOES_NOT_EXIST"},
                 {WEIR_ERR_UNAVAILABLE, "TEMPORARILY_UNAVAILABLE"},
                 {WEIR_ERR_UNSUPPORTED, "NOT_IMPLEMENTED"}};

    const char *code = "INTERNAL_ERROR";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(codes); i++) {
        code = codes[i].status == error->status ? codes[i].code : code;
    }
    (void)weir_buf_puts(&answer->body, "{");
    protocol_put_member(&answer->body, "error_code", code);
    (void)weir_buf_puts(&answer->body, ",");
    protocol_put_member(&answer->body, "message", error->message);
    (void)weir_buf_puts(&answer->body, "}");
}

#define MODEL   "/models/{model}"
#define VERSION MODEL "/versions/{version}"

// clang-format off
static const struct protocol_route routes[] = {
    {.method = "POST", .pattern = "/invocations", .read = read_invocations, .write = write_invocations},
    {.method = "POST", .pattern = MODEL "/invocations", .read = read_invocations, .write = write_invocations},
    {.method = "POST", .pattern = VERSION "/invocations", .read = read_invocations, .write = write_invocations},
    {.method = "GET", .pattern = "/ping", .answer = answer_ping},
    {.method = "GET", .pattern = "/health", .answer = answer_ping},
    {.method = "GET", .pattern = MODEL "/ping", .answer = answer_ping},
    {.method = "GET", .pattern = VERSION "/ping", .answer = answer_ping},
    {.method = "GET", .pattern = "/version", .answer = answer_version},
};
// clang-format on

const struct protocol protocol_mlflow = {
    .name = "mlflow",
    .doc = "MLflow's scoring protocol: /invocations, /ping, /health, /version.",
    .routes = routes,
    .n_routes = WEIR_ARRAY_LEN(routes),
    .error = write_error,
};
