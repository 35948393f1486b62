/* What a document must not say when it is applied, though it can be read. */
#include "ion/ion_doc.h"

#include "endpoint/door.h"
#include "endpoint/source/camera.h"

#include <string.h>

/** "@WORK@" in a text: a mark that somebody should have replaced. NULL if there is none. */
static const char *find_mark(const char *text, size_t *out_len)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (const char *p = strchr(text, '@'); p != NULL; p = strchr(p + 1, '@')) {
        size_t len = strspn(p + 1, letters);
        if (len > 0 && p[1 + len] == '@') {
            *out_len = len + 2;
            return p;
        }
    }
    return NULL;
}

/** A path that processes on any node and in any folder understand alike. The context is the error.
 */
static weir_status check_path(void *context, const char *place, const char *path, bool is_written)
{
    struct weir_error *err = context;
    size_t mark_len;
    const char *mark = find_mark(path, &mark_len);
    (void)is_written;
    if (mark != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: \"%.200s\" still holds the mark %.*s of a template: write an "
                              "absolute path in its place",
                              place, path, (int)mark_len, mark);
    }
    if (path[0] != '/') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: \"%.200s\" is a relative path, and a replica works in a "
                              "folder of its own: write an absolute one",
                              place, path);
    }
    return WEIR_OK;
}

/** A camera's: no password among its parameters, and no mark that a template has left open. */
static weir_status check_address(const char *address, struct weir_error *err)
{
    size_t mark_len;
    const char *mark = find_mark(address, &mark_len);
    WEIR_TRY(weir_camera_query_check(address, err));
    return mark == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%.200s\" still holds the mark %.*s of a template: write "
                                "your camera's address in its place",
                                address, (int)mark_len, mark);
}

/** Whatever a kind of source calls its address. */
static weir_status check_cameras(const json_t *source, const char *place, struct weir_error *err)
{
    const json_t *camera, *option;
    const char *name;
    size_t i;
    json_array_foreach(json_object_get(source, "cameras"), i, camera)
    {
        json_object_foreach((json_t *)camera, name, option)
        {
            const char *text = json_string_value(option);
            if (text != NULL && strstr(text, "://") != NULL &&
                check_address(text, err) != WEIR_OK) {
                return weir_error_prefix(err, "%s.source.cameras[%zu].%.40s: ", place, i, name);
            }
        }
    }
    return WEIR_OK;
}

static bool has_camera(const json_t *cameras, const char *name)
{
    const json_t *camera;
    size_t i;
    json_array_foreach(cameras, i, camera)
    {
        const char *is_called = json_string_value(json_object_get(camera, "name"));
        if (is_called != NULL && name != NULL && strcmp(is_called, name) == 0) {
            return true;
        }
    }
    return false;
}

/** Refuses a door that nothing could ever open. Sources without a list of cameras may have any. */
static weir_status check_door(const json_t *door, const json_t *cameras, bool has_gallery,
                              const char *place, struct weir_error *err)
{
    const json_t *by = json_object_get(door, "cameras"), *name;
    const char *own = json_string_value(json_object_get(door, "name"));
    size_t i;
    if (!has_gallery) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: it would never open: a pipeline without a gallery lets nobody "
                              "in; give it one, or the door hours in which it stands open "
                              "(hold_open)",
                              place);
    }
    if (cameras != NULL && json_array_size(by) == 0 && !has_camera(cameras, own)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.cameras: missing: the source has no camera \"%.63s\"; name those "
                              "whose decisions open the door",
                              place, own != NULL ? own : "");
    }
    json_array_foreach(by, i, name)
    {
        if (cameras != NULL && !has_camera(cameras, json_string_value(name))) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.cameras[%zu]: the source has no camera \"%.63s\"", place, i,
                                  json_string_value(name));
        }
    }
    return WEIR_OK;
}

static weir_status check_doors(const json_t *doors, const json_t *source, bool has_gallery,
                               const char *place, struct weir_error *err)
{
    const json_t *door;
    size_t i;
    json_array_foreach(doors, i, door)
    {
        char where[96];
        (void)snprintf(where, sizeof where, "%s.doors[%zu]", place, i);
        if (json_array_size(json_object_get(door, "hold_open")) == 0) {
            WEIR_TRY(check_door(door, json_object_get(source, "cameras"), has_gallery, where, err));
        }
    }
    return WEIR_OK;
}

/** Source, sinks and doors of pipeline i. */
static weir_status check_endpoints(const struct weir_ion_doc_pipeline *pipeline, size_t i_pipeline,
                                   struct weir_error *err)
{
    char place[64];
    WEIR_AUTO(weir_json_auto_free) json_t *source = json_loads(pipeline->source, 0, NULL);
    WEIR_AUTO(weir_json_auto_free) json_t *sinks = json_loads(pipeline->sinks, 0, NULL);
    WEIR_AUTO(weir_json_auto_free) json_t *doors = json_loads(pipeline->doors, 0, NULL);
    (void)snprintf(place, sizeof place, "$.pipelines[%zu]", i_pipeline);
    WEIR_TRY(check_cameras(source, place, err));
    WEIR_TRY(weir_endpoints_paths(source, sinks, place, check_path, err));
    WEIR_TRY(check_doors(doors, source, pipeline->gallery_dataset != NULL, place, err));
    return weir_doors_paths(doors, place, check_path, err);
}

/** Doors are locked down by name: there is one of a name, whatever pipeline opens it. */
static weir_status check_door_names(const struct weir_ion_doc *doc, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *seen = json_object();
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const char *text = doc->pipelines[i].doors;
        WEIR_AUTO(weir_json_auto_free)
        json_t *doors = json_loads(text != NULL ? text : "[]", 0, NULL);
        for (size_t k = 0; k < json_array_size(doors); k++) {
            const char *name = json_string_value(json_object_get(json_array_get(doors, k), "name"));
            if (json_object_get(seen, name) != NULL) {
                return weir_error_set(
                    err, WEIR_ERR_INVALID,
                    "$.pipelines[%zu].doors[%zu].name: another pipeline has a door "
                    "\"%s\": doors of an ION have names of their own",
                    i, k, name);
            }
            json_object_set_new(seen, name, json_true());
        }
    }
    return WEIR_OK;
}

/** Policies in an order in which they do what they are for. */
static weir_status check_chain(const struct weir_policy_chain *chain, size_t i_link,
                               struct weir_error *err)
{
    for (size_t i = 0; i + 1 < chain->n; i++) {
        if (weir_policy_ops(&chain->items[i])->ends_chain) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.links[%zu].policy[%zu]: %s must be the last: while a version "
                                  "waits behind it, the one before would get all requests again",
                                  i_link, i, chain->items[i].kind->name);
        }
    }
    return WEIR_OK;
}

weir_status weir_ion_doc_check(const struct weir_ion_doc *doc, struct weir_error *err)
{
    WEIR_TRY(check_door_names(doc, err));
    for (size_t i = 0; i < doc->n_links; i++) {
        WEIR_TRY(check_chain(&doc->links[i].policies, doc->links[i].i_link, err));
    }
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        if (pipeline->type != WEIR_PIPELINE_PREDICTION) {
            continue;
        }
        WEIR_TRY(check_endpoints(pipeline, i, err));
    }
    return WEIR_OK;
}
