#include "agent/supervise/last_words.h"

#include "base/json.h"
#include "base/macros.h"
#include "base/rolling.h"

#include <stdbool.h>
#include <string.h>

#define TAIL_BYTES 4096
#define ELLIPSIS   "…"

/* Behind an escape sequence that begins at `i`: "ESC [ … letter", or ESC and one character. */
static size_t skip_escape(const char *line, size_t i, size_t len)
{
    i++;
    if (i >= len || (line[i] != '[' && line[i] != ']')) {
        return i + 1;
    }
    bool is_text = line[i] == ']'; /* up to BEL or ESC */
    for (i++; i < len; i++) {
        unsigned char c = (unsigned char)line[i];
        if (is_text ? c == 0x07 || c == 0x1b : c >= 0x40 && c <= 0x7e) {
            return i + 1;
        }
    }
    return len;
}

/* Bytes of the character that begins at `i`; 0 if it is no UTF-8. */
static size_t character_bytes(const char *line, size_t i, size_t len)
{
    unsigned char c = (unsigned char)line[i];
    size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
    char one[5] = {0};
    if (n == 0 || n > len - i) {
        return 0;
    }
    memcpy(one, line + i, n);
    return weir_text_is_utf8(one) ? n : 0;
}

/* A line without what steers a terminal, and without blanks at its ends. */
static void clean(const char *line, size_t len, char *out)
{
    size_t n = 0, n_kept = 0, i = 0;
    while (i < len) {
        if (line[i] == 0x1b) {
            i = skip_escape(line, i, len);
            continue;
        }
        size_t n_bytes = character_bytes(line, i, len);
        const char *from = n_bytes == 0 ? "?" : line + i;
        bool is_control = n_bytes == 1 && ((unsigned char)line[i] < 0x20 || line[i] == 0x7f);
        bool is_c1 =
            n_bytes == 2 && (unsigned char)line[i] == 0xc2 && (unsigned char)line[i + 1] < 0xa0;
        i += WEIR_MAX(n_bytes, (size_t)1);
        if (is_c1 || is_control) {
            from = " ";
            n_bytes = 1;
        }
        n_bytes = WEIR_MAX(n_bytes, (size_t)1);
        if (n + n_bytes + sizeof ELLIPSIS > LAST_WORDS_BYTES) {
            memcpy(out + n, ELLIPSIS, sizeof ELLIPSIS);
            return;
        }
        if (n == 0 && *from == ' ') {
            continue;
        }
        memcpy(out + n, from, n_bytes);
        n += n_bytes;
        n_kept = *from == ' ' ? n_kept : n;
    }
    out[n_kept] = '\0';
}

/* Length of "prog: " or "prog word: " at the beginning of a line; 0 if it does not begin so. */
static size_t named(const char *line, const char *program, const char *word)
{
    size_t n = strlen(program), n_word = word != NULL ? strlen(word) : 0;
    if (n == 0 || strncmp(line, program, n) != 0) {
        return 0;
    }
    if (n_word > 0 && line[n] == ' ' && strncmp(line + n + 1, word, n_word) == 0) {
        n += 1 + n_word;
    }
    return strncmp(line + n, ": ", 2) == 0 ? n + 2 : 0;
}

/* Length of the program's own name, or of a shell's, before what it says. */
static size_t own_name(const char *line, char *const *argv)
{
    static const char *const shells[] = {"sh", "/bin/sh", "bash", "/bin/bash", "dash"};
    size_t n = 0;
    if (argv != NULL && argv[0] != NULL) {
        const char *slash = strrchr(argv[0], '/');
        n = named(line, slash != NULL ? slash + 1 : argv[0], argv[1]);
        n = n > 0 ? n : named(line, argv[0], NULL);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(shells) && n == 0; i++) {
        n = named(line, shells[i], NULL);
    }
    return n;
}

/* Length of where a shell stood in its script, "3: " or "line 3: ", behind its name. */
static size_t place_in_script(const char *line)
{
    size_t n = strncmp(line, "line ", 5) == 0 ? 5 : 0;
    size_t n_digits = strspn(line + n, "0123456789");
    return n_digits > 0 && strncmp(line + n + n_digits, ": ", 2) == 0 ? n + n_digits + 2 : 0;
}

void last_words_of(const char *text, size_t len, char *const *argv, char *out)
{
    out[0] = '\0';
    while (len > 0 && out[0] == '\0') {
        const char *newline = memrchr(text, '\n', len);
        const char *line = newline != NULL ? newline + 1 : text;
        clean(line, (size_t)(text + len - line), out);
        len = newline != NULL ? (size_t)(newline - text) : 0;
    }
    size_t n = own_name(out, argv);
    n += n > 0 ? place_in_script(out + n) : 0;
    memmove(out, out + n, strlen(out + n) + 1);
}

void last_words_read(const char *path, char *const *argv, char *out)
{
    char tail[TAIL_BYTES];
    struct weir_rolling_part part;
    size_t n = 0;
    out[0] = '\0';
    if (weir_rolling_read(path, 0, tail, 0, &part, NULL) != WEIR_OK) {
        return;
    }
    int64_t at = WEIR_MAX((int64_t)0, part.end - (int64_t)sizeof tail);
    while (weir_rolling_read(path, at, tail + n, sizeof tail - n, &part, NULL) == WEIR_OK &&
           part.n > 0) {
        n += part.n;
        at = part.from + (int64_t)part.n;
    }
    last_words_of(tail, n, argv, out);
}
