/**
 * Layers of images: unpack a tar archive, as it is or compressed by gzip, into a folder.
 *
 * An archive comes from anybody. Every path in it is looked up below the folder, as if that were
 * the root of the machine: links within it, and "..", lead nowhere else. Its owners, its
 * set-user-ID bits and its permissions are not taken over: everything is the caller's, can be read
 * by every user, and run if anybody could run it. Device files and FIFOs are left out.
 *
 * Read are ustar, the extensions of GNU tar for long names, and those of pax (path, linkpath, size).
 * A name that begins with ".wh." takes away what an earlier layer put there (OCI image
 * specification, "Whiteouts").
 */
#ifndef WEIR_AGENT_IMAGE_LAYER_H
#define WEIR_AGENT_IMAGE_LAYER_H

#include "base/status.h"

#include <stdint.h>

/** What may be unpacked; the counts go on from one layer to the next. */
struct image_bounds {
    int64_t max_bytes, max_entries;
    int64_t bytes, entries;
};

/**
 * Unpack the archive that is read from `archive_fd` (borrowed) below the folder `root_fd`.
 * @return CORRUPT for what is no such archive; LIMIT at a bound; errors of the file system. What
 *         was unpacked so far is there then.
 */
weir_status image_layer_unpack(int archive_fd, int root_fd, struct image_bounds *bounds,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Open `path` below the folder, which no link leaves; flags as open. -1 and errno. */
int image_open_below(int root_fd, const char *path, int flags);

#endif
