/**
 * The Weir server: store, blobs, API, engine and the local agent, composed into one process.
 *
 * State folder (docs/architecture.md lists it): weir.db, blobs/, datasets/, logs/, server.json
 * (where the server listens), admin.token, agent/. A lock in it keeps a second server
 * away. It is its owner's alone (server/privacy.h). Agents and tasks outlive the server; a server
 * that comes back finds them again through the agents' heartbeats.
 */
#ifndef WEIR_SERVER_SERVER_H
#define WEIR_SERVER_SERVER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_server_config {
    char *state;       /**< State folder; made if missing. */
    char *listen;      /**< "127.0.0.1:8470"; port 0: any free one. */
    char *grpc_listen; /**< For inference.GRPCInferenceService, in the clear; NULL: nowhere. */
    /** For browsers that are brought to services; NULL: the port behind that of `listen` on its
     *  host; "off": nowhere. */
    char *services_listen;
    char *services_domain; /**< Each service has a host below it; NULL: all have one origin. */
    char *public_url;      /**< The console as browsers reach it; NULL: as they say in Host. */
    char *proofs;   /**< Kinds of proof of identity that are on: "password,token"; NULL: those
                                that need no setting up. */
    char *tls_cert; /**< PEM files; both or neither. */
    char *tls_key;
    char *ca_file;  /**< Authorities that the agent of this machine trusts; NULL: the system's. */
    bool has_agent; /**< Keep an agent of this machine running (server/local_agent.h). */
    int64_t cpu_slots; /**< Of that agent; 0 = one per CPU, at least 2. */
    char *node;        /**< Name of that agent's node; NULL = host name. */
    char *shares;      /**< Folders that it shares with tasks: lines "DIR" or "DIR:rw". */
    /** Library or its folder: for looking at models, and for that agent's tasks; NULL: the
     *  system's. */
    char *onnxruntime;
    uint64_t artifact_max_bytes; /**< Of one file of a run; 0: 64 GiB. */
    int64_t node_timeout_s;      /**< A node that is silent for so long is lost; 0: 15 s. */
    int64_t task_users;          /**< First of its users for jobs; 0 = its default. */
    /** End the agent of this folder if it is another program than this, as of before an upgrade; its tasks go on. Called
     *  before an agent is started; NULL: it stays. */
    void (*renew_agent)(const char *dir);
    /** Called once, in the thread of weir_server_run, when requests are answered; NULL: nobody is told. */
    void (*on_ready)(void *context);
    void *context; /**< Of on_ready. */
};

/**
 * Run until SIGINT or SIGTERM (taken with signalfd; they are blocked in every thread).
 * @return WEIR_OK after an orderly stop; CONFLICT if another server has the state folder or the
 *         port; DENIED if the folder is another user's; what the store says of a database it cannot
 *         use.
 */
weir_status weir_server_run(const struct weir_server_config *config,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
