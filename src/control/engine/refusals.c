#include "control/engine/refusals.h"

#include "base/grow.h"
#include "ion/feedback.h"
#include "ion/policy_refusal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EXCESS 0.01

void refusals_fini(struct refusals *refusals)
{
    for (size_t i = 0; i < refusals->n; i++) {
        free(refusals->items[i].deployment);
    }
    free(refusals->items);
    *refusals = (struct refusals){0};
}

const char *refusals_judge(const struct weir_ion_figures *own, const struct weir_ion_figures *pair,
                           int64_t live_ppm, struct weir_arena *arena)
{
    const struct weir_policy_refusal refusal = {"", MAX_EXCESS, 1, live_ppm};
    if (own->n_requests >= REFUSALS_LEAST && own->n_failed > 0 &&
        weir_accuracy_of(own->n_requests, own->n_failed).low > REFUSALS_FAILED) {
        return "fails (5xx, or no answer) more than a tenth of its requests";
    }
    if (live_ppm < WEIR_SHARES_PPM && pair->live_requests > 0) {
        return weir_policy_refusal_trips(&refusal, pair, arena) != NULL
                   ? "refuses (4xx) requests that the other version takes"
                   : NULL;
    }
    return own->n_requests >= REFUSALS_LEAST && own->n_unaccepted > 0 &&
                   weir_accuracy_of(own->n_requests, own->n_unaccepted).low > REFUSALS_UNACCEPTED
               ? "refuses (4xx) most of its requests"
               : NULL;
}

static void begin(struct refusals_window *window, const struct weir_ion_figures *at)
{
    window->before = window->last = *at;
}

static void turn(struct refusals_window *window, const struct weir_ion_figures *now)
{
    window->before = window->last;
    window->last = *now;
}

static struct refusals_base *find_base(struct refusals *refusals, const char *deployment,
                                       int64_t version)
{
    for (size_t i = 0; i < refusals->n; i++) {
        struct refusals_base *base = &refusals->items[i];
        if (base->version == version && strcmp(base->deployment, deployment) == 0) {
            return base;
        }
    }
    return NULL;
}

static struct refusals_base *add_base(struct refusals *refusals, const char *deployment,
                                      int64_t version, int64_t other,
                                      const struct weir_ion_figures *now)
{
    if (weir_grow(&refusals->items, sizeof *refusals->items, refusals->n, &refusals->cap) !=
        WEIR_OK) {
        return NULL;
    }
    struct refusals_base *base = &refusals->items[refusals->n++];
    *base = (struct refusals_base){
        .deployment = weir_xstrdup(deployment), .version = version, .other = other};
    begin(&base->own, now);
    begin(&base->pair, now);
    return base;
}

/* Counts that began again are no base for those of before, nor one version's for another's. */
static void follow(struct refusals_base *base, int64_t other, const struct weir_ion_figures *now)
{
    bool is_anew = base->own.last.made != now->made;
    if (is_anew) {
        begin(&base->own, &(struct weir_ion_figures){.made = now->made});
    }
    if (is_anew || base->other != other || base->pair.last.live_made != now->live_made) {
        base->other = other;
        begin(&base->pair, now);
    }
}

static struct weir_ion_figures window_of(const struct refusals_window *window,
                                         const struct weir_ion_figures *now)
{
    const struct weir_ion_figures *base = &window->before;
    return (struct weir_ion_figures){.n_requests = now->n_requests - base->n_requests,
                                     .n_failed = now->n_failed - base->n_failed,
                                     .n_unaccepted = now->n_unaccepted - base->n_unaccepted,
                                     .live_requests = now->live_requests - base->live_requests,
                                     .live_unaccepted =
                                         now->live_unaccepted - base->live_unaccepted};
}

/* The other version with the largest share; 0: there is none. */
static int64_t other_of(const struct weir_deploy_state *state, int64_t version)
{
    int64_t other = 0, most_ppm = 0;
    for (size_t i = 0; i < state->n_versions; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        if (row->version != version && row->live_ppm > most_ppm) {
            other = row->version;
            most_ppm = row->live_ppm;
        }
    }
    return other;
}

/** One look. */
struct looking {
    struct refusals *refusals;
    const struct control_figures *figures;
    bool turns;
    struct weir_arena *arena;
    struct weir_watch_findings *findings;
};

static void look_at(const struct looking *look, const struct weir_deploy_state *state,
                    const struct weir_deployment_version *row)
{
    struct weir_arena *arena = look->arena;
    struct weir_ion_figures now = {0};
    const char *deployment = state->deployment.name;
    const int64_t other = other_of(state, row->version);
    if (!look->figures->fn(look->figures->context, deployment, row->version, other, 0, 0, arena,
                           &now)) {
        return;
    }
    now.outputs = now.live_outputs = NULL; /* the arena's */
    struct refusals_base *base = find_base(look->refusals, deployment, row->version);
    if (base == NULL) {
        base = add_base(look->refusals, deployment, row->version, other, &now);
    }
    if (base == NULL) {
        return;
    }
    follow(base, other, &now);
    struct weir_ion_figures own = window_of(&base->own, &now), pair = window_of(&base->pair, &now);
    const char *what = refusals_judge(&own, &pair, row->live_ppm, arena);
    base->is_seen = true;
    if (look->turns) {
        turn(&base->own, &now);
        turn(&base->pair, &now);
    }
    if (what != NULL) {
        weir_watch_add(look->findings, arena,
                       (struct weir_watch_finding){
                           .key = weir_arena_printf(arena, "requests_fail:%s:%" PRId64, deployment,
                                                    row->version),
                           .kind = "requests_fail",
                           .subject = weir_arena_printf(arena, "deployment/%s", deployment),
                           .message = weir_arena_printf(
                               arena,
                               "Version %" PRId64 " of deployment %s %s. `weir describe deployment "
                               "%s` says who serves; `weir deploy` gives the traffic to another.",
                               row->version, deployment, what, deployment)});
    }
}

static void forget_unseen(struct refusals *refusals)
{
    size_t n = 0;
    for (size_t i = 0; i < refusals->n; i++) {
        struct refusals_base *base = &refusals->items[i];
        if (base->is_seen) {
            refusals->items[n] = *base;
            refusals->items[n++].is_seen = false;
        } else {
            free(base->deployment);
        }
    }
    refusals->n = n;
}

void refusals_look(struct refusals *refusals, const struct control_figures *figures,
                   const struct weir_watch_seen *seen, int64_t mono_ms, struct weir_arena *arena,
                   struct weir_watch_findings *findings)
{
    if (figures == NULL || figures->fn == NULL) {
        return;
    }
    bool turns = mono_ms - refusals->turned_ms >= REFUSALS_WINDOW_MS;
    const struct looking look = {refusals, figures, turns, arena, findings};
    for (size_t i = 0; i < seen->n_deployments; i++) {
        const struct weir_deploy_state *state = &seen->deployments[i];
        for (size_t k = 0; k < state->n_versions; k++) {
            if (!state->versions[k].is_gone && state->versions[k].row.live_ppm > 0) {
                look_at(&look, state, &state->versions[k].row);
            }
        }
    }
    forget_unseen(refusals);
    refusals->turned_ms = turns ? mono_ms : refusals->turned_ms;
}
