/* What .gitignore leaves out. */
#include "cli/job/folder_ignore.h"

#include "cli/job/folder.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define PATTERN_BYTES 512
#define PARTS_MAX     64

/* "a/ b/ c" cut at its slashes, in place. */
static size_t cut(char *text, char *parts[PARTS_MAX])
{
    size_t n = 0;
    for (char *rest = text, *part; n < PARTS_MAX && (part = strsep(&rest, "/")) != NULL;) {
        parts[n++] = part;
    }
    return n;
}

/* Two stars stand for any number of folders; at the end, for at least one name. */
static bool parts_fit(char *const *pattern, size_t n_pattern, char *const *path, size_t n_path)
{
    if (n_pattern == 0) {
        return n_path == 0;
    }
    if (strcmp(pattern[0], "**") == 0) {
        for (size_t skip = n_pattern == 1 ? 1 : 0; skip <= n_path; skip++) {
            if (parts_fit(pattern + 1, n_pattern - 1, path + skip, n_path - skip)) {
                return true;
            }
        }
        return n_pattern == 1 && n_path > 0;
    }
    return n_path > 0 && fnmatch(pattern[0], path[0], 0) == 0 &&
           parts_fit(pattern + 1, n_pattern - 1, path + 1, n_path - 1);
}

/* One line that is no comment: does it fit? */
static bool pattern_fits(const char *pattern, const char *path, bool is_dir)
{
    char text[PATTERN_BYTES], copy[WEIR_TREE_PATH_MAX + 1];
    char *pattern_parts[PARTS_MAX], *path_parts[PARTS_MAX];
    size_t len = strlen(pattern);
    bool is_for_dirs = len > 0 && pattern[len - 1] == '/';
    if (len == 0 || len >= sizeof text || strlen(path) >= sizeof copy || (is_for_dirs && !is_dir)) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)(len - is_for_dirs), pattern);
    char *from = text[0] == '/' ? text + 1 : text;
    if (from == text && strchr(from, '/') == NULL) { /* anywhere */
        const char *slash = strrchr(path, '/');
        return fnmatch(from, slash != NULL ? slash + 1 : path, 0) == 0;
    }
    (void)snprintf(copy, sizeof copy, "%s", path);
    return parts_fit(pattern_parts, cut(from, pattern_parts), path_parts, cut(copy, path_parts));
}

enum folder_verdict folder_ignore_verdict(const char *lines, const char *path, bool is_dir)
{
    char line[PATTERN_BYTES];
    enum folder_verdict verdict = FOLDER_NOT_SAID;
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n"), used = len;
        while (used > 0 && (lines[used - 1] == '\r' ||
                            (lines[used - 1] == ' ' && (used < 2 || lines[used - 2] != '\\')))) {
            used--;
        }
        (void)snprintf(line, sizeof line, "%.*s", (int)(used < sizeof line ? used : 0), lines);
        bool is_not = line[0] == '!';
        if (line[0] != '#' && pattern_fits(line + is_not, path, is_dir)) {
            verdict = is_not ? FOLDER_KEPT : FOLDER_IGNORED;
        }
        lines += len + (lines[len] == '\n');
    }
    return verdict;
}

bool folder_is_ignored(const char *lines, const char *path, bool is_dir)
{
    return folder_ignore_verdict(lines, path, is_dir) == FOLDER_IGNORED;
}
