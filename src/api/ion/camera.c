/** Cameras, and what else joins IONs to the outside: sources, sinks, doors. */
#include "ion/camera.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "base/grow.h"
#include "ion/ion.h"
#include "ion/source.h"

#include <stdlib.h>
#include <string.h>

static struct api_camera view_of(const struct weir_ion_camera *camera)
{
    return (struct api_camera){.row = camera,
                               .width = camera->width,
                               .height = camera->height,
                               .age_ms = camera->age_ms,
                               .clock_off_ms = camera->clock_off_ms};
}

/** The cameras that a list is of, as they are gathered. */
struct gathered {
    struct weir_ion_camera *items;
    size_t n, cap;
};

/* An ION that cannot be loaded says so elsewhere. */
static weir_status gather(struct api_call *call, struct weir_txn *txn, const char *ion,
                          struct gathered *out, struct weir_error *err)
{
    struct weir_ion_state state;
    struct weir_ion_camera *cameras;
    struct weir_error ignored;
    const char *part = api_query_text(call, "q"), *after = api_query_text(call, "cursor");
    size_t n;
    if (weir_ion_load(txn, ion, call->arena, &state, &ignored) != WEIR_OK) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_ion_cameras_load(txn, &state, call->now_ms, call->arena, &cameras, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool fits;
        WEIR_TRY(api_row_fits(call, &cameras[i], &fits, err));
        fits = fits && (part == NULL || strcasestr(cameras[i].id, part) != NULL) &&
               (after == NULL || strcmp(cameras[i].id, after) > 0);
        if (fits) {
            weir_arena_grow(call->arena, &out->items, sizeof *out->items, out->n, &out->cap);
            out->items[out->n++] = cameras[i];
        }
    }
    return WEIR_OK;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct weir_ion_camera *)a)->id, ((const struct weir_ion_camera *)b)->id);
}

weir_status api_camera_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char **names;
    size_t n, limit = (size_t)api_query_int(call, "limit");
    struct gathered all = {0};
    const char *ion = api_query_text(call, "ion");
    WEIR_TRY(weir_ion_list_active(txn, call->arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (ion == NULL || strcmp(ion, names[i]) == 0) {
            WEIR_TRY(gather(call, txn, names[i], &all, err));
        }
    }
    if (all.n > 0) {
        qsort(all.items, all.n, sizeof *all.items, by_id);
    }
    size_t n_shown = WEIR_MIN(all.n, limit);
    struct api_camera *views = WEIR_ARENA_ARRAY(call->arena, n_shown + 1, struct api_camera);
    for (size_t i = 0; i < n_shown; i++) {
        views[i] = view_of(&all.items[i]);
    }
    api_answer_views(call, api_camera_view(), views, n_shown,
                     all.n > limit ? all.items[limit - 1].id : NULL);
    return WEIR_OK;
}

weir_status api_camera_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *id = call->params[0];
    char *ion = weir_arena_memdup(call->arena, id, strcspn(id, ":"));
    struct weir_ion_state state;
    struct weir_ion_camera *cameras;
    size_t n = 0;
    WEIR_TRY(weir_ion_load(txn, ion, call->arena, &state, err));
    if (strcmp(state.ion.state, "ACTIVE") == 0) {
        WEIR_TRY(weir_ion_cameras_load(txn, &state, call->now_ms, call->arena, &cameras, &n, err));
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(cameras[i].id, id) == 0) {
            struct api_camera view = view_of(&cameras[i]);
            api_answer(call, weir_view_to_json(api_camera_view(), &view));
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "camera \"%s\" not found", id);
}

weir_status api_source_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char **names;
    size_t n;
    json_t *items = json_array();
    WEIR_TRY(weir_ion_list_active(txn, call->arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct weir_ion_state state;
        struct weir_ion_source *sources;
        struct weir_error ignored;
        size_t n_sources = 0;
        if (weir_ion_load(txn, names[i], call->arena, &state, &ignored) == WEIR_OK) {
            weir_ion_sources(&state, call->now_ms, call->arena, &sources, &n_sources);
        }
        for (size_t k = 0; k < n_sources; k++) {
            bool fits;
            WEIR_TRY(api_row_fits(call, &sources[k], &fits, err));
            if (fits) {
                json_array_append_new(items,
                                      weir_record_to_json(&weir_ion_source_resource, &sources[k]));
            }
        }
    }
    api_answer_items(call, items, NULL);
    return WEIR_OK;
}
