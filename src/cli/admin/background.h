/** A command that goes on in the background, and a caller that waits until it is ready. */
#ifndef WEIR_CLI_BACKGROUND_H
#define WEIR_CLI_BACKGROUND_H

#include "base/status.h"

/**
 * Fork. The child returns, in a session of its own, with standard input and output at /dev/null, to become what it
 * shall be, and calls cli_background_ready. The caller's process ends here: with status 0 when the
 * child is ready, else with the child's own status when it ends. It is for processes of one thread.
 * @param out_fd  What the child tells its readiness by.
 * @return IO if the child cannot be made.
 */
weir_status cli_background_start(int *out_fd, struct weir_error *err) WEIR_MUST_CHECK;

/** Tell it, once; the descriptor is closed. */
void cli_background_ready(int fd);

#endif
