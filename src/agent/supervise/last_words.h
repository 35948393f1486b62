/**
 * The last words of a task: the last line of its log that says anything, as a sentence for the
 * person who asks why it failed.
 */
#ifndef WEIR_AGENT_LAST_WORDS_H
#define WEIR_AGENT_LAST_WORDS_H

#include <stddef.h>

/** Longest sentence, with its end; a longer line is cut, with "…". */
#define LAST_WORDS_BYTES 400

/**
 * The last words in a text (the end of a log).
 *
 * Escape sequences of terminals and other control characters are left out, what is no UTF-8 becomes
 * "?". A line that begins with the program's name as programs write it ("prog: …", or "prog word:
 * …" of argv) loses that name: the caller shows the sentence beside it.
 *
 * @param argv  The task's, NULL at the end; may be NULL.
 * @param out   LAST_WORDS_BYTES; "" if no line says anything.
 */
void last_words_of(const char *text, size_t len, char *const *argv, char *out);

/** The same of a log (base/rolling.h), of which the last 4 KiB are read; "" if it cannot be. */
void last_words_read(const char *path, char *const *argv, char *out);

#endif
