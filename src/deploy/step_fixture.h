/** Tests: a deployment "d" of the model "m", stepped in memory under a driven clock. */
#ifndef WEIR_DEPLOY_STEP_FIXTURE_H
#define WEIR_DEPLOY_STEP_FIXTURE_H

#include "base/test_main.h"
#include "deploy/step.h"

#include <stdio.h>
#include <string.h>

struct deploy_fixture {
    struct weir_arena arena;
    struct weir_deploy_state state;
    struct weir_deploy_actions actions; /**< Of the last step. */
    int64_t now_ms;
    struct weir_error err;
};

static inline void deploy_fixture_init(struct deploy_fixture *f)
{
    memset(f, 0, sizeof *f);
    weir_arena_init(&f->arena, 0);
    f->now_ms = 1000000;
    weir_deploy_new("d", "p", "m", "secret", "ann", f->now_ms, &f->arena, &f->state);
}

static inline weir_status deploy_try(struct deploy_fixture *f, struct weir_deploy_event event)
{
    f->actions.n = 0;
    f->state.is_changed = false;
    return weir_deploy_step(&f->state, &event, f->now_ms, &f->arena, &f->actions, &f->err);
}

static inline void deploy_do(struct deploy_fixture *f, struct weir_deploy_event event)
{
    weir_status status = deploy_try(f, event);
    ck_assert_msg(status == WEIR_OK, "%s", f->err.message);
}

static inline struct weir_deploy_wanted wanted_of(struct weir_shares shares, int64_t min,
                                                  int64_t max)
{
    return (struct weir_deploy_wanted){.shares = shares,
                                       .replicas_min = min,
                                       .replicas_max = max,
                                       .batch_max = 4,
                                       .queue_max = 100,
                                       .cpu_millis = 1000,
                                       .idle_after_ms = 60000,
                                       .hold_ms = 30000};
}

static inline void deploy_apply(struct deploy_fixture *f, struct weir_deploy_wanted wanted)
{
    deploy_do(f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_APPLIED, .wanted = &wanted});
}

static inline void deploy_tick(struct deploy_fixture *f, int64_t pass_ms, int64_t n_outstanding,
                               int64_t n_held)
{
    const struct weir_deploy_load load = {n_outstanding, n_held};
    f->now_ms += pass_ms;
    deploy_do(f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_TICK, .load = &load});
}

static inline void deploy_started(struct deploy_fixture *f, const char *replica)
{
    char job[80];
    (void)snprintf(job, sizeof job, "job-of-%s", replica);
    deploy_do(f, (struct weir_deploy_event){
                     .type = WEIR_DEPLOY_EVENT_STARTED, .replica = replica, .job = job});
}

/** `versions` is JSON; NULL for url: it does not answer yet. */
static inline void deploy_report(struct deploy_fixture *f, const char *replica,
                                 const char *versions)
{
    deploy_do(f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_REPORT,
                                            .replica = replica,
                                            .url = "http://h:1",
                                            .versions = versions,
                                            .revision = f->state.deployment.revision});
}

static inline void deploy_ended(struct deploy_fixture *f, const char *replica, const char *note)
{
    deploy_do(f, (struct weir_deploy_event){
                     .type = WEIR_DEPLOY_EVENT_ENDED, .replica = replica, .note = note});
}

#define READY(v) "{\"version\":" #v ",\"state\":\"READY\"}"
#define LOADS(v) "{\"version\":" #v ",\"state\":\"LOADING\"}"
#define FAILS(v) "{\"version\":" #v ",\"state\":\"FAILED\",\"reason\":\"no operator Foo\"}"

static inline size_t n_actions(const struct deploy_fixture *f, enum weir_deploy_action_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < f->actions.n; i++) {
        n += f->actions.items[i].type == type;
    }
    return n;
}

/** Replicas that are there, those that end included or not. */
static inline size_t n_replicas(const struct weir_deploy_state *state, bool with_stopping)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deploy_replica *replica = &state->replicas[i];
        n += !replica->is_gone &&
             (with_stopping || strcmp(replica->row.state, WEIR_DEPLOYED_STOPPING) != 0);
    }
    return n;
}

static inline const char *live_text(struct deploy_fixture *f)
{
    struct weir_shares shares = weir_deploy_shares(&f->state, true);
    return weir_shares_text(&shares, &f->arena);
}

#endif
