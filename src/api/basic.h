/**
 * User names and passwords that come with every request (RFC 7617), as programs send them that know no
 * tokens. Checking a password takes a tenth of a second by intent (store/password.h), so a pair that was
 * right is remembered for some minutes, as a keyed hash of name, password and what the user's row had
 * then: a password that is changed is asked for at once. Wrong ones are never remembered, and are held
 * back as those of the login are. A token may stand in the password's place.
 *
 * Any thread.
 */
#ifndef WEIR_API_BASIC_H
#define WEIR_API_BASIC_H

#include "base/status.h"

#define BASIC_KEEP_MS  ((int64_t)5 * 60 * 1000)
#define BASIC_KEPT_MAX 256

struct api_call;
struct basic;

struct basic *basic_create(void);
void basic_destroy(struct basic *basic); /**< NULL is accepted. */

/**
 * Identify the caller by the value of "Authorization: Basic …".
 * @return UNAUTH; UNAVAILABLE while too many passwords are being checked.
 */
weir_status basic_identify(struct api_call *call, const char *credentials,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
