/** What the commands about alerts share. */
#ifndef WEIR_CLI_ALERT_H
#define WEIR_CLI_ALERT_H

#include "cli/command.h"

/** Put the members of a YAML or JSON file into an object. */
weir_status alert_read_file(struct cli_call *call, const char *path, json_t *into,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Make the name the second word, which is given or stands in the body; `what` is the noun. */
weir_status alert_name(struct cli_call *call, const json_t *body, const char *what,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Set a member to the words of a LIST option; NULL: no change; empty words only: the member is taken
 *  out, which is "any" or "none". */
void alert_put_list(struct cli_call *call, json_t *object, const char *member, const char *list);

/** Set a member to milliseconds; NULL: no change. */
weir_status alert_put_span(json_t *object, const char *member, const char *flag, const char *text,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
