/** The address of a camera's stream, taken apart; and those of its parts. Pure. */
#ifndef WEIR_RTSP_ADDRESS_H
#define WEIR_RTSP_ADDRESS_H

#include "rtsp.h"
#include "text.h"

#define RTSP_HOST_BYTES       256
#define RTSP_CREDENTIAL_BYTES 128
#define RTSP_URL_BYTES        (WEIR_RTSP_URL_MAX_BYTES + 1)

struct rtsp_address {
    char host[RTSP_HOST_BYTES]; /**< Without the brackets of IPv6. */
    int port;
    char user[RTSP_CREDENTIAL_BYTES], password[RTSP_CREDENTIAL_BYTES]; /**< Empty: none. */
    char url[RTSP_URL_BYTES]; /**< For requests: without user and password. */
};

/** @return INVALID or UNSUPPORTED (rtsps) with a sentence that repeats nothing of it. */
weir_status rtsp_address_parse(const char *url, struct rtsp_address *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The address of a part of what `base` describes: `control` itself if it is whole, `base` if it is "*" or empty, else
 * appended, as all servers expect it. @return LIMIT, INVALID: as rtsp_text_copy.
 */
weir_status rtsp_address_of_part(const char *base, struct rtsp_text control,
                                 char out[RTSP_URL_BYTES]) WEIR_MUST_CHECK;

#endif
