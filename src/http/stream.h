/**
 * Streams: bodies of any length in bounded memory, and connections that stop being HTTP.
 *
 * A *pipe* holds some bytes on their way from one thread to another, of which one is an I/O thread of
 * the server; it never holds more than its size. The writer is told how much was taken and is woken
 * when there is room again; the reader is woken when there are bytes. On the server's side a full or
 * an empty pipe suspends the connection, so that what a slow side does not take stays in the sockets.
 *
 *     body     rule.to_pipe: request->body_pipe is there when `admit` is called, and the body comes
 *              into it after that. The handler is called when the body is whole, as ever.
 *     answer   weir_http_response_stream: sent as it comes into the pipe.
 *     upgrade  weir_http_response_upgrade: after the 101 the socket is the caller's.
 *
 * Whoever else has an end of a pipe must have ended or closed it, and have closed what was upgraded,
 * before weir_http_server_stop: that waits for the upgraded ones without a limit.
 *
 * Slowness: a client that takes less than 4 KiB/s of an answer that is there, in any idle_timeout_s,
 * is cut; so is one that sends its body so slowly. While the other side is slow nobody is cut.
 */
#ifndef WEIR_HTTP_STREAM_H
#define WEIR_HTTP_STREAM_H

#include "http/http.h"

#define WEIR_HTTP_PIPE_BYTES ((size_t)64 << 10)

struct weir_http_pipe;

/** Called with the pipe locked: it must call nothing of the pipe, nor wait. Any thread. */
typedef void (*weir_http_pipe_fn)(void *context);

/** One reference. Memory is taken when the first byte comes. */
struct weir_http_pipe *weir_http_pipe_create(size_t max_bytes);
struct weir_http_pipe *weir_http_pipe_ref(struct weir_http_pipe *pipe);
/** NULL is accepted. */
void weir_http_pipe_unref(struct weir_http_pipe *pipe);

/** Writer: how many bytes were taken; fewer than `len` if there is no more room. After a close all
 *  are taken, and dropped. */
size_t weir_http_pipe_write(struct weir_http_pipe *pipe, const void *bytes, size_t len);
/** Writer: how many bytes would be taken now. */
size_t weir_http_pipe_room(struct weir_http_pipe *pipe);
/** Writer: no more comes. WEIR_OK: it is whole; else why it is not. The first call counts. */
void weir_http_pipe_end(struct weir_http_pipe *pipe, weir_status status);

/** Reader: 0 if there is nothing now. */
size_t weir_http_pipe_read(struct weir_http_pipe *pipe, void *out, size_t size);
/** Reader: has everything been read, and nothing more comes? *out: the status of its end. */
bool weir_http_pipe_is_over(struct weir_http_pipe *pipe, weir_status *out);
/** Reader: wants no more. */
void weir_http_pipe_close(struct weir_http_pipe *pipe);
bool weir_http_pipe_is_closed(struct weir_http_pipe *pipe);

/** What is woken when bytes or the end have come (reader), or room or a close has (writer). NULL: nobody;
 *  when this returns, the one before is not called any more. */
void weir_http_pipe_watch_bytes(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context);
void weir_http_pipe_watch_room(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context);

/**
 * Answer with what comes into the pipe, of which a reference is taken; it is closed when the answer is
 * over, however that comes. Ends with an error in the pipe: the connection is cut, so that the client
 * sees that the answer is not whole.
 *
 * @param n_bytes  As announced to the client; -1: not known (then it is sent in chunks).
 */
void weir_http_response_stream(struct weir_http_response *response, int http_status,
                               int64_t n_bytes, struct weir_http_pipe *pipe);

/** An answer of somebody else's: it gets none of the common headers, and a name may come twice. */
void weir_http_response_foreign(struct weir_http_response *response);
/** Add a header of such an answer. INVALID: a name or value that is none; nothing was added. */
weir_status weir_http_response_foreign_header(struct weir_http_response *response, const char *name,
                                              const char *value);

struct weir_http_upgraded;

/**
 * The 101 was sent. Called on an I/O thread: must not block.
 *
 * @param fd     Non-blocking; the caller's until it closes the handle, never to be closed itself.
 * @param extra  Bytes that came right behind the request; valid during the call.
 */
typedef void (*weir_http_upgrade_fn)(void *context, struct weir_http_upgraded *upgraded, int fd,
                                     const void *extra, size_t extra_len);

/** Answer 101 with "Upgrade: <protocol>"; config.has_upgrades must be set. If the connection breaks
 *  before, fn is not called: request->end_fn is, in any case. */
void weir_http_response_upgrade(struct weir_http_response *response, const char *protocol,
                                weir_http_upgrade_fn fn, void *context);

/** Close the connection. Any thread, once; the descriptor is gone then. */
void weir_http_upgraded_close(struct weir_http_upgraded *upgraded);

/** The i-th header, in the order in which they came; false: there are no more. */
bool weir_http_request_header_at(const struct weir_http_request *request, size_t i,
                                 const char **out_name, const char **out_value);

/** Path and query as they were sent, "/a%2Fb?c"; of the absolute form without scheme and host. */
const char *weir_http_request_target(const struct weir_http_request *request);

#endif
