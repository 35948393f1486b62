/** weir wait, weir rollout status: until a job is over, a deployment or an ION serves, a service runs, a version is there. */
#include "cli/core/noun.h"
#include "cli/core/wait.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SETTLED "settled" /* not a state: all that was asked for is so, or cannot be */
#define OVER    "over"
#define DELETED "deleted"
#define FROZEN  "FROZEN"

struct wait_options {
    struct cli_common common;
    char *state, *timeout;
};

static const struct weir_option wait_options[] = {
    CLI_COMMON_OPTIONS(wait_options),
    CLI_TEXT(wait_options, state, "for", 0, "STATE",
             "Wait for this state, or: ended, running, serving, deleted (else until a job, sweep "
             "or run is over, a deployment serves what was asked for, an ION serves, a service "
             "runs, a node is ready, a version is there)"),
    CLI_TEXT(wait_options, timeout, "timeout", 0, "TIME", "Wait so long at most (else for ever)"),
};

/** A noun that is waited for. */
struct waitable {
    const char *noun, *member; /**< Its state's. */
    const char *states;        /**< Those that may be waited for, the usual one first. */
    const char *last;          /**< Those that do not become another by themselves. */
    const char *(*waits)(const json_t *);
    const char *(*state)(const json_t *); /**< Where no member has it; else NULL. */
    int64_t comes_ms;                     /**< As of cli_awaited. */
};

static const char *sweep_waits(const json_t *sweep)
{
    const char *state = json_string_value(json_object_get(sweep, "state"));
    return state != NULL && strcmp(state, "PAUSED") == 0 ? "it is paused: weir sweep resume" : NULL;
}

static const char *node_waits(const json_t *node)
{
    const char *why = json_string_value(json_object_get(node, "unhealthy"));
    const char *state = json_string_value(json_object_get(node, "state"));
    return why != NULL ? why : state;
}

/* The first prediction of an ION that does not serve; NULL: all do. */
static const json_t *first_waiting(const json_t *ion)
{
    const json_t *pipeline;
    size_t i;
    json_array_foreach(json_object_get(ion, "pipelines"), i, pipeline)
    {
        const char *type = json_string_value(json_object_get(pipeline, "type"));
        const char *state = json_string_value(json_object_get(pipeline, "state"));
        if (type != NULL && state != NULL && strcmp(type, "prediction") == 0 &&
            strcmp(state, "SERVING") != 0) {
            return pipeline;
        }
    }
    return NULL;
}

static const char *ion_state(const json_t *ion)
{
    const json_t *pipeline = first_waiting(ion);
    return pipeline == NULL ? "SERVING" : json_string_value(json_object_get(pipeline, "state"));
}

/* What it says itself; else what the pipelines before it do. */
static const char *ion_waits(const json_t *ion)
{
    const json_t *waiting = first_waiting(ion), *pipeline;
    const char *reason = json_string_value(json_object_get(waiting, "state_reason"));
    size_t i;
    if (waiting == NULL) {
        return NULL;
    }
    json_array_foreach(json_object_get(ion, "pipelines"), i, pipeline)
    {
        const char *other = json_string_value(json_object_get(pipeline, "state_reason"));
        const char *state = json_string_value(json_object_get(pipeline, "state"));
        reason = reason != NULL && reason[0] != '\0' ? reason
                 : other != NULL && other[0] != '\0' ? other
                 : state != NULL && strcmp(state, "TRAINING") == 0
                     ? "a model for it is being trained"
                     : reason;
    }
    return reason != NULL ? reason : "";
}

static int64_t newest_of(const json_t *versions)
{
    const json_t *first = json_array_get(json_object_get(versions, "items"), 0);
    return json_integer_value(json_object_get(first, "version"));
}

static const char *version_state(const json_t *versions)
{
    return newest_of(versions) > 0 ? FROZEN : "NONE";
}

static const char *version_waits(const json_t *versions)
{
    static char text[64];
    (void)snprintf(text, sizeof text, "the newest version is %lld", (long long)newest_of(versions));
    return newest_of(versions) > 0 ? text : "it has no version: weir dataset freeze makes one";
}

static const struct waitable waitables[] = {
    {"job", "state",
     OVER " PENDING STARTING RUNNING RESTARTING STOPPING SUCCEEDED FAILED CANCELLED",
     "SUCCEEDED FAILED CANCELLED", cli_job_waits, NULL, 0},
    {"deployment", "state", SETTLED " DEPLOYING SERVING IDLE FAILED", "", cli_deployment_waits,
     NULL, 10000},
    {"service", "state", "RUNNING STARTING STOPPING STOPPED FAILED " OVER, "STOPPED FAILED",
     cli_service_waits, NULL, 0},
    {"sweep", "state", OVER " RUNNING PAUSED STOPPING SUCCEEDED FAILED CANCELLED",
     "SUCCEEDED FAILED CANCELLED", sweep_waits, NULL, 0},
    {"run", "status", OVER " SCHEDULED RUNNING FINISHED FAILED KILLED", "FINISHED FAILED KILLED",
     cli_job_waits, NULL, 0},
    {"node", "state", "ready", "", node_waits, NULL, 0},
    {"ion", NULL, "SERVING", "", ion_waits, ion_state, 0},
    {"dataset-version", NULL, FROZEN, "", version_waits, version_state, 0},
};

/* Is this one of the words, whatever its case? */
static bool is_among(const char *words, const char *word)
{
    size_t len = strlen(word);
    while (*words != '\0') {
        size_t n = strcspn(words, " ");
        if (n == len && strncasecmp(words, word, len) == 0) {
            return true;
        }
        words += n + (words[n] == ' ');
    }
    return false;
}

/* What people call states; what kubectl calls them, behind "condition=". */
static const struct {
    const char *word, *state;
} synonyms[] = {
    {"ended", OVER},     {"complete", OVER},   {"completed", OVER}, {"finished", OVER},
    {"done", OVER},      {"delete", DELETED},  {"gone", DELETED},   {"ready", NULL},
    {"available", NULL}, {"rolled-out", NULL},
};

/* The state that a word means, which is the usual one if none is given. */
static const char *state_of_word(struct cli_call *call, const struct waitable *what,
                                 const char *word)
{
    static const char condition[] = "condition=";
    size_t len = strcspn(what->states, " ");
    const char *usual = weir_arena_memdup(call->arena, what->states, len);
    if (word == NULL) {
        return usual;
    }
    word += strncasecmp(word, condition, sizeof condition - 1) == 0 ? sizeof condition - 1 : 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(synonyms); i++) {
        if (strcasecmp(synonyms[i].word, word) == 0 && !is_among(what->states, word)) {
            return synonyms[i].state != NULL ? synonyms[i].state : usual;
        }
    }
    return word;
}

/** What is waited for. */
struct wanted {
    const struct waitable *what;
    const char *state;
    int64_t version; /* of a dataset; of others 0 */
};

static const char *state_of(const json_t *record, const struct waitable *what)
{
    const char *state = what->state != NULL
                            ? what->state(record)
                            : json_string_value(json_object_get(record, what->member));
    return state != NULL ? state : "";
}

static bool is_last(const json_t *record, const struct waitable *what)
{
    return is_among(what->last, state_of(record, what));
}

/* It is, or it can never be. */
static bool is_there(const json_t *record, const void *context)
{
    const struct wanted *wanted = context;
    if (strcmp(wanted->state, SETTLED) == 0) {
        return json_is_true(json_object_get(record, "is_settled"));
    }
    if (wanted->version > 0) {
        return newest_of(record) >= wanted->version;
    }
    return is_last(record, wanted->what) ||
           strcasecmp(state_of(record, wanted->what), wanted->state) == 0;
}

static weir_status find_waitable(const struct cli_noun *noun, const struct waitable **out,
                                 struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(waitables); i++) {
        if (strcmp(waitables[i].noun, noun->singular) == 0) {
            *out = &waitables[i];
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "nothing but its end (--for deleted) can be waited for of a %s: of jobs, "
                          "deployments, IONs, services, notebooks, sweeps, runs, nodes and "
                          "dataset versions more can",
                          noun->singular);
}

/* What became of it, once it is there. */
static weir_status judge(struct cli_call *call, const struct cli_awaited *awaited,
                         const json_t *record, const char *id, struct weir_error *err)
{
    const struct wanted *wanted = awaited->wanted;
    const char *state = state_of(record, wanted->what);
    const char *reason = cli_text(call, record, "reason");
    bool is_failed = strcmp(wanted->state, SETTLED) == 0 && strcmp(state, "FAILED") == 0;
    bool is_met = strcmp(wanted->state, OVER) == 0 || strcmp(wanted->state, SETTLED) == 0 ||
                  strcasecmp(wanted->state, state) == 0;
    if (is_failed || !is_met) {
        bool has_reason = strcmp(reason, "-") != 0;
        return weir_error_set(err, is_failed ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_CONFLICT,
                              "%s is %s%s%s%s%s", awaited->what, state,
                              is_failed ? "" : " and will not be ", is_failed ? "" : wanted->state,
                              has_reason ? ": " : "", has_reason ? reason : "");
    }
    if (cli_is_json(call)) {
        cli_print_json(record);
    } else {
        printf("%s is %s\n", awaited->what, state);
    }
    if (strcmp(wanted->state, OVER) == 0 && strcmp(wanted->what->noun, "job") == 0) {
        return cli_job_end(call, id, err);
    }
    bool is_well = is_among("SUCCEEDED FINISHED", state) || strcmp(wanted->state, OVER) != 0;
    call->exit_status = is_well ? 0 : 1;
    return WEIR_OK;
}

static bool is_never_there(const json_t *record, const void *wanted)
{
    (void)record;
    (void)wanted;
    return false;
}

static const char *still_there(const json_t *record)
{
    (void)record;
    return "it is there";
}

/* Until the server knows it no more. */
static weir_status wait_for_end(struct cli_call *call, const struct cli_noun *noun,
                                struct cli_awaited *awaited, const char *name,
                                struct weir_error *err)
{
    char *id;
    json_t *record = NULL;
    awaited->is_there = is_never_there;
    awaited->waits = still_there;
    if (noun->one == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "--for deleted: a %s cannot be looked at by itself", noun->singular);
    }
    weir_status status = cli_noun_key(call, noun, name, &id, err);
    if (status == WEIR_OK) {
        awaited->path = cli_path1(call, noun->one, id);
        status = cli_wait_for(call, awaited, &record, err);
        json_decref(record);
    }
    if (status == WEIR_ERR_NOT_FOUND) {
        printf("%s is not there\n", awaited->what);
        return WEIR_OK;
    }
    return status;
}

/* Where the record is that is looked at; "NAME@3" of a dataset is the version that is waited for. */
static weir_status find_record(struct cli_call *call, const struct cli_noun *noun, const char *name,
                               struct wanted *wanted, const char **out_path, char **out_id,
                               struct weir_error *err)
{
    if (wanted->what->state != version_state) {
        WEIR_TRY(cli_noun_key(call, noun, name, out_id, err));
        *out_path = cli_path1(call, noun->one, *out_id);
        return WEIR_OK;
    }
    const char *at = strchr(name, '@');
    char *end = NULL;
    wanted->version = at != NULL ? strtoll(at + 1, &end, 10) : 1;
    if (wanted->version < 1 || (end != NULL && *end != '\0')) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%.80s: expected DATASET@N, as in faces@3",
                              name);
    }
    *out_id = weir_arena_memdup(call->arena, name, at != NULL ? (size_t)(at - name) : strlen(name));
    *out_path = cli_path1(call, noun->list, *out_id);
    return WEIR_OK;
}

static weir_status wait_for(struct cli_call *call, const struct cli_noun *noun, const char *name,
                            struct weir_error *err)
{
    const struct wait_options *options = call->options;
    struct wanted wanted = {0};
    char *id;
    WEIR_AUTO(weir_json_auto_free) json_t *record = NULL;
    struct cli_awaited awaited = {.what =
                                      weir_arena_printf(call->arena, "%s %s", noun->singular, name),
                                  .is_there = is_there,
                                  .wanted = &wanted};
    if (options->timeout != NULL) {
        WEIR_TRY(cli_wait_timeout(options->timeout, &awaited.timeout_ms, err));
    }
    if (options->state != NULL && is_among(DELETED " delete gone", options->state)) {
        return wait_for_end(call, noun, &awaited, name, err);
    }
    WEIR_TRY(find_waitable(noun, &wanted.what, err));
    wanted.state = state_of_word(call, wanted.what, options->state);
    awaited.waits = wanted.what->waits;
    awaited.comes_ms = wanted.what->comes_ms;
    if (!is_among(wanted.what->states, wanted.state)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--for %.40s: expected one of %s or " DELETED,
                              wanted.state, wanted.what->states);
    }
    WEIR_TRY(find_record(call, noun, name, &wanted, &awaited.path, &id, err));
    WEIR_TRY(cli_wait_for(call, &awaited, &record, err));
    return judge(call, &awaited, record, id, err);
}

/* A notebook is a service. */
static const struct cli_noun *find_noun(const char *word)
{
    return cli_noun_find(strcmp(word, "notebook") == 0 || strcmp(word, "notebooks") == 0 ? "service"
                                                                                         : word);
}

/* "job/train", "job train" or "train", which is a job. */
static weir_status run_wait(struct cli_call *call, struct weir_error *err)
{
    char *word = call->words[0], *slash = strchr(word, '/');
    if (call->n_words == 1 && slash == NULL) {
        return wait_for(call, cli_noun_find("job"), word, err);
    }
    if (call->n_words == 1) {
        word = weir_arena_memdup(call->arena, word, (size_t)(slash - word));
    }
    const struct cli_noun *noun = find_noun(word);
    return noun == NULL
               ? cli_noun_unknown(word, err)
               : wait_for(call, noun, call->n_words == 1 ? slash + 1 : call->words[1], err);
}

const struct cli_command cli_wait_command = {
    .name = "wait",
    .usage = "JOB | NOUN/NAME | NOUN NAME [--for STATE] [--timeout TIME] [-o json]",
    .summary =
        "Wait until a job is over, a deployment or ION serves, a service runs; say why it does not",
    .help = "The exit status is that of the job; 5 if the state that is waited for cannot come any "
            "more; 9 after\n--timeout. NOUN is job, deployment, ion, service, notebook, sweep, "
            "run, node or dataset-version (NAME@N);\n--for deleted takes any.",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(wait_options, wait_options),
    .run = run_wait,
};

static weir_status run_rollout(struct cli_call *call, struct weir_error *err)
{
    char *name = NULL;
    const struct cli_noun *noun = cli_noun_split(call->arena, call->words[0], &name);
    return wait_for(call, noun != NULL ? noun : cli_noun_find("deployment"),
                    noun != NULL ? name : call->words[0], err);
}

const struct cli_command cli_rollout_status = {
    .name = "rollout status",
    .usage = "DEPLOYMENT [--timeout TIME] [-o json]",
    .summary = "Wait until a deployment serves what was asked for, or cannot",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(wait_options, wait_options),
    .run = run_rollout,
};
