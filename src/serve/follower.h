/**
 * Follower: the thread that makes a replica serve what its server wants.
 *
 * It asks (long poll) for a revision other than the one it has (client/follow.h). It gets each
 * version's file into the cache, checks its sum, loads it beside what runs (versions.h), and unloads
 * what is not wanted any more. A version that cannot be loaded is FAILED with its reason, and the
 * others serve. What another try may mend (no server, no memory) is tried again after 1 s … 60 s.
 *
 * What was wanted last is kept in the folder (wanted.json, cache/), so that a replica that starts
 * again serves at once, whether or not the server is there.
 *
 * Files are fetched and summed at low priority. Loading is not: threads that a model makes while it
 * is loaded would keep the priority.
 */
#ifndef WEIR_SERVE_FOLLOWER_H
#define WEIR_SERVE_FOLLOWER_H

#include "serve/reporter.h"
#include "serve/serve_spec.h"
#include "serve/versions.h"

struct follower;

struct follower_config {
    const struct serve_spec *spec; /**< Borrowed, like the rest. */
    struct versions *versions;
    struct reporter *reporter; /**< Told of changes; NULL: there is no server. */
};

/** Starts the thread; it begins with what the folder holds. */
weir_status follower_start(const struct follower_config *config, struct follower **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Ends the thread; waits for the version that is being loaded. NULL is accepted. */
void follower_stop(struct follower *follower);

#endif
