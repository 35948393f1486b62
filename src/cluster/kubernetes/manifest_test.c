/* What `weir cluster manifest` prints: whether Kubernetes would take it, and nothing too much is allowed. */
#include "cluster/kubernetes/manifest.h"

#include "cluster/kubernetes/rights.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <string.h>

static struct weir_error err;

static const struct weir_kubernetes_manifest plain = {.name = "k8s",
                                                      .scheduler = "cluster",
                                                      .namespace = "weir",
                                                      .image = "weir:1.0",
                                                      .ingress_namespace = "ingress-nginx",
                                                      .storage = "20Gi"};
static const struct weir_kubernetes_manifest full = {.name = "k8s",
                                                     .scheduler = "weir",
                                                     .namespace = "ml",
                                                     .image = "registry.example:5000/weir@sha256:0",
                                                     .host = "weir.example.org",
                                                     .ingress_class = "nginx",
                                                     .ingress_namespace = "edge",
                                                     .storage = "1.5Ti",
                                                     .storage_class = "fast.disk",
                                                     .quota = "cpu=64,nvidia.com/gpu=8",
                                                     .has_monitor = true,
                                                     .has_jobs = true};

static json_t *made(const struct weir_kubernetes_manifest *wanted)
{
    json_t *documents = NULL;
    ck_assert_msg(weir_kubernetes_manifest_make(wanted, &documents, &err) == WEIR_OK, "%s",
                  err.message);
    return documents;
}

/* "spec.ports[0].port" of a value. */
static const json_t *at(const json_t *value, const char *path)
{
    char name[64];
    while (*path != '\0') {
        size_t len = strcspn(path, ".[]/");
        const char separator = *path == '/' ? '/' : '\0'; /* "/a.b": a name with dots, to its end */
        (void)snprintf(name, sizeof name, "%.*s", separator != '\0' ? 63 : (int)len,
                       path + (separator != '\0'));
        value = name[0] >= '0' && name[0] <= '9'
                    ? json_array_get(value, (size_t)strtol(name, NULL, 10))
                    : json_object_get(value, name);
        path = separator != '\0' ? "" : path + len + strspn(path + len, ".[]");
    }
    return value;
}

static const char *text_at(const json_t *value, const char *path)
{
    const char *text = json_string_value(at(value, path));
    return text != NULL ? text : "";
}

/* The document of this kind and name; NULL: there is none. */
static const json_t *find(const json_t *documents, const char *kind, const char *name)
{
    const json_t *document;
    size_t i;
    json_array_foreach(documents, i, document)
    {
        if (strcmp(text_at(document, "kind"), kind) == 0 &&
            strcmp(text_at(document, "metadata.name"), name) == 0) {
            return document;
        }
    }
    return NULL;
}

START_TEST(each_document_has_what_the_api_requires)
{
    static const struct {
        const char *kind, *api, *member; /* It must have the member. */
        bool is_in_namespace, is_asked_for;
    } kinds[] = {
        {"Namespace", "v1", "metadata.labels", false, false},
        {"ServiceAccount", "v1", "automountServiceAccountToken", true, false},
        {"ClusterRole", "rbac.authorization.k8s.io/v1", "rules[0].verbs[0]", false, false},
        {"ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "subjects[0].namespace", false,
         false},
        {"Role", "rbac.authorization.k8s.io/v1", "rules[0].verbs[0]", true, false},
        {"RoleBinding", "rbac.authorization.k8s.io/v1", "roleRef.name", true, false},
        {"Service", "v1", "spec.ports[0].port", true, false},
        {"StatefulSet", "apps/v1", "spec.template.spec.containers[0].image", true, false},
        {"NetworkPolicy", "networking.k8s.io/v1", "spec.policyTypes[0]", true, false},
        {"Ingress", "networking.k8s.io/v1", "spec.rules[0].http.paths[0].pathType", true, true},
        {"ResourceQuota", "v1", "spec.hard.cpu", true, true},
        {"ServiceMonitor", "monitoring.coreos.com/v1", "spec.endpoints[0].path", true, true},
        {"CustomResourceDefinition", "apiextensions.k8s.io/v1", "spec.versions[0].schema", false,
         true},
    };

    WEIR_AUTO(weir_json_auto_free) json_t *documents = made(&full);
    WEIR_AUTO(weir_json_auto_free) json_t *few = made(&plain);
    const json_t *document;
    size_t i, n_seen = 0;
    for (size_t k = 0; k < WEIR_ARRAY_LEN(kinds); k++) {
        json_array_foreach(documents, i, document)
        {
            if (strcmp(text_at(document, "kind"), kinds[k].kind) == 0) {
                n_seen++;
                ck_assert_str_eq(text_at(document, "apiVersion"), kinds[k].api);
                ck_assert_str_eq(text_at(document, "metadata.namespace"),
                                 kinds[k].is_in_namespace ? "ml" : "");
                ck_assert_msg(at(document, kinds[k].member) != NULL, "%s", kinds[k].member);
                ck_assert_str_eq(
                    text_at(at(document, "metadata.labels"), "/app.kubernetes.io/name"), "weir");
            }
        }
        bool is_there = false;
        json_array_foreach(few, i, document)
        {
            is_there = is_there || strcmp(text_at(document, "kind"), kinds[k].kind) == 0;
        }
        ck_assert_int_eq(is_there, !kinds[k].is_asked_for);
    }
    ck_assert_uint_eq(n_seen, json_array_size(documents));
}

END_TEST

/* How often the roles' rules allow it. */
static size_t n_allowed(const json_t *role, const struct kubernetes_right *right)
{
    const json_t *rule, *verb;
    size_t i, j, n = 0;
    json_array_foreach(json_object_get(role, "rules"), i, rule)
    {
        json_array_foreach(json_object_get(rule, "verbs"), j, verb)
        {
            n += strcmp(json_string_value(verb), right->verb) == 0 &&
                 strcmp(text_at(rule, "apiGroups[0]"), right->group) == 0 &&
                 strcmp(text_at(rule, "resources[0]"), right->resource) == 0;
        }
    }
    return n;
}

static size_t n_verbs(const json_t *role)
{
    const json_t *rule;
    size_t i, n = 0;
    json_array_foreach(json_object_get(role, "rules"), i, rule)
    {
        ck_assert_uint_eq(json_array_size(json_object_get(rule, "apiGroups")), 1);
        ck_assert_uint_eq(json_array_size(json_object_get(rule, "resources")), 1);
        n += json_array_size(json_object_get(rule, "verbs"));
    }
    return n;
}

START_TEST(each_right_is_given_once_and_no_other)
{
    static const struct weir_kubernetes_manifest *const both[] = {&plain, &full};
    static const char *const cluster_roles[] = {"weir-weir", "weir-ml"};
    for (size_t k = 0; k < 2; k++) {
        WEIR_AUTO(weir_json_auto_free) json_t *documents = made(both[k]);
        const json_t *roles[] = {find(documents, "Role", "weir"),
                                 find(documents, "ClusterRole", cluster_roles[k])};
        size_t n = 0;
        for (size_t i = 0; i < kubernetes_n_rights; i++) {
            const struct kubernetes_right *right = &kubernetes_rights[i];
            bool is_given = k == 1 || right->who == KUBERNETES_RIGHT_ALWAYS;
            n += is_given;
            ck_assert_msg(n_allowed(roles[right->is_cluster_wide], right) == is_given, "%s %s",
                          right->verb, right->resource);
        }
        ck_assert_uint_eq(n_verbs(roles[0]) + n_verbs(roles[1]), n);
        WEIR_AUTO(weir_auto_free) char *text = json_dumps(documents, 0);
        ck_assert_ptr_null(strchr(text, '*'));
        ck_assert_ptr_null(strchr(text, '<'));
        ck_assert_ptr_null(strstr(text, "\"when\""));
    }
}

END_TEST

START_TEST(the_server_runs_as_the_restricted_standard_wants_it)
{
    WEIR_AUTO(weir_json_auto_free) json_t *documents = made(&full);
    const json_t *set = find(documents, "StatefulSet", "weir");
    const json_t *pod = at(set, "spec.template.spec");
    const json_t *container = at(pod, "containers[0]");
    ck_assert(json_is_true(at(pod, "securityContext.runAsNonRoot")));
    ck_assert_str_eq(text_at(pod, "securityContext.seccompProfile.type"), "RuntimeDefault");
    ck_assert(json_is_false(at(container, "securityContext.allowPrivilegeEscalation")));
    ck_assert(json_is_true(at(container, "securityContext.readOnlyRootFilesystem")));
    ck_assert_str_eq(text_at(container, "securityContext.capabilities.drop[0]"), "ALL");
    ck_assert(json_is_false(at(pod, "enableServiceLinks")));
    ck_assert_str_eq(text_at(container, "image"), full.image);
    ck_assert_str_eq(text_at(find(documents, "Ingress", "weir"), "spec.ingressClassName"), "nginx");
    ck_assert_str_eq(text_at(container, "args[4]"), "--public-url=https://weir.example.org");
    ck_assert_str_eq(text_at(set, "spec.volumeClaimTemplates[0].spec.storageClassName"),
                     "fast.disk");
    ck_assert_str_eq(text_at(set, "spec.volumeClaimTemplates[0].spec.resources.requests.storage"),
                     "1.5Ti");
    ck_assert(
        json_equal(at(set, "spec.selector.matchLabels"), at(set, "spec.template.metadata.labels")));
    ck_assert(json_equal(at(set, "spec.selector.matchLabels"),
                         at(find(documents, "Service", "weir"), "spec.selector")));
    ck_assert_str_eq(text_at(at(find(documents, "ResourceQuota", "weir"), "spec.hard"),
                             "/requests.nvidia.com/gpu"),
                     "8");
    ck_assert(json_is_false(
        at(find(documents, "ServiceAccount", "weir-agent"), "automountServiceAccountToken")));

    WEIR_AUTO(weir_json_auto_free) json_t *few = made(&plain);
    set = find(few, "StatefulSet", "weir");
    ck_assert_uint_eq(json_array_size(at(set, "spec.template.spec.containers[0].args")), 4);
    ck_assert_ptr_null(at(set, "spec.volumeClaimTemplates[0].spec.storageClassName"));
    ck_assert_uint_eq(json_array_size(at(find(few, "NetworkPolicy", "weir"), "spec.ingress")), 1);
    ck_assert_uint_eq(json_array_size(at(find(documents, "NetworkPolicy", "weir"), "spec.ingress")),
                      3);
}

END_TEST

/* The driver's pods have these labels, and nothing that says of which cluster they are. */
START_TEST(policies_know_agents_as_the_driver_labels_them)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *agent = json_pack("{s:s,s:s}", "app.kubernetes.io/name", "weir",
                              WEIR_KUBERNETES_PART_LABEL, WEIR_KUBERNETES_AGENT_PART);
    WEIR_AUTO(weir_json_auto_free) json_t *documents = made(&full);
    const json_t *own = find(documents, "NetworkPolicy", "weir-agent");
    const json_t *servers = find(documents, "NetworkPolicy", "weir");
    ck_assert(json_equal(at(own, "spec.podSelector.matchLabels"), agent));
    ck_assert(json_equal(at(own, "spec.egress[1].to[0].podSelector.matchLabels"), agent));
    ck_assert(json_equal(at(servers, "spec.ingress[0].from[0].podSelector.matchLabels"), agent));
    ck_assert_ptr_nonnull(find(documents, "ServiceAccount", WEIR_KUBERNETES_AGENT_ACCOUNT));
}

END_TEST

START_TEST(a_team_has_a_namespace_with_the_same_rights)
{
    struct weir_kubernetes_manifest wanted = full;
    wanted.team = "team-vision";
    json_t *documents = made(&wanted), *all = made(&full), *document;
    size_t i;
    ck_assert(json_equal(at(find(documents, "Role", "weir"), "rules"),
                         at(find(all, "Role", "weir"), "rules")));
    ck_assert_ptr_null(find(documents, "StatefulSet", "weir"));
    ck_assert_ptr_null(find(documents, "ClusterRole", "weir-ml"));
    ck_assert_str_eq(text_at(find(documents, "RoleBinding", "weir"), "subjects[0].namespace"),
                     "ml");
    ck_assert_ptr_nonnull(at(find(documents, "ResourceQuota", "weir"), "spec.hard.cpu"));
    json_array_foreach(documents, i, document)
    {
        bool is_servers = strcmp(text_at(document, "metadata.name"), "weir-team-vision") == 0;
        bool is_namespace = strcmp(text_at(document, "kind"), "Namespace") == 0;
        ck_assert_str_eq(text_at(document, is_namespace ? "metadata.name" : "metadata.namespace"),
                         is_servers ? "ml" : "team-vision");
    }
    json_decref(documents);
    json_decref(all);
    wanted.team = "ml";
    ck_assert_int_eq(weir_kubernetes_manifest_make(&wanted, &documents, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "the server's own namespace"));
}

END_TEST

START_TEST(what_kubernetes_would_not_take_is_refused_by_name)
{
    static const struct {
        const char *named;
        size_t offset;
        const char *texts[8];
    } wrong[] = {

#define WRONG(named, member, ...)                                                                  \
    {                                                                                              \
        named, offsetof(struct weir_kubernetes_manifest, member),                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
        WRONG("NAME", name, "", "A", "-a", "a-", "a.b", "a\nb",
              "12345678901234567890123456789012345678901"),
        WRONG("--namespace", namespace, "", "Weir", "a_b", "a b", "a/b", "a: b", "<host>"),
        WRONG("--image", image, "", "we ir", "-x", "a\"b", "a\n", "<host>", "a{b}"),
        WRONG("--host", host, "", "a..b", ".a", "a.", "A.b", "https://a", "*.a"),
        WRONG("--storage", storage, "", "Gi", "20GB", "-1Gi", "1.Gi", "20 Gi"),
        WRONG("--storage-class", storage_class, "", "A", "a b", "a/b"),
        WRONG("--quota", quota, "", "cpu", "cpu=", "cpu=1,", "=1", "cpu=x", "cpu=1;b=2"),
        WRONG("--scheduler", scheduler, "", "Weir", "slurm"),
        WRONG("--ingress-class", ingress_class, "", "a/b"),
        WRONG("--ingress-namespace", ingress_namespace, "", "a.b"),
#undef WRONG
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        for (size_t j = 0; wrong[i].texts[j] != NULL && j < 8; j++) {
            struct weir_kubernetes_manifest wanted = full;
            json_t *documents = NULL;
            *(const char **)((char *)&wanted + wrong[i].offset) = wrong[i].texts[j];
            ck_assert_msg(weir_kubernetes_manifest_make(&wanted, &documents, &err) ==
                              WEIR_ERR_INVALID,
                          "%s \"%s\"", wrong[i].named, wrong[i].texts[j]);
            ck_assert_msg(strncmp(err.message, wrong[i].named, strlen(wrong[i].named)) == 0, "%s",
                          err.message);
        }
    }
}

END_TEST

START_TEST(what_to_do_then_is_said)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *notes = weir_kubernetes_manifest_notes(&plain, &arena);
    ck_assert_ptr_nonnull(strstr(notes, "kubectl -n weir exec weir-0 -- /weir/bin/weir login\n"));
    ck_assert_ptr_nonnull(strstr(
        notes,
        "weir cluster add k8s --driver kubernetes --set server=http://weir.weir.svc:8470\n"));
    ck_assert_ptr_null(strstr(notes, "prometheus"));
    notes = weir_kubernetes_manifest_notes(&full, &arena);
    ck_assert_ptr_nonnull(strstr(notes, "http://weir.ml.svc:8470 --set scheduler=weir\n"));
    ck_assert_ptr_nonnull(strstr(notes, "weir token create scrape --user prometheus\n"));
}

END_TEST

WEIR_TEST_MAIN("manifest", each_document_has_what_the_api_requires,
               each_right_is_given_once_and_no_other,
               the_server_runs_as_the_restricted_standard_wants_it,
               policies_know_agents_as_the_driver_labels_them,
               a_team_has_a_namespace_with_the_same_rights,
               what_kubernetes_would_not_take_is_refused_by_name, what_to_do_then_is_said)
