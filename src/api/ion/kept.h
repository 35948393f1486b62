/** How long prediction pipelines keep pictures of their decisions: what of a document may be, and what holds. */
#ifndef WEIR_API_ION_KEPT_H
#define WEIR_API_ION_KEPT_H

#include "api/core/views.h"
#include "api/ion/ion_apply.h"
#include "retain/project.h"

/** What the platform keeps, and its projects. */
struct api_kept_settings {
    struct weir_retain_policy policy;
    struct weir_retain_projects projects;
};

/** Read them. Text in the arena. @return The store's errors. */
weir_status api_kept_load(struct weir_txn *txn, struct weir_arena *arena,
                          struct api_kept_settings *out, struct weir_error *err) WEIR_MUST_CHECK;

/** What a pipeline says and what holds of it. Text in the arena, or the pipeline's. */
struct api_pipeline_time api_kept_view(const struct api_kept_settings *settings,
                                       const struct weir_retain_pipeline *pipeline,
                                       struct weir_arena *arena);

/** The same for a pipeline in the store. *out is NULL if it keeps them as its project; the store is read only if it does not. */
weir_status api_kept_of(struct weir_txn *txn, const struct weir_ion *ion,
                        const struct weir_ion_pipeline *pipeline, struct weir_arena *arena,
                        const struct api_pipeline_time **out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** @return INVALID with the place: a pipeline keeps pictures for longer than its project does, or for less than an admin
 *  allows. */
weir_status api_kept_check(const struct ion_apply *apply, struct weir_txn *txn,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
