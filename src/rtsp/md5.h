/**
 * MD5 (RFC 1321), for the Digest authentication of cameras, which know nothing better. It protects nothing: used for
 * nothing else. Pure.
 */
#ifndef WEIR_RTSP_MD5_H
#define WEIR_RTSP_MD5_H

#include <stddef.h>

#define RTSP_MD5_TEXT_BYTES 33

/** MD5 of bytes as 32 hexadecimal digits and a NUL. */
void rtsp_md5(const void *data, size_t len, char out[RTSP_MD5_TEXT_BYTES]);

#endif
