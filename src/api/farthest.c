#include "api/farthest.h"

#include "api/answer.h"

#include "ion/decision.h"

#include <math.h>
#include <string.h>

#define TIME_MAX_MS INT64_C(253402300799999) /* the last of the year 9999 */

static bool has(const struct api_farthest *farthest, const char *camera, int64_t number)
{
    for (size_t i = 0; i < farthest->n; i++) {
        const struct api_far_frame *frame = &farthest->items[i];
        if (frame->frame == number && strcmp(frame->camera, camera) == 0) {
            return true;
        }
    }
    return false;
}

static void add(struct api_farthest *farthest, const json_t *item, struct weir_arena *arena)
{
    const char *camera = json_string_value(json_object_get(item, "camera"));
    const json_t *number = json_object_get(item, "frame"), *time = json_object_get(item, "time_ms");
    double value = json_number_value(json_object_get(item, "value"));
    double sigmas = json_number_value(json_object_get(item, "sigmas"));
    int64_t time_ms = json_integer_value(time);
    bool is_full = farthest->n == API_FARTHEST_MAX;
    if (camera == NULL || !json_is_integer(number) || time_ms <= 0 || time_ms > TIME_MAX_MS ||
        !isfinite(value) || !isfinite(sigmas) ||
        (is_full && farthest->items[farthest->n - 1].sigmas >= sigmas) ||
        has(farthest, camera, json_integer_value(number))) {
        return;
    }
    size_t i = is_full ? farthest->n - 1 : farthest->n++;
    for (; i > 0 && farthest->items[i - 1].sigmas < sigmas; i--) {
        farthest->items[i] = farthest->items[i - 1];
    }
    farthest->items[i] = (struct api_far_frame){.camera = weir_arena_strdup(arena, camera),
                                                .frame = json_integer_value(number),
                                                .time_ms = time_ms,
                                                .value = value,
                                                .sigmas = sigmas};
}

void api_farthest_add(struct api_farthest *farthest, const json_t *detail, struct weir_arena *arena)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(detail, "farthest"), i, item)
    {
        add(farthest, item, arena);
    }
}

/* The decision of a frame; NULL: none is kept. */
static weir_status find(struct api_call *call, struct weir_txn *txn, const char *ion,
                        const struct api_far_frame *frame, const struct weir_decision **out,
                        struct weir_error *err)
{
    const struct weir_filter filters[] = {WEIR_FILTER_TEXT("ion", EQ, ion),
                                          WEIR_FILTER_TEXT("camera", EQ, frame->camera),
                                          WEIR_FILTER_INT("frame", EQ, frame->frame)};
    const struct weir_query query = {.filters = filters,
                                     .n_filters = WEIR_ARRAY_LEN(filters),
                                     .order_by = "seq",
                                     .limit = 1,
                                     .max_bytes = API_ANSWER_MAX_BYTES};
    void *items;
    size_t n;
    WEIR_TRY(
        weir_txn_list(txn, &weir_decision_resource, &query, call->arena, &items, &n, NULL, err));
    *out = n > 0 ? items : NULL;
    return WEIR_OK;
}

weir_status api_farthest_find(struct api_farthest *farthest, struct api_call *call,
                              struct weir_txn *txn, const char *ion, struct weir_error *err)
{
    for (size_t i = 0; i < farthest->n; i++) {
        struct api_far_frame *frame = &farthest->items[i];
        const struct weir_decision *decision;
        WEIR_TRY(find(call, txn, ion, frame, &decision, err));
        frame->decision = decision != NULL ? decision->id : NULL;
        frame->has_picture = decision != NULL && decision->image != NULL;
    }
    return WEIR_OK;
}
