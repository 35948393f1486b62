/**
 * OIP: messages of inference.GRPCInferenceService (open_inference_grpc.proto of
 * kserve/open-inference-protocol), and the same as REST with Triton's binary tensors, which is what
 * replicas speak. Pure. Contents of tensors that come raw are not copied on the way to the replica, and
 * once on the way back.
 */
#ifndef WEIR_GATEWAY_OIP_H
#define WEIR_GATEWAY_OIP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/protobuf.h"

#include <sys/uio.h>

#define OIP_TENSORS_MAX 1024
#define OIP_DIMS_MAX    64

/** ModelReadyRequest and its like: {name = 1, version = 2}. */
struct oip_name {
    const char *name;
    int64_t version; /**< 0: none is named. */
};

weir_status oip_read_name(struct weir_protobuf message, struct weir_arena *arena,
                          struct oip_name *out, struct weir_error *err) WEIR_MUST_CHECK;

/** A ModelInferRequest, as a body for the replica. */
struct oip_infer {
    struct oip_name model;
    /** The JSON, then a piece for each tensor, in the message or the arena. */
    struct iovec *pieces;
    size_t n_pieces;
    size_t json_bytes, body_bytes;
};

/**
 * @param message    Must stay as long as the pieces are used.
 * @param max_bytes  Of the body.
 * @return INVALID naming what is wrong; CORRUPT if it is no message; LIMIT.
 */
weir_status oip_read_infer(struct weir_protobuf message, size_t max_bytes, struct weir_arena *arena,
                           struct oip_infer *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Append a ModelInferResponse.
 * @param body  The replica's answer: json_bytes of JSON, then the tensors.
 * @return CORRUPT if it is no such answer. Failures of out stay in out->status.
 */
weir_status oip_write_infer(const char *body, size_t len, int64_t json_bytes, struct weir_buf *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Append a ModelMetadataResponse, from the JSON of GET /v2/models/NAME. @return CORRUPT. */
weir_status oip_write_metadata(const char *body, size_t len, struct weir_buf *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Append a ModelConfigResponse, from the JSON of GET /v2/models/NAME/config. @return CORRUPT. */
weir_status oip_write_config(const char *body, size_t len, struct weir_buf *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Append a ModelStatisticsResponse, from the JSON of GET /v2/models/NAME/stats. @return CORRUPT. */
weir_status oip_write_statistics(const char *body, size_t len, struct weir_buf *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
