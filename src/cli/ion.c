/** weir approve, reject, rollback, ion set-model, trigger, member: change IONs. */
#include "cli/command.h"

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
    WEIR_OPT(review_options, note, "note", 'm', TEXT, NULL, 0, 0, "TEXT",
             "Why; kept with the decision"),
    WEIR_OPT(review_options, link, "link", 0, TEXT, NULL, 0, 0, "FROM:TO",
             "Which link, if there are several"),
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
    if (cli_is_json(call)) {
        cli_print_json(ion);
        return;
    }
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

static weir_status run_review(struct cli_call *call, struct weir_error *err)
{
    const struct review_options *options = call->options;
    char *pattern = weir_arena_printf(call->arena, "/api/v1/ions/{}/%s", call->command->name);
    json_t *body = json_pack("{s:I,s:s?,s:s?}", "version", (json_int_t)options->version, "note",
                             options->note, "link", options->link);
    json_t *answer;
    weir_status status =
        cli_rest(call, "POST", cli_path1(call, pattern, call->words[0]), body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    print_links(call, answer);
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_approve = {
    .name = "approve",
    .usage = "ION [--version N] [--note TEXT]",
    .summary = "Let a model through that waits for review",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(review_options, review_options),
    .run = run_review,
};

const struct cli_command cli_reject = {
    .name = "reject",
    .usage = "ION [--version N] [--note TEXT]",
    .summary = "Refuse a model that waits for review",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(review_options, review_options),
    .run = run_review,
};

const struct cli_command cli_rollback = {
    .name = "rollback",
    .usage = "ION [--version N] [--note TEXT]",
    .summary = "Go back to the model that served before (or to version N)",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(review_options, review_options),
    .run = run_review,
};

struct pause_options {
    struct cli_common common;
};

static const struct weir_option pause_options[] = {CLI_COMMON_OPTIONS(pause_options)};

static weir_status run_pause(struct cli_call *call, struct weir_error *err)
{
    bool is_pause = strcmp(call->command->name, "ion pause") == 0;
    json_t *body = json_pack("{s:s*}", "pipeline", call->n_words > 1 ? call->words[1] : NULL);
    json_t *answer;
    weir_status status =
        cli_rest(call, "POST",
                 cli_path1(call, is_pause ? "/api/v1/ions/{}/pause" : "/api/v1/ions/{}/resume",
                           call->words[0]),
                 body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("%s %s\n", call->words[call->n_words - 1], is_pause ? "is paused" : "goes on");
    }
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_ion_pause = {
    .name = "ion pause",
    .usage = "ION [PIPELINE]",
    .summary = "Pause an ION or one of its pipelines: no training begins, replicas stop",
    .min_words = 1,
    .max_words = 2,
    CLI_OPTIONS(pause_options, pause_options),
    .run = run_pause,
};

const struct cli_command cli_ion_resume = {
    .name = "ion resume",
    .usage = "ION [PIPELINE]",
    .summary = "Let what is paused go on; a training that was wanted meanwhile begins",
    .min_words = 1,
    .max_words = 2,
    CLI_OPTIONS(pause_options, pause_options),
    .run = run_pause,
};

struct set_model_options {
    struct cli_common common;
    char *note;
};

static const struct weir_option set_model_options[] = {
    CLI_COMMON_OPTIONS(set_model_options),
    WEIR_OPT(set_model_options, note, "note", 'm', TEXT, NULL, 0, 0, "TEXT",
             "Why; kept with the decision"),
};

static weir_status run_set_model(struct cli_call *call, struct weir_error *err)
{
    const struct set_model_options *options = call->options;
    char *end;
    long long version = strtoll(call->words[2], &end, 10);
    if (*end != '\0' || version <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.40s\" is not the number of a version",
                              call->words[2]);
    }
    json_t *body = json_pack("{s:s,s:I,s:s?}", "link", call->words[1], "version",
                             (json_int_t)version, "note", options->note);
    json_t *answer;
    weir_status status =
        cli_rest(call, "POST", cli_path1(call, "/api/v1/ions/{}/set-model", call->words[0]), body,
                 &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    print_links(call, answer);
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_ion_set_model = {
    .name = "ion set-model",
    .usage = "ION LINK VERSION [--note TEXT]",
    .summary = "Let a link serve this version of its model, whatever its policies say",
    .min_words = 3,
    .max_words = 3,
    CLI_OPTIONS(set_model_options, set_model_options),
    .run = run_set_model,
};

/* ---- trigger, member --------------------------------------------------------------------------
 */

struct plain_options {
    struct cli_common common;
};

static const struct weir_option plain_options[] = {CLI_COMMON_OPTIONS(plain_options)};

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
    const char *pipeline = call->n_words > 1 ? call->words[1] : NULL;
    if (pipeline == NULL) {
        WEIR_TRY(find_training(call, call->words[0], &pipeline, err));
    }
    json_t *body = json_pack("{s:s}", "pipeline", pipeline), *answer;
    weir_status status =
        cli_rest(call, "POST", cli_path1(call, "/api/v1/ions/{}/trigger", call->words[0]), body,
                 &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("%s/%s: training is wanted\n", call->words[0], pipeline);
    }
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_trigger = {
    .name = "trigger",
    .usage = "ION [PIPELINE]",
    .summary = "Start a training of an ION now",
    .help = "Without PIPELINE: the one that trains, if the ION has one only.",
    .min_words = 1,
    .max_words = 2,
    CLI_OPTIONS(plain_options, plain_options),
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

static weir_status run_run(struct cli_call *call, struct weir_error *err)
{
    const struct run_options *options = call->options;
    json_t *body = json_pack("{s:I}", "times", (json_int_t)options->times), *answer;
    weir_status status = cli_rest(
        call, "POST", cli_path1(call, "/api/v1/ions/{}/run", call->words[0]), body, &answer, err);
    json_decref(body);
    WEIR_TRY(status);
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("ion/%s: its trainings are wanted %lld time%s\n", call->words[0],
               (long long)options->times, options->times == 1 ? "" : "s");
    }
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_ion_run = {
    .name = "ion run",
    .usage = "ION [--times N]",
    .summary = "Start the trainings of an ION now, once or several times in a row",
    .help = "Those that may be started by hand. The row ends when one fails or is cancelled.",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(run_options, run_options),
    .run = run_run,
};

static weir_status run_promote(struct cli_call *call, struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(cli_rest(call, "POST", cli_path1(call, "/api/v1/ions/{}/promote", call->words[0]),
                      NULL, &answer, err));
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        printf("ion/%s is in production, as revision %s\n", call->words[0],
               cli_text(call, answer, "revision"));
    }
    json_decref(answer);
    return WEIR_OK;
}

const struct cli_command cli_ion_promote = {
    .name = "ion promote",
    .usage = "ION",
    .summary = "Let an ION that was tried in a sandbox go on in production, as it is",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_promote,
};

struct member_options {
    struct cli_common common;
    bool not_enrolled;
};

static const struct weir_option member_options[] = {
    CLI_COMMON_OPTIONS(member_options),
    WEIR_OPT(member_options, not_enrolled, "not-enrolled", 0, BOOL, NULL, 0, 0, NULL,
             "Also take a name that the gallery does not know"),
};

static weir_status run_member(struct cli_call *call, struct weir_error *err)
{
    const struct member_options *options = call->options;
    const char *verb = call->words[0], *ion = call->words[1], *person = call->words[2];
    char *path = cli_path2(call, "/api/v1/ions/{}/members/{}", ion, person);
    if (strcmp(verb, "remove") == 0) {
        WEIR_TRY(cli_rest(call, "DELETE", path, NULL, NULL, err));
    } else if (strcmp(verb, "allow") == 0 || strcmp(verb, "deny") == 0) {
        json_t *body =
            json_pack("{s:s,s:b}", "list", verb, "not_enrolled", (int)options->not_enrolled);
        weir_status status = cli_rest(call, "PUT", path, body, NULL, err);
        json_decref(body);
        WEIR_TRY(status);
    } else {
        return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir member %s", call->command->usage);
    }
    bool is_removed = strcmp(verb, "remove") == 0;
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:s,s:s?}", "ion", ion, "person", person, "list",
                                   is_removed ? NULL : verb));
    } else {
        printf("%s: %s %s\n", ion, person, is_removed ? "is on no list" : verb);
    }
    return WEIR_OK;
}

const struct cli_command cli_member = {
    .name = "member",
    .usage = "allow|deny|remove ION PERSON [--not-enrolled]",
    .summary = "Put a person on an ION's allow or deny list, or off both",
    .min_words = 3,
    .max_words = 3,
    CLI_OPTIONS(member_options, member_options),
    .run = run_member,
};
