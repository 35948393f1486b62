/**
 * The page that a login link opens. Looking at it changes nothing, so that a mail scanner or a
 * preview does not use the link up; its button does, with a POST from this page. It names whose
 * session will begin, so that nobody is logged in as another unawares.
 */
#ifndef WEIR_API_LOGIN_PAGE_H
#define WEIR_API_LOGIN_PAGE_H

#include "api/call.h"

/** 401: why there is no session; a form for name and password, and how to get a link. */
void login_page_refuse(struct api_call *call, const char *why);

/** Is it a page of ours that a login may go on to? */
bool login_is_next(const char *next);

/** 200: the button that logs in as `user`. */
void login_page_offer(struct api_call *call, const char *secret, const char *user);

/**
 * A field of the form that the page sent.
 * @return DENIED if a browser says that another site's page sent it; INVALID if there is none.
 */
weir_status login_page_read_field(struct api_call *call, const char *name, const char **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
