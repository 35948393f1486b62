/**
 * Audit: who made, used and ended users, tokens, login links and sessions, and who was refused, as
 * events of the topic "audit" with actor and address. Who has the right to read the audit
 * asks for them with `topic=audit`; no other list and no stream has them.
 *
 * An act is written in the transaction that does it. Refusals (401, 403, links that are no longer
 * good) can be made by anybody as often as they like, so they are counted: the first of an actor
 * from an address is written at once, the others of the minute as one event when it is over; a wrong
 * password is one of the account that it was for, which is the event's subject. At
 * most AUDIT_WINDOWS actors and addresses are told apart at a time; all others count as one. The
 * first use of a token from an address is written once, and again after a restart or when
 * AUDIT_USES_KEPT others came since; at most AUDIT_USES_PER_MINUTE in a minute.
 *
 * Threads: all functions may run on many at once; audit_act belongs into a transaction, the others
 * must not be called in one.
 */
#ifndef WEIR_API_AUDIT_H
#define WEIR_API_AUDIT_H

#include "base/status.h"
#include "store/chain.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

#define AUDIT_TOPIC           WEIR_AUDIT_TOPIC
#define AUDIT_WINDOWS         32
#define AUDIT_WINDOW_MS       ((int64_t)60 * 1000)
#define AUDIT_USES_KEPT       256
#define AUDIT_USES_PER_MINUTE 32

struct api_call;
struct audit;

/** `store` is borrowed. */
struct audit *audit_create(struct weir_store *store);

/** Writes what is counted, then frees. NULL is accepted. */
void audit_destroy(struct audit *audit, int64_t now_ms);

/** Append the event of an act of the caller: `message` is a sentence without its full stop. */
weir_status audit_act(struct api_call *call, struct weir_txn *txn, const char *kind,
                      const char *subject, const char *message,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** The call was refused: `kind` is "login_refused" (401) or "access_refused" (403); `why` a
 * sentence without its full stop. */
void audit_refused(struct audit *audit, const struct api_call *call, const char *kind,
                   const char *why);

/** Was an act of the call's method, actor, address and subject written in this minute, as far as is remembered? */
bool audit_has_flow(struct audit *audit, const struct api_call *call, const char *subject);

/** One was written, and is durable: remember it for this minute. */
void audit_keep_flow(struct audit *audit, const struct api_call *call, const char *subject);

/** The caller showed a good token. */
void audit_used(struct audit *audit, const struct api_call *call);

/** Write the counts of the minutes that are over at now_ms. Cheap if there are none. */
void audit_flush(struct audit *audit, int64_t now_ms);

#endif
