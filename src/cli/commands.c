/** The list of commands, in the order help shows them. */
#include "cli/cli_private.h"

extern const struct cli_command cli_server, cli_agent, cli_doctor, cli_demo, cli_train,
    cli_evaluate, cli_apply, cli_get, cli_describe, cli_approve, cli_reject, cli_rollback,
    cli_trigger, cli_logs, cli_delete, cli_member, cli_dataset, cli_job, cli_login, cli_project,
    cli_user, cli_token, cli_session, cli_simulate, cli_what_if, cli_bench;

const struct cli_command *const cli_commands[] = {
    &cli_server,  &cli_demo,   &cli_doctor,   &cli_train,   &cli_evaluate, &cli_dataset,
    &cli_apply,   &cli_get,    &cli_describe, &cli_approve, &cli_reject,   &cli_rollback,
    &cli_trigger, &cli_member, &cli_logs,     &cli_delete,  &cli_job,      &cli_login,
    &cli_project, &cli_user,   &cli_token,    &cli_session, &cli_agent,    &cli_simulate,
    &cli_what_if, &cli_bench,
};

const size_t cli_n_commands = WEIR_ARRAY_LEN(cli_commands);
