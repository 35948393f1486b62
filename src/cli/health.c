/** weir health, weir model baseline: drift of an ION by signal, and what a version learned from. */
#include "cli/command.h"
#include "cli/input.h"

#include "base/file.h"

#include <string.h>

#define BASELINE_MAX_BYTES ((size_t)1 << 20)

struct health_options {
    struct cli_common common;
    char *pipeline, *since;
};

static const struct weir_option health_options[] = {
    CLI_COMMON_OPTIONS(health_options),
    WEIR_OPT(health_options, pipeline, "pipeline", 0, TEXT, NULL, 0, 0, "NAME",
             "Signals of this pipeline only"),
    WEIR_OPT(health_options, since, "since", 0, TEXT, NULL, 0, 0, "TIME",
             "Reports from then on, as 2026-01-31T10:00:00Z (else the last 6 h)"),
};

static const struct cli_column health_columns[] = {
    {"signal", "SIGNAL"},     {"pipeline", "PIPELINE"},      {"state", "DRIFT"},
    {"p_value", "P"},         {"statistic", "WHAT"},         {"value", "VALUE"},
    {"live_mean", "LIVE"},    {"baseline_mean", "TRAINING"}, {"n_drifted", "DRIFTED"},
    {"n_windows", "WINDOWS"}, {"model_version", "VERSION"},  {"began_ms", "SINCE"}};

static weir_status run_health(struct cli_call *call, struct weir_error *err)
{
    const struct health_options *options = call->options;
    json_t *answer;
    char *path = cli_path1(call, "/api/v1/ions/{}/drift?points=1", call->words[0]);
    if (options->pipeline != NULL) {
        char *more = cli_path1(call, "&pipeline={}", options->pipeline);
        path = weir_arena_printf(call->arena, "%s%s", path, more);
    }
    if (options->since != NULL) {
        char *more = cli_path1(call, "&since={}", options->since);
        path = weir_arena_printf(call->arena, "%s%s", path, more);
    }
    WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
    json_t *signals = json_object_get(answer, "signals");
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else if (json_array_size(signals) == 0) {
        printf("%s: no report yet: a window of values must end first\n", call->words[0]);
    } else {
        json_t *list = json_pack("{s:O}", "items", signals);
        cli_print_table(call, list, health_columns, WEIR_ARRAY_LEN(health_columns));
        json_decref(list);
    }
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_health = {
    .name = "health",
    .usage = "ION [--pipeline NAME] [--since TIME] [-o json]",
    .summary = "Show an ION's drift by signal, against what its model learned from",
    .help =
        "Signals that drift come first, then by p-value: how often a window like the last comes "
        "if nothing has changed. \"watch\" is a small p-value even among so many signals. -o "
        "json has the histograms too.",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(health_options, health_options),
    .run = run_health,
};

/* ---- model baseline -------------------------------------------------------------------------- */

struct baseline_options {
    struct cli_common common;
    char *file;
};

static const struct weir_option baseline_options[] = {
    CLI_COMMON_OPTIONS(baseline_options),
    WEIR_OPT(baseline_options, file, "file", 'f', TEXT, NULL, 0, 0, "FILE",
             "JSON to attach: {\"features\": {…}}"),
};

static weir_status run_baseline(struct cli_call *call, struct weir_error *err)
{
    const struct baseline_options *options = call->options;
    json_t *answer, *body = NULL;
    char *text;
    size_t len;
    const char *path =
        cli_path2(call, "/api/v1/models/{}/versions/{}/baseline", call->words[0], call->words[1]);
    if (options->file == NULL) {
        WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
        cli_print_json(json_object_get(answer, "baseline"));
        json_decref(answer);
        return WEIR_OK;
    }
    WEIR_TRY(cli_input_read(options->file, BASELINE_MAX_BYTES, call->arena, &text, &len, err));
    WEIR_TRY(weir_json_parse(text, len, options->file, &body, err));
    weir_status status = cli_rest(call, "PUT", path, body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("%s version %s: baseline attached\n", call->words[0], call->words[1]);
    }
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_model_baseline = {
    .name = "model baseline",
    .usage = "MODEL VERSION [-f FILE]",
    .summary = "Attach to a version what its training's features looked like, or show it",
    .help = "Windows of live values are compared with it: docs/reference/health.md. A version has "
            "one; attached again, it is replaced.",
    .min_words = 2,
    .max_words = 2,
    CLI_OPTIONS(baseline_options, baseline_options),
    .run = run_baseline,
};
