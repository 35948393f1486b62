/**
 * The REST API: routes, authorisation, OpenAPI.
 *
 * One const table (routes.c) lists every route: method, path, who may call it, whether it reads or
 * writes, what goes in and comes out, and the function that answers. The dispatcher identifies the
 * caller, checks the role, opens the transaction the route asks for and calls that function, so no
 * route can forget either. The same table gives GET /api/v1/openapi.json.
 *
 *     weir_api_create(&config, &api, err);
 *     weir_http_server_start(&http_config, weir_api_handle, api, &http, err);
 *     weir_api_attach(api, http);
 *
 * Threads: every function may run on many threads at once. The API owns none of what its
 * configuration points to.
 */
#ifndef WEIR_API_API_H
#define WEIR_API_API_H

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "blob/blob.h"
#include "blob/pack.h"
#include "control/control.h"
#include "control/inspector.h"
#include "http/http.h"
#include "proxy/proxy.h"
#include "retain/retain.h"
#include "store/store.h"

struct weir_api;
struct weir_gateway;
struct weir_gateway_caller;
struct weir_registry;

#define WEIR_API_ARTIFACT_MAX_BYTES ((uint64_t)64 << 30)

/**
 * Classes of requests (http.h), which neither refuse nor hold up each other: agents that all speak at once are as many as
 * there are nodes, and people and models in service are to have their answers meanwhile.
 */
enum weir_api_class { WEIR_API_PEOPLE, WEIR_API_AGENTS, WEIR_API_TASKS, WEIR_API_INFERENCE };

#define WEIR_API_CLASSES (WEIR_API_INFERENCE + 1)

struct weir_api_config {
    struct weir_store *store;
    struct weir_blobs *blobs;
    struct weir_retainer *retainer;
    struct weir_packs *pictures;    /**< Of decisions. */
    const struct weir_clock *clock; /**< NULL = the system's. */
    struct vitals *vitals;          /**< What the server shows of itself; NULL: nothing. */
    const char *state_dir;          /**< Uploaded datasets and task logs live in it. Copied. */
    const unsigned char *task_key;  /**< 32 bytes that make the tokens of tasks. Copied. */
    uint64_t artifact_max_bytes;    /**< Of one file of a run; 0: WEIR_API_ARTIFACT_MAX_BYTES. */
    const char *server_url;         /**< What tasks call. Copied; may be set later by attach. */
    void (*notify)(void *context);  /**< Called after a write that the engine should look at. */
    void *notify_context;
    /** A message about alerts waits to be sent. May be NULL; any thread. */
    void (*told)(void *context);
    void *told_context;
    inspect_fn inspect; /**< How model files are looked at; NULL: by weir-worker. */
    void *inspect_context;
    const char *onnxruntime; /**< Library for it; NULL: the system's. Copied. */
    const char *
        proofs; /**< How callers may prove who they are (identity/identity.h); NULL: the default. */
    const struct weir_registry *proof_kinds; /**< NULL: weir_identity_kinds. */
    struct weir_gateway *gateway;        /**< Gets the paths of inference; NULL: there are none. */
    const struct weir_registry *drivers; /**< A cluster names one; NULL: weir_drivers. */
};

weir_status weir_api_create(const struct weir_api_config *config, struct weir_api **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** End the work in the background (freezing datasets, looking at models, asking clusters), and wake the HTTP server no more after
 *  commits; before that server is stopped. Takes seconds at most. NULL is accepted. */
void weir_api_stop(struct weir_api *api);
void weir_api_destroy(struct weir_api *api);

/** The server that answers: its waiting requests are woken after each commit. Before the first
 *  request. `url` is what tasks are told to call. */
void weir_api_attach(struct weir_api *api, struct weir_http_server *http, const char *url);

/** Where services are found by browsers (proxy/proxy.h). Before the first request. Copied. */
void weir_api_attach_services(struct weir_api *api, const char *domain, int port);

/** For weir_proxy_config; the context is the API. */
extern const struct weir_proxy_ops weir_api_proxy_ops;

/** Handler, body rule and upload admission for weir_http_config; context is the API. */
void weir_api_handle(void *context, struct weir_http_request *request,
                     struct weir_http_response *response);
void weir_api_body_rule(void *context, const struct weir_http_request *request,
                        struct weir_http_body_rule *rule);
void weir_api_admit(void *context, struct weir_http_request *request,
                    struct weir_http_response *response);

/** For weir_gateway_config: who calls, and in which projects they may predict; context is the API. */
weir_status weir_api_authorise(void *context, const char *token,
                               const struct weir_http_request *request, struct weir_arena *arena,
                               struct weir_gateway_caller *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The OpenAPI 3.0 document of the routes; a new reference. */
json_t *weir_api_openapi(void);

/** What browsers are told they may load: the page's own files only. */
extern const char weir_api_content_security_policy[];

/** What the control plane tells the API: live streams and requests that wait hear of it. */
struct control_listener weir_api_listener(struct weir_api *api);

struct freezer;

/** Who freezes datasets for requests, and for others who freeze any (control/freeze.h); the api's. */
struct freezer *weir_api_freezer(struct weir_api *api);

#endif
