/** What the commands about alerts share. */
#ifndef WEIR_CLI_ALERT_H
#define WEIR_CLI_ALERT_H

#include "cli/command.h"

/** Send a body (its reference is taken; NULL: none) and print the answer. */
weir_status alert_send(struct cli_call *call, const char *method, const char *path, json_t *body,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** An object of a YAML or JSON file; a new reference. */
weir_status alert_read_file(struct cli_call *call, const char *path, json_t **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Set a member to the words of a LIST option; NULL: no change; empty words only: the member is taken
 *  out, which is "any" or "none". */
void alert_put_list(struct cli_call *call, json_t *object, const char *member, const char *list);

/** Set a member to milliseconds; NULL: no change. */
weir_status alert_put_span(json_t *object, const char *member, const char *flag, const char *text,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
