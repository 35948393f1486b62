#include "deploy/step.h"

#include "base/json.h"
#include "deploy/step_private.h"

#include <string.h>

#define URL_MAX_BYTES  300
#define BACKOFF_SHIFTS 6

void deploy_act(struct step *step, struct weir_deploy_action action)
{
    if (step->actions->n < WEIR_DEPLOY_ACTIONS_MAX) { /* one step of 64 replicas has far fewer */
        step->actions->items[step->actions->n++] = action;
    }
}

void deploy_tell(struct step *step, const char *kind, const char *message)
{
    deploy_act(step, (struct weir_deploy_action){
                         .type = WEIR_DEPLOY_ACTION_EVENT, .kind = kind, .message = message});
}

void deploy_set_text(struct step *step, char **member, const char *text)
{
    if (!is_same(*member, text)) {
        *member = weir_arena_strdup(step->arena, text);
        step->state->is_changed = true;
    }
}

/* ---- how it is ------------------------------------------------------------------------------- */

static bool serves(const struct weir_deploy_state *state)
{
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        if (!state->versions[i].is_gone && row->live_ppm > 0 &&
            weir_deploy_n_ready(state, row->version) > 0) {
            return true;
        }
    }
    return false;
}

static void judge(struct step *step)
{
    struct weir_deploy_state *state = step->state;
    struct weir_deployment *deployment = &state->deployment;
    bool has_live = weir_deploy_shares(state, true).n > 0;
    const char *problem = weir_deploy_problem(state);
    char *word, *reason = NULL;
    if (problem != NULL) {
        reason = weir_arena_printf(step->arena, "%s; %s", problem,
                                   has_live ? "the traffic stays as it was" : "nothing is served");
    } else if (deployment->failure != NULL) {
        reason = weir_arena_printf(step->arena, "its last replica ended: %s", deployment->failure);
    }
    if (serves(state)) {
        word = WEIR_DEPLOYMENT_SERVING;
    } else if (has_live && deployment->n_wanted == 0) {
        word = WEIR_DEPLOYMENT_IDLE;
    } else if (problem != NULL || deployment->n_failures > 1) {
        word = WEIR_DEPLOYMENT_FAILED;
    } else {
        word = WEIR_DEPLOYMENT_DEPLOYING;
    }
    deploy_set_text(step, &deployment->reason, reason);
    if (!is(deployment->state, word)) {
        deployment->state = word;
        deployment->state_ms = step->now_ms;
        state->is_changed = true;
        deploy_tell(
            step, is(word, WEIR_DEPLOYMENT_FAILED) ? "deployment_failed" : "deployment_changed",
            weir_arena_printf(step->arena, "Deployment %s is %s%s%s", deployment->name, word,
                              reason != NULL ? ": " : "", reason != NULL ? reason : ""));
    }
}

static void settle(struct step *step)
{
    deploy_notice_silent(step);
    deploy_note_failures(step);
    deploy_follow(step);
    deploy_note_failures(step); /* one that is told to stop fails nothing any more */
    deploy_promote(step);
    deploy_drop_versions(step);
    judge(step);
}

/* ---- events ---------------------------------------------------------------------------------- */

static weir_status check_room(const struct step *step, struct weir_error *err)
{
    const struct weir_deploy_wanted *wanted = step->event->wanted;
    size_t n = wanted->shares.n + (wanted->mirror > 0);
    for (size_t i = 0; i < step->state->n_versions; i++) {
        n += !step->state->versions[i].is_gone;
    }
    return n <= WEIR_DEPLOY_VERSIONS_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "deployment \"%s\" would load %zu versions, and may load %d: those "
                                "that lost their share go after %d s",
                                step->state->deployment.name, n, WEIR_DEPLOY_VERSIONS_MAX,
                                WEIR_DEPLOY_KEEP_MS / 1000);
}

static void on_applied(struct step *step)
{
    const struct weir_deploy_wanted *wanted = step->event->wanted;
    struct weir_deployment *deployment = &step->state->deployment;
    for (size_t i = 0; i < step->state->n_versions; i++) {
        step->state->versions[i].row.wanted_ppm = 0;
        step->state->versions[i].row.failure = NULL; /* who asks again wants it tried again */
    }
    for (size_t i = 0; i < wanted->shares.n; i++) {
        deploy_have_version(step, wanted->shares.items[i].version)->row.wanted_ppm =
            wanted->shares.items[i].ppm;
    }
    if (wanted->mirror > 0) {
        (void)deploy_have_version(step, wanted->mirror);
    }
    if (deployment->replicas_max != wanted->replicas_max && deployment->next_start_ms > 0) {
        deployment->next_start_ms = step->now_ms;
    }
    deployment->follows = (char *)wanted->follows;
    deployment->mirror = wanted->mirror;
    deployment->replicas_min = wanted->replicas_min;
    deployment->replicas_max = wanted->replicas_max;
    deployment->batch_max = wanted->batch_max;
    deployment->delay_max_us = wanted->delay_max_us;
    deployment->queue_max = wanted->queue_max;
    deployment->cpu_millis = wanted->cpu_millis;
    deployment->memory_bytes = wanted->memory_bytes;
    deployment->gpus = wanted->gpus;
    deployment->idle_after_ms = wanted->idle_after_ms;
    deployment->hold_ms = wanted->hold_ms;
    deployment->updated_ms = step->now_ms;
    deployment->revision++;
    /* Who changes something wants to see it tried again now. */
    deployment->n_failures = 0;
    deployment->failure = NULL;
    deployment->next_start_ms = 0;
    step->state->is_changed = true;
}

static void on_deleted(struct step *step)
{
    for (size_t i = 0; i < step->state->n_replicas; i++) {
        if (deploy_is_alive(&step->state->replicas[i])) {
            deploy_stop_replica(step, &step->state->replicas[i]);
        }
    }
    step->state->is_deleted = true;
    step->state->is_changed = true;
}

static weir_status on_report(struct step *step, struct weir_error *err)
{
    const struct weir_deploy_event *event = step->event;
    struct weir_deploy_replica *replica = deploy_find_replica(step->state, event->replica);
    json_t *versions;
    if (replica == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "deployment \"%s\" has no replica \"%.80s\"",
                              step->state->deployment.name, event->replica);
    }
    if (event->url != NULL && strlen(event->url) > URL_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.url: at most %d bytes", URL_MAX_BYTES);
    }
    const char *text = event->versions != NULL ? event->versions : "[]";
    WEIR_TRY(weir_json_parse(text, strlen(text), "$.versions", &versions, err));
    weir_status status =
        weir_deploy_loaded_read(versions, step->arena, &replica->loaded, &replica->n_loaded, err);
    json_decref(versions);
    WEIR_TRY(status);
    replica->row.url = weir_arena_strdup(step->arena, event->url);
    replica->row.versions = weir_arena_strdup(step->arena, text);
    replica->row.stats = weir_arena_strdup(step->arena, event->stats);
    replica->row.revision = event->revision;
    replica->row.n_running = event->n_running;
    replica->row.time_ms = step->now_ms;
    step->state->is_changed = true;
    if (deploy_is_alive(replica) && event->url != NULL) {
        deploy_set_state(step, replica, WEIR_DEPLOYED_READY);
        step->state->deployment.n_failures = 0;
        step->state->deployment.failure = NULL;
        step->state->deployment.next_start_ms = 0;
    }
    return WEIR_OK;
}

static void on_started(struct step *step)
{
    struct weir_deploy_replica *replica = deploy_find_replica(step->state, step->event->replica);
    if (replica != NULL && is(replica->row.state, WEIR_DEPLOYED_WANTED)) {
        replica->row.job = weir_arena_strdup(step->arena, step->event->job);
        deploy_set_state(step, replica, WEIR_DEPLOYED_STARTING);
    }
}

static void note_failure(struct step *step, const struct weir_deploy_replica *replica,
                         const char *note)
{
    struct weir_deployment *deployment = &step->state->deployment;
    deployment->n_failures++;
    deployment->failure = weir_arena_printf(step->arena, "%.*s", DEPLOY_REASON_MAX_BYTES, note);
    step->state->is_changed = true;
    deploy_tell(step, "replica_ended",
                weir_arena_printf(step->arena, "Replica %s of deployment %s ended: %s",
                                  replica->row.id, deployment->name, deployment->failure));
}

/* What it said is of a process that is gone. */
static void on_down(struct step *step)
{
    struct weir_deploy_replica *replica = deploy_find_replica(step->state, step->event->replica);
    if (replica == NULL || !deploy_is_alive(replica) || replica->row.job == NULL) {
        return;
    }
    deploy_set_text(step, &replica->row.url, NULL);
    deploy_set_text(step, &replica->row.versions, NULL);
    replica->n_loaded = 0;
    replica->row.n_running = 0;
    deploy_set_state(step, replica, WEIR_DEPLOYED_STARTING);
    if (step->event->note != NULL) {
        note_failure(step, replica, step->event->note);
    }
}

/* One that nobody asked to end failed. */
static void on_ended(struct step *step)
{
    struct weir_deploy_replica *replica = deploy_find_replica(step->state, step->event->replica);
    struct weir_deployment *deployment = &step->state->deployment;
    if (replica == NULL) {
        return;
    }
    bool was_wanted = deploy_is_alive(replica);
    replica->is_gone = true;
    step->state->is_changed = true;
    if (was_wanted) {
        int64_t shift = WEIR_MIN(deployment->n_failures, (int64_t)BACKOFF_SHIFTS);
        int64_t pause_ms = WEIR_MIN((int64_t)1000 << shift, (int64_t)WEIR_DEPLOY_BACKOFF_MS);
        deployment->next_start_ms = deployment->n_failures == 0 ? 0 : step->now_ms + pause_ms;
        note_failure(step, replica,
                     step->event->note != NULL ? step->event->note : "no reason is known");
    }
}

weir_status weir_deploy_step(struct weir_deploy_state *state, const struct weir_deploy_event *event,
                             int64_t now_ms, struct weir_arena *arena,
                             struct weir_deploy_actions *actions, struct weir_error *err)
{
    struct step step = {state, event, now_ms, arena, actions};
    switch (event->type) {
    case WEIR_DEPLOY_EVENT_APPLIED:
        WEIR_TRY(check_room(&step, err));
        on_applied(&step);
        break;
    case WEIR_DEPLOY_EVENT_DELETED:
        on_deleted(&step);
        return WEIR_OK;
    case WEIR_DEPLOY_EVENT_TICK:
        break;
    case WEIR_DEPLOY_EVENT_REPORT:
        WEIR_TRY(on_report(&step, err));
        break;
    case WEIR_DEPLOY_EVENT_STARTED:
        on_started(&step);
        break;
    case WEIR_DEPLOY_EVENT_DOWN:
        on_down(&step);
        break;
    case WEIR_DEPLOY_EVENT_REFUSED:
    case WEIR_DEPLOY_EVENT_ENDED:
        on_ended(&step);
        break;
    }
    settle(&step);
    return WEIR_OK;
}

void weir_deploy_new(const char *name, const char *project, const char *model, const char *secret,
                     const char *actor, int64_t now_ms, struct weir_arena *arena,
                     struct weir_deploy_state *out)
{
    *out = (struct weir_deploy_state){.is_new = true,
                                      .deployment = {.name = weir_arena_strdup(arena, name),
                                                     .project = weir_arena_strdup(arena, project),
                                                     .model = weir_arena_strdup(arena, model),
                                                     .secret = weir_arena_strdup(arena, secret),
                                                     .state = WEIR_DEPLOYMENT_DEPLOYING,
                                                     .state_ms = now_ms,
                                                     .created_by = weir_arena_strdup(arena, actor),
                                                     .created_ms = now_ms,
                                                     .updated_ms = now_ms}};
}
