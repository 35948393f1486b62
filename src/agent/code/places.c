#include "agent/code/places.h"

#include "agent/code/kept.h"
#include "agent/code/prepare.h"
#include "agent/code/prepare_datasets.h"
#include "agent/supervise/launch.h"
#include "base/file.h"
#include "base/folder_id.h"
#include "base/log.h"
#include "base/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DATASETS "datasets"
#define UNUSED_S ((int64_t)30 * 86400)

void places_find(const char *dir, const json_t *document, struct weir_arena *arena,
                 struct places *out)
{
    char agent[PATH_MAX];
    const char *state = json_string_value(json_object_get(document, "state"));
    const char *id = json_string_value(json_object_get(document, "state_id"));
    *out = (struct places){.server_dir = weir_arena_strdup(arena, state)};
    if (state != NULL && id != NULL && !weir_folder_is(state, id) &&
        realpath(weir_arena_printf(arena, "%s/../..", dir), agent) != NULL) {
        out->own_dir = weir_arena_printf(arena, "%s/state", agent);
    }
}

/* NULL: it stays as it is. */
static const char *find_new(const struct places *places, const char *path, struct weir_arena *arena)
{
    if (places->own_dir == NULL || path[0] != '/' || weir_path_has_parent(path)) {
        return NULL;
    }
    for (size_t i = 0; i < places->n_fetched; i++) {
        const char *below = weir_path_below(path, places->fetched[i].from);
        if (below != NULL) {
            return weir_arena_printf(arena, "%s%s%s", places->fetched[i].to,
                                     below[0] != '\0' ? "/" : "", below);
        }
    }
    const char *below = weir_path_below(path, places->server_dir);
    return below == NULL ? NULL
                         : weir_arena_printf(arena, "%s%s%s", places->own_dir,
                                             below[0] != '\0' ? "/" : "", below);
}

const char *places_map(const struct places *places, const char *path, struct weir_arena *arena)
{
    static const char file_url[] = "file://";
    bool is_url = strncmp(path, file_url, sizeof file_url - 1) == 0;
    const char *found = find_new(places, is_url ? path + sizeof file_url - 1 : path, arena);
    return found == NULL ? path : is_url ? weir_arena_printf(arena, "file://%s", found) : found;
}

const char *places_checkpoint(const struct places *places, const json_t *document,
                              const struct task *task, struct weir_arena *arena)
{
    if (places->own_dir == NULL || task->job == NULL) {
        return NULL;
    }
    const char *own = weir_arena_printf(arena, "%s/checkpoints/%s", places->own_dir, task->job);
    const char *said = json_string_value(json_object_get(document, "checkpoint"));
    bool is_used = said != NULL;
    for (size_t i = 0; i < json_array_size(json_object_get(document, "paths")) && !is_used; i++) {
        const json_t *item = json_array_get(json_object_get(document, "paths"), i);
        const char *path = json_string_value(json_object_get(item, "path"));
        is_used = path != NULL && strcmp(places_map(places, path, arena), own) == 0;
    }
    return is_used ? own : NULL;
}

/* ---- the step --------------------------------------------------------------------------------- */

/* Every text of the value that is a path. */
static json_t *map_value(const struct places *places, const json_t *value, struct weir_arena *arena)
{
    const char *name;
    size_t i;
    json_t *item;
    if (json_is_string(value)) {
        return json_string(places_map(places, json_string_value(value), arena));
    }
    json_t *copy = json_is_object(value)  ? json_object()
                   : json_is_array(value) ? json_array()
                                          : json_deep_copy(value);
    json_object_foreach((json_t *)value, name, item)
    {
        json_object_set_new(copy, name, map_value(places, item, arena));
    }
    json_array_foreach((json_t *)value, i, item)
    {
        json_array_append_new(copy, map_value(places, item, arena));
    }
    return copy;
}

/* A JSON text; one that is none stays as it is. */
static const char *map_text(const struct places *places, const char *text, struct weir_arena *arena)
{
    WEIR_AUTO(weir_json_auto_free) json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    WEIR_AUTO(weir_json_auto_free)
    json_t *mapped = value != NULL ? map_value(places, value, arena) : NULL;
    return mapped != NULL ? weir_json_text(mapped, arena) : text;
}

/* Weir's own programs go by it alone; a user's files are theirs. */
static weir_status map_spec(struct prepare *prepare, const struct places *places,
                            struct weir_error *err)
{
    struct task *task = prepare->task;
    for (size_t i = 0; i < task->n_files && strcmp(task->argv[0], "weir-worker") == 0; i++) {
        if (strcmp(task->files[i].name, "spec.json") == 0) {
            task->files[i].value = map_text(places, task->files[i].value, prepare->arena);
            return launch_write_file(prepare->dir, &task->files[i], prepare->arena, err);
        }
    }
    return WEIR_OK;
}

/* Replicas fetch what they do not find; the others read files. */
static bool reads_files(const struct task *task)
{
    bool is_own = strcmp(task->argv[0], "weir-worker") == 0 && task->argv[1] != NULL;
    return !is_own ||
           (strcmp(task->argv[1], "predict") != 0 && strcmp(task->argv[1], "serve") != 0);
}

/* So that its sandbox lets it in there. */
static void add_folder(struct prepare *prepare, const char *folder)
{
    struct sandbox *sandbox = &prepare->task->sandbox;
    const char **grown = WEIR_ARENA_ARRAY(prepare->arena, sandbox->n_folders + 1, const char *);
    if (sandbox->n_folders > 0) {
        memcpy(grown, sandbox->folders, sandbox->n_folders * sizeof *grown);
    }
    grown[sandbox->n_folders++] = folder;
    sandbox->folders = grown;
}

static weir_status fetch_dataset(struct prepare *prepare, struct places *places, const char *path,
                                 const char *list, struct weir_error *err)
{
    struct weir_arena *arena = prepare->arena;
    char *datasets = weir_arena_printf(arena, "%s/" DATASETS, places->own_dir);
    char *folder = weir_arena_printf(arena, "%s/%s", datasets, list);
    weir_status status = prepare_dataset(prepare, list, datasets, folder, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(
            err, "the files of %.200s, which this node does not have, cannot be fetched: ", path);
    }
    places->fetched[places->n_fetched++] = (struct place){weir_arena_strdup(arena, path), folder};
    add_folder(prepare, weir_arena_printf(arena, DATASETS "/%s", list));
    return WEIR_OK;
}

/* A dataset's folder that is only read. Below the state folder it is none of this node's, whatever lies there. */
static weir_status fetch_datasets(struct prepare *prepare, struct places *places,
                                  struct weir_error *err)
{
    const char *path;
    json_t *list;
    const json_t *lists = json_object_get(prepare->document, "manifests");
    static const char digits[] = "0123456789abcdef";
    places->fetched = WEIR_ARENA_ARRAY(prepare->arena, json_object_size(lists) + 1, struct place);
    json_object_foreach((json_t *)lists, path, list)
    {
        const char *text = json_string_value(list);
        bool is_list = text != NULL && strlen(text) == 64 && strspn(text, digits) == 64;
        bool is_here = weir_path_below(path, places->server_dir) == NULL && weir_path_is_dir(path);
        if (is_list && !is_here && reads_files(prepare->task)) {
            WEIR_TRY(fetch_dataset(prepare, places, path, text, err));
        }
    }
    return WEIR_OK;
}

/* What is no folder of the job's own is the server's: its files are there, or are to get there. */
static weir_status check_common(const struct prepare *prepare, const struct sandbox_path *path,
                                const char *was, struct weir_error *err)
{
    const char *folder;
    const struct task *task = prepare->task;
    enum sandbox_place place =
        sandbox_place(&task->sandbox, task->job, task->rank, path, prepare->arena, &folder);
    if (place != SANDBOX_COMMON || weir_path_is_dir(path->path) || !reads_files(task)) {
        return WEIR_OK;
    }
    return weir_error_set(
        err, WEIR_ERR_UNSUPPORTED,
        "%.200s lies with the server, whose disk this node does not see: share it "
        "with the node, or keep the job on nodes that see it",
        was);
}

/* A folder of the job's own stays when the task has ended, for the next one on this node; but for notebooks' folders, which
 * are people's, not for ever. Checkpoints have a care of their own. */
static weir_status keep_own(const struct prepare *prepare, const struct places *places,
                            const struct sandbox_path *path, struct weir_error *err)
{
    static const char *const swept[] = {"replicas", "sandbox"};
    const struct task *task = prepare->task;
    const char *folder;
    if (sandbox_place(&task->sandbox, task->job, task->rank, path, prepare->arena, &folder) !=
        SANDBOX_OWN) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(swept); i++) {
        if (weir_path_below(folder, swept[i]) != NULL) {
            char *parent = weir_arena_printf(prepare->arena, "%s/%s", places->own_dir, swept[i]);
            WEIR_TRY(weir_dir_make(parent, 0700, err));
            kept_sweep(parent, UNUSED_S);
            return kept_use(weir_arena_printf(prepare->arena, "%s/%s", places->own_dir, folder),
                            err);
        }
    }
    return WEIR_OK;
}

static weir_status map_paths(struct prepare *prepare, const struct places *places,
                             struct weir_error *err)
{
    struct sandbox *sandbox = &prepare->task->sandbox;
    sandbox->state_dir = places->own_dir;
    for (size_t i = 0; i < sandbox->n_paths; i++) {
        const char *was = sandbox->paths[i].path;
        sandbox->paths[i].path = places_map(places, was, prepare->arena);
        WEIR_TRY(check_common(prepare, &sandbox->paths[i], was, err));
        WEIR_TRY(keep_own(prepare, places, &sandbox->paths[i], err));
    }
    return WEIR_OK;
}

weir_status prepare_places(struct prepare *prepare, struct weir_error *err)
{
    struct task *task = prepare->task;
    struct places *places = weir_arena_alloc(prepare->arena, sizeof *places);
    places_find(prepare->dir, prepare->document, prepare->arena, places);
    prepare->places = places;
    if (places->own_dir == NULL) {
        return WEIR_OK;
    }
    weir_log(WEIR_LOG_INFO, "state_folder_is_elsewhere", WEIR_KV_STR("server", places->server_dir),
             WEIR_KV_STR("here", places->own_dir));
    WEIR_TRY(weir_dir_make(places->own_dir, 0700, err));
    WEIR_TRY(fetch_datasets(prepare, places, err));
    WEIR_TRY(map_paths(prepare, places, err));
    for (size_t i = 0; i < task->n_env; i++) {
        const char *value = task->env[i].value;
        task->env[i].value = strcmp(task->env[i].name, "WEIR_DATASETS") == 0
                                 ? map_text(places, value, prepare->arena)
                                 : places_map(places, value, prepare->arena);
    }
    return map_spec(prepare, places, err);
}
