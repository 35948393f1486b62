/**
 * Unpack: a body in the content encodings gzip and deflate (RFC 1951, 1952, 9110), as it comes, in pieces of
 * any size. No more of what comes out is held than a piece of 64 KiB: where it goes has the bound.
 *
 * deflate is a stream of zlib, as it should be, or a bare one, as some send it. gzip may have several members
 * behind each other. Some 50 KiB each; one thread at a time.
 */
#ifndef WEIR_HTTP_UNPACK_H
#define WEIR_HTTP_UNPACK_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** The names that are understood, for people and as the value of Accept-Encoding. */
#define UNPACK_NAMES "gzip, deflate"

struct unpack;

/** Takes what came out. False: no more is wanted. */
typedef bool (*unpack_take_fn)(void *context, const char *bytes, size_t len);

/** Is this value of Content-Encoding one of these? NULL: no. */
bool unpack_knows(const char *encoding);

/** NULL: no memory. `encoding` is one that is known. */
struct unpack *unpack_open(const char *encoding);

/**
 * The next bytes of the body.
 * @return INVALID of what is no such stream; OK also when `take` wants no more.
 */
weir_status unpack_add(struct unpack *unpack, const char *bytes, size_t len, unpack_take_fn take,
                       void *context, struct weir_error *err);

/** The body has ended: INVALID if the stream has not. */
weir_status unpack_end(const struct unpack *unpack, struct weir_error *err);

/** NULL is accepted. */
void unpack_close(struct unpack *unpack);

#endif
