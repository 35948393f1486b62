/** What there is among some runs: how many, and what was logged of them. */
#include "api/answer.h"
#include "api/functions.h"
#include "api/run.h"

#include "track/run_search.h"

#include <stdlib.h>
#include <string.h>

#define NEWEST_MAX 1000 /* runs whose names are looked at */
#define NAMES_MAX  1000 /* of a part */

/* Names, each once. */
static void add_name(json_t *names, const char *name)
{
    if (json_object_size(names) < NAMES_MAX) {
        json_object_set_new(names, name, json_null());
    }
}

/* A set of the names that these runs have in a part. */
static weir_status add_names(struct weir_run_reader *reader, const struct weir_run_row *rows,
                             size_t n, enum weir_run_part part, json_t *names,
                             struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct weir_run_item item;
        bool has_item;
        WEIR_TRY(weir_run_reader_begin(reader, part, rows[i].number, err));
        WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
        while (has_item) {
            add_name(names, item.key);
            WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
        }
    }
    return WEIR_OK;
}

/* Adds to `names` those of a run's parameters that it was not started with. */
static weir_status add_logged(struct weir_run_reader *reader, const struct weir_run_row *row,
                              json_t *names, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *given = json_object();
    struct weir_arena arena;
    struct weir_tag *items;
    struct weir_run_item item;
    bool has_item;
    size_t n;
    weir_arena_init(&arena, 0);
    weir_run_parameters_of(row->record.parameters, &arena, &items, &n);
    for (size_t i = 0; i < n; i++) {
        json_object_set_new(given, items[i].key, json_null());
    }
    weir_arena_fini(&arena);
    WEIR_TRY(weir_run_reader_begin(reader, WEIR_RUN_PARAMETERS, row->number, err));
    WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
    while (has_item) {
        if (json_object_get(given, item.key) == NULL) {
            add_name(names, item.key);
        }
        WEIR_TRY(weir_run_reader_next(reader, &item, &has_item, err));
    }
    return WEIR_OK;
}

static int compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The keys of an object, in their order. */
static json_t *keys_of(json_t *object, struct weir_arena *arena)
{
    const char **keys = WEIR_ARENA_ARRAY(arena, json_object_size(object) + 1, const char *);
    const char *key;
    json_t *value, *sorted = json_array();
    size_t n = 0;
    json_object_foreach(object, key, value)
    {
        keys[n++] = key;
    }
    qsort(keys, n, sizeof *keys, compare);
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(sorted, json_string(keys[i]));
    }
    return sorted;
}

/* Adds "metrics", "params", "tags" and "logged_params": names that the runs have. */
static weir_status add_parts(struct api_call *call, struct weir_txn *txn,
                             const struct weir_run_row *rows, size_t n, json_t *summary,
                             struct weir_error *err)
{
    static const struct {
        const char *name;
        enum weir_run_part part;
    } parts[] = {
        {"metrics", WEIR_RUN_METRICS}, {"params", WEIR_RUN_PARAMETERS}, {"tags", WEIR_RUN_TAGS}};

    WEIR_AUTO(weir_run_reader_auto_close) struct weir_run_reader *reader = NULL;
    WEIR_TRY(weir_run_reader_open(txn, call->arena, &reader, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        WEIR_AUTO(weir_json_auto_free) json_t *names = json_object();
        WEIR_TRY(add_names(reader, rows, n, parts[i].part, names, err));
        json_object_set_new(summary, parts[i].name, keys_of(names, call->arena));
    }
    WEIR_AUTO(weir_json_auto_free) json_t *logged = json_object();
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(add_logged(reader, &rows[i], logged, err));
    }
    json_object_set_new(summary, "logged_params", keys_of(logged, call->arena));
    return WEIR_OK;
}

weir_status api_run_summary(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *summary = json_object();
    struct weir_run_search search = {
        .limit = NEWEST_MAX, .with_texts = true, .max_bytes = API_ANSWER_MAX_BYTES};
    struct weir_run_row *rows = NULL;
    int64_t n_runs = 0;
    size_t n = 0;
    char *next;
    bool has_any;
    WEIR_TRY(api_query_runs(call, txn, &search, &has_any, err));
    if (has_any) {
        WEIR_TRY(weir_run_count(txn, &search, call->arena, &n_runs, err));
        WEIR_TRY(weir_run_search(txn, &search, call->arena, &rows, &n, &next, err));
    }
    json_object_set_new(summary, "n", json_integer(n_runs));
    WEIR_TRY(add_parts(call, txn, rows, n, summary, err));
    api_answer(call, json_incref(summary));
    return WEIR_OK;
}
