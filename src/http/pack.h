/**
 * Answers made smaller: gzip (RFC 1952), for clients that take it (RFC 9110, section 12.5.3).
 *
 * What is packed: whole answers (200) to GET that are text or JSON in memory, from PACK_MIN_BYTES to
 * PACK_MAX_BYTES. Files, parts of files, streams of events and what is forwarded go as they are.
 *
 * The length of a packed answer tells a listener on the line how alike its parts are: an attacker who can put a guess
 * into an answer beside a secret can find the secret (BREACH). Here nobody else can have an answer made: the
 * session's cookie is SameSite=Strict and a token is a header, so that no other site's page can send a request
 * that is answered with data. And no packed answer holds a secret: those that do are answers to other methods
 * than GET, or are marked (weir_http_response_keep_plain).
 */
#ifndef WEIR_HTTP_PACK_H
#define WEIR_HTTP_PACK_H

#include <stdbool.h>
#include <stddef.h>

#define PACK_MIN_BYTES ((size_t)1024) /* shorter ones are one packet either way */
#define PACK_MAX_BYTES ((size_t)32 << 20)

/** Does a client with this Accept-Encoding take gzip? NULL: no. Its weight counts for nothing but 0. */
bool http_takes_gzip(const char *accept_encoding);

/**
 * The bytes as one member of gzip, without name and time.
 *
 * @param level  Of zlib, 1 to 9.
 * @param out    malloc'd, the caller's; NULL: no memory, or it would not be smaller.
 * Cost: of a megabyte of records 3 ms at level 3, which makes an eighth of it, and 12 ms at level 9, which makes a
 * ninth; 256 KiB while it works.
 */
char *http_gzip(const void *bytes, size_t len, int level, size_t *out_len);

struct http_exchange;

/** Is its answer a whole one (200) to GET or HEAD, in memory, of PACK_MIN_BYTES at least, that holds no secret? */
bool response_is_whole(const struct http_exchange *x);

/** Pack the exchange's answer if it is one of those above and its client takes it. On a handler thread. */
void response_pack(struct http_exchange *x);

#endif
