#include "endpoint/stage/judge.h"

#include "endpoint/stage.h"

static const struct weir_option options[] = {
#define X(member, option, text)                                                                    \
    WEIR_OPT_JSON(weir_stage_judge, member, option, F64, 0, "-1", -1, 4096,                        \
                  text "; 0: any will do, -1: the usual"),
    WEIR_STAGE_JUDGE_LIMITS(X)
#undef X
};

static const struct weir_stage_facts facts = {.takes = WEIR_STAGE_TAKES(FACES),
                                              .gives = WEIR_STAGE_FACES};

const struct weir_kind weir_stage_judge_kind = {
    .name = "judge",
    .doc = "Faces that are too small, blurred, turned away or badly lit are not compared; the "
           "decision says so.",
    WEIR_KIND_OPTIONS(weir_stage_judge, options),
    .ops = &facts,
};
