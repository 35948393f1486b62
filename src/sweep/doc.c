#include "sweep/doc.h"

#include "base/record.h"
#include "sweep/method.h"

#include <string.h>

struct doc_members {
    const char *name, *project;
    const json_t *job, *parameters, *goal, *method, *early_stop;
    int64_t trials, parallel, time_s, max_failures, seed;
};

struct doc_job {
    const char *kind;
    const json_t *spec;
    int64_t max_restarts;
};

struct doc_goal {
    const char *metric, *direction, *value;
};

struct doc_rungs {
    struct weir_sweep_rungs rungs;
};

const struct weir_option weir_sweep_doc_options[] = {
    WEIR_OPT_JSON(doc_members, name, "name", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Name; trials' jobs are NAME.NUMBER"),
    WEIR_OPT_JSON(doc_members, project, "project", TEXT, 0, "default", 0, 0,
                  "Project, in whose queue the jobs wait"),
    WEIR_OPT_JSON(doc_members, job, "job", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "The job of each trial: {kind, spec, max_restarts}; {{NAME}} in texts of spec "
                  "becomes the value of a parameter"),
    WEIR_OPT_JSON(doc_members, parameters, "parameters", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "What is tried: by name, a kind of parameter with its options, or a list of "
                  "values"),
    WEIR_OPT_JSON(doc_members, goal, "goal", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "{metric, direction: minimize or maximize, value: last or best of its curve}"),
    WEIR_OPT_JSON(doc_members, method, "method", JSON, 0, NULL, 0, 0,
                  "A kind of method with its options; random if it is left out"),
    WEIR_OPT_JSON(doc_members, early_stop, "early-stop", JSON, 0, NULL, 0, 0,
                  "Rungs for a method that has none: {min_resource, max_resource, eta, resource}"),
    WEIR_OPT_JSON(doc_members, trials, "trials", INT, 0, "0", 0, WEIR_SWEEP_TRIALS_MAX,
                  "Trials at most; 0: all of a grid"),
    WEIR_OPT_JSON(doc_members, parallel, "parallel", INT, 0, "4", 1, WEIR_SWEEP_PARALLEL_MAX,
                  "Trials at the same time, at most"),
    WEIR_OPT_JSON(doc_members, time_s, "time-s", INT, 0, "0", 0, 31622400,
                  "Seconds after which the sweep ends with what it has; 0: no limit"),
    WEIR_OPT_JSON(doc_members, max_failures, "max-failures", INT, 0, "8", 1, WEIR_SWEEP_TRIALS_MAX,
                  "So many trials that failed end the sweep"),
    WEIR_OPT_JSON(doc_members, seed, "seed", INT, 0, "-1", -1, WEIR_SWEEP_SEED_MAX,
                  "Seed of what is drawn by chance; -1: chosen when the sweep is made"),
};
const size_t weir_sweep_doc_n_options = WEIR_ARRAY_LEN(weir_sweep_doc_options);

static const struct weir_option job_options[] = {
    WEIR_OPT_JSON(doc_job, kind, "kind", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, "Kind of job"),
    WEIR_OPT_JSON(doc_job, spec, "spec", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Its specification"),
    WEIR_OPT_JSON(doc_job, max_restarts, "max-restarts", INT, 0, "-1", -1, 1000,
                  "Restarts of each job; -1: as its kind has it"),
};

static const struct weir_option goal_options[] = {
    WEIR_OPT_JSON(doc_goal, metric, "metric", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "Metric of the trials' runs"),
    {.name = "direction",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct doc_goal, direction),
     .flags = WEIR_OPTION_REQUIRED,
     .doc = "Which values are better",
     .words = WEIR_WORDS("minimize", "maximize")},
    {.name = "value",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct doc_goal, value),
     .fallback = "last",
     .doc = "Which value of its curve is a trial's",
     .words = WEIR_WORDS("last", "best")},
};

static const struct weir_option rungs_options[] = {WEIR_SWEEP_RUNGS_OPTIONS(doc_rungs, rungs)};

static weir_status read_job(const json_t *object, struct weir_arena *arena,
                            struct weir_sweep_doc *out, struct weir_error *err)
{
    struct doc_job job = {0};
    WEIR_TRY(weir_options_read(job_options, WEIR_ARRAY_LEN(job_options), object, "$.job", NULL,
                               arena, &job, err));
    if (!json_is_object(job.spec)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.job.spec: expected an object");
    }
    out->job_kind = job.kind;
    out->job_spec = job.spec;
    out->max_restarts = job.max_restarts;
    return WEIR_OK;
}

static weir_status read_goal(const json_t *object, struct weir_arena *arena,
                             struct weir_sweep_doc *out, struct weir_error *err)
{
    struct doc_goal goal = {0};
    WEIR_TRY(weir_options_read(goal_options, WEIR_ARRAY_LEN(goal_options), object, "$.goal", NULL,
                               arena, &goal, err));
    out->metric = goal.metric;
    out->maximizes = strcmp(goal.direction, "maximize") == 0;
    out->takes_best = strcmp(goal.value, "best") == 0;
    return WEIR_OK;
}

static weir_status read_method(const json_t *object, struct weir_arena *arena,
                               struct weir_sweep_doc *out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *fallback = json_pack("{s:s}", "kind", "random");
    WEIR_TRY(weir_registry_read(&weir_sweep_methods, object != NULL ? object : fallback, "$.method",
                                arena, &out->method, err));
    const struct weir_sweep_method_ops *ops = weir_sweep_method_ops_of(out);
    if (ops->rungs != NULL) {
        out->rungs = *ops->rungs(out->method.options);
        WEIR_TRY(weir_sweep_rungs_check(&out->rungs, "$.method", err));
    }
    return WEIR_OK;
}

static weir_status read_early_stop(const json_t *object, struct weir_arena *arena,
                                   struct weir_sweep_doc *out, struct weir_error *err)
{
    struct doc_rungs read = {0};
    if (object == NULL) {
        return WEIR_OK;
    }
    if (weir_sweep_method_ops_of(out)->rungs != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.early_stop: method %s has rungs of its own: say it there",
                              out->method.kind->name);
    }
    WEIR_TRY(weir_options_read(rungs_options, WEIR_ARRAY_LEN(rungs_options), object, "$.early_stop",
                               NULL, arena, &read, err));
    out->rungs = read.rungs;
    return weir_sweep_rungs_check(&out->rungs, "$.early_stop", err);
}

/* How many trials there will be: a grid has an end of its own. */
static weir_status count_trials(int64_t wanted, struct weir_sweep_doc *out, struct weir_error *err)
{
    const struct weir_sweep_method_ops *ops = weir_sweep_method_ops_of(out);
    int64_t n_points = 0;
    if (ops->n_points != NULL) {
        WEIR_TRY(ops->n_points(out, &n_points, err));
    }
    if (n_points == 0 && wanted == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.trials: expected how many trials there are to be, 1 to %d",
                              WEIR_SWEEP_TRIALS_MAX);
    }
    out->n_trials = wanted == 0 ? n_points : n_points == 0 ? wanted : WEIR_MIN(wanted, n_points);
    return out->n_trials <= WEIR_SWEEP_TRIALS_MAX
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_LIMIT,
                     "$.parameters: the grid has %lld points, and a sweep has at most %d "
                     "trials: take fewer values, or say $.trials",
                     (long long)n_points, WEIR_SWEEP_TRIALS_MAX);
}

weir_status weir_sweep_doc_read(const json_t *object, struct weir_arena *arena,
                                struct weir_sweep_doc *out, struct weir_error *err)
{
    struct doc_members members = {0};
    struct weir_sweep_doc doc = {0};
    if (!json_is_object(object)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$: expected an object");
    }
    WEIR_TRY(weir_options_read(weir_sweep_doc_options, weir_sweep_doc_n_options, object, "$", NULL,
                               arena, &members, err));
    if (!weir_name_is_valid(members.name)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.name: expected a name: 1 to 63 of a-z 0-9 . _ - with a letter or digit first");
    }
    if (strlen(members.name) > WEIR_FIELD_NAME_MAX_BYTES - 5) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.name: expected at most %d bytes, as trials' jobs are NAME.NUMBER",
                              WEIR_FIELD_NAME_MAX_BYTES - 5);
    }
    doc.name = members.name;
    doc.project = members.project;
    doc.n_parallel = members.parallel;
    doc.time_s = members.time_s;
    doc.max_failures = members.max_failures;
    doc.seed = members.seed;
    WEIR_TRY(read_job(members.job, arena, &doc, err));
    WEIR_TRY(weir_sweep_space_read(members.parameters, "$.parameters", arena, &doc.space, err));
    WEIR_TRY(read_goal(members.goal, arena, &doc, err));
    WEIR_TRY(read_method(members.method, arena, &doc, err));
    WEIR_TRY(read_early_stop(members.early_stop, arena, &doc, err));
    WEIR_TRY(count_trials(members.trials, &doc, err));
    *out = doc;
    return WEIR_OK;
}
