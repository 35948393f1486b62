/** weir model delete: a version, or a model with all of them. */
#include "cli/model_name.h"

struct delete_options {
    struct cli_common common;
};

static const struct weir_option delete_options[] = {CLI_COMMON_OPTIONS(delete_options)};

static void say(struct cli_call *call, const char *name, int64_t version)
{
    if (cli_is_json(call)) {
        cli_print_change(version == 0 ? json_pack("{s:s,s:b}", "model", name, "deleted", 1)
                                      : json_pack("{s:s,s:I,s:b}", "model", name, "version",
                                                  (json_int_t)version, "deleted", 1));
    } else if (version == 0) {
        printf("%s: deleted with all its versions\n", name);
    } else {
        printf("%s version %lld: deleted; its file goes with the next sweep\n", name,
               (long long)version);
    }
}

static weir_status run_delete(struct cli_call *call, struct weir_error *err)
{
    char *name, *word;
    int64_t version = 0;
    const char *path;
    WEIR_TRY(cli_model_split(call, call->words[0], &name, &word, err));
    if (word != NULL) {
        WEIR_TRY(cli_model_version(call, name, word, &version, err));
        path = cli_path2(call, "/api/v1/models/{}/versions/{}", name,
                         weir_arena_printf(call->arena, "%lld", (long long)version));
    } else {
        path = cli_path1(call, "/api/v1/models/{}", name);
    }
    WEIR_TRY(cli_rest(call, "DELETE", path, NULL, NULL, err));
    say(call, name, version);
    return WEIR_OK;
}

const struct cli_command cli_model_delete = {
    .name = "model delete",
    .usage = "NAME[@v3|@ALIAS]",
    .summary = "Delete a version of a model that nothing uses, or a model with all its versions",
    .help =
        "Refused while an alias names it, a deployment has it loaded, or an ION serves it, waits "
        "with it or\nwould come back to it. What tells of it stays: runs, candidates, decisions; "
        "its file goes.",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(delete_options, delete_options),
    .run = run_delete,
};
