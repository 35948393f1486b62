/** weir explain: what members mean, why a job is as it is, and what kinds there are. */
#include "cli/admin/role.h"
#include "cli/core/document.h"
#include "cli/core/noun.h"
#include "cli/core/verb.h"

#include <string.h>

static const struct cli_column member_columns[] = {
    {"name", "MEMBER"}, {"type", "TYPE"}, {"description", "MEANING"}};

/* The members of a record, as the server's own document has them. */
static weir_status explain_noun(struct cli_call *call, const struct cli_noun *noun,
                                struct weir_error *err)
{
    json_t *document, *member;
    const char *name;
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/openapi.json", NULL, &document, err));
    const json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    char *schema = weir_arena_strdup(call->arena, noun->record->name); /* "model version" */
    for (char *p = schema; *p != '\0'; p++) {
        *p = *p == ' ' ? '_' : *p;
    }
    json_t *members = json_object_get(json_object_get(schemas, schema), "properties");
    json_t *list = json_array();
    json_object_foreach(members, name, member)
    {
        json_array_append_new(list, json_pack("{s:s,s:O?,s:O?}", "name", name, "type",
                                              json_object_get(member, "type"), "description",
                                              json_object_get(member, "description")));
    }
    if (!cli_is_json(call)) {
        printf("%s, as `weir get %s%s%s -o json` shows it%s%s:\n\n", noun->singular, noun->plural,
               noun->of != NULL ? " " : "", noun->of != NULL ? "NAME" : "",
               noun->filters[0] != '\0' ? "; its list is filtered by " : "", noun->filters);
    }
    json_t *answer = json_pack("{s:o}", "items", list);
    cli_print_table(call, answer, member_columns, WEIR_ARRAY_LEN(member_columns));
    json_decref(answer);
    json_decref(document);
    return WEIR_OK;
}

static const struct {
    const char *state, *meaning;
} job_states[] = {
    {"PENDING", "It waits for its turn and for nodes with room; `weir get nodes` lists them, `weir "
                "get jobs state=RUNNING` who has them."},
    {"STARTING", "Its tasks have nodes, and not all of them run yet."},
    {"RUNNING", "All its tasks have begun; `weir logs` shows what they write."},
    {"RESTARTING", "A task ended, and all start again when the back-off is over."},
    {"STOPPING", "Its tasks are told to end."},
    {"SUCCEEDED", "All its tasks ended well."},
    {"FAILED", "A task ended with an error. `weir logs` shows what it wrote, `weir job restart` "
               "begins it anew, `weir job resume` goes on with a training from its checkpoint."},
    {"CANCELLED", "Somebody cancelled it. `weir job resume` goes on with a training from its "
                  "checkpoint."},
};

static void print_start(struct cli_call *call, const json_t *why)
{
    printf("%s\n", cli_fill(call,
                            "{expected_start?It may start about {expected_start}{expected_latest?, "
                            "between {expected_earliest} and {expected_latest} by {expected_by} "
                            "runs of the like}.|When it may start is not known: nothing tells how "
                            "long what runs goes on.}",
                            NULL, why));
}

/* Since when and until when it waits, and with what it would not. */
static void print_wait(struct cli_call *call, const json_t *why)
{
    const json_t *help, *name;
    size_t i;
    if (!json_is_string(json_object_get(why, "code"))) {
        return;
    }
    printf("%s",
           cli_fill(call, "It waits in queue {queue} since {since}, behind {n_ahead} others of it",
                    NULL, why));
    json_array_foreach(json_object_get(why, "ahead"), i, name)
    {
        printf("%s%s", i == 0 ? ": " : ", ", json_string_value(name));
    }
    printf("%s.\n", i > 0 && json_integer_value(json_object_get(why, "n_ahead")) > (json_int_t)i
                        ? " …"
                        : "");
    if (json_is_true(json_object_get(why, "is_kept"))) {
        printf("Nothing of its queue has started or ended for long: what gets free is kept for it, "
               "whatever others send.\n");
    }
    printf("%s", cli_fill(call,
                          "{past_use?Queue {queue} has had {past_use}: of what is left over others "
                          "get more until it has not.\n|}",
                          NULL, why));
    print_start(call, why);
    json_array_foreach(json_object_get(why, "helps"), i, help)
    {
        printf("%s\n", cli_fill(call, "With {change}: {outcome}, {why}", NULL, help));
    }
}

/* Why a job is as it is, and what can be done. */
static weir_status explain_job(struct cli_call *call, const char *word, struct weir_error *err)
{
    json_t *job;
    WEIR_TRY(cli_noun_get(call, cli_noun_find("job"), word, &job, err));
    char *state = cli_text(call, job, "state");
    const char *meaning = "";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(job_states); i++) {
        if (strcmp(job_states[i].state, state) == 0) {
            meaning = job_states[i].meaning;
        }
    }
    json_t *why;
    weir_status status = cli_rest(
        call, "GET", cli_path1(call, "/api/v1/jobs/{}/explanation", cli_text(call, job, "id")),
        NULL, &why, err);
    json_decref(job);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        json_object_set_new(why, "meaning", json_string(meaning));
        cli_print_json(why);
    } else {
        bool has_reason = json_is_string(json_object_get(why, "why"));
        printf("%s is %s%s%s\n%s\n", cli_text(call, why, "name"), state, has_reason ? ": " : "",
               has_reason ? cli_text(call, why, "why") : "", meaning);
        print_wait(call, why);
    }
    json_decref(why);
    return WEIR_OK;
}

static const struct cli_column option_columns[] = {{"name", "OPTION"},
                                                   {"type", "TYPE"},
                                                   {"default", "DEFAULT"},
                                                   {"range", "RANGE"},
                                                   {"doc", "MEANING"}};
static const struct cli_column kind_columns[] = {{"name", "NAME"}, {"doc", "WHAT"}};

/* "1 to 9", "red, blue" or "required": what a value may be. */
static json_t *range_of(struct cli_call *call, const json_t *option)
{
    const json_t *words = json_object_get(option, "words"), *word;
    size_t i;
    char *text = NULL;
    if (json_is_true(json_object_get(option, "required"))) {
        return json_string("required");
    }
    if (json_object_get(option, "minimum") != NULL) {
        return json_sprintf("%s to %s", cli_text(call, option, "minimum"),
                            cli_text(call, option, "maximum"));
    }
    json_array_foreach(words, i, word)
    {
        text = text == NULL
                   ? weir_arena_strdup(call->arena, json_string_value(word))
                   : weir_arena_printf(call->arena, "%s, %s", text, json_string_value(word));
    }
    return text != NULL ? json_string(text) : json_null();
}

/* One kind: what it is, and its options. */
static void print_kind(struct cli_call *call, const json_t *kind)
{
    json_t *list = json_array(), *option;
    size_t i;
    if (cli_is_json(call)) {
        cli_print_json(kind);
        json_decref(list);
        return;
    }
    json_array_foreach(json_object_get(kind, "options"), i, option)
    {
        json_t *row = json_copy(option);
        json_object_set_new(row, "range", range_of(call, option));
        json_array_append_new(list, row);
    }
    bool is_planned = json_is_true(json_object_get(kind, "is_planned"));
    printf("%s\n", is_planned ? "Planned: not in this version." : cli_text(call, kind, "doc"));
    json_t *answer = json_pack("{s:o}", "items", list);
    if (json_array_size(list) > 0) {
        putchar('\n');
        cli_print_table(call, answer, option_columns, WEIR_ARRAY_LEN(option_columns));
    }
    json_decref(answer);
}

static bool is_text(const json_t *object, const char *member, const char *text)
{
    const char *value = json_string_value(json_object_get(object, member));
    return value != NULL && strcmp(value, text) == 0;
}

/* Adds the kinds of a noun ("source", "sources"; NULL: of any) that have this name (NULL: all). */
static void find_kinds(const json_t *all, const char *noun, const char *name, json_t *found)
{
    size_t i;
    json_t *kind;
    json_array_foreach(json_object_get(all, "items"), i, kind)
    {
        bool is_of_noun =
            noun == NULL || is_text(kind, "noun", noun) || is_text(kind, "plural", noun);
        if (is_of_noun && (name == NULL || is_text(kind, "name", name))) {
            json_array_append(found, kind);
        }
    }
}

static weir_status no_kind(const json_t *all, const char *noun, const char *name,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *others = json_array();
    find_kinds(all, noun, NULL, others);
    return json_array_size(others) == 0
               ? cli_noun_unknown(noun, err)
               : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "there is no %.40s \"%.40s\"; `weir explain "
                                "%.40s` lists them",
                                noun, name, noun);
}

/* What of a noun's kinds is asked for, or what of several things with one name is meant. */
static weir_status print_kinds(struct cli_call *call, const char *name, json_t *found,
                               struct weir_error *err)
{
    size_t n = json_array_size(found);
    const json_t *first = json_array_get(found, 0);
    if (n == 1 && name != NULL) {
        print_kind(call, first);
        return WEIR_OK;
    }
    if (name != NULL) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "\"%.40s\" is a %s and a %s: say `weir explain %s %s`", name,
            cli_text(call, first, "noun"), cli_text(call, json_array_get(found, 1), "noun"),
            cli_text(call, first, "noun"), name);
    }
    json_t *answer = json_pack("{s:O}", "items", found);
    cli_print_table(call, answer, kind_columns, WEIR_ARRAY_LEN(kind_columns));
    json_decref(answer);
    return WEIR_OK;
}

/* The kinds of a noun, or one of them; "command" alone is the kind of that name, whatever its noun. */
static weir_status explain_kinds(struct cli_call *call, const char *noun, const char *name,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *all = NULL;
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/kinds", NULL, &all, err));
    WEIR_AUTO(weir_json_auto_free) json_t *found = json_array();
    find_kinds(all, noun, name, found);
    bool is_bare = name == NULL && json_array_size(found) == 0;
    if (is_bare) {
        find_kinds(all, NULL, noun, found);
    }
    return json_array_size(found) == 0 ? no_kind(all, noun, name, err)
                                       : print_kinds(call, is_bare ? noun : name, found, err);
}

/* Is it one of those of which there are kinds, as the usage lists them? */
static bool has_kinds(const char *usage, const char *word)
{
    size_t len = strlen(word);
    const char *at = strstr(usage, word);
    while (at != NULL &&
           (at == usage || strchr(" |", at[-1]) == NULL || strchr(" |", at[len]) == NULL)) {
        at = strstr(at + 1, word);
    }
    return at != NULL;
}

/* A word that is no noun of the server's: a kind, or a word of the glossary, which needs no server. */
static weir_status explain_word(struct cli_call *call, const char *meaning, struct weir_error *err)
{
    const char *word = call->words[0];
    weir_status status = explain_kinds(call, word, call->n_words > 1 ? call->words[1] : NULL, err);
    if (status == WEIR_OK || meaning == NULL || has_kinds(call->command->usage, word)) {
        return status;
    }
    if (cli_is_json(call)) {
        json_t *answer = json_pack("{s:s}", "meaning", meaning);
        cli_print_json(answer);
        json_decref(answer);
    }
    return WEIR_OK;
}

static weir_status run_explain(struct cli_call *call, struct weir_error *err)
{
    const struct cli_noun *noun = cli_noun_find(call->words[0]);
    if (strcmp(call->words[0], "sources") == 0) {
        noun = NULL; /* their kinds are meant */
    }
    const char *meaning =
        call->n_words == 1 ? cli_document_meaning(call->arena, call->words[0]) : NULL;
    if (meaning != NULL && !cli_is_json(call)) {
        printf("%s\n%s", meaning, noun != NULL ? "\n" : "");
    }
    if (noun == NULL) {
        return explain_word(call, meaning, err);
    }
    if (call->n_words == 1 && strcmp(call->words[0], "roles") == 0) {
        return role_explain_all(call, err);
    }
    if (call->n_words == 1) {
        return explain_noun(call, noun, err);
    }
    if (strcmp(noun->singular, "job") != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "only a job can be explained by name; `weir describe %s %s` shows "
                              "this one",
                              noun->singular, call->words[1]);
    }
    return explain_job(call, call->words[1], err);
}

const struct cli_command cli_explain = {
    .name = "explain",
    .usage =
        "WORD | NOUN | roles | job JOB | "
        "source|sink|stage|door-kind|trigger|restart|policy|job-kind|driver|receiver|alert-action|"
        "sweep-method|sweep-parameter|proof|detector "
        "[KIND]",
    .summary = "Say what a word or the members of a record mean, why a job waits or failed, or "
               "what a kind is",
    .help =
        "weir explain candidate says what Weir means by that word: any word of docs/glossary.md; "
        "no server is needed.\n"
        "weir explain dataset says it of one that there are records of, and what its members "
        "mean.\n"
        "weir explain sources lists the sources of frames that there are, weir explain source "
        "http says\n"
        "what that one is and which options it takes; so for sinks, stages, triggers, restarts, "
        "policies,\njob-kinds, drivers, receivers, alert-actions, sweep-methods, "
        "sweep-parameters, proofs and detectors. weir explain roles\nshows what each role may, "
        "weir explain "
        "role what "
        "the members of one mean.",
    CLI_WORDS(1, 2),
    CLI_PLAIN,
    .run = run_explain,
};
