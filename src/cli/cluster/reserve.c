/** weir reserve: nodes kept for a project or a queue. */
#include "cli/command.h"

#include "base/clock.h"
#include "base/quantity.h"

#include <string.h>

struct reserve_options {
    struct cli_common common;
    char *nodes, *from, *span, *project, *queue;
    int64_t gpus, cpus;
};

static const struct weir_option reserve_options[] = {
    CLI_COMMON_OPTIONS(reserve_options),
    CLI_TEXT(reserve_options, nodes, "nodes", 0, "NODE,NODE…", "These nodes"),
    WEIR_OPT(reserve_options, gpus, "gpus", 0, INT, "0", 0, 10000000, "N",
             "The fewest nodes that have so many GPUs together"),
    WEIR_OPT(reserve_options, cpus, "cpus", 0, INT, "0", 0, 10000000, "N",
             "The fewest nodes that have so many CPUs together"),
    CLI_TEXT(reserve_options, from, "from", 0, "TIME",
             "When it begins: 2026-01-31T10:00:00Z (else now)"),
    CLI_TEXT(reserve_options, span, "for", 0, "SPAN", "How long: 4h, 2d"),
    CLI_TEXT(reserve_options, project, "project", 0, "NAME", "Whose jobs may have the nodes"),
    CLI_TEXT(reserve_options, queue, "queue", 0, "QUEUE",
             "The same for a queue and those below it"),
};

/* The span, as the two times that the server takes. */
static weir_status put_span(const struct reserve_options *options, json_t *body,
                            struct weir_error *err)
{
    int64_t from_ms = weir_time_ms(), span_ms;
    char from[WEIR_TIME_TEXT_BYTES], until[WEIR_TIME_TEXT_BYTES];
    if (options->from != NULL && weir_time_parse(options->from, &from_ms) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--from %.40s: expected a time like 2026-01-31T10:00:00Z",
                              options->from);
    }
    if (options->span == NULL || !weir_span_parse(options->span, &span_ms) || span_ms <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--for: expected how long, as in 30m, 4h or 2d");
    }
    weir_time_format(from_ms, from);
    weir_time_format(from_ms + span_ms, until);
    json_object_set_new(body, "from_ms", json_string(from));
    json_object_set_new(body, "until_ms", json_string(until));
    return WEIR_OK;
}

static weir_status run_reserve(struct cli_call *call, struct weir_error *err)
{
    const struct reserve_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s,s:s*,s:s*,s:I,s:I}", "name", call->words[0], "project",
                             options->project, "queue", options->queue, "gpus",
                             (json_int_t)options->gpus, "cpus", (json_int_t)options->cpus);
    WEIR_AUTO(weir_json_auto_free) json_t *made = NULL;
    WEIR_TRY(put_span(options, body, err));
    if (options->nodes != NULL) {
        json_object_set_new(body, "nodes", cli_list_of(options->nodes));
    }
    WEIR_TRY(cli_rest(call, "POST", "/api/v1/reservations", body, &made, err));
    bool is_of_project = options->project != NULL;
    const char *line =
        weir_arena_printf(call->arena, "%s: nodes %s for %s %s, from %s until %s", call->words[0],
                          cli_cell_text(call, made, "nodes"), is_of_project ? "project" : "queue",
                          is_of_project ? options->project : options->queue,
                          cli_text(call, made, "from_ms"), cli_text(call, made, "until_ms"));
    cli_print_said(call, made, line);
    return WEIR_OK;
}

const struct cli_command cli_reserve = {
    .name = "reserve",
    .usage =
        "NAME (--nodes NODES | --gpus N | --cpus N) [--from TIME] --for SPAN (--project NAME | "
        "--queue QUEUE)",
    .summary = "Keep nodes for the jobs of a project or a queue for a span of time",
    .help = "Nothing else starts there in the span, nor before it unless it is known to end in "
            "time; what "
            "runs goes on.\nIt gives room and no share: quotas and limits hold as ever. `weir get "
            "reservations` lists them, `weir delete\nreservation NAME` ends one.",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(reserve_options, reserve_options),
    .run = run_reserve,
};
