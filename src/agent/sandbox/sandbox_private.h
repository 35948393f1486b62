/** What sandbox_enter.c and sandbox_plan.c share. */
#ifndef WEIR_AGENT_SANDBOX_PRIVATE_H
#define WEIR_AGENT_SANDBOX_PRIVATE_H

#include "agent/sandbox/idmap.h"
#include "agent/sandbox_enter.h"

#define MOUNTS_MAX (2 * SANDBOX_PATHS_MAX + 32)

/* How a mount is owned, and what is done where the file system has no id-mapped mounts. */
enum mapping {
    MAP_NONE,   /* as it is */
    MAP_TRY,    /* mapped, else as it is */
    MAP_OWN,    /* mapped, else given to the user */
    MAP_COMMON, /* mapped, else readable for the group of all tasks */
    MAP_SHARED, /* mapped, else writable for the group of all tasks */
};

/* A mount that is attached later. */
struct planned {
    const char *target;
    int tree_fd;
    bool is_dir, is_writable;
};

struct sandbox_builder {
    const struct task *task;
    const struct sandbox *sandbox;
    struct weir_arena *arena;
    struct weir_error *err;
    struct idmap_cache maps;
    char *state_dir;   /* without links; NULL: none */
    char *program_dir; /* where Weir's programs lie; NULL: not known */
    struct planned shares[MOUNTS_MAX], own[MOUNTS_MAX];
    size_t n_shares, n_own;
    const char *made[MOUNTS_MAX]; /* folders of this namespace alone: new names may be made there */
    size_t n_made;
    const char *hidden[MOUNTS_MAX]; /* folders of the machine that a task does not see */
    size_t n_hidden;
    int covers[MOUNTS_MAX]; /* empty file systems, made read-only at the end */
    size_t n_covers;
};

/** Folders that every job has for itself. */
#define SANDBOX_N_PRIVATE 3
extern const char *const sandbox_private_dirs[SANDBOX_N_PRIVATE];

/** IO with errno: "cannot isolate task …: WHAT PATH". */
weir_status sandbox_fail(const struct sandbox_builder *builder, const char *what, const char *path);

/** From here on files are opened as the task's user, without root's rights; and back. */
void sandbox_be_user(const struct sandbox_builder *builder);
void sandbox_be_root(void);

/** A copy of the mount of `fd` (O_PATH), not yet attached anywhere. */
weir_status sandbox_clone(struct sandbox_builder *builder, int fd, const char *path,
                          enum mapping mapping, bool is_writable, int *out_tree) WEIR_MUST_CHECK;

/** Where this program lies. Before the mount namespace is left. */
void sandbox_find_programs(struct sandbox_builder *builder);

/** Open all sources of what the task sees; nothing is covered yet. `dir`/work comes first of own,
 *  behind what `view` keeps. */
weir_status sandbox_plan(struct sandbox_builder *builder, const char *work,
                         const struct sandbox_view *view) WEIR_MUST_CHECK;

/** What is mounted for the task beside what is kept. */
void sandbox_fill_view(const struct sandbox_builder *builder, struct sandbox_view *view);

#endif
