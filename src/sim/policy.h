/** Plain scheduling policies that count devices only, to compare with. replay.h lists them. */
#ifndef WEIR_SIM_POLICY_H
#define WEIR_SIM_POLICY_H

#include "base/names.h"
#include "sim/timeline.h"

struct policy;

/** Whether there is a policy of that name. */
bool policy_is_known(const char *name);

/** The names of all, for a message. */
void policy_list(struct weir_names *out);

/** Make a policy that decides for the timeline, which it borrows. policy_destroy frees it. */
struct policy *policy_create(const char *name, struct timeline *timeline);
void policy_destroy(struct policy *policy);
struct timeline_driver policy_driver(struct policy *policy);

#endif
