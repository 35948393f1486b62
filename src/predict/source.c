#include "predict/source.h"

const struct source_ops *source_ops_of(const struct weir_kind *kind)
{
    static const struct {
        const struct weir_kind *kind;
        const struct source_ops *ops;
    } table[] = {

#define WEIR_KIND(name) {&weir_source_##name##_kind, &source_##name},
#include "endpoint/sources.def"
#undef WEIR_KIND
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(table); i++) {
        if (table[i].kind == kind) {
            return table[i].ops;
        }
    }
    return NULL;
}
