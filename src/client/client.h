/**
 * REST client of the Weir server, for the command line, the agent and the workers.
 *
 * It finds the server and the token as docs/architecture.md says (explicit value, else $WEIR_SERVER
 * / $WEIR_TOKEN read by the caller's options, else the state folder's server.json / admin.token),
 * speaks JSON, and turns the server's {"error":{"status","message"}} back into the weir_error that
 * the server had: a CLI user reads the server's own sentence.
 *
 *     struct weir_client *client;
 *     WEIR_TRY(weir_client_open(&(struct weir_client_config){.state_dir = dir}, &client, err));
 *     json_t *reply;
 *     WEIR_TRY(weir_client_call(client, "GET", "/api/v1/jobs?limit=10", NULL, &reply, err));
 *
 * Threads: a client belongs to one thread at a time (open one per thread; they are cheap). Only
 * weir_client_cancel may be called from another. Paths start with "/" and are sent as given: encode
 * parts with weir_client_path.
 */
#ifndef WEIR_CLIENT_CLIENT_H
#define WEIR_CLIENT_CLIENT_H

#include "base/arena.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_client;

/** NULL or 0 means absent or default. Strings are copied. */
struct weir_client_config {
    const char *server; /**< "http://127.0.0.1:8440"; NULL: url of state_dir/server.json. */
    const char *token;  /**< NULL: token_file; NULL too: state_dir/admin.token if it is readable. */
    const char *token_file; /**< File whose first line is the token. */
    const char *state_dir;  /**< The server's state folder. */
    const char *ca_file;    /**< Authorities to trust for https; NULL: the system's. */
    int64_t timeout_ms;     /**< Of one call; 0: 30 s. */
};

/**
 * Nothing is sent yet.
 * @return UNAVAILABLE if no server is named and none runs from state_dir ("start one with `weir
 *         server`, or name one with --server"); INVALID, DENIED, IO for files that cannot be used.
 */
weir_status weir_client_open(const struct weir_client_config *config, struct weir_client **out,
                             struct weir_error *err) WEIR_MUST_CHECK;
void weir_client_close(struct weir_client *client);

/** "http://127.0.0.1:8440", no slash at the end. */
const char *weir_client_server(const struct weir_client *client);

/** The token that it shows, borrowed; NULL: none. For whoever hands it on to another program of the same person. */
const char *weir_client_token(const struct weir_client *client);

/** End the call in progress, or else the next one, with CANCELLED. Any thread. */
void weir_client_cancel(struct weir_client *client);

/** Change the timeout of later calls. */
void weir_client_set_timeout(struct weir_client *client, int64_t timeout_ms);

/**
 * Path from a pattern in which each "{}" is replaced by the next text, percent-encoded:
 * weir_client_path(arena, "/api/v1/jobs/{}/cancel", (const char *[]){id}, 1). Asserts the count.
 */
char *weir_client_path(struct weir_arena *arena, const char *pattern, const char *const *values,
                       size_t n_values);

/**
 * One call. `body` is borrowed, NULL for none. *out (may be NULL) is the parsed answer, a new
 * reference; JSON null for an empty answer.
 * @return the server's own status and sentence for an HTTP error; UNAVAILABLE, TIMEOUT, PEER,
 *         CANCELLED if there was no answer; CORRUPT if it is not JSON.
 */
weir_status weir_client_call(struct weir_client *client, const char *method, const char *path,
                             const json_t *body, json_t **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * As weir_client_call, and the parsed body of an HTTP error too. `out_http` and `out` may each be
 * NULL; both are written whenever there was an answer, of whatever status (*out NULL if an error's
 * body is not JSON).
 */
weir_status weir_client_call_raw(struct weir_client *client, const char *method, const char *path,
                                 const char *content_type, const void *body, size_t body_len,
                                 int *out_http, json_t **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** GET of bytes that are no JSON (a log, an image): appended to `out` up to its maximum.
 *  *out_offset (may be NULL): value of the header X-Weir-Offset, or -1. */
weir_status weir_client_get_bytes(struct weir_client *client, const char *path,
                                  struct weir_buf *out, int64_t *out_offset,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** PUT or POST a file's bytes. *out as in weir_client_call. No time limit but 60 s of silence,
 *  and after it as long as a slow disk takes for the file. */
weir_status weir_client_send_file(struct weir_client *client, const char *method, const char *path,
                                  const char *content_type, const char *file, json_t **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** GET bytes into `file`, which is there whole or not at all. No time limit but 60 s of silence. */
weir_status weir_client_get_file(struct weir_client *client, const char *path, const char *file,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** PUT /api/v1/blobs/{sha256} of a file, unless the server has it (HEAD). out_sha256: 65 bytes. */
weir_status weir_client_blob_put(struct weir_client *client, const char *file, char *out_sha256,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The same of a model's file. @return INVALID if its first bytes are no model's: nothing was sent. */
weir_status weir_client_model_put(struct weir_client *client, const char *file, char *out_sha256,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * GET /api/v1/blobs/{sha256} into `file`: a temporary file beside it, verified, then renamed.
 * @return CORRUPT if the bytes do not have this digest (nothing is left), else as weir_client_call.
 */
weir_status weir_client_blob_get(struct weir_client *client, const char *sha256, const char *file,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The same for a cache: the disk is not waited for. After a loss of power the file may be damaged. */
weir_status weir_client_blob_cache(struct weir_client *client, const char *sha256, const char *file,
                                   struct weir_error *err) WEIR_MUST_CHECK;

struct weir_http_tunnel;

/**
 * GET `path` and make of its connection one of `protocol` (http/tunnel.h), which outlives the client.
 * @param header  One more line of the request, "Name: value"; NULL: none.
 * @return the server's own status and sentence if it answers otherwise.
 */
weir_status weir_client_upgrade(struct weir_client *client, const char *path, const char *protocol,
                                const char *header, struct weir_http_tunnel **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Would the same call, made again later, possibly succeed? UNAVAILABLE, TIMEOUT, PEER, NOMEM. */
bool weir_client_can_retry(weir_status status);

/**
 * weir_client_call that is made again while weir_client_can_retry, until deadline_ms (from now) is
 * over. Only for calls that may be done twice: GET, PUT, DELETE, and POST documented as idempotent.
 */
weir_status weir_client_call_retry(struct weir_client *client, const char *method, const char *path,
                                   const json_t *body, int64_t deadline_ms, json_t **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
