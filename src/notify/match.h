/** Does an alert match: kinds, patterns of subjects and severities, each a JSON array of texts. Pure. */
#ifndef WEIR_NOTIFY_MATCH_H
#define WEIR_NOTIFY_MATCH_H

#include "base/arena.h"
#include "store/event.h"

#include <stdbool.h>
#include <stddef.h>

/** A JSON array of texts, read once; the texts lie in the arena. */
struct notify_words {
    const char **items;
    size_t n;
    bool is_any; /**< NULL was stored: it has everything. */
};

/** The lists of a rule or a silence, as stored; NULL matches everything. */
struct notify_lists {
    const char *kinds, *subjects, *severities;
};

/** The same, read. */
struct notify_match {
    struct notify_words kinds, subjects, severities;
};

/** What is no text in the list is left out; of what is no list nothing is there. */
struct notify_words notify_words_read(const char *list, struct weir_arena *arena);
struct notify_match notify_match_read(const struct notify_lists *lists, struct weir_arena *arena);

bool notify_matches(const struct notify_match *match, const struct weir_alert *alert);

/** Is the text one of them? Of is_any: no. */
bool notify_words_name(const struct notify_words *words, const char *text);

/** "*" stands for any text, also none; everything else for itself. Cost: len(pattern) * len(text). */
bool notify_glob(const char *pattern, const char *text);

/**
 * Check lists that somebody wrote: known kinds and severities, patterns of 1 to 200 bytes, at most
 * WEIR_ALERT_LIST_MAX of each.
 */
weir_status notify_match_check(const struct notify_lists *lists,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Is the text in a JSON array of texts? It reads the array: for one question, not for many. */
bool notify_list_has(const char *list, const char *text);

#endif
