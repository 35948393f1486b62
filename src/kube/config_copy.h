/** For the domain's own files. */
#ifndef WEIR_KUBE_CONFIG_COPY_H
#define WEIR_KUBE_CONFIG_COPY_H

#include "kube/config.h"

/** Copy a configuration; all of it lies in the arena then. */
void kube_config_copy(const struct weir_kube_config *config, struct weir_arena *arena,
                      struct weir_kube_config *out);

#endif
