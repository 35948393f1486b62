#include "base/names.h"

#include "base/macros.h"

#include <string.h>

#define WORD_MAX_BYTES 128
#define CHANGES_MAX    2

static void append(struct weir_names *names, const char *text, size_t len)
{
    memcpy(names->text + names->len, text, len);
    names->len += len;
    names->text[names->len] = '\0';
}

void weir_names_add(struct weir_names *names, const char *name, size_t len)
{
    static const char comma[] = ", ", more[] = "…";
    if (names->is_full) {
        return;
    }
    if (names->len > 0) {
        append(names, comma, sizeof comma - 1);
    }
    names->is_full = names->len + len + sizeof comma + sizeof more > sizeof names->text;
    append(names, names->is_full ? more : name, names->is_full ? sizeof more - 1 : len);
}

/** Levenshtein's distance, by one row of his table. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t row[WORD_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t above = row[j];
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = WEIR_MIN(replace, WEIR_MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[b_len];
}

void weir_nearest_see(struct weir_nearest *nearest, const char *word, size_t len, const char *name)
{
    size_t name_len = strlen(name);
    size_t difference = len > name_len ? len - name_len : name_len - len;
    if (len > WORD_MAX_BYTES || name_len > WORD_MAX_BYTES || difference > CHANGES_MAX) {
        return;
    }
    size_t changes = distance(word, len, name, name_len);
    if (changes <= CHANGES_MAX && changes < len &&
        (nearest->name == NULL || changes < nearest->distance)) {
        *nearest = (struct weir_nearest){.name = name, .distance = changes};
    }
}

bool weir_name_is_akin(const char *word, const char *name)
{
    size_t len = strlen(word);
    len -= len > 1 && word[len - 1] == 's';
    for (const char *at = name; len >= 3 && *at != '\0'; at++) {
        bool begins = at == name || at[-1] == '_' || at[-1] == '-';
        if (begins && strncmp(at, word, len) == 0) {
            return true;
        }
    }
    return false;
}

bool weir_words_have(const char *words, const char *word, size_t len)
{
    size_t n;
    for (const char *at = words; *at != '\0'; at += n + (at[n] == ' ')) {
        n = strcspn(at, " ");
        if (n == len && strncmp(at, word, n) == 0) {
            return true;
        }
    }
    return false;
}
