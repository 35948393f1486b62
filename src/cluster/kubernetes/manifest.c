#include "cluster/kubernetes/manifest.h"

#include "cluster/kubernetes/manifest_check.h"
#include "cluster/kubernetes/rights.h"

#include <string.h>

#define HOLES_MAX 18

extern const char manifest_yaml[], manifest_yaml_end[];
extern const char manifest_team_yaml[], manifest_team_yaml_end[];

/* What stands for <name>; NULL: nothing does. */
struct hole {
    const char *name;
    json_t *value;
};

/* Ended by one without a name. */
struct holes {
    struct hole all[HOLES_MAX];
};

/* ---- values ------------------------------------------------------------------------------------ */

/* The rule of a group and a resource, made where there is none: its verbs are then as many as the rights name. */
static json_t *rule_of(json_t *rules, const char *group, const char *resource)
{
    json_t *rule;
    size_t i;
    json_array_foreach(rules, i, rule)
    {
        const json_t *groups = json_object_get(rule, "apiGroups");
        const json_t *resources = json_object_get(rule, "resources");
        if (strcmp(json_string_value(json_array_get(groups, 0)), group) == 0 &&
            strcmp(json_string_value(json_array_get(resources, 0)), resource) == 0) {
            return rule;
        }
    }
    rule = json_pack("{s:[s],s:[s],s:[]}", "apiGroups", group, "resources", resource, "verbs");
    json_array_append_new(rules, rule);
    return rule;
}

/* What the wanted roles have. */
static bool is_given(const struct weir_kubernetes_manifest *wanted,
                     const struct kubernetes_right *right)
{
    bool is_scheduler = strcmp(wanted->scheduler, "weir") == 0;
    const bool given[KUBERNETES_N_RIGHT_WHO] = {[KUBERNETES_RIGHT_ALWAYS] = true,
                                                [KUBERNETES_RIGHT_WEIR] = is_scheduler,
                                                [KUBERNETES_RIGHT_SOME] = is_scheduler,
                                                [KUBERNETES_RIGHT_JOBS] = wanted->has_jobs};
    return given[right->who];
}

static json_t *rules_of(const struct weir_kubernetes_manifest *wanted, bool is_cluster_wide)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < kubernetes_n_rights; i++) {
        const struct kubernetes_right *right = &kubernetes_rights[i];
        if (right->is_cluster_wide == is_cluster_wide && is_given(wanted, right)) {
            json_array_append_new(
                json_object_get(rule_of(rules, right->group, right->resource), "verbs"),
                json_string(right->verb));
        }
    }
    return rules;
}

/* Labels of what is Weir's. NULL: whichever cluster it is of, whichever part. */
static json_t *labels_of(const char *name, const char *part)
{
    return json_pack("{s:s,s:s*,s:s*}", "app.kubernetes.io/name", "weir",
                     "app.kubernetes.io/instance", name, WEIR_KUBERNETES_PART_LABEL, part);
}

/* {"cpu": "8", "requests.nvidia.com/gpu": "4"}: of what is no resource of Kubernetes' own only requests are bounded. */
static json_t *quota_of(const char *text, struct weir_arena *arena)
{
    json_t *hard = json_object();
    for (size_t len; text != NULL && *text != '\0'; text += len + (text[len] == ',')) {
        len = strcspn(text, ",");
        char *name = weir_arena_memdup(arena, text, len);
        char *equals = strchr(name, '=');
        *equals = '\0';
        json_object_set_new(
            hard,
            weir_arena_printf(arena, "%s%s", strchr(name, '/') != NULL ? "requests." : "", name),
            json_string(equals + 1));
    }
    return hard;
}

static json_t *text_of(const char *text)
{
    return text != NULL ? json_string(text) : NULL;
}

static struct holes holes_of(const struct weir_kubernetes_manifest *wanted,
                             struct weir_arena *arena)
{
    const char *url = wanted->host != NULL
                          ? weir_arena_printf(arena, "--public-url=https://%s", wanted->host)
                          : NULL;
    return (struct holes){
        .all = {{"namespace", text_of(wanted->namespace)},
                {"team", text_of(wanted->team)},
                {"image", text_of(wanted->image)},
                {"host", text_of(wanted->host)},
                {"public_url_argument", text_of(url)},
                {"ingress_class", text_of(wanted->ingress_class)},
                {"ingress_namespace", text_of(wanted->ingress_namespace)},
                {"storage", text_of(wanted->storage)},
                {"storage_class", text_of(wanted->storage_class)},
                {"quota", wanted->quota != NULL ? quota_of(wanted->quota, arena) : NULL},
                {"monitor", wanted->has_monitor ? json_true() : NULL},
                {"jobs", wanted->has_jobs ? json_true() : NULL},
                {"labels", labels_of(wanted->name, NULL)},
                {"server_labels", labels_of(wanted->name, "server")},
                {"agent_labels", labels_of(NULL, WEIR_KUBERNETES_AGENT_PART)},
                {"cluster_rules", rules_of(wanted, true)},
                {"namespace_rules", rules_of(wanted, false)}}};
}

/* ---- filling in -------------------------------------------------------------------------------- */

static json_t *value_of(const struct holes *holes, const char *name, size_t len)
{
    for (size_t i = 0; holes->all[i].name != NULL; i++) {
        if (strlen(holes->all[i].name) == len && memcmp(holes->all[i].name, name, len) == 0) {
            return holes->all[i].value;
        }
    }
    return NULL;
}

/* A new reference; NULL: it is left out. */
static json_t *fill_text(const char *text, const struct holes *holes, struct weir_arena *arena)
{
    const char *at = strchr(text, '<');
    size_t len = at != NULL ? strcspn(at, ">") : 0;
    if (at == NULL || at[len] == '\0') {
        return json_string(text);
    }
    json_t *value = value_of(holes, at + 1, len - 1);
    return at == text && at[len + 1] == '\0'
               ? json_deep_copy(value)
               : fill_text(weir_arena_printf(arena, "%.*s%s%s", (int)(at - text), text,
                                             json_string_value(value), at + len + 1),
                           holes, arena);
}

static json_t *fill(const json_t *value, const struct holes *holes, struct weir_arena *arena);

static json_t *fill_array(const json_t *array, const struct holes *holes, struct weir_arena *arena)
{
    json_t *filled = json_array(), *item;
    size_t i;
    json_array_foreach(array, i, item)
    {
        json_t *one = fill(item, holes, arena);
        if (one != NULL) {
            json_array_append_new(filled, one);
        }
    }
    return filled;
}

static json_t *fill_object(const json_t *object, const struct holes *holes,
                           struct weir_arena *arena)
{
    const char *when = json_string_value(json_object_get(object, "when")), *key;
    json_t *member;
    if (when != NULL && value_of(holes, when, strlen(when)) == NULL) {
        return NULL;
    }
    json_t *filled = json_object();
    json_object_foreach((json_t *)object, key, member)
    {
        json_t *one = strcmp(key, "when") != 0 ? fill(member, holes, arena) : NULL;
        if (one != NULL) {
            json_object_set_new(filled, key, one);
        }
    }
    return filled;
}

/* A new reference; NULL: it is left out. */
static json_t *fill(const json_t *value, const struct holes *holes, struct weir_arena *arena)
{
    return json_is_object(value)   ? fill_object(value, holes, arena)
           : json_is_array(value)  ? fill_array(value, holes, arena)
           : json_is_string(value) ? fill_text(json_string_value(value), holes, arena)
                                   : json_deep_copy(value);
}

weir_status weir_kubernetes_manifest_make(const struct weir_kubernetes_manifest *wanted,
                                          json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    WEIR_AUTO(weir_json_auto_free) json_t *documents = NULL;
    weir_arena_init(&arena, 0);
    WEIR_TRY(kubernetes_manifest_check(wanted, err));
    const char *begin = wanted->team != NULL ? manifest_team_yaml : manifest_yaml;
    const char *end = wanted->team != NULL ? manifest_team_yaml_end : manifest_yaml_end;
    WEIR_TRY(weir_yaml_parse(begin, (size_t)(end - begin), "manifest", true, &documents, err));
    struct holes holes = holes_of(wanted, &arena);
    *out = fill(documents, &holes, &arena);
    for (size_t i = 0; holes.all[i].name != NULL; i++) {
        json_decref(holes.all[i].value);
    }
    return WEIR_OK;
}

/* ---- what to do then --------------------------------------------------------------------------- */

const char *weir_kubernetes_manifest_notes(const struct weir_kubernetes_manifest *wanted,
                                           struct weir_arena *arena)
{
    if (wanted->team != NULL) {
        return weir_arena_printf(arena,
                                 "# Then a queue has its pods there, in the options of the "
                                 "cluster %s: {\"queues\": {\"QUEUE\": {\"namespace\": "
                                 "\"%s\"}}}\n",
                                 wanted->name, wanted->team);
    }
    const char *inside =
        weir_arena_printf(arena, "kubectl -n %s exec weir-0 -- /weir/bin/weir", wanted->namespace);
    const char *way =
        wanted->host != NULL
            ? weir_arena_printf(arena,
                                "# (or with https://%s in the place of http://127.0.0.1:8470, if "
                                "DNS leads there and the secret weir-tls has its certificate)\n",
                                wanted->host)
            : "";
    const char *metrics =
        wanted->has_monitor
            ? weir_arena_printf(arena,
                                "# For Prometheus, a token that may only read:\n"
                                "%s user create prometheus --kind service --role viewer\n"
                                "%s token create scrape --user prometheus\n"
                                "kubectl -n %s create secret generic weir-metrics "
                                "--from-literal=token=TOKEN\n",
                                inside, inside, wanted->namespace)
            : "";
    const bool is_plain = strcmp(wanted->scheduler, "cluster") == 0;
    return weir_arena_printf(
        arena,
        "# Once it runs (kubectl -n %s rollout status statefulset/weir), a link that logs its "
        "first administrator in:\n%s"
        "kubectl -n %s port-forward service/weir 8470 8471 &\n"
        "%s login\n"
        "# Nodes of this cluster for Weir's jobs:\n"
        "%s cluster add %s --driver kubernetes --set server=http://weir.%s.svc:8470%s%s\n%s",
        wanted->namespace, way, wanted->namespace, inside, inside, wanted->name, wanted->namespace,
        is_plain ? "" : " --set scheduler=", is_plain ? "" : wanted->scheduler, metrics);
}
