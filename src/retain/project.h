/**
 * Retention by project: how long a project keeps what is its own.
 *
 * A kind whose things belong to projects (is_of_project of its rule) may have a *time* of a project's own. It holds instead
 * of the platform's age, within *bounds* that an admin has set for the kind; without bounds a project may keep less than the
 * platform, and not more. Bounds that are narrowed later hold at once, for times that were set before too. Sizes are the
 * platform's: beyond them the oldest goes, whosever it is. What is needed stays, as ever.
 *
 * A prediction pipeline may keep pictures of its decisions for less than its project; `keep` in its document says so. The
 * shorter of the two holds, but none that is below the shortest that is allowed.
 *
 *     WEIR_TRY(weir_retain_projects_load(txn, arena, &policy, &projects, err));
 *     keep_ms = weir_retain_project_keep(&projects, &policy, "vision", kind);
 */
#ifndef WEIR_RETAIN_PROJECT_H
#define WEIR_RETAIN_PROJECT_H

#include "retain/retain.h"

#include <stdbool.h>

/** The kind that pipelines may have a time of their own for. */
#define WEIR_RETAIN_PICTURES "pictures"

/** A shortest and a longest time; WEIR_RETAIN_ANY: for ever. */
struct weir_retain_bounds {
    int64_t min_ms, max_ms;
};

/** A time of a project's own. */
struct weir_retain_time {
    char *project;
    int kind;
    int64_t keep_ms; /**< As it was set: perhaps outside of the bounds that hold now. */
};

/** A pipeline with a time of its own for pictures of its decisions. */
struct weir_retain_pipeline {
    char *project, *ion, *name;
    int64_t keep_ms; /**< As its document says; 0: none are kept. */
};

/** What is set, under the policy that it was loaded with. In an arena. */
struct weir_retain_projects {
    char **names; /**< Of all projects that the transaction sees. */
    size_t n_names;
    struct weir_retain_time *times;
    size_t n_times;
    struct weir_retain_pipeline *pipelines; /**< By ION, then by name. */
    size_t n_pipelines;
    struct weir_retain_bounds bounds[WEIR_RETAIN_KINDS_MAX]; /**< That hold. */
    bool has_bounds[WEIR_RETAIN_KINDS_MAX];                  /**< An admin has set them. */
    bool has_gaps
        [WEIR_RETAIN_KINDS_MAX]; /**< Of numbered rows some may have gone from between others. */
};

/** @return NOMEM, or what reading the store says. */
weir_status weir_retain_projects_load(struct weir_txn *txn, struct weir_arena *arena,
                                      const struct weir_retain_policy *policy,
                                      struct weir_retain_projects *out,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** Has any project a time of its own for the kind? Pure, as the next two. */
bool weir_retain_projects_have(const struct weir_retain_projects *projects, int kind);

/** The time that was set, or NULL. */
const struct weir_retain_time *weir_retain_project_time(const struct weir_retain_projects *projects,
                                                        const char *project, int kind);

/** The age that holds: its own within the bounds, or the platform's. WEIR_RETAIN_ANY: none. */
int64_t weir_retain_project_keep(const struct weir_retain_projects *projects,
                                 const struct weir_retain_policy *policy, const char *project,
                                 int kind);

/** How long a pipeline keeps pictures: as it says itself, within the bounds, and no longer than its project. Pure. */
int64_t weir_retain_pipeline_keep(const struct weir_retain_projects *projects,
                                  const struct weir_retain_policy *policy,
                                  const struct weir_retain_pipeline *pipeline);

/**
 * By a pipeline's own time: pictures of its decisions from *out_before or earlier are not kept. INT64_MIN: it has no time
 * of its own, or the pipeline is not known; INT64_MAX: none are kept, whatever their time.
 */
weir_status weir_retain_pictures_before(struct weir_txn *txn, struct weir_arena *arena,
                                        const char *ion, const char *pipeline, int64_t now_ms,
                                        int64_t *out_before,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/** Is it within? WEIR_RETAIN_ANY is longer than all. */
bool weir_retain_bounds_have(const struct weir_retain_bounds *bounds, int64_t keep_ms);

/** Read "30d", "12h" or "forever"; a size is refused. @return INVALID with what was expected. */
weir_status weir_retain_age_parse(const char *text, int64_t *out_ms,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Read "1d..90d". @return INVALID with what was expected, also if the first is longer. */
weir_status weir_retain_bounds_parse(const char *text, struct weir_retain_bounds *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#define WEIR_RETAIN_BOUNDS_TEXT_BYTES (2 * WEIR_RETAIN_LIMIT_TEXT_BYTES + 2)

/** As these read it. Return out. */
const char *weir_retain_age_text(int64_t keep_ms, char out[WEIR_RETAIN_LIMIT_TEXT_BYTES]);
const char *weir_retain_bounds_text(const struct weir_retain_bounds *bounds,
                                    char out[WEIR_RETAIN_BOUNDS_TEXT_BYTES]);

/** Store a project's time. @param keep_ms  NULL: as the platform has it, from now on. */
weir_status weir_retain_project_set(struct weir_txn *txn, const char *project, int kind,
                                    const int64_t *keep_ms, const char *actor, int64_t now_ms,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Store the bounds of a kind. @param bounds  NULL: none, from now on. */
weir_status weir_retain_bounds_set(struct weir_txn *txn, int kind,
                                   const struct weir_retain_bounds *bounds, const char *actor,
                                   int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** What of a kind a project has, and what of it an age would take. */
struct weir_retain_preview {
    int64_t n_going, bytes_going; /**< Bytes of rows are reckoned. */
};

/**
 * What would go of a project's own with that age, without anything going. Any thread.
 * @param keep_ms  WEIR_RETAIN_ANY: nothing goes by age.
 * @return UNSUPPORTED for a kind that is not of projects. Cost: rows are counted; of files, every one is looked at.
 */
weir_status weir_retainer_preview(struct weir_retainer *retainer, const char *project, int kind,
                                  int64_t keep_ms, struct weir_arena *arena,
                                  struct weir_retain_preview *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
