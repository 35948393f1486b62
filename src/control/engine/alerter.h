/**
 * Alerter: lets the rules of alerts look (notify/notify.h), on the engine's thread, and has what they
 * decide carried out: messages by the sender, actions by the server's outbox.
 */
#ifndef WEIR_CONTROL_ALERTER_H
#define WEIR_CONTROL_ALERTER_H

#include "base/clock.h"
#include "control/control.h"
#include "store/store.h"

struct alerter {
    struct weir_store *store; /**< Borrowed, as the rest. */
    const struct weir_clock *clock;
    struct control_listener listener;
    const char *server_url;
    void (*told)(void *context); /**< A message waits to be sent. May be NULL. */
    void *context;
};

/** Look, if anything is due. Nothing is done if that fails; the next call tries again. */
void alerter_look(const struct alerter *alerter);

/**
 * Carry out the outbox action "alert_action": the ION event that a person's command would send, with
 * the actor "rule/NAME", if the person who set the rule may do it now. What is refused is noted with the rule's
 * firing, and not tried again.
 */
weir_status control_alert_action(struct control *control, struct weir_txn *txn,
                                 const json_t *payload, struct weir_error *err) WEIR_MUST_CHECK;

#endif
