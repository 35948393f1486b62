/** weir runs compare: what differs between runs, and what came of them. */
#include "cli/core/find.h"
#include "cli/core/noun.h"

#include <string.h>

#define RUNS_MAX 16

struct compare_options {
    struct cli_common common;
    bool shows_all;
};

static const struct weir_option compare_options[] = {
    CLI_COMMON_OPTIONS(compare_options),
    CLI_FLAG(compare_options, shows_all, "all", 'a', "Show the parameters that are alike too"),
};

static const char *const figures[] = {"status",
                                      "model",
                                      "dataset",
                                      "dataset_version",
                                      "validation_accuracy",
                                      "validation_loss",
                                      "accuracy",
                                      "loss",
                                      "batch_accuracy",
                                      "batch_loss",
                                      "epoch",
                                      "images_per_second",
                                      "started_ms",
                                      "finished_ms",
                                      NULL};

/* Names that no reader compares: they differ always. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"model_name", "code_version", "resumed_from"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (strcmp(own[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* One row: what it is, and each run's value under "0", "1" … */
static void add_row(json_t *rows, const char *what, json_t *const *records, size_t n,
                    const char *member, bool only_if_different)
{
    json_t *row = json_pack("{s:s}", "what", what);
    bool differs = false;
    for (size_t i = 0; i < n; i++) {
        char key[24];
        json_t *value = json_object_get(records[i], member);
        const json_t *first = json_object_get(records[0], member);
        (void)snprintf(key, sizeof key, "%zu", i);
        json_object_set(row, key, value != NULL ? value : json_null());
        differs = differs || (first == NULL) != (value == NULL) ||
                  (value != NULL && !json_equal(value, first));
    }
    if (differs || !only_if_different) {
        json_array_append(rows, row);
    }
    json_decref(row);
}

/* What a run was started with: of its job, or as its program says. */
static json_t *parameters_of(json_t *run)
{
    json_t *own = json_object_get(run, "parameters");
    return json_object_size(own) > 0 ? own : json_object_get(run, "params");
}

static bool is_figure(const char *name)
{
    for (const char *const *figure = figures; *figure != NULL; figure++) {
        if (strcmp(*figure, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Every member that any of the objects has, once: {"name": true}. */
static json_t *names_of(json_t *const *objects, size_t n)
{
    json_t *names = json_object(), *value;
    const char *name;
    for (size_t i = 0; i < n; i++) {
        json_object_foreach(objects[i], name, value)
        {
            json_object_set_new(names, name, json_true());
        }
    }
    return names;
}

static void add_figures(json_t *rows, json_t *const *runs, size_t n)
{
    for (const char *const *figure = figures; *figure != NULL; figure++) {
        const char *label = strcmp(*figure, "batch_accuracy") == 0 ? "batch accuracy"
                            : strcmp(*figure, "batch_loss") == 0   ? "batch loss"
                                                                   : *figure;
        bool is_any = false;
        for (size_t i = 0; i < n; i++) {
            const json_t *value = json_object_get(runs[i], *figure);
            is_any = is_any || (value != NULL && !json_is_null(value));
        }
        if (is_any) {
            add_row(rows, label, runs, n, *figure, false);
        }
    }
}

/* A metric may be called as a parameter is: learning_rate is both, and a schedule's last is not what a run was
 * started with. */
static void add_metrics(json_t *rows, json_t *const *runs, json_t *const *metrics,
                        json_t *const *parameters, size_t n)
{
    json_t *of_metrics = names_of(metrics, n), *of_parameters = names_of(parameters, n), *value;
    const char *name;
    char label[128];
    json_object_foreach(of_metrics, name, value)
    {
        bool is_both =
            json_object_get(of_parameters, name) != NULL || strcmp(name, "learning_rate") == 0;
        if (!is_figure(name) && json_object_get(runs[0], name) == NULL) {
            (void)snprintf(label, sizeof label, "%s%s", name, is_both ? " (last)" : "");
            add_row(rows, label, metrics, n, name, false);
        }
    }
    json_decref(of_metrics);
    json_decref(of_parameters);
}

static json_t *compare(json_t *const *runs, size_t n, bool shows_all)
{
    json_t *rows = json_array(), *parameters[RUNS_MAX], *metrics[RUNS_MAX], *value;
    const char *name;
    add_figures(rows, runs, n);
    for (size_t i = 0; i < n; i++) {
        parameters[i] = parameters_of(runs[i]);
        metrics[i] = json_object_get(runs[i], "metrics");
    }
    add_metrics(rows, runs, metrics, parameters, n);
    json_t *names = names_of(parameters, n);
    json_object_foreach(names, name, value)
    {
        bool is_shown_above = json_object_get(runs[0], name) != NULL;
        if (!is_own(name) && !is_shown_above) {
            add_row(rows, name, parameters, n, name, !shows_all);
        }
    }
    json_decref(names);
    return json_pack("{s:o}", "items", rows);
}

static weir_status run_compare(struct cli_call *call, struct weir_error *err)
{
    const struct compare_options *options = call->options;
    json_t *runs[RUNS_MAX];
    struct cli_column columns[RUNS_MAX + 1] = {{"what", ""}};
    const struct cli_noun *noun = cli_noun_find("run");
    size_t n = 0;
    weir_status status = WEIR_OK;
    while (n < call->n_words && status == WEIR_OK) {
        status = cli_noun_get(call, noun, call->words[n], &runs[n], err);
        if (status == WEIR_OK) {
            const char *id = json_string_value(json_object_get(runs[n], "id"));
            cli_run_for_people(runs[n]);
            columns[n + 1] = (struct cli_column){weir_arena_printf(call->arena, "%zu", n),
                                                 weir_arena_printf(call->arena, "%s %s",
                                                                   cli_text(call, runs[n], "name"),
                                                                   cli_short_id(id))};
            n++;
        }
    }
    if (status == WEIR_OK) {
        json_t *answer = compare(runs, n, options->shows_all);
        if (cli_is_json(call)) {
            json_t *ids = json_array();
            for (size_t i = 0; i < n; i++) {
                json_array_append(ids, json_object_get(runs[i], "id"));
            }
            json_object_set_new(answer, "runs", ids);
        }
        cli_print_table(call, answer, columns, n + 1);
        json_decref(answer);
    }
    for (size_t i = 0; i < n; i++) {
        json_decref(runs[i]);
    }
    return status;
}

const struct cli_command cli_runs_compare = {
    .name = "runs compare",
    .usage = "RUN RUN … [--all] [-o json]",
    .summary = "Compare runs: their figures, and the parameters that differ",
    .help = "\"validation_accuracy\" was measured on the validation pictures; \"batch accuracy\" "
            "is that\n"
            "of the last mini-batches of training, which is not comparable between runs.",
    CLI_WORDS(2, RUNS_MAX),
    CLI_OPTIONS(compare_options, compare_options),
    .run = run_compare,
};
