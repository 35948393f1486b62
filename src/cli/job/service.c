/** weir service, notebook, tensorboard: programs that a browser is brought to. */
#include "cli/admin/project_find.h"
#include "cli/core/find.h"
#include "cli/core/verb.h"
#include "cli/core/wait.h"
#include "cli/job/job_ask.h"
#include "cli/job/job_code.h"
#include "cli/job/job_program.h"

#include "base/quantity.h"

#include <string.h>

struct service_options {
    struct cli_common common;
    struct job_program program;
    struct job_ask ask;
    struct job_code code;
    char *name, *project, *image, *idle, *timeout;
    int64_t port;
    bool keeps_path, is_shared, has_wait, installs;
};

/* Rows of the tables of all that start one. */
#define SERVICE_OPTIONS(strct)                                                                     \
    CLI_COMMON_OPTIONS(strct), JOB_PROGRAM_OPTIONS(strct),                                         \
        CLI_TEXT(strct, image, "image", 0, "IMAGE",                                                \
                 "OCI image to run in: the name of one on the nodes, or in a registry, for pods "  \
                 "of Kubernetes"),                                                                 \
        WEIR_OPT(strct, program.network, "network", 0, TEXT, "host", 0, 0, "host|none",            \
                 "none: it reaches nothing, and nothing on its node reaches it"),                  \
        WEIR_OPT(strct, program.cpu_millis, "cpus", 0, CPUS, "0.1", 0, 4096, "N",                  \
                 "CPUs that are kept for it: 2, 0.5 or 500m; it may use what others leave"),       \
        CLI_TEXT(strct, program.memory, "memory", 0, "SIZE",                                       \
                 "Most memory, which is kept for it: 512M, 2G"),                                   \
        JOB_ASK_OPTIONS(strct),                                                                    \
        CLI_TEXT(strct, idle, "idle-after", 0, "TIME",                                             \
                 "Stop it when nobody has used it for so long: 30m, 8h (else as its queue says)"), \
        CLI_FLAG(strct, is_shared, "share", 0,                                                     \
                 "Others of the project may open it (else only you)"),                             \
        CLI_TEXT(strct, project, "project", 0, "NAME",                                             \
                 "Whose it is (else your only project, or \"default\")"),                          \
        CLI_FLAG(strct, has_wait, "wait", 'w', "Wait until it runs, and print its address"),       \
        WEIR_OPT(strct, timeout, "timeout", 0, TEXT, "10m", 0, 0, "TIME",                          \
                 "With --wait: wait so long at most")

static const struct weir_option run_options[] = {
    SERVICE_OPTIONS(service_options),
    CLI_TEXT(service_options, name, "name", 'n', "NAME",
             "Its name in the project (else the script's or the program's)"),
    WEIR_OPT(service_options, port, "port", 'p', INT, "0", 0, 65535, "N",
             "Port that the program listens on; 0: it reads WEIR_PORT, or has {{port}} in a word"),
    CLI_FLAG(service_options, keeps_path, "keep-path", 0,
             "The program knows WEIR_SERVICE_PATH ({{path}}) and is asked for paths below it"),
    JOB_CODE_OPTIONS(service_options),
};

static const struct weir_option notebook_options[] = {
    SERVICE_OPTIONS(service_options),
};

static const struct weir_option tensorboard_options[] = {
    SERVICE_OPTIONS(service_options),
    CLI_TEXT(service_options, name, "name", 'n', "NAME",
             "Its name in the project (else made of the first run's)"),
    CLI_FLAG(service_options, installs, "install", 0,
             "Have the node make a Python environment with TensorBoard, from its package index"),
};

static const struct weir_option one_options[] = {
    CLI_COMMON_OPTIONS(service_options),
    CLI_TEXT(service_options, project, "project", 0, "NAME",
             "Whose it is (else of any that you see)"),
};

/* ---- finding one ------------------------------------------------------------------------------------ */

/* By its name, or its id; without a word it is "notebook". Its id becomes the word behind it. */
static weir_status find_service_of(struct cli_call *call, json_t *body, struct weir_error *err)
{
    static const struct cli_verb list = {.call = "GET /api/v1/services?limit=1000{1?&kind=|}{1}",
                                         .query = "name=0 -project"};
    bool is_notebook = strncmp(call->command->name, "notebook ", 9) == 0;
    const char *kind = is_notebook ? "notebook" : "service";
    char **words = WEIR_ARENA_ARRAY(call->arena, 2, char *);
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    (void)body;
    words[0] = weir_arena_strdup(call->arena, call->n_words > 0 ? call->words[0] : "notebook");
    words[1] = weir_arena_strdup(call->arena, kind);
    call->words = words;
    call->n_words = is_notebook ? 2 : 1; /* services are of any kind */
    WEIR_TRY(cli_rest(call, "GET", cli_verb_path(call, &list, NULL), NULL, &answer, err));
    const json_t *items = json_object_get(answer, "items");
    size_t n = json_array_size(items);
    if (n > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%zu projects have a %s \"%.60s\": say which with --project", n, kind,
                              words[0]);
    }
    if (n == 0 && strlen(words[0]) != 26) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no %s \"%.60s\": `weir service list` lists them", kind,
                              words[0]);
    }
    words[1] = n == 1 ? cli_text(call, json_array_get(items, 0), "id") : words[0];
    call->n_words = 2;
    return WEIR_OK;
}

/* ---- starting ----------------------------------------------------------------------------------------- */

static weir_status make_spec(struct cli_call *call, char **words, size_t n, json_t *spec,
                             struct weir_error *err)
{
    const struct service_options *options = call->options;
    if (options->image != NULL) {
        json_object_set_new(spec, "image", json_string(options->image));
    }
    WEIR_TRY(job_ask_add(&options->ask, spec, err));
    return job_program_add(call, &options->program, words, n, spec, err);
}

static weir_status add_idle(const struct service_options *options, json_t *body,
                            struct weir_error *err)
{
    int64_t ms = 0;
    if (options->idle == NULL) {
        return WEIR_OK;
    }
    if (!weir_span_parse(options->idle, &ms) || ms <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--idle-after: expected a time as 30m or 8h, got \"%.40s\"",
                              options->idle);
    }
    json_object_set_new(body, "idle_after_ms", json_integer(ms));
    return WEIR_OK;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static bool has_started(const json_t *service, const void *wanted)
{
    (void)wanted;
    return strcmp(text_of(service, "state"), "STARTING") != 0;
}

/* Until it runs, or has ended; *service is looked at again. */
static weir_status wait_for(struct cli_call *call, json_t **service, struct weir_error *err)
{
    const struct service_options *options = call->options;
    struct cli_awaited awaited = {
        .what = weir_arena_printf(call->arena, "%s %s", text_of(*service, "kind"),
                                  text_of(*service, "name")),
        .path = cli_path1(call, "/api/v1/services/{}", text_of(*service, "id")),
        .waits = cli_service_waits,
        .is_there = has_started};
    WEIR_TRY(cli_wait_timeout(options->timeout, &awaited.timeout_ms, err));
    json_t *last = NULL;
    weir_status status = cli_wait_for(call, &awaited, &last, err);
    if (last != NULL) {
        json_decref(*service);
        *service = last;
    }
    WEIR_TRY(status);
    return strcmp(text_of(*service, "state"), "RUNNING") == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s does not run: %s (weir logs %s)",
                                awaited.what, text_of(*service, "why"), text_of(*service, "name"));
}

/* POST it, and say what it is called. */
static weir_status start(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct service_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *service = NULL;
    if (options->project != NULL) {
        json_object_set_new(body, "project", json_string(options->project));
    }
    json_object_set_new(body, "is_shared", json_boolean(options->is_shared));
    WEIR_TRY(add_idle(options, body, err));
    job_ask_warn(call, &options->ask);
    WEIR_TRY(cli_rest(call, "POST", "/api/v1/services", body, &service, err));
    if (options->has_wait) {
        WEIR_TRY(wait_for(call, &service, err));
    }
    cli_print_said(call, service,
                   cli_fill(call,
                            "{kind} \"{name}\": {state=RUNNING?runs|starts}\n"
                            "address: {url} (in a browser that is logged in to Weir; else: weir "
                            "service open {name})",
                            NULL, service));
    return WEIR_OK;
}

static weir_status run_service(struct cli_call *call, struct weir_error *err)
{
    struct service_options *options = call->options;
    size_t n_before = job_program_words_before(call), n = call->n_words - n_before;
    char **words = call->words + n_before;
    if (n_before > 1 || n == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the program stands behind \"--\": weir service run --port 8000 -- "
                              "python3 -m http.server 8000");
    }
    const char *name = n_before == 1           ? call->words[0]
                       : options->name != NULL ? options->name
                                               : job_program_name_of(call, words, n);
    json_t *spec = json_object();
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s,s:s,s:o,s:I,s:b}", "name", name, "kind", "service", "spec", spec,
                             "port", (json_int_t)options->port, "keeps_path", options->keeps_path);
    WEIR_TRY(make_spec(call, words, n, spec, err));
    WEIR_TRY(cli_project_find(call, options->project, "submit jobs", &options->code.project, err));
    options->code.image = options->image;
    WEIR_TRY(job_code_add(call, &options->code, words, n, spec, err));
    return start(call, body, err);
}

static weir_status run_notebook(struct cli_call *call, struct weir_error *err)
{
    json_t *spec = json_object();
    WEIR_AUTO(weir_json_auto_free)
    json_t *body =
        json_pack("{s:s,s:s,s:o}", "name", call->n_words > 0 ? call->words[0] : "notebook", "kind",
                  "notebook", "spec", spec);
    WEIR_TRY(make_spec(call, NULL, 0, spec, err));
    return start(call, body, err);
}

static weir_status add_runs(struct cli_call *call, json_t *runs, struct weir_error *err)
{
    for (size_t i = 0; i < call->n_words; i++) {
        char *id;
        WEIR_TRY(cli_find(call, &find_run, call->words[i], &id, err));
        json_array_append_new(runs, json_string(id));
    }
    return WEIR_OK;
}

static weir_status run_tensorboard(struct cli_call *call, struct weir_error *err)
{
    const struct service_options *options = call->options;
    json_t *spec = json_object(), *runs = json_array();
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s,s:o,s:o}", "kind", "tensorboard", "spec", spec, "runs", runs);
    WEIR_TRY(add_runs(call, runs, err));
    WEIR_TRY(make_spec(call, NULL, 0, spec, err));
    if (options->installs) {
        json_object_set_new(spec, "python", json_string("tensorboard\nsetuptools<81\n"));
    }
    const char *first = json_string_value(json_array_get(runs, 0));
    json_object_set_new(body, "name",
                        options->name != NULL
                            ? json_string(options->name)
                            : json_sprintf("tensorboard-%s", cli_short_id(first)));
    return start(call, body, err);
}

/* ---- what is there ------------------------------------------------------------------------------------ */

#define SERVICE_COLUMNS                                                                            \
    CLI_COLUMNS({"name", "NAME"}, {"kind", "KIND"}, {"state", "STATE"}, {"owner", "OWNER"},        \
                {"project", "PROJECT"}, {"node", "NODE"}, {"used_ms", "USED"}, {"why", "WHY"})

#define OPEN_SERVICE                                                                               \
    CLI_VERBS({.prepare = find_service_of,                                                         \
               .call = "POST /api/v1/services/{1}/ticket",                                         \
               .say = "{url}",                                                                     \
               .aside = "weir: this address is good once, for a minute; the browser that opens "   \
                        "it stays logged in"})

#define STOP_SERVICE                                                                               \
    CLI_VERBS({.prepare = find_service_of,                                                         \
               .call = "POST /api/v1/services/{1}/stop",                                           \
               .say = "{0} is stopped; its folder stays"})

const struct cli_command cli_service_run = {
    .name = "service run",
    .usage = "[NAME] [--port N] [--dir DIR] -- PROGRAM …",
    .summary = "Run a program that a browser is brought to",
    .help =
        "The program listens on 127.0.0.1, on --port or on WEIR_PORT. Its address is one of the\n"
        "server's, where who is logged in to Weir may open it: you, or with --share others of "
        "the\n"
        "project. WEIR_FOLDER is a folder that stays when it is stopped. {{port}} and {{path}} "
        "in\n"
        "a word are filled in.",
    CLI_WORDS(1, 1000),
    CLI_OPTIONS(service_options, run_options),
    .run = run_service,
};

const struct cli_command cli_notebook_start = {
    .name = "notebook start",
    .usage = "[NAME]",
    .summary = "Start a notebook (Jupyter), or the one of this name again",
    .help = "Its folder stays when it is stopped, by you or because nobody has used it. Jupyter is "
            "the\n"
            "node's (Debian: jupyter-notebook), or that of an environment made by --python.",
    CLI_WORDS(0, 1),
    CLI_OPTIONS(service_options, notebook_options),
    .run = run_notebook,
};

const struct cli_command cli_tensorboard = {
    .name = "tensorboard",
    .usage = "RUN…",
    .summary = "Show runs in TensorBoard, as they go on",
    .help = "TensorBoard is the node's, or that of an environment made by --install or --python.",
    CLI_WORDS(1, 100),
    CLI_OPTIONS(service_options, tensorboard_options),
    .run = run_tensorboard,
};

const struct cli_command cli_service_list = {
    .name = "service list",
    .usage = "",
    .summary = "List services and notebooks",
    .flags = CLI_WIDE,
    CLI_OPTIONS(service_options, one_options),
    CLI_VERBS({.call = "GET /api/v1/services?limit=1000", .query = "-project", SERVICE_COLUMNS}),
};

const struct cli_command cli_notebook_list = {
    .name = "notebook list",
    .usage = "",
    .summary = "List notebooks",
    .flags = CLI_WIDE,
    CLI_OPTIONS(service_options, one_options),
    CLI_VERBS({.call = "GET /api/v1/services?limit=1000&kind=notebook",
               .query = "-project",
               SERVICE_COLUMNS}),
};

const struct cli_command cli_service_open = {
    .name = "service open",
    .usage = "NAME",
    .summary = "Print an address that lets a browser in, once",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(service_options, one_options),
    OPEN_SERVICE,
};

const struct cli_command cli_notebook_open = {
    .name = "notebook open",
    .usage = "[NAME]",
    .summary = "Print an address that lets a browser in, once",
    CLI_WORDS(0, 1),
    CLI_OPTIONS(service_options, one_options),
    OPEN_SERVICE,
};

const struct cli_command cli_service_start = {
    .name = "service start",
    .usage = "NAME",
    .summary = "Start a service that has stopped, as it was",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(service_options, one_options),
    CLI_VERBS({.prepare = find_service_of,
               .call = "POST /api/v1/services/{1}/start",
               .say = "{0} starts"}),
};

const struct cli_command cli_service_stop = {
    .name = "service stop",
    .usage = "NAME",
    .summary = "Stop a service; its folder stays",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(service_options, one_options),
    STOP_SERVICE,
};

const struct cli_command cli_notebook_stop = {
    .name = "notebook stop",
    .usage = "[NAME]",
    .summary = "Stop a notebook; its folder stays",
    CLI_WORDS(0, 1),
    CLI_OPTIONS(service_options, one_options),
    STOP_SERVICE,
};

const struct cli_command cli_service_delete = {
    .name = "service delete",
    .usage = "NAME",
    .summary = "Forget a service or notebook that does not run, with its folder",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(service_options, one_options),
    CLI_VERBS({.prepare = find_service_of,
               .call = "DELETE /api/v1/services/{1}",
               .say = "{0} is deleted, with its folder",
               .gives = "deleted=1"}),
};
