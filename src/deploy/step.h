/**
 * The deployment engine: a pure function (state, event, time) → (state, actions).
 *
 * The same events in the same order give the same state and the same actions. What it keeps to:
 *
 * - There are never more replicas than replicas_max, those that end included, but after it was
 *   lowered; and never fewer than replicas_min, but while one that ended is replaced.
 * - The shares asked for come into effect at once, together, when each of their versions is READY on
 *   a replica and FAILED on none. Until then those before stay. A first deployment has none until
 *   then.
 * - A version that lost its share stays loaded for WEIR_DEPLOY_KEEP_MS: requests that were given to
 *   it are on their way.
 * - A replica whose process is gone is not routed to; its job starts another, as a service's does. One
 *   whose job ended is replaced: at once, then after 1 s, 2 s … up to 60 s. One that is
 *   silent is not routed to; after WEIR_DEPLOY_RESTART_MS it is replaced too. Time in which the server could not
 *   hear it does not count.
 * - The number of replicas follows the load: requests under way and held, for each replica twice its
 *   batch. More come when the load has asked for them for 5 s; the first one at once, when a request
 *   is held. Fewer, when they have sufficed for idle_after_ms; down to replicas_min. While shares wait
 *   to come into effect there is at least one.
 */
#ifndef WEIR_DEPLOY_STEP_H
#define WEIR_DEPLOY_STEP_H

#include "deploy/deploy.h"

#define WEIR_DEPLOY_SILENT_MS  15000
#define WEIR_DEPLOY_RESTART_MS 60000
#define WEIR_DEPLOY_KEEP_MS    10000
#define WEIR_DEPLOY_MORE_MS    5000
#define WEIR_DEPLOY_BACKOFF_MS 60000 /**< At most. */

enum weir_deploy_phase { WEIR_DEPLOY_LOADING, WEIR_DEPLOY_READY, WEIR_DEPLOY_FAILED };

/** What a replica says of one version. */
struct weir_deploy_loaded {
    int64_t version;
    enum weir_deploy_phase phase;
    const char *reason; /**< Of FAILED. */
};

struct weir_deploy_replica {
    struct weir_deployment_replica row;
    struct weir_deploy_loaded *loaded;
    size_t n_loaded;
    bool is_gone; /**< To be removed by the save. */
};

struct weir_deploy_version {
    struct weir_deployment_version row;
    bool is_gone;
};

struct weir_deploy_state {
    struct weir_deployment deployment;
    struct weir_deploy_version *versions; /**< By version. */
    size_t n_versions;
    struct weir_deploy_replica *replicas; /**< By number. */
    size_t n_replicas;
    bool is_new, is_deleted;
    bool is_changed; /**< By a step: it must be saved. */
};

/** What a person asks for: all of it, checked. Text is borrowed. */
struct weir_deploy_wanted {
    struct weir_shares shares;
    const char *follows; /**< The alias that the shares are by; NULL: they are by themselves. */
    int64_t mirror;
    int64_t replicas_min, replicas_max;
    int64_t batch_max, delay_max_us, queue_max;
    int64_t cpu_millis, memory_bytes, gpus;
    int64_t idle_after_ms, hold_ms;
};

/** Of all its replicas, as the gateway sees it. */
struct weir_deploy_load {
    int64_t n_outstanding;
    int64_t n_held; /**< Waiting for a first replica. */
};

enum weir_deploy_event_type {
    WEIR_DEPLOY_EVENT_APPLIED, /**< wanted, actor. */
    WEIR_DEPLOY_EVENT_DELETED, /**< actor. */
    WEIR_DEPLOY_EVENT_TICK,    /**< load (NULL: not known), since_ms: time has passed. */
    WEIR_DEPLOY_EVENT_REPORT,  /**< replica, url, revision, versions (JSON), n_running, stats. */
    WEIR_DEPLOY_EVENT_STARTED, /**< replica, job. */
    WEIR_DEPLOY_EVENT_REFUSED, /**< replica, note: it cannot be made into a job. */
    WEIR_DEPLOY_EVENT_DOWN,  /**< replica, note (NULL: nothing failed): its process is gone, and its
                                    job starts another. */
    WEIR_DEPLOY_EVENT_ENDED, /**< replica, note: its job is over. */
};

struct weir_deploy_event {
    enum weir_deploy_event_type type;
    const char *actor, *note;
    const struct weir_deploy_wanted *wanted;
    const struct weir_deploy_load *load;
    const char *replica; /**< Identifier. */
    const char *job, *url, *versions, *stats;
    int64_t revision, n_running;
    int64_t since_ms; /**< Since when replicas could be heard (job/node_watch.h). */
};

enum weir_deploy_action_type {
    WEIR_DEPLOY_ACTION_START, /**< replica: make its job. */
    WEIR_DEPLOY_ACTION_STOP,  /**< replica, job. */
    WEIR_DEPLOY_ACTION_EVENT, /**< kind, message: to the event log. */
};

struct weir_deploy_action {
    enum weir_deploy_action_type type;
    const char *replica, *job, *kind, *message;
};

#define WEIR_DEPLOY_ACTIONS_MAX 256

struct weir_deploy_actions {
    struct weir_deploy_action items[WEIR_DEPLOY_ACTIONS_MAX];
    size_t n;
};

/** A deployment that nobody has yet: apply to it. Text is borrowed. */
void weir_deploy_new(const char *name, const char *project, const char *model, const char *secret,
                     const char *actor, int64_t now_ms, struct weir_arena *arena,
                     struct weir_deploy_state *out);

/**
 * Apply one event. A replica that is not there is no error: it is over.
 * @return NOT_FOUND for the report of such a replica; INVALID for a report of another form; LIMIT if
 *         more versions are loaded than WEIR_DEPLOY_VERSIONS_MAX. State and actions are untouched.
 */
weir_status weir_deploy_step(struct weir_deploy_state *state, const struct weir_deploy_event *event,
                             int64_t now_ms, struct weir_arena *arena,
                             struct weir_deploy_actions *actions,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Read a report's versions. @return INVALID, LIMIT. */
weir_status weir_deploy_loaded_read(const json_t *versions, struct weir_arena *arena,
                                    struct weir_deploy_loaded **out, size_t *out_n,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** The shares that are asked for, or in effect. */
struct weir_shares weir_deploy_shares(const struct weir_deploy_state *state, bool is_live);

/** On how many replicas that answer the version is ready. */
size_t weir_deploy_n_ready(const struct weir_deploy_state *state, int64_t version);

/** Does this replica answer, and have the version ready? */
bool weir_deploy_replica_has(const struct weir_deploy_replica *replica, int64_t version);

/** Why the shares that are asked for are not in effect: the version that failed, and what its replica
 *  said; NULL: they are, or nothing failed. */
const char *weir_deploy_problem(const struct weir_deploy_state *state);

#endif
