/** One look at what is due: what it has loaded, and what it is about to write. In its arena. */
#ifndef WEIR_NOTIFY_LOOK_PRIVATE_H
#define WEIR_NOTIFY_LOOK_PRIVATE_H

#include "notify/decide.h"
#include "notify/match.h"
#include "notify/notify.h"

/** A rule with its lists read. */
struct look_rule {
    const struct weir_alert_rule *record;
    struct notify_match match;
    struct notify_words receivers, escalate_to;
    bool has_forgetful; /**< One of its receivers forgets. */
    size_t seen;        /**< Number of the last alert of which it has a firing already; from 1. */
};

struct look_silence {
    const struct weir_alert_silence *record;
    struct notify_match match;
};

struct look_receiver {
    const struct weir_alert_receiver *record;
    struct notify_words projects;
    bool forgets;
};

/** A firing, what it is of, and what is to be done. */
struct look_item {
    struct weir_alert_firing firing;
    const struct weir_alert *alert;
    const struct look_rule *rule; /**< NULL: it is gone, or does not want the alert. */
    struct notify_decision decision;
    struct look_item *first, *next; /**< Of its group, in order; set by looking_group. */
    bool is_group_due;              /**< Of the first: it is told now. */
    bool is_taken;                  /**< It is in a message. */
};

struct looking {
    struct weir_txn *txn;
    struct weir_notify_look *look;
    struct weir_arena *arena;
    struct weir_error *err;
    struct look_rule *rules; /**< By name. */
    size_t n_rules;
    struct look_silence *silences;
    size_t n_silences;
    struct look_receiver *receivers;
    size_t n_receivers;
    struct look_item *items;
    size_t n_items, cap_items;
};

/** Rules, silences that hold, and receivers. */
weir_status looking_load(struct looking *l) WEIR_MUST_CHECK;

/** NULL if there is none. */
struct look_rule *looking_rule(const struct looking *l, const char *name);

/** Find which items share a message; from now on items stay where they are. Cost: n log n. */
void looking_group(struct looking *l);

/** Write messages of all items with this deed whose rule is there, as their rules group them. */
weir_status looking_send(struct looking *l, enum notify_deed deed,
                         const char *event) WEIR_MUST_CHECK;

#endif
