/** weir describe: one record with what belongs to it, the state first. */
#include "cli/core/noun.h"

#include "cli/track/model_name.h"

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
static const struct cli_column kept_columns[] = {
    {"pipeline", "PIPELINE"}, {"kind", "WHAT"}, {"own", "ITS OWN"}, {"keep", "KEPT"}};
static const struct cli_column claim_columns[] = {{"pipeline", "PIPELINE"},
                                                  {"name", "FIGURE"},
                                                  {"value", "VALUE"},
                                                  {"unit", "UNIT"},
                                                  {"rests_on", "RESTS ON"}};
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
    char path[64];
    while (*members != '\0') {
        size_t len = strcspn(members, " ");
        (void)snprintf(path, sizeof path, "%.*s", (int)len, members);
        char *dot = strchr(path, '.'), *name = dot != NULL ? dot + 1 : path;
        const json_t *of = record;
        if (dot != NULL) {
            *dot = '\0';
            of = json_object_get(record, path);
        }
        const json_t *value = json_object_get(of, name);
        if (json_is_object(value) && json_object_size(value) > 0) {
            printf("%s:\n", name);
            cli_print_yaml(call, value, 2);
        } else if (value != NULL && !json_is_null(value) && !json_is_object(value)) {
            printf("%-20s %s\n", name,
                   json_is_array(value) ? cli_cell_text(call, of, name) : cli_text(call, of, name));
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

/* A part of what a node's agent found. */
static void print_found(struct cli_call *call, const json_t *record, const char *what)
{
    const json_t *part = json_object_get(json_object_get(record, "inventory"), what);
    if (json_is_object(part)) {
        printf("\n%s\n", what);
        cli_print_yaml(call, part, 2);
    }
}

static const struct cli_column accuracy_columns[] = {{"name", "CAMERA"},
                                                     {"n", "KNOWN"},
                                                     {"right", "RIGHT"},
                                                     {"taken", "TAKEN FOR ANOTHER"},
                                                     {"missed", "NOT RECOGNISED"},
                                                     {"accuracy", "ACCURACY"},
                                                     {"low", "FROM"},
                                                     {"high", "TO"}};
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

static const struct cli_column port_columns[] = {
    {"name", "NAME"}, {"datatype", "TYPE"}, {"shape", "SHAPE"}};

/* All cameras together, before each of them. */
static json_t *accuracy_rows(const json_t *record)
{
    const json_t *live = json_object_get(record, "live");
    json_t *rows = json_copy(json_object_get(live, "groups"));
    if (json_array_size(rows) > 1) {
        json_t *all = json_copy(json_object_get(live, "accuracy"));
        json_object_set_new(all, "name", json_string("(all)"));
        json_array_insert_new(rows, 0, all);
    }
    return rows;
}

/* A row for each arm; what is said of both stands in the candidate's. */
#define COMPARED                                                                                   \
    "link=link metric=metric is_live! uplift=uplift z=z p_better=p_better p_worse=p_worse "        \
    "left_s=left_s"

/** A list that is shown below a record. */
struct section {
    const char *title;
    const char *path; /**< "firings/actions": those of all firings; an object is a list of one. */
    /** What a row takes of what it lies in: "pipeline=name" is its name as the pipeline. What stands behind "is_live!" is
     *  not taken by one that is live. NULL: nothing. */
    const char *takes;
    const struct cli_column *columns; /**< NULL: those of the noun that the title is. */
    size_t n_columns;
    json_t *(*rows)(const json_t *record); /**< In place of a path. */
};

#define SECTION(title, path, takes, columns)                                                       \
    {                                                                                              \
        title, path, takes, columns, WEIR_ARRAY_LEN(columns), NULL                                 \
    }

#define SECTIONS(list) .sections = list, .n_sections = WEIR_ARRAY_LEN(list)

static const struct section ion_sections[] = {
    SECTION("pipelines", "pipelines", NULL, pipeline_columns),
    SECTION("how long it is kept", "pipelines/kept", NULL, kept_columns),
    SECTION("thresholds", "pipelines/threshold", "pipeline=name", threshold_columns),
    SECTION("what the thresholds can claim", "pipelines/claims", "pipeline=name", claim_columns),
    SECTION("links", "links", NULL, link_columns),
    SECTION("compared", "comparisons/arms", COMPARED, arm_columns),
    SECTION("links that start pipelines", "starts", NULL, start_columns),
    SECTION("triggers", "pipelines/triggers", NULL, trigger_columns),
    SECTION("firings", "firings", NULL, firing_columns),
    {"live accuracy", NULL, NULL, accuracy_columns, WEIR_ARRAY_LEN(accuracy_columns),
     accuracy_rows},
    SECTION("kpis", "live/kpis", NULL, kpi_columns),
};
static const struct section deployment_sections[] = {
    SECTION("versions", "versions", NULL, version_columns),
    SECTION("compared", "comparisons/arms", COMPARED, arm_columns),
    SECTION("replicas", "replicas", NULL, replica_columns),
    SECTION("loaded", "replicas/versions", "replica=id", loaded_columns),
};
static const struct section node_sections[] = {{"devices", "devices", NULL, NULL, 0, NULL}};
static const struct section snapshot_sections[] = {
    SECTION("models", "models", NULL, model_columns)};
static const struct section alert_sections[] = {
    SECTION("rules", "firings", NULL, alert_firing_columns),
    SECTION("actions", "firings/actions", "rule=rule", alert_action_columns),
    SECTION("messages", "deliveries", NULL, alert_delivery_columns),
};
static const struct section version_sections[] = {
    SECTION("inputs", "signature/inputs", NULL, port_columns),
    SECTION("outputs", "signature/outputs", NULL, port_columns),
};

static json_t *row_of(const json_t *item, const json_t *parent, const char *takes)
{
    json_t *row = json_copy((json_t *)item);
    while (*takes != '\0') {
        char name[32], member[32];
        size_t len = strcspn(takes, " ");
        if (sscanf(takes, "%31[a-z_]=%31[a-z_]", name, member) == 2) {
            json_object_set(row, name, json_object_get(parent, member));
        } else if (json_is_true(json_object_get(item, name))) {
            break;
        }
        takes += len + (takes[len] == ' ');
    }
    return row;
}

static void gather(const json_t *from, const char *path, const char *takes, json_t *rows)
{
    char name[32];
    size_t len = strcspn(path, "/"), i;
    (void)snprintf(name, sizeof name, "%.*s", (int)len, path);
    json_t *value = json_object_get(from, name), *item;
    json_t *list = json_is_object(value) ? json_pack("[O]", value) : json_incref(value);
    json_array_foreach(list, i, item)
    {
        if (path[len] == '/') {
            gather(item, path + len + 1, takes, rows);
        } else {
            json_array_append_new(rows,
                                  takes == NULL ? json_incref(item) : row_of(item, from, takes));
        }
    }
    json_decref(list);
}

static void print_section(struct cli_call *call, const struct section *section,
                          const json_t *record)
{
    size_t n = section->n_columns;
    const struct cli_column *columns = section->columns;
    WEIR_AUTO(weir_json_auto_free)
    json_t *rows = section->rows != NULL ? section->rows(record) : json_array();
    if (columns == NULL) {
        columns = cli_noun_columns(call, cli_noun_find(section->title), &n);
    }
    if (section->path != NULL) {
        gather(record, section->path, section->takes, rows);
    }
    print_part(call, section->title, rows, columns, n);
}

/* What is shown of a noun: members in their order, lists that come with it, and lists that are asked
 * for beside it. */
static const struct described {
    const char *singular;
    const char *members; /* separated by blanks */
    const struct section *sections;
    size_t n_sections;
    const char *parts[PARTS_MAX];
} described[] = {
    {"ion", "state health name mode project revision created_by created_ms", SECTIONS(ion_sections),
     .parts = {"candidates", "policy-decisions", "members"}},
    {"job",
     "state reason name id kind project attempt n_restarts max_restarts ion pipeline run "
     "created_by created_ms expected_start_ms started_ms finished_ms",
     .parts = {"tasks", "allocations"}},
    {.singular = "run",
     .members =
         "status name id model validation_accuracy validation_loss accuracy loss batch_accuracy "
         "batch_loss epoch epochs "
         "images_per_second dataset dataset_version job ion pipeline registered created_ms "
         "started_ms finished_ms parameters"},
    {"model", "name project description created_by created_ms", .parts = {"versions", "aliases"}},
    {"version",
     "model version description stage aliases deployments executor unservable bytes blob dataset "
     "dataset_version run code_version metrics parameters created_by created_ms signature.format "
     "signature.why signature.labels",
     SECTIONS(version_sections)},
    {"sweep",
     "state reason name id project method metric direction n_trials n_made n_open n_stopped "
     "n_failed n_paused best best_value created_by created_ms ended_ms",
     .parts = {"trials"}},
    {"cluster",
     "state name said driver is_draining n_nodes n_wanted n_allocations max_nodes after_ms idle_ms "
     "time_ms options heard_ms created_by created_ms",
     .parts = {"pools", "allocations"}},
    {.singular = "allocation",
     .members =
         "state id cluster pool their_id said why ending job project queue n_nodes cpu_slots "
         "memory_bytes n_accelerators accelerator_milli accelerator time_ms nodes joined starts_ms "
         "ends_ms "
         "created_ms asked_ms started_ms idle_since_ms ended_ms"},
    {"deployment",
     "state reason name project model traffic mirror n_ready n_wanted replicas_min replicas_max "
     "batch_max delay_max_us queue_max cpus memory_bytes gpus idle_after_ms hold_ms created_by "
     "created_ms updated_ms",
     SECTIONS(deployment_sections)},
    {"dataset", "name kind project path is_uploaded created_by created_ms",
     .parts = {"dataset-versions"}},
    {"node",
     "state name cpu_slots cpus_used cpus_free cpus_busy memory_bytes memory_kept_bytes "
     "memory_used_bytes n_accelerators accelerators_used n_tasks disk_bytes disk_free_bytes "
     "is_draining "
     "unhealthy labels taints agent_version cluster allocation ends_ms "
     "last_seen_ms created_ms",
     SECTIONS(node_sections)},
    {.singular = "camera",
     .members =
         "state name since_ms error cure health ion pipeline project mode kind replica fps "
         "fps_expected "
         "width height codec age_ms clock_off_ms frames dropped damaged lost n_decided n_unknown "
         "last_decision_ms reported_ms id"},
    {"snapshot",
     "name ion project from_ms to_ms revision n_rows rows has_models is_imported bytes "
     "created_by created_ms",
     SECTIONS(snapshot_sections)},
    {"alert",
     "status severity kind message subject id count raised_ms last_ms acknowledged_by "
     "acknowledged_note silenced_ms resolved_by resolved_ms",
     SECTIONS(alert_sections)},
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
        bool is_owned = part->of != NULL;
        char *filters[] = {weir_arena_printf(call->arena, "%s=%s", what->singular, key)};
        WEIR_TRY(cli_noun_list(call, part, is_owned ? key : NULL, filters, !is_owned, limit, &list,
                               err));
        json_object_set(record, member_of(call, what->parts[i]), json_object_get(list, "items"));
        json_decref(list);
    }
    return WEIR_OK;
}

static void print_short(struct cli_call *call, const struct described *what, const json_t *record)
{
    print_members(call, record, what->members);
    print_found(call, record, "slurm");     /* its job over there */
    print_found(call, record, "isolation"); /* what separates tasks, and what is missing */
    for (size_t i = 0; i < what->n_sections; i++) {
        print_section(call, &what->sections[i], record);
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
