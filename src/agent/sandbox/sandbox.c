#include "agent/sandbox.h"

#include "base/path.h"

#include <string.h>

static weir_status read_paths(const json_t *list, const char *key, struct weir_arena *arena,
                              struct sandbox_path **out, size_t *out_n, struct weir_error *err)
{
    size_t n = json_array_size(list);
    if ((list != NULL && !json_is_array(list)) || n > SANDBOX_PATHS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.%s: expected an array of at most %d paths", key,
                              SANDBOX_PATHS_MAX);
    }
    *out = WEIR_ARENA_ARRAY(arena, n, struct sandbox_path);
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
        (*out)[i] = (struct sandbox_path){.path = weir_arena_strdup(arena, path),
                                          .is_writable = strcmp(access, "write") == 0};
    }
    *out_n = n;
    return WEIR_OK;
}

/* "datasets/NAME" or "demo". A definition of before has none. */
static weir_status read_folders(const json_t *list, struct weir_arena *arena, struct sandbox *out,
                                struct weir_error *err)
{
    static const char datasets[] = "datasets/";
    size_t n = json_array_size(list);
    if ((list != NULL && !json_is_array(list)) || n > SANDBOX_PATHS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.folders: expected an array of at most %d folders",
                              SANDBOX_PATHS_MAX);
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
static weir_status read_left(const json_t *list, struct weir_arena *arena, struct sandbox *sandbox,
                             struct weir_error *err)
{
    sandbox->left = WEIR_ARENA_ARRAY(arena, json_array_size(list) + 1, const char *);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL || name[0] == '\0' ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "task $.left: expected names of folders");
        }
        sandbox->left[sandbox->n_left++] = weir_arena_strdup(arena, name);
    }
    return WEIR_OK;
}

weir_status sandbox_from_json(const json_t *task, struct weir_arena *arena, struct sandbox *out,
                              struct weir_error *err)
{
    const json_t *object = json_object_get(task, "cell");
    struct sandbox sandbox = {
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
    if (sandbox.service != NULL &&
        (sandbox.service[0] == '\0' ||
         strspn(sandbox.service, "abcdefghijklmnopqrstuvwxyz0123456789") !=
             strlen(sandbox.service))) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.service.id: expected an identifier");
    }
    if (sandbox.user != 0 && !json_is_array(json_object_get(task, "paths"))) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "task $.paths is missing: the server that made this job did not say "
            "which folders it needs: a server of this version makes it anew when it starts "
            "(docs/howto/upgrade.md)");
    }
    WEIR_TRY(read_paths(json_object_get(task, "paths"), "paths", arena, &sandbox.paths,
                        &sandbox.n_paths, err));
    WEIR_TRY(read_folders(json_object_get(task, "folders"), arena, &sandbox, err));
    WEIR_TRY(read_paths(json_object_get(object, "shares"), "cell.shares", arena, &sandbox.shares,
                        &sandbox.n_shares, err));
    if (sandbox.user != 0 &&
        (sandbox.agent_dir == NULL || sandbox.job_dir == NULL || sandbox.shm_dir == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.cell: agent_dir, job_dir and shm_dir are missing");
    }
    WEIR_TRY(read_left(json_object_get(task, "left"), arena, &sandbox, err));
    *out = sandbox;
    return WEIR_OK;
}

bool sandbox_is_below(const char *path, const char *dir)
{
    return weir_path_below(path, dir) != NULL;
}

/* The folder that it is, or is below of, among those that the server named; NULL: none. */
static const char *find_folder(const struct sandbox *sandbox, const struct sandbox_path *path,
                               const char *below)
{
    for (size_t i = 0; i < sandbox->n_folders; i++) {
        bool is_demo = strcmp(sandbox->folders[i], "demo") == 0;
        if (weir_path_below(below, sandbox->folders[i]) != NULL &&
            (is_demo || !path->is_writable)) {
            return sandbox->folders[i];
        }
    }
    return NULL;
}

enum sandbox_place sandbox_place(const struct sandbox *sandbox, const char *job, int64_t rank,
                                 const struct sandbox_path *path, struct weir_arena *arena,
                                 const char **out_folder)
{
    if (path->path[0] != '/' || weir_path_has_parent(path->path)) {
        return SANDBOX_REFUSED;
    }
    const char *below =
        sandbox->state_dir != NULL ? weir_path_below(path->path, sandbox->state_dir) : NULL;
    if (below == NULL) {
        return SANDBOX_OUTSIDE;
    }
    const char *own[] = {
        weir_arena_printf(arena, "rendezvous/%s", job),
        weir_arena_printf(arena, "checkpoints/%s", job),
        weir_arena_printf(arena, "sandbox/%s", job),
        weir_arena_printf(arena, "replicas/%s-%lld", job, (long long)rank),
        sandbox->service != NULL ? weir_arena_printf(arena, "services/%s", sandbox->service) : NULL,
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (own[i] != NULL && sandbox_is_below(below, own[i])) {
            *out_folder = own[i];
            return SANDBOX_OWN;
        }
    }
    const char *folder = find_folder(sandbox, path, below);
    if (folder == NULL) {
        return SANDBOX_REFUSED;
    }
    *out_folder = folder;
    return SANDBOX_COMMON;
}

char *sandbox_given(const struct sandbox *sandbox, const char *name, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/given/%s", sandbox->agent_dir, name);
}
