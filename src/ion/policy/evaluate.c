#include "ion/policy_evaluation.h"

#include "ion/ion_step.h"
#include "stats/paired.h"

#include <inttypes.h>
#include <string.h>

#define MEASUREMENTS_MAX 3 /* while other versions come to serve */

struct weir_policy_evaluate {
    char *dataset, *metric, *on_failure;
    double margin, alpha, least_accuracy;
    int64_t min_samples, timeout_s;
};

static bool is_of_loss(const struct weir_policy_evaluate *evaluate)
{
    return strcmp(evaluate->metric, "loss") == 0;
}

static weir_status check(void *options, const char *where, struct weir_arena *arena,
                         struct weir_error *err)
{
    const struct weir_policy_evaluate *evaluate = options;
    (void)arena;
    if (evaluate->dataset[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.dataset: expected a dataset's name",
                              where);
    }
    bool can_be = is_of_loss(evaluate) || (evaluate->margin >= -1 && evaluate->margin < 1);
    return can_be ? WEIR_OK
                  : weir_error_set(err, WEIR_ERR_INVALID,
                                   "%s.margin: accuracy is a share: expected -1 or more, and less "
                                   "than 1",
                                   where);
}

/** Nothing was found out. */
static struct weir_policy_verdict fail(const struct weir_policy_evaluate *evaluate, const char *why,
                                       struct weir_arena *arena)
{
    bool passes = strcmp(evaluate->on_failure, "pass") == 0;
    return weir_policy_answer(
        passes ? WEIR_VERDICT_PASS : WEIR_VERDICT_REJECT,
        weir_arena_printf(arena, "evaluate: %s, and on_failure is %s", why, evaluate->on_failure));
}

/** "version 4", or what there is instead. */
static const char *other(const struct weir_policy_inputs *inputs, struct weir_arena *arena)
{
    return inputs->serving_version > 0
               ? weir_arena_printf(arena, "beside version %" PRId64, inputs->serving_version)
               : "alone";
}

static struct weir_policy_verdict wait_for(const struct weir_policy_evaluate *evaluate,
                                           const struct weir_policy_inputs *inputs,
                                           int64_t asked_ms, struct weir_arena *arena)
{
    return (struct weir_policy_verdict){
        .verdict = WEIR_VERDICT_WAIT,
        .state = WEIR_CANDIDATE_WAITING,
        .until_ms = asked_ms + evaluate->timeout_s * 1000,
        .rule = weir_arena_printf(arena, "evaluate: it is measured on %s, %s", evaluate->dataset,
                                  other(inputs, arena))};
}

/** How likely it would be to look so good, were it just at the margin. */
static double p_of(const struct weir_policy_evaluate *evaluate,
                   const struct weir_policy_evaluation *found, double difference)
{
    double n = (double)found->n_samples;
    double n_alone = (double)found->only_candidate + (double)found->only_live;
    if (is_of_loss(evaluate)) {
        return weir_paired_p((uint64_t)found->n_samples, difference, found->loss_m2,
                             evaluate->margin);
    }
    return evaluate->margin == 0
               ? weir_mcnemar_p((uint64_t)found->only_candidate, (uint64_t)found->only_live)
               : weir_paired_p((uint64_t)found->n_samples, difference,
                               n_alone - n * difference * difference, evaluate->margin);
}

static struct weir_policy_verdict compare(const struct weir_policy_evaluate *evaluate,
                                          const struct weir_policy_inputs *inputs,
                                          const struct weir_policy_evaluation *found,
                                          struct weir_arena *arena)
{
    bool is_loss = is_of_loss(evaluate);
    double difference =
        is_loss ? found->live_loss - found->loss
                : (double)(found->only_candidate - found->only_live) / (double)found->n_samples;
    double p = p_of(evaluate, found, difference);
    bool passes = p <= evaluate->alpha;
    return weir_policy_answer(
        passes ? WEIR_VERDICT_PASS : WEIR_VERDICT_REJECT,
        weir_arena_printf(arena,
                          "evaluate: %s %.4g, and %.4g of version %" PRId64 ", on %" PRId64
                          " pictures of %s: better by %.4g, %s more than %g (p = %.3g)",
                          evaluate->metric, is_loss ? found->loss : found->accuracy,
                          is_loss ? found->live_loss : found->live_accuracy,
                          inputs->serving_version, found->n_samples, evaluate->dataset, difference,
                          passes ? "surely" : "not surely", evaluate->margin, p));
}

/** Counts that no measurement gives: of a record that was made elsewhere. */
static bool is_sound(const struct weir_policy_evaluation *found)
{
    return found->n_samples >= 0 && found->only_candidate >= 0 && found->only_live >= 0 &&
           found->only_candidate <= found->n_samples &&
           found->only_live <= found->n_samples - found->only_candidate && found->loss_m2 >= 0;
}

static struct weir_policy_verdict judge(const struct weir_policy_evaluate *evaluate,
                                        const struct weir_policy_inputs *inputs,
                                        const struct weir_policy_evaluation *found,
                                        struct weir_arena *arena)
{
    if (!is_sound(found)) {
        return fail(evaluate, "the figures cannot be", arena);
    }
    if (found->n_samples < evaluate->min_samples) {
        return fail(evaluate,
                    weir_arena_printf(arena,
                                      "%s has %" PRId64 " pictures to measure on, fewer than "
                                      "%" PRId64,
                                      evaluate->dataset, found->n_samples, evaluate->min_samples),
                    arena);
    }
    if (!(found->accuracy >= evaluate->least_accuracy)) { /* nor if it is no number */
        return weir_policy_answer(
            WEIR_VERDICT_REJECT,
            weir_arena_printf(
                arena, "evaluate: accuracy %.4g on %" PRId64 " pictures of %s, less than %g",
                found->accuracy, found->n_samples, evaluate->dataset, evaluate->least_accuracy));
    }
    if (inputs->serving_version == 0) {
        return weir_policy_answer(
            WEIR_VERDICT_PASS,
            weir_arena_printf(arena,
                              "evaluate: accuracy %.4g on %" PRId64
                              " pictures of %s, and the link serves no other version of "
                              "the model",
                              found->accuracy, found->n_samples, evaluate->dataset));
    }
    return compare(evaluate, inputs, found, arena);
}

/** It is measured; `found` is how that goes. */
static struct weir_policy_verdict look(const struct weir_policy_evaluate *evaluate,
                                       const struct weir_policy_inputs *inputs,
                                       const struct weir_policy_evaluation *found,
                                       struct weir_arena *arena)
{
    if (found->problem != NULL) {
        return fail(evaluate,
                    weir_arena_printf(arena, "nothing was measured: %.300s", found->problem),
                    arena);
    }
    if (found->state != NULL && strcmp(found->state, "SUCCEEDED") == 0) {
        return judge(evaluate, inputs, found, arena);
    }
    if (inputs->now_ms >= found->asked_ms + evaluate->timeout_s * 1000) {
        return fail(evaluate,
                    weir_arena_printf(arena, "it was not measured within %" PRId64 " s",
                                      evaluate->timeout_s),
                    arena);
    }
    return wait_for(evaluate, inputs, found->asked_ms, arena);
}

static struct weir_policy_verdict decide(const struct weir_policy_inputs *inputs,
                                         const void *options, struct weir_arena *arena)
{
    const struct weir_policy_evaluate *evaluate = options;
    const struct weir_policy_evaluation *found = weir_policy_evaluation_of(inputs->evaluation);
    if (inputs->serving_version == 0 && evaluate->least_accuracy <= 0) {
        return weir_policy_answer(WEIR_VERDICT_PASS,
                                  "evaluate: the link serves no other version of the model "
                                  "to compare with");
    }
    bool is_asked = found->asked_ms > 0;
    bool is_of_this = is_asked && found->live_version == inputs->serving_version;
    if (is_of_this) {
        return look(evaluate, inputs, found, arena);
    }
    if (found->n >= MEASUREMENTS_MAX) {
        return fail(evaluate, "other versions came to serve while it was measured, again and again",
                    arena);
    }
    struct weir_policy_verdict told = wait_for(evaluate, inputs, inputs->now_ms, arena);
    told.is_to_measure = true;
    return told;
}

// clang-format off
static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_policy_evaluate, dataset, "dataset", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, "Dataset of a folder of pictures per class, on whose newest version both are measured; or NAME@v2"),
    {.name = "metric", .type = WEIR_OPTION_TEXT, .offset = offsetof(struct weir_policy_evaluate, metric), .fallback = "accuracy", .words = WEIR_WORDS("accuracy", "loss"), .doc = "What is compared"},
    WEIR_OPT_JSON(weir_policy_evaluate, margin, "margin", F64, 0, "0", -1e6, 1e6, "How much better it must be; below 0: how much worse it may be"),
    WEIR_OPT_JSON(weir_policy_evaluate, alpha, "alpha", F64, 0, "0.05", 0.000001, 0.5, "How likely it may be by chance that it looks so good"),
    WEIR_OPT_JSON(weir_policy_evaluate, min_samples, "min-samples", INT, 0, "100", 2, 1e12, "How many pictures it must be measured on at least"),
    WEIR_OPT_JSON(weir_policy_evaluate, least_accuracy, "least-accuracy", F64, 0, "0", 0, 1, "The share of pictures that it must be right on whatever serves; 0: any"),
    WEIR_OPT_JSON(weir_policy_evaluate, timeout_s, "timeout-s", INT, 0, "86400", 1, 31536000, "How long a measurement may take, from when it was asked for"),
    {.name = "on-failure", .type = WEIR_OPTION_TEXT, .offset = offsetof(struct weir_policy_evaluate, on_failure), .fallback = "reject", .words = WEIR_WORDS("reject", "pass"), .doc = "What becomes of a version that could not be measured; pass: it comes to the next policy"},
};
// clang-format on

static const struct weir_policy_ops ops = {
    .check = check, .decide = decide, .watches = true, .measures = true};

const struct weir_kind weir_policy_evaluate = {
    .name = "evaluate",
    .doc = "A version is measured on a dataset, picture by picture beside the version that serves, "
           "and passes if it is surely better, or surely not worse than the margin allows.",
    WEIR_KIND_OPTIONS(weir_policy_evaluate, options_of),
    .ops = &ops,
};
