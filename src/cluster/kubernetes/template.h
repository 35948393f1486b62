/** What the pods of a request are made of: their image and volumes, as the cluster's document says, or as a job wants them of
 *  its pods. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_TEMPLATE_H
#define WEIR_CLUSTER_KUBERNETES_TEMPLATE_H

#include "base/volume.h"
#include "cluster/driver.h"
#include "cluster/kubernetes/options.h"

struct kubernetes_template {
    const char *image;           /**< NULL: Weir's own. */
    const char *wanted_image;    /**< The same, if it is the job's; NULL: the document says it. */
    struct weir_volume *volumes; /**< In the arena: those of the document, and of the job. */
    size_t n_volumes;
};

/**
 * Make it. A job has any image that the document does not rule out (job_images). It has claims of a namespace that is its
 * queue's alone, and else what the document lists (job_volumes); never a folder of a node.
 * @return INVALID: the job wants what it may not have; the sentence names the option that would give it.
 */
weir_status kubernetes_template_make(const struct kubernetes_options *options,
                                     const struct weir_node_request *request,
                                     struct weir_arena *arena, struct kubernetes_template *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Do the lists job_images and job_volumes make sense? @return NULL, or a sentence. In the arena. */
const char *kubernetes_template_options_wrong(const struct kubernetes_options *options,
                                              struct weir_arena *arena);

#endif
