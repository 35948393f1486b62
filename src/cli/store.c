/** weir store: what the server's state folder takes, and what goes when. */
#include "cli/command.h"
#include "cli/project.h"
#include "cli/store_verify.h"

#include <string.h>

struct store_options {
    struct cli_common common;
    bool mend;
    const char *from;
};

static const struct weir_option store_options[] = {
    WEIR_OPT(store_options, mend, "mend", 0, BOOL, NULL, 0, 0, NULL,
             "verify: put good bytes in the place of damaged and missing ones"),
    WEIR_OPT(store_options, from, "from", 0, TEXT, NULL, 0, 0, "DIR",
             "verify: a backup, or another state folder, that may have good bytes"),
    CLI_COMMON_OPTIONS(store_options)};

static const char *size_text(const struct cli_call *call, const json_t *object, const char *member)
{
    double gb = (double)json_integer_value(json_object_get(object, member)) / 1e9;
    return weir_arena_printf(call->arena, gb < 0.1 ? "%.3f GB" : "%.1f GB", gb);
}

static weir_status usage(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"kind", "KIND"},       {"n", "N"}, {"used_bytes", "SIZE"}, {"limit", "LIMIT"},
        {"next", "NEXT TO GO"},
    };
    json_t *answer;
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/store/usage", NULL, &answer, err));
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    if (!cli_is_json(call)) {
        printf("\nAll of it: %s. Free on its disk: %s of %s. Sizes of rows are reckoned.\n",
               size_text(call, answer, "total_bytes"), size_text(call, answer, "disk_free_bytes"),
               size_text(call, answer, "disk_bytes"));
    }
    json_decref(answer);
    return WEIR_OK;
}

static weir_status print_rules(struct cli_call *call, const char *method, const json_t *body,
                               struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"kind", "KIND"}, {"limit", "LIMIT"}, {"default", "DEFAULT"}, {"rule", "RULE"}};
    json_t *answer;
    WEIR_TRY(cli_rest(call, method, "/api/v1/retention", body, &answer, err));
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    json_decref(answer);
    return WEIR_OK;
}

static weir_status add_limit(const struct cli_call *call, const char *word, json_t *body,
                             struct weir_error *err)
{
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.80s\": expected KIND=LIMIT, such as decisions=30d,10GB", word);
    }
    json_object_set_new(body, weir_arena_printf(call->arena, "%.*s", (int)(equals - word), word),
                        json_string(equals + 1));
    return WEIR_OK;
}

/* Without words the rules as they are; else KIND=LIMIT … */
static weir_status retain(struct cli_call *call, struct weir_error *err)
{
    if (call->n_words == 1) {
        return print_rules(call, "GET", NULL, err);
    }
    json_t *body = json_object();
    weir_status status = WEIR_OK;
    for (size_t i = 1; i < call->n_words && status == WEIR_OK; i++) {
        status = add_limit(call, call->words[i], body, err);
    }
    if (status == WEIR_OK) {
        status = print_rules(call, "PUT", body, err);
    }
    json_decref(body);
    return status;
}

static weir_status sweep(struct cli_call *call, struct weir_error *err)
{
    json_t *answer = NULL;
    WEIR_TRY(cli_rest(call, "POST", "/api/v1/store/sweep", NULL, &answer, err));
    json_decref(answer);
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:b}", "is_sweeping", 1));
    } else {
        printf("The limits are being applied; weir store usage shows what is left.\n");
    }
    return WEIR_OK;
}

static weir_status run_store(struct cli_call *call, struct weir_error *err)
{
    const struct store_options *options = call->options;
    const char *verb = call->words[0];
    if (strcmp(verb, "usage") == 0 && call->n_words == 1) {
        return usage(call, err);
    }
    if (strcmp(verb, "retain") == 0) {
        return retain(call, err);
    }
    if (strcmp(verb, "bounds") == 0) {
        return cli_store_bounds(call, err);
    }
    if (strcmp(verb, "verify") == 0 && call->n_words == 1) {
        return cli_store_verify(call, options->mend, options->from, err);
    }
    if (options->mend || options->from != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--mend and --from belong to weir store verify");
    }
    if (strcmp(verb, "sweep") == 0 && call->n_words == 1) {
        return sweep(call, err);
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir store %s", call->command->usage);
}

const struct cli_command cli_store = {
    .name = "store",
    .usage = "usage | retain [KIND=LIMIT …] | bounds [KIND=MIN..MAX …] | sweep | verify [--mend "
             "[--from DIR]]",
    .summary = "Show what the state folder takes and what goes when; change how long things stay",
    .help =
        "A limit is an age, a size, or both: 30d, 10GB, 30d,10GB, forever, unbounded, default.\n"
        "retain alone lists the kinds with their limits and rules. bounds are what projects may "
        "set "
        "for\n"
        "themselves (weir project set --retention): 1d..90d, 0s..forever, default.\n"
        "verify reads every blob of the state folder on this machine (--state), whether its server "
        "runs "
        "or not,\n"
        "and names those that are damaged or missing and what they belong to; the exit status is "
        "then "
        "3. --mend\n"
        "takes good bytes from --from and from uploaded datasets, and moves what stays damaged to "
        "blobs/damaged.",
    .min_words = 1,
    .max_words = 40,
    CLI_OPTIONS(store_options, store_options),
    .run = run_store,
};
