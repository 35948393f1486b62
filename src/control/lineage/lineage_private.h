/** What the files of lineage share: what is found so far, and how more of it is found. */
#ifndef WEIR_CONTROL_LINEAGE_PRIVATE_H
#define WEIR_CONTROL_LINEAGE_PRIVATE_H

#include "base/grow.h"
#include "control/lineage.h"
#include "ion/decision_total.h"
#include "ion/ion.h"
#include "track/experiment.h"
#include "track/track.h"

struct lineage_name {
    const char *name;
    int64_t version; /**< 0 for a run. */
};

/** A run on the way, with what it was started with. */
struct lineage_run {
    struct weir_run row;
    const struct weir_tag *tags, *parameters;
    size_t n_tags, n_parameters;
    const char *trigger, *weights, *parent;
    struct control_lineage_code code;
    struct control_lineage_read *reads;
    size_t n_reads;
};

/** A dataset version on the way; the row is not known if it is not there. */
struct lineage_dataset {
    struct lineage_name name;
    bool is_there;
    struct weir_dataset_version row;
    struct control_lineage_forgotten *forgotten;
    size_t n_forgotten;
};

/** A version on a link. */
struct lineage_place {
    struct weir_ion_candidate row;
    const char *pipeline, *deployment; /**< One of them is NULL. */
    const struct weir_policy_decision *policies;
    size_t n_policies;
    bool are_policies_gone;
    const struct control_lineage_decisions *decisions;
};

/** Names that were found, each once, in the order they were. */
struct lineage_names {
    struct lineage_name *items;
    size_t n, cap;
    size_t n_done; /**< So many were looked at. */
};

/** Decisions that were made with one version of something. */
struct lineage_totals {
    struct weir_decision_total *items;
    size_t n, cap;
};

struct lineage {
    struct weir_txn *txn;
    struct weir_arena *arena;
    struct lineage_names run_names, dataset_names, version_names;
    struct lineage_run *runs;
    struct lineage_dataset *datasets;
    struct weir_model_version *versions;
    struct lineage_place *places;
    struct control_lineage_gallery *galleries;
    char **unknown;
    size_t n_runs, n_datasets, n_versions, n_places, n_galleries, n_unknown;
    size_t cap_runs, cap_datasets, cap_versions, cap_places, cap_galleries, cap_unknown;
    struct lineage_totals totals; /**< Behind the places and galleries that have known decisions. */
    bool is_cut;
};

/** The end of one of its arrays, which is made one longer: *LINEAGE_ADD(lineage, runs) = run. */
#define LINEAGE_ADD(lineage, array)                                                                \
    (weir_arena_grow((lineage)->arena, &(lineage)->array, sizeof *(lineage)->array,                \
                     (lineage)->n_##array, &(lineage)->cap_##array),                               \
     &(lineage)->array[(lineage)->n_##array++])

/** @return Whether it is new; not if there is no room, which is noted. */
bool lineage_add(struct lineage *lineage, struct lineage_names *names, const char *name,
                 int64_t version);

/** An ION's pipeline of that name, and the dataset that is a pipeline's gallery; NULL: there is none. */
const json_t *lineage_pipeline(const json_t *document, const char *name);
const char *lineage_gallery_of(const json_t *pipeline);

/** A sentence about what is not known. */
void lineage_say(struct lineage *lineage, const char *sentence);

/** Look at all runs and dataset versions that were named, and at those that they name. */
weir_status lineage_go_back(struct lineage *lineage, struct weir_error *err) WEIR_MUST_CHECK;

/** A row as lineage shows it: no file is no blob. */
void lineage_take_version(const struct weir_model_version *row, struct weir_model_version *out);

/** A model version as lineage shows it; *out_there false: it is not there for the caller. */
weir_status lineage_find_version(struct lineage *lineage, const char *id,
                                 struct weir_model_version *out, bool *out_there,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** A candidate with its policies up to a time, without decisions. */
weir_status lineage_place_of(struct lineage *lineage, const struct weir_ion_candidate *candidate,
                             int64_t until_ms, struct lineage_place *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Add the links that a version came to, with what it decided there. */
weir_status lineage_add_places(struct lineage *lineage, const struct weir_model_version *version,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Add the pipelines that had a dataset version as their gallery. */
weir_status lineage_add_galleries(struct lineage *lineage, const char *dataset, int64_t version,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** The version that found for a pipeline when it decided; *out NULL: none did, or it is not known, which is said then. */
weir_status lineage_detector_of(struct lineage *lineage, const struct weir_decision *decision,
                                const struct weir_model_version **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The pipelines that find with a version, or did, in the arena. */
weir_status lineage_finders(struct lineage *lineage, const struct weir_model_version *version,
                            struct control_lineage_finder **out, size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** From a dataset version to runs, dataset versions, model versions, links and galleries. */
weir_status lineage_go_forward(struct lineage *lineage, const char *dataset, int64_t version,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The row of a version, deleted or not. @return NOT_FOUND. */
weir_status lineage_version_row(struct lineage *lineage, const char *model, int64_t version,
                                struct weir_model_version *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
