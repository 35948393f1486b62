/** weir get, weir describe: look at anything. */
#include "cli/cli_private.h"

#include <string.h>

#define COLUMNS(...)                                                                               \
    (const struct cli_column[]){__VA_ARGS__},                                                      \
        sizeof((const struct cli_column[]){__VA_ARGS__}) / sizeof(struct cli_column)

struct noun {
    const char *plural, *singular;
    const char *list_path, *get_path; /**< get_path NULL: cannot be looked at one by one. */
    const struct cli_column *columns;
    size_t n_columns;
};

// clang-format off: a table
static const struct noun nouns[] = {
    {"ions", "ion", "/api/v1/ions", "/api/v1/ions/{}",
     COLUMNS({"name", "NAME"}, {"project", "PROJECT"}, {"state", "STATE"}, {"revision", "REVISION"},
             {"created_ms", "CREATED"})},
    {"jobs", "job", "/api/v1/jobs?newest=1", "/api/v1/jobs/{}",
     COLUMNS({"id", "ID"}, {"name", "NAME"}, {"kind", "KIND"}, {"state", "STATE"},
             {"attempt", "ATTEMPT"}, {"reason", "WHY"})},
    {"runs", "run", "/api/v1/runs", "/api/v1/runs/{}",
     COLUMNS({"id", "ID"}, {"name", "NAME"}, {"status", "STATUS"}, {"epoch", "EPOCH"},
             {"loss", "LOSS"}, {"accuracy", "ACCURACY"}, {"images_per_second", "IMAGES/S"})},
    {"models", "model", "/api/v1/models", "/api/v1/models/{}",
     COLUMNS({"name", "NAME"}, {"project", "PROJECT"}, {"created_ms", "CREATED"})},
    {"datasets", "dataset", "/api/v1/datasets", "/api/v1/datasets/{}",
     COLUMNS({"name", "NAME"}, {"kind", "KIND"}, {"path", "PATH"}, {"is_uploaded", "UPLOADED"})},
    {"nodes", "node", "/api/v1/nodes", NULL,
     COLUMNS({"name", "NAME"}, {"cpu_slots", "CPU SLOTS"}, {"memory_bytes", "MEMORY"},
             {"n_accelerators", "ACCELERATORS"}, {"last_seen_ms", "LAST SEEN"})},
    {"decisions", "decision", "/api/v1/decisions", NULL,
     COLUMNS({"time_ms", "TIME"}, {"camera", "CAMERA"}, {"frame", "FRAME"}, {"verdict", "VERDICT"},
             {"person", "PERSON"}, {"score", "SCORE"}, {"threshold", "THRESHOLD"},
             {"model_version", "MODEL"}, {"latency_us", "LATENCY µs"})},
    {"events", "event", "/api/v1/events", NULL,
     COLUMNS({"time_ms", "TIME"}, {"severity", "SEVERITY"}, {"kind", "KIND"},
             {"subject", "SUBJECT"}, {"message", "MESSAGE"})},
    {"alerts", "alert", "/api/v1/alerts", NULL,
     COLUMNS({"id", "ID"}, {"state", "STATE"}, {"severity", "SEVERITY"}, {"kind", "KIND"},
             {"message", "MESSAGE"})},
    {"projects", "project", "/api/v1/projects", NULL,
     COLUMNS({"name", "NAME"}, {"description", "DESCRIPTION"})},
    {"users", "user", "/api/v1/users", NULL,
     COLUMNS({"name", "NAME"}, {"kind", "KIND"}, {"role", "ROLE"}, {"is_disabled", "DISABLED"},
             {"created_ms", "CREATED"})},
    {"tokens", "token", "/api/v1/tokens", NULL,
     COLUMNS({"id", "ID"}, {"user", "USER"}, {"name", "NAME"}, {"role", "ROLE"}, {"node", "NODE"},
             {"created_ms", "CREATED"}, {"expires_ms", "EXPIRES"})},
    {"sessions", "session", "/api/v1/sessions", NULL,
     COLUMNS({"id", "ID"}, {"user", "USER"}, {"role", "ROLE"}, {"address", "FROM"},
             {"created_ms", "BEGAN"}, {"expires_ms", "EXPIRES"})},
};

static const struct noun part_nouns[] = {
    /* parts of something: the path needs its name */
    {"versions", "version", "/api/v1/models/{}/versions", NULL,
     COLUMNS({"model", "MODEL"}, {"version", "VERSION"}, {"dataset", "DATASET"},
             {"dataset_version", "DATA VERSION"}, {"code_version", "CODE"}, {"run", "RUN"},
             {"created_ms", "CREATED"})},
    {"dataset-versions", "dataset-version", "/api/v1/datasets/{}/versions", NULL,
     COLUMNS({"dataset", "DATASET"}, {"version", "VERSION"}, {"n_files", "FILES"},
             {"n_classes", "CLASSES"}, {"digest", "DIGEST"})},
    {"tasks", "task", "/api/v1/jobs/{}/tasks", NULL,
     COLUMNS({"id", "ID"}, {"role", "ROLE"}, {"rank", "RANK"}, {"node", "NODE"}, {"state", "STATE"},
             {"attempt", "ATTEMPT"}, {"exit_code", "EXIT"})},
    {"candidates", "candidate", "/api/v1/ions/{}/candidates", NULL,
     COLUMNS({"link", "LINK"}, {"model", "MODEL"}, {"version", "VERSION"}, {"state", "STATE"},
             {"created_ms", "CREATED"})},
    {"policy-decisions", "policy-decision", "/api/v1/ions/{}/policy-decisions", NULL,
     COLUMNS({"time_ms", "TIME"}, {"link", "LINK"}, {"version", "VERSION"}, {"policy", "POLICY"},
             {"verdict", "VERDICT"}, {"actor", "ACTOR"}, {"rule", "RULE"})},
    {"members", "member", "/api/v1/ions/{}/members", NULL,
     COLUMNS({"person", "PERSON"}, {"list", "LIST"}, {"actor", "BY"})},
};

// clang-format on

struct get_options {
    struct cli_common common;
};

static const struct weir_option get_options[] = {CLI_COMMON_OPTIONS(get_options)};

static const struct noun *find_noun(const struct noun *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].plural, name) == 0 || strcmp(list[i].singular, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

static weir_status print_list(struct cli_call *call, const struct noun *noun, const char *path,
                              struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
    cli_print_table(call, answer, noun->columns, noun->n_columns);
    json_decref(answer);
    return WEIR_OK;
}

static weir_status print_one(struct cli_call *call, const struct noun *noun, const char *name,
                             struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, noun->get_path, name), NULL, &answer, err));
    cli_print_object(call, answer);
    json_decref(answer);
    return WEIR_OK;
}

static weir_status run_get(struct cli_call *call, struct weir_error *err)
{
    const struct noun *noun = find_noun(nouns, WEIR_ARRAY_LEN(nouns), call->words[0]);
    const struct noun *part = find_noun(part_nouns, WEIR_ARRAY_LEN(part_nouns), call->words[0]);
    if (part != NULL) {
        if (call->n_words < 2) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "weir get %s: of what? Name it: weir get %s NAME", part->plural,
                                  part->plural);
        }
        return print_list(call, part, cli_path1(call, part->list_path, call->words[1]), err);
    }
    if (noun == NULL) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "there is no \"%.40s\"; known: ions jobs runs models datasets nodes decisions "
            "events alerts projects users tokens sessions versions dataset-versions tasks "
            "candidates policy-decisions members",
            call->words[0]);
    }
    if (call->n_words == 1) {
        return print_list(call, noun, noun->list_path, err);
    }
    if (noun->get_path == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "a single %s cannot be looked at; list them with "
                              "`weir get %s`",
                              noun->singular, noun->plural);
    }
    return print_one(call, noun, call->words[1], err);
}

const struct cli_command cli_get = {
    .name = "get",
    .usage = "NOUN [NAME] [-o json]",
    .summary = "List records, or look at one",
    .help = "Nouns: ions jobs runs models datasets nodes decisions events alerts projects users "
            "tokens\n"
            "sessions;\n"
            "with the name of what they belong to: versions MODEL, dataset-versions DATASET, tasks "
            "JOB,\n"
            "candidates ION, policy-decisions ION, members ION.",
    .min_words = 1,
    .max_words = 2,
    CLI_OPTIONS(get_options, get_options),
    .run = run_get,
};

/* An ION is described with its candidates and what its policies decided. */
static weir_status describe_ion(struct cli_call *call, const char *name, struct weir_error *err)
{
    json_t *ion, *part;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/ions/{}", name), NULL, &ion, err));
    static const char *const parts[][2] = {
        {"candidates", "/api/v1/ions/{}/candidates"},
        {"policy_decisions", "/api/v1/ions/{}/policy-decisions"},
        {"members", "/api/v1/ions/{}/members"},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        weir_status status =
            cli_rest(call, "GET", cli_path1(call, parts[i][1], name), NULL, &part, err);
        if (status != WEIR_OK) {
            json_decref(ion);
            return status;
        }
        json_object_set(ion, parts[i][0], json_object_get(part, "items"));
        json_decref(part);
    }
    cli_print_object(call, ion);
    json_decref(ion);
    return WEIR_OK;
}

static weir_status run_describe(struct cli_call *call, struct weir_error *err)
{
    bool has_noun = call->n_words == 2;
    const char *name = call->words[call->n_words - 1];
    if (!has_noun || strcmp(call->words[0], "ion") == 0 || strcmp(call->words[0], "ions") == 0) {
        return describe_ion(call, name, err);
    }
    const struct noun *noun = find_noun(nouns, WEIR_ARRAY_LEN(nouns), call->words[0]);
    if (noun == NULL || noun->get_path == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "weir describe knows ion, job, run, model and dataset");
    }
    return print_one(call, noun, name, err);
}

const struct cli_command cli_describe = {
    .name = "describe",
    .usage = "[NOUN] NAME [-o json]",
    .summary = "Show all about an ION (or job, run, model, dataset)",
    .min_words = 1,
    .max_words = 2,
    CLI_OPTIONS(get_options, get_options),
    .run = run_describe,
};
