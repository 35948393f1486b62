#include "cluster/kubernetes/rights.h"

#include "base/macros.h"

#define CLUSTER   true
#define NAMESPACE false
#define ALWAYS    KUBERNETES_RIGHT_ALWAYS
#define WEIR      KUBERNETES_RIGHT_WEIR
#define SOME      KUBERNETES_RIGHT_SOME
#define JOBS      KUBERNETES_RIGHT_JOBS
#define RIGHT(verb, group, resource, where, who, purpose)                                          \
    {verb, group, resource, where, who, purpose},

const struct kubernetes_right kubernetes_rights[] = {
#include "cluster/kubernetes/rights.def"
};

const size_t kubernetes_n_rights = WEIR_ARRAY_LEN(kubernetes_rights);
