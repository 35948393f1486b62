/** What git says, in a child process. */
#ifndef WEIR_CLI_GIT_STATE_H
#define WEIR_CLI_GIT_STATE_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** A working tree as it is now. Text lies in the arena; NULL where there is none. */
struct git_state {
    char *commit, *branch;
    char *repository; /**< Address of "origin", without user and password. */
    bool is_dirty;    /**< In the folder, also by files that git does not know. */
    char *patch; /**< From the commit to the folder as it is; NULL: none, or over the maximum. */
    size_t patch_bytes;
    bool is_patch_too_large;
};

#define GIT_PATCH_MAX ((size_t)8 << 20)

/** False if `dir` is in no working tree with a commit, or there is no git. */
bool git_state_read(const char *dir, struct weir_arena *arena, struct git_state *out);

/** The address without what is before its "@", if that holds a password or stands in a URL. In the arena. */
char *git_address_plain(const char *address, struct weir_arena *arena);

/** The commit that a branch, a tag or "HEAD" of an address is; NULL if git does not find it. */
char *git_resolve(const char *address, const char *ref, struct weir_arena *arena);

#endif
