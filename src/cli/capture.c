/** weir snapshot create, export, import, delete: what an ION was over a span of time, as a file. */
#include "cli/command.h"

#include "base/clock.h"

#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 300000 /* One answer: all of the span is read and written first. */

static weir_status connect_patiently(struct cli_call *call, struct weir_error *err)
{
    WEIR_TRY(cli_connect(call, err));
    weir_client_set_timeout(call->client, PATIENCE_MS);
    return WEIR_OK;
}

static void print_snapshot(struct cli_call *call, const json_t *answer, const char *what)
{
    if (cli_is_json(call)) {
        cli_print_json(answer);
        return;
    }
    printf("snapshot/%s %s: ION %s from %s to %s, %s records, %.1f MB%s\n",
           cli_text(call, answer, "name"), what, cli_text(call, answer, "ion"),
           cli_text(call, answer, "from_ms"), cli_text(call, answer, "to_ms"),
           cli_text(call, answer, "n_rows"),
           (double)json_integer_value(json_object_get(answer, "bytes")) / 1e6,
           json_is_true(json_object_get(answer, "has_models")) ? ", with its models" : "");
}

/* ---- create ---------------------------------------------------------------------------------- */

struct create_options {
    struct cli_common common;
    char *from, *to, *name;
    bool models;
};

static const struct weir_option create_options[] = {
    CLI_COMMON_OPTIONS(create_options),
    WEIR_OPT(create_options, from, "from", 0, TEXT, NULL, 0, 0, "TIME",
             "Begin of the span, like 2026-01-31T12:00:00Z (else since the ION was made)"),
    WEIR_OPT(create_options, to, "to", 0, TEXT, NULL, 0, 0, "TIME", "Its end (else now)"),
    WEIR_OPT(create_options, name, "name", 0, TEXT, NULL, 0, 0, "NAME",
             "What to call it (else ION-DATE-TIME)"),
    WEIR_OPT(create_options, models, "models", 0, BOOL, NULL, 0, 0, NULL,
             "Put the models themselves in, not only what they are called"),
};

/* "door-20260131-120000", cut to a name's length. */
static char *name_of_now(struct cli_call *call, const char *ion)
{
    char when[WEIR_TIME_TEXT_BYTES];
    weir_time_format(weir_time_ms(), when);
    return weir_arena_printf(call->arena, "%.40s-%.4s%.2s%.2s-%.2s%.2s%.2s", ion, when, when + 5,
                             when + 8, when + 11, when + 14, when + 17);
}

static weir_status run_create(struct cli_call *call, struct weir_error *err)
{
    const struct create_options *options = call->options;
    const char *ion = call->words[0];
    WEIR_TRY(connect_patiently(call, err));
    json_t *answer;
    json_t *body =
        json_pack("{s:s,s:s,s:s*,s:s*,s:b}", "name",
                  options->name != NULL ? options->name : name_of_now(call, ion), "ion", ion,
                  "from", options->from, "to", options->to, "models", (int)options->models);
    weir_status status = cli_rest(call, "POST", "/api/v1/snapshots", body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    print_snapshot(call, answer, "taken");
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_snapshot_create = {
    .name = "snapshot create",
    .usage = "ION [--from TIME] [--to TIME] [--name NAME] [--models]",
    .summary = "Freeze what an ION was and did over a span of time",
    .help =
        "Rules of retention do not touch a snapshot, and the models that it refers to are kept.\n"
        "Secrets of the document are masked in it.",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(create_options, create_options),
    .run = run_create,
};

/* ---- export, import, delete ------------------------------------------------------------------ */

struct plain_options {
    struct cli_common common;
};

static const struct weir_option plain_options[] = {CLI_COMMON_OPTIONS(plain_options)};

static weir_status run_export(struct cli_call *call, struct weir_error *err)
{
    const char *name = call->words[0], *file = call->words[1];
    WEIR_TRY(connect_patiently(call, err));
    WEIR_TRY(weir_client_get_file(call->client,
                                  cli_path1(call, "/api/v1/snapshots/{}/export", name), file, err));
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:s}", "snapshot", name, "file", file));
    } else {
        printf("snapshot/%s is in %s\n", name, file);
    }
    return WEIR_OK;
}

const struct cli_command cli_snapshot_export = {
    .name = "snapshot export",
    .usage = "NAME FILE.tar",
    .summary = "Write a snapshot to a tar, with its tables as CSV and the sum of every file",
    .min_words = 2,
    .max_words = 2,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_export,
};

struct import_options {
    struct cli_common common;
    char *name, *project;
};

static const struct weir_option import_options[] = {
    CLI_COMMON_OPTIONS(import_options),
    WEIR_OPT(import_options, name, "name", 0, TEXT, NULL, 0, 0, "NAME",
             "What to call it here (else as it is called)"),
    WEIR_OPT(import_options, project, "project", 0, TEXT, NULL, 0, 0, "NAME",
             "Whose it is here (else your only project, or default)"),
};

static weir_status run_import(struct cli_call *call, struct weir_error *err)
{
    const struct import_options *options = call->options;
    char *path = weir_arena_strdup(call->arena, "/api/v1/snapshots/import?");
    if (options->name != NULL) {
        path = weir_arena_printf(call->arena, "%s%s&", path,
                                 cli_path1(call, "name={}", options->name));
    }
    if (options->project != NULL) {
        path = weir_arena_printf(call->arena, "%s%s&", path,
                                 cli_path1(call, "project={}", options->project));
    }
    json_t *answer;
    WEIR_TRY(connect_patiently(call, err));
    WEIR_TRY(weir_client_send_file(call->client, "POST", path, "application/x-tar", call->words[0],
                                   &answer, err));
    print_snapshot(call, answer, "imported");
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_snapshot_import = {
    .name = "snapshot import",
    .usage = "FILE.tar [--name NAME] [--project NAME]",
    .summary = "Take in a snapshot that was exported, here or elsewhere",
    .help = "Every sum is compared and every record read before it is kept.",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(import_options, import_options),
    .run = run_import,
};

static weir_status run_snapshot_delete(struct cli_call *call, struct weir_error *err)
{
    const char *name = call->words[0];
    WEIR_TRY(
        cli_rest(call, "DELETE", cli_path1(call, "/api/v1/snapshots/{}", name), NULL, NULL, err));
    if (cli_is_json(call)) {
        cli_print_change(
            json_pack("{s:s,s:s,s:b}", "noun", "snapshot", "name", name, "deleted", 1));
    } else {
        printf("snapshot/%s deleted\n", name);
    }
    return WEIR_OK;
}

const struct cli_command cli_snapshot_delete = {
    .name = "snapshot delete",
    .usage = "NAME",
    .summary = "Delete a snapshot; models that only it kept go with the next sweep",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_snapshot_delete,
};
