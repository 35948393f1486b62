/**
 * Contact: when this node last reached the server, for supervisors of tasks that must not run on when it does not.
 *
 * The agent writes the time at which a heartbeat was sent, once it was answered: the server has heard of the
 * node then or later. Supervisors outlive agents, so it stands in a file of the agent's folder that both map; the
 * time is CLOCK_BOOTTIME, which goes on while the machine sleeps. What was written before the machine was started counts for
 * nothing.
 *
 * A fenced task is told to end after two thirds of its fence, and killed a while later: before the whole of
 * it, after which the server may start it elsewhere.
 */
#ifndef WEIR_AGENT_CONTACT_H
#define WEIR_AGENT_CONTACT_H

#include "base/status.h"

#include <stdint.h>

struct contact;

/** The agent's. @param dir  Its folder. */
weir_status contact_open(const char *dir, struct contact **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** A supervisor's, which only reads. NULL: there is none yet. */
struct contact *contact_follow(const char *dir);

/** NULL is accepted. */
void contact_close(struct contact *contact);

/** The server answered a heartbeat that was sent at boot_ms (weir_boot_ms). */
void contact_note(struct contact *contact, int64_t boot_ms);

/** How long a task with this fence may go on, if the server is not reached meanwhile; 0: it is told to end. NULL: 0. */
int64_t contact_left_ms(const struct contact *contact, int64_t fence_ms);

/** How long it has from then on. */
int64_t contact_grace_ms(int64_t fence_ms);

#endif
