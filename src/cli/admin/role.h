/** The matrix of all roles and rights, which `weir explain roles` prints. */
#ifndef WEIR_CLI_ROLE_H
#define WEIR_CLI_ROLE_H

#include "cli/command.h"

weir_status role_explain_all(struct cli_call *call, struct weir_error *err) WEIR_MUST_CHECK;

#endif
