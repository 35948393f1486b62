/** Scheduling disciplines that count devices only; what they are: replay.h. */
#ifndef WEIR_SIM_DISCIPLINE_H
#define WEIR_SIM_DISCIPLINE_H

#include "base/names.h"
#include "sim/engine.h"

struct discipline;

/** @return Whether there is a discipline of that name. */
bool discipline_is_known(const char *name);

/** The names of all, for a message. */
void discipline_list(struct weir_names *out);

struct discipline *discipline_create(const char *name, struct engine *engine);
void discipline_destroy(struct discipline *discipline);
struct engine_driver discipline_driver(struct discipline *discipline);

#endif
