/** Addresses of programs of somebody else's, as people write them. Pure. */
#ifndef WEIR_BASE_URL_H
#define WEIR_BASE_URL_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** Must be http or https, with a host; without user, password, blanks and control characters.
 *  @param place  Where it stands, for the message: "$.options.url". */
weir_status weir_url_check(const char *url, const char *place,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** A token that is sent there goes into a header: nothing may end that. NULL is accepted. */
weir_status weir_url_check_token(const char *token, const char *place,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Undo percent-encoding: "%40" becomes "@". A "%" without two hexadecimal digits stays.
 * @return False, and out is then undefined: it does not fit with a zero behind it, or has a control character.
 */
bool weir_url_decode(const char *text, size_t len, char *out, size_t size);

#endif
