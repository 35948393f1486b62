/**
 * Lineage: from a decision back to the data, code, people and policies that it came of, and from a version
 * of a dataset or a model forward to every decision that it touched.
 *
 * Nothing is kept for it but totals (ion/decision_total.h): it is read from what runs, versions, candidates,
 * policies and revisions say of themselves. What a caller may not see is not there for it. What is not known
 * is said in a sentence, in "unknown"; a number that is not known is null.
 *
 * Each function reads inside the caller's transaction. *out is a new reference, of the views in
 * control/lineage_views.def.
 */
#ifndef WEIR_CONTROL_LINEAGE_H
#define WEIR_CONTROL_LINEAGE_H

#include "base/arena.h"
#include "base/json.h"
#include "ion/decision.h"
#include "store/store.h"

#include "base/view_struct.h"

#include "control/lineage_views.def"

#include "base/view_end.h"

/** Runs, dataset versions and model versions that one lineage names of each; is_cut says that there are
 *  more. */
#define CONTROL_LINEAGE_MAX 1000

/** Parameters that are shown of a run. */
#define CONTROL_LINEAGE_PARAMETERS_MAX 500

/**
 * Where a decision came from: its pipeline and revision, the candidate that served and what let it through,
 * the model version, its run, and all that these came of.
 * @return NOT_FOUND. Cost: some indexed reads for each run and dataset version of the way.
 */
weir_status control_lineage_decision(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                                     json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Where a model version came from, and what it reached: links, deployments, how many decisions.
 * @return NOT_FOUND. A version that was deleted is shown, as such. Cost: as of a decision, and a few rows for each
 * link.
 */
weir_status control_lineage_version(struct weir_txn *txn, const char *model, int64_t version,
                                    struct weir_arena *arena, json_t **out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Where a dataset version came from, and what it reached: runs that read it, dataset versions that these made
 * and what came of those, model versions, links, galleries, and how many decisions.
 * @return NOT_FOUND. Cost: some indexed reads for each of them, and the documents of IONs that name it.
 */
weir_status control_lineage_dataset(struct weir_txn *txn, const char *dataset, int64_t version,
                                    struct weir_arena *arena, json_t **out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** A page of decisions, the newest first. */
struct control_lineage_page {
    const char *cursor;          /**< In: `next` of the page before; NULL: from the newest on. */
    size_t limit;                /**< In. */
    struct weir_decision *items; /**< Out, in the arena. */
    size_t n;
    char *next; /**< NULL after the last. */
};

/**
 * The decisions that a model version made. Those of which nobody can say whether this or another model made them
 * are left out: the lineage says which.
 * @return NOT_FOUND; INVALID for a cursor that is none. Cost: weir_decisions_of_totals.
 */
weir_status control_lineage_version_decisions(struct weir_txn *txn, const char *model,
                                              int64_t version, struct weir_arena *arena,
                                              struct control_lineage_page *page,
                                              struct weir_error *err) WEIR_MUST_CHECK;

/** The decisions that a dataset version touched: by models that came of it, or with it as the gallery. */
weir_status control_lineage_dataset_decisions(struct weir_txn *txn, const char *dataset,
                                              int64_t version, struct weir_arena *arena,
                                              struct control_lineage_page *page,
                                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
