#include "cluster/kubernetes/rights.h"

#include "base/macros.h"

#define CLUSTER   true
#define NAMESPACE false
#define ALWAYS    false
#define WEIR      true
#define RIGHT(verb, group, resource, where, who, purpose)                                          \
    {verb, group, resource, where, who, purpose},

const struct kubernetes_right kubernetes_rights[] = {
#include "cluster/kubernetes/rights.def"
};

const size_t kubernetes_n_rights = WEIR_ARRAY_LEN(kubernetes_rights);
