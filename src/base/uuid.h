/** UUIDs, version 7 (RFC 9562, section 5.7): time-ordered keys made where the record is created.
 */
#ifndef WEIR_BASE_UUID_H
#define WEIR_BASE_UUID_H

#include <stdbool.h>

#define WEIR_UUID_BYTES 37 /**< 36 characters and a NUL. */

/**
 * A new identifier. Any thread. Within a process values are strictly increasing as text, also when
 * the wall clock steps back (the last time is kept and a 12-bit counter runs on).
 */
void weir_uuid_make(char out[WEIR_UUID_BYTES]);

/** Is `text` 8-4-4-4-12 lower-case hexadecimal? */
bool weir_uuid_is_valid(const char *text);

#endif
