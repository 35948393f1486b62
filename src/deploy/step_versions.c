/** Versions of a deployment: which are loaded, and when the shares that are asked for come into effect. */
#include "deploy/step_private.h"

#include "base/json.h"

#include <inttypes.h>
#include <string.h>

struct weir_deploy_version *deploy_have_version(struct step *step, int64_t version)
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

void deploy_drop_versions(struct step *step)
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

void deploy_note_failures(struct step *step)
{
    for (size_t i = 0; i < step->state->n_versions; i++) {
        struct weir_deployment_version *row = &step->state->versions[i].row;
        const char *reason = NULL;
        const struct weir_deploy_replica *replica =
            deploy_find_failure(step->state, row->version, &reason);
        if (replica != NULL && row->failure == NULL) {
            deploy_set_text(step, &row->failure,
                            weir_arena_printf(step->arena,
                                              "v%" PRId64 " could not be loaded by replica %s: %s",
                                              row->version, replica->row.id,
                                              reason != NULL ? reason : "it gives no reason"));
        } else if (replica == NULL && row->failure != NULL &&
                   weir_deploy_n_ready(step->state, row->version) > 0) {
            deploy_set_text(step, &row->failure, NULL);
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

void deploy_promote(struct step *step)
{
    struct weir_deploy_state *state = step->state;
    if (!deploy_is_pending(state) || !(is_known(state) || can_promote(state))) {
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
    deploy_tell(step, "shares_changed",
                weir_arena_printf(step->arena, "Deployment %s: the traffic is %s, before %s",
                                  state->deployment.name, weir_shares_text(&after, step->arena),
                                  weir_shares_text(&before, step->arena)));
}
