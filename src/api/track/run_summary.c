/** What there is among some runs: how many, and what was logged of them. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "api/track/run.h"

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
static char **keys_of(json_t *object, struct weir_arena *arena, size_t *out_n)
{
    char **keys = WEIR_ARENA_ARRAY(arena, json_object_size(object) + 1, char *);
    const char *key;
    json_t *value;
    *out_n = 0;
    json_object_foreach(object, key, value)
    {
        keys[(*out_n)++] = weir_arena_strdup(arena, key);
    }
    qsort(keys, *out_n, sizeof *keys, compare);
    return keys;
}

/** Names of one part of some runs. */
struct names {
    char **items;
    size_t n;
};

static weir_status list_part(struct weir_run_reader *reader, const struct weir_run_row *rows,
                             size_t n, enum weir_run_part part, struct weir_arena *arena,
                             struct names *out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *names = json_object();
    WEIR_TRY(add_names(reader, rows, n, part, names, err));
    out->items = keys_of(names, arena, &out->n);
    return WEIR_OK;
}

static weir_status list_logged(struct weir_run_reader *reader, const struct weir_run_row *rows,
                               size_t n, struct weir_arena *arena, struct names *out,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *names = json_object();
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(add_logged(reader, &rows[i], names, err));
    }
    out->items = keys_of(names, arena, &out->n);
    return WEIR_OK;
}

weir_status api_run_summary(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_AUTO(weir_run_reader_auto_close) struct weir_run_reader *reader = NULL;
    struct weir_run_search search = {
        .limit = NEWEST_MAX, .with_texts = true, .max_bytes = API_ANSWER_MAX_BYTES};
    struct weir_arena *arena = call->arena;
    struct weir_run_row *rows = NULL;
    struct names metrics, params, tags, logged;
    int64_t n_runs = 0;
    size_t n = 0;
    char *next;
    bool has_any;
    WEIR_TRY(api_query_runs(call, txn, &search, &has_any, err));
    if (has_any) {
        WEIR_TRY(weir_run_count(txn, &search, arena, &n_runs, err));
        WEIR_TRY(weir_run_search(txn, &search, arena, &rows, &n, &next, err));
    }
    WEIR_TRY(weir_run_reader_open(txn, arena, &reader, err));
    WEIR_TRY(list_part(reader, rows, n, WEIR_RUN_METRICS, arena, &metrics, err));
    WEIR_TRY(list_part(reader, rows, n, WEIR_RUN_PARAMETERS, arena, &params, err));
    WEIR_TRY(list_part(reader, rows, n, WEIR_RUN_TAGS, arena, &tags, err));
    WEIR_TRY(list_logged(reader, rows, n, arena, &logged, err));
    API_ANSWER(call, api_run_summary, .n = n_runs, .metrics = metrics.items, .n_metrics = metrics.n,
               .params = params.items, .n_params = params.n, .tags = tags.items, .n_tags = tags.n,
               .logged_params = logged.items, .n_logged_params = logged.n);
    return WEIR_OK;
}
