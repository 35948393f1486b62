/**
 * OCI images: an image layout (a folder with oci-layout, index.json and blobs/sha256/), or a tar
 * archive of one, made into a root file system.
 *
 * Where an index names several images, the one for Linux on this machine's kind of processor is taken. Layers are tar or
 * gzip; each blob must have its digest. Nothing of the layout is followed that leads out of it.
 */
#ifndef WEIR_AGENT_IMAGE_OCI_H
#define WEIR_AGENT_IMAGE_OCI_H

#include "agent/image/image_layer.h"
#include "base/arena.h"

#define IMAGE_LAYERS_MAX 128

/**
 * Make `dir`/rootfs and `dir`/image.json: {"env": ["NAME=VALUE"], "digest": of the manifest}.
 * @param layout  A folder, or an archive, for which `dir`/layout is used and removed again.
 * @param dir     A folder that is there, and empty.
 * @return CORRUPT, LIMIT, UNSUPPORTED with what is wrong with the image; errors of the files.
 */
weir_status image_oci_unpack(const char *layout, const char *dir, struct image_bounds *bounds,
                             struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

#endif
