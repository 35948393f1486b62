/** Kind: a kind of document, as a row of kinds.def. */
#ifndef WEIR_KUBEFLOW_KIND_H
#define WEIR_KUBEFLOW_KIND_H

#include "kubeflow/draft.h"

struct kubeflow_kind {
    const char *versions; /**< "kubeflow.org/v1 kubeflow.org/v2beta1" */
    const char *name;     /**< "PyTorchJob" */
    const char *job;      /**< Kind of job that it becomes: "pytorch". */
    const char *runtime;  /**< Variables that the tasks of it are given, separated by blanks. */
    const char *file, *file_variable; /**< As of a reading. */
    /** Read the document's spec into the draft; its metadata are read. */
    weir_status (*read)(struct kubeflow_reading *reading, struct kubeflow_place spec,
                        struct kubeflow_draft *draft);
};

#define WEIR_KIND(name) extern const struct kubeflow_kind kubeflow_##name;
#include "kubeflow/kinds.def"
#undef WEIR_KIND

#endif
