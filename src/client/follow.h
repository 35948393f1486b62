/**
 * Follow: a thread that keeps this process at what its server wants of it, and goes on without the
 * server.
 *
 * What is wanted is a JSON object with a "revision". The thread asks for it (GET PATH?after=REVISION,
 * a long poll) and hands what has another revision to `apply`. When that fails, the same is asked for
 * and applied again after 1 s, 2 s … 60 s; what was applied before stays. What was applied last is
 * kept in a file of the folder (weir_follow_remember) and is applied first when the process starts
 * again, whether or not the server is there.
 *
 * Files that what is wanted names by their SHA-256 are fetched into a cache beside it, at low priority,
 * and checked whenever they are asked for; which of them are kept the caller says.
 *
 *     static weir_status apply(void *context, const json_t *wanted, struct weir_error *err)
 *     {
 *         struct replica *replica = context;
 *         char path[WEIR_FOLLOW_PATH_BYTES];
 *         weir_follow_cache_path(replica->follow, "model", blob, path);
 *         WEIR_TRY(weir_follow_get(replica->follow, blob, path, err));
 *         …
 *         if (weir_follow_remember(replica->follow, wanted)) {
 *             weir_follow_clean(replica->follow, is_needed, replica);
 *         }
 *         return WEIR_OK;
 *     }
 *
 *     WEIR_TRY(weir_follow_create(&config, &replica->follow, err));
 *     WEIR_TRY(weir_follow_start(replica->follow, err));
 *
 * Threads: create, start and destroy belong to one thread. The callbacks run on the follow's own, and
 * all other calls are made from them.
 */
#ifndef WEIR_CLIENT_FOLLOW_H
#define WEIR_CLIENT_FOLLOW_H

#include "client/client.h"

#include <stdatomic.h>

/** Of a file in the cache. */
#define WEIR_FOLLOW_PATH_BYTES 4300

struct weir_follow;

/** Texts and context are borrowed until weir_follow_destroy. */
struct weir_follow_config {
    const char *server;     /**< NULL: there is none; what is remembered is all there will be. */
    const char *token_file; /**< weir_client_config. */
    const char *ca_file;
    const char *path;     /**< weir_client_path: "/api/v1/deployments/d/desired". */
    const char *member;   /**< An answer without it wants nothing yet: "versions". */
    const char *dir;      /**< The folder; cache/ is made in it. */
    const char *file;     /**< What is remembered there: "wanted.json". */
    bool is_low_priority; /**< All of it: the priority of the threads that apply starts, too. Else
                               only files are fetched so. */
    int64_t retry_ms;     /**< First pause after a failure; 0: 1 s. */
    /** Make it so. What is not WEIR_OK is logged and tried again. */
    weir_status (*apply)(void *context, const json_t *wanted, struct weir_error *err);
    /** Before each question to the server; NULL: nothing. */
    void (*before_asking)(void *context);
    void *context;
};

/** Make the cache; nothing is asked yet. @return as weir_dir_make and weir_client_open. */
weir_status weir_follow_create(const struct weir_follow_config *config, struct weir_follow **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Start the thread, once. @return The system's error if there can be none. */
weir_status weir_follow_start(struct weir_follow *follow, struct weir_error *err) WEIR_MUST_CHECK;

/** End the thread, if it was started: a question to the server at once, `apply` when it returns.
 *  NULL is accepted. */
void weir_follow_destroy(struct weir_follow *follow);

/** Becomes true when it is to stop: for work that takes long. */
const atomic_bool *weir_follow_stopping(const struct weir_follow *follow);

/** NULL: there is no server. For calls of the callbacks' own. */
struct weir_client *weir_follow_client(struct weir_follow *follow);

/** The folder of the cache. */
const char *weir_follow_cache_dir(const struct weir_follow *follow);

/** Where the cache has a file: KIND-SHA256. Returns out. */
char *weir_follow_cache_path(const struct weir_follow *follow, const char *kind, const char *sha256,
                             char out[WEIR_FOLLOW_PATH_BYTES]);

/**
 * Have the blob in `path`: the file that is there, if it still has this sum, else the server's.
 * @return UNAVAILABLE if it is not there and there is no server; else as weir_client_blob_get.
 */
weir_status weir_follow_get(struct weir_follow *follow, const char *sha256, const char *path,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Keep what was applied for the next start. @return false: the disk did not take it, which is
 *  logged; then what the file before it needs is still needed. */
bool weir_follow_remember(struct weir_follow *follow, const json_t *wanted);

/** Is the file of this name in the cache still needed? */
typedef bool (*weir_follow_needs_fn)(const void *context, const char *file);

/** Remove all files of the cache that are not; those whose name begins with "." stay. */
void weir_follow_clean(const struct weir_follow *follow, weir_follow_needs_fn needs,
                       const void *context);

#endif
