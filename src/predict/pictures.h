/**
 * Pictures of decisions on their way to the console: small JPEG files named by the decision. Behind the picture lie those of
 * a passage's film, each as long as the decision says (`bytes` of its frames).
 *
 * A help for people, not part of the decision: at most `max` are kept, the oldest go first, and
 * they are not synced. Identifiers are UUIDv7, so their order is the order of time. Thread-safe.
 */
#ifndef WEIR_PREDICT_PICTURES_H
#define WEIR_PREDICT_PICTURES_H

#include "base/buf.h"
#include "base/status.h"
#include "data/image.h"

#include <stddef.h>

#define PICTURES_MAX       2000
#define PICTURE_SIDE_MAX   112
#define PICTURE_QUALITY    80
#define PICTURE_PATH_BYTES 4200

struct pictures;

weir_status pictures_open(const char *dir, size_t max, struct pictures **out,
                          struct weir_error *err) WEIR_MUST_CHECK;
void pictures_close(struct pictures *pictures);

/** The picture as JPEG, at most PICTURE_SIDE_MAX on its longer side. Pure. */
weir_status picture_encode(const struct weir_image *image, struct weir_buf *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

weir_status pictures_put(struct pictures *pictures, const char *id, const void *bytes, size_t len,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Path of a picture; it may be gone. Returns out. */
const char *pictures_path(const struct pictures *pictures, const char *id,
                          char out[PICTURE_PATH_BYTES]);

void pictures_remove(struct pictures *pictures, const char *id);

#endif
