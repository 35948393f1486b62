/** weir kpi, weir feedback: business figures, and the truth about decisions. */
#include "cli/core/input.h"
#include "cli/core/verb.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_MAX_BYTES   ((size_t)64 << 20)
#define FEEDBACK_PER_CALL 1000

/* ---- kpi ------------------------------------------------------------------------------------- */

struct kpi_options {
    struct cli_common common;
    char *unit, *time, *version;
};

static const struct weir_option kpi_options[] = {
    CLI_COMMON_OPTIONS(kpi_options),
    CLI_TEXT(kpi_options, unit, "unit", 'u', "UNIT", "Unit of the value"),
    CLI_TEXT(kpi_options, time, "time", 't', "TIME",
             "When it held, as 2026-01-31T10:00:00Z (else now)"),
    CLI_TEXT(kpi_options, version, "version", 'V', "MODEL@V",
             "Version of a model that it is of, as digits@v3 (else it is the ION's)"),
};

/* "digits@v3" or "digits@3"; NULL: none. */
static weir_status name_version(const char *text, json_t *body, struct weir_error *err)
{
    const char *at = text != NULL ? strrchr(text, '@') : NULL;
    if (text == NULL) {
        return WEIR_OK;
    }
    char *end = NULL;
    const char *digits = at != NULL ? at + 1 + (at[1] == 'v') : "";
    long long number = strtoll(digits, &end, 10);
    json_t *model = at != NULL ? json_stringn(text, (size_t)(at - text)) : NULL;
    if (model == NULL || at == text || *digits < '0' || *digits > '9' || *end != '\0' ||
        number < 1) {
        json_decref(model);
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--version: expected a model and its version, as digits@v3, got "
                              "\"%.80s\"",
                              text);
    }
    json_object_set_new(body, "model", model);
    json_object_set_new(body, "model_version", json_integer(number));
    return WEIR_OK;
}

static weir_status read_kpi(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct kpi_options *options = call->options;
    char *end;
    double value = strtod(call->words[2], &end);
    if (*call->words[2] == '\0' || *end != '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "VALUE: expected a number, got \"%.40s\"",
                              call->words[2]);
    }
    if (json_object_set_new(body, "value", json_real(value)) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "VALUE: expected a number that is finite");
    }
    return name_version(options->version, body, err);
}

#define KPI_COLUMNS                                                                                \
    CLI_COLUMNS({"name", "NAME"}, {"value", "VALUE"}, {"unit", "UNIT"}, {"model", "MODEL"},        \
                {"model_version", "VERSION"}, {"time_ms", "TIME"}, {"actor", "ACTOR"})

const struct cli_command cli_kpi = {
    .name = "kpi",
    .usage = "ION [NAME [VALUE]] [--unit UNIT] [--time TIME] [--version MODEL@V]",
    .summary = "Record a business figure of an ION, or show them",
    .help =
        "Without a value: the last of each figure and version, or the last values of one. The same "
        "name and time "
        "again replaces the value. With --version it is a sample for the policy ab, which compares "
        "that version with another. A value below 0 stands behind --: weir kpi ION NAME -- -3.",
    CLI_WORDS(1, 3),
    CLI_OPTIONS(kpi_options, kpi_options),
    // clang-format off: a table
    CLI_VERBS({NULL, 1, 1, .call = "GET /api/v1/ions/{0}/health", .items = "kpis", KPI_COLUMNS},
              {NULL, 2, 2, .call = "GET /api/v1/ions/{0}/kpis", .query = "name=1", .items = "items",
               KPI_COLUMNS},
              {NULL, 3, 3, read_kpi, .call = "POST /api/v1/ions/{0}/kpis",
               .body = "name=1 -unit time_ms=-time", .say = "{0}: {1} is {value}"}),
    // clang-format on
};

/* ---- feedback -------------------------------------------------------------------------------- */

struct feedback_options {
    struct cli_common common;
    char *file;
    char *request, *decided, *kpi;
};

static const struct weir_option feedback_options[] = {
    CLI_COMMON_OPTIONS(feedback_options),
    CLI_TEXT(feedback_options, file, "file", 'f', "FILE", "Lines of DECISION,TRUTH"),
    CLI_TEXT(feedback_options, request, "request", 'r', "ID",
             "Request of a deployment: the header Weir-Request of its answer"),
    CLI_TEXT(feedback_options, decided, "decided", 'd', "TEXT",
             "What the answer to the request said; OUTCOME is the truth"),
    CLI_TEXT(feedback_options, kpi, "kpi", 'k', "NAME",
             "What was counted of the request; OUTCOME is a number"),
};

struct told {
    int64_t n, n_judged, n_right;
};

static weir_status send(struct cli_call *call, json_t *list, struct told *told,
                        struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL, *body = NULL;
    if (json_array_size(list) == 0) {
        return WEIR_OK;
    }
    body = json_pack("{s:O}", "feedback", list);
    WEIR_TRY(cli_rest(call, "POST", "/api/v1/feedback", body, &answer, err));
    told->n += json_integer_value(json_object_get(answer, "stored"));
    told->n_judged += json_integer_value(json_object_get(answer, "judged"));
    told->n_right += json_integer_value(json_object_get(answer, "right"));
    json_array_clear(list);
    return WEIR_OK;
}

/* A line "DECISION,TRUTH"; an empty one and a heading are passed over. */
static weir_status add_line(char *line, int64_t number, const char *path, json_t *list,
                            struct weir_error *err)
{
    char *comma = strchr(line, ',');
    size_t len = strlen(line);
    if (len > 0 && line[len - 1] == '\r') {
        line[--len] = '\0';
    }
    if (len == 0 || (number == 1 && strcmp(line, "decision,truth") == 0)) {
        return WEIR_OK;
    }
    if (comma == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: line %lld: expected DECISION,TRUTH", path,
                              (long long)number);
    }
    *comma = '\0';
    json_t *item = json_pack("{s:s,s:s}", "decision", line, "truth", comma + 1);
    if (item == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: line %lld is not UTF-8", path,
                              (long long)number);
    }
    json_array_append_new(list, item);
    return WEIR_OK;
}

static weir_status send_file(struct cli_call *call, const char *path, struct told *told,
                             struct weir_error *err)
{
    char *text;
    size_t len;
    int64_t number = 0;
    WEIR_TRY(cli_input_read(path, TABLE_MAX_BYTES, call->arena, &text, &len, err));
    WEIR_AUTO(weir_json_auto_free) json_t *list = json_array();
    for (char *line = text, *next; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        WEIR_TRY(add_line(line, ++number, path, list, err));
        if (json_array_size(list) == FEEDBACK_PER_CALL) {
            WEIR_TRY(send(call, list, told, err));
        }
    }
    WEIR_TRY(send(call, list, told, err));
    return told->n > 0 ? WEIR_OK
                       : weir_error_set(err, WEIR_ERR_INVALID,
                                        "%s holds no line DECISION,TRUTH: nothing is told", path);
}

/* Of a request: success or failure, a truth beside what was decided, or a number. */
static weir_status outcome_of(const struct feedback_options *options, const char *word,
                              json_t **out, struct weir_error *err)
{
    char *end;
    double value = strtod(word, &end);
    bool is_success = strcmp(word, "success") == 0;
    if (options->decided != NULL && options->kpi != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--decided and --kpi do not go together");
    }
    if (options->kpi != NULL && (*word == '\0' || *end != '\0')) {
        return weir_error_set(err, WEIR_ERR_INVALID, "OUTCOME: expected a number, got \"%.40s\"",
                              word);
    }
    if (options->kpi == NULL && options->decided == NULL && !is_success &&
        strcmp(word, "failure") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "OUTCOME: expected success or failure, got \"%.40s\"; a truth needs "
                              "--decided, a number --kpi",
                              word);
    }
    const char *id = options->request;
    *out =
        options->kpi != NULL
            ? json_pack("{s:s,s:s,s:f}", "request", id, "kpi", options->kpi, "value", value)
        : options->decided != NULL
            ? json_pack("{s:s,s:s,s:s}", "request", id, "decided", options->decided, "truth", word)
            : json_pack("{s:s,s:b}", "request", id, "success", is_success);
    return *out != NULL ? WEIR_OK
                        : weir_error_set(err, WEIR_ERR_INVALID,
                                         "expected text in UTF-8, and a number that is finite");
}

static weir_status send_outcome(struct cli_call *call, struct told *told, struct weir_error *err)
{
    json_t *one;
    WEIR_TRY(outcome_of(call->options, call->words[0], &one, err));
    WEIR_AUTO(weir_json_auto_free) json_t *list = json_pack("[o]", one);
    return send(call, list, told, err);
}

/* Of one decision. */
static weir_status send_truth(struct cli_call *call, struct told *told, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *list = json_pack("[{s:s,s:s}]", "decision", call->words[0], "truth", call->words[1]);
    return send(call, list, told, err);
}

/* Numbers are neither right nor wrong. */
static void print_told(struct cli_call *call, const struct told *told)
{
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:I,s:I,s:I}", "stored", (json_int_t)told->n, "right",
                                   (json_int_t)told->n_right, "judged",
                                   (json_int_t)told->n_judged));
    } else if (told->n_judged > 0) {
        printf("%lld told, %lld right\n", (long long)told->n, (long long)told->n_right);
    } else {
        printf("%lld told\n", (long long)told->n);
    }
}

static weir_status run_feedback(struct cli_call *call, struct weir_error *err)
{
    const struct feedback_options *options = call->options;
    struct told told = {0};
    bool is_file = options->file != NULL && call->n_words == 0;
    bool is_of_request = options->request != NULL;
    if (!is_of_request && (options->decided != NULL || options->kpi != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--decided and --kpi go with --request");
    }
    if (is_of_request ? options->file != NULL || call->n_words != 1
                      : !is_file && (options->file != NULL || call->n_words != 2)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "usage: weir feedback %s",
                              call->command->usage);
    }
    WEIR_TRY(is_of_request ? send_outcome(call, &told, err)
             : is_file     ? send_file(call, options->file, &told, err)
                           : send_truth(call, &told, err));
    print_told(call, &told);
    return WEIR_OK;
}

const struct cli_command cli_feedback = {
    .name = "feedback",
    .usage = "DECISION TRUTH | -f FILE | --request ID [--decided TEXT | --kpi NAME] OUTCOME",
    .summary = "Say what decisions should have been, or what came of a deployment's request",
    .help =
        "From this follow an ION's live accuracy and its errors by group: weir describe ion "
        "NAME. Told again, the last holds. A file goes in blocks of 1000 lines, each taken whole "
        "or not at all. Of a request the outcome is success or failure; with --decided the truth, "
        "with "
        "--kpi a number. From these the policy ab says which of two versions is better.",
    CLI_WORDS(0, 2),
    CLI_OPTIONS(feedback_options, feedback_options),
    .run = run_feedback,
};
