/** weir approve, reject, rollback, ion set-model, trigger, member: change IONs. */
#include "cli/core/verb.h"

#include <string.h>

/* ---- review ---------------------------------------------------------------------------------- */

struct review_options {
    struct cli_common common;
    int64_t version;
    char *note, *link;
};

static const struct weir_option review_options[] = {
    CLI_COMMON_OPTIONS(review_options),
    WEIR_OPT(review_options, version, "version", 'v', INT, "0", 0, 1e15, "N",
             "Version of the model (0: the newest that fits)"),
    CLI_TEXT(review_options, note, "note", 'm', "TEXT", "Why; kept with the decision"),
    CLI_TEXT(review_options, link, "link", 0, "FROM:TO", "Which link, if there are several"),
};

/** What stands in the link's chain, and what it waits for: "version 3: manual: 1 of 2 approvals, …" */
static void print_waiting(struct cli_call *call, const json_t *link)
{
    size_t i;
    json_t *waiting;
    json_array_foreach(json_object_get(link, "waiting"), i, waiting)
    {
        printf("    version %s: %s\n", cli_text(call, waiting, "version"),
               cli_text(call, waiting, "why"));
    }
}

static void print_links(struct cli_call *call, const json_t *ion)
{
    size_t i;
    json_t *link;
    json_array_foreach(json_object_get(ion, "links"), i, link)
    {
        const char *state = json_string_value(json_object_get(link, "deployment_state"));
        bool is_there = state == NULL || strcmp(state, "SERVING") == 0;
        printf("%s: serving version %s, %s%s%swaiting %s\n", cli_text(call, link, "id"),
               cli_text(call, link, "serving_version"), is_there ? "" : "deploying ",
               is_there ? "" : cli_text(call, link, "wanted_version"), is_there ? "" : ", ",
               cli_text(call, link, "pending_versions"));
        print_waiting(call, link);
    }
}

#define REVIEW(verb)                                                                               \
    CLI_VERBS({.call = "POST /api/v1/ions/{0}/" verb,                                              \
               .body = "-version -note? -link?",                                                   \
               .print = print_links})

const struct cli_command cli_approve = {
    .name = "approve",
    .usage = "ION [--version N] [--note TEXT]",
    .summary = "Let a model through that waits for review",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(review_options, review_options),
    REVIEW("approve"),
};

const struct cli_command cli_reject = {
    .name = "reject",
    .usage = "ION [--version N] [--note TEXT]",
    .summary = "Refuse a model that waits for review",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(review_options, review_options),
    REVIEW("reject"),
};

const struct cli_command cli_rollback = {
    .name = "rollback",
    .usage = "ION [--version N] [--note TEXT]",
    .summary = "Go back to the model that served before (or to version N)",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(review_options, review_options),
    REVIEW("rollback"),
};

const struct cli_command cli_ion_pause = {
    .name = "ion pause",
    .usage = "ION [PIPELINE]",
    .summary = "Pause an ION or one of its pipelines: no training begins, replicas stop",
    CLI_WORDS(1, 2),
    CLI_PLAIN,
    CLI_VERBS(
        {.call = "POST /api/v1/ions/{0}/pause", .body = "pipeline=1", .say = "{$} is paused"}),
};

const struct cli_command cli_ion_resume = {
    .name = "ion resume",
    .usage = "ION [PIPELINE]",
    .summary = "Let what is paused go on; a training that was wanted meanwhile begins",
    CLI_WORDS(1, 2),
    CLI_PLAIN,
    CLI_VERBS({.call = "POST /api/v1/ions/{0}/resume", .body = "pipeline=1", .say = "{$} goes on"}),
};

struct set_model_options {
    struct cli_common common;
    char *note;
};

static const struct weir_option set_model_options[] = {
    CLI_COMMON_OPTIONS(set_model_options),
    CLI_TEXT(set_model_options, note, "note", 'm', "TEXT", "Why; kept with the decision"),
};

static weir_status read_version(struct cli_call *call, json_t *body, struct weir_error *err)
{
    char *end;
    long long version = strtoll(call->words[2], &end, 10);
    if (*end != '\0' || version <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.40s\" is not the number of a version",
                              call->words[2]);
    }
    json_object_set_new(body, "version", json_integer(version));
    return WEIR_OK;
}

const struct cli_command cli_ion_set_model = {
    .name = "ion set-model",
    .usage = "ION LINK VERSION [--note TEXT]",
    .summary = "Let a link serve this version of its model, whatever its policies say",
    CLI_WORDS(3, 3),
    CLI_OPTIONS(set_model_options, set_model_options),
    CLI_VERBS({.prepare = read_version,
               .call = "POST /api/v1/ions/{0}/set-model",
               .body = "link=1 -note?",
               .print = print_links}),
};

/* ---- trigger, member ------------------------------------------------------------------------- */

/* The pipeline that trains, where an ION has one only. */
static weir_status find_training(struct cli_call *call, const char *ion, const char **out,
                                 struct weir_error *err)
{
    json_t *record;
    const json_t *pipeline;
    size_t i;
    const char *all = NULL, *name = NULL;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/ions/{}", ion), NULL, &record, err));
    json_array_foreach(json_object_get(record, "pipelines"), i, pipeline)
    {
        if (strcmp(cli_text(call, pipeline, "type"), "training") == 0) {
            name = cli_text(call, pipeline, "name");
            all = all == NULL ? name : weir_arena_printf(call->arena, "%s, %s", all, name);
        }
    }
    json_decref(record);
    if (name == NULL || name != all) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "%s has %s%s: say which pipeline, `weir trigger %s PIPELINE`",
            ion, name == NULL ? "no pipeline that trains" : "several pipelines that train: ",
            name == NULL ? "" : all, ion);
    }
    *out = name;
    return WEIR_OK;
}

static weir_status run_trigger(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_verb trigger = {.call = "POST /api/v1/ions/{0}/trigger",
                                            .body = "pipeline=1",
                                            .say = "{0}/{1}: training is wanted"};
    const char *words[] = {call->words[0], call->n_words > 1 ? call->words[1] : NULL};
    if (words[1] == NULL) {
        WEIR_TRY(find_training(call, words[0], &words[1], err));
    }
    call->words = (char **)words;
    call->n_words = 2;
    return cli_verb_run(call, &trigger, err);
}

const struct cli_command cli_trigger = {
    .name = "trigger",
    .usage = "ION [PIPELINE]",
    .summary = "Start a training of an ION now",
    .help = "Without PIPELINE: the one that trains, if the ION has one only.",
    CLI_WORDS(1, 2),
    CLI_PLAIN,
    .run = run_trigger,
};

struct run_options {
    struct cli_common common;
    int64_t times;
};

static const struct weir_option run_options[] = {
    CLI_COMMON_OPTIONS(run_options),
    WEIR_OPT(run_options, times, "times", 'n', INT, "1", 1, 100, "N",
             "How often, one after the other"),
};

const struct cli_command cli_ion_run = {
    .name = "ion run",
    .usage = "ION [--times N]",
    .summary = "Start the trainings of an ION now, once or several times in a row",
    .help = "Those that may be started by hand. The row ends when one fails or is cancelled.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(run_options, run_options),
    CLI_VERBS({.call = "POST /api/v1/ions/{0}/run",
               .body = "-times",
               .say = "ion/{0}: its trainings are wanted {-times} time{-times=1?|s}"}),
};

const struct cli_command cli_ion_promote = {
    .name = "ion promote",
    .usage = "ION",
    .summary = "Let an ION that was tried in a sandbox go on in production, as it is",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.call = "POST /api/v1/ions/{0}/promote",
               .say = "ion/{0} is in production, as revision {revision}"}),
};

struct member_options {
    struct cli_common common;
    bool not_enrolled;
};

static const struct weir_option member_options[] = {
    CLI_COMMON_OPTIONS(member_options),
    CLI_FLAG(member_options, not_enrolled, "not-enrolled", 0,
             "Also take a name that the gallery does not know"),
};

#define MEMBER "/api/v1/ions/{1}/members/{2}"

const struct cli_command cli_member = {
    .name = "member",
    .usage = "allow|deny|remove ION PERSON [--not-enrolled]",
    .summary = "Put a person on an ION's allow or deny list, or off both",
    CLI_WORDS(3, 3),
    CLI_OPTIONS(member_options, member_options),
    // clang-format off: a table
    CLI_VERBS({"allow", 3, 3, .call = "PUT " MEMBER, .body = "list=0 -not-enrolled",
               .say = "{1}: {2} {0}", .gives = "ion=1 person=2 list=0"},
              {"deny", 3, 3, .call = "PUT " MEMBER, .body = "list=0 -not-enrolled",
               .say = "{1}: {2} {0}", .gives = "ion=1 person=2 list=0"},
              {"remove", 3, 3, .call = "DELETE " MEMBER, .say = "{1}: {2} is on no list",
               .gives = "ion=1 person=2 list=null"}),
    // clang-format on
};
