/**
 * GPU share: the memory that the nets of this process may take on its GPU together.
 *
 * What the process was given (WEIR_DEVICE_MEMORY, nn/gpu_given.h) is given to the process, so the
 * account is the process's too: a version that is loaded beside the one that serves must find room.
 *
 * Threads: any.
 */
#ifndef WEIR_SERVE_GPU_SHARE_H
#define WEIR_SERVE_GPU_SHARE_H

#include "nn/net_file.h"

/**
 * Makes a net on the GPU of config.backend, in what is left of the share.
 *
 * @param most_bytes  More than that it may not take; 0: whatever is left.
 * @return LIMIT: there is no room, with a sentence that says how much is missing where. Others as
 *         weir_net_file_create_net.
 */
weir_status gpu_share_create_net(const struct weir_net_file *file, struct weir_net_config config,
                                 size_t most_bytes, struct weir_net **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Destroys such a net; its memory is free for others. NULL is accepted. */
void gpu_share_destroy_net(struct weir_net *net);

/** What nets have taken. */
size_t gpu_share_taken(void);

#endif
