/** Can a cluster be used as its options say: what lacks, and what can be guessed. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_CHECK_H
#define WEIR_CLUSTER_KUBERNETES_CHECK_H

#include "cluster/kubernetes/link.h"

/** The oldest: since 1.24 a Job's pods can have numbers for good. */
#define KUBERNETES_MINOR_MIN 24

/** ops->check. It ends at the first thing that lacks. */
weir_status kubernetes_check(struct kubernetes_link *link, const struct kubernetes_options *options,
                             struct weir_arena *arena, const char **out_missing,
                             struct weir_error *err);

/** ops->check_show: the rights by which jobs are shown, where the definition of WeirJobs is installed. */
weir_status kubernetes_check_shown(struct kubernetes_link *link,
                                   const struct kubernetes_options *options,
                                   struct weir_arena *arena, const char **out_missing,
                                   struct weir_error *err);

/** ops->guess. */
weir_status kubernetes_guess(json_t *document, struct weir_arena *arena, struct weir_error *err);

#endif
