/**
 * Logging in: what a kind of proof (identity/identity.h) proves becomes a browser's session. The page /login shows what
 * each kind that is on draws. Looking at it changes nothing.
 */
#ifndef WEIR_API_LOGIN_H
#define WEIR_API_LOGIN_H

#include "api/core/call.h"

/** A proof of this call's caller, by this way. */
struct weir_identity_ask login_ask(struct api_call *call, const struct weir_identity_way *way);

/** Use up what was proven, and begin a session of it: in a write transaction. */
weir_status login_begin_session(struct api_call *call, struct weir_txn *txn,
                                struct weir_identity_ask *ask,
                                const struct weir_identity_proven *proven,
                                char secret[WEIR_SECRET_BYTES],
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Give the session's cookie to the browser. */
void login_set_cookie(struct api_call *call, const char *secret);

/** DENIED if another site's page sent the request. */
weir_status login_check_origin(const struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- the page (login_page.c) ---------------------------------------------------------------- */

/** "To open this service, log in with your name and password:", of the first kind that draws; NULL as the beginning:
 *  "With your …:". */
const char *login_page_lead(const struct api_call *call, const char *beginning);

/** 401: `why`, and how to log in. */
void login_page_ask(struct api_call *call, const char *why);

/** The same of a proof that was none, of which the audit is told. */
void login_page_refuse(struct api_call *call, const struct weir_identity_way *way, const char *why);

/** 200: what one kind draws, or shows when it begins. */
void login_page_show(struct api_call *call, const char *html);

/** What a kind draws; NULL: nothing. `has_more`: something stands above it. */
const char *login_page_draw(struct api_call *call, const struct weir_identity_way *way,
                            bool has_more);

/** 200: leads on to `next`. For a browser that comes from another site: it sends the session's cookie only to an
 *  address that a page of ours leads to. */
void login_page_lead_on(struct api_call *call, const char *next);

/** Is it a page of ours that a login may go on to? */
bool login_is_next(const char *next);

/** A field of the form that the page sent. @return INVALID if there is none. */
weir_status login_page_read_field(struct api_call *call, const char *name, const char **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
