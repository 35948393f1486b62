/** weir cluster add, set, get, describe, check, drain, resume, remove, manifest; weir allocation release: suppliers of nodes. */
#include "cli/core/input.h"
#include "cli/core/noun.h"
#include "cli/core/verb.h"

#include "base/quantity.h"
#include "base/yaml_write.h"
#include "cluster/kubernetes/manifest.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES  ((size_t)256 << 10)
#define YAML_MAX_BYTES  ((size_t)1 << 20)
#define ASK_PATIENCE_MS 150000 /* Longer than the server asks a cluster. */

struct cluster_options {
    struct cli_common common;
    char *driver, *file, *set, *after, *idle, *time, *max_nodes;
    bool is_sure, force;
};

#define CLI_CLUSTER_OPTIONS                                                                        \
    CLI_COMMON_OPTIONS(cluster_options),                                                           \
        CLI_TEXT(cluster_options, file, "file", 'f', "FILE",                                       \
                 "The cluster as YAML: driver, options, after, idle, time, max_nodes; flags "      \
                 "change it"),                                                                     \
        CLI_LIST(cluster_options, set, "set", 0, "OPTION=VALUE",                                   \
                 "An option of the driver (weir explain driver NAME); without a value it is left " \
                 "out; may be repeated"),                                                          \
        CLI_TEXT(cluster_options, after, "after", 0, "TIME",                                       \
                 "A job waits for so long before nodes are asked for it here: 10m; 0 if never "    \
                 "said"),                                                                          \
        CLI_TEXT(cluster_options, idle, "idle", 0, "TIME",                                         \
                 "Nodes that nothing has run on for so long are given back; 1m if never said"),    \
        CLI_TEXT(cluster_options, time, "time", 0, "TIME",                                         \
                 "For how long nodes are asked for, if no job says how long it runs: 12h; 0: for " \
                 "as long as may be"),                                                             \
        CLI_TEXT(cluster_options, max_nodes, "max-nodes", 0, "N",                                  \
                 "At most so many nodes at a time; 0: no bound of Weir's"),                        \
        CLI_FLAG(cluster_options, force, "force", 0, "Also if something lacks")

static const struct weir_option add_options[] = {
    CLI_CLUSTER_OPTIONS,
    CLI_TEXT(cluster_options, driver, "driver", 0, "NAME",
             "Driver that supplies its nodes: `weir explain drivers`"),
    CLI_FLAG(cluster_options, is_sure, "yes", 'y', "Do not ask whether what was guessed is right"),
};

static const struct weir_option set_options[] = {CLI_CLUSTER_OPTIONS};

struct manifest_options {
    struct cli_common common;
    struct weir_kubernetes_manifest wanted;
};

static const struct weir_option manifest_options[] = {
    WEIR_OPT(manifest_options, wanted.namespace, "namespace", 0, TEXT, "weir", 0, 0, "NAMESPACE",
             "Namespace of the server and its agents"),
    CLI_TEXT(manifest_options, wanted.team, "team", 0, "NAMESPACE",
             "Print what a namespace needs in which a queue is to have its pods, and nothing else"),
    WEIR_OPT(manifest_options, wanted.image, "image", 0, TEXT, "weir:" WEIR_VERSION, 0, 0, "IMAGE",
             "Weir's image, where the cluster finds it (make image)"),
    CLI_TEXT(manifest_options, wanted.host, "host", 0, "HOSTNAME",
             "Make an ingress, by which browsers and programs reach it as https://HOSTNAME"),
    CLI_TEXT(manifest_options, wanted.ingress_class, "ingress-class", 0, "CLASS",
             "Of that ingress (else the cluster's default one)"),
    WEIR_OPT(manifest_options, wanted.ingress_namespace, "ingress-namespace", 0, TEXT,
             "ingress-nginx", 0, 0, "NAMESPACE",
             "With --host: where the controller of ingresses runs, which may reach the server"),
    WEIR_OPT(manifest_options, wanted.storage, "storage", 0, TEXT, "20Gi", 0, 0, "SIZE",
             "Of the volume that has the server's state"),
    CLI_TEXT(manifest_options, wanted.storage_class, "storage-class", 0, "CLASS",
             "Of that volume (else the cluster's default one)"),
    WEIR_OPT(manifest_options, wanted.scheduler, "scheduler", 0, TEXT, "cluster", 0, 0,
             "cluster|kueue|weir", "Who places pods; weir takes more rights"),
    CLI_TEXT(manifest_options, wanted.quota, "quota", 0, "WHAT=N,…",
             "Bound what pods of the namespace ask for, the server's included: "
             "cpu=64,memory=256Gi,nvidia.com/gpu=8"),
    CLI_FLAG(manifest_options, wanted.has_monitor, "service-monitor", 0,
             "Have the operator of Prometheus read /metrics, with the token of the secret "
             "weir-metrics"),
    CLI_FLAG(
        manifest_options, wanted.has_jobs, "jobs", 0,
        "Show jobs to people with kubectl (`kubectl get weirjobs`): the definition of WeirJobs, "
        "and the rights that it takes"),
    CLI_OUTPUT_OPTIONS(manifest_options),
};

/* ---- what was said ----------------------------------------------------------------------------- */

/* "10m" or a number of seconds, to `member` in milliseconds. */
static weir_status put_span(json_t *body, const char *member, const char *place, const char *text,
                            struct weir_error *err)
{
    int64_t ms;
    if (text == NULL) {
        return WEIR_OK;
    }
    if (!weir_span_parse(text, &ms)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s %.40s: expected a time, as in 90s, 10m or 12h", place, text);
    }
    json_object_set_new(body, member, json_integer((json_int_t)ms));
    return WEIR_OK;
}

/* Times of a file as people write them: {after: 10m} is {after_ms: 600000}. */
static weir_status read_spans(struct cli_call *call, json_t *body, struct weir_error *err)
{
    static const char *const names[][2] = {
        {"after", "after_ms"}, {"idle", "idle_ms"}, {"time", "time_ms"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        const json_t *value = json_object_get(body, names[i][0]);
        if (value != NULL) {
            const char *text = json_is_string(value) ? json_string_value(value)
                                                     : cli_text(call, body, names[i][0]);
            WEIR_TRY(put_span(body, names[i][1],
                              weir_arena_printf(call->arena, "$.%s:", names[i][0]), text, err));
            (void)json_object_del(body, names[i][0]);
        }
    }
    return WEIR_OK;
}

/* The type of a driver's option, as the server's kinds say; NULL: it has none of this name. */
static const char *type_of(const json_t *kinds, const char *driver, const char *option)
{
    const json_t *kind, *row;
    size_t i, j;
    json_array_foreach(json_object_get(kinds, "items"), i, kind)
    {
        const char *name = json_string_value(json_object_get(kind, "name"));
        json_array_foreach(json_object_get(kind, "options"), j, row)
        {
            if (name != NULL && strcmp(name, driver) == 0 &&
                strcmp(json_string_value(json_object_get(row, "name")), option) == 0) {
                return json_string_value(json_object_get(row, "type"));
            }
        }
    }
    return NULL;
}

/* Text is text, whatever it looks like; all else is read as JSON. */
static json_t *value_of(const char *type, const char *text)
{
    json_t *value =
        type != NULL && strcmp(type, "text") != 0 ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return value != NULL ? value : json_string(text);
}

static weir_status put_options(struct cli_call *call, const char *list, json_t *body,
                               struct weir_error *err)
{
    const char *driver = json_string_value(json_object_get(body, "driver"));
    WEIR_AUTO(weir_json_auto_free) json_t *kinds = NULL;
    json_t *options = json_object_get(body, "options");
    char *word;
    if (list == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/kinds?noun=driver", NULL, &kinds, err));
    while ((word = cli_next_word(call, &list)) != NULL) {
        char *equals = strchr(word, '=');
        if (equals == NULL || equals == word) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--set %.60s: expected OPTION=VALUE",
                                  word);
        }
        *equals = '\0';
        for (char *c = word; *c != '\0'; c++) {
            *c = *c == '-' ? '_' : *c;
        }
        if (equals[1] == '\0') {
            (void)json_object_del(options, word);
        } else {
            json_object_set_new(
                options, word,
                value_of(type_of(kinds, driver != NULL ? driver : "", word), equals + 1));
        }
    }
    return WEIR_OK;
}

static weir_status put_max_nodes(const char *text, json_t *body, struct weir_error *err)
{
    char *end;
    long long n = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text == NULL) {
        return WEIR_OK;
    }
    if (end == text || *end != '\0' || n < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--max-nodes %.40s: expected a number", text);
    }
    json_object_set_new(body, "max_nodes", json_integer(n));
    return WEIR_OK;
}

/* The file, and over it the flags, over what `body` has already. */
static weir_status put_change(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct cluster_options *options = call->options;
    if (options->file != NULL) {
        json_t *file;
        WEIR_TRY(cli_input_yaml(options->file, FILE_MAX_BYTES, false, call->arena, &file, err));
        weir_status status =
            json_is_object(file)
                ? read_spans(call, file, err)
                : weir_error_set(err, WEIR_ERR_INVALID, "%.80s: expected an object", options->file);
        json_object_update(body, file);
        json_decref(file);
        WEIR_TRY(status);
    }
    if (options->driver != NULL) {
        json_object_set_new(body, "driver", json_string(options->driver));
    }
    if (!json_is_object(json_object_get(body, "options"))) {
        json_object_set_new(body, "options", json_object());
    }
    WEIR_TRY(put_options(call, options->set, body, err));
    WEIR_TRY(put_span(body, "after_ms", "--after", options->after, err));
    WEIR_TRY(put_span(body, "idle_ms", "--idle", options->idle, err));
    WEIR_TRY(put_span(body, "time_ms", "--time", options->time, err));
    return put_max_nodes(options->max_nodes, body, err);
}

/* ---- what the cluster says --------------------------------------------------------------------- */

static weir_status ask(struct cli_call *call, const char *path, const json_t *body, json_t **out,
                       struct weir_error *err)
{
    WEIR_TRY(cli_connect(call, err));
    weir_client_set_timeout(call->client, ASK_PATIENCE_MS);
    return cli_rest(call, "POST", path, body, out, err);
}

/* {"name", "driver", "options"} of a cluster, for the server to ask it. A new reference. */
static json_t *question_of(const struct cli_call *call, const json_t *body)
{
    return json_pack("{s:s,s:O*,s:O*}", "name", call->words[0], "driver",
                     json_object_get(body, "driver"), "options", json_object_get(body, "options"));
}

/* Put what could be guessed into the body. *out: what of it was not said; NULL: nothing. In the arena. */
static weir_status guess(struct cli_call *call, json_t *body, const char **out,
                         struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *question = question_of(call, body);
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    const json_t *said = json_object_get(body, "options");
    const char *name;
    json_t *value;
    *out = NULL;
    WEIR_TRY(ask(call, "/api/v1/clusters/guess", question, &answer, err));
    json_t *options = json_object_get(answer, "options");
    json_object_foreach(options, name, value)
    {
        if (json_object_get(said, name) == NULL) {
            *out = weir_arena_printf(call->arena, "%s%s%s: %s", *out != NULL ? *out : "",
                                     *out != NULL ? ", " : "", name, cli_text(call, options, name));
        }
    }
    json_object_update_missing(json_object_get(body, "options"), options);
    return WEIR_OK;
}

/* "gpu (4 nodes of 64 CPUs, 8 H100), cpu (…)" */
static const char *pools_text(struct cli_call *call, const json_t *pools)
{
    const char *text = "";
    const json_t *pool;
    size_t i;
    json_array_foreach(pools, i, pool)
    {
        int64_t n = json_integer_value(json_object_get(pool, "max_nodes"));
        int64_t n_devices = json_integer_value(json_object_get(pool, "n_accelerators"));
        const char *model = json_string_value(json_object_get(pool, "accelerator"));
        const char *why = json_string_value(json_object_get(pool, "why"));
        const char *devices =
            n_devices > 0 ? weir_arena_printf(call->arena, ", %lld %s", (long long)n_devices,
                                              model != NULL ? model : "accelerators")
                          : "";
        const char *nodes =
            n > 0 ? weir_arena_printf(call->arena, "%lld nodes of ", (long long)n) : "nodes of ";
        text = weir_arena_printf(call->arena, "%s%s%s (%s%lld CPUs%s%s%s)", text, i > 0 ? ", " : "",
                                 cli_text(call, pool, "name"), nodes,
                                 (long long)json_integer_value(json_object_get(pool, "cpu_slots")),
                                 devices, why != NULL ? "; " : "", why != NULL ? why : "");
    }
    return text[0] != '\0' ? text : "none";
}

static void print_notice(const struct cli_call *call, const json_t *answer)
{
    const char *notice = json_string_value(json_object_get(answer, "notice"));
    if (notice != NULL) {
        (void)fprintf(stderr, "weir: %s: %s\n", call->words[0], notice);
    }
}

/* Something lacks: that is the error, unless it is forced. */
static weir_status check(struct cli_call *call, const json_t *body, struct weir_error *err)
{
    const struct cluster_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *question = question_of(call, body);
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    WEIR_TRY(ask(call, "/api/v1/clusters/check", question, &answer, err));
    const char *missing = json_string_value(json_object_get(answer, "missing"));
    if (missing != NULL && !options->force) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s: %s (--force: all the same)",
                              call->words[0], missing);
    }
    (void)fprintf(stderr, missing != NULL ? "weir: %s lacks something: %s\n" : "%s: pools: %s\n",
                  call->words[0],
                  missing != NULL ? missing : pools_text(call, json_object_get(answer, "pools")));
    print_notice(call, answer);
    return WEIR_OK;
}

/* At a terminal a person says whether what was guessed is right. */
static weir_status confirm(const struct cluster_options *options, struct weir_error *err)
{
    char line[16] = "";
    if (options->is_sure || isatty(STDIN_FILENO) != 1) {
        return WEIR_OK;
    }
    (void)fputs("Add it so? [y/N] ", stderr);
    bool is_said = fgets(line, sizeof line, stdin) != NULL;
    return is_said && (line[0] == 'y' || line[0] == 'Y')
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CANCELLED,
                                "nothing is added; --set OPTION=VALUE says what is right");
}

/* ---- the verbs --------------------------------------------------------------------------------- */

static weir_status begin(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct cluster_options *options = call->options;
    const char *guessed;
    json_object_set_new(body, "name", json_string(call->words[0]));
    WEIR_TRY(put_change(call, body, err));
    json_object_set_new(body, "name", json_string(call->words[0]));
    weir_status status = guess(call, body, &guessed, err);
    if (status != WEIR_OK && !options->force) {
        return status;
    }
    if (guessed != NULL) {
        (void)fprintf(stderr, "%s: guessed: %s\n", call->words[0], guessed);
        WEIR_TRY(confirm(options, err));
    }
    return check(call, body, err);
}

/* What is not said stays as it is. */
static weir_status go_on(struct cli_call *call, json_t *body, struct weir_error *err)
{
    static const char *const kept[] = {"driver",  "options", "is_draining", "after_ms",
                                       "idle_ms", "time_ms", "max_nodes"};
    WEIR_AUTO(weir_json_auto_free) json_t *old = NULL;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/clusters/{}", call->words[0]), NULL,
                      &old, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kept); i++) {
        json_object_set(body, kept[i], json_object_get(old, kept[i]));
    }
    WEIR_TRY(put_change(call, body, err));
    (void)json_object_del(body, "name");
    return check(call, body, err);
}

static void print_check(struct cli_call *call, const json_t *answer)
{
    const char *missing = json_string_value(json_object_get(answer, "missing"));
    print_notice(call, answer);
    if (missing != NULL) {
        printf("%s: lacks something: %s\n", call->words[0], missing);
        call->exit_status = 1;
    } else {
        printf("%s: ready; pools: %s\n", call->words[0],
               pools_text(call, json_object_get(answer, "pools")));
    }
}

/* Ended as `weir cluster check` of scripts: 0 if nothing lacks. */
static weir_status run_check(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_verb verb = {.call = "POST /api/v1/clusters/{0}/check",
                                         .body = "",
                                         .patience_ms = ASK_PATIENCE_MS,
                                         .print = print_check};
    return cli_verb_run(call, &verb, err);
}

/* Documents that `kubectl apply -f -` takes: a stream of YAML, or one list as JSON. */
static weir_status run_manifest(struct cli_call *call, struct weir_error *err)
{
    struct manifest_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *documents = NULL;
    WEIR_AUTO(weir_buf_fini) struct weir_buf text;
    weir_buf_init(&text, YAML_MAX_BYTES);
    options->wanted.name = call->words[0];
    WEIR_TRY(weir_kubernetes_manifest_make(&options->wanted, &documents, err));
    if (cli_is_json(call)) {
        cli_print_change(
            json_pack("{s:s,s:s,s:O}", "apiVersion", "v1", "kind", "List", "items", documents));
    } else {
        WEIR_TRY(weir_yaml_write(documents, true, &text));
        (void)fputs(text.data, stdout);
    }
    (void)fflush(stdout);
    (void)fputs(weir_kubernetes_manifest_notes(&options->wanted, call->arena), stderr);
    return WEIR_OK;
}

#define CLUSTER_SAYS                                                                               \
    "{0}: {state}, {is_draining?no more nodes are asked for; what runs there goes on|nodes are "   \
    "asked for}"

const struct cli_command cli_cluster_add = {
    .name = "cluster add",
    .usage = "NAME --driver NAME [--set OPTION=VALUE …] [-f FILE] [--after TIME] [--idle TIME] "
             "[--time TIME] [--max-nodes N] [--yes] [--force]",
    .summary = "Add a cluster that nodes are asked of when there is no room for a job",
    .help = "What is not said of the driver's options is guessed by asking the cluster, and shown. "
            "Then it is checked; if\nsomething lacks, nothing is added. `weir explain drivers` "
            "says which drivers there are, `weir explain driver NAME`\nits options.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(cluster_options, add_options),
    CLI_VERBS({.prepare = begin,
               .call = "POST /api/v1/clusters",
               .body = "",
               .say = "{0}: added, by driver {driver}"}),
};

const struct cli_command cli_cluster_set = {
    .name = "cluster set",
    .usage = "NAME [--set OPTION=VALUE …] [-f FILE] [--after TIME] [--idle TIME] [--time TIME] "
             "[--max-nodes N] [--force]",
    .summary = "Change a cluster; what is not said stays",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(cluster_options, set_options),
    CLI_VERBS(
        {.prepare = go_on, .call = "PUT /api/v1/clusters/{0}", .body = "", .say = "{0}: set"}),
};

const struct cli_command cli_cluster_get = {
    .name = "cluster get",
    .usage = "[-o wide|json]",
    .summary = "List clusters with their state, and how many nodes of them are here",
    .flags = CLI_WIDE,
    CLI_PLAIN,
    CLI_VERBS({.lists = "clusters"}),
};

extern const struct cli_command cli_describe;

static weir_status run_describe(struct cli_call *call, struct weir_error *err)
{
    char **words = WEIR_ARENA_ARRAY(call->arena, 2, char *);
    words[0] = weir_arena_strdup(call->arena, "cluster");
    words[1] = call->words[0];
    call->words = words;
    call->n_words = 2;
    return cli_describe.run(call, err);
}

const struct cli_command cli_cluster_describe = {
    .name = "cluster describe",
    .usage = "NAME [-o json|yaml]",
    .summary = "Look at a cluster, its pools and its allocations: as `weir describe cluster NAME`",
    .flags = CLI_YAML,
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_describe,
};

const struct cli_command cli_cluster_check = {
    .name = "cluster check",
    .usage = "NAME",
    .summary = "Ask a cluster now: what lacks, or which nodes can be had",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_check,
};

const struct cli_command cli_cluster_drain = {
    .name = "cluster drain",
    .usage = "NAME",
    .summary = "Ask a cluster for no more nodes; what runs there goes on",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS(
        {.call = "PATCH /api/v1/clusters/{0}", .body = "is_draining=true", .say = CLUSTER_SAYS}),
};

const struct cli_command cli_cluster_resume = {
    .name = "cluster resume",
    .usage = "NAME",
    .summary = "Ask a drained cluster for nodes again",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS(
        {.call = "PATCH /api/v1/clusters/{0}", .body = "is_draining=false", .say = CLUSTER_SAYS}),
};

const struct cli_command cli_cluster_remove = {
    .name = "cluster remove",
    .usage = "NAME",
    .summary = "Remove a cluster of which no allocation is left",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.call = "DELETE /api/v1/clusters/{0}", CLI_DONE(0, "removed")}),
};

const struct cli_command cli_cluster_manifest = {
    .name = "cluster manifest",
    .usage = "NAME [--namespace NAMESPACE] [--team NAMESPACE] [--image IMAGE] [--host HOSTNAME] "
             "[--storage SIZE] "
             "[--scheduler cluster|kueue|weir] [--quota WHAT=N,…] [--service-monitor] "
             "[-o yaml|json]",
    .summary = "Print what runs Weir on a Kubernetes cluster: weir cluster manifest NAME | kubectl "
               "apply -f -",
    .help = "NAME is what Weir will call the cluster. Nothing is asked and nothing changed: it "
            "prints the server with its volume,\nthe rights that it needs to have nodes of this "
            "cluster, and what it and its agents may reach. What to do then is\nsaid on standard "
            "error.",
    .flags = CLI_YAML,
    CLI_WORDS(1, 1),
    CLI_OPTIONS(manifest_options, manifest_options),
    .run = run_manifest,
};

const struct cli_command cli_allocation_release = {
    .name = "allocation release",
    .usage = "ALLOCATION",
    .summary = "Give the nodes of an allocation back; what runs there is stopped",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.call = "POST /api/v1/allocations/{0}/release",
               .body = "",
               .say = "{id}: {state}{why?; {why}|}"}),
};
