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

char *weir_policy_arms_text(const struct weir_policy_arms *arms, struct weir_arena *arena)
{
    return weir_record_text(&weir_policy_arms_resource, arms, arena);
}

static bool is_sound(const struct weir_policy_arms *arms)
{
    return arms->n >= 0 && arms->live_n >= 0 && isfinite(arms->mean) && isfinite(arms->live_mean) &&
           arms->m2 >= 0 && arms->live_m2 >= 0;
}

struct weir_policy_arms weir_policy_arms_of(const char *text, struct weir_arena *arena)
{
    struct weir_policy_arms read = {0};
    return weir_record_of_text(&weir_policy_arms_resource, text, arena, &read) && is_sound(&read)
               ? read
               : (struct weir_policy_arms){0};
}

weir_status weir_policy_arms_check(const char *text, struct weir_arena *arena,
                                   struct weir_error *err)
{
    struct weir_policy_arms read = {0};
    WEIR_TRY(weir_record_check_text(&weir_policy_arms_resource, text, arena, &read, err));
    return is_sound(&read) ? WEIR_OK
                           : weir_error_set(err, WEIR_ERR_INVALID, "arms: the figures cannot be");
}
