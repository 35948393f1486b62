/** Tests: a store with projects, receivers and rules, and looks at times of the test's choice. */
#ifndef WEIR_NOTIFY_NOTIFY_FIXTURE_H
#define WEIR_NOTIFY_NOTIFY_FIXTURE_H

#include "notify/notify.h"
#include "notify/queue.h"
#include "nouns/nouns.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "store/tenant.h"

#include <string.h>

static struct store_fixture fixture;
static int64_t now_ms;
static int n_acted;
static bool all_are_sandboxes; /* what alerts are about */

static inline weir_status populate_notify(struct weir_txn *txn, void *context,
                                          struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "vision"},
                         err));
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "speech"},
                           err);
}

static inline void set_up(void)
{
    now_ms = 1000000;
    n_acted = 0;
    all_are_sandboxes = false;
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){.noun_at = weir_noun_at});
    fixture_write(&fixture, populate_notify, NULL);
}

static inline void tear_down(void)
{
    fixture_fini(&fixture);
}

static inline weir_status set_receiver_in(struct weir_txn *txn, void *context,
                                          struct weir_error *err)
{
    return weir_alert_receiver_set(txn, context, now_ms, &fixture.arena, err);
}

static inline void add_receiver(const char *name, const char *kind, const char *options,
                                const char *projects)
{
    struct weir_alert_receiver receiver = {.name = (char *)name,
                                           .kind = (char *)kind,
                                           .options = (char *)options,
                                           .projects = (char *)projects,
                                           .created_by = "ann"};
    fixture_write(&fixture, set_receiver_in, &receiver);
}

static inline weir_status set_rule_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_identity ann = {.user = {.name = "ann"}, .rights = WEIR_RIGHTS_ALL};
    return weir_alert_rule_set(txn, context, &ann, now_ms, &fixture.arena, err);
}

static inline weir_status try_rule(struct weir_alert_rule rule)
{
    rule.group_by = rule.group_by != NULL ? rule.group_by : "rule";
    return weir_store_write(fixture.store, set_rule_in, &rule, &fixture.err);
}

static inline void add_rule(struct weir_alert_rule rule)
{
    weir_status status = try_rule(rule);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
}

static inline weir_status raise_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_raise(txn, context, now_ms, NULL, err);
}

static inline void raise_alert(const char *id, const char *kind, const char *subject)
{
    char key[128];
    (void)snprintf(key, sizeof key, "%s:%s", kind, subject);
    struct weir_alert alert = {.id = (char *)id,
                               .key = key,
                               .kind = (char *)kind,
                               .subject = (char *)subject,
                               .message = "Something is wrong"};
    fixture_write(&fixture, raise_in, &alert);
}

static inline weir_status resolve_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_alert_resolve(txn, context, now_ms, err);
}

static inline void resolve_alert(const char *key)
{
    fixture_write(&fixture, resolve_in, (void *)key);
}

static inline weir_status acknowledge_in(struct weir_txn *txn, void *context,
                                         struct weir_error *err)
{
    return weir_alert_acknowledge(txn, context, "ann", NULL, now_ms, err);
}

static inline weir_status act_in(struct weir_txn *txn, const struct weir_notify_action *action,
                                 int64_t at_ms, struct weir_arena *arena, struct weir_error *err)
{
    (void)action;
    (void)at_ms;
    (void)arena;
    (void)txn;
    (void)err;
    n_acted++;
    return WEIR_OK;
}

static inline weir_status is_sandbox_in(struct weir_txn *txn, const char *subject,
                                        struct weir_arena *arena, bool *out, struct weir_error *err)
{
    (void)txn;
    (void)subject;
    (void)arena;
    (void)err;
    *out = all_are_sandboxes;
    return WEIR_OK;
}

static inline weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_notify_look(txn, context, &fixture.arena, err);
}

static inline weir_status is_due_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_notify_is_due(txn, now_ms, context, err);
}

/** As the engine does: looks until nothing is due. @return How many messages came of it. */
static inline size_t look(void)
{
    size_t n = 0;
    bool is_due = true;
    for (int i = 0; i < 20 && is_due; i++) {
        struct weir_notify_look one = {.now_ms = now_ms,
                                       .server_url = "http://h:1",
                                       .is_sandbox = is_sandbox_in,
                                       .act = act_in};
        fixture_read(&fixture, is_due_in, &is_due);
        if (is_due) {
            fixture_write(&fixture, look_in, &one);
            n += one.n_deliveries;
        }
    }
    ck_assert(!is_due);
    return n;
}

struct asked {
    const char *sql;
    int64_t value;
    char **texts;
    size_t n;
};

static inline weir_status ask_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    return weir_txn_query_int(txn, asked->sql, WEIR_NO_BINDS, -1, &asked->value, err);
}

static inline int64_t ask(const char *sql)
{
    struct asked asked = {.sql = sql};
    fixture_read(&fixture, ask_in, &asked);
    return asked.value;
}

static inline weir_status ask_text_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    return weir_txn_query_texts(txn, asked->sql, WEIR_NO_BINDS, &fixture.arena, &asked->texts,
                                &asked->n, err);
}

/** The first text of the answer; "" if there is none. */
static inline const char *ask_text(const char *sql)
{
    struct asked asked = {.sql = sql};
    fixture_read(&fixture, ask_text_in, &asked);
    return asked.n > 0 && asked.texts[0] != NULL ? asked.texts[0] : "";
}

/** All messages so far, oldest first: "raised>hook resolved>hook". */
static inline const char *told(void)
{
    return ask_text("SELECT group_concat(event || '>' || receiver, ' ') FROM"
                    " (SELECT event, receiver FROM alert_deliveries ORDER BY seq)");
}

#endif
