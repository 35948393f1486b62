/** weir model get: a model file from the registry. */
#include "cli/command.h"

#include "base/file.h"

#include <string.h>

struct model_options {
    struct cli_common common;
    int64_t version;
    char *file;
    bool is_forced;
};

static const struct weir_option model_options[] = {
    CLI_COMMON_OPTIONS(model_options),
    WEIR_OPT(model_options, version, "version", 'v', INT, "0", 0, 1e15, "N",
             "Version of the model (0: the newest)"),
    WEIR_OPT(model_options, file, "file", 'f', TEXT, NULL, 0, 0, "FILE",
             "Where to put it (else NAME-VERSION.safetensors)"),
    WEIR_OPT(model_options, is_forced, "force", 0, BOOL, NULL, 0, 0, NULL,
             "Overwrite a file that is there"),
};

/* The newest version's number. */
static weir_status newest_version(struct cli_call *call, const char *model, int64_t *out,
                                  struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/models/{}/versions", model), NULL,
                      &answer, err));
    *out = 0;
    size_t i;
    json_t *version;
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

static weir_status run_model_get(struct cli_call *call, struct weir_error *err)
{
    const struct model_options *options = call->options;
    const char *model = call->words[0];
    int64_t version = options->version;
    json_t *record;
    if (version == 0) {
        WEIR_TRY(newest_version(call, model, &version, err));
    }
    char *number = weir_arena_printf(call->arena, "%lld", (long long)version);
    WEIR_TRY(cli_rest(call, "GET", cli_path2(call, "/api/v1/models/{}/versions/{}", model, number),
                      NULL, &record, err));
    char *blob = cli_text(call, record, "blob");
    char *file = options->file != NULL
                     ? weir_arena_strdup(call->arena, options->file)
                     : weir_arena_printf(call->arena, "%s-%s.safetensors", model, number);
    if (weir_path_exists(file) && !options->is_forced) {
        json_decref(record);
        return weir_error_set(err, WEIR_ERR_EXISTS,
                              "%s is there already: --force overwrites it, --file names another",
                              file);
    }
    weir_status status = weir_client_blob_get(call->client, blob, file, err);
    if (status == WEIR_OK && cli_is_json(call)) {
        json_object_set_new(record, "file", json_string(file));
        cli_print_json(record);
    } else if (status == WEIR_OK) {
        printf("%s: %s version %s, %s bytes, SHA-256 %s\n", file, model, number,
               cli_text(call, record, "bytes"), blob);
    }
    json_decref(record);
    return status;
}

const struct cli_command cli_model_get = {
    .name = "model get",
    .usage = "NAME [--version N] [--file FILE] [-o json]",
    .summary = "Fetch a model file from the registry, checked by its digest",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(model_options, model_options),
    .run = run_model_get,
};
