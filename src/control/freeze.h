/**
 * Freezing datasets: hashing a folder may take long, or for ever, so it is done by threads of its
 * own, at most FREEZE_MAX_RUNNING, never by a handler. Requests look at the state and may wait for
 * it. One dataset is frozen once at a time: a request meanwhile gets the same freeze.
 *
 *     freezer_start(freezer, &dataset, actor, NULL, &number, err);
 *     json_t *view = freezer_look(freezer, name, number, &state);
 *
 * At the end each thread stops between two reads; one that hangs in a read (a file system that does
 * not answer) is left behind, and touches nothing of the server any more.
 */
#ifndef WEIR_CONTROL_FREEZE_H
#define WEIR_CONTROL_FREEZE_H

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "blob/blob.h"
#include "control/control.h"
#include "track/track.h"

#include <stdint.h>

#define FREEZE_MAX_RUNNING 4                         /* more: UNAVAILABLE */
#define FREEZE_MAX_KEPT    64                        /* results; the oldest go */
#define FREEZE_MAX_MS      ((int64_t)60 * 60 * 1000) /* more: TIMEOUT */

struct freezer;

struct freezer_config {
    struct weir_store *store; /**< Borrowed, as the rest; not used after freezer_stop. */
    struct weir_blobs *blobs;
    const struct weir_clock *clock;
    const char *state_dir; /**< Uploaded datasets lie in it. Copied. */
    struct control_listener listener;
    void (*notify)(void *context); /**< Called after a commit that the engine should look at. */
    void *notify_context;
};

enum freeze_state { FREEZE_RUNNING, FREEZE_DONE, FREEZE_FAILED };

struct freezer *freezer_create(const struct freezer_config *config);

/** Stop the threads and start no more; returns after some seconds even if one hangs. To be called
 *  while the listener is still there. Twice is harmless. */
void freezer_stop(struct freezer *freezer);

/** Stop, and free; but leave it to a thread that hangs. NULL is accepted. */
void freezer_destroy(struct freezer *freezer);

/**
 * Start to freeze a dataset, or join the freeze in progress.
 * @param run         The run that has written the files; NULL: none of this server's. A version that is
 *                    new says so.
 * @param out_number  The freeze's, for freezer_look.
 * @return UNAVAILABLE if FREEZE_MAX_RUNNING others are in progress, or the server stops.
 */
weir_status freezer_start(struct freezer *freezer, const struct weir_dataset *dataset,
                          const char *actor, const char *run, uint64_t *out_number,
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * How far it is, as the API shows it: {"dataset","state","files","bytes","n_damaged","damaged",
 * "version","error"}; a new reference.
 *
 * @param number  0: the dataset's last freeze.
 * @param out_why Why it failed, if it did; may be NULL.
 * @return NULL if there is none (any more).
 */
json_t *freezer_look(struct freezer *freezer, const char *dataset, uint64_t number,
                     enum freeze_state *out_state, struct weir_error *out_why);

#endif
