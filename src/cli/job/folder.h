/**
 * The files of a folder as a job takes them along: any files, with links that stay inside (base/tree.h).
 *
 * Left out: `.git`, `__pycache__`, the state folder of a server (it holds tokens), and what .gitignore names: that of the folder, of folders below, and, in a
 * git working tree, of those above up to its top. What cannot be taken along (links that lead out, devices,
 * names with control characters, what a task has of its own) is counted, and the first named.
 */
#ifndef WEIR_CLI_FOLDER_H
#define WEIR_CLI_FOLDER_H

#include "base/arena.h"
#include "base/status.h"
#include "base/tree.h"

#include <stdbool.h>

struct folder {
    struct weir_tree tree; /**< By path. `sha256` of files is NULL: they have not been read. */
    size_t n_left_out;
    char *first_left_out; /**< In the arena; NULL if none. */
    const char *why_left_out;
};

/**
 * Read a folder with all below it.
 * @return LIMIT beyond WEIR_TREE_FILES_MAX or WEIR_TREE_BYTES_MAX, naming the largest files and the way
 *         around it; NOT_FOUND, IO; INVALID: it is a server's state folder.
 */
weir_status folder_read(const char *path, struct weir_arena *arena, struct folder *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Do the lines of a .gitignore leave this path out? The last line that fits decides. Known: "#", "!", a
 * slash at the end (folders only), in front or within (from the file's folder), "*", "?", "[…]" within a
 * name, and two stars for any folders.
 */
bool folder_is_ignored(const char *lines, const char *path, bool is_dir);

#endif
