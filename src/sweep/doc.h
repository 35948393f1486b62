/**
 * The document of a sweep: what people write.
 *
 *     name: lenet
 *     job: {kind: train, spec: {model: lenet5, dataset: fashion, learning_rate: "{{lr}}"}}
 *     parameters: {lr: {kind: log_uniform, min: 0.001, max: 1}, momentum: [0, 0.9]}
 *     goal: {metric: validation_accuracy, direction: maximize}
 *     method: {kind: asha, min_resource: 1, max_resource: 27, resource: epoch}
 *     trials: 64
 *     parallel: 4
 *
 * A text of the job's specification that is {{NAME}} becomes the value of that parameter, a number
 * where that is one; {{NAME}} inside of a longer text is replaced there. Besides the parameters there
 * are {{sweep}}, {{trial}} (its number) and {{max_resource}}. Members of "files" stay as they are.
 */
#ifndef WEIR_SWEEP_DOC_H
#define WEIR_SWEEP_DOC_H

#include "base/arena.h"
#include "base/json.h"
#include "base/kind.h"
#include "sweep/parameter.h"
#include "sweep/rungs.h"

#define WEIR_SWEEP_TRIALS_MAX   4096
#define WEIR_SWEEP_PARALLEL_MAX 256

/** Largest seed: JSON of every reader keeps it. */
#define WEIR_SWEEP_SEED_MAX 9007199254740991

struct weir_sweep_doc {
    const char *name, *project, *job_kind;
    const json_t *job_spec;
    int64_t max_restarts; /**< -1: as its kind has it. */
    struct weir_sweep_space space;
    const char *metric;
    bool maximizes;
    bool takes_best;  /**< The value of a trial is the best of its curve, not the last. */
    int64_t n_trials; /**< At most; all of a grid if that is less. */
    int64_t n_parallel, time_s, max_failures;
    int64_t seed; /**< -1: not said. */
    struct weir_configured method;
    struct weir_sweep_rungs rungs; /**< eta 0: no trial is stopped early. */
};

/** Members of the document, for those who describe it. */
extern const struct weir_option weir_sweep_doc_options[];
extern const size_t weir_sweep_doc_n_options;

/**
 * Read a document. What the job's kind says of its specification is not looked at.
 * @param object  Lives as long as the document.
 * @return INVALID, UNSUPPORTED or LIMIT with the place of what is wrong.
 */
weir_status weir_sweep_doc_read(const json_t *object, struct weir_arena *arena,
                                struct weir_sweep_doc *out, struct weir_error *err) WEIR_MUST_CHECK;

/** What stands beside the parameters in placeholders. */
struct weir_sweep_given {
    const char *sweep; /**< Its name. */
    int64_t trial;
    double max_resource; /**< 0: there is none. */
};

/**
 * The specification of a trial's job: placeholders are replaced.
 * @param parameters  Values by name.
 * @param out  A new reference.
 * @return INVALID with the place of a placeholder that names nothing.
 */
weir_status weir_sweep_fill(const json_t *spec, const json_t *parameters,
                            const struct weir_sweep_given *given, struct weir_arena *arena,
                            json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** A number as people write it, in a text or a variable: 0.1, 3, true; a text as it is. */
char *weir_sweep_value_text(const json_t *value, struct weir_arena *arena);

#endif
