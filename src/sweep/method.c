#include "sweep/method.h"

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_sweep_method_##name,
#include "sweep/methods.def"
#undef WEIR_KIND
};

const struct weir_registry weir_sweep_methods = {
    .noun = "sweep-method",
    .plural = "sweep-methods",
    .doc = "How a sweep chooses what its trials try.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
    .planned = WEIR_WORDS("pbt"),
    .instead = "use \"asha\" or \"tpe\"",
};
