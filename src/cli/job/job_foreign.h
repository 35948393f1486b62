/**
 * Foreign documents: those of Kubeflow and Kubernetes among what `weir apply` is given, as jobs (kubeflow/kubeflow.h). All
 * are read before one is sent: where one is refused, none is.
 */
#ifndef WEIR_CLI_JOB_FOREIGN_H
#define WEIR_CLI_JOB_FOREIGN_H

#include "cli/command.h"

#include "kubeflow/kubeflow.h"

/** A document, and the file that it stands in. */
struct job_foreign {
    const char *path;
    const json_t *document;
    struct weir_kubeflow job;
};

/** What the command says of all; text is borrowed. */
struct job_foreign_asks {
    const char *project; /**< NULL: as the documents say. */
    const char *image;   /**< As people give it, or "none"; NULL: the documents'. */
    bool is_dry;         /**< Only say what would come of it. */
};

/**
 * Read documents.
 * @param all      An array of all documents, with the ConfigMaps that they may take values of.
 * @param foreign  n of them, to be filled in; their jobs are freed by weir_kubeflow_fini, also after an error.
 * @return as weir_kubeflow_read, with the file in front.
 */
weir_status job_foreign_read(struct cli_call *call, const struct job_foreign_asks *asks,
                             const json_t *all, struct job_foreign *foreign, size_t n,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Submit one, and say so; what is not taken over is said on standard error, or in the answer. */
weir_status job_foreign_submit(struct cli_call *call, const struct job_foreign_asks *asks,
                               struct job_foreign *foreign, struct weir_error *err) WEIR_MUST_CHECK;

#endif
