/** An ION document on its way to be applied: what ion_apply.c stores is checked in two steps. */
#ifndef WEIR_API_ION_APPLY_H
#define WEIR_API_ION_APPLY_H

#include "api/core/call.h"
#include "ion/ion.h"

/** One document on its way: read and checked first, then stored in a transaction that may run
 *  twice. */
struct ion_apply {
    struct api_call *call;
    struct weir_ion_doc doc;
    const char *mode; /**< That is asked for; NULL: none. */
    json_t *warnings; /**< Sentences: of the document, and behind n_of_doc those of the store. */
    size_t n_of_doc;
    struct weir_ion_dataset *datasets; /**< The latest version of each dataset it names. */
    size_t n_datasets;
    struct weir_ion_model *models; /**< The newest version of each model that a link begins at. */
    size_t n_models;
    struct weir_ion_named_detector *detectors;
    size_t n_detectors;
    const char **aliases; /**< Of each model: the alias that names it; NULL: it is the newest. */
    struct weir_ion_model *defaults; /**< The versions that links name as their default. */
    size_t n_defaults;
};

/** What looks wrong from here, but may be right on another node: a sentence of the answer. */
void ion_apply_warn(struct ion_apply *apply, const char *sentence);

/** ion_apply_check.c: can it work, by the document alone? Whatever is not on this machine is a warning.
 *  @return INVALID, UNSUPPORTED. */
weir_status ion_apply_check(struct ion_apply *apply, struct weir_error *err) WEIR_MUST_CHECK;

/** ion_apply_find.c: the datasets and models that it names, which must be there and fit.
 *  @return INVALID, UNSUPPORTED. */
weir_status ion_apply_find(struct ion_apply *apply, struct weir_txn *txn,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
