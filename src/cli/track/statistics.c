/** weir statistics: what programs of an ION told about themselves. */
#include "cli/core/verb.h"

struct statistics_options {
    struct cli_common common;
    int64_t limit;
};

static const struct weir_option statistics_options[] = {
    CLI_COMMON_OPTIONS(statistics_options),
    WEIR_OPT(statistics_options, limit, "limit", 'n', INT, "50", 1, 1000, "N",
             "The newest so many"),
};

const struct cli_command cli_statistics = {
    .name = "statistics",
    .usage = "ION [NAME] [--limit N]",
    .summary = "Show what programs of an ION told about themselves",
    .help = "The newest first. Programs tell it by weir_mlops.h or weir_mlops.py.",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(statistics_options, statistics_options),
    CLI_VERBS({.call = "GET /api/v1/ions/{0}/statistics",
               .query = "name=1 -limit",
               CLI_COLUMNS({"time_ms", "TIME"}, {"pipeline", "PIPELINE"}, {"name", "NAME"},
                           {"kind", "KIND"}, {"value", "VALUE"})}),
};
