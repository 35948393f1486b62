#include "cli/core/watch.h"

#include <poll.h>
#include <string.h>

#define LOOK_EVERY_MS 1000

/** What has been printed. */
struct watch {
    const struct cli_noun *noun;
    const struct cli_column *columns; /* in the command's arena */
    size_t n_columns;
    json_t *rows; /* by key: the cells that count, as one text */
    bool has_header;
};

/* Does this column change though nothing happens? */
static bool is_restless(const struct cli_noun *noun, const char *member)
{
    const struct weir_field *field = weir_resource_field(noun->record, member);
    size_t len = strlen(member);
    return (field != NULL && field->type == WEIR_FIELD_TYPE_TIME) ||
           (len > 6 && strcmp(member + len - 6, "_bytes") == 0);
}

static const char *key_of(struct cli_call *call, const struct watch *watch, const json_t *item)
{
    return watch->noun->key != NULL ? cli_text(call, item, watch->noun->key)
                                    : weir_json_text(item, call->arena);
}

static char *cells_of(struct cli_call *call, const struct watch *watch, const json_t *item)
{
    char *text = weir_arena_strdup(call->arena, "");
    for (size_t i = 0; i < watch->n_columns; i++) {
        const char *member = watch->columns[i].member;
        if (!is_restless(watch->noun, member)) {
            text = weir_arena_printf(call->arena, "%s\t%s", text, cli_text(call, item, member));
        }
    }
    return text;
}

static void print_items(struct cli_call *call, struct watch *watch, json_t *items)
{
    size_t i;
    json_t *item;
    bool is_table = !cli_is_json(call) && !cli_is_yaml(call) && !cli_is_name(call);
    if (is_table && json_array_size(items) + !watch->has_header > 0) {
        json_t *list = json_pack("{s:O}", "items", items);
        cli_print_rows(call, list, watch->columns, watch->n_columns, !watch->has_header);
        json_decref(list);
        watch->has_header = true;
    }
    json_array_foreach(items, i, item)
    {
        if (cli_is_name(call)) {
            printf("%s/%s\n", watch->noun->singular, key_of(call, watch, item));
        } else if (!is_table) {
            printf("%s", cli_is_yaml(call) ? "---\n" : "");
            cli_print_object(call, item);
        }
    }
}

/* Of what was there and is not any more. */
static void tell_gone(struct cli_call *call, const struct watch *watch, const json_t *rows)
{
    const char *key;
    json_t *ignored;
    json_object_foreach(watch->rows, key, ignored)
    {
        if (json_object_get(rows, key) == NULL && watch->noun->key != NULL) {
            (void)fflush(stdout);
            (void)fprintf(stderr, "(%s %s is gone)\n", watch->noun->singular, key);
        }
    }
    (void)call;
}

/* Prints what is new in the list, and remembers it. Nothing that `call` has in its arena stays. */
static void look(struct cli_call *call, struct watch *watch, const json_t *list)
{
    json_t *rows = json_object(), *news = json_array(), *item;
    size_t i;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const char *key = key_of(call, watch, item);
        json_t *cells = json_string(cells_of(call, watch, item));
        if (!json_equal(cells, json_object_get(watch->rows, key))) {
            json_array_append(news, item);
        }
        json_object_set_new(rows, key, cells);
    }
    print_items(call, watch, news);
    tell_gone(call, watch, rows);
    (void)fflush(stdout);
    json_decref(news);
    json_decref(watch->rows);
    watch->rows = rows;
}

weir_status cli_watch(struct cli_call *call, const struct cli_noun *noun, cli_watch_fn load,
                      void *context, struct weir_error *err)
{
    struct watch watch = {.noun = noun, .rows = json_object()};
    weir_status status = WEIR_OK;
    bool is_away = false;
    watch.columns = cli_noun_columns(call, noun, &watch.n_columns);
    while (status == WEIR_OK) {
        struct weir_arena arena;
        struct cli_call turn = *call; /* with an arena of its own: it may go on for days */
        json_t *list;
        weir_arena_init(&arena, 0);
        turn.arena = &arena;
        turn.has_exact_times = true;
        status = load(context, &turn, &list, err);
        if (status == WEIR_OK) {
            look(&turn, &watch, list);
            json_decref(list);
            is_away = false;
        } else if (watch.has_header && weir_client_can_retry(status)) {
            if (!is_away) {
                (void)fprintf(stderr, "weir: %s; trying again\n", err->message);
            }
            is_away = true;
            status = WEIR_OK;
        }
        call->client = turn.client;
        weir_arena_fini(&arena);
        if (status == WEIR_OK) {
            (void)poll(NULL, 0, LOOK_EVERY_MS);
        }
    }
    json_decref(watch.rows);
    return status;
}
