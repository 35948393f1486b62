/** weir describe: one record with what belongs to it, the state first. */
#include "cli/noun.h"

#include "cli/model_name.h"

#include <string.h>

#define PARTS_MAX   3
#define PART_LIMIT  10 /* of each part; -o yaml shows all */
#define WHOLE_LIMIT 1000

static const struct cli_column pipeline_columns[] = {
    {"name", "PIPELINE"},   {"type", "TYPE"}, {"state", "STATE"},     {"model", "MODEL"},
    {"dataset", "DATASET"}, {"job", "JOB"},   {"state_reason", "WHY"}};
static const struct cli_column threshold_columns[] = {{"pipeline", "PIPELINE"},
                                                      {"rule", "RULE"},
                                                      {"threshold", "THRESHOLD"},
                                                      {"threshold_low", "FROM"},
                                                      {"threshold_high", "TO"},
                                                      {"deny_threshold", "DENY LIST"},
                                                      {"expected_rate", "IMPOSTORS ABOVE"},
                                                      {"refused_share", "OWN PHOTOS BELOW"},
                                                      {"scores", "SCORES"},
                                                      {"people", "PEOPLE"}};
static const struct cli_column link_columns[] = {{"id", "LINK"},
                                                 {"policy", "POLICY"},
                                                 {"serving_version", "SERVING"},
                                                 {"pending_versions", "WAITING"}};

static const struct cli_column arm_columns[] = {
    {"link", "LINK"}, {"metric", "METRIC"},     {"version", "VERSION"}, {"n", "SAMPLES"},
    {"mean", "MEAN"}, {"low", "FROM"},          {"high", "TO"},         {"uplift", "UPLIFT"},
    {"z", "Z"},       {"p_better", "P BETTER"}, {"p_worse", "P WORSE"}, {"left_s", "LEFT s"}};
static const struct cli_column start_columns[] = {{"id", "LINK"}, {"dataset", "DATASET"}};
static const struct cli_column model_columns[] = {
    {"model", "MODEL"}, {"version", "VERSION"}, {"bytes", "BYTES"}, {"blob", "BLOB"}};
static const struct cli_column trigger_columns[] = {{"pipeline", "PIPELINE"}, {"kind", "TRIGGER"},
                                                    {"next_ms", "NEXT"},      {"n_fired", "FIRED"},
                                                    {"fired_ms", "LAST"},     {"reason", "WHY"}};
static const struct cli_column firing_columns[] = {{"time_ms", "TIME"}, {"pipeline", "PIPELINE"},
                                                   {"kind", "TRIGGER"}, {"training", "RUN"},
                                                   {"actor", "ACTOR"},  {"reason", "WHY"}};

static const struct cli_column alert_firing_columns[] = {{"rule", "RULE"},
                                                         {"state", "STATE"},
                                                         {"told_ms", "TOLD"},
                                                         {"escalated_ms", "ESCALATED"},
                                                         {"over_ms", "OVER"}};
static const struct cli_column alert_action_columns[] = {
    {"rule", "RULE"}, {"kind", "ACTION"}, {"state", "STATE"}, {"message", "WHAT"}};
static const struct cli_column alert_delivery_columns[] = {
    {"receiver", "RECEIVER"}, {"rule", "RULE"},    {"event", "EVENT"}, {"state", "STATE"},
    {"attempts", "TRIES"},    {"done_ms", "DONE"}, {"error", "ERROR"}};

static const struct cli_column version_columns[] = {
    {"version", "VERSION"}, {"percent", "ASKED %"},  {"live_percent", "IN EFFECT %"},
    {"state", "STATE"},     {"n_ready", "READY AT"}, {"reason", "WHY"}};
static const struct cli_column replica_columns[] = {
    {"id", "REPLICA"}, {"state", "STATE"},         {"url", "URL"},   {"n_running", "RUNNING"},
    {"job", "JOB"},    {"job_state", "JOB STATE"}, {"reason", "WHY"}};

static const struct cli_column loaded_columns[] = {{"replica", "REPLICA"}, {"version", "VERSION"},
                                                   {"state", "STATE"},     {"executor", "BY"},
                                                   {"place", "ON"},        {"reason", "WHY"}};

static void print_members(struct cli_call *call, const json_t *record, const char *members)
{
    char name[64];
    while (*members != '\0') {
        size_t len = strcspn(members, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, members);
        const json_t *value = json_object_get(record, name);
        if (json_is_object(value) && json_object_size(value) > 0) {
            printf("%s:\n", name);
            cli_print_yaml(call, value, 2);
        } else if (value != NULL && !json_is_null(value) && !json_is_object(value)) {
            printf("%-20s %s\n", name,
                   json_is_array(value) ? cli_cell_text(call, record, name)
                                        : cli_text(call, record, name));
        }
        members += len + (members[len] == ' ');
    }
}

static void print_part(struct cli_call *call, const char *title, const json_t *items,
                       const struct cli_column *columns, size_t n_columns)
{
    if (json_array_size(items) == 0) {
        return;
    }
    json_t *list = json_object();
    json_object_set(list, "items", (json_t *)items); /* only read */
    printf("\n%s\n", title);
    cli_print_table(call, list, columns, n_columns);
    json_decref(list);
}

/* How the thresholds of an ION's pipelines came about, with what they cost. */
static void print_thresholds(struct cli_call *call, const json_t *record)
{
    json_t *rows = json_array(), *pipeline;
    size_t i;
    json_array_foreach(json_object_get(record, "pipelines"), i, pipeline)
    {
        json_t *threshold = json_object_get(pipeline, "threshold");
        if (json_is_object(threshold)) {
            json_t *row = json_copy(threshold);
            json_object_set(row, "pipeline", json_object_get(pipeline, "name"));
            json_array_append_new(rows, row);
        }
    }
    print_part(call, "thresholds", rows, threshold_columns, WEIR_ARRAY_LEN(threshold_columns));
    json_decref(rows);
}

/* What separates tasks on a node, and what is missing there. */
static void print_isolation(struct cli_call *call, const json_t *record)
{
    const json_t *isolation = json_object_get(json_object_get(record, "inventory"), "isolation");
    if (json_is_object(isolation)) {
        printf("\nisolation\n");
        cli_print_yaml(call, isolation, 2);
    }
}

static const struct cli_column accuracy_columns[] = {{"name", "CAMERA"}, {"n", "KNOWN"},
                                                     {"right", "RIGHT"}, {"accuracy", "ACCURACY"},
                                                     {"low", "FROM"},    {"high", "TO"}};
static const struct cli_column kpi_columns[] = {
    {"name", "KPI"}, {"value", "VALUE"}, {"unit", "UNIT"}, {"time_ms", "TIME"}};

/* How well an ION does, by the truth told and its business figures. */
static weir_status add_health(struct cli_call *call, const char *ion, json_t *record,
                              struct weir_error *err)
{
    json_t *answer;
    WEIR_TRY(
        cli_rest(call, "GET", cli_path1(call, "/api/v1/ions/{}/health", ion), NULL, &answer, err));
    json_object_set_new(record, "live", answer);
    return WEIR_OK;
}

static void print_live(struct cli_call *call, const json_t *record)
{
    const json_t *live = json_object_get(record, "live");
    json_t *rows = json_copy(json_object_get(live, "groups"));
    if (json_array_size(rows) > 1) {
        json_t *all = json_copy(json_object_get(live, "accuracy"));
        json_object_set_new(all, "name", json_string("(all)"));
        json_array_insert_new(rows, 0, all);
    }
    print_part(call, "live accuracy", rows, accuracy_columns, WEIR_ARRAY_LEN(accuracy_columns));
    print_part(call, "kpis", json_object_get(live, "kpis"), kpi_columns,
               WEIR_ARRAY_LEN(kpi_columns));
    json_decref(rows);
}

/* What makes its pipelines run, and what did last. */
static void print_triggers(struct cli_call *call, const json_t *record)
{
    json_t *all = json_array(), *pipeline;
    size_t i;
    json_array_foreach(json_object_get(record, "pipelines"), i, pipeline)
    {
        json_array_extend(all, json_object_get(pipeline, "triggers"));
    }
    print_part(call, "triggers", all, trigger_columns, WEIR_ARRAY_LEN(trigger_columns));
    print_part(call, "firings", json_object_get(record, "firings"), firing_columns,
               WEIR_ARRAY_LEN(firing_columns));
    json_decref(all);
}

/* A row for each arm; what is said of both stands in the candidate's. */
static void print_comparisons(struct cli_call *call, const json_t *record)
{
    static const char *const of_arm[] = {"version", "n", "mean", "low", "high"};
    static const char *const of_both[] = {"uplift", "z", "p_better", "p_worse", "left_s"};
    json_t *rows = json_array(), *one, *arm;
    size_t i, k;
    json_array_foreach(json_object_get(record, "comparisons"), i, one)
    {
        json_array_foreach(json_object_get(one, "arms"), k, arm)
        {
            json_t *row = json_object();
            json_object_set(row, "link", json_object_get(one, "link"));
            json_object_set(row, "metric", json_object_get(one, "metric"));
            for (size_t m = 0; m < WEIR_ARRAY_LEN(of_arm); m++) {
                json_object_set(row, of_arm[m], json_object_get(arm, of_arm[m]));
            }
            bool is_live = json_is_true(json_object_get(arm, "is_live"));
            for (size_t m = 0; m < WEIR_ARRAY_LEN(of_both) && !is_live; m++) {
                json_object_set(row, of_both[m], json_object_get(one, of_both[m]));
            }
            json_array_append_new(rows, row);
        }
    }
    print_part(call, "compared", rows, arm_columns, WEIR_ARRAY_LEN(arm_columns));
    json_decref(rows);
}

static void print_ion(struct cli_call *call, const json_t *record)
{
    print_part(call, "pipelines", json_object_get(record, "pipelines"), pipeline_columns,
               WEIR_ARRAY_LEN(pipeline_columns));
    print_thresholds(call, record);
    print_part(call, "links", json_object_get(record, "links"), link_columns,
               WEIR_ARRAY_LEN(link_columns));
    print_comparisons(call, record);
    print_part(call, "links that start pipelines", json_object_get(record, "starts"), start_columns,
               WEIR_ARRAY_LEN(start_columns));
    print_triggers(call, record);
    print_live(call, record);
}

/* Which replica has loaded which version, and where it computes it. */
static void print_loaded(struct cli_call *call, const json_t *replicas)
{
    json_t *rows = json_array();
    size_t i, k;
    json_t *replica, *version;
    json_array_foreach(replicas, i, replica)
    {
        json_array_foreach(json_object_get(replica, "versions"), k, version)
        {
            json_t *row = json_copy(version);
            json_object_set(row, "replica", json_object_get(replica, "id"));
            json_array_append_new(rows, row);
        }
    }
    print_part(call, "loaded", rows, loaded_columns, WEIR_ARRAY_LEN(loaded_columns));
    json_decref(rows);
}

static void print_deployment(struct cli_call *call, const json_t *record)
{
    print_part(call, "versions", json_object_get(record, "versions"), version_columns,
               WEIR_ARRAY_LEN(version_columns));
    print_comparisons(call, record);
    print_part(call, "replicas", json_object_get(record, "replicas"), replica_columns,
               WEIR_ARRAY_LEN(replica_columns));
    print_loaded(call, json_object_get(record, "replicas"));
}

static void print_node(struct cli_call *call, const json_t *record)
{
    size_t n;
    const struct cli_column *columns = cli_noun_columns(call, cli_noun_find("devices"), &n);
    print_isolation(call, record);
    print_part(call, "devices", json_object_get(record, "devices"), columns, n);
}

static void print_snapshot(struct cli_call *call, const json_t *record)
{
    print_part(call, "models", json_object_get(record, "models"), model_columns,
               WEIR_ARRAY_LEN(model_columns));
}

/* Which rules look after it, what they did, and whom they told. */
static void print_alert(struct cli_call *call, const json_t *record)
{
    const json_t *firings = json_object_get(record, "firings");
    json_t *done = json_array(), *firing, *action;
    size_t i, k;
    json_array_foreach(firings, i, firing)
    {
        json_array_foreach(json_object_get(firing, "actions"), k, action)
        {
            json_t *row = json_copy(action);
            json_object_set(row, "rule", json_object_get(firing, "rule"));
            json_array_append_new(done, row);
        }
    }
    print_part(call, "rules", firings, alert_firing_columns, WEIR_ARRAY_LEN(alert_firing_columns));
    print_part(call, "actions", done, alert_action_columns, WEIR_ARRAY_LEN(alert_action_columns));
    print_part(call, "messages", json_object_get(record, "deliveries"), alert_delivery_columns,
               WEIR_ARRAY_LEN(alert_delivery_columns));
    json_decref(done);
}

static const struct cli_column port_columns[] = {
    {"name", "NAME"}, {"datatype", "TYPE"}, {"shape", "SHAPE"}};

/* What a version's model takes and gives, and why it is run as it is. */
static void print_version(struct cli_call *call, const json_t *record)
{
    const json_t *signature = json_object_get(record, "signature");
    print_members(call, signature, "format why labels");
    print_part(call, "inputs", json_object_get(signature, "inputs"), port_columns,
               WEIR_ARRAY_LEN(port_columns));
    print_part(call, "outputs", json_object_get(signature, "outputs"), port_columns,
               WEIR_ARRAY_LEN(port_columns));
}

/* What is shown of a noun: members in their order, lists that come with it, and lists that are asked
 * for beside it. */
static const struct described {
    const char *singular;
    const char *members;                                                 /* separated by blanks */
    void (*print_sections)(struct cli_call *call, const json_t *record); /* NULL: it has none */
    const char *parts[PARTS_MAX];
} described[] = {
    {"ion",
     "state health name mode project revision created_by created_ms",
     print_ion,
     {"candidates", "policy-decisions", "members"}},
    {"job",
     "state reason name id kind project attempt n_restarts max_restarts ion pipeline run "
     "created_by created_ms expected_start_ms started_ms finished_ms",
     NULL,
     {"tasks"}},
    {"run",
     "status name id model validation_accuracy validation_loss accuracy loss batch_accuracy "
     "batch_loss epoch epochs "
     "images_per_second dataset dataset_version job ion pipeline registered created_ms "
     "started_ms finished_ms parameters",
     NULL,
     {NULL}},
    {"model", "name project description created_by created_ms", NULL, {"versions", "aliases"}},
    {"version",
     "model version description stage aliases deployments executor unservable bytes blob dataset "
     "dataset_version run code_version metrics parameters created_by created_ms",
     print_version,
     {NULL}},
    {"sweep",
     "state reason name id project method metric direction n_trials n_made n_open n_stopped "
     "n_failed n_paused best best_value created_by created_ms ended_ms",
     NULL,
     {"trials"}},
    {"deployment",
     "state reason name project model traffic mirror n_ready n_wanted replicas_min replicas_max "
     "batch_max delay_max_us queue_max cpus memory_bytes gpus idle_after_ms hold_ms created_by "
     "created_ms updated_ms",
     print_deployment,
     {NULL}},
    {"dataset",
     "name kind project path is_uploaded created_by created_ms",
     NULL,
     {"dataset-versions"}},
    {"node",
     "state name cpu_slots cpus_used cpus_free cpus_busy memory_bytes memory_kept_bytes "
     "memory_used_bytes n_accelerators accelerators_used n_tasks disk_bytes disk_free_bytes "
     "is_draining "
     "unhealthy labels taints agent_version "
     "last_seen_ms created_ms",
     print_node,
     {NULL}},
    {"snapshot",
     "name ion project from_ms to_ms revision n_rows rows has_models is_imported bytes "
     "created_by created_ms",
     print_snapshot,
     {NULL}},
    {"alert",
     "status severity kind message subject id count raised_ms last_ms acknowledged_by "
     "acknowledged_note silenced_ms resolved_by resolved_ms",
     print_alert,
     {NULL}},
};

/* "policy-decisions" as a member's name: "policy_decisions". */
static char *member_of(struct cli_call *call, const char *part)
{
    char *name = weir_arena_strdup(call->arena, part);
    for (char *p = name; *p != '\0'; p++) {
        *p = *p == '-' ? '_' : *p;
    }
    return name;
}

/* Add the record's parts to it: "tasks": […]. */
static weir_status add_parts(struct cli_call *call, const struct described *what, const char *key,
                             int64_t limit, json_t *record, struct weir_error *err)
{
    for (size_t i = 0; i < PARTS_MAX && what->parts[i] != NULL; i++) {
        json_t *list;
        const struct cli_noun *part = cli_noun_find(what->parts[i]);
        WEIR_TRY(cli_noun_list(call, part, key, NULL, 0, limit, &list, err));
        json_object_set(record, member_of(call, what->parts[i]), json_object_get(list, "items"));
        json_decref(list);
    }
    return WEIR_OK;
}

static void print_short(struct cli_call *call, const struct described *what, const json_t *record)
{
    print_members(call, record, what->members);
    if (what->print_sections != NULL) {
        what->print_sections(call, record);
    }
    for (size_t i = 0; i < PARTS_MAX && what->parts[i] != NULL; i++) {
        size_t n;
        const struct cli_column *columns =
            cli_noun_columns(call, cli_noun_find(what->parts[i]), &n);
        print_part(call, what->parts[i], json_object_get(record, member_of(call, what->parts[i])),
                   columns, n);
    }
}

static const struct described *find_described(const char *singular)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(described); i++) {
        if (strcmp(described[i].singular, singular) == 0) {
            return &described[i];
        }
    }
    return NULL;
}

static weir_status load(struct cli_call *call, const struct cli_noun *noun, const char *word,
                        json_t **out, struct weir_error *err)
{
    char *model, *version;
    int64_t number;
    if (strcmp(noun->singular, "version") != 0) {
        return cli_noun_get(call, noun, word, out, err);
    }
    WEIR_TRY(cli_model_split(call, word, &model, &version, err));
    WEIR_TRY(cli_connect(call, err));
    WEIR_TRY(cli_model_version(call, model, version, &number, err));
    return cli_model_record(call, model, number, out, err);
}

/* The noun and the name of the words: "job train", "job/train"; one word alone is an ION. */
static weir_status read_words(struct cli_call *call, const struct cli_noun **out_noun,
                              char **out_name, struct weir_error *err)
{
    char *first = call->words[0], *last = call->words[call->n_words - 1];
    const struct cli_noun *noun = cli_noun_split(call->arena, first, out_name);
    if (call->n_words == 1 && noun != NULL) {
        *out_noun = noun;
        return WEIR_OK;
    }
    noun = cli_noun_find(call->n_words == 2 ? first : "ion");
    if (noun == NULL) {
        return cli_noun_unknown(first, err);
    }
    const struct cli_noun *alone = call->n_words == 1 ? cli_noun_find(first) : NULL;
    if (alone != NULL) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "which %s? weir describe %s %s; `weir get %s%s%s` lists them",
            alone->singular, alone->singular,
            alone->of != NULL || alone->key == NULL ? "NAME"
                                                    : cli_noun_placeholder(call->arena, alone),
            alone->plural, alone->of != NULL ? " " : "",
            alone->of != NULL ? cli_noun_placeholder(call->arena, alone) : "");
    }
    *out_noun = noun;
    *out_name = last;
    return WEIR_OK;
}

/* A record of which no more is known than what it has. */
static weir_status describe_plain(struct cli_call *call, const struct cli_noun *noun,
                                  const char *word, struct weir_error *err)
{
    json_t *record;
    WEIR_TRY(load(call, noun, word, &record, err));
    cli_print_object(call, record);
    json_decref(record);
    return WEIR_OK;
}

static weir_status run_describe(struct cli_call *call, struct weir_error *err)
{
    const struct cli_noun *noun = NULL;
    char *word = NULL;
    WEIR_TRY(read_words(call, &noun, &word, err));
    const struct described *what = find_described(noun->singular);
    if (what == NULL) {
        return describe_plain(call, noun, word, err);
    }
    bool is_whole = cli_is_json(call) || cli_is_yaml(call);
    WEIR_AUTO(weir_json_auto_free) json_t *record = NULL;
    WEIR_TRY(load(call, noun, word, &record, err));
    const char *key =
        weir_arena_strdup(call->arena, json_string_value(json_object_get(record, noun->key)));
    WEIR_TRY(add_parts(call, what, key, is_whole ? WHOLE_LIMIT : PART_LIMIT, record, err));
    if (strcmp(what->singular, "ion") == 0) {
        WEIR_TRY(add_health(call, key, record, err));
    }
    if (is_whole) {
        cli_print_object(call, record);
        return WEIR_OK;
    }
    if (strcmp(what->singular, "run") == 0) {
        cli_run_for_people(record);
    }
    print_short(call, what, record);
    return WEIR_OK;
}

const struct cli_command cli_describe = {
    .name = "describe",
    .usage = "[NOUN] NAME | NOUN/NAME [-o json|yaml]",
    .summary = "Show an ION (or job, run, model, dataset, node, sweep …) and what belongs to it",
    .help = "NOUN is any that `weir get` lists (ion, if there is none), and stands in front of the "
            "name: job train,\njob/train. A version is MODEL@v3 or MODEL@ALIAS.\n"
            "The state comes first, and of each list the newest 10. -o yaml and -o json show all.",
    .flags = CLI_WIDE | CLI_YAML,
    CLI_WORDS(1, 2),
    CLI_PLAIN,
    .run = run_describe,
};
