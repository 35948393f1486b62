/** weir node drain, resume, label, taint, token: nodes as people handle them. */
#include "cli/command.h"

#include "base/clock.h"
#include "base/quantity.h"

#include <string.h>

#define HOUR_MS ((int64_t)3600 * 1000)

struct node_options {
    struct cli_common common;
    bool is_evicting;
    char *node, *at, *span;
    int64_t hours;
};

static const struct weir_option plain_options[] = {CLI_COMMON_OPTIONS(node_options)};

static const struct weir_option drain_options[] = {
    CLI_COMMON_OPTIONS(node_options),
    WEIR_OPT(node_options, is_evicting, "evict", 0, BOOL, NULL, 0, 0, NULL,
             "What runs there saves what it has, stops, and goes on elsewhere"),
    WEIR_OPT(
        node_options, at, "at", 0, TEXT, NULL, 0, 0, "TIME",
        "Not now, but from this time on: 2026-01-31T10:00:00Z; until then nothing starts there "
        "that would not end before"),
    WEIR_OPT(node_options, span, "for", 0, TEXT, NULL, 0, 0, "SPAN",
             "It takes tasks again by itself after so long: 4h (else after `weir node resume`)"),
};

static const struct weir_option token_options[] = {
    CLI_COMMON_OPTIONS(node_options),
    WEIR_OPT(node_options, node, "node", 0, TEXT, NULL, 0, 0, "NAME",
             "The only node that may join with it (else any)"),
    WEIR_OPT(node_options, hours, "hours", 0, INT, "1", 1, 168, "N", "How long it is good"),
};

static void print_window(const struct cli_call *call, const json_t *node)
{
    bool has_end = json_is_string(json_object_get(node, "closed_until_ms"));
    if (json_is_string(json_object_get(node, "closed_from_ms"))) {
        printf("; closed from %s until %s", cli_text(call, node, "closed_from_ms"),
               has_end ? cli_text(call, node, "closed_until_ms") : "it is resumed");
    }
    printf("\n");
}

/* Change the node and print what became of it. Takes the reference. */
static weir_status change_node(struct cli_call *call, json_t *change, struct weir_error *err)
{
    json_t *answer;
    weir_status status = cli_rest(
        call, "PATCH", cli_path1(call, "/api/v1/nodes/{}", call->words[0]), change, &answer, err);
    json_decref(change);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        bool is_draining = json_is_true(json_object_get(answer, "is_draining"));
        printf("%s: %s, %s; labels %s, taints %s", call->words[0], cli_text(call, answer, "state"),
               is_draining ? "takes no new tasks" : "not draining",
               cli_text(call, answer, "labels"), cli_text(call, answer, "taints"));
        print_window(call, answer);
    }
    json_decref(answer);
    return WEIR_OK;
}

/* {"closed_from_ms", "closed_until_ms"} of --at and --for. */
static weir_status read_window(const struct node_options *options, json_t **out,
                               struct weir_error *err)
{
    int64_t from_ms = weir_time_ms(), span_ms = 0;
    char from[WEIR_TIME_TEXT_BYTES], until[WEIR_TIME_TEXT_BYTES];
    if (options->is_evicting) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "--evict with --at or --for: what runs when the window begins goes on; "
            "`weir node drain --evict` then");
    }
    if (options->at != NULL && weir_time_parse(options->at, &from_ms) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--at %.40s: expected a time like 2026-01-31T10:00:00Z", options->at);
    }
    if (options->span != NULL && (!weir_span_parse(options->span, &span_ms) || span_ms <= 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--for %.40s: expected a span, as in 30m, 4h or 2d", options->span);
    }
    weir_time_format(from_ms, from);
    weir_time_format(from_ms + span_ms, until);
    *out = json_pack("{s:s,s:s?}", "closed_from_ms", from, "closed_until_ms",
                     span_ms > 0 ? until : NULL);
    return WEIR_OK;
}

static weir_status run_drain(struct cli_call *call, struct weir_error *err)
{
    const struct node_options *options = call->options;
    json_t *window = NULL;
    if (options->at != NULL || options->span != NULL) {
        WEIR_TRY(read_window(options, &window, err));
        return change_node(call, window, err);
    }
    json_t *change = json_pack("{s:b}", "is_draining", true);
    if (options->is_evicting) {
        json_object_set_new(change, "evict", json_true());
    }
    return change_node(call, change, err);
}

static weir_status run_resume(struct cli_call *call, struct weir_error *err)
{
    return change_node(call, json_pack("{s:b}", "is_draining", false), err);
}

/* KEY=VALUE sets a label, KEY- takes it away. */
static weir_status run_label(struct cli_call *call, struct weir_error *err)
{
    json_t *labels = json_object();
    for (size_t i = 1; i < call->n_words; i++) {
        const char *word = call->words[i], *equals = strchr(word, '=');
        size_t len = strlen(word);
        if (equals != NULL) {
            char *key = weir_arena_memdup(call->arena, word, (size_t)(equals - word));
            json_object_set_new(labels, key, json_string(equals + 1));
        } else if (len > 1 && word[len - 1] == '-') {
            char *key = weir_arena_memdup(call->arena, word, len - 1);
            json_object_set_new(labels, key, json_null());
        } else {
            json_decref(labels);
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "\"%.80s\": expected KEY=VALUE, or KEY- to take it away", word);
        }
    }
    return change_node(call, json_pack("{s:o}", "labels", labels), err);
}

/* KEY[=VALUE]:EFFECT sets a taint, KEY- takes it away. */
static weir_status run_taint(struct cli_call *call, struct weir_error *err)
{
    json_t *taints = json_object();
    for (size_t i = 1; i < call->n_words; i++) {
        const char *word = call->words[i], *colon = strrchr(word, ':');
        size_t len = strlen(word);
        if (colon != NULL) {
            char *mark = weir_arena_memdup(call->arena, word, (size_t)(colon - word));
            char *value = strchr(mark, '=');
            if (value != NULL) {
                *value++ = '\0';
            }
            json_object_set_new(
                taints, mark,
                json_pack("{s:s,s:s}", "value", value != NULL ? value : "", "effect", colon + 1));
        } else if (len > 1 && word[len - 1] == '-') {
            char *key = weir_arena_memdup(call->arena, word, len - 1);
            json_object_set_new(taints, key, json_null());
        } else {
            json_decref(taints);
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "\"%.80s\": expected KEY=VALUE:NoSchedule, or KEY- to take it away", word);
        }
    }
    return change_node(call, json_pack("{s:o}", "taints", taints), err);
}

static weir_status run_token(struct cli_call *call, struct weir_error *err)
{
    const struct node_options *options = call->options;
    json_t *answer, *body = json_pack("{s:s*,s:I}", "node", options->node, "expires_ms",
                                      (json_int_t)(weir_time_ms() + options->hours * HOUR_MS));
    weir_status status = cli_rest(call, "POST", "/api/v1/node-joins", body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("weir node join %s %s\n", weir_client_server(call->client),
               cli_text(call, answer, "secret"));
        (void)fprintf(
            stderr,
            "Run this on the machine that is to join, with an address of this server that "
            "it can reach; it works once, until %s.\n",
            cli_text(call, answer, "expires_ms"));
    }
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_node_drain = {
    .name = "node drain",
    .usage = "NAME [--at TIME] [--for SPAN] [--evict]",
    .summary = "Give a node no new tasks, now or from a time on; what runs there goes on",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(node_options, drain_options),
    .run = run_drain,
};

const struct cli_command cli_node_resume = {
    .name = "node resume",
    .usage = "NAME",
    .summary = "Let a drained node take tasks again; its maintenance window, if any, is off",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(node_options, plain_options),
    .run = run_resume,
};

const struct cli_command cli_node_label = {
    .name = "node label",
    .usage = "NAME KEY=VALUE… KEY-…",
    .summary = "Set labels of a node, or take them away (KEY-)",
    .min_words = 2,
    .max_words = 65,
    CLI_OPTIONS(node_options, plain_options),
    .run = run_label,
};

const struct cli_command cli_node_taint = {
    .name = "node taint",
    .usage = "NAME KEY[=VALUE]:NoSchedule… KEY-…",
    .summary = "Set taints of a node, or take them away (KEY-): with one it takes no tasks",
    .min_words = 2,
    .max_words = 65,
    CLI_OPTIONS(node_options, plain_options),
    .run = run_taint,
};

const struct cli_command cli_node_token = {
    .name = "node token",
    .usage = "[--node NAME] [--hours N]",
    .summary = "Make a one-time token, and print the command by which a machine joins",
    .min_words = 0,
    .max_words = 0,
    CLI_OPTIONS(node_options, token_options),
    .run = run_token,
};
