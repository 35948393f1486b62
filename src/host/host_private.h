/** The host's own: what its files share. */
#ifndef WEIR_HOST_HOST_PRIVATE_H
#define WEIR_HOST_HOST_PRIVATE_H

#include "host/host.h"

#include <pthread.h>

#define WEIR_HOST_DIR_BYTES (WEIR_HOST_PATH_BYTES - 160)

/** A thread and its connection. */
struct host_line {
    pthread_t thread;
    bool is_started;
    struct weir_client *client; /**< NULL: there is no server. */
};

struct weir_host {
    struct weir_host_config config;
    struct weir_arena arena; /**< Holds the paths. */
    const char *wanted_path, *report_path;
    char cache_dir[WEIR_HOST_DIR_BYTES];
    struct host_line follower, reporter;
    int64_t revision; /**< The follower's: that was applied; −1: none. */
    atomic_bool is_stopping,
        is_ending; /**< Set under lock: the follower ends, and then the reporter. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /**< Any of the above and below has changed. */
    /* Under lock. */
    bool has_news;
    struct weir_host_standing standing;
};

/** What is remembered. @return NOT_FOUND: nothing is. */
weir_status host_recall(const struct weir_host *host, json_t **out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Keep what was applied for the next start, and remove the files that it does not need. If the disk does
 *  not take it, which is logged, what the one before needs is still needed. */
void host_remember(const struct weir_host *host, const json_t *wanted);

/** This thread's priority; it cannot be raised again. */
void host_lower_priority(void);

#endif
