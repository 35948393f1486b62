/**
 * Notify: the people who are told of an alert, and what is done about it.
 *
 * Four nouns. A *receiver* is where messages go (receiver.h); an admin of the platform defines it,
 * for it says what the server may call. A *rule* says which alerts are told to which receivers, when,
 * and what else is done (action.h); it belongs to a project and sees that project's alerts, or to the
 * platform and sees all. A *silence* holds alerts back until a time. A *firing* is what a rule makes
 * of one alert:
 *
 *     waiting (hold time, silence, group) → told → escalated → over
 *
 * It is over when the alert is resolved, or when its rule does not want the alert any more: changed, or
 * disabled. Wanted again, it begins again, but what the rule did about the alert is not done again.
 *
 * A change of an alert marks its row (store/event.h). weir_notify_look looks at marked alerts and at
 * firings whose time has come, decides by pure functions (decide.h), and writes firings, messages
 * (deliveries, queue.h) and actions in one transaction. The sender (sender.h) sends messages. So a
 * server that is killed anywhere forgets nothing: it looks again, or sends again what it had not
 * noted as sent, with the same identifier.
 *
 *     weir_notify_is_due(txn, now_ms, &is_due, err)       a read: is there anything to look at?
 *     weir_notify_look(txn, &look, arena, err)            a write
 */
#ifndef WEIR_NOTIFY_NOTIFY_H
#define WEIR_NOTIFY_NOTIFY_H

#include "base/arena.h"
#include "base/record.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most rules of one project, or of the platform; silences likewise that have not ended; receivers. */
#define WEIR_ALERT_RULES_MAX     100
#define WEIR_ALERT_SILENCES_MAX  100
#define WEIR_ALERT_RECEIVERS_MAX 100

/** Most patterns of a match, receivers and actions of a rule. */
#define WEIR_ALERT_LIST_MAX 16

/** Longest hold, group and escalation time; longest silence. */
#define WEIR_ALERT_TIME_MAX_MS    ((int64_t)7 * 24 * 3600 * 1000)
#define WEIR_ALERT_SILENCE_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)

struct weir_alert_receiver {
    char *name;
    char *kind;     /**< One of weir_receiver_kinds. */
    char *doc;      /**< What it is for. */
    char *options;  /**< JSON: of the kind. */
    char *projects; /**< JSON: names of the projects whose rules may use it; NULL: all. */
    char *created_by;
    int64_t created_ms;
    int64_t updated_ms;
    bool is_failing;      /**< It refused a message, or does not take any (queue.h). */
    int64_t last_sent_ms; /**< When it last took one; 0: it has not. */
};

struct weir_alert_rule {
    char *name;
    char *project; /**< NULL: of the platform. */
    char *doc;
    /* Which alerts: JSON arrays; NULL: any. */
    char *kinds;      /**< Of alerts. */
    char *subjects;   /**< Patterns: "ion/door*". */
    char *severities; /**< "info", "warning", "critical". */
    /* When. */
    int64_t hold_ms;  /**< It must have lasted so long. */
    char *group_by;   /**< "none", "subject" or "rule": what shares a message. */
    int64_t group_ms; /**< How long the first waits for others. */
    /* What. */
    char *receivers;     /**< JSON: names. */
    bool tells_end;      /**< Also when it is over. */
    int64_t escalate_ms; /**< Nobody has acknowledged it so long after it was told; 0: never. */
    char *escalate_to;   /**< JSON: names of receivers that are told then. */
    char *actions;       /**< JSON: objects {"kind", …} of weir_alert_actions. */
    int64_t action_interval_ms; /**< Least time between two times that it acts on one subject. */
    bool is_disabled;
    char *created_by;
    char *set_by; /**< Who set it last: its actions need this person's rights when they are done. */
    int64_t created_ms;
    int64_t updated_ms;
};

struct weir_alert_silence {
    char *id;
    char *project; /**< Alerts of this project; NULL: of all. */
    char *alert;   /**< This one alone (and what has its key later); NULL: those that match. */
    char *kinds, *subjects, *severities; /**< As of a rule. */
    int64_t until_ms;
    char *note;
    char *created_by;
    int64_t created_ms;
    char *ended_by; /**< Who ended it before its time. */
    int64_t ended_ms;
};

struct weir_alert_firing {
    char *id; /**< "RULE/ALERT" */
    char *rule;
    char *alert;
    char *project;  /**< The rule's. */
    char *subject;  /**< The alert's. */
    char *state;    /**< WEIR_FIRING_… */
    int64_t due_ms; /**< When to look at it again; 0: when its alert changes. */
    int64_t raised_ms;
    int64_t told_ms, escalated_ms, resend_ms, over_ms;
    int64_t acted_ms; /**< When its actions were decided; 0: they were not. */
    char *actions;    /**< JSON: [{"kind", "state", "message"}]; NULL: none. */
};

#define WEIR_FIRING_WAITING   "waiting"
#define WEIR_FIRING_TOLD      "told"
#define WEIR_FIRING_ESCALATED "escalated"
#define WEIR_FIRING_OVER      "over"

/** A message on its way to a receiver. */
struct weir_alert_delivery {
    char *id; /**< The receiver sees it with each try. */
    int64_t seq;
    char *receiver;
    char *rule;    /**< NULL: a test. */
    char *project; /**< The rule's. */
    char *alert;   /**< The first of those that it tells of. */
    char *event;   /**< WEIR_DELIVERY_… */
    char *message; /**< JSON: docs/reference/alerts.md. */
    char *state;   /**< "pending", "sent" or "dead" (given up). */
    int64_t attempts;
    int64_t due_ms; /**< Not before; while it is being sent: when it may be tried again. */
    char *error;    /**< Of the last try. */
    int64_t created_ms;
    int64_t done_ms;
};

#define WEIR_DELIVERY_RAISED    "raised"
#define WEIR_DELIVERY_ESCALATED "escalated"
#define WEIR_DELIVERY_REPEATED  "repeated"
#define WEIR_DELIVERY_RESOLVED  "resolved"
#define WEIR_DELIVERY_TEST      "test"

extern const struct weir_resource weir_alert_receiver_resource;
extern const struct weir_resource weir_alert_rule_resource;
extern const struct weir_resource weir_alert_silence_resource;
extern const struct weir_resource weir_alert_firing_resource;
extern const struct weir_resource weir_alert_delivery_resource;

/**
 * Make a receiver, or change one. Masked secrets in its options get the stored values.
 * @return INVALID for options that its kind does not take; UNSUPPORTED; LIMIT.
 */
weir_status weir_alert_receiver_set(struct weir_txn *txn, struct weir_alert_receiver *receiver,
                                    int64_t now_ms, struct weir_arena *arena,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND; CONFLICT if a rule names it. Messages that wait for it are given up. */
weir_status weir_alert_receiver_delete(struct weir_txn *txn, const char *name, int64_t now_ms,
                                       struct weir_arena *arena,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** May rules of this project use it? NULL is the platform. Pure. */
bool weir_alert_receiver_serves(const struct weir_alert_receiver *receiver, const char *project);

/**
 * Make a rule, or change one; it looks at the alerts that are there, too. Of what it does not want any
 * more it lets go without a message.
 * @param maker  Who sets it: it must have the right of each action, unless the rule is disabled.
 * @return INVALID with the place of what is wrong; NOT_FOUND for a receiver; DENIED for one that the
 *         project may not use, and for an action that the maker may not do; CONFLICT to change its
 *         project; LIMIT.
 */
weir_status weir_alert_rule_set(struct weir_txn *txn, struct weir_alert_rule *rule,
                                const struct weir_identity *maker, int64_t now_ms,
                                struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND. What it has begun ends without another message. */
weir_status weir_alert_rule_delete(struct weir_txn *txn, const char *name,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Begin a silence; its id is made here. @return INVALID, LIMIT; NOT_FOUND for its alert. */
weir_status weir_alert_silence_begin(struct weir_txn *txn, struct weir_alert_silence *silence,
                                     int64_t now_ms, struct weir_arena *arena,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** End it before its time. @return NOT_FOUND; ending it again changes nothing. */
weir_status weir_alert_silence_end(struct weir_txn *txn, const char *id, const char *actor,
                                   int64_t now_ms, struct weir_arena *arena,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Is an alert to be looked at: it changed, a silence ended, or a firing's time has come? */
weir_status weir_notify_is_due(struct weir_txn *txn, int64_t now_ms, bool *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** An action that a rule decided on, to be carried out by the caller. */
struct weir_notify_action {
    const char *firing; /**< Its identifier. */
    const char *rule;
    const char *maker;   /**< Who set the rule that decided it: the action needs its rights. */
    const char *subject; /**< The alert's. */
    const char *alert;   /**< Its kind. */
    const char *action;  /**< JSON: {"kind", …}. */
    int64_t number;      /**< Among the rule's actions. */
};

struct weir_notify_look {
    int64_t now_ms;
    const char *server_url; /**< For messages: where the alert can be seen. */
    /** Is what the subject names a sandbox? NULL: nothing is. */
    weir_status (*is_sandbox)(struct weir_txn *txn, const char *subject, struct weir_arena *arena,
                              bool *out, struct weir_error *err);
    /** Have an action carried out, in the same transaction: enqueue it. */
    weir_status (*act)(struct weir_txn *txn, const struct weir_notify_action *action,
                       int64_t now_ms, struct weir_arena *arena, struct weir_error *err);
    size_t n_alerts;     /**< Out: alerts that it looked at. */
    size_t n_deliveries; /**< Out: messages that it wrote. */
};

/** Alerts that one look takes; the others are due again. */
#define WEIR_NOTIFY_ALERTS_MAX 100

/** Look at what is due, and write all that follows. A write transaction. */
weir_status weir_notify_look(struct weir_txn *txn, struct weir_notify_look *look,
                             struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** Send a test to a receiver, as soon as its turn comes. *out_id: the delivery's. @return NOT_FOUND,
 *  UNAVAILABLE if too many messages wait for it. */
weir_status weir_notify_test(struct weir_txn *txn, const char *receiver, const char *server_url,
                             int64_t now_ms, struct weir_arena *arena, char **out_id,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Write into a firing what became of one of its actions; state: "done", "refused". */
weir_status weir_notify_action_done(struct weir_txn *txn, const char *firing, int64_t number,
                                    const char *state, const char *message,
                                    struct weir_arena *arena,
                                    struct weir_error *err) WEIR_MUST_CHECK;

#endif
