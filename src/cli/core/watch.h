/** weir get --watch: a list that goes on. */
#ifndef WEIR_CLI_WATCH_H
#define WEIR_CLI_WATCH_H

#include "cli/core/noun.h"

/** Loads the list again: {"items": […]}, a new reference. */
typedef weir_status (*cli_watch_fn)(void *context, struct cli_call *call, json_t **out,
                                    struct weir_error *err);

/**
 * Print the list, then, once a second, the rows that are new or another, and those that are gone, until the program
 * is interrupted. Times and free bytes, which change by themselves, make no row another. With -o json or yaml each
 * record is printed, with -o name its name. Memory is bounded by one list.
 *
 * @return What a load answered, but for a server that is away for a while: that is told once, and tried again.
 */
weir_status cli_watch(struct cli_call *call, const struct cli_noun *noun, cli_watch_fn load,
                      void *context, struct weir_error *err) WEIR_MUST_CHECK;

#endif
