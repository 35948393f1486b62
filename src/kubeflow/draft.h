/** Draft: the job that a document becomes, as far as it is read; and what all kinds of documents say alike. */
#ifndef WEIR_KUBEFLOW_DRAFT_H
#define WEIR_KUBEFLOW_DRAFT_H

#include "kubeflow/pod.h"

/** Most times that a job is started again. */
#define KUBEFLOW_RESTARTS_MAX 1000

struct kubeflow_draft {
    const char *name, *project; /**< project NULL: nobody said, or a queue does. */
    struct kubeflow_place namespace;
    const char *kind; /**< The job's: "pytorch". */
    int64_t max_restarts;
    bool is_held;
    bool is_kueued;            /**< A queue of Kueue lets it begin, which takes its suspend away. */
    int64_t priority;          /**< -1: nobody said. */
    const char *priority_path; /**< Where it was said. */
    json_t *spec;              /**< Kept. */
    const char *image;         /**< In place of that of containers; NULL: theirs. */
    const char *gpu_model;     /**< NULL: any. */
    struct kubeflow_place gpu_model_at;
};

/** What is said of a queue or a priority: the first that does wins, of others it is remarked. */
weir_status kubeflow_draft_queue(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                 struct kubeflow_place at) WEIR_MUST_CHECK;
weir_status kubeflow_draft_priority(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                    struct kubeflow_place at) WEIR_MUST_CHECK;

/** Name, project, labels and annotations of the document. */
weir_status kubeflow_draft_metadata(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                    struct kubeflow_place at) WEIR_MUST_CHECK;

/** Remark on what only counts once all is read: the namespace, a model of accelerators that no task asks for. */
void kubeflow_draft_settle(struct kubeflow_reading *reading, const struct kubeflow_draft *draft);

/** How a job begins, ends and is started again. */
struct kubeflow_policy {
    struct kubeflow_place deadline, backoff, suspend;
};

/** Rows of a table for a member `policy`; a Job has them in its spec, Kubeflow's in runPolicy. */
#define KUBEFLOW_POLICY_FIELDS(strct)                                                              \
    KUBEFLOW_TAKEN(strct, policy.deadline, "activeDeadlineSeconds", INTEGER),                      \
        KUBEFLOW_TAKEN(strct, policy.backoff, "backoffLimit", INTEGER),                            \
        KUBEFLOW_TAKEN(strct, policy.suspend, "suspend", BOOLEAN),                                 \
        KUBEFLOW_REMARK("ttlSecondsAfterFinished",                                                 \
                        "jobs are kept as long as their project says: weir project retention"),    \
        KUBEFLOW_REMARK("managedBy", "Weir's own scheduler and agents run it")

/** What a document says beside its tasks: the runPolicy of Kubeflow's. Its backoffLimit is for kubeflow_draft_restarts. */
weir_status kubeflow_draft_run_policy(struct kubeflow_reading *reading,
                                      struct kubeflow_draft *draft, struct kubeflow_place at,
                                      struct kubeflow_place *out_backoff) WEIR_MUST_CHECK;

/** Time limit and hold. */
weir_status kubeflow_draft_policy(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                  const struct kubeflow_policy *policy) WEIR_MUST_CHECK;

/** cleanPodPolicy, wherever it stands. */
void kubeflow_draft_clean(struct kubeflow_reading *reading, struct kubeflow_place at);

/** What is started again, and how often. */
struct kubeflow_restarts {
    struct kubeflow_place policy; /**< "OnFailure" */
    const char *fallback;         /**< What it is where nothing is said. */
    struct kubeflow_place limit;  /**< A number. */
};

weir_status kubeflow_draft_restarts(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                    const struct kubeflow_restarts *restarts) WEIR_MUST_CHECK;

/** Replicas of one role of Kubeflow's documents. */
struct kubeflow_replicas {
    struct kubeflow_place at; /**< Empty: the document does not have the role. */
    int64_t n;                /**< 0 then. */
    struct kubeflow_place restart_policy;
    struct kubeflow_pod pod;
};

weir_status kubeflow_replicas_read(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                   struct kubeflow_place at,
                                   struct kubeflow_replicas *out) WEIR_MUST_CHECK;

/**
 * The same for each role of an object: a member for each, in the order of the table.
 * @param roles  Names, with NULL at the end.
 * @param out    As many as roles.
 */
weir_status kubeflow_roles_read(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                struct kubeflow_place at, const char *const *roles,
                                struct kubeflow_replicas *out) WEIR_MUST_CHECK;

/** Are replicas started again alike, those of the first role and of another? @return UNSUPPORTED. */
weir_status kubeflow_policies_check(struct kubeflow_reading *reading,
                                    const struct kubeflow_replicas *first,
                                    const struct kubeflow_replicas *other) WEIR_MUST_CHECK;

/** Take over what the pods of the job have, into its specification. */
void kubeflow_draft_pod(struct kubeflow_draft *draft, const struct kubeflow_pod *pod);

/** Set an integer of the specification. */
void kubeflow_draft_set(struct kubeflow_draft *draft, const char *name, int64_t value);

#endif
