#include "predict/sink.h"

const struct sink_ops *sink_ops_of(const struct weir_kind *kind)
{
    static const struct {
        const struct weir_kind *kind;
        const struct sink_ops *ops;
    } table[] = {

#define WEIR_KIND(name) {&weir_sink_##name##_kind, &sink_##name},
#include "endpoint/sinks.def"
#undef WEIR_KIND
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(table); i++) {
        if (table[i].kind == kind) {
            return table[i].ops;
        }
    }
    return NULL;
}
