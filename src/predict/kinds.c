#include "predict/kinds.h"

#include "endpoint/stage.h"
#include "predict/door.h"
#include "predict/sink.h"
#include "predict/source.h"
#include "predict/stage.h"

static const struct {
    const struct weir_kind *kind;
    const void *ops;
} kinds[] = {

#define WEIR_KIND(name) {&weir_source_##name##_kind, &source_##name},
#include "endpoint/sources.def"
#undef WEIR_KIND
#define WEIR_KIND(name) {&weir_sink_##name##_kind, &sink_##name},
#include "endpoint/sinks.def"
#undef WEIR_KIND
#define WEIR_KIND(name) {&weir_stage_##name##_kind, &stage_##name},
#include "endpoint/stages.def"
#undef WEIR_KIND
#define WEIR_KIND(name) {&weir_door_##name##_kind, &door_##name},
#include "endpoint/doors.def"
#undef WEIR_KIND
};

const void *predict_ops_of(const struct weir_kind *kind)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        if (kinds[i].kind == kind) {
            return kinds[i].ops;
        }
    }
    return NULL;
}
