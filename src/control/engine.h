/**
 * The engine: one thread that does what follows from state and time. It places jobs, carries out
 * the outbox, lets IONs, deployments and jobs notice that time has passed, and declares silent nodes lost. All
 * decisions are the pure steps of job and ion; the engine loads, steps and saves, each in one
 * transaction, so a crash at any point leaves before or after and the next start goes on.
 */
#ifndef WEIR_CONTROL_ENGINE_H
#define WEIR_CONTROL_ENGINE_H

#include "base/clock.h"
#include "base/status.h"
#include "blob/blob.h"
#include "control/control.h"
#include "control/rollout.h"
#include "control/vitals.h"
#include "deploy/step.h"
#include "store/store.h"

struct engine;

struct engine_config {
    struct weir_store *store;
    struct control_listener listener; /**< Copied. */
    struct weir_blobs *blobs;         /**< Where galleries' manifests are. */
    struct freezer *freezer;          /**< For preparations; it is stopped before the engine is, and
                                         destroyed behind it. NULL: nothing is frozen. */
    const struct weir_clock *clock;
    const char *state_dir, *server_url;
    struct vitals *vitals; /**< Is told what the engine does. Borrowed; may be NULL. */
    /** What a deployment has to do now, as the gateway knows it; false: not known. Called on
     *  the engine's thread. May be NULL. */
    bool (*load)(void *context, const char *deployment, struct weir_deploy_load *out);
    void *load_context;
    /** A message about an alert waits to be sent. Called on the engine's thread. May be NULL. */
    void (*told)(void *context);
    void *told_context;
    /** Something is wanted of a cluster, or given back. Called on the engine's thread. May be NULL. */
    void (*asked)(void *context);
    void *asked_context;
    struct control_figures figures; /**< Called on the engine's thread. */
};

/** Start the thread. Text is copied. */
weir_status engine_start(const struct engine_config *config, struct engine **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Look again soon. Any thread; also what the API calls after a commit. NULL is accepted. */
void engine_notify(void *engine);

/** Finish the transaction in progress and end the thread; engine_notify may still be called, and
 * does nothing. NULL is accepted. */
void engine_stop(struct engine *engine);

/** Free it, stopped. Nobody may notify it any more. NULL is accepted. */
void engine_destroy(struct engine *engine);

#endif
