#include "cli/core/verb.h"

#include "cli/core/find.h"
#include "cli/core/hint.h"
#include "cli/core/noun.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 1000 /* records of a noun that has no pages */

/* ---- values ------------------------------------------------------------------------------------ */

static const struct weir_option *option_of(const struct cli_call *call, const char *name)
{
    return weir_options_find(call->command->options, call->command->n_options, name);
}

static const void *value_of(const struct cli_call *call, const struct weir_option *option)
{
    return (const char *)call->options + option->offset;
}

/* An array of the words of a LIST option. */
static json_t *words_of(struct cli_call *call, const char *list)
{
    json_t *items = json_array();
    const char *word;
    while ((word = cli_next_word(call, &list)) != NULL) {
        json_array_append_new(items, json_string(word));
    }
    return items;
}

/* A text that was given, as it was: a word, the identifier, an option; NULL: it is none, or was not given. */
static const char *given_text(const struct cli_call *call, const char *source, const char *key)
{
    const struct weir_option *option = source[0] == '-' ? option_of(call, source + 1) : NULL;
    if (option != NULL) {
        return option->type == WEIR_OPTION_TEXT ? *(char *const *)value_of(call, option) : NULL;
    }
    if (source[0] == '@') {
        return key;
    }
    size_t i = source[0] == '$' ? call->n_words - 1 : (size_t)strtoul(source, NULL, 10);
    bool is_word = source[0] == '$' || isdigit((unsigned char)source[0]);
    return is_word && i < call->n_words ? call->words[i] : NULL;
}

/* By its own type; NULL: it was not given. */
static json_t *option_json(struct cli_call *call, const struct weir_option *option)
{
    const void *value = value_of(call, option);
    switch (option->type) {
    case WEIR_OPTION_INT:
        return json_integer((json_int_t) * (const int64_t *)value);
    case WEIR_OPTION_F64:
        return json_real(*(const double *)value);
    case WEIR_OPTION_CPUS:
        return weir_json_milli(*(const int64_t *)value);
    case WEIR_OPTION_BOOL:
        return json_boolean(*(const bool *)value);
    case WEIR_OPTION_LIST:
        return *(char *const *)value != NULL ? words_of(call, *(char *const *)value) : NULL;
    default:
        return NULL;
    }
}

/* What a hole or the right side of a member names, as JSON: a new reference; NULL: it is not there, or no UTF-8. */
static json_t *source_json(struct cli_call *call, const char *source, const char *key,
                           const json_t *answer)
{
    const char *text = given_text(call, source, key);
    if (text != NULL) {
        return json_string(text);
    }
    if (source[0] == '-') {
        return option_json(call, option_of(call, source + 1));
    }
    if (source[0] == '#') {
        return json_integer(strtoll(call->words[strtoul(source + 1, NULL, 10)], NULL, 10));
    }
    for (; answer != NULL && *source != '\0'; source += strcspn(source, ".")) {
        source += *source == '.';
        answer =
            json_object_get(answer, weir_arena_memdup(call->arena, source, strcspn(source, ".")));
    }
    return answer != NULL ? json_incref((json_t *)answer) : NULL;
}

/* ---- templates --------------------------------------------------------------------------------- */

/* As people read it: words and options as they were given, members of the answer as cells show them. */
static const char *source_text(struct cli_call *call, const char *source, const char *key,
                               const json_t *answer)
{
    const char *text = given_text(call, source, key);
    if (text != NULL || source[0] == '@' || isdigit((unsigned char)source[0])) {
        return text != NULL ? text : "";
    }
    if (source[0] != '-') {
        return cli_text(call, answer, source);
    }
    WEIR_AUTO(weir_json_auto_free) json_t *value = source_json(call, source, key, answer);
    return value != NULL ? weir_json_text(value, call->arena) : "";
}

static bool holds(struct cli_call *call, const char *source, const char *wanted, const char *key,
                  const json_t *answer)
{
    if (wanted != NULL || given_text(call, source, key) != NULL) {
        return wanted == NULL || strcmp(source_text(call, source, key, answer), wanted) == 0;
    }
    WEIR_AUTO(weir_json_auto_free) json_t *value = source_json(call, source, key, answer);
    return value != NULL && !json_is_null(value) && !json_is_false(value);
}

static char *fill(struct cli_call *call, const char *pattern, const char *key, const json_t *answer,
                  bool is_path);

/* Length up to this character that stands in no hole, or all of it. */
static size_t len_to(const char *text, char wanted)
{
    size_t len = 0;
    for (int depth = 0; text[len] != '\0' && (text[len] != wanted || depth > 0); len++) {
        depth += text[len] == '{' ? 1 : text[len] == '}' ? -1 : 0;
    }
    return len;
}

/* What stands in one hole, between its braces. */
static const char *hole_text(struct cli_call *call, char *hole, const char *key,
                             const json_t *answer, bool is_path)
{
    char *yes = strchr(hole, '?');
    if (yes != NULL) {
        *yes++ = '\0';
        char *no = yes + len_to(yes, '|'), *wanted = strchr(hole, '=');
        if (*no != '\0') {
            *no++ = '\0';
        }
        if (wanted != NULL) {
            *wanted++ = '\0';
        }
        return fill(call, holds(call, hole, wanted, key, answer) ? yes : no, key, answer, is_path);
    }
    char *form = strchr(hole, ':');
    if (form != NULL) {
        *form++ = '\0';
    }
    const char *text = source_text(call, hole, key, answer);
    return is_path        ? cli_path1(call, "{}", text)
           : form == NULL ? text
           : strcmp(form, "short") == 0
               ? cli_short_id(text)
               : weir_arena_printf(call->arena, "%.1f", strtod(text, NULL) / 1e6);
}

static char *fill(struct cli_call *call, const char *pattern, const char *key, const json_t *answer,
                  bool is_path)
{
    char *text = weir_arena_strdup(call->arena, "");
    const char *open;
    while ((open = strchr(pattern, '{')) != NULL) {
        size_t len = len_to(open + 1, '}');
        char *hole = weir_arena_memdup(call->arena, open + 1, len);
        text = weir_arena_printf(call->arena, "%s%.*s%s", text, (int)(open - pattern), pattern,
                                 hole_text(call, hole, key, answer, is_path));
        pattern = open + 1 + len + (open[len + 1] == '}');
    }
    return weir_arena_printf(call->arena, "%s%s", text, pattern);
}

char *cli_fill(struct cli_call *call, const char *pattern, const char *key, const json_t *answer)
{
    return fill(call, pattern, key, answer, false);
}

/* ---- members ----------------------------------------------------------------------------------- */

/** One member of a list: "role=-as?" */
struct member {
    char *name, *source;
    bool is_nullable;
};

static struct member next_member(struct cli_call *call, const char **list)
{
    size_t len = strcspn(*list, " ");
    struct member member = {.name = weir_arena_memdup(call->arena, *list, len)};
    *list += len + ((*list)[len] == ' ');
    member.is_nullable = member.name[len - 1] == '?';
    member.name[len - member.is_nullable] = '\0';
    char *equals = strchr(member.name, '=');
    if (equals == NULL) { /* "-max-age" is the member max_age */
        member.source = member.name;
        member.name = weir_option_key(option_of(call, member.source + 1), call->arena);
        return member;
    }
    *equals = '\0';
    member.source = equals + 1;
    return member;
}

/* NULL: the source is none. */
static json_t *constant(const char *source)
{
    bool is_true = strcmp(source, "true") == 0;
    return is_true || strcmp(source, "false") == 0 ? json_boolean(is_true)
           : strcmp(source, "null") == 0           ? json_null()
           : source[0] == '\''                     ? json_stringn(source + 1, strlen(source) - 2)
                                                   : NULL;
}

weir_status cli_members(struct cli_call *call, const char *list, const char *key, json_t *object,
                        struct weir_error *err)
{
    while (*list != '\0') {
        const struct member member = next_member(call, &list);
        json_t *value = constant(member.source);
        value = value != NULL ? value : source_json(call, member.source, key, NULL);
        if (value == NULL && given_text(call, member.source, key) != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: it is no UTF-8 text", member.name);
        }
        value = value == NULL && member.is_nullable ? json_null() : value;
        if (value != NULL) {
            json_object_set_new(object, member.name, value);
        }
    }
    return WEIR_OK;
}

/* ---- one row ----------------------------------------------------------------------------------- */

char *cli_verb_path(struct cli_call *call, const struct cli_verb *verb, const char *key)
{
    char *path = fill(call, strchr(verb->call, ' ') + 1, key, NULL, true);
    const char *list = verb->query != NULL ? verb->query : "";
    while (*list != '\0') {
        const struct member member = next_member(call, &list);
        const char *text = given_text(call, member.source, key);
        WEIR_AUTO(weir_json_auto_free)
        json_t *value = text == NULL ? source_json(call, member.source, key, NULL) : NULL;
        if (text == NULL && (value == NULL || json_is_false(value))) {
            continue;
        }
        text = text != NULL          ? text
               : json_is_true(value) ? "1"
                                     : source_text(call, member.source, key, NULL);
        path =
            weir_arena_printf(call->arena, "%s%c%s=%s", path, strchr(path, '?') != NULL ? '&' : '?',
                              member.name, cli_path1(call, "{}", text));
    }
    return path;
}

static weir_status print_list(struct cli_call *call, const struct cli_verb *verb,
                              struct weir_error *err)
{
    const struct cli_noun *noun = cli_noun_find(verb->lists);
    const struct weir_option *option = option_of(call, "limit");
    int64_t limit = option != NULL   ? *(const int64_t *)value_of(call, option)
                    : noun->page > 0 ? noun->page
                                     : LIST_MAX;
    WEIR_AUTO(weir_json_auto_free) json_t *list = NULL;
    size_t n;
    WEIR_TRY(cli_noun_list(call, noun, NULL, NULL, 0, limit, &list, err));
    const struct cli_column *columns = cli_noun_columns(call, noun, &n);
    cli_print_table(call, list, columns, n);
    return WEIR_OK;
}

static void print_table(struct cli_call *call, const struct cli_verb *verb, const json_t *answer)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *list = verb->items != NULL
                       ? json_pack("{s:O}", "items", json_object_get(answer, verb->items))
                       : json_incref((json_t *)answer);
    cli_print_table(call, list, verb->columns, verb->n_columns);
}

static weir_status print_given(struct cli_call *call, const struct cli_verb *verb, const char *key,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *given = json_object();
    WEIR_TRY(cli_members(call, verb->gives, key, given, err));
    cli_print_json(given);
    return WEIR_OK;
}

/* What has come of it. */
static weir_status tell(struct cli_call *call, const struct cli_verb *verb, const char *key,
                        const json_t *answer, struct weir_error *err)
{
    bool has_text = verb->say != NULL || verb->print != NULL;
    if (verb->gives != NULL && cli_is_json(call)) {
        return print_given(call, verb, key, err);
    }
    bool is_whole = verb->gives == NULL && (cli_is_json(call) || cli_is_yaml(call));
    if (verb->columns != NULL) {
        print_table(call, verb, answer);
    } else if (verb->gives == NULL && (is_whole || !has_text)) {
        cli_print_object(call, answer);
    }
    if (is_whole) {
        return WEIR_OK;
    }
    if (verb->print != NULL) {
        verb->print(call, answer);
    }
    if (verb->say != NULL) {
        printf("%s\n", cli_fill(call, verb->say, key, answer));
    }
    if (verb->aside != NULL) {
        (void)fprintf(stderr, "%s\n", cli_fill(call, verb->aside, key, answer));
    }
    return WEIR_OK;
}

static weir_status make_body(struct cli_call *call, const struct cli_verb *verb, const char *key,
                             json_t *body, struct weir_error *err)
{
    return verb->body != NULL ? cli_members(call, verb->body, key, body, err) : WEIR_OK;
}

weir_status cli_verb_run(struct cli_call *call, const struct cli_verb *verb, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_object(), *answer = NULL;
    size_t i_of = verb->word != NULL ? 1 : 0;
    char *key = NULL;
    if (verb->run != NULL) {
        return verb->run(call, err);
    }
    if (verb->lists != NULL) {
        return print_list(call, verb, err);
    }
    if (verb->prepare != NULL) {
        WEIR_TRY(verb->prepare(call, body, err));
    }
    if (verb->of != NULL && i_of < call->n_words) {
        WEIR_TRY(cli_noun_key(call, cli_noun_find(verb->of), call->words[i_of], &key, err));
    }
    WEIR_TRY(make_body(call, verb, key, body, err));
    WEIR_TRY(cli_connect(call, err));
    if (verb->patience_ms > 0) {
        weir_client_set_timeout(call->client, verb->patience_ms);
    }
    const char *method = weir_arena_memdup(call->arena, verb->call, strcspn(verb->call, " "));
    WEIR_TRY(cli_rest(call, method, cli_verb_path(call, verb, key),
                      verb->body != NULL ? body : NULL, &answer, err));
    return tell(call, verb, key, answer, err);
}

/* ---- the rows of a command --------------------------------------------------------------------- */

weir_status cli_verbs_run(struct cli_call *call, struct weir_error *err)
{
    const struct cli_command *command = call->command;
    const char *word = call->n_words > 0 ? call->words[0] : "";
    for (size_t i = 0; i < command->n_verbs; i++) {
        const struct cli_verb *verb = &command->verbs[i];
        bool is_it = verb->word == NULL || strcmp(verb->word, word) == 0;
        bool has_words = call->n_words >= verb->min_words && call->n_words <= verb->max_words;
        if (is_it && (has_words || verb->max_words == 0)) {
            return cli_verb_run(call, verb, err);
        }
    }
    const char *say = cli_hint_second(command->name, word);
    return say != NULL
               ? weir_error_set(err, WEIR_ERR_INVALID, "there is no command \"%s %.40s\": say %s",
                                command->name, word, say)
               : weir_error_set(err, WEIR_ERR_INVALID, "usage: weir %s %s", command->name,
                                command->usage);
}
