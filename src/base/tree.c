#include "base/tree.h"

#include "base/grow.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

#define HEAD       "weir-tree 1\n"
#define HEX_DIGITS 64
#define LINE_PARTS 4
#define PART_MAX   255 /* NAME_MAX */

/* ---- paths ------------------------------------------------------------------------------------- */

static bool is_part(const char *part, size_t len)
{
    bool is_dots = (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.');
    return len > 0 && len <= PART_MAX && !is_dots;
}

static bool has_controls(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c < 0x20 || *c == 0x7f) {
            return true;
        }
    }
    return false;
}

static bool is_reserved(const char *path)
{
    static const char own[] = ".weir", dir[] = WEIR_TREE_RESERVED_DIR;
    size_t len = sizeof dir - 1;
    return strncmp(path, own, sizeof own - 1) == 0 || strcmp(path, WEIR_TREE_RESERVED_FILE) == 0 ||
           (strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0'));
}

weir_status weir_tree_check_path(const char *path, struct weir_error *err)
{
    size_t depth = 0, len = strlen(path);
    if (len == 0 || len > WEIR_TREE_PATH_MAX || has_controls(path)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a path is empty, longer than %d bytes, or holds a control character",
                              WEIR_TREE_PATH_MAX);
    }
    for (const char *part = path; part != NULL; depth++) {
        const char *slash = strchr(part, '/');
        if (!is_part(part, slash != NULL ? (size_t)(slash - part) : strlen(part)) ||
            depth == WEIR_TREE_DEPTH_MAX) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "\"%.100s\" is no path below the folder: parts are 1 to %d bytes, "
                "not \".\" or \"..\", and at most %d",
                path, PART_MAX, WEIR_TREE_DEPTH_MAX);
        }
        part = slash != NULL ? slash + 1 : NULL;
    }
    return !is_reserved(path)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%.100s\": a task has its own \"" WEIR_TREE_RESERVED_FILE
                                "\", \"" WEIR_TREE_RESERVED_DIR "\" and \".weir…\" in its folder",
                                path);
}

weir_status weir_tree_check_link(const char *path, const char *target, struct weir_error *err)
{
    size_t depth = 0;
    bool has_gone_down = false; /* what it goes through may be a link: ".." would lead elsewhere */
    for (const char *c = path; *c != '\0'; c++) {
        depth += *c == '/';
    }
    bool is_good = target[0] != '\0' && target[0] != '/' && strlen(target) <= WEIR_TREE_PATH_MAX &&
                   !has_controls(target);
    for (const char *part = target; is_good && *part != '\0';) {
        size_t len = strcspn(part, "/");
        if (len == 2 && part[0] == '.' && part[1] == '.') {
            is_good = !has_gone_down && depth-- > 0;
        } else if (len > 0 && !(len == 1 && part[0] == '.')) {
            has_gone_down = true;
        }
        part += len;
        part += *part == '/';
    }
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "the link \"%.100s\" leads out of the folder, to \"%.100s\"",
                                    path, target);
}

/* ---- the whole --------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct weir_tree_entry *)a)->path,
                  ((const struct weir_tree_entry *)b)->path);
}

/* What a path leads through must not be a file or a link of the tree. */
static weir_status check_parents(const struct weir_tree *tree, const char *path,
                                 struct weir_error *err)
{
    char parent[WEIR_TREE_PATH_MAX + 1];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        const struct weir_tree_entry wanted = {.path = parent};
        if (bsearch(&wanted, tree->entries, tree->n, sizeof wanted, by_path) != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "\"%.100s\" lies below \"%.100s\", which is no folder", path,
                                  parent);
        }
    }
    return WEIR_OK;
}

static weir_status check_whole(const struct weir_tree *tree, struct weir_error *err)
{
    if (tree->n_bytes > WEIR_TREE_BYTES_MAX) {
        return weir_error_set(
            err, WEIR_ERR_LIMIT,
            "the files have more than %lld MiB together: put data into a dataset, "
            "or name it in .gitignore",
            (long long)(WEIR_TREE_BYTES_MAX >> 20));
    }
    for (size_t i = 0; i < tree->n; i++) {
        if (i > 0 && by_path(&tree->entries[i - 1], &tree->entries[i]) >= 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "\"%.100s\" is there twice, or not in its order",
                                  tree->entries[i].path);
        }
        WEIR_TRY(check_parents(tree, tree->entries[i].path, err));
    }
    return WEIR_OK;
}

static weir_status check_entry(const struct weir_tree_entry *entry, struct weir_error *err)
{
    WEIR_TRY(weir_tree_check_path(entry->path, err));
    if (entry->kind == WEIR_TREE_LINK) {
        return weir_tree_check_link(entry->path, entry->target, err);
    }
    bool is_hash = strlen(entry->sha256) == HEX_DIGITS &&
                   strspn(entry->sha256, "0123456789abcdef") == HEX_DIGITS;
    return is_hash && entry->bytes >= 0 && entry->bytes <= WEIR_TREE_BYTES_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%.100s\" has no SHA-256, or a size that no file may have",
                                entry->path);
}

static weir_status too_many(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_LIMIT,
                          "there are more than %d files: name those that the "
                          "job does not need in .gitignore, or put data into a dataset",
                          WEIR_TREE_FILES_MAX);
}

/* ---- reading ----------------------------------------------------------------------------------- */

static bool read_bytes(const char *text, int64_t *out)
{
    char *end;
    size_t len = strlen(text);
    if (len == 0 || len > 18 || strspn(text, "0123456789") != len || (len > 1 && text[0] == '0')) {
        return false;
    }
    *out = strtoll(text, &end, 10);
    return true;
}

/* One line, cut at its tabs. */
static bool read_line(char *line, struct weir_tree_entry *out)
{
    char *parts[LINE_PARTS] = {line};
    size_t n = 1;
    for (char *tab = strchr(line, '\t'); tab != NULL && n < LINE_PARTS;
         tab = strchr(tab + 1, '\t')) {
        *tab = '\0';
        parts[n++] = tab + 1;
    }
    if (n == 3 && strcmp(parts[0], "l") == 0) {
        *out =
            (struct weir_tree_entry){.kind = WEIR_TREE_LINK, .target = parts[1], .path = parts[2]};
        return true;
    }
    bool is_file = strcmp(parts[0], "f") == 0, is_program = strcmp(parts[0], "x") == 0;
    if (n != LINE_PARTS || !(is_file || is_program)) {
        return false;
    }
    *out = (struct weir_tree_entry){.kind = is_program ? WEIR_TREE_PROGRAM : WEIR_TREE_FILE,
                                    .sha256 = parts[1],
                                    .path = parts[3]};
    return read_bytes(parts[2], &out->bytes);
}

static weir_status read_lines(char *text, struct weir_arena *arena, struct weir_tree *tree,
                              struct weir_error *err)
{
    size_t cap = 0;
    for (char *line = text; *line != '\0';) {
        struct weir_tree_entry entry;
        char *end = strchr(line, '\n');
        if (end == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "line %zu has no end", tree->n + 2);
        }
        *end = '\0';
        if (tree->n == WEIR_TREE_FILES_MAX) {
            return too_many(err);
        }
        if (!read_line(line, &entry)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "line %zu is none of f, x and l with their parts", tree->n + 2);
        }
        if (check_entry(&entry, err) != WEIR_OK) {
            return weir_error_prefix(err, "line %zu: ", tree->n + 2);
        }
        weir_arena_grow(arena, &tree->entries, sizeof entry, tree->n, &cap);
        tree->entries[tree->n++] = entry;
        tree->n_bytes += entry.bytes; /* 20,000 of 2 GiB at most: no overflow */
        line = end + 1;
    }
    return WEIR_OK;
}

weir_status weir_tree_parse(const char *text, size_t len, struct weir_arena *arena,
                            struct weir_tree *out, struct weir_error *err)
{
    static const char head[] = HEAD;
    struct weir_tree tree = {0};
    if (len > WEIR_TREE_TEXT_MAX || len < sizeof head - 1 ||
        memcmp(text, head, sizeof head - 1) != 0 || memchr(text, '\0', len) != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "it is no manifest of a folder: the first line is not \"%.11s\"",
                              head);
    }
    char *copy = weir_arena_memdup(arena, text + sizeof head - 1, len - (sizeof head - 1));
    WEIR_TRY(read_lines(copy, arena, &tree, err));
    WEIR_TRY(check_whole(&tree, err));
    *out = tree;
    return WEIR_OK;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static weir_status write_entry(const struct weir_tree_entry *entry, struct weir_buf *out)
{
    if (entry->kind == WEIR_TREE_LINK) {
        return weir_buf_printf(out, "l\t%s\t%s\n", entry->target, entry->path);
    }
    return weir_buf_printf(out, "%c\t%s\t%lld\t%s\n", entry->kind == WEIR_TREE_PROGRAM ? 'x' : 'f',
                           entry->sha256, (long long)entry->bytes, entry->path);
}

weir_status weir_tree_write(struct weir_tree *tree, struct weir_buf *out, struct weir_error *err)
{
    if (tree->n > WEIR_TREE_FILES_MAX) {
        return too_many(err);
    }
    tree->n_bytes = 0;
    for (size_t i = 0; i < tree->n; i++) {
        WEIR_TRY(check_entry(&tree->entries[i], err));
        tree->n_bytes += tree->entries[i].bytes;
    }
    if (tree->n > 0) {
        qsort(tree->entries, tree->n, sizeof *tree->entries, by_path);
    }
    WEIR_TRY(check_whole(tree, err));
    weir_status status = weir_buf_puts(out, HEAD);
    for (size_t i = 0; i < tree->n && status == WEIR_OK; i++) {
        status = write_entry(&tree->entries[i], out);
    }
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, status, "the list of files is longer than %zu MiB",
                                WEIR_TREE_TEXT_MAX >> 20);
}
