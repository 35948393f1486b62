/** Path: what a path of the inference protocols asks for. Pure. */
#ifndef WEIR_GATEWAY_PATH_H
#define WEIR_GATEWAY_PATH_H

#include "http/http.h"

enum path_kind {
    PATH_NONE,         /**< None of the gateway's. */
    PATH_UNKNOWN,      /**< The gateway's, but no protocol has it. */
    PATH_SERVER,       /**< GET /v2 */
    PATH_LIVE,         /**< GET /v2/health/live */
    PATH_READY,        /**< GET /v2/health/ready */
    PATH_INDEX,        /**< POST /v2/repository/index */
    PATH_NAMES,        /**< GET /v1/models */
    PATH_LOAD,         /**< POST /v2/repository/models/{m}/load */
    PATH_UNLOAD,       /**< POST /v2/repository/models/{m}/unload */
    PATH_MODEL_READY,  /**< GET /v2/models/{m}[/versions/{v}]/ready */
    PATH_MODEL_STATUS, /**< GET /v1/models/{m}[/versions/{v}] */
    PATH_PING,         /**< GET /models/{m}/ping, /ping */
    PATH_ASK,          /**< A GET that a replica answers: metadata, config, stats. */
    PATH_INFER,        /**< A POST that a replica answers. */
};

struct path {
    enum path_kind kind;
    const char *deployment; /**< NULL: none. */
    int64_t version;        /**< 0: none. */
    const char *before;     /**< For the replica: this, "/versions/V", after. In the arena. */
    const char *after;
    bool is_encoded;   /**< Its body is, in a manner that nobody here reads: the front's. */
    const char *allow; /**< NULL; of a path that is there for other methods: these, "GET, HEAD". */
};

/**
 * Read the path.
 * @return NOT_FOUND or INVALID for one that looks like the gateway's and is none; UNSUPPORTED for what is
 *         not there, and for the wrong method: then out->allow says which is right. It is written in any
 *         case.
 */
weir_status path_read(const struct weir_http_request *request, struct weir_arena *arena,
                      struct path *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
