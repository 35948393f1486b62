/** Scheduling disciplines that count devices only; what they are: replay.h. */
#ifndef WEIR_SIM_POLICY_H
#define WEIR_SIM_POLICY_H

#include "base/names.h"
#include "sim/engine.h"

struct policy;

/** @return Whether there is a discipline of that name. */
bool policy_is_known(const char *name);

/** The names of all, for a message. */
void policy_list(struct weir_names *out);

struct policy *policy_create(const char *name, struct engine *engine);
void policy_destroy(struct policy *policy);
struct engine_driver policy_driver(struct policy *policy);

#endif
