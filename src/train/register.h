/**
 * Register: the trained model becomes a version on the server, exactly once.
 *
 * The version's identifier is written into a file beside the checkpoints before the first try. A
 * retry, or a training that was started again, sends the same one, and the server returns the
 * version that exists.
 */
#ifndef WEIR_TRAIN_REGISTER_H
#define WEIR_TRAIN_REGISTER_H

#include "train/config.h"

/** All borrowed; texts are JSON objects. */
struct train_version {
    const char *file; /**< The model file. */
    const char *parameters, *metrics, *baseline;
};

/**
 * Upload the file and register it under config->model_name. It retries while the server cannot be
 * reached, up to config->register_timeout_s. It blocks the calling thread.
 *
 * @param out_number  The version's number on the server.
 * @return The server's own refusal; UNAVAILABLE, TIMEOUT or PEER if it could not be reached in
 *         time; CANCELLED after SIGINT or SIGTERM.
 */
weir_status train_register(const struct weir_train_config *config,
                           const struct train_version *version, int64_t *out_number,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
