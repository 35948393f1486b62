/** Places in which things are counted: findings of their conditions, as replicas report them. Pure. */
#ifndef WEIR_WATCH_PLACE_H
#define WEIR_WATCH_PLACE_H

#include "watch/watch.h"

/** Conditions that hold now in places of an ION: too many things, too few, one for too long. What a replica said that has
 *  fallen silent does not hold: nobody counts there. */
void weir_watch_find_places(const struct weir_watch_seen *seen, const struct weir_ion_state *ion,
                            struct weir_arena *arena, struct weir_watch_findings *findings);

#endif
