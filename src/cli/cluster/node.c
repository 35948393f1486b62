/** weir node drain, resume, label, taint, token: nodes as people handle them. */
#include "cli/core/verb.h"

#include "base/clock.h"
#include "base/quantity.h"

#include <string.h>

#define HOUR_MS ((int64_t)3600 * 1000)

struct node_options {
    struct cli_common common;
    bool is_evicting;
    char *node, *at, *span;
    int64_t hours, n_nodes;
};

static const struct weir_option drain_options[] = {
    CLI_COMMON_OPTIONS(node_options),
    CLI_FLAG(node_options, is_evicting, "evict", 0,
             "What runs there saves what it has, stops, and goes on elsewhere"),
    CLI_TEXT(node_options, at, "at", 0, "TIME",
             "Not now, but from this time on: 2026-01-31T10:00:00Z; until then nothing starts "
             "there that would not end before"),
    CLI_TEXT(node_options, span, "for", 0, "SPAN",
             "It takes tasks again by itself after so long: 4h (else after `weir node resume`)"),
};

static const struct weir_option token_options[] = {
    CLI_COMMON_OPTIONS(node_options),
    CLI_TEXT(node_options, node, "node", 0, "NAME",
             "The only node that may join with it (else any)"),
    WEIR_OPT(node_options, n_nodes, "nodes", 0, INT, "1", 1, 4096, "N",
             "How many machines may join with it, each once"),
    WEIR_OPT(node_options, hours, "hours", 0, INT, "1", 1, 168, "N", "How long it is good"),
};

#define NODE_SAYS                                                                                  \
    "{0}: {state}, {is_draining?takes no new tasks|not draining}; labels {labels}, taints "        \
    "{taints}{closed_from_ms?; closed from {closed_from_ms} until "                                \
    "{closed_until_ms?{closed_until_ms}|it is resumed}|}"

/* {"closed_from_ms", "closed_until_ms"} of --at and --for. */
static weir_status put_window(const struct node_options *options, json_t *body,
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
    json_object_set_new(body, "closed_from_ms", json_string(from));
    json_object_set_new(body, "closed_until_ms", span_ms > 0 ? json_string(until) : json_null());
    return WEIR_OK;
}

static weir_status take_drain(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct node_options *options = call->options;
    if (options->at != NULL || options->span != NULL) {
        return put_window(options, body, err);
    }
    json_object_set_new(body, "is_draining", json_true());
    if (options->is_evicting) {
        json_object_set_new(body, "evict", json_true());
    }
    return WEIR_OK;
}

/* KEY=VALUE sets a label, KEY- takes it away. */
static weir_status read_labels(struct cli_call *call, json_t *body, struct weir_error *err)
{
    json_t *labels = json_object();
    json_object_set_new(body, "labels", labels);
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
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "\"%.80s\": expected KEY=VALUE, or KEY- to take it away", word);
        }
    }
    return WEIR_OK;
}

/* KEY[=VALUE]:EFFECT sets a taint, KEY- takes it away. */
static weir_status read_taints(struct cli_call *call, json_t *body, struct weir_error *err)
{
    json_t *taints = json_object();
    json_object_set_new(body, "taints", taints);
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
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "\"%.80s\": expected KEY=VALUE:NoSchedule, or KEY- to take it away", word);
        }
    }
    return WEIR_OK;
}

static weir_status take_token(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct node_options *options = call->options;
    (void)err;
    json_object_set_new(body, "expires_ms",
                        json_integer(weir_time_ms() + options->hours * HOUR_MS));
    json_object_set_new(body, "n_nodes", json_integer(options->n_nodes));
    return WEIR_OK;
}

static void print_token(struct cli_call *call, const json_t *answer)
{
    printf("weir node join %s %s\n", weir_client_server(call->client),
           cli_text(call, answer, "secret"));
}

const struct cli_command cli_node_drain = {
    .name = "node drain",
    .usage = "NAME [--at TIME] [--for SPAN] [--evict]",
    .summary = "Give a node no new tasks, now or from a time on; what runs there goes on",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(node_options, drain_options),
    CLI_VERBS(
        {.prepare = take_drain, .call = "PATCH /api/v1/nodes/{0}", .body = "", .say = NODE_SAYS}),
};

const struct cli_command cli_node_resume = {
    .name = "node resume",
    .usage = "NAME",
    .summary = "Let a drained node take tasks again; its maintenance window, if any, is off",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.call = "PATCH /api/v1/nodes/{0}", .body = "is_draining=false", .say = NODE_SAYS}),
};

const struct cli_command cli_node_label = {
    .name = "node label",
    .usage = "NAME KEY=VALUE… KEY-…",
    .summary = "Set labels of a node, or take them away (KEY-)",
    CLI_WORDS(2, 65),
    CLI_PLAIN,
    CLI_VERBS(
        {.prepare = read_labels, .call = "PATCH /api/v1/nodes/{0}", .body = "", .say = NODE_SAYS}),
};

const struct cli_command cli_node_taint = {
    .name = "node taint",
    .usage = "NAME KEY[=VALUE]:NoSchedule… KEY-…",
    .summary = "Set taints of a node, or take them away (KEY-): with one it takes no tasks",
    CLI_WORDS(2, 65),
    CLI_PLAIN,
    CLI_VERBS(
        {.prepare = read_taints, .call = "PATCH /api/v1/nodes/{0}", .body = "", .say = NODE_SAYS}),
};

const struct cli_command cli_node_token = {
    .name = "node token",
    .usage = "[--node NAME] [--nodes N] [--hours N]",
    .summary = "Make a token to join with, and print the command by which a machine joins",
    CLI_OPTIONS(node_options, token_options),
    CLI_VERBS({.prepare = take_token,
               .call = "POST /api/v1/node-joins",
               .body = "-node",
               .print = print_token,
               .aside = "Run this on the machine that is to join, with an address of this server "
                        "that it can reach; it works {n_nodes} times, until {expires_ms}."}),
};
