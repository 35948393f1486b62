/** Pod: a template of pods, as members of a job's specification (framework/program.h, framework/request.h). */
#ifndef WEIR_KUBEFLOW_POD_H
#define WEIR_KUBEFLOW_POD_H

#include "kubeflow/reading.h"

struct kubeflow_draft;

struct kubeflow_pod {
    struct kubeflow_place at;        /**< The template. */
    struct kubeflow_place container; /**< Its only one. */
    struct kubeflow_place restart_policy;
    json_t *spec; /**< Kept; without argv: the container has no command. */
};

/**
 * Read a template; what it says of a priority goes to the draft.
 * @param draft  Says which image stands in for the container's.
 */
weir_status kubeflow_pod_read(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                              struct kubeflow_place at, struct kubeflow_pod *out) WEIR_MUST_CHECK;

/** Has its container a command? @return INVALID. */
weir_status kubeflow_pod_check_command(struct kubeflow_reading *reading,
                                       const struct kubeflow_pod *pod) WEIR_MUST_CHECK;

/** Which of its parts may differ from another's. */
enum kubeflow_unlike { KUBEFLOW_ALIKE, KUBEFLOW_UNLIKE_RESOURCES };

/**
 * Are the pods of one job alike, as they must be?
 * @param role, first_role  What they are called in the message.
 * @return UNSUPPORTED with the first part of `pod` that is another.
 */
weir_status kubeflow_pods_check(struct kubeflow_reading *reading, const struct kubeflow_pod *first,
                                const char *first_role, const struct kubeflow_pod *pod,
                                const char *role, enum kubeflow_unlike may) WEIR_MUST_CHECK;

/* ---- parts of a container, each a file ------------------------------------------------------------ */

/** Variables: "env" and "secrets" of the specification. */
weir_status kubeflow_env_read(struct kubeflow_reading *reading, const struct kubeflow_pod *pod,
                              struct kubeflow_place env,
                              struct kubeflow_place env_from) WEIR_MUST_CHECK;

/** CPUs, memory, disk and accelerators. */
weir_status kubeflow_resources_read(struct kubeflow_reading *reading,
                                    const struct kubeflow_draft *draft,
                                    const struct kubeflow_pod *pod,
                                    struct kubeflow_place at) WEIR_MUST_CHECK;

/** Volumes, and where the container has them: "volumes" of the specification, for claims and NFS. */
weir_status kubeflow_volumes_read(struct kubeflow_reading *reading, struct kubeflow_place volumes,
                                  struct kubeflow_place mounts, json_t *spec) WEIR_MUST_CHECK;

/** A value of a resource: "limits.memory" by a divisor; for variables. */
weir_status kubeflow_resource_value(struct kubeflow_reading *reading,
                                    const struct kubeflow_pod *pod, struct kubeflow_place at,
                                    const char **out) WEIR_MUST_CHECK;

#endif
