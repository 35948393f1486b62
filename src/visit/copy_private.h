/** Copy: the stream. A mark; then entries, each a head, a name, and what the kind has; the last is COPY_END. */
#ifndef WEIR_VISIT_COPY_PRIVATE_H
#define WEIR_VISIT_COPY_PRIVATE_H

#include "visit/copy.h"

#define COPY_MARK       "weircpy1"
#define COPY_MARK_BYTES 8
#define COPY_HEAD_BYTES 8 /* kind, 0, mode, bytes of the name, bytes of the target */
#define COPY_NAME_MAX   255
#define COPY_LINK_MAX   4095
#define COPY_CHUNK_MAX  65536U
#define COPY_BROKEN     UINT32_MAX /* in place of a chunk's length: the file cannot be read on */

enum {
    COPY_FILE = 'F',   /* then chunks: a length in 4 bytes, and so many; 0 ends it */
    COPY_FOLDER = 'D', /* then what is in it, to COPY_UP */
    COPY_UP = 'U',
    COPY_LINK = 'L', /* then its target */
    COPY_END = 'E',
};

/** Does a link's target stay within the copy, whose root is so many folders above the link's? It may go up first,
 *  and down then: behind a name there is no way up, which might be the name of a link. */
bool copy_is_within(const char *target, size_t depth);

#endif
