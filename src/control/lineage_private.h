/** What the files of lineage share: what is found so far, and how more of it is found. */
#ifndef WEIR_CONTROL_LINEAGE_PRIVATE_H
#define WEIR_CONTROL_LINEAGE_PRIVATE_H

#include "control/lineage.h"
#include "ion/decision_total.h"
#include "ion/ion.h"
#include "track/track.h"

/** Names that were found, each once, in the order they were. */
struct lineage_names {
    struct lineage_name {
        const char *name;
        int64_t version; /**< 0 for a run. */
    } * items;

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
    json_t *runs, *datasets, *versions, *places, *galleries, *unknown; /**< Arrays, owned. */
    struct lineage_totals totals; /**< Behind the places and galleries whose decisions are known. */
    bool is_cut;
};

void lineage_init(struct lineage *lineage, struct weir_txn *txn, struct weir_arena *arena);
/** For WEIR_AUTO(lineage_auto_fini). */
void lineage_auto_fini(struct lineage *lineage);

/** @return Whether it is new; not if there is no room, which is noted. */
bool lineage_add(struct lineage *lineage, struct lineage_names *names, const char *name,
                 int64_t version);

/** A sentence about what is not known. */
void lineage_say(struct lineage *lineage, const char *sentence);

json_t *lineage_time(int64_t time_ms);  /**< null for 0. */
json_t *lineage_text(const char *text); /**< null for NULL. */

/** Look at all runs and dataset versions that were named, and at those that they name. */
weir_status lineage_go_back(struct lineage *lineage, struct weir_error *err) WEIR_MUST_CHECK;

/** A model version as lineage shows it; *out_there false: it is not there for the caller. */
weir_status lineage_find_version(struct lineage *lineage, const char *id,
                                 struct weir_model_version *out, bool *out_there,
                                 struct weir_error *err) WEIR_MUST_CHECK;
json_t *lineage_version_view(const struct weir_model_version *version);

/** A candidate with its policies up to a time, without decisions. */
weir_status lineage_place_view(struct lineage *lineage, const struct weir_ion_candidate *candidate,
                               int64_t until_ms, json_t **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Add the links that a version came to, with what it decided there. */
weir_status lineage_add_places(struct lineage *lineage, const struct weir_model_version *version,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Add the pipelines whose gallery a dataset version was. */
weir_status lineage_add_galleries(struct lineage *lineage, const char *dataset, int64_t version,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** From a dataset version to runs, dataset versions, model versions, links and galleries. */
weir_status lineage_go_forward(struct lineage *lineage, const char *dataset, int64_t version,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The row of a version, deleted or not. @return NOT_FOUND. */
weir_status lineage_version_row(struct lineage *lineage, const char *model, int64_t version,
                                struct weir_model_version *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
