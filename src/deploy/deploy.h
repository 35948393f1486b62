/**
 * Deployment: a name at which the versions of one model answer requests.
 *
 * Three nouns. A *deployment* says which versions share the traffic, how many replicas there may be
 * and how they batch. A *share* is a version's part of the requests (shares.h): the part that is
 * asked for, and the part that is in effect, which follows once replicas have loaded the version. A
 * *replica* is one `weir-worker serve` process, a job of its own, which loads every version that its
 * deployment names and reports to the server.
 *
 *     WEIR_TRY(weir_deploy_load(txn, "digits", arena, &state, err));
 *     WEIR_TRY(weir_deploy_step(&state, &event, now_ms, arena, &actions, err));      step.h, pure
 *     WEIR_TRY(weir_deploy_save(txn, &state, now_ms, err));
 *
 * The actions (start a job, stop one, write an event) are carried out by control.
 *
 * Each save counts the counter "serving" up, so that who routes requests knows that something has
 * changed (weir_deploy_change). A heartbeat that says nothing new does not.
 */
#ifndef WEIR_DEPLOY_DEPLOY_H
#define WEIR_DEPLOY_DEPLOY_H

#include "base/arena.h"
#include "base/record.h"
#include "deploy/shares.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

#define WEIR_DEPLOY_REPLICAS_MAX 64
#define WEIR_DEPLOY_BATCH_MAX    1024
#define WEIR_DEPLOY_DELAY_MAX_US 1000000
#define WEIR_DEPLOY_QUEUE_MAX    65536
#define WEIR_DEPLOY_HOLD_MAX_MS  300000
#define WEIR_DEPLOY_VERSIONS_MAX 32 /**< With those that go. */
#define WEIR_DEPLOY_REPORT_BYTES ((size_t)64 << 10)
#define WEIR_DEPLOY_IDLE_MAX_MS  ((int64_t)24 * 3600 * 1000)
#define WEIR_DEPLOY_LISTED_MAX   1000 /**< Deployments of a platform. */

struct weir_deployment {
    char *name;
    char *project;
    char *model;
    char *follows;  /**< Alias whose version gets all requests, wherever it moves; NULL: none. */
    int64_t mirror; /**< Version that gets a copy of each request; 0: none. */
    int64_t replicas_min, replicas_max;
    int64_t batch_max;
    int64_t delay_max_us;
    int64_t queue_max;     /**< Requests that wait in one replica. */
    int64_t cpu_millis;    /**< Thousandths of a CPU of each replica. */
    int64_t memory_bytes;  /**< Of each replica; 0: no limit. */
    int64_t gpus;          /**< Of each replica. */
    int64_t idle_after_ms; /**< Load that fewer replicas could bear for so long makes them fewer. */
    int64_t hold_ms;       /**< How long a request waits at most for a first replica. */
    char *secret;          /**< What replicas demand of who calls them. */
    char *state;           /**< WEIR_DEPLOYMENT_… */
    char *reason;          /**< A sentence, or NULL. */
    int64_t state_ms;
    int64_t revision; /**< Counts changes of what replicas must load. */
    char *previous;   /**< JSON: the shares in effect before these; NULL: none. */
    int64_t n_wanted; /**< Replicas that there should be now. */
    int64_t n_started;
    int64_t n_failures; /**< Of replicas in a row, since one was ready. */
    char *failure;      /**< Why the last one ended; NULL: none has, since one was ready. */
    int64_t next_start_ms;
    int64_t more_ms; /**< Since when the load asks for more replicas; 0: it does not. */
    int64_t less_ms; /**< Since when fewer would do; 0: they would not. */
    char *created_by;
    int64_t created_ms;
    int64_t updated_ms;
};

#define WEIR_DEPLOYMENT_DEPLOYING "DEPLOYING"
#define WEIR_DEPLOYMENT_SERVING   "SERVING"
#define WEIR_DEPLOYMENT_IDLE      "IDLE"
#define WEIR_DEPLOYMENT_FAILED    "FAILED"

struct weir_deployment_version {
    char *id; /**< "DEPLOYMENT:VERSION" */
    char *deployment;
    char *model;
    int64_t version;
    int64_t wanted_ppm;
    int64_t live_ppm;
    int64_t keep_ms; /**< Without a share: loaded until then, for requests under way. */
    /** Why a replica could not load it; NULL: none failed since it was asked for. */
    char *failure;
};

struct weir_deployment_replica {
    char *id; /**< "DEPLOYMENT-NUMBER" */
    char *deployment;
    int64_t number;
    char *job;   /**< NULL: not started yet. */
    char *state; /**< WEIR_DEPLOYED_… */
    char *url;
    int64_t revision; /**< That it knows. */
    char *versions;   /**< JSON: [{"version","state","reason","executor","place","load_ms"}] */
    int64_t n_running;
    char *stats; /**< JSON, as it reports them. */
    int64_t time_ms;
    int64_t created_ms;
};

#define WEIR_DEPLOYED_WANTED   "WANTED"   /**< Its job is about to be made. */
#define WEIR_DEPLOYED_STARTING "STARTING" /**< Its job is there; it has not reported. */
#define WEIR_DEPLOYED_READY    "READY"    /**< It reports. */
#define WEIR_DEPLOYED_SILENT   "SILENT"   /**< It has reported, and does not any more. */
#define WEIR_DEPLOYED_STOPPING "STOPPING" /**< It takes no new request; its job ends. */

/** A name for a version of a model. */
struct weir_model_alias {
    char *id; /**< "MODEL:ALIAS" */
    char *model;
    char *alias;
    int64_t version;
    char *actor;
    int64_t updated_ms;
};

extern const struct weir_resource weir_deployment_resource;
extern const struct weir_resource weir_deployment_version_resource;
extern const struct weir_resource weir_deployment_replica_resource;
extern const struct weir_resource weir_model_alias_resource;

struct weir_deploy_state;

/** @return NOT_FOUND, naming the deployment that was probably meant. */
weir_status weir_deploy_load(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                             struct weir_deploy_state *out, struct weir_error *err) WEIR_MUST_CHECK;

/** All of them, by name; at most WEIR_DEPLOY_LISTED_MAX. */
weir_status weir_deploy_load_all(struct weir_txn *txn, struct weir_arena *arena,
                                 struct weir_deploy_state **out, size_t *out_n,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Write what the step has changed; or take all of it away if it was deleted. */
weir_status weir_deploy_save(struct weir_txn *txn, const struct weir_deploy_state *state,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The deployment and the replica that a job is for; NULL in both if it is for none. */
weir_status weir_deploy_of_job(struct weir_txn *txn, const char *job, struct weir_arena *arena,
                               char **out_deployment, char **out_replica,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** A report that says nothing new: the replica lives, and has these figures. */
weir_status weir_deploy_heartbeat(struct weir_txn *txn, const char *replica, int64_t n_running,
                                  const char *stats, int64_t now_ms,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** A number that is another once any deployment has changed. */
weir_status weir_deploy_change(struct weir_txn *txn, int64_t *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
