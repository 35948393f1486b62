#include "control/enrolled.h"

#include "base/json.h"
#include "base/names.h"

#include <string.h>

#define MANIFEST_MAX_BYTES ((size_t)512 << 20)

static bool is_in_use(const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_service *service = weir_ion_service_of(pipeline);
    return service != NULL && strcmp(pipeline->state, "REMOVED") != 0 &&
           service->gallery.blob != NULL;
}

/** Is it the first pipeline with this gallery? Several often share one. */
static bool is_first(const struct weir_ion_state *ion, size_t i_pipeline)
{
    for (size_t i = 0; i < i_pipeline; i++) {
        if (is_in_use(&ion->pipelines[i]) &&
            strcmp(ion->pipelines[i].service.gallery.blob,
                   ion->pipelines[i_pipeline].service.gallery.blob) == 0) {
            return false;
        }
    }
    return true;
}

typedef void (*class_fn)(void *context, const char *name);

static weir_status each_class_of(struct weir_blobs *blobs, const char *blob,
                                 struct weir_arena *arena, class_fn fn, void *context,
                                 struct weir_error *err)
{
    char *path;
    json_t *manifest, *file;
    const char *last = "";
    size_t i;
    WEIR_TRY(weir_blob_path(blobs, blob, arena, &path, NULL, err));
    WEIR_TRY(weir_json_load(path, MANIFEST_MAX_BYTES, &manifest, err));
    json_array_foreach(json_object_get(manifest, "files"), i, file)
    {
        /* A class's files stand together: once is enough. */
        const char *name = json_string_value(json_object_get(file, "class"));
        if (name != NULL && strcmp(name, last) != 0) {
            fn(context, name);
            last = name;
        }
    }
    json_decref(manifest);
    return WEIR_OK;
}

static weir_status each_class(struct weir_blobs *blobs, const struct weir_ion_state *ion,
                              struct weir_arena *arena, class_fn fn, void *context, size_t *out_n,
                              struct weir_error *err)
{
    *out_n = 0;
    for (size_t i = 0; i < ion->n_pipelines; i++) {
        if (is_in_use(&ion->pipelines[i]) && is_first(ion, i)) {
            WEIR_TRY(each_class_of(blobs, ion->pipelines[i].service.gallery.blob, arena, fn,
                                   context, err));
            ++*out_n;
        }
    }
    return WEIR_OK;
}

struct search {
    const char *person;
    struct weir_arena *arena;
    bool is_found;
    struct weir_nearest nearest;
};

static void see_class(void *context, const char *name)
{
    struct search *search = context;
    const char *before = search->nearest.name;
    search->is_found = search->is_found || strcmp(name, search->person) == 0;
    weir_nearest_see(&search->nearest, search->person, strlen(search->person), name);
    if (search->nearest.name != before) {
        search->nearest.name = weir_arena_strdup(search->arena, name);
    }
}

weir_status enrolled_find(struct weir_blobs *blobs, const struct weir_ion_state *ion,
                          const char *person, struct weir_arena *arena, struct enrolled_answer *out,
                          struct weir_error *err)
{
    struct search search = {.person = person, .arena = arena};
    size_t n_galleries;
    WEIR_TRY(each_class(blobs, ion, arena, see_class, &search, &n_galleries, err));
    *out = (struct enrolled_answer){.has_gallery = n_galleries > 0,
                                    .is_enrolled = search.is_found,
                                    .nearest = search.nearest.name};
    return WEIR_OK;
}

struct roll {
    const struct weir_ion_state *ion;
    bool *is_enrolled; /**< By member. */
};

static void tick_off(void *context, const char *name)
{
    struct roll *roll = context;
    for (size_t i = 0; i < roll->ion->n_members; i++) {
        if (strcmp(roll->ion->members[i].person, name) == 0) {
            roll->is_enrolled[i] = true;
        }
    }
}

weir_status enrolled_missing(struct weir_blobs *blobs, const struct weir_ion_state *ion,
                             struct weir_arena *arena, const char ***out, size_t *out_n,
                             struct weir_error *err)
{
    const char **missing = WEIR_ARENA_ARRAY(arena, ion->n_members + 1, const char *);
    struct roll roll = {.ion = ion,
                        .is_enrolled = WEIR_ARENA_ARRAY(arena, ion->n_members + 1, bool)};
    size_t n = 0, n_galleries = 0;
    if (ion->n_members > 0) {
        WEIR_TRY(each_class(blobs, ion, arena, tick_off, &roll, &n_galleries, err));
    }
    for (size_t i = 0; i < ion->n_members && n_galleries > 0; i++) {
        if (!roll.is_enrolled[i]) {
            missing[n++] = ion->members[i].person;
        }
    }
    *out = missing;
    *out_n = n;
    return WEIR_OK;
}
