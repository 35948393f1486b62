/** weir model set, experiment set, runs set: descriptions, tags and stages. */
#include "cli/core/find.h"
#include "cli/core/verb.h"
#include "cli/track/model_name.h"

#include <string.h>

struct label_options {
    struct cli_common common;
    char *description, *tags, *untags, *stage, *project, *name;
    bool archives;
};

#define DESCRIPTION_OPTION                                                                         \
    CLI_TEXT(label_options, description, "description", 'd', "TEXT",                               \
             "What it is; an empty one takes it away")
#define TAG_OPTIONS                                                                                \
    CLI_LIST(label_options, tags, "tag", 't', "NAME=VALUE", "Set a tag; may be given again"),      \
        CLI_LIST(label_options, untags, "untag", 0, "NAME", "Take a tag away; may be given again")
#define NAME_OPTION CLI_TEXT(label_options, name, "name", 0, "NAME", "Another name")

static const struct weir_option model_options[] = {
    CLI_COMMON_OPTIONS(label_options),
    DESCRIPTION_OPTION,
    TAG_OPTIONS,
    CLI_TEXT(label_options, stage, "stage", 0, "STAGE",
             "Of a version: None, Staging, Production or Archived; changes nothing that runs"),
    CLI_FLAG(label_options, archives, "archive-others", 0,
             "The others of that stage become Archived"),
};

static const struct weir_option experiment_options[] = {
    CLI_COMMON_OPTIONS(label_options),
    DESCRIPTION_OPTION,
    TAG_OPTIONS,
    NAME_OPTION,
    CLI_TEXT(label_options, project, "project", 0, "NAME",
             "Where the experiment of that name is, if several projects have one"),
};

static const struct weir_option run_options[] = {
    CLI_COMMON_OPTIONS(label_options),
    DESCRIPTION_OPTION,
    TAG_OPTIONS,
    NAME_OPTION,
};

/* ---- what is sent ----------------------------------------------------------------------------- */

static weir_status add_tags(struct cli_call *call, json_t *tags, struct weir_error *err)
{
    const struct label_options *options = call->options;
    const char *tags_left = options->tags, *untags_left = options->untags;
    char *word;
    while ((word = cli_next_word(call, &tags_left)) != NULL) {
        char *equals = strchr(word, '=');
        if (word[0] == '\0') {
            continue;
        }
        if (equals == NULL || equals == word) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--tag %.80s: expected NAME=VALUE", word);
        }
        *equals = '\0';
        json_t *value = json_string(equals + 1);
        if (value == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--tag %.80s: the value is no UTF-8 text",
                                  word);
        }
        json_object_set_new(tags, word, value);
    }
    while ((word = cli_next_word(call, &untags_left)) != NULL) {
        if (word[0] != '\0') {
            json_object_set_new(tags, word, json_null());
        }
    }
    return WEIR_OK;
}

static weir_status set_text(json_t *change, const char *member, const char *text,
                            struct weir_error *err)
{
    return text == NULL || json_object_set_new(change, member, json_string(text)) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "--%s: it is no UTF-8 text", member);
}

/* The change that the options say, never an empty one. */
static weir_status read_change(struct cli_call *call, json_t *change, struct weir_error *err)
{
    const struct label_options *options = call->options;
    json_t *tags = json_object();
    json_object_set_new(change, "tags", tags);
    WEIR_TRY(add_tags(call, tags, err));
    if (json_object_size(tags) == 0) {
        (void)json_object_del(change, "tags");
    }
    if (options->description != NULL && options->description[0] == '\0') {
        json_object_set_new(change, "description", json_null());
    } else {
        WEIR_TRY(set_text(change, "description", options->description, err));
    }
    WEIR_TRY(set_text(change, "name", options->name, err));
    WEIR_TRY(set_text(change, "stage", options->stage, err));
    if (options->archives) {
        json_object_set_new(change, "archive_others", json_true());
    }
    return json_object_size(change) > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "nothing is said to change: give --description, --tag or --untag; "
                                "`weir %s --help` lists the others",
                                call->command->name);
}

/* ---- of what ---------------------------------------------------------------------------------- */

static weir_status run_model_set(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_verb model = {.prepare = read_change,
                                          .call = "PATCH /api/v1/models/{0}",
                                          .body = "",
                                          .say = "{0}: changed"};
    static const struct cli_verb of_version = {.prepare = read_change,
                                               .call = "PATCH /api/v1/models/{0}/versions/{1}",
                                               .body = "",
                                               .say = "{0} version {1}: changed"};
    const struct label_options *options = call->options;
    bool is_version;
    WEIR_TRY(cli_model_words(call, &is_version, err));
    if (!is_version && (options->stage != NULL || options->archives)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a stage is of a version: name it, as %.60s@v3", call->words[0]);
    }
    return cli_verb_run(call, is_version ? &of_version : &model, err);
}

weir_status cli_experiment_find(struct cli_call *call, const char *project, const char *word,
                                char **out_id, struct weir_error *err)
{
    if (*word != '\0' && word[strspn(word, "0123456789")] == '\0') {
        *out_id = weir_arena_strdup(call->arena, word);
        return WEIR_OK;
    }
    char *quoted = weir_arena_alloc(call->arena, 2 * strlen(word) + 1), *to = quoted;
    for (const char *from = word; *from != '\0'; from++) {
        *to++ = *from;
        if (*from == '\'') { /* the grammar's way to have one inside of a text */
            *to++ = *from;
        }
    }
    *to = '\0';
    char *filter = weir_arena_printf(call->arena, "name = '%s'", quoted);
    char *path = project != NULL
                     ? cli_path2(call, "/api/v1/experiments?filter={}&project={}", filter, project)
                     : cli_path1(call, "/api/v1/experiments?filter={}", filter);
    json_t *answer;
    WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
    json_t *items = json_object_get(answer, "items");
    size_t n = json_array_size(items);
    *out_id = n == 1 ? cli_text(call, json_array_get(items, 0), "id") : NULL;
    json_decref(answer);
    return n == 1  ? WEIR_OK
           : n > 1 ? weir_error_set(err, WEIR_ERR_INVALID,
                                    "several projects have an experiment \"%.80s\": name one with "
                                    "--project, or give its number",
                                    word)
                   : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                    "there is no experiment \"%.80s\"; `weir get experiments` "
                                    "lists them",
                                    word);
}

static weir_status find_experiment(struct cli_call *call, json_t *change, struct weir_error *err)
{
    const struct label_options *options = call->options;
    char **words = WEIR_ARENA_ARRAY(call->arena, 2, char *);
    words[0] = call->words[0];
    WEIR_TRY(cli_experiment_find(call, options->project, words[0], &words[1], err));
    call->words = words;
    call->n_words = 2;
    return read_change(call, change, err);
}

const struct cli_command cli_model_set = {
    .name = "model set",
    .usage = "NAME[@v3|@ALIAS] [--description TEXT] [--tag NAME=VALUE] [--stage STAGE]",
    .summary = "Describe or tag a model or a version of it, or set a version's stage",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(label_options, model_options),
    .run = run_model_set,
};

const struct cli_command cli_experiment_set = {
    .name = "experiment set",
    .usage = "NAME|NUMBER [--name NAME] [--description TEXT] [--tag NAME=VALUE]",
    .summary = "Rename, describe or tag an experiment",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(label_options, experiment_options),
    CLI_VERBS({.prepare = find_experiment,
               .call = "PATCH /api/v1/experiments/{1}",
               .body = "",
               .say = "{0}: changed"}),
};

const struct cli_command cli_run_set = {
    .name = "runs set",
    .usage = "RUN [--name NAME] [--description TEXT] [--tag NAME=VALUE]",
    .summary = "Rename, describe or tag a run",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(label_options, run_options),
    CLI_VERBS({.prepare = read_change,
               .of = "run",
               .call = "PATCH /api/v1/runs/{@}",
               .body = "",
               .say = "{0}: changed"}),
};
