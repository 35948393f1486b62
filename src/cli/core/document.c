#include "cli/core/document.h"

#include "base/file.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

extern const char cli_glossary_md[], cli_glossary_md_end[];

/* `dir`, or what is installed below it, if the documents are there; else NULL. */
static const char *documents_of(struct weir_arena *arena, const char *dir)
{
    const char *installed = weir_arena_printf(arena, "%s/share/doc/weir", dir);
    return weir_path_exists(weir_arena_printf(arena, "%s/docs/glossary.md", installed)) ? installed
           : weir_path_exists(weir_arena_printf(arena, "%s/docs/glossary.md", dir))     ? dir
                                                                                        : NULL;
}

const char *cli_document_dir(struct weir_arena *arena)
{
    char self[4096], *slash;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    const char *found = NULL;
    while (found == NULL && (slash = strrchr(self, '/')) != NULL) {
        *slash = '\0';
        found = documents_of(arena, weir_arena_strdup(arena, self));
    }
    return found;
}

void cli_document_write(FILE *file, const char *text)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *dir = strstr(text, "docs/") != NULL ? cli_document_dir(&arena) : NULL;
    for (const char *at; dir != NULL && (at = strstr(text, "docs/")) != NULL; text = at + 5) {
        size_t len = strcspn(at, " ,;:()`\n");
        len -= at[len - 1] == '.' ? 1 : 0;
        bool is_page = (at == text || at[-1] == ' ' || at[-1] == '(') && len > 8 &&
                       strncmp(at + len - 3, ".md", 3) == 0;
        (void)fprintf(file, "%.*s%s%sdocs/", (int)(at - text), text, is_page ? dir : "",
                      is_page ? "/" : "");
    }
    (void)fputs(text, file);
    weir_arena_fini(&arena);
}

/* Is it one of the terms of a cell, "sink, source"? */
static bool is_term(const char *cell, size_t len, const char *word)
{
    while (len > 0) {
        size_t n = strcspn(cell, ",|");
        n = n > len ? len : n;
        size_t n_term = n;
        while (n_term > 0 && cell[n_term - 1] == ' ') {
            n_term--;
        }
        if (strncasecmp(cell, word, n_term) == 0 &&
            (word[n_term] == '\0' || strcasecmp(word + n_term, "s") == 0)) {
            return true;
        }
        n += n < len ? 1 : 0;
        n += n < len && cell[n] == ' ' ? 1 : 0;
        cell += n;
        len -= n;
    }
    return false;
}

const char *cli_document_meaning(struct weir_arena *arena, const char *word)
{
    char *text = weir_arena_printf(arena, "%.*s", (int)(cli_glossary_md_end - cli_glossary_md),
                                   cli_glossary_md);
    char *table = strstr(text, "|---|"), *rest = NULL;
    char *end = table != NULL ? strstr(table, "\n\n") : NULL;
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    strtok_r(table, "\n", &rest);
    for (char *row; (row = strtok_r(NULL, "\n", &rest)) != NULL;) {
        char *term = row + strlen("| "), *meaning = strstr(term, " | "), *from;
        if (meaning != NULL && (from = strstr(meaning + 3, " | ")) != NULL &&
            is_term(term, (size_t)(meaning - term), word)) {
            return weir_arena_printf(arena, "%.*s: %.*s", (int)(meaning - term), term,
                                     (int)(from - meaning - 3), meaning + 3);
        }
    }
    return NULL;
}
