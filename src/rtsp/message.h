/** A message of RTSP as it comes: an answer of the camera, or a request of its own. Pure. */
#ifndef WEIR_RTSP_MESSAGE_H
#define WEIR_RTSP_MESSAGE_H

#include "text.h"

struct rtsp_message {
    int code; /**< An answer has 100 to 999; 0: it is a request. */
    struct rtsp_text headers, body;
};

/**
 * Takes the message that the bytes begin with. It points into them.
 *
 * @param out_used  The message's bytes; 0: it is not whole yet, and *out is not written.
 * @return CORRUPT: it is none of RTSP 1.0; LIMIT: it is larger than WEIR_RTSP_MESSAGE_MAX_BYTES.
 */
weir_status rtsp_message_take(const char *bytes, size_t n, struct rtsp_message *out,
                              size_t *out_used) WEIR_MUST_CHECK;

/** The value of the i-th header of this name, from 0. false: there is none. */
bool rtsp_message_header(const struct rtsp_message *message, const char *name, unsigned i,
                         struct rtsp_text *out);

#endif
