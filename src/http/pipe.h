/** The server's side of a pipe: to hold a connection for exactly as long as the pipe asks for it. */
#ifndef WEIR_HTTP_PIPE_H
#define WEIR_HTTP_PIPE_H

#include "http/stream.h"

/** Call fn under the lock, and return true, if there is nothing to read and more may come; so no wake of
 *  the watcher comes between the look and the call. */
bool pipe_if_empty(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context);
/** The same if there is no room, and the reader wants more. */
bool pipe_if_full(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context);

#endif
