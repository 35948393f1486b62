/**
 * The files of `weir dataset put`: all of them are looked at before the first is sent, so that it is said
 * at once which cannot be.
 */
#ifndef WEIR_CLI_DATASET_PUT_H
#define WEIR_CLI_DATASET_PUT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct put_file {
    const char *path; /**< Here. */
    const char *class_name, *name;
};

struct put_list {
    struct put_file *items;
    size_t n, cap;
    /* What is left out. */
    size_t n_loose;     /**< Files beside the class folders. */
    size_t n_folders;   /**< Folders below a class. */
    const char *folder; /**< The first of these; NULL: there is none. */
    size_t n_classes;   /**< Class folders, with files or without. */
};

/**
 * The visible files of `folder` as class `class_name`, or, with NULL, those of its class folders,
 * in order of names. Folders below, and files beside class folders, are left out, and counted.
 *
 * @return INVALID if that is no file at all: what lies there, and how it should.
 */
weir_status put_list_read(struct put_list *list, const char *folder, const char *class_name,
                          struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** What is left out, as a sentence; NULL: nothing is. */
const char *put_list_left_out(const struct put_list *list, struct weir_arena *arena);

/** What of a list cannot be sent, or need not. Sentences name up to ten files; NULL: there is none. */
struct put_check {
    const char *left_out; /**< Empty, no regular files, too large, not readable. */
    size_t n_left_out;
    size_t n_lost;       /**< Of these, with something in them. */
    const char *damaged; /**< Sent, but they seem to be no whole pictures. */
    size_t n_damaged;
    size_t n_other; /**< Sent, and of another kind than pictures, which is not damage. */
};

/**
 * Can each be read and sent? The list loses those that cannot.
 * @return INVALID if that is none; *out is not written then.
 */
weir_status put_list_check(struct put_list *list, bool has_pictures, struct weir_arena *arena,
                           struct put_check *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
