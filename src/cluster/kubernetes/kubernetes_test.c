#include "cluster/kubernetes/job.h"
#include "cluster/kubernetes/report.h"
#include "cluster/kubernetes/template.h"

#include "base/test_main.h"
#include "kube/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

/* A document in which ' stands for ". */
static json_t *document(const char *text)
{
    char *copy = weir_arena_strdup(&arena, text);
    json_error_t why;
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    json_t *json = json_loads(copy, 0, &why);
    ck_assert_msg(json != NULL, "%s: %s", why.text, text);
    return json;
}

/* ---- pods ------------------------------------------------------------------------------------ */

#define OURS                                                                                       \
    "'metadata':{'name':'t-0-x','namespace':'ns','labels':{'weir.dev/allocation':'t',"             \
    "'weir.dev/nodes':'1'}}"
#define DELETED                                                                                    \
    "'metadata':{'name':'t-0-x','namespace':'ns','deletionTimestamp':'2026-01-01T00:00:00Z',"      \
    "'labels':{'weir.dev/allocation':'t','weir.dev/nodes':'1'}}"
#define ENDED(status, reason, said)                                                                \
    "'containerStatuses':[{'state':{'terminated':{'exitCode':" #status ",'reason':'" reason        \
    "','message':'" said "'}}}]"

struct telling {
    const char *pod;
    bool is_gone;
    enum weir_allocation_phase phase;
    enum weir_allocation_ending ending;
    const char *said, *why; /* why: a part of it; NULL: there is none */
};

static const struct telling tellings[] = {
    {"{" OURS ",'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
     "'reason':'Unschedulable','message':'0/3 nodes are available.'}]}}",
     false, WEIR_ALLOCATION_PENDING, 0, "Unschedulable", "0/3 nodes are available"},
    {"{" OURS ",'spec':{'nodeName':'n'},'status':{'phase':'Pending'}}", false,
     WEIR_ALLOCATION_PENDING, 0, "Pending", "the node n starts it"},
    {"{" OURS ",'spec':{'nodeName':'n'},'status':{'phase':'Pending','startTime':"
     "'2026-01-01T00:00:00Z','containerStatuses':[{'state':{'waiting':{'reason':"
     "'PodInitializing'}}}]}}",
     false, WEIR_ALLOCATION_PENDING, 0, "PodInitializing", "the node n starts it"},
    {"{" OURS ",'spec':{'nodeName':'n'},'status':{'phase':'Pending','startTime':"
     "'2026-01-01T00:00:00Z','containerStatuses':[{'state':"
     "{'waiting':{'reason':'ImagePullBackOff','message':'Back-off pulling image'}}}]}}",
     false, WEIR_ALLOCATION_PENDING, 0, "ImagePullBackOff", "Back-off pulling image"},
    {"{" OURS ",'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", false,
     WEIR_ALLOCATION_RUNNING, 0, "Running", NULL},
    {"{" OURS ",'status':{'phase':'Succeeded'}}", false, WEIR_ALLOCATION_ENDED,
     WEIR_ENDING_RELEASED, "Succeeded", NULL},
    {"{" OURS ",'status':{'phase':'Failed'," ENDED(3, "Error", "a\\nlast line\\n") "}}", false,
     WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, "Error", "exit status 3: last line"},
    {"{" OURS ",'status':{'phase':'Failed'," ENDED(137, "Error", "a") "}}", false,
     WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, "Error", "killed by signal 9"},
    {"{" OURS ",'status':{'phase':'Failed'," ENDED(137, "OOMKilled", "") "}}", false,
     WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, "OOMKilled", "more memory than it asked for"},
    {"{" OURS ",'status':{'phase':'Failed','reason':'DeadlineExceeded','message':'Pod was active "
     "too long'}}",
     false, WEIR_ALLOCATION_ENDED, WEIR_ENDING_TIME, "DeadlineExceeded", "active too long"},
    {"{" OURS ",'status':{'phase':'Failed','reason':'Evicted','message':'The node was low on "
     "memory.'}}",
     false, WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, "Evicted", "The node was low on memory"},
    {"{" OURS ",'status':{'phase':'Failed','conditions':[{'type':'DisruptionTarget','status':"
     "'True','reason':'PreemptionByScheduler','message':'preempting for x'}]}}",
     false, WEIR_ALLOCATION_ENDED, WEIR_ENDING_PREEMPTED, "Failed", "preempting for x"},
    {"{" OURS ",'status':{'phase':'Failed','conditions':[{'type':'DisruptionTarget','status':"
     "'False','reason':'PreemptionByScheduler'}]," ENDED(3, "Error", "x") "}}",
     false, WEIR_ALLOCATION_ENDED, WEIR_ENDING_FAILED, "Error", "exit status 3: x"},
    {"{" DELETED ",'status':{'phase':'Failed'," ENDED(143, "Error", "a") "}}", false,
     WEIR_ALLOCATION_ENDED, WEIR_ENDING_CANCELLED, "Error", "its pod t-0-x was deleted"},
    {"{" OURS ",'status':{'phase':'Running'}}", true, WEIR_ALLOCATION_ENDED, WEIR_ENDING_CANCELLED,
     "Deleted", "its pod t-0-x was deleted"},
};

START_TEST(a_pod_tells_how_its_allocation_is)
{
    const struct telling *telling = &tellings[_i];
    json_t *json = document(telling->pod), *job = document("{'spec':{}}");
    struct kubernetes_pod *pod = kubernetes_pod_read(json);
    const struct kubernetes_facts facts = {.tag = "t",
                                           .pods = (const struct kubernetes_pod *[]){pod},
                                           .is_gone = &telling->is_gone,
                                           .n_pods = 1,
                                           .job = job};
    struct weir_allocation_report report;
    kubernetes_report(&facts, &arena, &report);
    ck_assert_int_eq(report.phase, telling->phase);
    ck_assert_int_eq(report.ending, telling->ending);
    ck_assert_str_eq(report.said, telling->said);
    ck_assert_msg((report.why == NULL) == (telling->why == NULL), "why: %s", report.why);
    ck_assert_msg(telling->why == NULL || strstr(report.why, telling->why) != NULL, "why: %s",
                  report.why);
    ck_assert_str_eq(report.their_id, "ns/t");
    ck_assert_int_eq(report.stuck_since_ms,
                     strcmp(report.said, "ImagePullBackOff") == 0 ? 1767225600000 : 0);
    free(pod);
    json_decref(job);
    json_decref(json);
}

END_TEST

START_TEST(a_pod_has_what_its_containers_ask_for)
{
    json_t *json = document(
        "{'metadata':{'name':'a','ownerReferences':[{'kind':'DaemonSet'}]},'spec':{'nodeName':'n',"
        "'overhead':{'cpu':'10m'},'containers':[{'resources':{'requests':{'cpu':'1','memory':'1Gi'}"
        "}},{'resources':{'requests':{'cpu':'250m'}}}],'initContainers':[{'resources':{'requests':"
        "{'cpu':'2'}}},{'restartPolicy':'Always','resources':{'requests':{'cpu':'500m'}}}]},"
        "'status':{'phase':'Running'}}");
    struct kubernetes_pod *pod = kubernetes_pod_read(json);
    ck_assert_int_eq(pod->cpu_milli, 2010);
    ck_assert_int_eq(pod->memory_bytes, (int64_t)1 << 30);
    ck_assert(pod->is_of_node && !pod->is_over);
    ck_assert_ptr_null(pod->allocation);
    free(pod);
    json_decref(json);
}

END_TEST

START_TEST(a_job_without_pods_says_why)
{
    struct weir_allocation_report report;
    json_t *job = document("{'metadata':{'namespace':'ns','labels':{'kueue.x-k8s.io/queue-name':"
                           "'team'}},'spec':{'suspend':true}}");
    struct kubernetes_facts facts = {.tag = "t"};
    kubernetes_report(&facts, &arena, &report);
    ck_assert_int_eq(report.phase, WEIR_ALLOCATION_UNKNOWN);
    ck_assert(kubernetes_needs_job(&facts));
    facts.job = job;
    ck_assert(kubernetes_needs_event(&facts));
    kubernetes_report(&facts, &arena, &report);
    ck_assert_int_eq(report.phase, WEIR_ALLOCATION_PENDING);
    ck_assert_str_eq(report.why, "Kueue has not admitted it yet: it waits in team");
    facts.event = "exceeded quota: q.";
    kubernetes_report(&facts, &arena, &report);
    ck_assert_str_eq(report.why, "exceeded quota: q");
    json_decref(job);
    facts.job = job = document("{'status':{'conditions':[{'type':'Failed','status':'True','reason':"
                               "'DeadlineExceeded','message':'too long'}]}}");
    kubernetes_report(&facts, &arena, &report);
    ck_assert_int_eq(report.phase, WEIR_ALLOCATION_ENDED);
    ck_assert_int_eq(report.ending, WEIR_ENDING_TIME);
    ck_assert(!kubernetes_needs_event(&facts));
    json_decref(job);
}

END_TEST

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct kubernetes_node *node(const struct kubernetes_options *options, const char *name,
                                    const char *amounts, const char *more)
{
    json_t *json = document(weir_arena_printf(
        &arena,
        "{'metadata':{'name':'%s','labels':{'nvidia.com/gpu.product':'H200'}},'spec':{%s},'status':"
        "{'allocatable':{%s},'conditions':[{'type':'Ready','status':'True'}]}}",
        name, more, amounts));
    struct kubernetes_node *read = kubernetes_node_read(options, json);
    json_decref(json);
    return read;
}

START_TEST(nodes_of_one_shape_are_a_pool)
{
    static const char large[] = "'cpu':'16','memory':'64Gi','nvidia.com/gpu':'4'",
                      small[] = "'cpu':'7900m','memory':'30Gi'";
    const struct kubernetes_options options = {0};
    struct kubernetes_node *nodes[] = {
        node(&options, "a", large, ""), node(&options, "b", large, "'unschedulable':true"),
        node(&options, "c", small, "'taints':[{'key':'x','value':'y','effect':'NoSchedule'}]"),
        node(&options, "d", large, "'taints':[{'key':'nvidia.com/gpu','effect':'NoSchedule'}]")};
    struct kubernetes_use uses[] = {{"a", 5000, 500, (int64_t)1 << 30}};
    struct kubernetes_pool *pools;
    size_t n;
    kubernetes_pools_make((const struct kubernetes_node *const *)nodes, 4, uses, 1, &arena, &pools,
                          &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(pools[0].offer.name, "16c-64g-4xH200");
    ck_assert_int_eq(pools[0].offer.cpu_slots, 15);
    ck_assert_int_eq(pools[0].offer.memory_bytes, (int64_t)63 << 30);
    ck_assert_int_eq(pools[0].offer.cpus_busy, 5);
    ck_assert_int_eq(pools[0].offer.max_nodes, 3);
    ck_assert_ptr_null(pools[0].offer.why);
    ck_assert_str_eq(pools[1].offer.name, "7c-30g");
    ck_assert_ptr_nonnull(strstr(pools[1].offer.why, "c: it has the taint x=y:NoSchedule"));
    ck_assert_str_eq(nodes[1]->closed, "it is cordoned");
    for (size_t i = 0; i < 4; i++) {
        free(nodes[i]);
    }
}

END_TEST

/* ---- what is asked for ----------------------------------------------------------------------- */

START_TEST(a_job_has_one_agent_per_node_and_no_secret)
{
    const struct kubernetes_options options = {.user = 65532};
    const char *names[] = {"a"};
    const struct kubernetes_pool pool = {.offer = {.name = "p",
                                                   .cpu_slots = 8,
                                                   .memory_bytes = (int64_t)32 << 30,
                                                   .n_accelerators = 2,
                                                   .accelerator = "H200",
                                                   .max_nodes = 3},
                                         .device = "nvidia.com/gpu",
                                         .node_names = names,
                                         .n_nodes = 1};
    struct weir_node_request request = {
        .tag = "t", .pool = "p", .n_nodes = 3, .agent = {.server = "http://s", .secret = "hush"}};
    struct weir_error err;
    json_t *job;
    ck_assert_int_eq(kubernetes_job_make(&options, &pool, 2, &request, &arena, &job, &err),
                     WEIR_OK);
    const json_t *spec = weir_kube_at(job, "spec.template.spec");
    const json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
    const char *text = weir_json_text(job, &arena);
    ck_assert_int_eq(json_integer_value(weir_kube_at(job, "spec.completions")), 3);
    ck_assert_str_eq(weir_kube_text(container, "resources.limits.cpu"), "8");
    ck_assert_ptr_nonnull(strstr(text, "\"nvidia.com/gpu\":\"2\""));
    ck_assert_ptr_nonnull(strstr(text, "\"values\":[\"a\"]"));
    ck_assert_ptr_null(strstr(text, "hush"));
    ck_assert(json_is_false(weir_kube_at(spec, "automountServiceAccountToken")));
    json_decref(job);
    request.n_nodes = 4;
    ck_assert_int_eq(kubernetes_job_make(&options, &pool, 1, &request, &arena, &job, &err),
                     WEIR_ERR_LIMIT);
    request.n_nodes = 1;
    request.cpu_slots = 9;
    ck_assert_int_eq(kubernetes_job_make(&options, &pool, 1, &request, &arena, &job, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

/* ---- what a job may have of its pods --------------------------------------------------------- */

static const struct {
    const char *options, *pod, *wrong;
} wants[] = {
    {"{}", "{'image':'a/b'}", NULL},
    {"{'images':['registry.example/']}", "{'image':'registry.example/b:1'}", NULL},
    {"{'images':['registry.example']}", "{'image':'registry.example/b:1'}", NULL},
    {"{'images':['a/b']}", "{'image':'a/b@sha256:0'}", NULL},
    {"{'images':['registry.example']}", "{'image':'registry.example.other/b:1'}", "job_images"},
    {"{'images':['a/b']}", "{'image':'a/bc:1'}", "job_images"},
    {"{'images':[]}", "{'image':'a/b'}", "job_images"},
    {"{'volumes':['claim:c']}", "{'volumes':[{'path':'/c','claim':'c','writable':true}]}", NULL},
    {"{'volumes':['claim:c:ro']}", "{'volumes':[{'path':'/c','claim':'c'}]}", NULL},
    {"{'volumes':['claim:c:ro']}", "{'volumes':[{'path':'/c','claim':'c','writable':true}]}",
     "may not write to the claim c"},
    {"{'volumes':['claim:c']}", "{'volumes':[{'path':'/c','claim':'cd'}]}",
     "may not read the claim cd"},
    {"{'volumes':['claim:*:ro']}", "{'volumes':[{'path':'/c','claim':'x'}]}", NULL},
    {"{}", "{'volumes':[{'path':'/c','claim':'c'}]}", "option job_volumes"},
    {"{'volumes':['nfs:h:/x']}", "{'volumes':[{'path':'/c','nfs':'h:/x/y','writable':true}]}",
     NULL},
    {"{'volumes':['nfs:h:/x']}", "{'volumes':[{'path':'/c','nfs':'h:/x'}]}", NULL},
    {"{'volumes':['nfs:h:/']}", "{'volumes':[{'path':'/c','nfs':'h:/x'}]}", NULL},
    {"{'volumes':['nfs:h:/x']}", "{'volumes':[{'path':'/c','nfs':'h:/xy'}]}", "h:/xy"},
    {"{'volumes':['nfs:h:/x']}", "{'volumes':[{'path':'/c','nfs':'g:/x'}]}", "g:/x"},
    {"{'volumes':['claim:*','nfs:h:/x']}", "{'volumes':[{'path':'/c','host':'/etc'}]}",
     "a folder of the nodes"},
    {"{'volumes':['claim:*'],'own':[{'path':'/c','claim':'d'}]}",
     "{'volumes':[{'path':'/c','claim':'c'}]}", "another volume at /c"},
    {"{'queues':{'vis':{'namespace':'team'}}}",
     "{'volumes':[{'path':'/c','claim':'c','writable':true}]}", NULL},
    {"{'queues':{'vis':{'namespace':'team'}}}", "{'volumes':[{'path':'/c','nfs':'h:/x'}]}",
     "option job_volumes"},
    {"{'queues':{'vis':{'namespace':'weir'}}}", "{'volumes':[{'path':'/c','claim':'c'}]}",
     "option job_volumes"},
    {"{'queues':{'other':{'namespace':'team'}}}", "{'volumes':[{'path':'/c','claim':'c'}]}",
     "option job_volumes"},
};

START_TEST(a_job_has_of_its_pods_what_the_document_allows)
{
    json_t *said = document(wants[_i].options), *pod = document(wants[_i].pod);
    const struct kubernetes_options options = {.namespace_name = "weir",
                                               .queues = json_object_get(said, "queues"),
                                               .volumes = json_object_get(said, "own"),
                                               .job_images = json_object_get(said, "images"),
                                               .job_volumes = json_object_get(said, "volumes")};
    const struct weir_node_request request = {.queue = "vis", .pod = pod};
    struct kubernetes_template template;
    struct weir_error err = {0};
    weir_status status = kubernetes_template_make(&options, &request, &arena, &template, &err);
    ck_assert_msg((status == WEIR_OK) == (wants[_i].wrong == NULL), "%s", err.message);
    ck_assert_msg(wants[_i].wrong == NULL || strstr(err.message, wants[_i].wrong) != NULL, "%s",
                  err.message);
    ck_assert_ptr_null(kubernetes_template_options_wrong(&options, &arena));
    json_decref(said);
    json_decref(pod);
}

END_TEST

START_TEST(a_list_of_volumes_says_which_are_wrong)
{
    static const char *const wrong[] = {"claim:", "datasets", "nfs:h", "nfs::/x", "host:/x", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        json_t *list = json_pack("[s,s]", "claim:c", wrong[i]);
        const struct kubernetes_options options = {.job_volumes = list};
        const char *said = kubernetes_options_wrong(&options, &arena);
        ck_assert_msg(said != NULL && strstr(said, "job_volumes[1]: ") == said, "%s", wrong[i]);
        json_decref(list);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("kubernetes");
    TCase *tcase = tcase_create("kubernetes");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_pod_tells_how_its_allocation_is, 0,
                        (int)(sizeof tellings / sizeof tellings[0]));
    tcase_add_test(tcase, a_pod_has_what_its_containers_ask_for);
    tcase_add_test(tcase, a_job_without_pods_says_why);
    tcase_add_test(tcase, nodes_of_one_shape_are_a_pool);
    tcase_add_test(tcase, a_job_has_one_agent_per_node_and_no_secret);
    tcase_add_loop_test(tcase, a_job_has_of_its_pods_what_the_document_allows, 0,
                        (int)(sizeof wants / sizeof wants[0]));
    tcase_add_test(tcase, a_list_of_volumes_says_which_are_wrong);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
