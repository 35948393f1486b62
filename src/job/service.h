/**
 * Services: programs of jobs that browsers are brought to, by the proxy (proxy/proxy.h).
 *
 * A *service* outlives its jobs: it has a name in its project, an id in addresses, which nobody can guess,
 * an owner, and a folder (state/services/ID, WEIR_FOLDER for its program), and while it runs a job of kind
 * "command". Stopping it ends the job; starting it again makes another one, which finds the folder.
 *
 * A *login* is what a browser shows the proxy: a cookie of one service, got for a *ticket* that is good
 * once. Both belong to the session or the token of whom they were made for, and end with it. Only their
 * digests are stored.
 */
#ifndef WEIR_JOB_SERVICE_H
#define WEIR_JOB_SERVICE_H

#include "base/arena.h"
#include "base/record.h"
#include "store/identity.h"
#include "store/store.h"

#define WEIR_SERVICE_ID_BYTES       27 /**< 26 of [a-z2-7] (130 random bits) and a NUL. */
#define WEIR_SERVICE_NAME_MAX       63
#define WEIR_SERVICES_OF_PROJECT    200
#define WEIR_SERVICE_LOGINS_MAX     10000 /**< Of one service. */
#define WEIR_SERVICE_TICKET_MS      ((int64_t)60 * 1000)
#define WEIR_SERVICE_LOGIN_MS       ((int64_t)12 * 3600 * 1000)
#define WEIR_SERVICE_SPEC_BYTES     ((size_t)1 << 20)
#define WEIR_SERVICE_FOLDER         "services" /**< Of the state folder. */
#define WEIR_SERVICE_PATH_MAX_BYTES 64
#define WEIR_SERVICE_ADDRESS_MAX    80

struct weir_service {
    char *id, *name, *project;
    char *kind;     /**< Of control's kinds of services: "service", "notebook", "tensorboard". */
    char *owner;    /**< Whoever started it first. */
    bool is_shared; /**< Others with the right in its project may open it; else only its owner. */
    char *spec;     /**< JSON: of its jobs, of kind "command", as the owner gave it. */
    int64_t port;   /**< That its program listens on; 0: WEIR_PORT says it. */
    /** Its program knows WEIR_SERVICE_PATH, and is asked for paths that begin so. */
    bool keeps_path;
    char *secret;     /**< What the tunnel to its task demands. */
    char *credential; /**< Authorization that its program demands of every request; NULL: none. */
    /** Without a request for so long it is stopped; 0: as its queue says. */
    int64_t idle_after_ms;
    char *job;     /**< The last; NULL: none yet. */
    char *address; /**< Of the tunnel to the job's task, by its agent; NULL. */
    int64_t address_attempt;
    char *reason; /**< Why it was stopped; NULL. */
    int64_t created_ms, started_ms, stopped_ms;
    int64_t used_ms; /**< Last request; noted every few seconds. */
};

extern const struct weir_resource weir_service_resource;

/** How a service is, by its job. */
struct weir_service_look {
    struct weir_service service;
    const char *state; /**< WEIR_SERVICE_… */
    const char *why;   /**< Of that state, in a sentence; NULL. */
    char *node;        /**< NULL: none. */
};

#define WEIR_SERVICE_STARTING "STARTING"
#define WEIR_SERVICE_RUNNING                                                                       \
    "RUNNING" /**< Its program was started: whether it listens, it knows. */
#define WEIR_SERVICE_STOPPING "STOPPING"
#define WEIR_SERVICE_STOPPED  "STOPPED"
#define WEIR_SERVICE_FAILED   "FAILED"

/** Make an id. */
void weir_service_id_make(char out[WEIR_SERVICE_ID_BYTES]);
/** Is it one, by its form? */
bool weir_service_id_is_valid(const char *id);
/** a-z, 0-9 and "-", first a letter or digit; at most WEIR_SERVICE_NAME_MAX bytes. */
bool weir_service_name_is_valid(const char *name);

/** Is it a numeric address and a port, "10.0.0.7:40123" or "[::1]:40123", and nothing else? */
bool weir_service_address_is_valid(const char *address);

/** Look at the service with this id. @return NOT_FOUND. */
weir_status weir_service_look(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                              struct weir_service_look *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The id of a project's service of this name; NULL: there is none. */
weir_status weir_service_find(struct weir_txn *txn, const char *project, const char *name,
                              struct weir_arena *arena, char **out_id,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The agent says where the tunnel to an attempt is. Nothing happens if no service has this job.
 *  @return INVALID for what is no address. */
weir_status weir_service_note_address(struct weir_txn *txn, const char *job, int64_t attempt,
                                      const char *address, struct weir_error *err) WEIR_MUST_CHECK;

/** Somebody uses it. */
weir_status weir_service_note_use(struct weir_txn *txn, const char *id, int64_t now_ms,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make a ticket; those that have ended are removed.
 * @param who     By its session, or its token.
 * @param nonce   Digest of what the browser shows with it; "": any browser may use it.
 * @param secret  Out: the ticket.
 * @return LIMIT with WEIR_SERVICE_LOGINS_MAX.
 */
weir_status weir_service_ticket_make(struct weir_txn *txn, const char *id,
                                     const struct weir_identity *who, const char *nonce,
                                     int64_t now_ms, char secret[WEIR_SECRET_BYTES],
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Use a ticket up, for a login. @return UNAUTH if it is none for this service and this browser. */
weir_status weir_service_ticket_take(struct weir_txn *txn, const char *id, const char *ticket,
                                     const char *nonce, int64_t now_ms,
                                     char secret[WEIR_SECRET_BYTES],
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Whose login it is, now. @return UNAUTH if it is none of this service, or has ended. */
weir_status weir_service_login_identify(struct weir_txn *txn, const char *id, const char *login,
                                        int64_t now_ms, struct weir_arena *arena,
                                        struct weir_identity *out,
                                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
