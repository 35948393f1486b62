#include "framework/paths.h"

#include "framework/framework.h"

#include <stdio.h>
#include <string.h>

/* The absolute path in a text: itself, or what "file://" leads to; else NULL: a name, or a file in
 * the task's own folder. */
static const char *path_of(const char *text)
{
    static const char file_url[] = "file://";
    if (text != NULL && strncmp(text, file_url, sizeof file_url - 1) == 0) {
        text += sizeof file_url - 1;
    }
    return text != NULL && text[0] == '/' ? text : NULL;
}

/* Who hears of the absolute paths. */
struct visitor {
    weir_option_path_fn fn;
    void *context;
};

static weir_status visit(void *context, const char *where, const char *text, bool is_writable)
{
    const struct visitor *visitor = context;
    const char *path = path_of(text);
    return path != NULL ? visitor->fn(visitor->context, where, path, is_writable) : WEIR_OK;
}

static weir_status walk(const struct weir_kind *kind, const json_t *spec, const char *root,
                        weir_option_path_fn fn, void *context)
{
    struct visitor visitor = {fn, context};
    const struct weir_job_ops *ops = kind->ops;
    WEIR_TRY(weir_options_paths(kind->options, kind->n_options, spec, root, visit, &visitor));
    return ops->paths != NULL ? ops->paths(spec, root, visit, &visitor) : WEIR_OK;
}

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Is ".." a part of it? Then the text says nothing of where it leads. */
static bool has_parent(const char *path)
{
    size_t len = strlen(path);
    return strstr(path, "/../") != NULL || (len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

weir_status weir_framework_path_check(const char *state_dir, const char *where, const char *path,
                                      bool is_writable, struct weir_error *err)
{
    if (has_parent(path)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: %.200s: a path without \"..\" is expected", where, path);
    }
    if (!is_below(path, state_dir)) {
        return WEIR_OK;
    }
    const char *below = path + strlen(state_dir) + (path[strlen(state_dir)] == '/');
    bool is_dataset = strncmp(below, "datasets/", 9) == 0 && below[9] != '\0' && !is_writable;
    return is_dataset || is_below(below, "demo")
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s: %.200s is in Weir's own folder: of it a job may read datasets "
                                "(name the dataset) and nothing else; take a folder elsewhere",
                                where, path);
}

struct check {
    const char *state_dir;
    struct weir_error *err;
};

static weir_status check_path(void *context, const char *where, const char *path, bool is_writable)
{
    const struct check *check = context;
    return weir_framework_path_check(check->state_dir, where, path, is_writable, check->err);
}

weir_status weir_framework_paths_check(const char *state_dir, const char *kind, const char *where,
                                       const json_t *spec, struct weir_error *err)
{
    struct check check = {state_dir, err};
    const struct weir_kind *found;
    WEIR_TRY(weir_registry_find(&weir_job_kinds, kind, "$.kind", &found, err));
    return walk(found, spec, where, check_path, &check);
}

static weir_status add_path(void *context, const char *where, const char *path, bool is_writable)
{
    (void)where;
    json_array_append_new(
        context, json_pack("{s:s,s:s}", "path", path, "access", is_writable ? "write" : "read"));
    return WEIR_OK;
}

void paths_describe(const struct weir_kind *kind, const char *state_dir, const json_t *spec,
                    const json_t *datasets, json_t *definition)
{
    json_t *paths = json_array();
    const char *name;
    json_t *path;
    (void)walk(kind, spec, "", add_path, paths);
    json_object_foreach((json_t *)datasets, name, path)
    {
        (void)add_path(paths, name, json_string_value(path), false);
    }
    json_object_set_new(definition, "state", json_string(state_dir));
    json_object_set_new(definition, "paths", paths);
}

void paths_describe_outputs(const json_t *outputs, json_t *definition)
{
    const char *name;
    json_t *path;
    json_object_foreach((json_t *)outputs, name, path)
    {
        (void)add_path(json_object_get(definition, "paths"), name, json_string_value(path), true);
    }
}
