/** weir alert rule set, get, delete: which alerts are told to whom, and what else is done. */
#include "cli/core/verb.h"
#include "cli/ion/alert.h"

#include <string.h>

struct rule_options {
    struct cli_common common;
    char *file, *project, *doc, *kinds, *subjects, *severities, *hold, *group_by, *group, *tell,
        *end, *escalate_after, *escalate_to, *actions, *act_every, *active;
};

static const struct weir_option rule_options[] = {
    CLI_COMMON_OPTIONS(rule_options),
    CLI_TEXT(rule_options, file, "file", 'f', "FILE", "The rule as YAML; flags change it"),
    CLI_TEXT(rule_options, project, "project", 0, "NAME",
             "Whose alerts (else those of all, and of the platform)"),
    CLI_TEXT(rule_options, doc, "doc", 0, "TEXT", "What it is for"),
    CLI_LIST(rule_options, kinds, "kind", 0, "KIND", "Alerts of this kind; may be repeated"),
    CLI_LIST(rule_options, subjects, "subject", 0, "PATTERN",
             "Alerts about this, as in ion/door*; may be repeated"),
    CLI_LIST(rule_options, severities, "severity", 0, "SEVERITY",
             "info, warning or critical; may be repeated"),
    CLI_TEXT(rule_options, hold, "hold", 0, "TIME", "Only those that have lasted so long: 5m"),
    CLI_TEXT(rule_options, group_by, "group-by", 0, "none|subject|rule", "What shares a message"),
    CLI_TEXT(rule_options, group, "group", 0, "TIME",
             "How long the first of a message waits for others"),
    CLI_LIST(rule_options, tell, "tell", 0, "RECEIVER", "Who is told; may be repeated"),
    CLI_TEXT(rule_options, end, "end", 0, "yes|no", "Tell them when it is over"),
    CLI_TEXT(rule_options, escalate_after, "escalate-after", 0, "TIME",
             "Tell others if nobody has acknowledged it so long after it was told; 0: never"),
    CLI_LIST(rule_options, escalate_to, "escalate-to", 0, "RECEIVER",
             "Who is told then; may be repeated"),
    CLI_LIST(rule_options, actions, "do", 0, "ACTION",
             "retrain, roll-back, default-model …, with options as in retrain:pipeline=training; "
             "may be repeated"),
    CLI_TEXT(rule_options, act_every, "act-every", 0, "TIME",
             "Least time between two times that it acts on one ION; 1h if never said"),
    CLI_TEXT(rule_options, active, "active", 0, "yes|no", "With no it does nothing"),
};

/* "retrain:pipeline=training,x=y" */
static weir_status read_action(char *word, json_t **out, struct weir_error *err)
{
    char *rest = strchr(word, ':'), *pair;
    if (rest != NULL) {
        *rest++ = '\0';
    }
    json_t *action = json_pack("{s:s}", "kind", word);
    while (rest != NULL && (pair = strsep(&rest, ",")) != NULL) {
        char *equals = strchr(pair, '=');
        if (equals == NULL || equals == pair) {
            json_decref(action);
            return weir_error_set(err, WEIR_ERR_INVALID, "--do %.40s: expected ACTION:OPTION=VALUE",
                                  word);
        }
        *equals = '\0';
        json_object_set_new(action, pair, json_string(equals + 1));
    }
    *out = action;
    return WEIR_OK;
}

static weir_status put_actions(struct cli_call *call, json_t *rule, const char *list,
                               struct weir_error *err)
{
    bool is_given = list != NULL;
    char *word;
    WEIR_AUTO(weir_json_auto_free) json_t *actions = json_array();
    while ((word = cli_next_word(call, &list)) != NULL) {
        json_t *action = NULL;
        if (word[0] != '\0') {
            WEIR_TRY(read_action(word, &action, err));
            json_array_append_new(actions, action);
        }
    }
    if (is_given) {
        json_object_set(rule, "actions", actions);
    }
    return WEIR_OK;
}

static weir_status put_flag(json_t *rule, const char *member, const char *flag, const char *text,
                            bool is_inverted, struct weir_error *err)
{
    if (text == NULL) {
        return WEIR_OK;
    }
    bool is_yes = strcmp(text, "yes") == 0;
    if (!is_yes && strcmp(text, "no") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s %.40s: expected yes or no", flag, text);
    }
    json_object_set_new(rule, member, json_boolean(is_yes != is_inverted));
    return WEIR_OK;
}

/* Times as people write them: {hold: 5m} is {hold_ms: 300000}. */
static weir_status read_times(struct cli_call *call, json_t *rule, struct weir_error *err)
{
    static const char *const names[][2] = {{"hold", "hold_ms"},
                                           {"group", "group_ms"},
                                           {"escalate_after", "escalate_ms"},
                                           {"act_every", "action_interval_ms"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        const json_t *value = json_object_get(rule, names[i][0]);
        if (value == NULL) {
            continue;
        }
        const char *text =
            json_is_string(value)
                ? json_string_value(value)
                : weir_arena_printf(call->arena, "%lld", (long long)json_integer_value(value));
        WEIR_TRY(alert_put_span(rule, names[i][1],
                                weir_arena_printf(call->arena, "$.%s:", names[i][0]), text, err));
        json_object_del(rule, names[i][0]);
    }
    return WEIR_OK;
}

static weir_status put_flags(struct cli_call *call, json_t *rule, struct weir_error *err)
{
    const struct rule_options *options = call->options;
    const char *const texts[][2] = {
        {"project", options->project}, {"doc", options->doc}, {"group_by", options->group_by}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        if (texts[i][1] != NULL) {
            bool is_none = texts[i][1][0] == '\0';
            json_object_set_new(rule, texts[i][0],
                                is_none ? json_null() : json_string(texts[i][1]));
        }
    }
    alert_put_list(call, rule, "kinds", options->kinds);
    alert_put_list(call, rule, "subjects", options->subjects);
    alert_put_list(call, rule, "severities", options->severities);
    alert_put_list(call, rule, "receivers", options->tell);
    alert_put_list(call, rule, "escalate_to", options->escalate_to);
    WEIR_TRY(put_actions(call, rule, options->actions, err));
    WEIR_TRY(put_flag(rule, "tells_end", "--end", options->end, false, err));
    WEIR_TRY(put_flag(rule, "is_disabled", "--active", options->active, true, err));
    WEIR_TRY(alert_put_span(rule, "hold_ms", "--hold", options->hold, err));
    WEIR_TRY(alert_put_span(rule, "group_ms", "--group", options->group, err));
    WEIR_TRY(alert_put_span(rule, "escalate_ms", "--escalate-after", options->escalate_after, err));
    WEIR_TRY(alert_put_span(rule, "action_interval_ms", "--act-every", options->act_every, err));
    bool never_escalates = options->escalate_after != NULL && options->escalate_to == NULL &&
                           json_integer_value(json_object_get(rule, "escalate_ms")) == 0;
    if (never_escalates) {
        json_object_del(rule, "escalate_to");
    }
    if (json_object_get(rule, "receivers") == NULL) {
        json_object_set_new(rule, "receivers", json_array());
    }
    return WEIR_OK;
}

/* The rule as it is, without what only the server says; nothing if there is none. */
static weir_status take_old(struct cli_call *call, json_t *rule, struct weir_error *err)
{
    static const char *const shown[] = {"created_by", "set_by", "created_ms", "updated_ms",
                                        "n_fired"};
    WEIR_AUTO(weir_json_auto_free) json_t *old = NULL;
    weir_status status = cli_rest(
        call, "GET", cli_path1(call, "/api/v1/alert-rules/{}", call->words[1]), NULL, &old, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK;
    }
    WEIR_TRY(status);
    json_object_update(rule, old);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(shown); i++) {
        json_object_del(rule, shown[i]);
    }
    return WEIR_OK;
}

static weir_status read_rule(struct cli_call *call, json_t *rule, struct weir_error *err)
{
    const struct rule_options *options = call->options;
    if (options->file != NULL) {
        WEIR_TRY(alert_read_file(call, options->file, rule, err));
        WEIR_TRY(read_times(call, rule, err));
    }
    WEIR_TRY(alert_name(call, rule, "rule", err));
    if (options->file == NULL) {
        WEIR_TRY(take_old(call, rule, err));
    }
    return put_flags(call, rule, err);
}

const struct cli_command cli_alert_rule = {
    .name = "alert rule",
    .usage = "set [NAME] [-f FILE] [--kind KIND …] [--subject PATTERN …] [--severity SEVERITY …] "
             "[--project NAME] [--tell RECEIVER …] [--hold TIME] [--group-by none|subject|rule] "
             "[--group TIME] [--end yes|no] [--escalate-after TIME --escalate-to RECEIVER …] "
             "[--do ACTION …] [--act-every TIME] [--active yes|no] [--doc TEXT] | get [NAME] | "
             "delete NAME",
    .summary = "Say which alerts are told to whom, and what else is done; what is not said stays",
    .help =
        "An empty text takes back what was said: --kind '' is alerts of any kind, --tell '' tells "
        "nobody,\n--do '' does nothing, --project '' is the platform's rule.",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(rule_options, rule_options),
    CLI_VERBS({"set", 1, 2, read_rule, .call = "PUT /api/v1/alert-rules/{1}", .body = ""},
              {"get", 1, 1, .lists = "alert-rules"},
              {"get", 2, 2, .call = "GET /api/v1/alert-rules/{1}"},
              {"delete", 2, 2, .call = "DELETE /api/v1/alert-rules/{1}", CLI_DONE(1, "deleted")}),
};
