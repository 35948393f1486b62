/**
 * The files of a folder as a job takes them: a JSON object of path and text.
 *
 * Left out: `.git`, `__pycache__`, what the folder's own .gitignore names, links, and what is no
 * text (UTF-8 without NUL): those that are left out for their kind are counted and the first named.
 */
#ifndef WEIR_CLI_FOLDER_H
#define WEIR_CLI_FOLDER_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

#define FOLDER_MAX_FILES 256
#define FOLDER_MAX_BYTES ((size_t)1 << 20)

struct folder {
    json_t *files; /**< A reference of the caller's. */
    size_t n_files, n_bytes, n_left_out;
    char *first_left_out; /**< In the arena; NULL if none. */
};

/**
 * Read a folder with all below it.
 * @return LIMIT beyond FOLDER_MAX_FILES or FOLDER_MAX_BYTES, naming the largest files and the way
 *         around it; NOT_FOUND, IO.
 */
weir_status folder_read(const char *path, struct weir_arena *arena, struct folder *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Do the lines of a .gitignore leave this path out? The last line that fits decides. Known: "#",
 * "!", a slash at the end (folders only), in front or within (from the top), "*", "?", "[…]"
 * within a name, and two stars with a slash in front.
 */
bool folder_is_ignored(const char *lines, const char *path, bool is_dir);

#endif
