/**
 * Acts: every change that a person or a token asks for is in the audit, whatever the route. A route that
 * writes an event of its own (audit_act) says more; for all others one is written here, with the right
 * as its kind ("ions_review"), in the transaction of the change.
 *
 * Two exceptions. Routes that take data in (ROUTE_FLOW: photos, metrics, figures) write the first of an
 * actor, an address and a subject in each minute: the rows themselves say who sent them. What is not done
 * by a transaction is written before: the event is there even if the act then failed. So do routes that
 * delete files (ROUTE_ACT_FIRST), and those that begin what goes on without them (api_act_first). 
 * Looking at a person is an act, too (ROUTE_SHOWS: the picture of a decision, a photo, an export): with
 * ROUTE_FLOW the first of an actor, an address and a picture in each minute. An answer that fails is none. A full or broken disk stops no look: the log has it.
 * What agents and tasks report or fetch is no act: it is their node's or their job's. What a task changes beyond its
 * own runs (ROUTE_BEYOND) is one, with the task, its job, and who it works for.
 */
#ifndef WEIR_API_ACT_H
#define WEIR_API_ACT_H

#include "base/status.h"
#include "store/store.h"

#include <stdbool.h>

struct api_call;

/** Is the call an act, as its route and its caller are? Pure. */
bool act_is_one(const struct api_call *call);

/** Is a person looked at by it? Pure. */
bool act_is_look(const struct api_call *call);

/** Should this one be written, or was one like it written in this minute? Asked once a turn. */
bool act_is_wanted(const struct api_call *call);

/** After the call: what it wrote, if anything, is durable. Others like it are not written in this minute. */
void act_is_kept(const struct api_call *call);

/** What it was done to, of its path and body: "job/ID", "dataset/NAME", "retention". In the arena. */
const char *act_subject(const struct api_call *call);

/** Write the event of the call, unless the call has one. */
weir_status act_write(struct api_call *call, struct weir_txn *txn,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
