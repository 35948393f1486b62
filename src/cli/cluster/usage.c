/** weir usage: who had how much of the cluster. */
#include "cli/core/find.h"
#include "cli/core/verb.h"

#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#define CSV_MAX_BYTES ((size_t)16 << 20)

struct usage_options {
    struct cli_common common;
    char *by, *month, *from, *to, *project, *user, *job, *model;
    bool is_csv;
};

static const struct weir_option usage_options[] = {
    CLI_COMMON_OPTIONS(usage_options),
    WEIR_OPT(usage_options, by, "by", 0, TEXT, "project", 0, 0, "WHAT",
             "Added up by project, user, job, model, day, hour or cluster"),
    CLI_TEXT(usage_options, month, "month", 0, "YYYY-MM",
             "Of this month (else of the last 30 days)"),
    CLI_TEXT(usage_options, from, "from", 0, "TIME",
             "From this day or hour on: 2026-11-01, 2026-11-01T08:00:00Z"),
    CLI_TEXT(usage_options, to, "to", 0, "TIME", "Until before this one"),
    CLI_TEXT(usage_options, project, "project", 0, "NAME", "Of this project"),
    CLI_TEXT(usage_options, user, "user", 0, "NAME", "Of this user's jobs"),
    CLI_TEXT(usage_options, job, "job", 0, "ID", "Of this job, by its whole id"),
    CLI_TEXT(usage_options, model, "model", 0, "NAME", "Of this model of device"),
    CLI_FLAG(usage_options, is_csv, "csv", 0, "As CSV, in seconds"),
};

/* "2026-11" to its first day and that of the month after. */
static weir_status read_month(struct cli_call *call, struct usage_options *options,
                              struct weir_error *err)
{
    const char *month = options->month;
    char *end, *end_of_month;
    long year = strtol(month, &end, 10);
    long number = *end == '-' ? strtol(end + 1, &end_of_month, 10) : 0;
    if (end - month != 4 || number < 1 || number > 12 || *end_of_month != '\0' ||
        strlen(month) != sizeof "2026-11" - 1 || year < 1970) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--month %.20s: expected a year and a month, as in 2026-11", month);
    }
    options->from = weir_arena_printf(call->arena, "%04ld-%02ld-01", year, number);
    options->to = weir_arena_printf(call->arena, "%04ld-%02ld-01", number == 12 ? year + 1 : year,
                                    number == 12 ? 1 : number + 1);
    return WEIR_OK;
}

static weir_status print_csv(struct cli_call *call, const char *path, struct weir_error *err)
{
    int64_t next;
    WEIR_TRY(cli_connect(call, err));
    WEIR_AUTO(weir_buf_fini) struct weir_buf table;
    weir_buf_init(&table, CSV_MAX_BYTES);
    WEIR_TRY(weir_client_get_bytes(call->client, path, &table, &next, err));
    if (fwrite(table.data, 1, table.len, stdout) != table.len) {
        return weir_error_set(err, WEIR_ERR_IO, "cannot write the table");
    }
    return WEIR_OK;
}

static weir_status check_time(struct cli_call *call, struct usage_options *options,
                              struct weir_error *err)
{
    if (options->month != NULL && (options->from != NULL || options->to != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--month, or --from and --to");
    }
    return options->month != NULL ? read_month(call, options, err) : WEIR_OK;
}

/* Hours, to two decimals; what nobody knows is "-". */
static void put_hours(json_t *row, const char *member, const json_t *of)
{
    const json_t *value = json_object_get(of, member);
    json_object_set_new(row, member,
                        json_is_null(value)
                            ? json_string("-")
                            : json_sprintf("%.2f", json_number_value(value) / 3600));
}

static json_t *make_row(const json_t *item, const char *key)
{
    static const char *const hours[] = {"asked_device_s",   "given_device_s", "used_device_s",
                                        "unknown_device_s", "idle_device_s",  "borrowed_device_s",
                                        "given_cpu_s",      "node_s"};
    json_t *row = json_pack("{s:s}", "key", key);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(hours); i++) {
        put_hours(row, hours[i], item);
    }
    return row;
}

static const char *key_of(struct cli_call *call, const json_t *item)
{
    const char *key = json_string_value(json_object_get(item, "key"));
    const char *name = json_string_value(json_object_get(item, "name"));
    return name != NULL  ? weir_arena_printf(call->arena, "%s (%s)", name, cli_short_id(key))
           : key != NULL ? key
                         : "(none)";
}

static void print_table(struct cli_call *call, const json_t *answer)
{
    const struct usage_options *options = call->options;
    const struct cli_column columns[] = {{"key", weir_arena_printf(call->arena, "%s", options->by)},
                                         {"asked_device_s", "ASKED"},
                                         {"given_device_s", "GIVEN"},
                                         {"used_device_s", "USED"},
                                         {"unknown_device_s", "UNKNOWN"},
                                         {"idle_device_s", "IDLE"},
                                         {"borrowed_device_s", "BORROWED"},
                                         {"given_cpu_s", "CPU"},
                                         {"node_s", "NODES"}};
    bool is_by_cluster = strcmp(options->by, "cluster") == 0;
    const json_t *items = json_object_get(answer, "items"), *item;
    json_t *rows = json_array();
    size_t i;
    json_array_foreach(items, i, item)
    {
        json_array_append_new(rows, make_row(item, key_of(call, item)));
    }
    json_array_append_new(rows, make_row(json_object_get(answer, "total"), "in all"));
    printf("Hours of devices, and of CPUs, from %s until %s:\n",
           json_string_value(json_object_get(answer, "from")),
           json_string_value(json_object_get(answer, "to")));
    json_t *table = json_pack("{s:o}", "items", rows);
    cli_print_table(call, table, columns, WEIR_ARRAY_LEN(columns) - !is_by_cluster);
    json_decref(table);
}

static weir_status run_usage(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_verb show = {.call = "GET /api/v1/usage",
                                         .query = "-by -from -to -project -user -job -model",
                                         .print = print_table};
    struct usage_options *options = call->options;
    WEIR_TRY(check_time(call, options, err));
    return options->is_csv ? print_csv(call,
                                       weir_arena_printf(call->arena, "%s&format=csv",
                                                         cli_verb_path(call, &show, NULL)),
                                       err)
                           : cli_verb_run(call, &show, err);
}

const struct cli_command cli_usage = {
    .name = "usage",
    .usage = "[--by WHAT] [--month YYYY-MM] [--project NAME] [--csv] [-o json]",
    .summary = "Show who asked for, had and used how much of the cluster",
    CLI_OPTIONS(usage_options, usage_options),
    .run = run_usage,
};
