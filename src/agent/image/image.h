/**
 * Images on a node: the root file systems that jobs name, unpacked once and shared by their tasks.
 *
 * A job names "sha256:HEX", a blob of the server that holds an archive of an OCI image, or NAME, an
 * archive or an image layout in the folder that the operator gave the agent for images. It is
 * unpacked into AGENT_DIR/images/KEY (image_oci.h), which nobody changes afterwards; KEY.lock is
 * held while it is made, and shared by those who use it. The newest IMAGES_KEPT that nobody
 * uses stay.
 */
#ifndef WEIR_AGENT_IMAGE_H
#define WEIR_AGENT_IMAGE_H

#include "agent/image/image_layer.h"
#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGES_KEPT       8
#define IMAGE_ENTRIES_MAX 1000000

/** What to get, and from where. Text is borrowed. */
struct image_source {
    const char *name;           /**< As the job names it. */
    const char *agent_dir;      /**< Absolute. */
    const char *folder;         /**< Where the operator's images lie; NULL: none. */
    const char *server, *token; /**< For a blob. */
    const char *ca_file;        /**< NULL: the system's authorities. */
};

/** Is it "sha256:" and 64 hexadecimal digits, or a name without "/": letters, digits and "._-+"? */
bool image_name_is_good(const char *name);

enum image_phase { IMAGE_WAITS, IMAGE_IS_FETCHED, IMAGE_IS_UNPACKED };

/** How far an image is, written by the thread that fetches it. Zero at first. */
struct image_progress {
    enum image_phase phase; /**< IMAGE_WAITS: somebody else on this machine is at it. */
    struct image_bounds bounds;
    char archive[4096]; /**< What is fetched grows there. */
};

/** A task that waits for an image: asked and told every half second, by the thread that waits. */
struct image_watch {
    bool (*is_stopped)(void *context);
    /** How far it is: "fetching it, 120.0 MiB so far". After tell_after_ms, then every 10 s. NULL: nobody asks. */
    void (*tell)(void *context, const char *how_far);
    int64_t tell_after_ms;
    void *context;
};

/**
 * Make sure that the image is here, in a child of this process, as that may take minutes, and keep it as long as
 * *out_lock_fd is open. If the watch says that it is stopped the child is killed.
 * @param out_dir  Its folder, with rootfs/ and image.json.
 * @return CANCELLED if it was stopped; NOT_FOUND for a name or a blob that is not there; INVALID for a bad name; as
 *         image_oci_unpack; as weir_client_blob_get.
 */
weir_status image_get(const struct image_source *source, const struct image_watch *watch,
                      struct weir_arena *arena, char **out_dir, int *out_lock_fd,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
