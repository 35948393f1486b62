#include "cli/track/model_name.h"

#include <stdlib.h>
#include <string.h>

weir_status cli_model_split(struct cli_call *call, const char *word, char **out_name,
                            char **out_version, struct weir_error *err)
{
    char *name = weir_arena_strdup(call->arena, word), *at = strrchr(name, '@');
    if (at != NULL) {
        *at = '\0';
    }
    if (name[0] == '\0' || (at != NULL && at[1] == '\0')) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.80s\": expected NAME, NAME@v3 or NAME@ALIAS", word);
    }
    *out_name = name;
    *out_version = at != NULL ? at + 1 : NULL;
    return WEIR_OK;
}

/* "v3" or "3"; 0 if it is none. */
static int64_t number_of(const char *version)
{
    char *end;
    const char *digits = version + (version[0] == 'v');
    long long number = strtoll(digits, &end, 10);
    return *digits >= '0' && *digits <= '9' && *end == '\0' ? number : 0;
}

static weir_status newest(struct cli_call *call, const char *model, int64_t *out,
                          struct weir_error *err)
{
    json_t *answer, *version;
    size_t i;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/models/{}/versions", model), NULL,
                      &answer, err));
    *out = 0;
    json_array_foreach(json_object_get(answer, "items"), i, version)
    {
        int64_t number = json_integer_value(json_object_get(version, "version"));
        *out = WEIR_MAX(*out, number);
    }
    json_decref(answer);
    return *out > 0 ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                     "there is no version of a model \"%.60s\"; `weir get models` "
                                     "lists the models",
                                     model);
}

static weir_status by_alias(struct cli_call *call, const char *model, const char *alias,
                            int64_t *out, struct weir_error *err)
{
    json_t *answer, *item;
    size_t i;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/models/{}/aliases", model), NULL,
                      &answer, err));
    *out = 0;
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "alias"));
        *out = name != NULL && strcmp(name, alias) == 0
                   ? json_integer_value(json_object_get(item, "version"))
                   : *out;
    }
    json_decref(answer);
    return *out > 0 ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                     "model %.60s has no alias \"%.60s\": `weir get aliases %.60s` "
                                     "lists them; a version is named as v3",
                                     model, alias, model);
}

weir_status cli_model_version(struct cli_call *call, const char *model, const char *version,
                              int64_t *out, struct weir_error *err)
{
    if (version == NULL) {
        return newest(call, model, out, err);
    }
    *out = number_of(version);
    return *out > 0 ? WEIR_OK : by_alias(call, model, version, out, err);
}

weir_status cli_model_words(struct cli_call *call, bool *out_is_version, struct weir_error *err)
{
    char **words = WEIR_ARENA_ARRAY(call->arena, 2, char *), *version;
    int64_t number;
    WEIR_TRY(cli_model_split(call, call->words[0], &words[0], &version, err));
    if (version != NULL) {
        WEIR_TRY(cli_model_version(call, words[0], version, &number, err));
        words[1] = weir_arena_printf(call->arena, "%lld", (long long)number);
    }
    call->words = words;
    call->n_words = version != NULL ? 2 : 1;
    *out_is_version = version != NULL;
    return WEIR_OK;
}

weir_status cli_model_record(struct cli_call *call, const char *model, int64_t version,
                             json_t **out, struct weir_error *err)
{
    char *number = weir_arena_printf(call->arena, "%lld", (long long)version);
    return cli_rest(call, "GET", cli_path2(call, "/api/v1/models/{}/versions/{}", model, number),
                    NULL, out, err);
}
