/** weir project: options, and the verbs about how long things are kept. */
#ifndef WEIR_CLI_PROJECT_H
#define WEIR_CLI_PROJECT_H

#include "cli/core/verb.h"

struct cli_project_options {
    struct cli_common common;
    char *description, *role, *retention;
    bool is_group, is_dry_run;
};

/** weir project set NAME --retention KIND=AGE … [--dry-run] */
weir_status cli_project_set(struct cli_call *call, struct weir_error *err);

#define CLI_PROJECT_RETENTION "/api/v1/projects/{1}/retention"

/** How long a project keeps things, and below it its pipelines with a time of their own. */
void cli_print_retention(struct cli_call *call, const json_t *answer);

/** Add "KIND=VALUE" to a body. @return INVALID with the example. */
weir_status cli_retention_word(struct cli_call *call, const char *word, const char *example,
                               json_t *body, struct weir_error *err) WEIR_MUST_CHECK;

#endif
