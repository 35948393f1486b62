/**
 * Names of a job: what its specification names is looked up among what the caller may see, once, before anything of the
 * job is written. Datasets become folders and versions, code and models are pinned; of it follow what its tasks are given
 * and what its run notes.
 */
#ifndef WEIR_CONTROL_JOB_NAMES_H
#define WEIR_CONTROL_JOB_NAMES_H

#include "control/control.h"
#include "track/run.h"

/** What was found; to be ended by job_names_fini. Text lies in control's arena. */
struct job_names {
    const struct weir_row_scope *models; /**< In: where models are looked up; NULL: as all else. */
    const char *run;                     /**< Identifier of the job's run; NULL: it has none. */
    const char *dataset;
    int64_t dataset_version;
    char *parameters;                    /**< The run's. */
    const struct weir_run_input *inputs; /**< Versions of datasets that it names beside. */
    size_t n_inputs;
    json_t *datasets, *pinned; /**< Folders by dataset, files by model; NULL: none. */
    json_t *manifests;         /**< What weir_launch_job has of them; NULL: none. */
    /** What to tell people about a training set with one class; NULL: nothing. */
    const char *one_class;
};

/**
 * Look up what the job's specification names, and fill it in there.
 *
 * @param job   Its project, kind and name are known.
 * @param spec  In and out.
 * @param out   Is to be ended whatever is returned.
 * @return NOT_FOUND, INVALID: naming the place in $.spec.
 */
weir_status job_names_read(struct control *control, struct weir_txn *txn,
                           const struct control_job *wanted, const struct weir_job *job,
                           json_t *spec, struct job_names *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

void job_names_fini(struct job_names *names);

#endif
