/**
 * Counts: what happens in places of cameras' pictures, as the stage "count" says where they are.
 *
 *     counts_create(intake)
 *     counts_step(counts, rules, at, err)   // behind "track": at->events is what has happened
 *     counts_wait(counts, rules, at)        // the same while no frame comes
 *     counts_destroy(counts)
 *
 * A place is one of a camera, by its name. It has a zone (vision/zone.h), a line (vision/line.h), or both. It outlives a change of the
 * serving; if the stage says something else of it, it begins from nothing: what is there enters. So it does in the
 * next process.
 *
 * There are at most COUNTS_PLACES_MAX places: further ones are not looked at. One thread, the engine's; counts_status and
 * counts_listen are for any.
 */
#ifndef WEIR_PREDICT_COUNT_H
#define WEIR_PREDICT_COUNT_H

#include "predict/stage.h"
#include "vision/line.h"
#include "vision/zone.h"

#define COUNTS_PLACES_MAX 256

struct counts;

/** What the stage says of a place. */
struct count_rules {
    const char *name;
    const json_t *cameras, *classes; /**< Names; NULL: all. */
    uint64_t hash;                   /**< Other rules have another. */
    bool has_zone, has_line;
    struct weir_occupancy_options zone; /**< by_foot also if there is no zone. */
    struct weir_line line;
    double long_s;
};

/** @param intake  Borrowed. It tells which camera is silent: none of its frames waits. */
struct counts *counts_create(struct intake *intake);
void counts_destroy(struct counts *counts); /**< NULL is accepted. */

/** @return INVALID: a zone without an area, a line without a length. */
weir_status counts_step(struct counts *counts, const struct count_rules *rules,
                        struct stage_frame *at, struct weir_error *err) WEIR_MUST_CHECK;

/** What is in a place of a silent camera leaves by the clock. It steps the places with this name; counts_step does it, too. */
void counts_wait(struct counts *counts, const struct count_rules *rules, struct stage_frame *at);

/** Another serving begins: places that its chain does not have are over. */
void counts_prune(struct counts *counts, const struct weir_stage_chain *chain);

/** Must time go on? */
bool counts_are_on(const struct counts *counts);

/** How places stand: [{"camera", "place", "n", "entered", "left", "to_right", "to_left", "conditions": ["more than 5"…]}], counts since the
 *  place began. New reference. */
json_t *counts_status(struct counts *counts);

/** A condition has begun or ended: on the engine's thread. NULL: nobody listens. */
void counts_listen(struct counts *counts, void (*changed)(void *context), void *context);

#endif
