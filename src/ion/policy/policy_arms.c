#include "ion/policy_arms.h"

#include <math.h>

// clang-format off
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_policy_arms, live_version, INT, 0, "", "Version that it is compared with; 0: nothing is counted yet"),
    WEIR_FIELD(weir_policy_arms, n,            INT, 0, "", "Samples of the candidate"),
    WEIR_FIELD(weir_policy_arms, mean,         F64, 0, "", "Their mean; of yes and no the rate"),
    WEIR_FIELD(weir_policy_arms, m2,           F64, 0, "", "Squares of their distances from it, summed"),
    WEIR_FIELD(weir_policy_arms, live_n,       INT, 0, "", "Samples of the version that serves"),
    WEIR_FIELD(weir_policy_arms, live_mean,    F64, 0, "", "Their mean"),
    WEIR_FIELD(weir_policy_arms, live_m2,      F64, 0, "", "Squares of their distances from it, summed"),
};
// clang-format on

const struct weir_resource weir_policy_arms_resource =
    WEIR_RESOURCE("arms", "policy_arms", weir_policy_arms, fields);

const struct weir_policy_arms *weir_policy_arms_of(const struct weir_policy_arms *arms)
{
    static const struct weir_policy_arms none;
    bool can_be = arms != NULL && arms->n >= 0 && arms->live_n >= 0 && isfinite(arms->mean) &&
                  isfinite(arms->live_mean) && arms->m2 >= 0 && arms->live_m2 >= 0;
    return can_be ? arms : &none;
}
