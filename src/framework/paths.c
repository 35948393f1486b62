#include "framework/paths.h"

#include "base/path.h"
#include "framework/framework.h"

#include <string.h>

#define DEMO_PROJECT "default"

/* The path in a text: itself, or what "file://" leads to. */
static const char *path_of(const char *text)
{
    static const char file_url[] = "file://";
    bool is_url = strncmp(text, file_url, sizeof file_url - 1) == 0;
    return is_url ? text + sizeof file_url - 1 : text;
}

/* Hears of the absolute paths; what is relative is a name, or a file in the task's own folder. */
struct visitor {
    weir_option_path_fn fn;
    void *context;
};

static weir_status visit(void *context, const char *where, const char *text, bool is_writable)
{
    const struct visitor *visitor = context;
    const char *path = path_of(text);
    bool is_path = path[0] == '/' || weir_path_has_parent(path);
    return is_path ? visitor->fn(visitor->context, where, path, is_writable) : WEIR_OK;
}

static weir_status walk(const struct weir_kind *kind, const json_t *spec, const char *root,
                        weir_option_path_fn fn, void *context)
{
    struct visitor visitor = {fn, context};
    const struct weir_job_ops *ops = kind->ops;
    WEIR_TRY(weir_options_paths(kind->options, kind->n_options, spec, root, visit, &visitor));
    return ops->paths != NULL ? ops->paths(spec, root, visit, &visitor) : WEIR_OK;
}

/* One of the datasets that the server has looked up. */
static bool is_given(const struct weir_reach *reach, const char *path)
{
    const char *name;
    json_t *given;
    json_object_foreach((json_t *)reach->datasets, name, given)
    {
        const char *text = json_string_value(given);
        if (text != NULL && strcmp(text, path) == 0) {
            return true;
        }
    }
    return false;
}

/* The demo's folder, which its ION reads and writes. */
static bool is_demo(const char *below)
{
    return weir_path_below(below, "demo") != NULL;
}

weir_status weir_framework_path_check(const struct weir_reach *reach, const char *where,
                                      const char *path, bool is_writable, struct weir_error *err)
{
    if (weir_path_has_parent(path)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: %.200s: a path without \"..\" is expected", where, path);
    }
    const char *below = weir_path_below(path, reach->state_dir);
    bool is_free =
        below == NULL || (!is_writable && is_given(reach, path)) ||
        (is_demo(below) && reach->project != NULL && strcmp(reach->project, DEMO_PROJECT) == 0);
    return is_free ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "%s: %.200s is in Weir's own folder, of which jobs name "
                                    "nothing: name a dataset (`weir get datasets`), or take a "
                                    "folder elsewhere",
                                    where, path);
}

struct check {
    const struct weir_reach *reach;
    struct weir_error *err;
};

static weir_status check_path(void *context, const char *where, const char *path, bool is_writable)
{
    const struct check *check = context;
    return weir_framework_path_check(check->reach, where, path, is_writable, check->err);
}

weir_status weir_framework_paths_walk(const char *kind, const char *where, const json_t *spec,
                                      weir_option_path_fn fn, void *context, struct weir_error *err)
{
    const struct weir_kind *found;
    WEIR_TRY(weir_registry_find(&weir_job_kinds, kind, "$.kind", &found, err));
    return walk(found, spec, where, fn, context);
}

weir_status weir_framework_paths_check(const struct weir_reach *reach, const char *kind,
                                       const char *where, const json_t *spec,
                                       struct weir_error *err)
{
    struct check check = {reach, err};
    return weir_framework_paths_walk(kind, where, spec, check_path, &check, err);
}

/** What a definition says. */
struct said {
    const char *state_dir;
    json_t *paths, *folders;
};

/* Once each. */
static void add_folder(const struct said *said, const char *folder)
{
    size_t i;
    const json_t *there;
    json_array_foreach(said->folders, i, there)
    {
        if (strcmp(json_string_value(there), folder) == 0) {
            return;
        }
    }
    json_array_append_new(said->folders, json_string(folder));
}

static void put_path(json_t *paths, const char *path, bool is_writable)
{
    json_array_append_new(
        paths, json_pack("{s:s,s:s}", "path", path, "access", is_writable ? "write" : "read"));
}

static weir_status add_path(void *context, const char *where, const char *path, bool is_writable)
{
    const struct said *said = context;
    const char *below = weir_path_below(path, said->state_dir);
    (void)where;
    put_path(said->paths, path, is_writable);
    if (below != NULL && is_demo(below)) {
        add_folder(said, "demo");
    }
    return WEIR_OK;
}

void paths_describe(const struct weir_kind *kind, const struct weir_launch_job *job,
                    const json_t *spec, json_t *definition)
{
    struct said said = {job->shared_dir, json_array(), json_array()};
    const char *name;
    json_t *path;
    (void)walk(kind, spec, "", add_path, &said);
    json_object_foreach((json_t *)job->datasets, name, path)
    {
        const char *text = json_string_value(path);
        const char *below = weir_path_below(text, job->shared_dir);
        put_path(said.paths, text, false);
        if (below != NULL && below[0] != '\0') {
            add_folder(&said, below);
        }
    }
    json_object_set_new(definition, "state", json_string(job->shared_dir));
    if (json_object_size(job->manifests) > 0) {
        json_object_set(definition, "manifests", (json_t *)job->manifests);
    }
    if (job->shared_id != NULL) {
        json_object_set_new(definition, "state_id", json_string(job->shared_id));
    }
    json_object_set_new(definition, "paths", said.paths);
    json_object_set_new(definition, "folders", said.folders);
}

void paths_describe_outputs(const json_t *outputs, json_t *definition)
{
    const char *name;
    json_t *path;
    json_object_foreach((json_t *)outputs, name, path)
    {
        put_path(json_object_get(definition, "paths"), json_string_value(path), true);
    }
}
