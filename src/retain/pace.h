/**
 * Pace: how many rows a step of deletion takes, so that it holds the store's writer for a moment
 * only. Pure; one pace per kind of rows, because a row of each has its own cost.
 *
 * A step is meant to take PACE_AIM_US: an eighth of what it may take, so that most steps stay
 * within the bound though another process has had the processor meanwhile. After a longer one the
 * number is halved (quartered if it took longer than allowed), and that number is remembered as too
 * much. After a short and full one it grows: by an eighth far below what was too much, by one row
 * near it. Entries bound it too: a row costs one for itself and one for each index that it stands
 * in, and a step touches at most PACE_ENTRIES_MAX.
 */
#ifndef WEIR_RETAIN_PACE_H
#define WEIR_RETAIN_PACE_H

#include <stdint.h>

/** A step is to hold the writer no longer. */
#define PACE_STEP_MAX_US 10000
#define PACE_AIM_US      (PACE_STEP_MAX_US / 8)

/** B-tree entries that a step may remove: a page of each may have to be read and written. */
#define PACE_ENTRIES_MAX 2000

/** Zeroed but for n_entries: nothing is known yet. */
struct retain_pace {
    int64_t n_entries; /**< Of a row: itself and its indexes. At least 1. */
    int64_t n_rows;    /**< Of the next step; 0: none was made yet. */
    int64_t too_many;  /**< Rows of the last step that took too long; 0: none has. */
};

/** Rows that the next step may remove: 1 or more. */
int64_t retain_pace_rows(const struct retain_pace *pace);

/** A step has removed n_removed of the rows that it might, and has taken took_us. */
void retain_pace_note(struct retain_pace *pace, int64_t n_removed, int64_t took_us);

#endif
