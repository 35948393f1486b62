/** Replicas of a deployment: how many there are, and which go. */
#include "deploy/step_private.h"

#include "deploy/scale.h"

#include <inttypes.h>
#include <string.h>

bool deploy_is_alive(const struct weir_deploy_replica *replica)
{
    return !replica->is_gone && !is(replica->row.state, WEIR_DEPLOYED_STOPPING);
}

static size_t count(const struct weir_deploy_state *state, bool with_stopping)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_replicas; i++) {
        n += !state->replicas[i].is_gone && (with_stopping || deploy_is_alive(&state->replicas[i]));
    }
    return n;
}

void deploy_set_state(struct step *step, struct weir_deploy_replica *replica, char *state)
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
    deploy_act(step,
               (struct weir_deploy_action){.type = WEIR_DEPLOY_ACTION_START, .replica = row->id});
}

void deploy_stop_replica(struct step *step, struct weir_deploy_replica *replica)
{
    step->state->is_changed = true;
    if (replica->row.job == NULL) {
        replica->is_gone = true; /* what would start it finds nobody to start */
        return;
    }
    deploy_set_state(step, replica, WEIR_DEPLOYED_STOPPING);
    deploy_act(step, (struct weir_deploy_action){.type = WEIR_DEPLOY_ACTION_STOP,
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
        if (deploy_is_alive(replica) && (victim == NULL || worth(replica) <= worth(victim))) {
            victim = replica;
        }
    }
    return victim;
}

void deploy_notice_silent(struct step *step)
{
    for (size_t i = 0; i < step->state->n_replicas; i++) {
        struct weir_deploy_replica *replica = &step->state->replicas[i];
        int64_t heard_ms = WEIR_MAX(replica->row.time_ms, step->event->since_ms);
        int64_t quiet_ms = step->now_ms - heard_ms;
        if (deploy_is_alive(replica) && is(replica->row.state, WEIR_DEPLOYED_READY) &&
            quiet_ms >= WEIR_DEPLOY_SILENT_MS) {
            deploy_set_state(step, replica, WEIR_DEPLOYED_SILENT);
            deploy_tell(step, "replica_silent",
                        weir_arena_printf(
                            step->arena,
                            "Replica %s of deployment %s does not report: it gets no requests",
                            replica->row.id, step->state->deployment.name));
        }
        if (deploy_is_alive(replica) && is(replica->row.state, WEIR_DEPLOYED_SILENT) &&
            quiet_ms >= WEIR_DEPLOY_RESTART_MS) {
            deploy_tell(step, "replica_replaced",
                        weir_arena_printf(step->arena,
                                          "Replica %s of deployment %s is silent, and is replaced",
                                          replica->row.id, step->state->deployment.name));
            deploy_stop_replica(step, replica);
        }
    }
}

void deploy_follow(struct step *step)
{
    struct weir_deployment before = step->state->deployment;
    struct weir_deployment *deployment = &step->state->deployment;
    bool is_waiting = deploy_is_pending(step->state) && weir_deploy_problem(step->state) == NULL;
    scale_follow(deployment, step->event->load, is_waiting, step->now_ms);
    step->state->is_changed = step->state->is_changed || before.n_wanted != deployment->n_wanted ||
                              before.more_ms != deployment->more_ms ||
                              before.less_ms != deployment->less_ms;
    while ((int64_t)count(step->state, false) > deployment->n_wanted) {
        deploy_stop_replica(step, choose_victim(step->state));
    }
    deployment->next_start_ms =
        WEIR_MIN(deployment->next_start_ms, step->now_ms + WEIR_DEPLOY_BACKOFF_MS);
    while ((int64_t)count(step->state, false) < deployment->n_wanted &&
           (int64_t)count(step->state, true) < deployment->replicas_max &&
           step->now_ms >= deployment->next_start_ms) {
        add_replica(step);
    }
}
