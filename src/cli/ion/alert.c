/** weir alert ack, resolve, silence, unsilence, test, receiver: who looks after what, and who is told. */
#include "cli/ion/alert.h"
#include "cli/core/input.h"

#include "base/clock.h"
#include "base/quantity.h"
#include "cli/core/verb.h"
#include "notify/receiver.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define TEST_WAIT_MS   20000
#define TEST_LOOK_MS   100

weir_status alert_read_file(struct cli_call *call, const char *path, json_t *into,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *object = NULL;
    WEIR_TRY(cli_input_yaml(path, FILE_MAX_BYTES, false, call->arena, &object, err));
    return json_object_update(into, object) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s: expected an object", path);
}

weir_status alert_name(struct cli_call *call, const json_t *body, const char *what,
                       struct weir_error *err)
{
    const char *own = json_string_value(json_object_get(body, "name"));
    char **words = WEIR_ARENA_ARRAY(call->arena, 2, char *);
    words[0] = call->words[0];
    words[1] = call->n_words > 1 ? call->words[1] : weir_arena_strdup(call->arena, own);
    call->words = words;
    call->n_words = 2;
    return words[1] != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "which %s? weir alert %s set NAME, or name in FILE", what, what);
}

void alert_put_list(struct cli_call *call, json_t *object, const char *member, const char *list)
{
    WEIR_AUTO(weir_json_auto_free) json_t *items = json_array();
    bool is_given = list != NULL;
    const char *word;
    while ((word = cli_next_word(call, &list)) != NULL) {
        if (word[0] != '\0') {
            json_array_append_new(items, json_string(word));
        }
    }
    if (json_array_size(items) > 0) {
        json_object_set(object, member, items);
    } else if (is_given) {
        json_object_del(object, member);
    }
}

weir_status alert_put_span(json_t *object, const char *member, const char *flag, const char *text,
                           struct weir_error *err)
{
    int64_t span_ms;
    if (text == NULL) {
        return WEIR_OK;
    }
    if (!weir_span_parse(text, &span_ms)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s %.40s: expected a time, as in 90s, 30m or 2h", flag, text);
    }
    json_object_set_new(object, member, json_integer((json_int_t)span_ms));
    return WEIR_OK;
}

/* ---- one alert ------------------------------------------------------------------------------- */

struct note_options {
    struct cli_common common;
    char *note;
};

static const struct weir_option note_options[] = {
    CLI_COMMON_OPTIONS(note_options),
    CLI_TEXT(note_options, note, "note", 0, "TEXT", "What others should know"),
};

const struct cli_command cli_alert_ack = {
    .name = "alert ack",
    .usage = "ALERT [--note TEXT]",
    .summary = "Say that you look after an alert: it is not escalated any more",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(note_options, note_options),
    CLI_VERBS({.of = "alert", .call = "POST /api/v1/alerts/{@}/acknowledge", .body = "-note"}),
};

const struct cli_command cli_alert_resolve = {
    .name = "alert resolve",
    .usage = "ALERT [--note TEXT]",
    .summary = "Say that an alert is over; one whose cause the server sees ends by itself",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(note_options, note_options),
    CLI_VERBS({.of = "alert", .call = "POST /api/v1/alerts/{@}/resolve", .body = "-note"}),
};

/* ---- silences -------------------------------------------------------------------------------- */

struct silence_options {
    struct cli_common common;
    char *span, *until, *kinds, *subjects, *severities, *note, *project;
};

static const struct weir_option silence_options[] = {
    CLI_COMMON_OPTIONS(silence_options),
    WEIR_OPT(silence_options, span, "for", 0, TEXT, "1h", 0, 0, "TIME", "How long: 30m, 8h, 2d"),
    CLI_TEXT(silence_options, until, "until", 0, "TIME",
             "Until then, in place of --for: 2026-11-26T08:00:00Z"),
    CLI_LIST(silence_options, kinds, "kind", 0, "KIND", "Alerts of this kind; may be repeated"),
    CLI_LIST(silence_options, subjects, "subject", 0, "PATTERN",
             "Alerts about this, as in ion/door*; may be repeated"),
    CLI_LIST(silence_options, severities, "severity", 0, "SEVERITY",
             "info, warning or critical; may be repeated"),
    CLI_TEXT(silence_options, project, "project", 0, "NAME", "Alerts of this project"),
    CLI_TEXT(silence_options, note, "note", 0, "TEXT", "Why"),
};

static weir_status read_silence(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct silence_options *options = call->options;
    int64_t span_ms;
    char until[WEIR_TIME_TEXT_BYTES];
    alert_put_list(call, body, "kinds", options->kinds);
    alert_put_list(call, body, "subjects", options->subjects);
    alert_put_list(call, body, "severities", options->severities);
    if (options->until != NULL) {
        json_object_set_new(body, "until_ms", json_string(options->until));
        return WEIR_OK;
    }
    if (!weir_span_parse(options->span, &span_ms)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--for %.40s: expected a time, as in 90s, 30m or 2h", options->span);
    }
    weir_time_format(weir_time_ms() + span_ms, until);
    json_object_set_new(body, "until_ms", json_string(until));
    return WEIR_OK;
}

const struct cli_command cli_alert_silence = {
    .name = "alert silence",
    .usage =
        "[ALERT] [--kind KIND …] [--subject PATTERN …] [--severity SEVERITY …] [--project NAME] "
        "[--for TIME | --until TIME] [--note TEXT]",
    .summary = "Hold alerts back until a time: nobody is told of them",
    CLI_WORDS(0, 1),
    CLI_OPTIONS(silence_options, silence_options),
    CLI_VERBS({.prepare = read_silence,
               .of = "alert",
               .call = "POST /api/v1/alert-silences",
               .body = "alert=@ -note -project"}),
};

const struct cli_command cli_alert_unsilence = {
    .name = "alert unsilence",
    .usage = "SILENCE",
    .summary = "End a silence before its time (`weir get alert-silences` lists them)",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.of = "alert-silence",
               .call = "DELETE /api/v1/alert-silences/{@}",
               .say = "{@}: deleted",
               .gives = "name=@ deleted=true"}),
};

/* ---- receivers ------------------------------------------------------------------------------- */

/* Until the delivery is done, or for some time. */
static weir_status wait_for_delivery(struct cli_call *call, json_t **delivery,
                                     struct weir_error *err)
{
    int64_t until_ms = weir_mono_ms() + TEST_WAIT_MS;
    const char *id = weir_arena_strdup(call->arena, cli_text(call, *delivery, "id"));
    while (strcmp(cli_text(call, *delivery, "state"), "pending") == 0 &&
           json_is_null(json_object_get(*delivery, "error")) && weir_mono_ms() < until_ms) {
        json_t *now;
        const struct timespec pause = {.tv_nsec = TEST_LOOK_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
        WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/alert-deliveries/{}", id), NULL,
                          &now, err));
        json_decref(*delivery);
        *delivery = now;
    }
    return WEIR_OK;
}

static weir_status run_test(struct cli_call *call, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *delivery = NULL;
    WEIR_TRY(cli_rest(call, "POST",
                      cli_path1(call, "/api/v1/alert-receivers/{}/test", call->words[0]), NULL,
                      &delivery, err));
    WEIR_TRY(wait_for_delivery(call, &delivery, err));
    if (strcmp(cli_text(call, delivery, "state"), "sent") != 0) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s did not take it: %s", call->words[0],
                              cli_text(call, delivery, "error"));
    }
    cli_print_said(call, delivery, cli_fill(call, "{0} took the test {id}", NULL, delivery));
    return WEIR_OK;
}

const struct cli_command cli_alert_test = {
    .name = "alert test",
    .usage = "RECEIVER",
    .summary = "Send a test to a receiver of alerts, and say whether it took it",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_test,
};

struct receiver_options {
    struct cli_common common;
    char *file, *kind, *doc, *projects, *set;
};

static const struct weir_option receiver_options[] = {
    CLI_COMMON_OPTIONS(receiver_options),
    CLI_TEXT(receiver_options, file, "file", 'f', "FILE",
             "The receiver as YAML: {name, kind, options, projects, doc}"),
    CLI_TEXT(receiver_options, kind, "kind", 0, "KIND", "webhook, email or alertmanager"),
    CLI_TEXT(receiver_options, doc, "doc", 0, "TEXT", "What it is for"),
    CLI_LIST(receiver_options, projects, "project", 0, "NAME",
             "A project whose rules may use it (else all may); may be repeated"),
    CLI_LIST(receiver_options, set, "set", 0, "OPTION=VALUE",
             "An option of its kind (`weir explain receiver webhook`); may be repeated"),
};

/* An option that is a list grows with each. */
static weir_status set_option(struct cli_call *call, const char *kind_name, json_t *options,
                              char *word, struct weir_error *err)
{
    char *equals = strchr(word, '=');
    const struct weir_kind *kind = weir_registry_get(&weir_receiver_kinds, kind_name);
    if (equals == NULL || equals == word) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--set %.40s: expected OPTION=VALUE", word);
    }
    *equals = '\0';
    const struct weir_option *option =
        kind != NULL ? weir_options_find(kind->options, kind->n_options, word) : NULL;
    const char *key = option != NULL ? weir_option_key(option, call->arena) : word;
    if (option == NULL || option->type != WEIR_OPTION_TEXTS) {
        json_object_set_new(options, key, json_string(equals + 1));
        return WEIR_OK;
    }
    json_t *list = json_object_get(options, key);
    if (list == NULL) {
        list = json_array();
        json_object_set_new(options, key, list);
    }
    json_array_append_new(list, json_string(equals + 1));
    return WEIR_OK;
}

static weir_status set_options(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct receiver_options *given = call->options;
    json_t *options = json_object_get(body, "options");
    if (!json_is_object(options)) {
        options = json_object();
        json_object_set_new(body, "options", options);
    }
    const char *kind = json_string_value(json_object_get(body, "kind"));
    const char *rest = given->set;
    char *word;
    while ((word = cli_next_word(call, &rest)) != NULL) {
        WEIR_TRY(set_option(call, kind != NULL ? kind : "", options, word, err));
    }
    return WEIR_OK;
}

static weir_status read_receiver(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct receiver_options *options = call->options;
    if (options->file != NULL) {
        WEIR_TRY(alert_read_file(call, options->file, body, err));
    }
    WEIR_TRY(cli_members(call, "-kind -doc", NULL, body, err));
    alert_put_list(call, body, "projects", options->projects);
    WEIR_TRY(set_options(call, body, err));
    return alert_name(call, body, "receiver", err);
}

const struct cli_command cli_alert_receiver = {
    .name = "alert receiver",
    .usage = "set [NAME] [-f FILE] [--kind KIND] [--set OPTION=VALUE …] [--project NAME …] "
             "[--doc TEXT] | get [NAME] | delete NAME",
    .summary = "Say where messages about alerts can go: webhooks, e-mail, Alertmanager",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(receiver_options, receiver_options),
    CLI_VERBS(
        {"set", 1, 2, read_receiver, .call = "PUT /api/v1/alert-receivers/{1}", .body = ""},
        {"get", 1, 1, .lists = "alert-receivers"},
        {"get", 2, 2, .call = "GET /api/v1/alert-receivers/{1}"},
        {"delete", 2, 2, .call = "DELETE /api/v1/alert-receivers/{1}", CLI_DONE(1, "deleted")}),
};
