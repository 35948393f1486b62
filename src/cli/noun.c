#include "cli/noun.h"

#include "base/names.h"
#include "cli/find.h"

#include <ctype.h>
#include <string.h>

#define LIST_MAX 100000 /* looked through for one that has no route of its own */

#define COLUMNS(...)                                                                               \
    .columns = (const struct cli_column[]){__VA_ARGS__},                                           \
    .n_columns = sizeof((const struct cli_column[]){__VA_ARGS__}) / sizeof(struct cli_column)

#define API "/api/v1/"

// clang-format off: a table
const struct cli_noun cli_nouns[] = {
    {"ions", "ion", "ion", API "ions", NULL, API "ions/{}", NULL, "name", "", 1000,
     COLUMNS({"name", "NAME"}, {"project", "PROJECT"}, {"state", "STATE"}, {"revision", "REVISION"},
             {"created_ms", "CREATED"})},
    {"jobs", "job", "job", API "jobs", "newest=1", API "jobs/{}", NULL, "id",
     "state kind ion project name created_by", 1000,
     COLUMNS({"id", "ID"}, {"name", "NAME"}, {"kind", "KIND"}, {"state", "STATE"},
             {"attempt", "ATTEMPT"}, {"created_ms", "SUBMITTED"},
             {"expected_start_ms", "MAY START"}, {"reason", "WHY"})},
    {"runs", "run", "run", API "runs", NULL, API "runs/{}", NULL, "id", "ion project status job",
     200,
     COLUMNS({"id", "ID"}, {"name", "NAME"}, {"status", "STATUS"}, {"model", "MODEL"},
             {"epoch", "EPOCH"}, {"loss", "LOSS"}, {"accuracy", "BATCH ACCURACY"},
             {"validation_accuracy", "VALIDATION"}, {"images_per_second", "IMAGES/S"},
             {"created_ms", "SUBMITTED"}, {"started_ms", "STARTED"})},
    {"models", "model", "model", API "models", NULL, API "models/{}", NULL, "name",
     "project created_by", 1000,
     COLUMNS({"name", "NAME"}, {"project", "PROJECT"}, {"created_ms", "CREATED"})},
    {"datasets", "dataset", "dataset", API "datasets", NULL, API "datasets/{}", NULL, "name",
     "project kind created_by", 1000,
     COLUMNS({"name", "NAME"}, {"kind", "KIND"}, {"path", "PATH"}, {"is_uploaded", "UPLOADED"})},
    {"nodes", "node", "node", API "nodes", NULL, NULL, NULL, "name", "", 1000,
     COLUMNS({"name", "NAME"}, {"state", "STATE"}, {"cpu_slots", "CPU SLOTS"},
             {"memory_bytes", "MEMORY"}, {"n_accelerators", "ACCELERATORS"},
             {"disk_free_bytes", "DISK FREE"}, {"last_seen_ms", "LAST SEEN"})},
    {"decisions", "decision", "decision", API "decisions", NULL, NULL, NULL, NULL,
     "ion pipeline camera verdict person after", 1000,
     COLUMNS({"time_ms", "TIME"}, {"ion", "ION"}, {"camera", "CAMERA"}, {"frame", "FRAME"},
             {"verdict", "VERDICT"}, {"person", "PERSON"}, {"score", "SCORE"},
             {"threshold", "THRESHOLD"}, {"model_version", "MODEL"}, {"latency_us", "LATENCY µs"})},
    {"events", "event", "event", API "events", NULL, NULL, NULL, NULL,
     "topic kind subject severity after", 1000,
     COLUMNS({"time_ms", "TIME"}, {"severity", "SEVERITY"}, {"kind", "KIND"},
             {"subject", "SUBJECT"}, {"message", "MESSAGE"})},
    {"alerts", "alert", "alert", API "alerts", NULL, NULL, NULL, "id",
     "state kind severity subject", 1000,
     COLUMNS({"id", "ID"}, {"state", "STATE"}, {"severity", "SEVERITY"}, {"kind", "KIND"},
             {"message", "MESSAGE"})},
    {"projects", "project", "project", API "projects", NULL, NULL, NULL, "name", "", 1000,
     COLUMNS({"name", "NAME"}, {"description", "DESCRIPTION"})},
    {"users", "user", "user", API "users", NULL, NULL, NULL, "name", "kind role", 1000,
     COLUMNS({"name", "NAME"}, {"kind", "KIND"}, {"role", "ROLE"}, {"is_disabled", "DISABLED"},
             {"created_ms", "CREATED"})},
    {"tokens", "token", "token", API "tokens", NULL, NULL, NULL, "id", "user role node name", 1000,
     COLUMNS({"id", "ID"}, {"user", "USER"}, {"name", "NAME"}, {"role", "ROLE"}, {"node", "NODE"},
             {"created_ms", "CREATED"}, {"expires_ms", "EXPIRES"})},
    {"sessions", "session", "session", API "sessions", NULL, NULL, NULL, "id", "", 1000,
     COLUMNS({"id", "ID"}, {"user", "USER"}, {"role", "ROLE"}, {"address", "FROM"},
             {"created_ms", "BEGAN"}, {"expires_ms", "EXPIRES"})},
    {"kinds", "kind", "kind", API "kinds", NULL, NULL, NULL, "id", "noun", 0,
     COLUMNS({"noun", "NOUN"}, {"name", "NAME"}, {"is_planned", "PLANNED"}, {"doc", "WHAT"})},
    /* parts of something: the path needs its name */
    {"versions", "version", "model_version", API "models/{}/versions", NULL, NULL, "model",
     "version", "", 0,
     COLUMNS({"model", "MODEL"}, {"version", "VERSION"}, {"dataset", "DATASET"},
             {"dataset_version", "DATA VERSION"}, {"bytes", "BYTES"}, {"run", "RUN"},
             {"created_ms", "CREATED"})},
    {"dataset-versions", "dataset-version", "dataset_version", API "datasets/{}/versions", NULL,
     NULL, "dataset", "version", "", 0,
     COLUMNS({"dataset", "DATASET"}, {"version", "VERSION"}, {"n_files", "FILES"},
             {"n_classes", "CLASSES"}, {"digest", "DIGEST"})},
    {"tasks", "task", "task", API "jobs/{}/tasks", NULL, NULL, "job", "id", "", 0,
     COLUMNS({"id", "ID"}, {"role", "ROLE"}, {"rank", "RANK"}, {"node", "NODE"}, {"state", "STATE"},
             {"attempt", "ATTEMPT"}, {"exit_code", "EXIT"}, {"message", "WHY"})},
    {"metrics", "metric", "metric", API "runs/{}/metrics", NULL, NULL, "run", NULL,
     "key after_step", 0,
     COLUMNS({"key", "KEY"}, {"step", "STEP"}, {"value", "VALUE"}, {"time_ms", "TIME"})},
    {"candidates", "candidate", "candidate", API "ions/{}/candidates", NULL, NULL, "ion", NULL, "",
     0,
     COLUMNS({"link", "LINK"}, {"model", "MODEL"}, {"version", "VERSION"}, {"state", "STATE"},
             {"created_ms", "CREATED"})},
    {"policy-decisions", "policy-decision", "policy_decision", API "ions/{}/policy-decisions", NULL,
     NULL, "ion", NULL, "", 0,
     COLUMNS({"time_ms", "TIME"}, {"link", "LINK"}, {"version", "VERSION"}, {"policy", "POLICY"},
             {"verdict", "VERDICT"}, {"actor", "ACTOR"}, {"rule", "RULE"})},
    {"members", "member", "member", API "ions/{}/members", NULL, NULL, "ion", "person", "", 0,
     COLUMNS({"person", "PERSON"}, {"list", "LIST"}, {"actor", "BY"})},
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

weir_status cli_noun_unknown(const char *name, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    struct weir_names names = {0};
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

/* ---- lists ------------------------------------------------------------------------------------
 */

static bool is_in(const char *names, const char *name, size_t len)
{
    while (*names != '\0') {
        size_t n = strcspn(names, " ");
        if (n == len && strncmp(names, name, len) == 0) {
            return true;
        }
        names += n + (names[n] == ' ');
    }
    return false;
}

/* States are written in capitals; people need not. */
static char *filter_value(struct cli_call *call, const struct cli_noun *noun, const char *name,
                          const char *value)
{
    char *copy = weir_arena_strdup(call->arena, value);
    bool is_state = (strcmp(noun->singular, "job") == 0 && strcmp(name, "state") == 0) ||
                    (strcmp(noun->singular, "run") == 0 && strcmp(name, "status") == 0);
    for (char *p = copy; is_state && *p != '\0'; p++) {
        *p = (char)toupper((unsigned char)*p);
    }
    return copy;
}

/* "&name=value" of one word, checked. */
static weir_status filter_query(struct cli_call *call, const struct cli_noun *noun,
                                const char *word, char **out, struct weir_error *err)
{
    size_t len = strcspn(word, "=");
    char *name = weir_arena_memdup(call->arena, word, len);
    if (word[len] == '\0' || !is_in(noun->filters, name, len)) {
        bool has_any = noun->filters[0] != '\0';
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.60s\": %s can%s be filtered%s%s%s", word,
                              noun->plural, has_any ? "" : "not",
                              has_any ? ", as NAME=VALUE, by: " : "", noun->filters,
                              has_any ? "" : "; leave it out");
    }
    char *value = filter_value(call, noun, name, word + len + 1);
    *out = cli_path1(call, weir_arena_printf(call->arena, "&%s={}", name), value);
    return WEIR_OK;
}

static weir_status first_path(struct cli_call *call, const struct cli_noun *noun, const char *owner,
                              char *const *filters, size_t n_filters, char **out,
                              struct weir_error *err)
{
    char *path = owner != NULL ? cli_path1(call, noun->list, owner)
                               : weir_arena_strdup(call->arena, noun->list);
    path = weir_arena_printf(call->arena, "%s?%s", path, noun->query != NULL ? noun->query : "");
    for (size_t i = 0; i < n_filters; i++) {
        char *query = NULL;
        WEIR_TRY(filter_query(call, noun, filters[i], &query, err));
        path = weir_arena_printf(call->arena, "%s%s", path, query);
    }
    *out = path;
    return WEIR_OK;
}

weir_status cli_noun_list(struct cli_call *call, const struct cli_noun *noun, const char *owner,
                          char *const *filters, size_t n_filters, int64_t limit, json_t **out,
                          struct weir_error *err)
{
    char *base = NULL, *path;
    json_t *items = json_array();
    const char *next = NULL;
    weir_status status = first_path(call, noun, owner, filters, n_filters, &base, err);
    bool has_more = true;
    while (status == WEIR_OK && has_more && (int64_t)json_array_size(items) < limit) {
        json_t *answer;
        int64_t left = limit - (int64_t)json_array_size(items);
        path = noun->page == 0 ? base
                               : weir_arena_printf(call->arena, "%s&limit=%lld", base,
                                                   (long long)WEIR_MIN(left, noun->page));
        path = next != NULL
                   ? cli_path1(call, weir_arena_printf(call->arena, "%s&cursor={}", path), next)
                   : path;
        status = cli_rest(call, "GET", path, NULL, &answer, err);
        if (status == WEIR_OK) {
            json_array_extend(items, json_object_get(answer, "items"));
            next = json_string_value(json_object_get(answer, "next"));
            next = next != NULL ? weir_arena_strdup(call->arena, next) : NULL;
            has_more = next != NULL;
            json_decref(answer);
        }
    }
    if (status != WEIR_OK) {
        json_decref(items);
        return status;
    }
    while ((int64_t)json_array_size(items) > limit) {
        json_array_remove(items, json_array_size(items) - 1);
        has_more = true;
    }
    *out = json_pack("{s:o,s:s?,s:b}", "items", items, "next", next, "more", has_more);
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
    *out = weir_arena_strdup(call->arena, word);
    return WEIR_OK;
}

/* From the list: the one whose key is that. */
static weir_status pick(struct cli_call *call, const struct cli_noun *noun, const char *key,
                        json_t **out, struct weir_error *err)
{
    json_t *list, *item;
    size_t i;
    WEIR_TRY(cli_noun_list(call, noun, NULL, NULL, 0, LIST_MAX, &list, err));
    *out = NULL;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, noun->key));
        if (*out == NULL && name != NULL && strcmp(name, key) == 0) {
            *out = json_incref(item);
        }
    }
    json_decref(list);
    return *out != NULL ? WEIR_OK
                        : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                         "there is no %s \"%.60s\"; `weir get %s` lists them",
                                         noun->singular, key, noun->plural);
}

weir_status cli_noun_get(struct cli_call *call, const struct cli_noun *noun, const char *word,
                         json_t **out, struct weir_error *err)
{
    char *key;
    if (noun->key == NULL || noun->of != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "a single %s cannot be looked at; list them with `weir get %s%s`",
                              noun->singular, noun->plural, noun->of != NULL ? " NAME" : "");
    }
    WEIR_TRY(cli_noun_key(call, noun, word, &key, err));
    return noun->one != NULL
               ? cli_rest(call, "GET", cli_path1(call, noun->one, key), NULL, out, err)
               : pick(call, noun, key, out, err);
}
