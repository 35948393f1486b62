/**
 * Tree: the files of a folder by their content, as one text (a manifest), which names the whole of them
 * by its own SHA-256.
 *
 *     weir-tree 1
 *     f TAB sha256 TAB bytes TAB path      a file
 *     x TAB sha256 TAB bytes TAB path      one that may be run
 *     l TAB target TAB path                a symbolic link
 *
 * Lines end with a newline and are ordered by path, byte by byte, each path once; the same folder is the
 * same text. Whoever made it may be hostile, so a text that is read holds nothing that could leave the
 * folder it is unpacked in: paths are relative, of parts that are neither "", "." nor "..", without
 * control characters, and none leads through a file or a link of the tree. A link points at a relative
 * path that stays inside, with ".." in front only. A mode is "may be run" or not: no set-user-ID can be said.
 */
#ifndef WEIR_BASE_TREE_H
#define WEIR_BASE_TREE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define WEIR_TREE_FILES_MAX     20000
#define WEIR_TREE_BYTES_MAX     ((int64_t)2 << 30) /* of all files together */
#define WEIR_TREE_TEXT_MAX      ((size_t)8 << 20)
#define WEIR_TREE_PATH_MAX      1024
#define WEIR_TREE_DEPTH_MAX     64
#define WEIR_TREE_RESERVED_DIR  "output" /* where a task's WEIR_OUTPUT is */
#define WEIR_TREE_RESERVED_FILE "token"  /* a task's own token */

enum weir_tree_kind { WEIR_TREE_FILE, WEIR_TREE_PROGRAM, WEIR_TREE_LINK };

/** Text lies in the arena that the tree was read into. */
struct weir_tree_entry {
    const char *path;
    enum weir_tree_kind kind;
    const char *sha256; /**< NULL for a link. */
    int64_t bytes;
    const char *target; /**< Of a link; else NULL. */
};

struct weir_tree {
    struct weir_tree_entry *entries; /**< By path. */
    size_t n;
    int64_t n_bytes; /**< Of all files; one that lies there twice counts twice. */
};

/**
 * May a file lie at this path? See above; nor is it Weir's own: "token" at the top, what begins with
 * ".weir", and "output" with all below it.
 * @return INVALID with a sentence about the path.
 */
weir_status weir_tree_check_path(const char *path, struct weir_error *err) WEIR_MUST_CHECK;

/** May a link at `path` point at `target`? @return INVALID. */
weir_status weir_tree_check_link(const char *path, const char *target,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Read a text.
 * @return INVALID with the line of what is wrong; LIMIT for more than WEIR_TREE_FILES_MAX entries or
 *         WEIR_TREE_BYTES_MAX bytes of files.
 */
weir_status weir_tree_parse(const char *text, size_t len, struct weir_arena *arena,
                            struct weir_tree *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Sort the entries, check them as weir_tree_parse does, and write the text.
 * @return as weir_tree_parse, naming the path; NOMEM if `out` may not hold it.
 */
weir_status weir_tree_write(struct weir_tree *tree, struct weir_buf *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
