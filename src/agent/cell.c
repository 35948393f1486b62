#include "agent/cell.h"

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

static const char *copy_text(const json_t *object, const char *key, struct weir_arena *arena)
{
    return weir_arena_strdup(arena, json_string_value(json_object_get(object, key)));
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
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.paths is missing: the server that made this job did not say "
                              "which folders it needs; start it anew (weir job restart)");
    }
    WEIR_TRY(read_paths(json_object_get(task, "paths"), "paths", arena, &cell.paths, &cell.n_paths,
                        err));
    WEIR_TRY(read_paths(json_object_get(object, "shares"), "cell.shares", arena, &cell.shares,
                        &cell.n_shares, err));
    if (cell.user != 0 &&
        (cell.agent_dir == NULL || cell.job_dir == NULL || cell.shm_dir == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.cell: agent_dir, job_dir and shm_dir are missing");
    }
    *out = cell;
    return WEIR_OK;
}

bool cell_is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/') {
        len--;
    }
    return strncmp(path, dir, len) == 0 &&
           (path[len] == '/' || path[len] == '\0' || (len == 1 && dir[0] == '/'));
}

/* Is a part of the path ".."? */
static bool has_parent(const char *path)
{
    for (const char *part = path; *part != '\0';) {
        size_t len = strcspn(part, "/");
        if (len == 2 && strncmp(part, "..", 2) == 0) {
            return true;
        }
        part += len;
        part += strspn(part, "/");
    }
    return false;
}

enum cell_place cell_place(const char *state_dir, const char *service, const char *job,
                           int64_t rank, const struct cell_path *path, struct weir_arena *arena,
                           const char **out_folder)
{
    if (path->path[0] != '/' || has_parent(path->path)) {
        return CELL_REFUSED;
    }
    if (state_dir == NULL || !cell_is_below(path->path, state_dir)) {
        return CELL_OUTSIDE;
    }
    const char *below = path->path + strlen(state_dir);
    below += strspn(below, "/");
    const char *own[] = {
        weir_arena_printf(arena, "rendezvous/%s", job),
        weir_arena_printf(arena, "checkpoints/%s", job),
        weir_arena_printf(arena, "sandbox/%s", job),
        weir_arena_printf(arena, "replicas/%s-%lld", job, (long long)rank),
        service != NULL ? weir_arena_printf(arena, "services/%s", service) : NULL,
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (own[i] != NULL && cell_is_below(below, own[i])) {
            *out_folder = own[i];
            return CELL_OWN;
        }
    }
    static const char datasets[] = "datasets/";
    const char *name = below + sizeof datasets - 1;
    if (strncmp(below, datasets, sizeof datasets - 1) == 0 && *name != '\0' && *name != '/' &&
        *name != '.' && !path->is_writable) {
        *out_folder = weir_arena_printf(arena, "datasets/%.*s", (int)strcspn(name, "/"), name);
        return CELL_COMMON;
    }
    if (cell_is_below(below, "demo")) {
        *out_folder = "demo";
        return CELL_COMMON;
    }
    return CELL_REFUSED;
}

char *cell_given(const struct cell *cell, const char *name, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/given/%s", cell->agent_dir, name);
}
