/** weir node drain, resume, label, taint, token: nodes as people handle them. */
#include "cli/verb.h"

#include "base/clock.h"

#include <string.h>

#define HOUR_MS ((int64_t)3600 * 1000)

struct node_options {
    struct cli_common common;
    bool is_evicting;
    char *node;
    int64_t hours;
};

static const struct weir_option drain_options[] = {
    CLI_COMMON_OPTIONS(node_options),
    WEIR_OPT(node_options, is_evicting, "evict", 0, BOOL, NULL, 0, 0, NULL,
             "What runs there saves what it has, stops, and goes on elsewhere"),
};

static const struct weir_option token_options[] = {
    CLI_COMMON_OPTIONS(node_options),
    WEIR_OPT(node_options, node, "node", 0, TEXT, NULL, 0, 0, "NAME",
             "The only node that may join with it (else any)"),
    WEIR_OPT(node_options, hours, "hours", 0, INT, "1", 1, 168, "N", "How long it is good"),
};

#define NODE_SAYS                                                                                  \
    "{0}: {state}, {is_draining?takes no new tasks|not draining}; labels {labels}, taints "        \
    "{taints}"

static weir_status take_evict(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct node_options *options = call->options;
    (void)err;
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

static weir_status take_hours(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct node_options *options = call->options;
    (void)err;
    json_object_set_new(body, "expires_ms",
                        json_integer(weir_time_ms() + options->hours * HOUR_MS));
    return WEIR_OK;
}

static void print_token(struct cli_call *call, const json_t *answer)
{
    printf("weir node join %s %s\n", weir_client_server(call->client),
           cli_text(call, answer, "secret"));
}

const struct cli_command cli_node_drain = {
    .name = "node drain",
    .usage = "NAME",
    .summary = "Give a node no new tasks; what runs there goes on",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(node_options, drain_options),
    CLI_VERBS({.prepare = take_evict,
               .call = "PATCH /api/v1/nodes/{0}",
               .body = "is_draining=true",
               .say = NODE_SAYS}),
};

const struct cli_command cli_node_resume = {
    .name = "node resume",
    .usage = "NAME",
    .summary = "Let a drained node take tasks again",
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
    .usage = "[--node NAME] [--hours N]",
    .summary = "Make a one-time token, and print the command by which a machine joins",
    CLI_OPTIONS(node_options, token_options),
    CLI_VERBS({.prepare = take_hours,
               .call = "POST /api/v1/node-joins",
               .body = "-node",
               .print = print_token,
               .aside = "Run this on the machine that is to join, with an address of this server "
                        "that it can reach; it works once, until {expires_ms}."}),
};
