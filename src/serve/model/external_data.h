/**
 * External data: does an ONNX file name other files, which hold its weights? Another program that
 * loads the model would read them, whatever they are. So such models are refused before.
 */
#ifndef WEIR_SERVE_EXTERNAL_DATA_H
#define WEIR_SERVE_EXTERNAL_DATA_H

#include "base/macros.h"
#include "base/status.h"

#include <stddef.h>

/** @return UNSUPPORTED: a tensor lies in another file. CORRUPT: this is no protobuf. LIMIT: graphs
 *          in graphs, too deep. Cost: one pass over the structure; weights are passed over. */
weir_status external_data_refuse(const void *bytes, size_t n,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
