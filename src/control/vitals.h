/**
 * Vitals: does the server itself work? What the database, blobs, their disk and the engine have shown, from memory: it is told while
 * the store, in which alerts lie, can be neither read nor written.
 *
 * The engine notes what it does (rounds, plans, looks, a probe that writes a file); a question finds what is wrong:
 * the watcher makes alerts of it, `/health`, the summary, the list of alerts and `weir doctor` tell it at once.
 * Findings are of the kinds that have the server as their subject. All functions are safe from any thread.
 */
#ifndef WEIR_CONTROL_VITALS_H
#define WEIR_CONTROL_VITALS_H

#include "blob/blob.h"
#include "store/store.h"
#include "watch/watch.h"

#include <pthread.h>

/** The engine is told of as standing still when it has planned nothing for so long. */
#define VITALS_PLAN_MS  10000
#define VITALS_ROUND_MS 60000

/** What the engine does again and again. */
enum vitals_act { VITALS_PLAN, VITALS_LOOK, VITALS_ACT_N };

/** A part of the engine's rounds, and what it has taken since the start. */
struct vitals_part {
    const char *name; /**< Constant. */
    int64_t n;        /**< Times that it ran. */
    int64_t spent_us;
};

#define VITALS_PARTS_MAX 24

struct vitals {
    struct weir_store *store; /**< Borrowed, as all of these. */
    struct weir_blobs *blobs; /**< May be NULL. */
    const char *state_dir;
    pthread_mutex_t lock; /**< Protects what follows. */
    int64_t round_mono_ms, next_probe_mono_ms;
    int64_t failing_mono_ms[VITALS_ACT_N]; /**< Since when; 0: the last one went well. */
    char failed[VITALS_ACT_N][WEIR_ERROR_MESSAGE_BYTES];
    struct vitals_part parts[VITALS_PARTS_MAX];
    size_t n_parts;
    char unwritten[WEIR_ERROR_MESSAGE_BYTES]; /**< Why the last probe wrote no file; "": it did. */
};

void vitals_init(struct vitals *vitals, struct weir_store *store, struct weir_blobs *blobs,
                 const char *state_dir);
/** The engine begins a round: now and then it writes files and a row, to see whether it can. NULL is accepted. */
void vitals_round(struct vitals *vitals);

/** Something could not be written or read: the next round looks whether that is so of everything. NULL is accepted. */
void vitals_doubt(struct vitals *vitals);

/** One of its acts ended so. NULL is accepted. */
void vitals_note(struct vitals *vitals, enum vitals_act act, weir_status status,
                 const struct weir_error *err);

/** A part of a round has run for so long. NULL is accepted. */
void vitals_spent(struct vitals *vitals, const char *part, int64_t us);

/** The parts so far, at most VITALS_PARTS_MAX, in the order in which they first ran. NULL vitals: none. @return How many. */
size_t vitals_parts(struct vitals *vitals, struct vitals_part *out);

/** What is wrong, added to `out`; text lies in the arena. Cost: a few system calls. NULL vitals: nothing is. */
void vitals_find(struct vitals *vitals, struct weir_arena *arena, struct weir_watch_findings *out);

/** The worst of them that keeps the server from its work, as a sentence in the arena; NULL: it works. */
const char *vitals_worst(struct vitals *vitals, struct weir_arena *arena);

#endif
