/** Does an alert match: kinds, patterns of subjects and severities, each a JSON array of texts. Pure. */
#ifndef WEIR_NOTIFY_MATCH_H
#define WEIR_NOTIFY_MATCH_H

#include "store/event.h"

#include <stdbool.h>

/** Lists as stored; NULL matches everything. */
struct notify_match {
    const char *kinds, *subjects, *severities;
};

bool notify_matches(const struct notify_match *match, const struct weir_alert *alert);

/** "*" stands for any text, also none; everything else for itself. Cost: len(pattern) * len(text). */
bool notify_glob(const char *pattern, const char *text);

/**
 * Check lists that somebody wrote: known kinds and severities, patterns of 1 to 200 bytes, at most
 * WEIR_ALERT_LIST_MAX of each.
 */
weir_status notify_match_check(const struct notify_match *match,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Is the text in a JSON array of texts? */
bool notify_list_has(const char *list, const char *text);

#endif
