/** How long a project keeps what is its own, what it may set, and what would go. */
#include "cli/project.h"

#include <string.h>

#define PATH "/api/v1/projects/{}/retention"

/* "KIND=VALUE" into a body. */
static weir_status add_word(struct cli_call *call, const char *word, const char *example,
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
    const char *rest = options->retention;
    while (rest != NULL) {
        const char *end = strchr(rest, '\n');
        size_t len = end != NULL ? (size_t)(end - rest) : strlen(rest);
        WEIR_TRY(add_word(call, weir_arena_printf(call->arena, "%.*s", (int)len, rest),
                          "AGE, such as decisions=30d", body, err));
        rest = end != NULL ? end + 1 : NULL;
    }
    return WEIR_OK;
}

static weir_status send_and_print(struct cli_call *call, const char *method, const json_t *body,
                                  struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"kind", "KIND"},     {"keep", "KEPT"},         {"own", "ITS OWN"},
        {"bounds", "MAY BE"}, {"platform", "PLATFORM"}, {"what", "WHAT"},
    };
    json_t *answer;
    WEIR_TRY(cli_rest(call, method, cli_path1(call, PATH, call->words[1]), body, &answer, err));
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    json_decref(answer);
    return WEIR_OK;
}

/* What would go, kind by kind. Nothing is changed. */
static weir_status preview(struct cli_call *call, const json_t *body, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"kind", "KIND"},        {"keep", "WOULD BE KEPT"}, {"keep_now", "NOW"},
        {"n_going", "WOULD GO"}, {"unit", "UNIT"},          {"bytes_going", "SIZE"},
    };
    json_t *all = json_object(), *items = json_array(), *value;
    const char *kind;
    weir_status status = WEIR_OK;
    json_object_set_new(all, "items", items);
    json_object_foreach((json_t *)body, kind, value)
    {
        json_t *answer = NULL;
        const char *path = cli_path3(call, "/api/v1/projects/{}/retention/preview?kind={}&keep={}",
                                     call->words[1], kind, json_string_value(value));
        status = cli_rest(call, "GET", path, NULL, &answer, err);
        if (status != WEIR_OK) {
            break;
        }
        json_array_extend(items, json_object_get(answer, "items"));
        json_decref(answer);
    }
    if (status == WEIR_OK) {
        cli_print_table(call, all, columns, WEIR_ARRAY_LEN(columns));
        if (!cli_is_json(call)) {
            printf("\nNothing was changed. Sizes of rows are reckoned.\n");
        }
    }
    json_decref(all);
    return status;
}

weir_status cli_project_set(struct cli_call *call, struct weir_error *err)
{
    const struct cli_project_options *options = call->options;
    if (options->retention == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "nothing to set: say --retention KIND=AGE, such as "
                              "--retention decisions=30d");
    }
    json_t *body = json_object();
    weir_status status = read_times(call, body, err);
    if (status == WEIR_OK) {
        status =
            options->is_dry_run ? preview(call, body, err) : send_and_print(call, "PUT", body, err);
    }
    json_decref(body);
    return status;
}

weir_status cli_project_retention(struct cli_call *call, struct weir_error *err)
{
    return send_and_print(call, "GET", NULL, err);
}

/* ---- what projects may set ------------------------------------------------------------------- */

static weir_status print_bounds(struct cli_call *call, const char *method, const json_t *body,
                                struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"kind", "KIND"}, {"bounds", "MAY BE"}, {"is_set", "SET"}, {"platform", "PLATFORM"}};
    json_t *answer;
    WEIR_TRY(cli_rest(call, method, "/api/v1/retention/bounds", body, &answer, err));
    cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    json_decref(answer);
    return WEIR_OK;
}

weir_status cli_store_bounds(struct cli_call *call, struct weir_error *err)
{
    if (call->n_words == 1) {
        return print_bounds(call, "GET", NULL, err);
    }
    json_t *body = json_object();
    weir_status status = WEIR_OK;
    for (size_t i = 1; i < call->n_words && status == WEIR_OK; i++) {
        status = add_word(call, call->words[i], "MIN..MAX, such as decisions=1d..90d", body, err);
    }
    if (status == WEIR_OK) {
        status = print_bounds(call, "PUT", body, err);
    }
    json_decref(body);
    return status;
}
