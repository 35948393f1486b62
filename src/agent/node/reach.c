#include "agent/node/reach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

weir_status reach_refuse(const struct sandbox *sandbox, const struct sandbox_path *path,
                         struct weir_error *err)
{
    const char *text = path->path;
    int dir_len = path->is_dir ? (int)strlen(text) : (int)(strrchr(text, '/') - text);
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "the task's user %u cannot %s %s: let every user do so, or start the "
                          "agent with --share %.*s%s",
                          (unsigned)sandbox->user,
                          !path->is_writable ? "read"
                          : path->is_dir     ? "make and remove files in"
                                             : "write",
                          text, dir_len, text, path->is_writable ? ":rw" : "");
}

static bool is_refused(int dir_fd, const char *path, int mode)
{
    return faccessat(dir_fd, path, mode, AT_EACCESS) != 0 &&
           (errno == EACCES || errno == EPERM || errno == EROFS);
}

/* In a folder that is written to, the folders in it must be too: cameras have one each. */
static bool has_refused_folder(const char *path)
{
    bool is_bad = false;
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL && !is_bad;
         entry = readdir(dir)) {
        is_bad = entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                 is_refused(dirfd(dir), entry->d_name, W_OK | X_OK);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return is_bad;
}

static bool is_out_of_reach(const struct sandbox_path *path, struct weir_arena *arena)
{
    struct stat info;
    const char *text = path->path;
    int mode = R_OK | (path->is_writable ? W_OK : 0);
    if (stat(text, &info) == 0) {
        bool is_dir = S_ISDIR(info.st_mode);
        return is_refused(AT_FDCWD, text, mode | (is_dir ? X_OK : 0)) ||
               (path->is_writable && is_dir && has_refused_folder(text));
    }
    if (errno != ENOENT || !path->is_writable) {
        return errno == EACCES;
    }
    const char *dir = weir_arena_printf(arena, "%.*s", (int)(strrchr(text, '/') - text + 1), text);
    return is_refused(AT_FDCWD, dir, W_OK | X_OK);
}

weir_status reach_check(const struct sandbox *sandbox, struct weir_arena *arena,
                        struct weir_error *err)
{
    for (size_t i = 0; i < sandbox->n_paths; i++) {
        const struct sandbox_path *path = &sandbox->paths[i];
        bool is_ours =
            sandbox->state_dir != NULL && sandbox_is_below(path->path, sandbox->state_dir);
        if (!is_ours && is_out_of_reach(path, arena)) {
            return reach_refuse(sandbox, path, err);
        }
    }
    return WEIR_OK;
}

weir_status reach_refuse_place(const char *path, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "%.200s leads into Weir's own folder, and is not this job's: name a "
                          "dataset by its name, or take a folder elsewhere",
                          path);
}

/* Where the path leads; if it is to be made, where its folder does. False: nowhere. */
static bool find_real(const char *path, struct weir_arena *arena, char out[PATH_MAX])
{
    if (realpath(path, out) != NULL) {
        return true;
    }
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;
    return errno == ENOENT && len > 0 && realpath(weir_arena_memdup(arena, path, len), out) != NULL;
}

weir_status reach_check_places(const struct sandbox *sandbox, const char *job, int64_t rank,
                               const char *agent_dir, struct weir_arena *arena,
                               struct weir_error *err)
{
    char state[PATH_MAX], agent[PATH_MAX], real[PATH_MAX];
    bool has_state = sandbox->state_dir != NULL && realpath(sandbox->state_dir, state) != NULL;
    bool has_agent = realpath(agent_dir, agent) != NULL;
    for (size_t i = 0; i < sandbox->n_paths; i++) {
        const char *path = sandbox->paths[i].path, *folder = NULL;
        enum sandbox_place place =
            sandbox_place(sandbox, job, rank, &sandbox->paths[i], arena, &folder);
        if (place == SANDBOX_REFUSED) {
            return reach_refuse_place(path, err);
        }
        if (!find_real(path, arena, real)) {
            continue; /* for the task to complain of */
        }
        bool is_ours = (has_state && sandbox_is_below(real, state)) ||
                       (has_agent && sandbox_is_below(real, agent));
        const char *own = folder != NULL ? weir_arena_printf(arena, "%s/%s", state, folder) : NULL;
        bool is_there = own != NULL && (sandbox_is_below(real, own) || sandbox_is_below(own, real));
        if (is_ours && !is_there) {
            return reach_refuse_place(path, err);
        }
    }
    return WEIR_OK;
}
