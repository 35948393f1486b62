/** Identification: how well an embedding tells people apart, enrolled and strangers. */
#ifndef WEIR_TRAIN_IDENTIFICATION_H
#define WEIR_TRAIN_IDENTIFICATION_H

#include "data/data.h"
#include "nn/net_file.h"

/**
 * The open-set identification protocol over `n_seeds` splits of the pictures.
 * @return UNSUPPORTED: the protocol is not there yet.
 */
weir_status train_identification(const struct weir_net_file *file, struct weir_dataset *dataset,
                                 int64_t n_seeds, struct weir_error *err) WEIR_MUST_CHECK;

#endif
