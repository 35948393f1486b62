/**
 * Callers: the callers that may send requests to which projects' deployments, remembered so that the path of a
 * request has no look into the database.
 *
 * An entry stands for a token, and has its keyed hash. It holds until callers_forget is called (a
 * change of any token, user, role or grant) or CALLERS_KEEP_MS have passed. A look-up of a token
 * takes the generation first: what is found out meanwhile and forgotten at once is not remembered.
 */
#ifndef WEIR_GATEWAY_CALLERS_H
#define WEIR_GATEWAY_CALLERS_H

#include "gateway/gateway.h"

#include <stdatomic.h>

#define CALLERS_KEEP_MS 60000

/** Immutable; counted. */
struct caller {
    atomic_int n_refs;
    bool is_all; /**< Every project. */
    char **projects;
    size_t n_projects;
};

struct callers;

struct callers *callers_create(void);
void callers_destroy(struct callers *callers);

/** A copy of what the API says of somebody. */
struct caller *caller_make(const struct weir_gateway_caller *from);
struct caller *caller_unref(struct caller *caller);
bool caller_may(const struct caller *caller, const char *project);

/** The token's caller, with a reference, or NULL: not remembered. *out_generation is for _remember. */
struct caller *callers_find(struct callers *callers, const char *token, int64_t now_ms,
                            uint64_t *out_generation);

/** Remember it until `until_ms` (weir_mono_ms) at the latest, unless the generation has passed. */
void callers_remember(struct callers *callers, const char *token, struct caller *caller,
                      uint64_t generation, int64_t until_ms);

/** From now on nobody is remembered. Any thread. */
void callers_forget(struct callers *callers);

#endif
