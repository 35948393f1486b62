/**
 * Slow questions: what a route asks of somebody who may take seconds to answer (a cluster's driver). It is asked by
 * threads of its own, SLOW_MAX_RUNNING at most, never by a handler and in no transaction; the route looks at the state, and
 * waits for it as for a commit.
 *
 *     switch (slow_look(slow, question, arena, &answer, err)) …   // the first look asks
 *
 * A question is a text, and so is its answer. The same question, while it is being asked, is asked once; an answer is
 * given for SLOW_KEPT_MS, so that those that wait for it find it, and is then forgotten: the next look asks again.
 *
 * Any thread.
 */
#ifndef WEIR_API_SLOW_H
#define WEIR_API_SLOW_H

#include "base/arena.h"
#include "base/status.h"
#include "control/control.h"

#define SLOW_MAX_RUNNING 4
#define SLOW_MAX_WAITING 32 /* more: UNAVAILABLE */
#define SLOW_KEPT_MS     2000

/** Asks, and may wait as long as it bounds itself. Its answer lies in the arena. Called on several threads. */
typedef weir_status (*slow_fn)(void *context, const char *question, struct weir_arena *arena,
                               char **out, struct weir_error *err);

enum slow_state { SLOW_RUNNING, SLOW_DONE, SLOW_REFUSED };

struct slow;

/** The listener is woken when an answer is there. */
struct slow *slow_create(slow_fn fn, void *context, const struct control_listener *listener);

/** Ask, or look how far it is. *out is set when it is DONE; *err says why it is REFUSED: also if too many wait
 *  (UNAVAILABLE). */
enum slow_state slow_look(struct slow *slow, const char *question, struct weir_arena *arena,
                          char **out, struct weir_error *err);

/** End the threads once what they ask has ended, and wake nobody any more. NULL is accepted. */
void slow_stop(struct slow *slow);
void slow_destroy(struct slow *slow);

#endif
