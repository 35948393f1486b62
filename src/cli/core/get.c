/** weir get: list anything, or look at one. */
#include "cli/core/noun.h"
#include "cli/core/watch.h"
#include "track/track.h"

#include <string.h>

#define LIST_MAX 100000

struct get_options {
    struct cli_common common;
    int64_t limit;
    bool is_watched;
};

static const struct weir_option get_options[] = {
    CLI_COMMON_OPTIONS(get_options),
    WEIR_OPT(get_options, limit, "limit", 'n', INT, "100", 1, LIST_MAX, "N",
             "List at most so many, the newest first where there is an order"),
    CLI_FLAG(get_options, is_watched, "watch", 'w',
             "Go on, and print again what has changed, until it is interrupted"),
};

/* What no run of the list has is left out, of the columns beside the record's. */
static size_t for_people(struct cli_call *call, json_t *list, const struct cli_noun *noun,
                         const struct cli_column *columns, size_t n_columns,
                         const struct cli_column **out)
{
    json_t *items = json_object_get(list, "items"), *run;
    struct cli_column *kept = WEIR_ARENA_ARRAY(call->arena, n_columns, struct cli_column);
    size_t n = 0, i;
    json_array_foreach(items, i, run)
    {
        cli_run_for_people(run);
    }
    for (size_t k = 0; k < n_columns; k++) {
        bool is_there = weir_resource_field(noun->record, columns[k].member) != NULL;
        json_array_foreach(items, i, run)
        {
            const json_t *value = json_object_get(run, columns[k].member);
            is_there = is_there || (value != NULL && !json_is_null(value));
        }
        if (is_there) {
            kept[n++] = columns[k];
        }
    }
    *out = kept;
    return n;
}

/* "job/0192…": the name of each, as every command takes it. */
static void print_names(const struct cli_noun *noun, const json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const char *key =
            noun->key != NULL ? json_string_value(json_object_get(item, noun->key)) : NULL;
        if (key != NULL) {
            printf("%s/%s\n", noun->singular, key);
        }
    }
}

static void print_more(struct cli_call *call, const json_t *list)
{
    const struct get_options *options = call->options;
    (void)fflush(stdout);
    if (json_is_true(json_object_get(list, "more")) && !cli_is_json(call)) {
        (void)fprintf(stderr, "(there are more: --limit %lld shows the first %lld)\n",
                      (long long)(10 * options->limit), (long long)(10 * options->limit));
    }
    if (json_is_string(json_object_get(list, "why")) && !cli_is_json(call)) {
        (void)fprintf(stderr, "(%s)\n", cli_text(call, list, "why"));
    }
}

static void print_list(struct cli_call *call, const struct cli_noun *noun, json_t *list)
{
    size_t n_columns;
    const struct cli_column *columns = cli_noun_columns(call, noun, &n_columns);
    bool is_for_people = !cli_is_json(call) && !cli_is_yaml(call);
    if (cli_is_name(call)) {
        print_names(noun, list);
    } else if (is_for_people && noun->record == &weir_run_resource) {
        n_columns = for_people(call, list, noun, columns, n_columns, &columns);
        cli_print_table(call, list, columns, n_columns);
    } else {
        cli_print_table(call, list, columns, n_columns);
    }
    print_more(call, list);
}

/* What is asked for: a list, or one of it. */
struct asked {
    const struct cli_noun *noun;
    const char *owner, *name; /* NULL: it is a part of nothing; all of them */
    char *const *filters;
    size_t n_filters;
};

static weir_status load(struct cli_call *call, const struct asked *asked, json_t **out,
                        struct weir_error *err)
{
    const struct get_options *options = call->options;
    json_t *one;
    if (asked->name == NULL) {
        return cli_noun_list(call, asked->noun, asked->owner, asked->filters, asked->n_filters,
                             options->limit, out, err);
    }
    WEIR_TRY(cli_noun_get(call, asked->noun, asked->name, &one, err));
    *out = json_pack("{s:[o]}", "items", one);
    return WEIR_OK;
}

static weir_status load_again(void *context, struct cli_call *call, json_t **out,
                              struct weir_error *err)
{
    return load(call, context, out, err);
}

static weir_status show(struct cli_call *call, struct asked *asked, struct weir_error *err)
{
    const struct get_options *options = call->options;
    json_t *list;
    if (options->is_watched) {
        return cli_watch(call, asked->noun, load_again, asked, err);
    }
    WEIR_TRY(load(call, asked, &list, err));
    if (asked->name != NULL && !cli_is_name(call)) {
        cli_print_object(call, json_array_get(json_object_get(list, "items"), 0));
    } else {
        print_list(call, asked->noun, list);
    }
    json_decref(list);
    return WEIR_OK;
}

static weir_status get_parts(struct cli_call *call, const struct cli_noun *noun, char **words,
                             size_t n, struct weir_error *err)
{
    char *owner;
    if (n == 0 || strchr(words[0], '=') != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "weir get %s: of which %s? Name it: weir get %s %s", noun->plural,
                              noun->of, noun->plural, cli_noun_placeholder(call->arena, noun));
    }
    WEIR_TRY(cli_noun_key(call, cli_noun_find(noun->of), words[0], &owner, err));
    struct asked asked = {noun, owner, NULL, words + 1, n - 1};
    return show(call, &asked, err);
}

/* Before anything is printed. */
static weir_status check_nouns(struct cli_call *call, struct weir_error *err)
{
    char *rest = weir_arena_strdup(call->arena, call->words[0]), *word;
    while ((word = strsep(&rest, ",")) != NULL) {
        const struct cli_noun *noun = cli_noun_find(word);
        if (noun == NULL) {
            return cli_noun_unknown(word, err);
        }
        if (noun->of != NULL) {
            return get_parts(call, noun, NULL, 0, err);
        }
    }
    return WEIR_OK;
}

/* "jobs,nodes": one table after the other; as JSON or YAML, an object with a list for each. */
static weir_status get_several(struct cli_call *call, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *all = json_object();
    char *rest = weir_arena_strdup(call->arena, call->words[0]), *word;
    const struct get_options *options = call->options;
    bool is_table = !cli_is_json(call) && !cli_is_yaml(call), is_first = true;
    if (call->n_words > 1 || options->is_watched) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "several nouns take no name, filter or --watch: name one of %s",
                              call->words[0]);
    }
    WEIR_TRY(check_nouns(call, err));
    while ((word = strsep(&rest, ",")) != NULL) {
        const struct cli_noun *noun = cli_noun_find(word);
        struct asked asked = {.noun = noun};
        json_t *list;
        WEIR_TRY(load(call, &asked, &list, err));
        if (is_table && !cli_is_name(call)) {
            printf("%s%s\n", is_first ? "" : "\n", noun->plural);
        }
        if (is_table) {
            print_list(call, noun, list);
        }
        json_object_set(all, noun->plural, json_object_get(list, "items"));
        json_decref(list);
        is_first = false;
    }
    if (!is_table) {
        cli_print_object(call, all);
    }
    return WEIR_OK;
}

static weir_status run_get(struct cli_call *call, struct weir_error *err)
{
    char **words = call->words + 1, *name = NULL;
    size_t n = call->n_words - 1;
    if (strchr(call->words[0], ',') != NULL) {
        return get_several(call, err);
    }
    const struct cli_noun *noun = cli_noun_split(call->arena, call->words[0], &name);
    if (noun != NULL) { /* job/train */
        words = &name;
        n = call->n_words;
    } else {
        noun = cli_noun_find(call->words[0]);
    }
    if (noun == NULL) {
        return cli_noun_unknown(call->words[0], err);
    }
    if (noun->of != NULL) {
        return get_parts(call, noun, words, n, err);
    }
    bool has_name = n > 0 && strchr(words[0], '=') == NULL;
    if (has_name && n > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.60s\": a single %s takes no filter, and one is shown at a time; "
                              "usage: weir get %s",
                              words[0] == name ? call->words[1] : words[1], noun->singular,
                              call->command->usage);
    }
    struct asked asked = {noun, NULL, has_name ? words[0] : NULL, words, has_name ? 0 : n};
    return show(call, &asked, err);
}

const struct cli_command cli_get = {
    .name = "get",
    .usage = "NOUN[,NOUN …] [NAME | NAME=VALUE …] [--limit N] [--watch] [-o wide|json|yaml|name]",
    .summary = "List records, or look at one",
    .help =
        "Nouns: ions jobs runs experiments models deployments datasets nodes devices queues "
        "reservations clusters pools allocations\n"
        "services sweeps decisions passages feedback outcomes events audit alerts alert-rules "
        "alert-receivers "
        "alert-silences\n"
        "alert-deliveries projects groups users tokens sessions roles kinds snapshots doors orders "
        "cameras sources "
        "forgotten; "
        "with the\n"
        "name of what they belong to: versions MODEL, aliases MODEL, dataset-versions DATASET, "
        "tasks JOB,\n"
        "trials SWEEP, metrics RUN, revisions ION, candidates ION, disagreements ION, "
        "policy-decisions ION,\n"
        "replicas ION, members ION, project-members PROJECT, group-members GROUP.\n\n"
        "Lists are filtered by words: weir get jobs state=RUNNING project=vision. A filter "
        "that is\n"
        "not known is refused with those there are. Identifiers are cut to their last 8 "
        "characters;\n"
        "-o wide shows them whole, -o name prints NOUN/NAME, as every command takes it. job/train "
        "is the\nsame as job train.",
    .flags = CLI_WIDE | CLI_YAML | CLI_NAME,
    CLI_WORDS(1, 20),
    CLI_OPTIONS(get_options, get_options),
    .run = run_get,
};
