/** weir model delete: a version, or a model with all of them. */
#include "cli/core/verb.h"
#include "cli/track/model_name.h"

static weir_status run_delete(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_verb model = {.call = "DELETE /api/v1/models/{0}",
                                          .say = "{0}: deleted with all its versions",
                                          .gives = "model=0 deleted=true"};
    static const struct cli_verb version = {
        .call = "DELETE /api/v1/models/{0}/versions/{1}",
        .say = "{0} version {1}: deleted; its file goes with the next sweep",
        .gives = "model=0 version=#1 deleted=true"};
    bool is_version;
    WEIR_TRY(cli_model_words(call, &is_version, err));
    return cli_verb_run(call, is_version ? &version : &model, err);
}

const struct cli_command cli_model_delete = {
    .name = "model delete",
    .usage = "NAME[@v3|@ALIAS]",
    .summary = "Delete a version of a model that nothing uses, or a model with all its versions",
    .help =
        "Refused while an alias names it, a deployment has it loaded, or an ION serves it, waits "
        "with it or\nwould come back to it. What tells of it stays: runs, candidates, decisions; "
        "its file goes.",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_delete,
};
