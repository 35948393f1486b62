/**
 * Words: what text fields of records can be, where that is an enumeration. A filter by another word would
 * find nothing, quietly: it is refused, with the words that there are. People need not write capitals.
 *
 * src/api/core/word_test.c compares the words with the CHECKs of the database, field by field.
 */
#ifndef WEIR_API_WORD_H
#define WEIR_API_WORD_H

#include "base/arena.h"
#include "base/record.h"

/** The words of a field, with blanks between; NULL: it can be anything. In the arena, or static. */
const char *api_words_of(const struct weir_resource *resource, const char *field,
                         struct weir_arena *arena);

/**
 * The word of `words` (blanks between) that is meant, as it is written there.
 * @param what  What has it, for the sentence.
 * @return INVALID: it is none: "WHAT: "runing" is none of PENDING, …; did you mean RUNNING?"
 */
weir_status api_word_among(const char *what, const char *words, const char *value,
                           struct weir_arena *arena, const char **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The word that is meant, as it is written in records.
 * @param out  `value` itself for a field that can be anything.
 * @return INVALID: it is none: "state: "runing" is none of PENDING, …; did you mean RUNNING?"
 */
weir_status api_word_read(const struct weir_resource *resource, const char *field,
                          const char *value, struct weir_arena *arena, const char **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
