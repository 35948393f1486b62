/* What a look needs to know of rules, silences and receivers, each list read once. */
#include "notify/look_private.h"

#include "notify/receiver.h"
#include "store/table.h"

#include <stdlib.h>
#include <string.h>

static bool names_forgetful(const struct looking *l, const struct look_rule *rule)
{
    bool has = false;
    for (size_t i = 0; i < l->n_receivers && !has; i++) {
        const struct look_receiver *receiver = &l->receivers[i];
        has = receiver->forgets && (notify_words_name(&rule->receivers, receiver->record->name) ||
                                    notify_words_name(&rule->escalate_to, receiver->record->name));
    }
    return has;
}

static void read_rules(struct looking *l, const struct weir_alert_rule *records)
{
    l->rules = WEIR_ARENA_ARRAY(l->arena, l->n_rules + 1, struct look_rule);
    for (size_t i = 0; i < l->n_rules; i++) {
        const struct weir_alert_rule *record = &records[i];
        const struct notify_lists lists = {record->kinds, record->subjects, record->severities};
        struct look_rule *rule = &l->rules[i];
        *rule = (struct look_rule){.record = record,
                                   .match = notify_match_read(&lists, l->arena),
                                   .receivers = notify_words_read(record->receivers, l->arena),
                                   .escalate_to = notify_words_read(record->escalate_to, l->arena)};
        rule->has_forgetful = names_forgetful(l, rule);
    }
}

static void read_silences(struct looking *l, const struct weir_alert_silence *records)
{
    l->silences = WEIR_ARENA_ARRAY(l->arena, l->n_silences + 1, struct look_silence);
    for (size_t i = 0; i < l->n_silences; i++) {
        const struct weir_alert_silence *record = &records[i];
        const struct notify_lists lists = {record->kinds, record->subjects, record->severities};
        l->silences[i] = (struct look_silence){record, notify_match_read(&lists, l->arena)};
    }
}

static void read_receivers(struct looking *l, const struct weir_alert_receiver *records)
{
    l->receivers = WEIR_ARENA_ARRAY(l->arena, l->n_receivers + 1, struct look_receiver);
    for (size_t i = 0; i < l->n_receivers; i++) {
        const struct weir_alert_receiver *record = &records[i];
        l->receivers[i] =
            (struct look_receiver){record, notify_words_read(record->projects, l->arena),
                                   weir_receiver_forgets(record->kind)};
    }
}

weir_status looking_load(struct looking *l)
{
    const struct weir_query all = {.limit = WEIR_QUERY_LIMIT_MAX};
    const struct weir_query active = {WEIR_FILTERS(WEIR_FILTER_INT("until_ms", GT, l->look->now_ms),
                                                   WEIR_FILTER_INT("ended_ms", EQ, 0)),
                                      .limit = WEIR_QUERY_LIMIT_MAX};
    void *rules, *silences, *receivers;
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_rule_resource, &all, l->arena, &rules, &l->n_rules,
                           NULL, l->err));
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_silence_resource, &active, l->arena, &silences,
                           &l->n_silences, NULL, l->err));
    WEIR_TRY(weir_txn_list(l->txn, &weir_alert_receiver_resource, &all, l->arena, &receivers,
                           &l->n_receivers, NULL, l->err));
    read_receivers(l, receivers);
    read_rules(l, rules);
    read_silences(l, silences);
    return WEIR_OK;
}

static int compare_name(const void *name, const void *rule)
{
    return strcmp(name, ((const struct look_rule *)rule)->record->name);
}

struct look_rule *looking_rule(const struct looking *l, const char *name)
{
    return bsearch(name, l->rules, l->n_rules, sizeof *l->rules, compare_name);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* By rule and group; in a group in order. */
static int compare_items(const void *left, const void *right)
{
    const struct look_item *a = *(struct look_item *const *)left;
    const struct look_item *b = *(struct look_item *const *)right;
    if (a->rule != b->rule) {
        return a->rule < b->rule ? -1 : 1;
    }
    int order = strcmp(notify_group(a->rule->record, &a->firing),
                       notify_group(b->rule->record, &b->firing));
    if (order != 0) {
        return order;
    }
    return a < b ? -1 : a > b;
}

static bool is_same_group(const struct look_item *a, const struct look_item *b)
{
    return a->rule == b->rule && strcmp(notify_group(a->rule->record, &a->firing),
                                        notify_group(b->rule->record, &b->firing)) == 0;
}

void looking_group(struct looking *l)
{
    struct look_item **order = WEIR_ARENA_ARRAY(l->arena, l->n_items + 1, struct look_item *);
    size_t n = 0;
    for (size_t i = 0; i < l->n_items; i++) {
        l->items[i].first = &l->items[i];
        if (l->items[i].rule != NULL) {
            order[n++] = &l->items[i];
        }
    }
    qsort(order, n, sizeof(struct look_item *), compare_items);
    for (size_t i = 1; i < n; i++) {
        if (is_same_group(order[i - 1], order[i])) {
            order[i]->first = order[i - 1]->first;
            order[i - 1]->next = order[i];
        }
    }
}
