/** How long a project keeps what is its own, what it may set, and what would go. */
#include "cli/admin/project.h"

#include <string.h>

weir_status cli_retention_word(struct cli_call *call, const char *word, const char *example,
                               json_t *body, struct weir_error *err)
{
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.80s\": expected KIND=%s", word, example);
    }
    json_object_set_new(body, weir_arena_printf(call->arena, "%.*s", (int)(equals - word), word),
                        json_string(equals + 1));
    return WEIR_OK;
}

static weir_status read_times(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct cli_project_options *options = call->options;
    const char *rest = options->retention, *word;
    while ((word = cli_next_word(call, &rest)) != NULL) {
        WEIR_TRY(cli_retention_word(call, word, "AGE, such as decisions=30d", body, err));
    }
    return WEIR_OK;
}

/* What would go, kind by kind. Nothing is changed. */
static weir_status preview(struct cli_call *call, const json_t *body, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"kind", "KIND"},        {"keep", "WOULD BE KEPT"}, {"keep_now", "NOW"},
        {"n_going", "WOULD GO"}, {"unit", "UNIT"},          {"bytes_going", "SIZE"},
    };
    WEIR_AUTO(weir_json_auto_free) json_t *all = json_object();
    json_t *items = json_array(), *value;
    const char *kind;
    json_object_set_new(all, "items", items);
    json_object_foreach((json_t *)body, kind, value)
    {
        WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
        const char *path = cli_path3(call, "/api/v1/projects/{}/retention/preview?kind={}&keep={}",
                                     call->words[1], kind, json_string_value(value));
        WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
        json_array_extend(items, json_object_get(answer, "items"));
    }
    cli_print_table(call, all, columns, WEIR_ARRAY_LEN(columns));
    if (!cli_is_json(call)) {
        printf("\nNothing was changed. Sizes of rows are reckoned.\n");
    }
    return WEIR_OK;
}

void cli_print_retention(struct cli_call *call, const json_t *answer)
{
    static const struct cli_column columns[] = {
        {"kind", "KIND"},     {"keep", "KEPT"},         {"own", "ITS OWN"},
        {"bounds", "MAY BE"}, {"platform", "PLATFORM"}, {"what", "WHAT"},
    };
    static const struct cli_column pipeline_columns[] = {
        {"ion", "ION"},   {"pipeline", "PIPELINE"}, {"kind", "KIND"},
        {"keep", "KEPT"}, {"own", "ITS OWN"},
    };
    json_t *pipelines = json_object_get(answer, "pipelines");
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    if (json_array_size(pipelines) > 0) {
        WEIR_AUTO(weir_json_auto_free) json_t *list = json_object();
        json_object_set(list, "items", pipelines);
        printf("\n");
        cli_print_table(call, list, pipeline_columns, WEIR_ARRAY_LEN(pipeline_columns));
    }
}

static const struct cli_verb put_retention = {.prepare = read_times,
                                              .call = "PUT " CLI_PROJECT_RETENTION,
                                              .body = "",
                                              .print = cli_print_retention};

weir_status cli_project_set(struct cli_call *call, struct weir_error *err)
{
    const struct cli_project_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_object();
    if (options->retention == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "nothing to set: say --retention KIND=AGE, such as "
                              "--retention decisions=30d");
    }
    if (!options->is_dry_run) {
        return cli_verb_run(call, &put_retention, err);
    }
    WEIR_TRY(read_times(call, body, err));
    return preview(call, body, err);
}
