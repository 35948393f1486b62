/**
 * Watcher: looks every few seconds, on the engine's thread, at what the rules of watch/watch.h want
 * to see, and brings the alerts up to date. A look that finds nothing new only reads.
 */
#ifndef WEIR_CONTROL_WATCHER_H
#define WEIR_CONTROL_WATCHER_H

#include "blob/blob.h"
#include "control/control.h"
#include "control/engine/refusals.h"
#include "control/vitals.h"
#include "store/store.h"
#include "watch/watch.h"

#include <stdint.h>

struct watcher {
    struct weir_store *store; /**< Borrowed, as the rest. */
    struct control_listener listener;
    struct weir_blobs *blobs;              /**< NULL: members are not compared with galleries. */
    const char *state_dir;                 /**< Its disk is watched. */
    const struct control_figures *figures; /**< What became of requests; NULL: not known. */
    struct refusals refusals;
    /** Is told how a look ended, and has findings of its own. May be NULL. */
    struct vitals *vitals;
    int64_t next_mono_ms, next_enrolled_mono_ms;
};

/** Its own memory. */
void watcher_fini(struct watcher *watcher);

/** Look, if it is time again. @param about  The time, and how well the server hears: its first members. */
void watcher_look(struct watcher *watcher, const struct weir_watch_seen *about, int64_t mono_ms);

#endif
