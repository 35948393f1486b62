/** weir model get: a model file from the registry. */
#include "cli/track/model_name.h"

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
    CLI_TEXT(model_options, file, "file", 'f', "FILE",
             "Where to put it (else NAME-VERSION.safetensors)"),
    CLI_FLAG(model_options, is_forced, "force", 0, "Overwrite a file that is there"),
};

static weir_status run_model_get(struct cli_call *call, struct weir_error *err)
{
    const struct model_options *options = call->options;
    const char *model = call->words[0];
    int64_t version = options->version;
    WEIR_AUTO(weir_json_auto_free) json_t *record = NULL;
    if (version == 0) {
        WEIR_TRY(cli_model_version(call, model, NULL, &version, err));
    }
    WEIR_TRY(cli_model_record(call, model, version, &record, err));
    char *blob = cli_text(call, record, "blob");
    char *file = options->file != NULL ? weir_arena_strdup(call->arena, options->file)
                                       : weir_arena_printf(call->arena, "%s-%lld.safetensors",
                                                           model, (long long)version);
    WEIR_TRY(cli_may_write(file, options->is_forced, err));
    WEIR_TRY(weir_client_blob_get(call->client, blob, file, err));
    json_object_set_new(record, "file", json_string(file));
    cli_print_said(call, record,
                   weir_arena_printf(call->arena, "%s: %s version %lld, %s bytes, SHA-256 %s", file,
                                     model, (long long)version, cli_text(call, record, "bytes"),
                                     blob));
    return WEIR_OK;
}

const struct cli_command cli_model_get = {
    .name = "model get",
    .usage = "NAME [--version N] [--file FILE] [-o json]",
    .summary = "Fetch a model file from the registry, checked by its digest",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(model_options, model_options),
    .run = run_model_get,
};
