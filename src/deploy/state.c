/** What a deployment's state says, and what its replicas say of themselves. */
#include "deploy/step_private.h"

struct weir_deploy_replica *deploy_find_replica(const struct weir_deploy_state *state,
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

const struct weir_deploy_replica *deploy_find_failure(const struct weir_deploy_state *state,
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

bool deploy_is_pending(const struct weir_deploy_state *state)
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
            .reason = reason != NULL
                          ? weir_arena_printf(arena, "%.*s", DEPLOY_REASON_MAX_BYTES, reason)
                          : NULL};
    }
    *out = loaded;
    *out_n = n;
    return WEIR_OK;
}
