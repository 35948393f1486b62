/** weir statistics: what programs of an ION told about themselves. */
#include "cli/command.h"

struct statistics_options {
    struct cli_common common;
    int64_t limit;
};

static const struct weir_option statistics_options[] = {
    CLI_COMMON_OPTIONS(statistics_options),
    WEIR_OPT(statistics_options, limit, "limit", 'n', INT, "50", 1, 1000, "N",
             "The newest so many"),
};

static const struct cli_column statistic_columns[] = {{"time_ms", "TIME"},
                                                      {"pipeline", "PIPELINE"},
                                                      {"name", "NAME"},
                                                      {"kind", "KIND"},
                                                      {"value", "VALUE"}};

static weir_status run_statistics(struct cli_call *call, struct weir_error *err)
{
    const struct statistics_options *options = call->options;
    json_t *answer;
    const char *path =
        call->n_words == 2
            ? cli_path2(call, "/api/v1/ions/{}/statistics?name={}", call->words[0], call->words[1])
            : cli_path1(call, "/api/v1/ions/{}/statistics?", call->words[0]);
    WEIR_TRY(
        cli_rest(call, "GET",
                 weir_arena_printf(call->arena, "%s&limit=%lld", path, (long long)options->limit),
                 NULL, &answer, err));
    cli_print_table(call, answer, statistic_columns, WEIR_ARRAY_LEN(statistic_columns));
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_statistics = {
    .name = "statistics",
    .usage = "ION [NAME] [--limit N]",
    .summary = "Show what programs of an ION told about themselves",
    .help = "The newest first. Programs tell it by weir_mlops.h or weir_mlops.py.",
    .min_words = 1,
    .max_words = 2,
    CLI_OPTIONS(statistics_options, statistics_options),
    .run = run_statistics,
};
