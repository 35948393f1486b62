/** weir wait, weir rollout status: until a job is over, a deployment serves, a service runs. */
#include "cli/noun.h"
#include "cli/wait.h"

#include <string.h>
#include <strings.h>

#define SETTLED "settled" /* not a state: all that was asked for is so, or cannot be */
#define OVER    "over"

struct wait_options {
    struct cli_common common;
    char *state, *timeout;
};

static const struct weir_option wait_options[] = {
    CLI_COMMON_OPTIONS(wait_options),
    WEIR_OPT(
        wait_options, state, "for", 0, TEXT, NULL, 0, 0, "STATE",
        "Wait for this state (else until a job, sweep or run is over, a deployment serves what "
        "was asked for, a service runs, a node is ready)"),
    WEIR_OPT(wait_options, timeout, "timeout", 0, TEXT, NULL, 0, 0, "TIME",
             "Wait so long at most (else for ever)"),
};

/** A noun that is waited for. */
struct waitable {
    const char *noun, *member; /**< Its state's. */
    const char *states;        /**< Those that may be waited for, the usual one first. */
    const char *last;          /**< Those that do not become another by themselves. */
    const char *(*waits)(const json_t *);
};

static const char *sweep_waits(const json_t *sweep)
{
    const char *state = json_string_value(json_object_get(sweep, "state"));
    return state != NULL && strcmp(state, "PAUSED") == 0 ? "it is paused: weir sweep resume" : "";
}

static const char *node_waits(const json_t *node)
{
    const char *why = json_string_value(json_object_get(node, "unhealthy"));
    const char *state = json_string_value(json_object_get(node, "state"));
    return why != NULL ? why : state;
}

static const struct waitable waitables[] = {
    {"job", "state",
     OVER " PENDING STARTING RUNNING RESTARTING STOPPING SUCCEEDED FAILED CANCELLED",
     "SUCCEEDED FAILED CANCELLED", cli_job_waits},
    {"deployment", "state", SETTLED " DEPLOYING SERVING IDLE FAILED", "", cli_deployment_waits},
    {"service", "state", "RUNNING STARTING STOPPING STOPPED FAILED", "STOPPED FAILED",
     cli_service_waits},
    {"sweep", "state", OVER " RUNNING PAUSED STOPPING SUCCEEDED FAILED CANCELLED",
     "SUCCEEDED FAILED CANCELLED", sweep_waits},
    {"run", "status", OVER " SCHEDULED RUNNING FINISHED FAILED KILLED", "FINISHED FAILED KILLED",
     cli_job_waits},
    {"node", "state", "ready", "", node_waits},
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

/** What is waited for. */
struct wanted {
    const struct waitable *what;
    const char *state;
};

static const char *state_of(const json_t *record, const struct waitable *what)
{
    const char *state = json_string_value(json_object_get(record, what->member));
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
                          "nothing can be waited for of a %s: of jobs, deployments, services, "
                          "sweeps, runs and nodes it can",
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

static weir_status wait_for(struct cli_call *call, const struct cli_noun *noun, const char *name,
                            struct weir_error *err)
{
    const struct wait_options *options = call->options;
    struct wanted wanted = {0};
    char *id;
    json_t *record = NULL;
    WEIR_TRY(find_waitable(noun, &wanted.what, err));
    size_t len = strcspn(wanted.what->states, " ");
    wanted.state = options->state != NULL
                       ? options->state
                       : weir_arena_memdup(call->arena, wanted.what->states, len);
    if (!is_among(wanted.what->states, wanted.state)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--for %.40s: expected one of %s",
                              wanted.state, wanted.what->states);
    }
    struct cli_awaited awaited = {.what =
                                      weir_arena_printf(call->arena, "%s %s", noun->singular, name),
                                  .waits = wanted.what->waits,
                                  .is_there = is_there,
                                  .wanted = &wanted};
    if (options->timeout != NULL) {
        WEIR_TRY(cli_wait_timeout(options->timeout, &awaited.timeout_ms, err));
    }
    WEIR_TRY(cli_noun_key(call, noun, name, &id, err));
    awaited.path = cli_path1(call, noun->one, id);
    weir_status status = cli_wait_for(call, &awaited, &record, err);
    if (status == WEIR_OK) {
        status = judge(call, &awaited, record, id, err);
    }
    json_decref(record);
    return status;
}

/* "job/train", "job train" or "train", which is a job. */
static weir_status run_wait(struct cli_call *call, struct weir_error *err)
{
    char *name = NULL;
    const struct cli_noun *noun = cli_noun_split(call->arena, call->words[0], &name);
    if (noun != NULL && call->n_words == 1) {
        return wait_for(call, noun, name, err);
    }
    if (call->n_words == 1) {
        return wait_for(call, cli_noun_find("job"), call->words[0], err);
    }
    noun = cli_noun_find(call->words[0]);
    return noun != NULL ? wait_for(call, noun, call->words[1], err)
                        : cli_noun_unknown(call->words[0], err);
}

const struct cli_command cli_wait_command = {
    .name = "wait",
    .usage = "JOB | NOUN/NAME | NOUN NAME [--for STATE] [--timeout TIME] [-o json]",
    .summary = "Wait until a job is over, a deployment serves, a service runs; say why it does not",
    .help = "The exit status is that of the job; 5 if the state that is waited for cannot come any "
            "more; 9 after\n--timeout. NOUN is job, deployment, service, sweep, run or node.",
    .min_words = 1,
    .max_words = 2,
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
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(wait_options, wait_options),
    .run = run_rollout,
};
