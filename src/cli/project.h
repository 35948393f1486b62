/** weir project: options, and the verbs about how long things are kept. */
#ifndef WEIR_CLI_PROJECT_H
#define WEIR_CLI_PROJECT_H

#include "cli/command.h"

struct cli_project_options {
    struct cli_common common;
    char *description, *role, *retention;
    bool is_group, is_dry_run;
};

/** weir project set NAME --retention KIND=AGE … [--dry-run] */
weir_status cli_project_set(struct cli_call *call, struct weir_error *err);

/** weir project retention NAME */
weir_status cli_project_retention(struct cli_call *call, struct weir_error *err);

/** weir store bounds [KIND=MIN..MAX …] */
weir_status cli_store_bounds(struct cli_call *call, struct weir_error *err);

#endif
