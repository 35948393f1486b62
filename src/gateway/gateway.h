/**
 * Gateway: takes inference requests on the server's own port and forwards them to the replicas of
 * deployments. Nothing of it reads the database while a request is under way.
 *
 * Three nouns: the *table* says where requests go (table.h), the *call* is one request on its way,
 * the *figures* say what became of them, by deployment and version (figures.h).
 *
 *     weir_gateway_create(&config, &gateway, err);
 *     weir_gateway_publish(gateway, table);          again whenever something has changed
 *     …
 *     weir_gateway_destroy(gateway);
 */
#ifndef WEIR_GATEWAY_GATEWAY_H
#define WEIR_GATEWAY_GATEWAY_H

#include "base/arena.h"
#include "base/status.h"
#include "gateway/table.h"
#include "http/http.h"

struct weir_gateway;

/** The projects that somebody may send requests to. */
struct weir_gateway_caller {
    bool is_all;                 /**< Every project. */
    const char *const *projects; /**< n_projects names. */
    size_t n_projects;
    /** When what was shown ends by itself, as ms since 1970; 0: it does not. */
    int64_t expires_ms;
};

/**
 * Find the caller. Called on a handler thread or one of the gateway's own; it may read the database.
 *
 * @param token    From "Authorization: Bearer"; NULL: none was shown.
 * @param request  For what else identifies the caller (a session's cookie); NULL with gRPC.
 * @param arena    For what *out points to.
 * @return UNAUTH or DENIED, with the reason for the caller to read.
 */
typedef weir_status (*weir_gateway_authorise_fn)(void *context, const char *token,
                                                 const struct weir_http_request *request,
                                                 struct weir_arena *arena,
                                                 struct weir_gateway_caller *out,
                                                 struct weir_error *err);

struct weir_gateway_config {
    weir_gateway_authorise_fn authorise;
    void *authorise_context;
    uint64_t max_request_bytes; /**< Bound of a request's body for inference; 0: 64 MiB. */
    /** A request waits at a deployment that has no replica for it and can_start set: start
     *  one. Called on the gateway's thread, at most once a second for each deployment: it must
     *  return at once. May be NULL. */
    void (*start)(void *context, const char *deployment);
    void *start_context;
    int32_t n_project_calls_max; /**< A project's, in flight and held; 0: 4096. */
    const char *version;         /**< Weir's, for clients that ask about the server. Borrowed. */
    const unsigned char *key;    /**< For the identifiers of answered requests (receipt.h), of
                                   WEIR_RECEIPT_KEY_BYTES; borrowed. NULL: answers have none. */
};

weir_status weir_gateway_create(const struct weir_gateway_config *config, struct weir_gateway **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Requests under way end with UNAVAILABLE, and so does every one from then on. To be called before the
 * HTTP server stops, which waits for requests that the gateway has. NULL is accepted.
 */
void weir_gateway_stop(struct weir_gateway *gateway);

/** Stops it, too. NULL is accepted. */
void weir_gateway_destroy(struct weir_gateway *gateway);

/** Let this table be the one that requests begin with from now on; takes the caller's reference.
 *  Any thread. Names of hosts in it are resolved here, so it may take as long as the resolver. */
void weir_gateway_publish(struct weir_gateway *gateway, struct weir_gateway_table *table);

/**
 * Answer inference.GRPCInferenceService at this address as well (grpc/grpc.h), until weir_gateway_stop.
 * Once at most.
 * @return As weir_grpc_server_start.
 */
weir_status weir_gateway_grpc_start(struct weir_gateway *gateway, const char *listen, int *out_port,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Rights have changed: each caller is asked for again. When it returns, no request that comes
 *  after it is let in by what held before. Any thread; cheap. */
void weir_gateway_forget_callers(struct weir_gateway *gateway);

/** Is this path one of the gateway's: "/v2…", "/v1/models/…", "/models/…/invocations" and its like? */
bool weir_gateway_takes(const struct weir_http_request *request);

/** The parts of an HTTP server's configuration, for such paths: handler, body rule and admission. */
void weir_gateway_handle(struct weir_gateway *gateway, struct weir_http_request *request,
                         struct weir_http_response *response);
void weir_gateway_body_rule(struct weir_gateway *gateway, const struct weir_http_request *request,
                            struct weir_http_body_rule *rule);
void weir_gateway_admit(struct weir_gateway *gateway, struct weir_http_request *request,
                        struct weir_http_response *response);

/** The table in effect, with a reference for the caller; an empty one before the first publish. */
struct weir_gateway_table *weir_gateway_acquire(struct weir_gateway *gateway);

#endif
