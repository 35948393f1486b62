/**
 * Sweeper: looks at the trials of the sweeps that are not over, and lets each sweep take its step when
 * there is news. What is to be done then stands in the outbox; nothing is remembered here but when to look
 * again, and which sweeps cannot be read.
 *
 * Cost: what a look reads is read at most four times a second, and for at most a twentieth of the time.
 * Owned by the engine's thread.
 */
#ifndef WEIR_CONTROL_SWEEPER_H
#define WEIR_CONTROL_SWEEPER_H

#include "control/control.h"
#include "control/engine/aside.h"

/** Start with {0} and these. */
struct sweeper {
    struct weir_store *store;
    struct control_listener listener;
    int64_t next_mono_ms; /**< No look before. */
    struct aside aside;   /**< aside_fini frees it. */
};

/** @return In how many milliseconds there is something to look at; INT64_MAX: no sweep is open. */
int64_t sweeper_look(struct sweeper *sweeper, int64_t now_ms);

#endif
