#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct status_row {
    const char *name, *text;
    int http, exit;
    bool may_retry;
};

static const struct status_row rows[WEIR_STATUS_COUNT] = {
#define X(row_name, row_text, row_http, row_exit, row_retry)                                       \
    {#row_name, row_text, row_http, row_exit, row_retry},
#include "base/status.def"
#undef X
};

static const struct status_row *row_of(weir_status status)
{
    static const struct status_row unknown = {"UNKNOWN", "unknown status", 500, 70, true};
    return status <= 0 && status > -WEIR_STATUS_COUNT ? &rows[-status] : &unknown;
}

const char *weir_status_text(weir_status status)
{
    return row_of(status)->text;
}

const char *weir_status_name(weir_status status)
{
    return row_of(status)->name;
}

weir_status weir_status_from_name(const char *name)
{
    for (int i = 0; i < WEIR_STATUS_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return -i;
        }
    }
    return WEIR_ERR_INTERNAL;
}

int weir_status_http(weir_status status)
{
    return row_of(status)->http;
}

int weir_status_exit(weir_status status)
{
    return row_of(status)->exit;
}

bool weir_exit_is_permanent(int64_t exit_code)
{
    bool is_known = false;
    for (int i = 0; i < WEIR_STATUS_COUNT; i++) {
        if (exit_code != 0 && rows[i].exit == exit_code) {
            is_known = true;
            if (rows[i].may_retry) {
                return false;
            }
        }
    }
    return is_known;
}

weir_status weir_status_from_errno(int errno_value)
{
    switch (errno_value) {
    case 0:
        return WEIR_OK;
    case ENOENT:
    case ENOTDIR:
        return WEIR_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case ELOOP: /* a link where none may be */
        return WEIR_ERR_DENIED;
    case ENOSPC:
    case EDQUOT:
        return WEIR_ERR_NOSPACE;
    case ENOMEM:
        return WEIR_ERR_NOMEM;
    case EEXIST:
        return WEIR_ERR_EXISTS;
    case ETIMEDOUT:
        return WEIR_ERR_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case EFBIG:
        return WEIR_ERR_LIMIT;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return WEIR_ERR_UNAVAILABLE;
    case ECONNRESET:
    case EPIPE:
        return WEIR_ERR_PEER;
    default:
        return WEIR_ERR_IO;
    }
}

/* A message that does not fit ends with "…", so that nobody takes it for the whole. */
static void mark_cut(char *message, int wanted_len)
{
    static const char ellipsis[] = "…";
    if (wanted_len >= WEIR_ERROR_MESSAGE_BYTES) {
        memcpy(message + WEIR_ERROR_MESSAGE_BYTES - sizeof ellipsis, ellipsis, sizeof ellipsis);
    }
}

weir_status weir_error_set(struct weir_error *err, weir_status status, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        int len = vsnprintf(err->message, sizeof err->message, fmt, args);
        va_end(args);
        mark_cut(err->message, len);
        err->status = status;
    }
    return status;
}

weir_status weir_error_set_errno(struct weir_error *err, int errno_value, const char *fmt, ...)
{
    weir_status status = weir_status_from_errno(errno_value);
    if (err != NULL) {
        char message[WEIR_ERROR_MESSAGE_BYTES];
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(message, sizeof message, fmt, args);
        va_end(args);
        (void)weir_error_set(err, status, "%s: %s", message, strerror(errno_value));
    }
    return status;
}

weir_status weir_error_prefix(struct weir_error *err, const char *fmt, ...)
{
    if (err == NULL) {
        return WEIR_ERR_INTERNAL;
    }
    char prefix[WEIR_ERROR_MESSAGE_BYTES], message[WEIR_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(prefix, sizeof prefix, fmt, args);
    va_end(args);
    memcpy(message, err->message, sizeof message);
    return weir_error_set(err, err->status, "%s%s", prefix, message);
}
