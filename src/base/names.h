/**
 * A list of names for a sentence: "there are a, b, c". What has no room is told by "…".
 *
 *     struct weir_names names = {0};
 *     for (size_t i = 0; i < WEIR_ARRAY_LEN(models); i++) {
 *         weir_names_add(&names, models[i].name, strlen(models[i].name));
 *     }
 *     return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there are %s", names.text);
 */
#ifndef WEIR_BASE_NAMES_H
#define WEIR_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct weir_names {
    size_t len;
    bool is_full;
    char text[256];
};

void weir_names_add(struct weir_names *names, const char *name, size_t len);

/**
 * The name that somebody probably meant, for "did you mean": the one that the fewest changed, added
 * or left out bytes turn a word into (Levenshtein's distance), the first of equals. More than two
 * changes, or as many as the word has bytes, are another word.
 *
 *     struct weir_nearest nearest = {0};
 *     for (size_t i = 0; i < n; i++) {
 *         weir_nearest_see(&nearest, word, strlen(word), names[i]);
 *     }
 *     if (nearest.name != NULL) { … did you mean nearest.name … }
 */
struct weir_nearest {
    const char *name; /**< Borrowed; NULL: none is near. */
    size_t distance;
};

/**
 * Does a name say more than the word, or the same in the plural? "cpu_slots" and "max_restarts" do of "cpus" and
 * "restart". For where no name is near. Words of less than 3 letters are akin to nothing.
 */
bool weir_name_is_akin(const char *word, const char *name);

/** Words and names of more than 128 bytes are near to nothing. */
void weir_nearest_see(struct weir_nearest *nearest, const char *word, size_t len, const char *name);

/** Is it, of `len` bytes, one of these words, which single blanks separate? */
bool weir_words_have(const char *words, const char *word, size_t len);

#endif
