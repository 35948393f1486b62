/** weir snapshot create, export, import, delete: what an ION was over a span of time, as a file. */
#include "cli/core/input.h"
#include "cli/core/verb.h"

#include "base/clock.h"

#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_MS 300000 /* One answer: all of the span is read and written first. */

static weir_status connect_patiently(struct cli_call *call, struct weir_error *err)
{
    WEIR_TRY(cli_connect(call, err));
    weir_client_set_timeout(call->client, PATIENCE_MS);
    return WEIR_OK;
}

#define SNAPSHOT_SAYS(what)                                                                        \
    "snapshot/{name} " what ": ION {ion} from {from_ms} to {to_ms}, {n_rows} records, {bytes:MB} " \
    "MB{has_models?, with its models}"

/* ---- create ---------------------------------------------------------------------------------- */

struct create_options {
    struct cli_common common;
    char *from, *to, *name;
    bool models;
};

static const struct weir_option create_options[] = {
    CLI_COMMON_OPTIONS(create_options),
    CLI_TEXT(create_options, from, "from", 0, "TIME",
             "Begin of the span, like 2026-01-31T12:00:00Z (else since the ION was made)"),
    CLI_TEXT(create_options, to, "to", 0, "TIME", "Its end (else now)"),
    CLI_TEXT(create_options, name, "name", 0, "NAME", "What to call it (else ION-DATE-TIME)"),
    CLI_FLAG(create_options, models, "models", 0,
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

static weir_status take_name(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct create_options *options = call->options;
    const char *name = options->name != NULL ? options->name : name_of_now(call, call->words[0]);
    (void)err;
    json_object_set_new(body, "name", json_string(name));
    return WEIR_OK;
}

const struct cli_command cli_snapshot_create = {
    .name = "snapshot create",
    .usage = "ION [--from TIME] [--to TIME] [--name NAME] [--models]",
    .summary = "Freeze what an ION was and did over a span of time",
    .help =
        "Rules of retention do not touch a snapshot, and the models that it refers to are kept.\n"
        "Secrets of the document are masked in it.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(create_options, create_options),
    CLI_VERBS({.prepare = take_name,
               .call = "POST /api/v1/snapshots",
               .body = "ion=0 -from -to -models",
               .patience_ms = PATIENCE_MS,
               .say = SNAPSHOT_SAYS("taken")}),
};

/* ---- replay ---------------------------------------------------------------------------------- */

#define DOCUMENT_MAX_BYTES ((size_t)1 << 20)

struct replay_options {
    struct cli_common common;
    char *file, *confirm;
    int64_t revision, window;
    double false_alarm_rate, min_effect;
};

static const struct weir_option replay_options[] = {
    CLI_COMMON_OPTIONS(replay_options),
    CLI_TEXT(replay_options, file, "file", 'f', "FILE", "Document whose policies decide instead"),
    WEIR_OPT(replay_options, revision, "revision", 0, INT, "0", 0, 1e15, "N",
             "Revision of the ION whose policies decide instead (0: those that decided then)"),
    WEIR_OPT(replay_options, false_alarm_rate, "false-alarm-rate", 0, F64, "0", 0, 0.2, "RATE",
             "Of drift, per window (0: as in service)"),
    WEIR_OPT(replay_options, min_effect, "min-effect", 0, F64, "0", -1, 100, "W",
             "Least effect of drift (0: as in service)"),
    WEIR_OPT(replay_options, window, "window", 0, INT, "0", 0, 100000, "N",
             "Values in a window (0: as in service)"),
    CLI_TEXT(replay_options, confirm, "confirm", 0, "K/N",
             "Windows of the last N that must differ"),
};

static weir_status put_document(struct cli_call *call, const char *file, json_t *body,
                                struct weir_error *err)
{
    json_t *document;
    WEIR_TRY(cli_input_yaml(file, DOCUMENT_MAX_BYTES, false, call->arena, &document, err));
    json_object_set_new(body, "document", document);
    return WEIR_OK;
}

static weir_status replay_body(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct replay_options *options = call->options;
    if (options->file != NULL) {
        WEIR_TRY(put_document(call, options->file, body, err));
    }
    if (options->revision > 0) {
        json_object_set_new(body, "revision", json_integer(options->revision));
    }
    if (options->false_alarm_rate > 0) {
        json_object_set_new(body, "false_alarm_rate", json_real(options->false_alarm_rate));
    }
    if (options->min_effect != 0) {
        json_object_set_new(body, "min_effect", json_real(options->min_effect));
    }
    if (options->window > 0) {
        json_object_set_new(body, "window", json_integer(options->window));
    }
    if (options->confirm != NULL) {
        char *rest;
        long k = strtol(options->confirm, &rest, 10);
        long n = *rest == '/' ? strtol(rest + 1, &rest, 10) : 0;
        if (*rest != '\0' || k < 1 || n < k || n > 32) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "--confirm %.40s: expected K/N, such as 2/3", options->confirm);
        }
        json_object_set_new(body, "confirm_k", json_integer(k));
        json_object_set_new(body, "confirm_n", json_integer(n));
    }
    return WEIR_OK;
}

/* What differs, a line each: what was decided, what would have been, and why. */
static void print_differences(struct cli_call *call, const json_t *list, const char *const *names)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        if (!json_is_true(json_object_get(one, "differs"))) {
            continue;
        }
        for (size_t k = 0; names[k] != NULL; k++) {
            printf("%s%s", k > 0 ? " " : "  ", cli_text(call, one, names[k]));
        }
        printf(": %s, replayed %s (%s)\n", cli_text(call, one, "recorded.verdict"),
               cli_text(call, one, "replayed.verdict"), cli_text(call, one, "why"));
    }
}

#define SIGNAL_SAYS                                                                                \
    "drift of {signal} in {pipeline}, version {model_version}: alarm {recorded_alarm}, replayed "  \
    "{replayed_alarm}{why?: {why}}"

/* Each replica watches for itself: what is the same of several is said once. */
static void print_signals(struct cli_call *call, const json_t *signals)
{
    json_t *counts = json_object(), *signal, *n;
    const char *line;
    size_t i;
    json_array_foreach(signals, i, signal)
    {
        line = cli_fill(call, SIGNAL_SAYS, NULL, signal);
        json_int_t before = json_integer_value(json_object_get(counts, line));
        json_object_set_new(counts, line, json_integer(before + 1));
    }
    json_object_foreach(counts, line, n)
    {
        json_int_t n_replicas = json_integer_value(n);
        printf("%s", line);
        if (n_replicas > 1) {
            printf(" (%lld replicas)", (long long)n_replicas);
        }
        putchar('\n');
    }
    json_decref(counts);
}

static void print_replay(struct cli_call *call, const json_t *answer)
{
    static const char *const of_decision[] = {"time_ms", "link", "version", "policy", NULL};
    static const char *const of_candidate[] = {"link", "version", NULL};
    const json_t *policies = json_object_get(answer, "policies");
    printf("%s\n",
           cli_fill(call,
                    "policy decisions: {n}, the same {n_same}, said otherwise {n_reworded}, "
                    "decided otherwise {n_differ}, by hand {n_by_hand}",
                    NULL, policies));
    print_differences(call, json_object_get(policies, "decisions"), of_decision);
    if (json_array_size(json_object_get(answer, "candidates")) > 0) {
        printf("versions:\n");
        print_differences(call, json_object_get(answer, "candidates"), of_candidate);
    }
    print_signals(call, json_object_get(json_object_get(answer, "drift"), "signals"));
    printf("%s\n", json_is_true(json_object_get(answer, "is_same"))
                       ? "Nothing would have been decided otherwise."
                       : "Something would have been decided otherwise.");
}

const struct cli_command cli_snapshot_replay = {
    .name = "snapshot replay",
    .usage = "NAME [--file FILE | --revision N] [--false-alarm-rate RATE] [--confirm K/N] …",
    .summary = "What would have been decided, by other policies or with other thresholds?",
    .help =
        "Every policy decision of the span is made again from what its policy looked at then, and\n"
        "scores and brightness of the decisions go through the detector of drift. Without options\n"
        "the policies are those that decided: then every decision is the same.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(replay_options, replay_options),
    CLI_VERBS({.prepare = replay_body,
               .call = "POST /api/v1/snapshots/{0}/replay",
               .body = "",
               .patience_ms = PATIENCE_MS,
               .print = print_replay}),
};

/* ---- export, import, delete ------------------------------------------------------------------ */

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
    CLI_WORDS(2, 2),
    CLI_PLAIN,
    .run = run_export,
};

struct import_options {
    struct cli_common common;
    char *name, *project;
};

static const struct weir_option import_options[] = {
    CLI_COMMON_OPTIONS(import_options),
    CLI_TEXT(import_options, name, "name", 0, "NAME",
             "What to call it here (else as it is called)"),
    CLI_TEXT(import_options, project, "project", 0, "NAME",
             "Whose it is here (else your only project, or default)"),
};

static weir_status run_import(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_verb import = {.call = "POST /api/v1/snapshots/import",
                                           .query = "-name -project"};
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    WEIR_TRY(connect_patiently(call, err));
    WEIR_TRY(weir_client_send_file(call->client, "POST", cli_verb_path(call, &import, NULL),
                                   "application/x-tar", call->words[0], &answer, err));
    cli_print_said(call, answer, cli_fill(call, SNAPSHOT_SAYS("imported"), NULL, answer));
    return WEIR_OK;
}

const struct cli_command cli_snapshot_import = {
    .name = "snapshot import",
    .usage = "FILE.tar [--name NAME] [--project NAME]",
    .summary = "Take in a snapshot that was exported, here or elsewhere",
    .help = "Every sum is compared and every record read before it is kept.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(import_options, import_options),
    .run = run_import,
};

const struct cli_command cli_snapshot_delete = {
    .name = "snapshot delete",
    .usage = "NAME",
    .summary = "Delete a snapshot; models that only it kept go with the next sweep",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.call = "DELETE /api/v1/snapshots/{0}",
               .say = "snapshot/{0} deleted",
               .gives = "noun='snapshot' name=0 deleted=true"}),
};
