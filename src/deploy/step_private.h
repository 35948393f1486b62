/**
 * What the parts of a step share: what there is (state.c), versions (step_versions.c), replicas (step_replicas.c), and
 * the events that set them off (step.c). Pure.
 */
#ifndef WEIR_DEPLOY_STEP_PRIVATE_H
#define WEIR_DEPLOY_STEP_PRIVATE_H

#include "deploy/step.h"

#include <string.h>

#define DEPLOY_REASON_MAX_BYTES 512 /**< Of why a version or a replica failed; more is cut. */

/** One call of weir_deploy_step. */
struct step {
    struct weir_deploy_state *state;
    const struct weir_deploy_event *event;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_deploy_actions *actions;
};

static inline bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

static inline bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* What a step does to its state and its actions. */

void deploy_act(struct step *step, struct weir_deploy_action action);

/** An action that is an event. The texts are borrowed. */
void deploy_tell(struct step *step, const char *kind, const char *message);

/** Set a text of the state to a copy; the state is changed if it was another. */
void deploy_set_text(struct step *step, char **member, const char *text);

/* What there is. */

/** NULL: there is none, or it is gone. */
struct weir_deploy_replica *deploy_find_replica(const struct weir_deploy_state *state,
                                                const char *id);

/** A replica that answers and could not load the version; NULL: none. *out_reason, NULL if it gives none, is written
 *  with one only. */
const struct weir_deploy_replica *deploy_find_failure(const struct weir_deploy_state *state,
                                                      int64_t version, const char **out_reason);

/** Are other shares asked for than are in effect? */
bool deploy_is_pending(const struct weir_deploy_state *state);

/* Versions. */

/** The row of a version, made in its place if there is none. It may move the other rows. */
struct weir_deploy_version *deploy_have_version(struct step *step, int64_t version);

/** Versions that nothing needs any more are dropped. */
void deploy_drop_versions(struct step *step);

/** What failed is remembered, though its replica be gone: another would fail alike. */
void deploy_note_failures(struct step *step);

/** The shares that are asked for come into effect, if they can. */
void deploy_promote(struct step *step);

/* Replicas. */

/** Is it there, and not told to stop? */
bool deploy_is_alive(const struct weir_deploy_replica *replica);

void deploy_set_state(struct step *step, struct weir_deploy_replica *replica, char *state);
void deploy_stop_replica(struct step *step, struct weir_deploy_replica *replica);

/** Those that have not reported for a while get no requests; after a longer while they are stopped. */
void deploy_notice_silent(struct step *step);

/** As many replicas are started and stopped as the load asks for. */
void deploy_follow(struct step *step);

#endif
