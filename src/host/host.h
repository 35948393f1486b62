/**
 * Host: what every replica stands on, a process that its server tells what to serve and that goes on
 * without it. What it serves, and how, is what it hosts: `serve` answers requests, `predict` decides frames.
 *
 * Three nouns. What is *hosted* is a table of what is to be done with what the server wants, and a context. What
 * is *wanted* is a JSON object with a "revision". The *standing* is what became of it, which the server is
 * told.
 *
 *     static const struct weir_hosted hosted = {.place = "/api/v1/deployments/{}", .wanted = "desired",
 *                                             .member = "versions", .file = "wanted.json", .report_ms = 2000,
 *                                             .apply = apply, .needs = needs, .report = report};
 *     const struct weir_host_config config = {.spec = &spec->host, .names = {"digits"}, .n_names = 1,
 *                                             .hosted = &hosted, .context = replica};
 *     WEIR_TRY(weir_host_create(&config, &replica->host, err));
 *     WEIR_TRY(weir_host_start(replica->host, err));
 *     …
 *     weir_host_destroy(replica->host);   // before what the hosted functions look at
 *
 * The follower, a thread, asks the server (GET PLACE/WANTED?after=REVISION, a long poll) and hands what has
 * another revision to `apply`. When that fails, the same is asked for and applied again after 1 s, 2 s …
 * 60 s; what was applied before stays. What was applied last is kept in a file of the replica's folder and is
 * applied first when the process starts again, whether or not the server is there.
 *
 * Files that what is wanted names by their SHA-256 are fetched into a cache beside it, at low priority, and
 * checked whenever they are asked for. After each success those that what is hosted does not need go.
 *
 * The reporter, a thread with a connection of its own, so that what takes long to apply does not look like a
 * replica that is dead, tells the server how things stand (PUT PLACE/replicas/REPLICA): at once when there is news, and
 * every `report_ms`. While the server is away nothing is kept: the next report says it all.
 *
 * When a version may be freed is the matter of what is hosted: the host holds nothing of it. A process around both is
 * host/program.h.
 *
 * Threads: create, start and destroy belong to one thread. `apply`, `needs` and `before_asking` run on the
 * follower, `report` on the reporter. The calls for files are made from `apply`; weir_host_notify is anybody's.
 */
#ifndef WEIR_HOST_HOST_H
#define WEIR_HOST_HOST_H

#include "base/log.h"
#include "client/client.h"
#include "host/spec.h"

#include <stdatomic.h>

/** A path of a file in the cache has fewer. */
#define WEIR_HOST_PATH_BYTES   4300
#define WEIR_HOST_REASON_BYTES 512
#define WEIR_HOST_NAMES_MAX    2

struct weir_host;

/** What became of what is wanted. */
struct weir_host_standing {
    const char *state;                   /**< "STARTING"; then "APPLIED" or "FAILED". */
    char reason[WEIR_HOST_REASON_BYTES]; /**< Why it failed; else "". */
    int64_t revision;                    /**< That the state is of; 0: none yet. */
    int64_t served_revision;             /**< Applied last; 0: none yet. */
};

/** What is served. All functions get the config's context. */
struct weir_hosted {
    const char *place;  /**< At the server, as weir_client_path: "/api/v1/deployments/{}". */
    const char *wanted; /**< Where in the place the server says it: "desired". */
    const char *member; /**< An answer without it wants nothing yet: "versions". */
    const char *file;   /**< What is remembered in the folder: "wanted.json". */
    /** The whole follower: also the priority of the threads that apply starts. Else only files are fetched so. */
    bool is_low_priority;
    int64_t report_ms;
    const char *unsendable_event; /**< Logged: a report is no UTF-8. */
    const char *refused_event;    /**< Logged: the server does not want a report. */
    enum weir_log_level refused_level;
    /** Make it so. What is not WEIR_OK is logged and tried again; what another try would not mend has failed. */
    weir_status (*apply)(void *context, const json_t *wanted, struct weir_error *err);
    /** Is the file of this name in the cache still needed, now that this is applied? */
    bool (*needs)(const void *context, const json_t *wanted, const char *file);
    /** A new reference; NULL: it would be no UTF-8. NULL itself: nothing is reported. */
    json_t *(*report)(void *context, const struct weir_host_standing *standing);
    /** The server has taken the last report. NULL: nothing is to be done. */
    void (*reported)(void *context);
    /** Before each question to the server; NULL: nothing. */
    void (*before_asking)(void *context);
};

/** Borrowed until weir_host_destroy. */
struct weir_host_config {
    /** Without a server, what is remembered is all there will be. */
    const struct weir_host_spec *spec;
    const char *names[WEIR_HOST_NAMES_MAX]; /**< In the place of what is hosted. */
    size_t n_names;
    const struct weir_hosted *hosted;
    void *context;
    int64_t retry_ms; /**< First pause after a failure; 0: 1 s. */
};

/** Make the cache; nothing is asked yet. @return as weir_dir_make and weir_client_open. */
weir_status weir_host_create(const struct weir_host_config *config, struct weir_host **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Start the threads, once. @return The system's error if there can be none. */
weir_status weir_host_start(struct weir_host *host, struct weir_error *err) WEIR_MUST_CHECK;

/** End the threads, as far as they were started: calls to the server at once, `apply` when it returns. What is
 *  noted from then on is not reported. NULL is accepted. */
void weir_host_end(struct weir_host *host);

/** The same, if it has not ended, and free it. */
void weir_host_destroy(struct weir_host *host);

/** Something changed: report at once. Any thread, until it is destroyed. NULL is accepted. */
void weir_host_notify(struct weir_host *host);

/** Becomes true when it is to stop: for work that takes long. */
const atomic_bool *weir_host_stopping(const struct weir_host *host);

/** The follower's; NULL: there is no server. For calls of `apply` and `before_asking`. */
struct weir_client *weir_host_client(struct weir_host *host);

/** The folder of the cache. */
const char *weir_host_cache_dir(const struct weir_host *host);

/** Where the cache has a file: KIND-SHA256. Returns out. */
char *weir_host_cache_path(const struct weir_host *host, const char *kind, const char *sha256,
                           char out[WEIR_HOST_PATH_BYTES]);

/**
 * Have the blob in `path`: the file that is there, if it still has this sum, else the server's.
 * @return UNAVAILABLE if it is not there and there is no server; else as weir_client_blob_get.
 */
weir_status weir_host_get(struct weir_host *host, const char *sha256, const char *path,
                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
