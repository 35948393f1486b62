/** What the ways to log in share. */
#ifndef WEIR_API_LOGIN_H
#define WEIR_API_LOGIN_H

#include "api/call.h"

/** Begin a session of who the link names: `by` is what proved it. */
weir_status login_begin_session(struct api_call *call, struct weir_txn *txn,
                                const struct weir_login_link *link, const char *by,
                                char secret[WEIR_SECRET_BYTES],
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Give the session's cookie to the browser. */
void login_set_cookie(struct api_call *call, const char *secret);

/** DENIED if another site's page sent the request. */
weir_status login_check_origin(const struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

#endif
