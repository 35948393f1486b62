#include "cli/folder.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/macros.h"
#include "base/names.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATTERN_BYTES    512
#define IGNORE_MAX_BYTES ((size_t)64 << 10)
#define DEPTH_MAX        32
#define FOUND_MAX        65536 /* a folder with more is not a script's */
#define N_NAMED          5

struct found {
    char *path; /* from the top */
    size_t bytes;
};

struct reading {
    const char *top;
    const char *ignore; /* text of .gitignore, or "" */
    struct weir_arena *arena;
    struct found *found;
    size_t n, cap, n_bytes;
    struct folder *out;
};

/* One line of a .gitignore that is no comment: does it fit? */
static bool pattern_fits(const char *pattern, const char *path, bool is_dir)
{
    char text[PATTERN_BYTES];
    size_t len = strlen(pattern);
    bool is_for_dirs = len > 0 && pattern[len - 1] == '/';
    if (len == 0 || len >= sizeof text || (is_for_dirs && !is_dir)) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)(len - is_for_dirs), pattern);
    const char *from = text;
    bool is_anywhere = strncmp(from, "**/", 3) == 0;
    from += is_anywhere ? 3 : 0;
    bool is_from_top = !is_anywhere && strchr(from, '/') != NULL;
    from += from[0] == '/';
    const char *slash = strrchr(path, '/');
    const char *name = is_from_top || slash == NULL ? path : slash + 1;
    return fnmatch(from, name, FNM_PATHNAME) == 0;
}

bool folder_is_ignored(const char *lines, const char *path, bool is_dir)
{
    char line[PATTERN_BYTES];
    bool is_ignored = false;
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n"), used = len;
        while (used > 0 && (lines[used - 1] == ' ' || lines[used - 1] == '\r')) {
            used--;
        }
        (void)snprintf(line, sizeof line, "%.*s", (int)used, lines);
        bool is_not = line[0] == '!';
        if (line[0] != '#' && pattern_fits(line + is_not, path, is_dir)) {
            is_ignored = !is_not;
        }
        lines += len + (lines[len] == '\n');
    }
    return is_ignored;
}

static void leave_out(struct reading *reading, const char *path)
{
    if (reading->out->n_left_out++ == 0) {
        reading->out->first_left_out = weir_arena_strdup(reading->arena, path);
    }
}

static weir_status add_found(struct reading *reading, char *path, size_t bytes,
                             struct weir_error *err)
{
    if (reading->n == FOUND_MAX) {
        return weir_error_set(
            err, WEIR_ERR_LIMIT,
            "%s holds more than %d files: give the script's own folder with --dir", reading->top,
            FOUND_MAX);
    }
    weir_arena_grow(reading->arena, &reading->found, sizeof *reading->found, reading->n,
                    &reading->cap);
    reading->found[reading->n++] = (struct found){path, bytes};
    reading->n_bytes += bytes;
    return WEIR_OK;
}

/* What is below `inside` ("" is the top), in the order of the file system. */
static weir_status walk(struct reading *reading, const char *inside, int depth,
                        struct weir_error *err)
{
    char *folder = weir_arena_printf(reading->arena, "%s/%s", reading->top, inside);
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return weir_error_set_errno(err, errno, "cannot read the folder %s", folder);
    }
    weir_status status = WEIR_OK;
    for (struct dirent *entry = readdir(dir); entry != NULL && status == WEIR_OK;
         entry = readdir(dir)) {
        const char *name = entry->d_name;
        struct stat info;
        char *path =
            weir_arena_printf(reading->arena, "%s%s%s", inside, inside[0] != '\0' ? "/" : "", name);
        char *full = weir_arena_printf(reading->arena, "%s/%s", reading->top, path);
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0 ||
            strcmp(name, "__pycache__") == 0 || lstat(full, &info) != 0 ||
            folder_is_ignored(reading->ignore, path, S_ISDIR(info.st_mode))) {
            continue;
        }
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX) {
            status = walk(reading, path, depth + 1, err);
        } else if (S_ISREG(info.st_mode)) {
            status = add_found(reading, path, (size_t)info.st_size, err);
        } else {
            leave_out(reading, path);
        }
    }
    (void)closedir(dir);
    return status;
}

static int compare_bytes(const void *a, const void *b)
{
    size_t left = ((const struct found *)a)->bytes, right = ((const struct found *)b)->bytes;
    return left < right ? 1 : left > right ? -1 : 0;
}

static weir_status check_bounds(struct reading *reading, struct weir_error *err)
{
    if (reading->n <= FOLDER_MAX_FILES && reading->n_bytes <= FOLDER_MAX_BYTES) {
        return WEIR_OK;
    }
    struct weir_names largest = {0};
    qsort(reading->found, reading->n, sizeof *reading->found, compare_bytes);
    for (size_t i = 0; i < WEIR_MIN(reading->n, (size_t)N_NAMED); i++) {
        char text[160];
        int len = snprintf(text, sizeof text, "%.100s (%zu KiB)", reading->found[i].path,
                           (reading->found[i].bytes + 1023) / 1024);
        weir_names_add(&largest, text, (size_t)WEIR_MIN(len, (int)sizeof text - 1));
    }
    return weir_error_set(err, WEIR_ERR_LIMIT,
                          "%s holds %zu files of %zu KiB, and a job takes %d files of %zu KiB; the "
                          "largest are %s. Name what it does not need in .gitignore, give the "
                          "script's own folder with --dir, or put data where the nodes find it",
                          reading->top, reading->n, (reading->n_bytes + 1023) / 1024,
                          FOLDER_MAX_FILES, FOLDER_MAX_BYTES >> 10, largest.text);
}

static weir_status read_files(struct reading *reading, struct weir_error *err)
{
    for (size_t i = 0; i < reading->n; i++) {
        char *text;
        size_t len;
        char *full =
            weir_arena_printf(reading->arena, "%s/%s", reading->top, reading->found[i].path);
        WEIR_TRY(weir_file_read(full, FOLDER_MAX_BYTES, reading->arena, &text, &len, err));
        json_t *value = strlen(text) == len ? json_stringn(text, len) : NULL; /* NULL: no UTF-8 */
        if (value == NULL) {
            leave_out(reading, reading->found[i].path);
            continue;
        }
        json_object_set_new(reading->out->files, reading->found[i].path, value);
        reading->out->n_files++;
        reading->out->n_bytes += len;
    }
    return WEIR_OK;
}

weir_status folder_read(const char *path, struct weir_arena *arena, struct folder *out,
                        struct weir_error *err)
{
    struct folder folder = {.files = json_object()};
    struct reading reading = {.top = path, .ignore = "", .arena = arena, .out = &folder};
    char *ignore, *ignore_path = weir_arena_printf(arena, "%s/.gitignore", path);
    size_t len;
    if (weir_file_read(ignore_path, IGNORE_MAX_BYTES, arena, &ignore, &len, NULL) == WEIR_OK) {
        reading.ignore = ignore;
    }
    weir_status status = walk(&reading, "", 0, err);
    if (status == WEIR_OK) {
        status = check_bounds(&reading, err);
    }
    if (status == WEIR_OK) {
        status = read_files(&reading, err);
    }
    if (status != WEIR_OK) {
        json_decref(folder.files);
        return status;
    }
    *out = folder;
    return WEIR_OK;
}
