/** weir health, weir model baseline: drift of an ION by signal, and what a version learned from. */
#include "cli/core/input.h"
#include "cli/core/verb.h"

#define BASELINE_MAX_BYTES ((size_t)1 << 20)

struct health_options {
    struct cli_common common;
    char *pipeline, *since;
};

static const struct weir_option health_options[] = {
    CLI_COMMON_OPTIONS(health_options),
    CLI_TEXT(health_options, pipeline, "pipeline", 0, "NAME", "Signals of this pipeline only"),
    CLI_TEXT(health_options, since, "since", 0, "TIME",
             "Reports from then on, as 2026-01-31T10:00:00Z (else the last 6 h)"),
};

static const struct cli_column health_columns[] = {
    {"signal", "SIGNAL"},     {"pipeline", "PIPELINE"},      {"state", "DRIFT"},
    {"p_value", "P"},         {"statistic", "WHAT"},         {"value", "VALUE"},
    {"live_mean", "LIVE"},    {"baseline_mean", "TRAINING"}, {"n_drifted", "DRIFTED"},
    {"n_windows", "WINDOWS"}, {"model_version", "VERSION"},  {"began_ms", "SINCE"}};

static void print_health(struct cli_call *call, const json_t *answer)
{
    json_t *signals = json_object_get(answer, "signals");
    if (json_array_size(signals) == 0) {
        printf("%s: no report yet: a window of values must end first\n", call->words[0]);
        return;
    }
    json_t *list = json_pack("{s:O}", "items", signals);
    cli_print_table(call, list, health_columns, WEIR_ARRAY_LEN(health_columns));
    json_decref(list);
}

const struct cli_command cli_health = {
    .name = "health",
    .usage = "ION [--pipeline NAME] [--since TIME] [-o json]",
    .summary = "Show an ION's drift by signal, against what its model learned from",
    .help =
        "Signals that drift come first, then by p-value: how often a window like the last comes "
        "if nothing has changed. \"watch\" is a small p-value even among so many signals. -o "
        "json has the histograms too.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(health_options, health_options),
    CLI_VERBS({.call = "GET /api/v1/ions/{0}/drift?points=1",
               .query = "-pipeline -since",
               .print = print_health}),
};

/* ---- model baseline -------------------------------------------------------------------------- */

struct baseline_options {
    struct cli_common common;
    char *file;
};

static const struct weir_option baseline_options[] = {
    CLI_COMMON_OPTIONS(baseline_options),
    CLI_TEXT(baseline_options, file, "file", 'f', "FILE", "JSON to attach: {\"features\": {…}}"),
};

static weir_status run_baseline(struct cli_call *call, struct weir_error *err)
{
    const struct baseline_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL, *body = NULL;
    const char *path =
        cli_path2(call, "/api/v1/models/{}/versions/{}/baseline", call->words[0], call->words[1]);
    char *text;
    size_t len;
    if (options->file == NULL) {
        WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
        cli_print_json(json_object_get(answer, "baseline"));
        return WEIR_OK;
    }
    WEIR_TRY(cli_input_read(options->file, BASELINE_MAX_BYTES, call->arena, &text, &len, err));
    WEIR_TRY(weir_json_parse(text, len, options->file, &body, err));
    WEIR_TRY(cli_rest(call, "PUT", path, body, &answer, err));
    cli_print_said(call, answer, cli_fill(call, "{0} version {1}: baseline attached", NULL, NULL));
    return WEIR_OK;
}

const struct cli_command cli_model_baseline = {
    .name = "model baseline",
    .usage = "MODEL VERSION [-f FILE]",
    .summary = "Attach to a version what its training's features looked like, or show it",
    .help = "Windows of live values are compared with it: docs/reference/health.md. A version has "
            "one; attached again, it is replaced.",
    CLI_WORDS(2, 2),
    CLI_OPTIONS(baseline_options, baseline_options),
    .run = run_baseline,
};
