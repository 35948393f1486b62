#include "cli/job/folder.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/macros.h"
#include "base/names.h"
#include "cli/job/folder_ignore.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IGNORE_MAX_BYTES ((size_t)256 << 10)
#define FOUND_MAX        200000 /* a folder with more is not one program's: do not read on */
#define N_NAMED          5
#define LEVELS_MAX       (2 * WEIR_TREE_DEPTH_MAX)

/** A .gitignore that holds for what is read now. */
struct level {
    const char *lines;
    const char *prefix; /* of a folder above: the way from it to the top; else "" */
    size_t skip;        /* of a folder below: so much of a path leads to it */
};

struct reading {
    const char *top;
    struct weir_arena *arena;
    struct level levels[LEVELS_MAX];
    size_t n_levels, cap;
    struct folder *out;
};

/* ---- .gitignore --------------------------------------------------------------------------------- */

static void add_level(struct reading *reading, const char *file, const char *prefix, size_t skip)
{
    char *lines;
    size_t len;
    if (reading->n_levels < LEVELS_MAX &&
        weir_file_read(file, IGNORE_MAX_BYTES, reading->arena, &lines, &len, NULL) == WEIR_OK) {
        reading->levels[reading->n_levels++] = (struct level){lines, prefix, skip};
    }
}

/* Of the folders above, from the top of the git working tree down. */
static void add_levels_above(struct reading *reading)
{
    char absolute[PATH_MAX];
    if (realpath(reading->top, absolute) == NULL) {
        return;
    }
    size_t len = strlen(absolute), top_len = len;
    while (top_len > 0 && !weir_path_exists(weir_arena_printf(reading->arena, "%.*s/.git",
                                                              (int)top_len, absolute))) {
        const char *slash = memrchr(absolute, '/', top_len);
        top_len = slash != NULL ? (size_t)(slash - absolute) : 0;
    }
    if (top_len == 0) {
        return; /* no working tree */
    }
    add_level(
        reading,
        weir_arena_printf(reading->arena, "%.*s/.git/info/exclude", (int)top_len, absolute),
        top_len == len ? "" : weir_arena_printf(reading->arena, "%s/", absolute + top_len + 1), 0);
    for (size_t at = top_len; at < len; at += 1 + strcspn(absolute + at + 1, "/")) {
        add_level(reading, weir_arena_printf(reading->arena, "%.*s/.gitignore", (int)at, absolute),
                  weir_arena_printf(reading->arena, "%s/", absolute + at + 1), 0);
    }
}

static bool is_ignored(const struct reading *reading, const char *path, bool is_dir)
{
    enum folder_verdict verdict = FOLDER_NOT_SAID;
    for (size_t i = 0; i < reading->n_levels; i++) {
        const struct level *level = &reading->levels[i];
        const char *seen = level->prefix[0] == '\0'
                               ? path + level->skip
                               : weir_arena_printf(reading->arena, "%s%s", level->prefix, path);
        enum folder_verdict said = folder_ignore_verdict(level->lines, seen, is_dir);
        verdict = said != FOLDER_NOT_SAID ? said : verdict;
    }
    return verdict == FOLDER_IGNORED;
}

/* ---- walking ------------------------------------------------------------------------------------ */

static void leave_out(struct reading *reading, const char *path, const char *why)
{
    if (reading->out->n_left_out++ == 0) {
        reading->out->first_left_out = weir_arena_strdup(reading->arena, path);
        reading->out->why_left_out = why;
    }
}

static weir_status add_entry(struct reading *reading, struct weir_tree_entry entry,
                             struct weir_error *err)
{
    struct weir_tree *tree = &reading->out->tree;
    if (tree->n == FOUND_MAX) {
        return weir_error_set(
            err, WEIR_ERR_LIMIT,
            "%s holds more than %d files: give the script's own folder with --dir", reading->top,
            FOUND_MAX);
    }
    weir_arena_grow(reading->arena, &tree->entries, sizeof entry, tree->n, &reading->cap);
    tree->entries[tree->n++] = entry;
    tree->n_bytes += entry.bytes;
    return WEIR_OK;
}

static weir_status add_link(struct reading *reading, char *path, const char *full,
                            struct weir_error *err)
{
    char target[WEIR_TREE_PATH_MAX + 2];
    ssize_t len = readlink(full, target, sizeof target - 1);
    target[len > 0 ? len : 0] = '\0';
    if (weir_tree_check_link(path, target, NULL) != WEIR_OK) {
        leave_out(reading, path, "it leads out of the folder");
        return WEIR_OK;
    }
    return add_entry(reading,
                     (struct weir_tree_entry){.path = path,
                                              .kind = WEIR_TREE_LINK,
                                              .target = weir_arena_strdup(reading->arena, target)},
                     err);
}

/* It holds tokens, and a database that changes meanwhile. */
static bool is_state(const char *folder, struct weir_arena *arena)
{
    return access(weir_arena_printf(arena, "%s/weir.db", folder), F_OK) == 0;
}

static weir_status walk(struct reading *reading, const char *inside, int depth,
                        struct weir_error *err);

static weir_status add_found(struct reading *reading, const char *inside, const char *name,
                             int depth, struct weir_error *err)
{
    struct stat info;
    char *path =
        weir_arena_printf(reading->arena, "%s%s%s", inside, inside[0] != '\0' ? "/" : "", name);
    char *full = weir_arena_printf(reading->arena, "%s/%s", reading->top, path);
    if (lstat(full, &info) != 0 || is_ignored(reading, path, S_ISDIR(info.st_mode))) {
        return WEIR_OK;
    }
    if (weir_tree_check_path(path, NULL) != WEIR_OK) {
        leave_out(reading, path,
                  "a task has its own, or the name has control characters or is too long");
        return WEIR_OK;
    }
    if (S_ISDIR(info.st_mode) && is_state(full, reading->arena)) {
        leave_out(reading, path, "it is the state folder of a server");
        return WEIR_OK;
    }
    if (S_ISDIR(info.st_mode)) {
        return walk(reading, path, depth + 1, err);
    }
    if (S_ISLNK(info.st_mode)) {
        return add_link(reading, path, full, err);
    }
    if (!S_ISREG(info.st_mode)) {
        leave_out(reading, path, "it is no file");
        return WEIR_OK;
    }
    return add_entry(reading,
                     (struct weir_tree_entry){.path = path,
                                              .kind = info.st_mode & S_IXUSR ? WEIR_TREE_PROGRAM
                                                                             : WEIR_TREE_FILE,
                                              .bytes = (int64_t)info.st_size},
                     err);
}

/* What is below `inside` ("" is the top), in the order of the file system. */
static weir_status walk(struct reading *reading, const char *inside, int depth,
                        struct weir_error *err)
{
    size_t n_levels = reading->n_levels, skip = inside[0] != '\0' ? strlen(inside) + 1 : 0;
    char *folder = weir_arena_printf(reading->arena, "%s/%s", reading->top, inside);
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return weir_error_set_errno(err, errno, "cannot read the folder %s", folder);
    }
    add_level(reading, weir_arena_printf(reading->arena, "%s/.gitignore", folder), "", skip);
    weir_status status = WEIR_OK;
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, ".git") != 0 &&
            strcmp(name, "__pycache__") != 0) {
            status = add_found(reading, inside, name, depth, err);
        }
    }
    (void)closedir(dir);
    reading->n_levels = n_levels;
    return status;
}

/* ---- bounds ------------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b)
{
    int64_t left = ((const struct weir_tree_entry *)a)->bytes;
    int64_t right = ((const struct weir_tree_entry *)b)->bytes;
    return left < right ? 1 : left > right ? -1 : 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct weir_tree_entry *)a)->path,
                  ((const struct weir_tree_entry *)b)->path);
}

static weir_status check_bounds(struct reading *reading, struct weir_error *err)
{
    const struct weir_tree *tree = &reading->out->tree;
    if (tree->n <= WEIR_TREE_FILES_MAX && tree->n_bytes <= WEIR_TREE_BYTES_MAX) {
        return WEIR_OK;
    }
    struct weir_names largest = {0};
    qsort(tree->entries, tree->n, sizeof *tree->entries, larger_first);
    for (size_t i = 0; i < WEIR_MIN(tree->n, (size_t)N_NAMED); i++) {
        char text[160];
        int len = snprintf(text, sizeof text, "%.100s (%lld MiB)", tree->entries[i].path,
                           (long long)((tree->entries[i].bytes + (1 << 20) - 1) >> 20));
        weir_names_add(&largest, text, (size_t)WEIR_MIN(len, (int)sizeof text - 1));
    }
    return weir_error_set(err, WEIR_ERR_LIMIT,
                          "%s holds %zu files of %lld MiB, and a job takes %d files of %lld MiB "
                          "along; the largest are %s. Name what it does not need in .gitignore, "
                          "give the script's own folder with --dir, or put data into a dataset",
                          reading->top, tree->n, (long long)(tree->n_bytes >> 20),
                          WEIR_TREE_FILES_MAX, (long long)(WEIR_TREE_BYTES_MAX >> 20),
                          largest.text);
}

weir_status folder_read(const char *path, struct weir_arena *arena, struct folder *out,
                        struct weir_error *err)
{
    struct folder folder = {0};
    struct reading reading = {.top = path, .arena = arena, .out = &folder};
    if (is_state(path, arena)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s is the state folder of a server, which holds tokens: it is not "
                              "sent; go to your script's folder, or name it with --dir",
                              path);
    }
    add_levels_above(&reading);
    WEIR_TRY(walk(&reading, "", 0, err));
    WEIR_TRY(check_bounds(&reading, err));
    if (folder.tree.n > 0) {
        qsort(folder.tree.entries, folder.tree.n, sizeof *folder.tree.entries, by_path);
    }
    *out = folder;
    return WEIR_OK;
}
