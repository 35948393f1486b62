/**
 * All nouns: what each domain's nouns.def lists, in one (store/noun.h).
 *
 *     for (size_t i = 0; weir_noun_at(i) != NULL; i++) {
 *         …
 *     }
 *
 * A list has a line for each table: WEIR_NOUN(kpi) for one that the noun's own file describes as weir_noun_kpi, and
 * WEIR_TABLE("board", …) with all that is to be said of one. A new table changes its domain's list; a new domain with
 * tables, nouns.c.
 */
#ifndef WEIR_NOUNS_NOUNS_H
#define WEIR_NOUNS_NOUNS_H

#include "store/noun.h"

/** The i-th of all tables, by domain; NULL behind the last. Any thread. */
const struct weir_noun *weir_noun_at(size_t i);

/**
 * SQL of what rows of a table are :project's, without its name: "project = :project", or by what they are of. In the
 * arena. NULL: they are the platform's, or of a subject.
 */
char *weir_noun_in_project(const struct weir_noun *noun, struct weir_arena *arena);

#endif
