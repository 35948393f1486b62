/** weir top: what is kept and what is used, now. */
#include "cli/command.h"

#include <string.h>

static const struct cli_column node_columns[] = {
    {"name", "NODE"},
    {"state", "STATE"},
    {"n_tasks", "TASKS"},
    {"cpu_slots", "CPUS"},
    {"cpus_used", "CPUS KEPT"},
    {"cpus_busy", "CPUS BUSY"},
    {"cpus_free", "CPUS FREE"},
    {"memory_bytes", "MEMORY"},
    {"memory_kept_bytes", "MEMORY KEPT"},
    {"memory_used_bytes", "MEMORY USED"},
    {"n_accelerators", "ACCELERATORS"},
    {"accelerators_used", "ACCELERATORS USED"},
};

static const struct cli_column job_columns[] = {
    {"id", "ID"},
    {"name", "NAME"},
    {"project", "PROJECT"},
    {"n_tasks", "TASKS"},
    {"cpus_used", "CPUS KEPT"},
    {"cpus_busy", "CPUS BUSY"},
    {"memory_kept_bytes", "MEMORY KEPT"},
    {"memory_used_bytes", "MEMORY USED"},
    {"accelerators_used", "ACCELERATORS"},
};

/* Busy processors have more digits than anybody wants. */
static void round_busy(json_t *list)
{
    const json_t *items = json_object_get(list, "items");
    json_t *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        const json_t *busy = json_object_get(item, "cpus_busy");
        if (json_is_number(busy)) {
            json_object_set_new(item, "cpus_busy", json_sprintf("%.2f", json_number_value(busy)));
        }
    }
}

static weir_status run_top(struct cli_call *call, struct weir_error *err)
{
    const char *what = call->n_words > 0 ? call->words[0] : "nodes";
    bool is_jobs = strcmp(what, "jobs") == 0;
    json_t *list;
    if (!is_jobs && strcmp(what, "nodes") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.40s\": weir top nodes, or weir top jobs",
                              what);
    }
    WEIR_TRY(cli_rest(call, "GET", is_jobs ? "/api/v1/top/jobs" : "/api/v1/nodes?limit=1000", NULL,
                      &list, err));
    if (!cli_is_json(call) && !cli_is_yaml(call)) {
        round_busy(list);
    }
    if (is_jobs) {
        cli_print_table(call, list, job_columns, WEIR_ARRAY_LEN(job_columns));
    } else {
        cli_print_table(call, list, node_columns, WEIR_ARRAY_LEN(node_columns));
    }
    json_decref(list);
    return WEIR_OK;
}

const struct cli_command cli_top = {
    .name = "top",
    .usage = "[nodes|jobs] [-o wide|json|yaml]",
    .summary = "Show what is kept and what is used now, of nodes or of the jobs that run",
    .help = "KEPT is what tasks asked for, FREE what is left for tasks of whole CPUs. BUSY and "
            "USED is what the\ntasks use, as agents said it last (every 10 s, of older tasks every "
            "minute); \"-\": not yet of all that run.\nJobs that use most come first.",
    .flags = CLI_WIDE | CLI_YAML,
    CLI_WORDS(0, 1),
    CLI_PLAIN,
    .run = run_top,
};
