#include "ion/policy_evaluation.h"

// clang-format off
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_policy_evaluation, n,              INT,  0, "", "Measurements asked for so far"),
    WEIR_FIELD(weir_policy_evaluation, asked_ms,       INT,  0, "ms", "When the last was asked for"),
    WEIR_FIELD(weir_policy_evaluation, live_version,   INT,  0, "", "Version that it compares with; 0: none"),
    WEIR_FIELD(weir_policy_evaluation, job,            TEXT, 0, "", "Job that measures"),
    WEIR_FIELD(weir_policy_evaluation, run,            TEXT, 0, "", "Its run, which has the figures"),
    WEIR_FIELD(weir_policy_evaluation, state,          TEXT, 0, "", "The job's state"),
    WEIR_FIELD(weir_policy_evaluation, problem,        TEXT, 0, "", "Why nothing was measured"),
    WEIR_FIELD(weir_policy_evaluation, n_samples,      INT,  0, "", "Pictures that both were asked"),
    WEIR_FIELD(weir_policy_evaluation, n_errors,       INT,  0, "", "Pictures that cannot be read"),
    WEIR_FIELD(weir_policy_evaluation, accuracy,       F64,  0, "", "Share on which the version is right"),
    WEIR_FIELD(weir_policy_evaluation, loss,           F64,  0, "", "Its mean loss"),
    WEIR_FIELD(weir_policy_evaluation, live_accuracy,  F64,  0, "", "Share on which the version that serves is right"),
    WEIR_FIELD(weir_policy_evaluation, live_loss,      F64,  0, "", "Its mean loss"),
    WEIR_FIELD(weir_policy_evaluation, only_candidate, INT,  0, "", "Pictures on which the version alone is right"),
    WEIR_FIELD(weir_policy_evaluation, only_live,      INT,  0, "", "Pictures on which the one that serves alone is right"),
    WEIR_FIELD(weir_policy_evaluation, loss_m2,        F64,  0, "", "Squares of the distances of the differences in loss from their mean, summed"),
};
// clang-format on

const struct weir_resource weir_policy_evaluation_resource =
    WEIR_RESOURCE("evaluation", "policy_evaluation", weir_policy_evaluation, fields);

const struct weir_policy_evaluation *
weir_policy_evaluation_of(const struct weir_policy_evaluation *evaluation)
{
    static const struct weir_policy_evaluation none;
    return evaluation != NULL ? evaluation : &none;
}
