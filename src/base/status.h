/**
 * Status and error: how every function of Weir says what went wrong.
 *
 * A function returns `weir_status`: WEIR_OK (0) or a negative value of the one list in status.def,
 * which also gives the HTTP status and the exit status of the command line. Control-plane functions
 * take a `struct weir_error *err` as their last argument and fill it with a sentence for the person
 * at the screen: what, where, and what to do. Data-plane functions return the status alone, or take
 * an err where input from outside is read. Outputs are written only on success.
 *
 * `err` may be NULL everywhere. An error has fixed size and owns nothing.
 */
#ifndef WEIR_BASE_STATUS_H
#define WEIR_BASE_STATUS_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

typedef int weir_status;

enum weir_status_index {

#define X(name, text, http, exit, retry) WEIR_STATUS_INDEX_##name,
#include "base/status.def"
#undef X
    WEIR_STATUS_COUNT
};

enum {

#define X(name, text, http, exit, retry) WEIR_STATUS_##name = -(int)WEIR_STATUS_INDEX_##name,
#include "base/status.def"
#undef X
};

#define WEIR_OK              WEIR_STATUS_OK
#define WEIR_ERR_INVALID     WEIR_STATUS_INVALID
#define WEIR_ERR_NOT_FOUND   WEIR_STATUS_NOT_FOUND
#define WEIR_ERR_CONFLICT    WEIR_STATUS_CONFLICT
#define WEIR_ERR_DENIED      WEIR_STATUS_DENIED
#define WEIR_ERR_UNAUTH      WEIR_STATUS_UNAUTH
#define WEIR_ERR_UNSUPPORTED WEIR_STATUS_UNSUPPORTED
#define WEIR_ERR_NOMEM       WEIR_STATUS_NOMEM
#define WEIR_ERR_IO          WEIR_STATUS_IO
#define WEIR_ERR_NOSPACE     WEIR_STATUS_NOSPACE
#define WEIR_ERR_CORRUPT     WEIR_STATUS_CORRUPT
#define WEIR_ERR_TIMEOUT     WEIR_STATUS_TIMEOUT
#define WEIR_ERR_PEER        WEIR_STATUS_PEER
#define WEIR_ERR_UNAVAILABLE WEIR_STATUS_UNAVAILABLE
#define WEIR_ERR_LIMIT       WEIR_STATUS_LIMIT
#define WEIR_ERR_EXISTS      WEIR_STATUS_EXISTS
#define WEIR_ERR_CANCELLED   WEIR_STATUS_CANCELLED
#define WEIR_ERR_END         WEIR_STATUS_END
#define WEIR_ERR_INTERNAL    WEIR_STATUS_INTERNAL

#define WEIR_ERROR_MESSAGE_BYTES 512

struct weir_error {
    weir_status status;
    char message[WEIR_ERROR_MESSAGE_BYTES]; /**< A complete sentence; cut with "…" if longer. */
};

/** The text of a status ("not found"); "unknown status" for a value outside the list. */
const char *weir_status_text(weir_status status);

/** The list's name of a status ("NOT_FOUND"); "UNKNOWN" for a value outside the list. */
const char *weir_status_name(weir_status status);

/** The status with this name, or WEIR_ERR_INTERNAL if the list has none. */
weir_status weir_status_from_name(const char *name);

/** The HTTP status an API answers with (500 for a value outside the list). */
int weir_status_http(weir_status status);

/** The exit status of a command that ends with this status (70 for a value outside the list). */
int weir_status_exit(weir_status status);

/**
 * Would a second try of the same end alike: does every status with this exit status say so? For
 * programs of ours; false for 0 and for an exit status outside the list.
 */
bool weir_exit_is_permanent(int64_t exit_code);

/** What shells, and our agents, end with when a program may not be run, or is not there. */
#define WEIR_EXIT_NOT_RUN   126
#define WEIR_EXIT_NOT_FOUND 127

/** The status that fits an errno value (ENOENT → NOT_FOUND, ENOSPC → NOSPACE …, else IO). */
weir_status weir_status_from_errno(int errno_value);

/**
 * Fill `err` (if not NULL) and return `status`, so that a function can write
 * `return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected integer", path);`.
 */
weir_status weir_error_set(struct weir_error *err, weir_status status, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

/** As weir_error_set with the status of `errno_value`, and ": <strerror>" appended. */
weir_status weir_error_set_errno(struct weir_error *err, int errno_value, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

/** Put a prefix before the message already in `err` ("reading model.yaml: " …). Returns status. */
weir_status weir_error_prefix(struct weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

#endif
