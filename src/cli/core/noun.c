#include "cli/core/noun.h"

#include "api/kind.h"
#include "api/role.h"
#include "base/names.h"
#include "capture/snapshot.h"
#include "cli/core/find.h"
#include "deploy/deploy.h"
#include "ion/camera.h"
#include "ion/decision.h"
#include "ion/door.h"
#include "ion/feedback.h"
#include "ion/ion.h"
#include "ion/order.h"
#include "ion/outcome.h"
#include "ion/replica.h"
#include "ion/revision.h"
#include "ion/source.h"
#include "job/cluster.h"
#include "job/device.h"
#include "job/job.h"
#include "job/queue.h"
#include "job/reservation.h"
#include "job/service.h"
#include "notify/notify.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/tenant.h"
#include "sweep/sweep.h"
#include "track/comparison.h"
#include "track/experiment.h"
#include "track/forgotten.h"
#include "track/track.h"

#include <ctype.h>
#include <string.h>

#define LIST_MAX 100000 /* looked through for one that has no route of its own */

#define API "/api/v1/"

// clang-format off: a table
const struct cli_noun cli_nouns[] = {
    {"ions", "ion", &weir_ion_resource, API "ions", NULL, API "ions/{}", NULL, "name", "", 1000,
     NULL},
    {"jobs", "job", &weir_job_resource, API "jobs", "newest=1", API "jobs/{}", NULL, "id",
     "state kind ion project name created_by", 1000, NULL},
    {"runs", "run", &weir_run_resource, API "runs", NULL, API "runs/{}", NULL, "id",
     "ion project status job experiment filter order view", 200,
     "model epoch validation_accuracy accuracy loss batch_accuracy batch_loss images_per_second"},
    {"experiments", "experiment", &weir_experiment_resource, API "experiments", NULL,
     API "experiments/{}", NULL, "id", "project filter order view", 1000, "n_runs"},
    {"models", "model", &weir_model_resource, API "models", NULL, API "models/{}", NULL, "name",
     "project created_by", 1000, NULL},
    {"deployments", "deployment", &weir_deployment_resource, API "deployments", NULL,
     API "deployments/{}", NULL, "name", "", 0, "traffic n_ready n_wanted"},
    {"datasets", "dataset", &weir_dataset_resource, API "datasets", NULL, API "datasets/{}", NULL,
     "name", "project kind created_by", 1000, NULL},
    {"nodes", "node", &weir_node_resource, API "nodes", NULL, API "nodes/{}", NULL, "name", "",
     1000, "state cpus_used cpus_free"},
    {"devices", "device", &weir_device_resource, API "devices", NULL, NULL, NULL, "name",
     "node kind model state", 1000, NULL},
    {"queues", "queue", &weir_queue_resource, API "queues", NULL, API "queues/{}", NULL, "name", "",
     1000,
     "shares.cpus.guarantee used.cpus borrowed.cpus shares.accelerators.guarantee "
     "used.accelerators borrowed.accelerators n_running n_waiting past_use.times_share"},
    {"reservations", "reservation", &weir_reservation_resource, API "reservations", NULL,
     API "reservations/{}", NULL, "name", "project", 1000, NULL},
    {"clusters", "cluster", &weir_cluster_resource, API "clusters", NULL, API "clusters/{}", NULL,
     "name", "state driver", 1000, "n_nodes n_wanted"},
    {"pools", "pool", &weir_pool_resource, API "pools", NULL, NULL, NULL, "id",
     "cluster name accelerator", 1000, "n_nodes n_wanted"},
    {"allocations", "allocation", &weir_allocation_resource, API "allocations", NULL,
     API "allocations/{}", NULL, "id", "cluster pool state job project view", 1000, NULL},
    {"services", "service", &weir_service_resource, API "services", NULL, API "services/{}", NULL,
     "id", "project kind name", 1000, "state node why"},
    {"sweeps", "sweep", &weir_sweep_resource, API "sweeps", "newest=1", API "sweeps/{}", NULL, "id",
     "state project name", 1000, NULL},
    {"decisions", "decision", &weir_decision_resource, API "decisions", NULL, NULL, NULL, NULL,
     "ion pipeline camera verdict person label after", 1000, NULL},
    {"passages", "passage", &weir_decision_resource, API "passages", NULL, NULL, NULL, NULL,
     "ion pipeline camera verdict person label after", 1000, NULL},
    {"feedback", "feedback", &weir_feedback_resource, API "feedback", NULL, NULL, NULL, NULL,
     "ion pipeline camera decided truth after", 1000, NULL},
    {"outcomes", "outcome", &weir_outcome_resource, API "outcomes", NULL, NULL, NULL, NULL,
     "deployment version name after", 1000, NULL},
    {"events", "event", &weir_event_resource, API "events", NULL, NULL, NULL, NULL,
     "topic kind subject severity after", 1000, NULL},
    {"forgotten", "forgotten-person", &weir_forgotten_resource, API "forgotten-people", NULL, NULL,
     NULL, "id", "person", 1000, NULL},
    {"audit", "act", &weir_event_resource, API "audit", NULL, NULL, NULL, NULL,
     "kind subject severity actor after", 1000, "actor chain"},
    {"alerts", "alert", &weir_alert_resource, API "alerts", NULL, API "alerts/{}", NULL, "id",
     "state kind severity subject", 1000, "status"},
    {"alert-rules", "alert-rule", &weir_alert_rule_resource, API "alert-rules", NULL,
     API "alert-rules/{}", NULL, "name", "project", 0, "n_fired"},
    {"alert-receivers", "alert-receiver", &weir_alert_receiver_resource, API "alert-receivers",
     NULL, API "alert-receivers/{}", NULL, "name", "", 0, "n_waiting is_failing"},
    {"alert-silences", "alert-silence", &weir_alert_silence_resource, API "alert-silences", NULL,
     NULL, NULL, "id", "project", 1000, NULL},
    {"alert-deliveries", "alert-delivery", &weir_alert_delivery_resource, API "alert-deliveries",
     "newest=1", API "alert-deliveries/{}", NULL, "id", "receiver rule alert event state", 1000,
     NULL},
    {"projects", "project", &weir_project_resource, API "projects", NULL, NULL, NULL, "name", "",
     1000, NULL},
    {"groups", "group", &weir_group_resource, API "groups", NULL, NULL, NULL, "name", "", 1000,
     NULL},
    {"users", "user", &weir_user_resource, API "users", NULL, NULL, NULL, "name", "kind role", 1000,
     NULL},
    {"tokens", "token", &weir_token_resource, API "tokens", NULL, NULL, NULL, "id",
     "user role node name", 1000, NULL},
    {"sessions", "session", &weir_session_resource, API "sessions", NULL, NULL, NULL, "id", "",
     1000, NULL},
    {"roles", "role", &weir_role_resource, API "roles", NULL, API "roles/{}", NULL, "name", "", 0,
     NULL},
    {"kinds", "kind", &weir_kind_resource, API "kinds", NULL, NULL, NULL, "id", "noun", 0, NULL},
    {"snapshots", "snapshot", &weir_snapshot_resource, API "snapshots", NULL, API "snapshots/{}",
     NULL, "name", "ion project", 1000, NULL},
    {"orders", "order", &weir_door_order_resource, API "orders", NULL, NULL, NULL, NULL,
     "ion door state after", 1000, NULL},
    {"doors", "door", &weir_ion_door_resource, API "doors", NULL, NULL, NULL, "name", "ion", 0,
     NULL},
    {"cameras", "camera", &weir_ion_camera_resource, API "cameras", NULL, NULL, NULL, "name",
     "ion pipeline name state kind mode project replica", 1000, NULL},
    {"sources", "endpoint", &weir_ion_source_resource, API "sources", NULL, NULL, NULL, "id",
     "ion pipeline replica role name kind state", 0, NULL},
    /* parts of something: the path needs its name */
    {"versions", "version", &weir_model_version_resource, API "models/{}/versions", NULL, NULL,
     "model", "version", "", 0, "executor aliases deployments"},
    {"aliases", "alias", &weir_model_alias_resource, API "models/{}/aliases", NULL, NULL, "model",
     "alias", "", 0, NULL},
    {"dataset-versions", "dataset-version", &weir_dataset_version_resource,
     API "datasets/{}/versions", NULL, NULL, "dataset", "version", "", 0, "n_forgotten"},
    {"trials", "trial", &weir_sweep_trial_resource, API "sweeps/{}/trials", NULL, NULL, "sweep",
     "number", "", 0, NULL},
    {"tasks", "task", &weir_task_resource, API "jobs/{}/tasks", NULL, NULL, "job", "id", "", 0,
     NULL},
    {"metrics", "metric", &weir_metric_resource, API "runs/{}/metrics", NULL, NULL, "run", NULL,
     "key after_step", 0, NULL},
    {"revisions", "revision", &weir_ion_revision_resource, API "ions/{}/revisions", NULL, NULL,
     "ion", "revision", "", 0, NULL},
    {"candidates", "candidate", &weir_ion_candidate_resource, API "ions/{}/candidates", NULL, NULL,
     "ion", NULL, "", 0, NULL},
    {"disagreements", "disagreement", &weir_disagreement_resource, API "ions/{}/disagreements",
     NULL, NULL, "ion", NULL, "link version kind", 200, NULL},
    {"policy-decisions", "policy-decision", &weir_policy_decision_resource,
     API "ions/{}/policy-decisions", NULL, NULL, "ion", NULL, "", 0, NULL},
    {"project-members", "project-member", &weir_project_member_resource, API "projects/{}/members",
     NULL, NULL, "project", "name", "", 0, "problem"},
    {"group-members", "group-member", &weir_group_member_resource, API "groups/{}/members", NULL,
     NULL, "group", "name", "", 0, NULL},
    {"replicas", "replica", &weir_ion_replica_resource, API "ions/{}/replicas", NULL, NULL, "ion",
     "replica", "", 0, NULL},
    {"members", "member", &weir_ion_member_resource, API "ions/{}/members", NULL, NULL, "ion",
     "person", "", 0, NULL},
};
// clang-format on

const size_t cli_n_nouns = WEIR_ARRAY_LEN(cli_nouns);

const struct cli_noun *cli_noun_find(const char *name)
{
    for (size_t i = 0; i < cli_n_nouns; i++) {
        if (strcmp(cli_nouns[i].plural, name) == 0 || strcmp(cli_nouns[i].singular, name) == 0) {
            return &cli_nouns[i];
        }
    }
    return NULL;
}

const struct cli_noun *cli_noun_split(struct weir_arena *arena, const char *word, char **out_name)
{
    const char *slash = strchr(word, '/');
    if (slash == NULL || slash[1] == '\0') {
        return NULL;
    }
    *out_name = weir_arena_strdup(arena, slash + 1);
    return cli_noun_find(weir_arena_memdup(arena, word, (size_t)(slash - word)));
}

/* What other programs call what there is. */
static const struct {
    const char *word, *noun;
} abroad[] = {
    {"po", "jobs"},
    {"pods", "jobs"},
    {"pod", "jobs"},
    {"deploy", "deployments"},
    {"no", "nodes"},
    {"ns", "projects"},
    {"namespaces", "projects"},
    {"svc", "services"},
    {"gpus", "devices"},
    {"notebooks", "services kind=notebook"},
    {"people", "users"},
    {"partitions", "queues"},
    {"trainings", "jobs kind=train"},
};

weir_status cli_noun_unknown(const char *name, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    struct weir_names names = {0};
    if (strcmp(name, "all") == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "say what: `weir get ions,jobs,services,deployments`");
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(abroad); i++) {
        if (strcmp(name, abroad[i].word) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "there is no noun \"%s\"; `weir get %s` lists what comes nearest",
                                  name, abroad[i].noun);
        }
    }
    for (size_t i = 0; i < cli_n_nouns; i++) {
        weir_nearest_see(&nearest, name, strlen(name), cli_nouns[i].plural);
        weir_nearest_see(&nearest, name, strlen(name), cli_nouns[i].singular);
        weir_names_add(&names, cli_nouns[i].plural, strlen(cli_nouns[i].plural));
    }
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "there is no noun \"%.40s\"; did you mean %s?",
                              name, nearest.name);
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "there is no noun \"%.40s\"; there are %s", name,
                          names.text);
}

char *cli_noun_placeholder(struct weir_arena *arena, const struct cli_noun *noun)
{
    char *text = weir_arena_strdup(arena, noun->of != NULL ? noun->of : noun->singular);
    for (char *c = text; *c != '\0'; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    return text;
}

/* ---- columns ----------------------------------------------------------------------------------
 */

void cli_run_for_people(json_t *run)
{
    static const char *const figures[][2] = {{"accuracy", "batch_accuracy"},
                                             {"loss", "batch_loss"}};
    const char *kind = json_string_value(json_object_get(run, "kind"));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(figures); i++) {
        bool is_of_batch = kind != NULL && strcmp(kind, "train") == 0;
        json_t *value = json_object_get(run, figures[i][0]);
        json_object_set(run, figures[i][1], is_of_batch && value != NULL ? value : json_null());
        if (is_of_batch) {
            json_object_set_new(run, figures[i][0], json_null());
        }
    }
}

/* "created_ms" → "CREATED", "n_files" → "FILES", "latency_us" → "LATENCY µs". */
static char *title_of(struct cli_call *call, const char *member)
{
    static const char *const suffixes[] = {"_ms", "_bytes", "_us"};
    static const char *const prefixes[] = {"n_", "is_"};
    const char *unit = "";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(prefixes); i++) {
        size_t len = strlen(prefixes[i]);
        member += strncmp(member, prefixes[i], len) == 0 ? len : 0;
    }
    char *title = weir_arena_strdup(call->arena, member);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(suffixes); i++) {
        size_t len = strlen(title), suffix_len = strlen(suffixes[i]);
        if (len > suffix_len && strcmp(title + len - suffix_len, suffixes[i]) == 0) {
            title[len - suffix_len] = '\0';
            unit = strcmp(suffixes[i], "_us") == 0 ? " µs" : "";
        }
    }
    for (char *p = title; *p != '\0'; p++) {
        *p = *p == '_' || *p == '.' ? ' ' : (char)toupper((unsigned char)*p);
    }
    return unit[0] != '\0' ? weir_arena_printf(call->arena, "%s%s", title, unit) : title;
}

struct columns {
    struct cli_call *call;
    struct cli_column *items;
    size_t n;
};

static void add_column(struct columns *columns, const char *member)
{
    columns->items[columns->n++] = (struct cli_column){member, title_of(columns->call, member)};
}

static void add_also(struct columns *columns, const char *names)
{
    while (names != NULL && *names != '\0') {
        size_t len = strcspn(names, " ");
        add_column(columns, weir_arena_memdup(columns->call->arena, names, len));
        names += len + (names[len] == ' ');
    }
}

/* Those of the record with these flags of FIRST and LAST; `also` comes before the first time. */
static void add_fields(struct columns *columns, const struct weir_resource *record, unsigned place,
                       const char *also)
{
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct weir_field *field = &record->fields[i];
        if (!(field->flags & WEIR_FIELD_COLUMN) ||
            (field->flags & (WEIR_FIELD_FIRST | WEIR_FIELD_LAST)) != place) {
            continue;
        }
        if (field->type == WEIR_FIELD_TYPE_TIME) {
            add_also(columns, also);
            also = NULL;
        }
        add_column(columns, field->name);
    }
    add_also(columns, also);
}

const struct cli_column *cli_noun_columns(struct cli_call *call, const struct cli_noun *noun,
                                          size_t *out_n)
{
    size_t most = noun->record->n_fields + (noun->also != NULL ? strlen(noun->also) : 0);
    struct columns columns = {.call = call,
                              .items = WEIR_ARENA_ARRAY(call->arena, most, struct cli_column)};
    add_fields(&columns, noun->record, WEIR_FIELD_FIRST, NULL);
    add_fields(&columns, noun->record, 0, noun->also);
    add_fields(&columns, noun->record, WEIR_FIELD_LAST, NULL);
    *out_n = columns.n;
    return columns.items;
}

/* ---- lists ------------------------------------------------------------------------------------
 */

/* "&name=value" of one word, checked. */
static weir_status filter_query(struct cli_call *call, const struct cli_noun *noun,
                                const char *word, char **out, struct weir_error *err)
{
    size_t len = strcspn(word, "=");
    char *name = weir_arena_memdup(call->arena, word, len);
    if (word[len] == '\0' || !weir_words_have(noun->filters, name, len)) {
        bool has_any = noun->filters[0] != '\0';
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.60s\": %s can%s be filtered%s%s%s", word,
                              noun->plural, has_any ? "" : "not",
                              has_any ? ", as NAME=VALUE, by: " : "", noun->filters,
                              has_any ? "" : "; leave it out");
    }
    *out = cli_path1(call, weir_arena_printf(call->arena, "&%s={}", name), word + len + 1);
    return WEIR_OK;
}

static weir_status first_path(struct cli_call *call, const struct cli_noun *noun, const char *owner,
                              char *const *filters, size_t n_filters, char **out,
                              struct weir_error *err)
{
    char *path = owner != NULL ? cli_path1(call, noun->list, owner)
                               : weir_arena_strdup(call->arena, noun->list);
    path = weir_arena_printf(call->arena, "%s%s%s", path, noun->query != NULL ? "?" : "",
                             noun->query != NULL ? noun->query : "");
    for (size_t i = 0; i < n_filters; i++) {
        char *query = NULL;
        WEIR_TRY(filter_query(call, noun, filters[i], &query, err));
        bool is_first = strchr(path, '?') == NULL;
        path = weir_arena_printf(call->arena, "%s%c%s", path, is_first ? '?' : '&', query + 1);
    }
    *out = path;
    return WEIR_OK;
}

weir_status cli_noun_list(struct cli_call *call, const struct cli_noun *noun, const char *owner,
                          char *const *filters, size_t n_filters, int64_t limit, json_t **out,
                          struct weir_error *err)
{
    char *base = NULL, *path;
    WEIR_AUTO(weir_json_auto_free) json_t *items = json_array();
    const char *next = NULL, *why = NULL;
    WEIR_TRY(first_path(call, noun, owner, filters, n_filters, &base, err));
    bool has_more = true;
    while (has_more && (int64_t)json_array_size(items) < limit) {
        WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
        int64_t left = limit - (int64_t)json_array_size(items);
        path = noun->page == 0 ? base
                               : weir_arena_printf(call->arena, "%s%climit=%lld", base,
                                                   strchr(base, '?') == NULL ? '?' : '&',
                                                   (long long)WEIR_MIN(left, noun->page));
        path = next != NULL ? cli_path1(call,
                                        weir_arena_printf(call->arena, "%s%ccursor={}", path,
                                                          strchr(path, '?') == NULL ? '?' : '&'),
                                        next)
                            : path;
        WEIR_TRY(cli_rest(call, "GET", path, NULL, &answer, err));
        json_array_extend(items, json_object_get(answer, "items"));
        next = weir_arena_strdup(call->arena, json_string_value(json_object_get(answer, "next")));
        why = weir_arena_strdup(call->arena, json_string_value(json_object_get(answer, "why")));
        has_more = next != NULL;
    }
    while ((int64_t)json_array_size(items) > limit) {
        json_array_remove(items, json_array_size(items) - 1);
        has_more = true;
    }
    *out = json_pack("{s:O,s:s?,s:b,s:s*}", "items", items, "next", next, "more", has_more, "why",
                     why);
    return WEIR_OK;
}

/* ---- one ----------------------------------------------------------------------------------------
 */

weir_status cli_noun_key(struct cli_call *call, const struct cli_noun *noun, const char *word,
                         char **out, struct weir_error *err)
{
    const struct find_kind *kind = find_kind_of(noun->singular);
    if (kind != NULL) {
        return cli_find(call, kind, word, out, err);
    }
    if (noun->record == &weir_experiment_resource) {
        return cli_experiment_find(call, NULL, word, out, err);
    }
    size_t len = strlen(noun->singular);
    bool has_noun = strncmp(word, noun->singular, len) == 0 && word[len] == '/';
    *out = weir_arena_strdup(call->arena, has_noun ? word + len + 1 : word);
    return WEIR_OK;
}

static bool says(const json_t *item, const char *member, const char *word)
{
    const char *text = json_string_value(json_object_get(item, member));
    return text != NULL && strcmp(text, word) == 0;
}

/* From the list: the one whose key is that, or its identifier where several have the key. */
static weir_status pick(struct cli_call *call, const struct cli_noun *noun, const char *key,
                        json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *list = NULL;
    json_t *item, *found = NULL;
    struct weir_names ids = {0};
    size_t i, n = 0;
    WEIR_TRY(cli_noun_list(call, noun, NULL, NULL, 0, LIST_MAX, &list, err));
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        if (says(item, "id", key)) {
            *out = json_incref(item);
            return WEIR_OK;
        }
        if (says(item, noun->key, key)) {
            const char *id = json_string_value(json_object_get(item, "id"));
            weir_names_add(&ids, id != NULL ? id : key, strlen(id != NULL ? id : key));
            found = item;
            n++;
        }
    }
    if (n > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "several %s are called \"%.60s\": say which, of %s", noun->plural,
                              key, ids.text);
    }
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no %s \"%.60s\"; `weir get %s` lists them", noun->singular,
                              key, noun->plural);
    }
    *out = json_incref(found);
    return WEIR_OK;
}

weir_status cli_noun_get(struct cli_call *call, const struct cli_noun *noun, const char *word,
                         json_t **out, struct weir_error *err)
{
    char *key;
    if (noun->key == NULL || noun->of != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "a single %s cannot be looked at; list them with `weir get %s%s%s`",
                              noun->singular, noun->plural, noun->of != NULL ? " " : "",
                              noun->of != NULL ? cli_noun_placeholder(call->arena, noun) : "");
    }
    WEIR_TRY(cli_noun_key(call, noun, word, &key, err));
    if (noun->one == NULL) {
        return pick(call, noun, key, out, err);
    }
    weir_status status = cli_rest(call, "GET", cli_path1(call, noun->one, key), NULL, out, err);
    return status == WEIR_ERR_NOT_FOUND && find_kind_of(noun->singular) == NULL
               ? weir_error_set(err, status, "there is no %s \"%.60s\"; `weir get %s` lists them",
                                noun->singular, word, noun->plural)
               : status;
}
