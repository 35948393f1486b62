#include "deploy/step.h"

#include "base/json.h"
#include "deploy/scale.h"

#include <inttypes.h>
#include <string.h>

#define REASON_MAX_BYTES 512
#define URL_MAX_BYTES    300
#define BACKOFF_SHIFTS   6

/* One call of weir_deploy_step. */
struct step {
    struct weir_deploy_state *state;
    const struct weir_deploy_event *event;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_deploy_actions *actions;
};

static bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

static bool is_same(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static void act(struct step *step, struct weir_deploy_action action)
{
    if (step->actions->n < WEIR_DEPLOY_ACTIONS_MAX) { /* one step of 64 replicas has far fewer */
        step->actions->items[step->actions->n++] = action;
    }
}

static void tell(struct step *step, const char *kind, const char *message)
{
    act(step, (struct weir_deploy_action){
                  .type = WEIR_DEPLOY_ACTION_EVENT, .kind = kind, .message = message});
}

static void set_text(struct step *step, char **member, const char *text)
{
    if (!is_same(*member, text)) {
        *member = weir_arena_strdup(step->arena, text);
        step->state->is_changed = true;
    }
}

/* ---- what there is --------------------------------------------------------------------------- */

static struct weir_deploy_replica *find_replica(const struct weir_deploy_state *state,
                                                const char *id)
{
    for (size_t i = 0; id != NULL && i < state->n_replicas; i++) {
        if (!state->replicas[i].is_gone && strcmp(state->replicas[i].row.id, id) == 0) {
            return &state->replicas[i];
        }
    }
    return NULL;
}

bool weir_deploy_replica_has(const struct weir_deploy_replica *replica, int64_t version)
{
    if (replica->is_gone || replica->row.url == NULL ||
        !is(replica->row.state, WEIR_DEPLOYED_READY)) {
        return false;
    }
    for (size_t i = 0; i < replica->n_loaded; i++) {
        if (replica->loaded[i].version == version) {
            return replica->loaded[i].phase == WEIR_DEPLOY_READY;
        }
    }
    return false;
}

size_t weir_deploy_n_ready(const struct weir_deploy_state *state, int64_t version)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_replicas; i++) {
        n += weir_deploy_replica_has(&state->replicas[i], version);
    }
    return n;
}

/* A replica that answers and could not load the version; NULL: none. */
static const struct weir_deploy_replica *find_failure(const struct weir_deploy_state *state,
                                                      int64_t version, const char **out_reason)
{
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deploy_replica *replica = &state->replicas[i];
        bool answers = !replica->is_gone && is(replica->row.state, WEIR_DEPLOYED_READY);
        for (size_t k = 0; answers && k < replica->n_loaded; k++) {
            if (replica->loaded[k].version == version &&
                replica->loaded[k].phase == WEIR_DEPLOY_FAILED) {
                *out_reason = replica->loaded[k].reason;
                return replica;
            }
        }
    }
    return NULL;
}

struct weir_shares weir_deploy_shares(const struct weir_deploy_state *state, bool is_live)
{
    struct weir_shares shares = {0};
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        int64_t ppm = is_live ? row->live_ppm : row->wanted_ppm;
        if (!state->versions[i].is_gone && ppm > 0 && shares.n < WEIR_SHARES_MAX) {
            shares.items[shares.n++] = (struct weir_share){row->version, ppm};
        }
    }
    return shares;
}

static bool is_pending(const struct weir_deploy_state *state)
{
    for (size_t i = 0; i < state->n_versions; i++) {
        if (!state->versions[i].is_gone &&
            state->versions[i].row.wanted_ppm != state->versions[i].row.live_ppm) {
            return true;
        }
    }
    return false;
}

const char *weir_deploy_problem(const struct weir_deploy_state *state)
{
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        if (!state->versions[i].is_gone && row->wanted_ppm != row->live_ppm &&
            row->wanted_ppm > 0 && row->failure != NULL) {
            return row->failure;
        }
    }
    return NULL;
}

/* ---- versions -------------------------------------------------------------------------------- */

/* The row of a version, made in its place if there is none. */
static struct weir_deploy_version *have_version(struct step *step, int64_t version)
{
    struct weir_deploy_state *state = step->state;
    size_t at = 0;
    while (at < state->n_versions && state->versions[at].row.version < version) {
        at++;
    }
    if (at < state->n_versions && state->versions[at].row.version == version) {
        state->versions[at].is_gone = false;
        return &state->versions[at];
    }
    struct weir_deploy_version *grown =
        WEIR_ARENA_ARRAY(step->arena, state->n_versions + 1, struct weir_deploy_version);
    if (state->n_versions > 0) {
        memcpy(grown, state->versions, at * sizeof *grown);
        memcpy(grown + at + 1, state->versions + at, (state->n_versions - at) * sizeof *grown);
    }
    grown[at].row = (struct weir_deployment_version){
        .id = weir_arena_printf(step->arena, "%s:%" PRId64, state->deployment.name, version),
        .deployment = state->deployment.name,
        .model = state->deployment.model,
        .version = version};
    state->versions = grown;
    state->n_versions++;
    return &grown[at];
}

static bool is_needed(const struct step *step, const struct weir_deployment_version *row)
{
    return row->wanted_ppm > 0 || row->live_ppm > 0 ||
           row->version == step->state->deployment.mirror || row->keep_ms > step->now_ms;
}

/* Versions that nothing needs any more are dropped. */
static void drop_versions(struct step *step)
{
    for (size_t i = 0; i < step->state->n_versions; i++) {
        struct weir_deploy_version *version = &step->state->versions[i];
        /* No wait is longer than it was made: the clock was set back. */
        version->row.keep_ms = WEIR_MIN(version->row.keep_ms, step->now_ms + WEIR_DEPLOY_KEEP_MS);
        if (!version->is_gone && !is_needed(step, &version->row)) {
            version->is_gone = true;
            step->state->is_changed = true;
            step->state->deployment.revision++;
        }
    }
}

/* What failed is remembered, though its replica be gone: another would fail alike. */
static void note_failures(struct step *step)
{
    for (size_t i = 0; i < step->state->n_versions; i++) {
        struct weir_deployment_version *row = &step->state->versions[i].row;
        const char *reason = NULL;
        const struct weir_deploy_replica *replica =
            find_failure(step->state, row->version, &reason);
        if (replica != NULL && row->failure == NULL) {
            set_text(step, &row->failure,
                     weir_arena_printf(step->arena,
                                       "v%" PRId64 " could not be loaded by replica %s: %s",
                                       row->version, replica->row.id,
                                       reason != NULL ? reason : "it gives no reason"));
        } else if (replica == NULL && row->failure != NULL &&
                   weir_deploy_n_ready(step->state, row->version) > 0) {
            set_text(step, &row->failure, NULL);
        }
    }
}

static bool can_promote(const struct weir_deploy_state *state)
{
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        if (!state->versions[i].is_gone && row->wanted_ppm > 0 &&
            (weir_deploy_n_ready(state, row->version) == 0 || row->failure != NULL)) {
            return false;
        }
    }
    return true;
}

/* What is asked for comes into effect. A change among versions that are live already needs no replica:
 * they have been loaded before. */
static bool is_known(const struct weir_deploy_state *state)
{
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        if (!state->versions[i].is_gone && row->wanted_ppm > 0 && row->live_ppm == 0) {
            return false;
        }
    }
    return true;
}

static void promote(struct step *step)
{
    struct weir_deploy_state *state = step->state;
    if (!is_pending(state) || !(is_known(state) || can_promote(state))) {
        return;
    }
    struct weir_shares before = weir_deploy_shares(state, true);
    for (size_t i = 0; i < state->n_versions; i++) {
        struct weir_deployment_version *row = &state->versions[i].row;
        if (row->live_ppm > 0 && row->wanted_ppm == 0) {
            row->keep_ms = step->now_ms + WEIR_DEPLOY_KEEP_MS;
        }
        row->live_ppm = row->wanted_ppm;
    }
    struct weir_shares after = weir_deploy_shares(state, true);
    json_t *previous = before.n > 0 ? weir_shares_to_json(&before) : NULL;
    state->deployment.previous = previous != NULL ? weir_json_text(previous, step->arena) : NULL;
    json_decref(previous);
    state->deployment.revision++;
    state->is_changed = true;
    tell(step, "shares_changed",
         weir_arena_printf(step->arena, "Deployment %s: the traffic is %s, before %s",
                           state->deployment.name, weir_shares_text(&after, step->arena),
                           weir_shares_text(&before, step->arena)));
}

/* ---- replicas -------------------------------------------------------------------------------- */

static bool is_alive(const struct weir_deploy_replica *replica)
{
    return !replica->is_gone && !is(replica->row.state, WEIR_DEPLOYED_STOPPING);
}

static size_t count(const struct weir_deploy_state *state, bool with_stopping)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_replicas; i++) {
        n += !state->replicas[i].is_gone && (with_stopping || is_alive(&state->replicas[i]));
    }
    return n;
}

static void set_state(struct step *step, struct weir_deploy_replica *replica, char *state)
{
    if (!is(replica->row.state, state)) {
        replica->row.state = state;
        step->state->is_changed = true;
    }
}

static void add_replica(struct step *step)
{
    struct weir_deploy_state *state = step->state;
    struct weir_deploy_replica *grown =
        WEIR_ARENA_ARRAY(step->arena, state->n_replicas + 1, struct weir_deploy_replica);
    if (state->n_replicas > 0) {
        memcpy(grown, state->replicas, state->n_replicas * sizeof *grown);
    }
    struct weir_deployment_replica *row = &grown[state->n_replicas].row;
    int64_t number = ++state->deployment.n_started;
    *row = (struct weir_deployment_replica){
        .id = weir_arena_printf(step->arena, "%s-%" PRId64, state->deployment.name, number),
        .deployment = state->deployment.name,
        .number = number,
        .state = WEIR_DEPLOYED_WANTED,
        .created_ms = step->now_ms};
    state->replicas = grown;
    state->n_replicas++;
    state->is_changed = true;
    act(step, (struct weir_deploy_action){.type = WEIR_DEPLOY_ACTION_START, .replica = row->id});
}

static void stop_replica(struct step *step, struct weir_deploy_replica *replica)
{
    step->state->is_changed = true;
    if (replica->row.job == NULL) {
        replica->is_gone = true; /* what would start it finds nobody to start */
        return;
    }
    set_state(step, replica, WEIR_DEPLOYED_STOPPING);
    act(step, (struct weir_deploy_action){.type = WEIR_DEPLOY_ACTION_STOP,
                                          .replica = replica->row.id,
                                          .job = replica->row.job});
}

/* How much it would be missed: of those that answer, by how many versions they have ready. */
static int worth(const struct weir_deploy_replica *replica)
{
    int n_ready = 0;
    for (size_t i = 0; i < replica->n_loaded; i++) {
        n_ready += replica->loaded[i].phase == WEIR_DEPLOY_READY;
    }
    return is(replica->row.state, WEIR_DEPLOYED_READY)      ? 3 + n_ready
           : is(replica->row.state, WEIR_DEPLOYED_STARTING) ? 2
           : is(replica->row.state, WEIR_DEPLOYED_SILENT)   ? 1
                                                            : 0;
}

/* The one that is missed least; of equals the newest. */
static struct weir_deploy_replica *choose_victim(const struct weir_deploy_state *state)
{
    struct weir_deploy_replica *victim = NULL;
    for (size_t i = 0; i < state->n_replicas; i++) {
        struct weir_deploy_replica *replica = &state->replicas[i];
        if (is_alive(replica) && (victim == NULL || worth(replica) <= worth(victim))) {
            victim = replica;
        }
    }
    return victim;
}

static void notice_silent(struct step *step)
{
    for (size_t i = 0; i < step->state->n_replicas; i++) {
        struct weir_deploy_replica *replica = &step->state->replicas[i];
        int64_t quiet_ms = step->now_ms - replica->row.time_ms;
        if (is_alive(replica) && is(replica->row.state, WEIR_DEPLOYED_READY) &&
            quiet_ms >= WEIR_DEPLOY_SILENT_MS) {
            set_state(step, replica, WEIR_DEPLOYED_SILENT);
            tell(step, "replica_silent",
                 weir_arena_printf(
                     step->arena,
                     "Replica %s of deployment %s does not report: it gets no requests",
                     replica->row.id, step->state->deployment.name));
        }
        if (is_alive(replica) && is(replica->row.state, WEIR_DEPLOYED_SILENT) &&
            quiet_ms >= WEIR_DEPLOY_RESTART_MS) {
            tell(step, "replica_replaced",
                 weir_arena_printf(step->arena,
                                   "Replica %s of deployment %s is silent, and is replaced",
                                   replica->row.id, step->state->deployment.name));
            stop_replica(step, replica);
        }
    }
}

static void follow(struct step *step)
{
    struct weir_deployment before = step->state->deployment;
    struct weir_deployment *deployment = &step->state->deployment;
    bool is_waiting = is_pending(step->state) && weir_deploy_problem(step->state) == NULL;
    scale_follow(deployment, step->event->load, is_waiting, step->now_ms);
    step->state->is_changed = step->state->is_changed || before.n_wanted != deployment->n_wanted ||
                              before.more_ms != deployment->more_ms ||
                              before.less_ms != deployment->less_ms;
    while ((int64_t)count(step->state, false) > deployment->n_wanted) {
        stop_replica(step, choose_victim(step->state));
    }
    deployment->next_start_ms =
        WEIR_MIN(deployment->next_start_ms, step->now_ms + WEIR_DEPLOY_BACKOFF_MS);
    while ((int64_t)count(step->state, false) < deployment->n_wanted &&
           (int64_t)count(step->state, true) < deployment->replicas_max &&
           step->now_ms >= deployment->next_start_ms) {
        add_replica(step);
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
    set_text(step, &deployment->reason, reason);
    if (!is(deployment->state, word)) {
        deployment->state = word;
        deployment->state_ms = step->now_ms;
        state->is_changed = true;
        tell(step, is(word, WEIR_DEPLOYMENT_FAILED) ? "deployment_failed" : "deployment_changed",
             weir_arena_printf(step->arena, "Deployment %s is %s%s%s", deployment->name, word,
                               reason != NULL ? ": " : "", reason != NULL ? reason : ""));
    }
}

static void settle(struct step *step)
{
    notice_silent(step);
    note_failures(step);
    follow(step);
    note_failures(step); /* one that is told to stop fails nothing any more */
    promote(step);
    drop_versions(step);
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
        have_version(step, wanted->shares.items[i].version)->row.wanted_ppm =
            wanted->shares.items[i].ppm;
    }
    if (wanted->mirror > 0) {
        (void)have_version(step, wanted->mirror);
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
    deployment->cpus = wanted->cpus;
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
        if (is_alive(&step->state->replicas[i])) {
            stop_replica(step, &step->state->replicas[i]);
        }
    }
    step->state->is_deleted = true;
    step->state->is_changed = true;
}

static weir_status on_report(struct step *step, struct weir_error *err)
{
    const struct weir_deploy_event *event = step->event;
    struct weir_deploy_replica *replica = find_replica(step->state, event->replica);
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
    if (is_alive(replica) && event->url != NULL) {
        set_state(step, replica, WEIR_DEPLOYED_READY);
        step->state->deployment.n_failures = 0;
        step->state->deployment.failure = NULL;
        step->state->deployment.next_start_ms = 0;
    }
    return WEIR_OK;
}

static void on_started(struct step *step)
{
    struct weir_deploy_replica *replica = find_replica(step->state, step->event->replica);
    if (replica != NULL && is(replica->row.state, WEIR_DEPLOYED_WANTED)) {
        replica->row.job = weir_arena_strdup(step->arena, step->event->job);
        set_state(step, replica, WEIR_DEPLOYED_STARTING);
    }
}

static void note_failure(struct step *step, const struct weir_deploy_replica *replica,
                         const char *note)
{
    struct weir_deployment *deployment = &step->state->deployment;
    deployment->n_failures++;
    deployment->failure = weir_arena_printf(step->arena, "%.*s", REASON_MAX_BYTES, note);
    step->state->is_changed = true;
    tell(step, "replica_ended",
         weir_arena_printf(step->arena, "Replica %s of deployment %s ended: %s", replica->row.id,
                           deployment->name, deployment->failure));
}

/* What it said is of a process that is gone. */
static void on_down(struct step *step)
{
    struct weir_deploy_replica *replica = find_replica(step->state, step->event->replica);
    if (replica == NULL || !is_alive(replica) || replica->row.job == NULL) {
        return;
    }
    set_text(step, &replica->row.url, NULL);
    set_text(step, &replica->row.versions, NULL);
    replica->n_loaded = 0;
    replica->row.n_running = 0;
    set_state(step, replica, WEIR_DEPLOYED_STARTING);
    if (step->event->note != NULL) {
        note_failure(step, replica, step->event->note);
    }
}

/* One that nobody asked to end failed. */
static void on_ended(struct step *step)
{
    struct weir_deploy_replica *replica = find_replica(step->state, step->event->replica);
    struct weir_deployment *deployment = &step->state->deployment;
    if (replica == NULL) {
        return;
    }
    bool was_wanted = is_alive(replica);
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

/* ---- reports --------------------------------------------------------------------------------- */

weir_status weir_deploy_loaded_read(const json_t *versions, struct weir_arena *arena,
                                    struct weir_deploy_loaded **out, size_t *out_n,
                                    struct weir_error *err)
{
    static const char *const phases[] = {[WEIR_DEPLOY_LOADING] = "LOADING",
                                         [WEIR_DEPLOY_READY] = "READY",
                                         [WEIR_DEPLOY_FAILED] = "FAILED"};
    size_t i, n = json_array_size(versions);
    json_t *item;
    if (!json_is_array(versions) || n > WEIR_DEPLOY_VERSIONS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.versions: expected an array of at most %d versions",
                              WEIR_DEPLOY_VERSIONS_MAX);
    }
    struct weir_deploy_loaded *loaded = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_deploy_loaded);
    json_array_foreach(versions, i, item)
    {
        const char *state = json_string_value(json_object_get(item, "state"));
        const char *reason = json_string_value(json_object_get(item, "reason"));
        size_t phase = 0;
        while (phase < WEIR_ARRAY_LEN(phases) && !is(state, phases[phase])) {
            phase++;
        }
        if (!json_is_integer(json_object_get(item, "version")) || phase == WEIR_ARRAY_LEN(phases)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.versions[%zu]: expected {version, state: LOADING, READY or "
                                  "FAILED, reason}",
                                  i);
        }
        loaded[i] = (struct weir_deploy_loaded){
            .version = json_integer_value(json_object_get(item, "version")),
            .phase = (enum weir_deploy_phase)phase,
            .reason =
                reason != NULL ? weir_arena_printf(arena, "%.*s", REASON_MAX_BYTES, reason) : NULL};
    }
    *out = loaded;
    *out_n = n;
    return WEIR_OK;
}
