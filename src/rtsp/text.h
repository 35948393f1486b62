/** Text that somebody else wrote, in place: a part of a message, without an end of its own. Pure. */
#ifndef WEIR_RTSP_TEXT_H
#define WEIR_RTSP_TEXT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rtsp_text {
    const char *at; /**< Never NULL. */
    size_t n;
};

struct rtsp_text rtsp_text_of(const char *text);

/** Without blanks at both ends. */
struct rtsp_text rtsp_text_trim(struct rtsp_text text);

/** Equal, but for case; begins so, but for case. */
bool rtsp_text_is(struct rtsp_text text, const char *word);
bool rtsp_text_begins(struct rtsp_text text, const char *word);

/** The part before the first `end`; *rest goes on behind it. A text without one is the whole part. */
struct rtsp_text rtsp_text_cut(struct rtsp_text *rest, char end);

/** The next line without its end (LF, CR LF). false: there is none. */
bool rtsp_text_line(struct rtsp_text *rest, struct rtsp_text *out_line);

/**
 * The next parameter of a list such as `a=1; b="x;y"; c`. Quotes around a value are taken off; what is escaped in it
 * stays so. A parameter without "=" has an empty value. false: there is none.
 */
bool rtsp_text_parameter(struct rtsp_text *rest, char separator, struct rtsp_text *out_name,
                         struct rtsp_text *out_value);

/** The value of the first parameter of this name. false: there is none. */
bool rtsp_text_find(struct rtsp_text list, char separator, const char *name,
                    struct rtsp_text *out_value);

/** The digits at its begin as a number, at most `most`; -1: there are none, or it is more. */
int64_t rtsp_text_number(struct rtsp_text text, int64_t most);

/** A copy with a NUL. @return LIMIT: it has no room; INVALID: it has control characters. */
weir_status rtsp_text_copy(struct rtsp_text text, char *out, size_t size) WEIR_MUST_CHECK;

#endif
