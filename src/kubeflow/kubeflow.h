/**
 * Kubeflow: documents of Kubeflow's training operators and of Kubernetes, made into jobs of Weir.
 *
 *     kubeflow.org/v1        PyTorchJob, TFJob, MPIJob    kinds pytorch, tensorflow, mpi (framework/framework.h)
 *     kubeflow.org/v2beta1   MPIJob                       mpi
 *     batch/v1               Job                          command
 *
 * A kind of document is a row of kinds.def and a file of kind/. What each object of it may have is a table of fields
 * (reading.h): a field is taken over, or remarked on, or refused; one that no table has is refused with the nearest that
 * there is. Each value of the document is marked when it is read, and a document is taken only if none is left: nothing is
 * left out silently.
 *
 *     struct weir_kubeflow job;
 *     WEIR_TRY(weir_kubeflow_read(document, &given, &arena, &job, err));
 *     … POST job.body to /jobs, and show job.remarks …
 *     weir_kubeflow_fini(&job);
 *
 * Pure; any thread.
 */
#ifndef WEIR_KUBEFLOW_KUBEFLOW_H
#define WEIR_KUBEFLOW_KUBEFLOW_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** More are not kept: the last says how many there were. */
#define WEIR_KUBEFLOW_REMARKS_MAX 200

/** In place of an image: none is used. */
#define WEIR_KUBEFLOW_NO_IMAGE "none"

/** What is said beside the document, and wins over it; borrowed. */
struct weir_kubeflow_given {
    const char *project; /**< NULL: as the document says. */
    /** In place of the document's: as a job takes it, or "none"; NULL: the document's. */
    const char *image;
    /** Array of ConfigMap documents that the document may take values of; NULL: none. */
    const json_t *config_maps;
};

/** Something of the document that is not taken over, or not quite. */
struct weir_kubeflow_remark {
    const char *path; /**< "$.spec.runPolicy.cleanPodPolicy" */
    const char *say;  /**< What is done here instead; no sentence. */
};

/** Texts lie in the arena. */
struct weir_kubeflow {
    /** For POST /jobs: {name, kind, max_restarts, spec}, with "project" and "held" where they are said. */
    json_t *body;
    /** A queue that the document names: the job is to be its project's; NULL: none. */
    const char *queue;
    const char *queue_path; /**< Where it does. */
    struct weir_kubeflow_remark remarks[WEIR_KUBEFLOW_REMARKS_MAX];
    size_t n_remarks;
};

/** Is it a document of Kubernetes, of whatever kind: has it an apiVersion? */
bool weir_kubeflow_is(const json_t *document);

/** Is it a ConfigMap, of which others take values? */
bool weir_kubeflow_is_config_map(const json_t *document);

/** The documents that a List holds, an array; NULL: it is none. */
const json_t *weir_kubeflow_list(const json_t *document);

/**
 * Read a document.
 * @param out  To be freed by weir_kubeflow_fini, also after an error.
 * @return INVALID with the place of what Kubernetes would not take either, as a field that there is not; UNSUPPORTED and LIMIT
 *         with the place of what cannot be here, and what to do instead.
 */
weir_status weir_kubeflow_read(const json_t *document, const struct weir_kubeflow_given *given,
                               struct weir_arena *arena, struct weir_kubeflow *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

void weir_kubeflow_fini(struct weir_kubeflow *job);

#endif
