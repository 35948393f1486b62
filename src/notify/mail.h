/**
 * A message as a letter (RFC 5322), from which no text can break out: every header value is either
 * checked (addresses) or encoded (RFC 2047), the body is base64. Pure.
 */
#ifndef WEIR_NOTIFY_MAIL_H
#define WEIR_NOTIFY_MAIL_H

#include "base/arena.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

struct notify_mail {
    const char *from;
    const json_t *to; /**< Array of addresses. */
    const char *delivery;
    const json_t *message;
    int64_t now_ms;
};

/** "NAME@HOST" of printable ASCII without blanks, quotes, brackets, commas, colons and semicolons. */
bool notify_address_is_valid(const char *address);

/** The letter, each line ended by CR LF, in the arena. */
char *notify_mail_make(const struct notify_mail *mail, struct weir_arena *arena);

#endif
