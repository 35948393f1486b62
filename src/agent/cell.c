#include "agent/cell.h"

#include "base/path.h"

#include <string.h>

static weir_status read_paths(const json_t *list, const char *key, struct weir_arena *arena,
                              struct cell_path **out, size_t *out_n, struct weir_error *err)
{
    size_t n = json_array_size(list);
    if ((list != NULL && !json_is_array(list)) || n > CELL_PATHS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.%s: expected an array of at most %d paths", key,
                              CELL_PATHS_MAX);
    }
    *out = WEIR_ARENA_ARRAY(arena, n, struct cell_path);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        const char *path = json_string_value(json_object_get(item, "path"));
        const char *access = json_string_value(json_object_get(item, "access"));
        if (path == NULL || access == NULL ||
            (strcmp(access, "read") != 0 && strcmp(access, "write") != 0)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "task $.%s[%zu]: expected {\"path\", \"access\": "
                                  "\"read\"|\"write\"}",
                                  key, i);
        }
        (*out)[i] = (struct cell_path){.path = weir_arena_strdup(arena, path),
                                       .is_writable = strcmp(access, "write") == 0};
    }
    *out_n = n;
    return WEIR_OK;
}

/* "datasets/NAME" or "demo". A definition of before has none. */
static weir_status read_folders(const json_t *list, struct weir_arena *arena, struct cell *out,
                                struct weir_error *err)
{
    static const char datasets[] = "datasets/";
    size_t n = json_array_size(list);
    if ((list != NULL && !json_is_array(list)) || n > CELL_PATHS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.folders: expected an array of at most %d folders",
                              CELL_PATHS_MAX);
    }
    out->folders = WEIR_ARENA_ARRAY(arena, n, const char *);
    for (size_t i = 0; i < n; i++) {
        const char *folder = json_string_value(json_array_get(list, i));
        const char *name = folder != NULL && strncmp(folder, datasets, sizeof datasets - 1) == 0
                               ? folder + sizeof datasets - 1
                               : NULL;
        bool is_dataset = name != NULL && name[0] != '\0' && name[0] != '.' && !strchr(name, '/');
        if (!is_dataset && (folder == NULL || strcmp(folder, "demo") != 0)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "task $.folders[%zu]: expected \"datasets/NAME\"", i);
        }
        out->folders[out->n_folders++] = weir_arena_strdup(arena, folder);
    }
    return WEIR_OK;
}

static const char *copy_text(const json_t *object, const char *key, struct weir_arena *arena)
{
    return weir_arena_strdup(arena, json_string_value(json_object_get(object, key)));
}

/* Names of folders, "JOB-RANK", and nothing that leads elsewhere. */
static weir_status read_left(const json_t *list, struct weir_arena *arena, struct cell *cell,
                             struct weir_error *err)
{
    cell->left = WEIR_ARENA_ARRAY(arena, json_array_size(list) + 1, const char *);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL || name[0] == '\0' ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "task $.left: expected names of folders");
        }
        cell->left[cell->n_left++] = weir_arena_strdup(arena, name);
    }
    return WEIR_OK;
}

weir_status cell_from_json(const json_t *task, struct weir_arena *arena, struct cell *out,
                           struct weir_error *err)
{
    const json_t *object = json_object_get(task, "cell");
    struct cell cell = {
        .user = (uid_t)json_integer_value(json_object_get(object, "user")),
        .readers = (gid_t)json_integer_value(json_object_get(object, "readers")),
        .is_alone = json_is_true(json_object_get(object, "namespaces")),
        .agent_dir = copy_text(object, "agent_dir", arena),
        .job_dir = copy_text(object, "job_dir", arena),
        .shm_dir = copy_text(object, "shm_dir", arena),
        .ca_file = copy_text(object, "ca_file", arena),
        .service = copy_text(json_object_get(task, "service"), "id", arena),
        .state_dir = copy_text(task, "state", arena),
    };
    if (cell.service != NULL &&
        (cell.service[0] == '\0' ||
         strspn(cell.service, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(cell.service))) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.service.id: expected an identifier");
    }
    if (cell.user != 0 && !json_is_array(json_object_get(task, "paths"))) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "task $.paths is missing: the server that made this job did not say "
            "which folders it needs: a server of this version makes it anew when it starts "
            "(docs/howto/upgrade.md)");
    }
    WEIR_TRY(read_paths(json_object_get(task, "paths"), "paths", arena, &cell.paths, &cell.n_paths,
                        err));
    WEIR_TRY(read_folders(json_object_get(task, "folders"), arena, &cell, err));
    WEIR_TRY(read_paths(json_object_get(object, "shares"), "cell.shares", arena, &cell.shares,
                        &cell.n_shares, err));
    if (cell.user != 0 &&
        (cell.agent_dir == NULL || cell.job_dir == NULL || cell.shm_dir == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.cell: agent_dir, job_dir and shm_dir are missing");
    }
    WEIR_TRY(read_left(json_object_get(task, "left"), arena, &cell, err));
    *out = cell;
    return WEIR_OK;
}

bool cell_is_below(const char *path, const char *dir)
{
    return weir_path_below(path, dir) != NULL;
}

/* The folder that it is, or is below of, among those that the server named; NULL: none. */
static const char *find_folder(const struct cell *cell, const struct cell_path *path,
                               const char *below)
{
    for (size_t i = 0; i < cell->n_folders; i++) {
        bool is_demo = strcmp(cell->folders[i], "demo") == 0;
        if (weir_path_below(below, cell->folders[i]) != NULL && (is_demo || !path->is_writable)) {
            return cell->folders[i];
        }
    }
    return NULL;
}

enum cell_place cell_place(const struct cell *cell, const char *job, int64_t rank,
                           const struct cell_path *path, struct weir_arena *arena,
                           const char **out_folder)
{
    if (path->path[0] != '/' || weir_path_has_parent(path->path)) {
        return CELL_REFUSED;
    }
    const char *below =
        cell->state_dir != NULL ? weir_path_below(path->path, cell->state_dir) : NULL;
    if (below == NULL) {
        return CELL_OUTSIDE;
    }
    const char *own[] = {
        weir_arena_printf(arena, "rendezvous/%s", job),
        weir_arena_printf(arena, "checkpoints/%s", job),
        weir_arena_printf(arena, "sandbox/%s", job),
        weir_arena_printf(arena, "replicas/%s-%lld", job, (long long)rank),
        cell->service != NULL ? weir_arena_printf(arena, "services/%s", cell->service) : NULL,
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (own[i] != NULL && cell_is_below(below, own[i])) {
            *out_folder = own[i];
            return CELL_OWN;
        }
    }
    const char *folder = find_folder(cell, path, below);
    if (folder == NULL) {
        return CELL_REFUSED;
    }
    *out_folder = folder;
    return CELL_COMMON;
}

char *cell_given(const struct cell *cell, const char *name, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/given/%s", cell->agent_dir, name);
}
