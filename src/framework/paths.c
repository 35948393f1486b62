#include "framework/paths.h"

#include "endpoint/endpoint.h"

#include <stdio.h>
#include <string.h>

/* Members of specifications that are paths. What is no absolute path there is a name, or a file in
 * the task's own folder. */
static const struct {
    const char *key;
    bool is_writable;
} path_keys[] = {
    {"data", false},   {"validation", false}, {"weights", false},       {"model", false},
    {"tuning", false}, {"output", true},      {"checkpoint_dir", true}, {"profile", true},
    {"dir", true},     {"rendezvous", true},
};

/* The absolute path in a text: itself, or what "file://" leads to; else NULL. */
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

static weir_status walk(const json_t *spec, const char *root, weir_option_path_fn fn, void *context)
{
    struct visitor visitor = {fn, context};
    char where[160];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(path_keys); i++) {
        (void)snprintf(where, sizeof where, "%.100s.%s", root, path_keys[i].key);
        WEIR_TRY(visit(&visitor, where, json_string_value(json_object_get(spec, path_keys[i].key)),
                       path_keys[i].is_writable));
    }
    return weir_endpoints_paths(json_object_get(spec, "source"), json_object_get(spec, "sinks"),
                                root, visit, &visitor);
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

weir_status weir_framework_paths_check(const char *state_dir, const char *where, const json_t *spec,
                                       struct weir_error *err)
{
    struct check check = {state_dir, err};
    return walk(spec, where, check_path, &check);
}

static weir_status add_path(void *context, const char *where, const char *path, bool is_writable)
{
    (void)where;
    json_array_append_new(
        context, json_pack("{s:s,s:s}", "path", path, "access", is_writable ? "write" : "read"));
    return WEIR_OK;
}

void paths_describe(const char *state_dir, const json_t *spec, const json_t *datasets,
                    json_t *definition)
{
    json_t *paths = json_array();
    const char *name;
    json_t *path;
    (void)walk(spec, "", add_path, paths);
    json_object_foreach((json_t *)datasets, name, path)
    {
        (void)add_path(paths, name, json_string_value(path), false);
    }
    json_object_set_new(definition, "state", json_string(state_dir));
    json_object_set_new(definition, "paths", paths);
}
