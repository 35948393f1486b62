#include "framework/framework.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;

/* A specification with ' in place of ". */
static json_t *spec_of(const char *text)
{
    char *copy = weir_arena_strdup(&arena, text);
    for (char *p = copy; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    json_t *spec = json_loads(copy, 0, NULL);
    ck_assert_msg(spec != NULL, "%s", text);
    return spec;
}

static weir_status read_request(const char *text, bool is_service, struct weir_job_request *out)
{
    json_t *spec = spec_of(text);
    weir_status status = weir_job_request_read(spec, is_service, NULL, &arena, out, &err);
    json_decref(spec);
    return status;
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static const struct {
    const char *resources;
    int64_t n, milli, memory_bytes, cpu_millis, memory;
    const char *model, *profile;
} good[] = {
    {"{}", 0, 0, 0, -1000, 0, NULL, NULL},
    {"{'accelerators':2}", 2, 1000, 0, -1000, 0, NULL, NULL},
    {"{'accelerators':0}", 0, 0, 0, -1000, 0, NULL, NULL},
    {"{'accelerator_model':'H100'}", 1, 1000, 0, -1000, 0, "H100", NULL},
    {"{'accelerator_share':0.5}", 1, 500, 0, -1000, 0, NULL, NULL},
    {"{'accelerators':3,'accelerator_memory':'20GiB'}", 3, 0, 20LL << 30, -1000, 0, NULL, NULL},
    {"{'accelerator_memory':4194304}", 1, 0, 4194304, -1000, 0, NULL, NULL},
    {"{'mig_profile':'1g.10gb','accelerators':2}", 2, 1000, 0, -1000, 0, NULL, "1g.10gb"},
    {"{'cpus':8,'memory':'64G'}", 0, 0, 0, 8000, 64LL << 30, NULL, NULL},
    {"{'cpus':0.25}", 0, 0, 0, 250, 0, NULL, NULL},
    {"{'cpus':'1500m'}", 0, 0, 0, 1500, 0, NULL, NULL},
    {"{'cpus':0}", 0, 0, 0, 0, 0, NULL, NULL},
};

START_TEST(resources_are_read)
{
    struct weir_job_request request;
    const char *text = weir_arena_printf(&arena, "{'resources':%s}", good[_i].resources);
    weir_status status = read_request(text, false, &request);
    ck_assert_msg(status == WEIR_OK, "%s: %s", text, err.message);
    ck_assert_int_eq(request.accelerators.n, good[_i].n);
    ck_assert_int_eq(request.accelerators.milli, good[_i].milli);
    ck_assert_int_eq(request.accelerators.memory_bytes, good[_i].memory_bytes);
    ck_assert_int_eq(request.cpu_millis, good[_i].cpu_millis);
    ck_assert_int_eq(request.memory_bytes, good[_i].memory);
    ck_assert_pstr_eq(request.accelerators.model, good[_i].model);
    ck_assert_pstr_eq(request.accelerators.mig_profile, good[_i].profile);
}

END_TEST

static const struct {
    const char *spec, *said;
} bad[] = {
    {"{'resources':7}", "$.spec.resources: expected an object"},
    {"{'resources':{'gpus':1}}", "$.spec.resources.gpus"},
    {"{'resources':{'accelerators':65}}", "$.spec.resources.accelerators"},
    {"{'resources':{'accelerators':'many'}}", "$.spec.resources.accelerators"},
    {"{'resources':{'accelerator_share':1.5}}", "accelerator_share"},
    {"{'resources':{'accelerator_share':0.0001}}", "0.001 to 1"},
    {"{'resources':{'accelerator_share':0.5,'accelerator_memory':'1G'}}", "one of the two"},
    {"{'resources':{'mig_profile':'1g','accelerator_share':0.5}}", "given whole"},
    {"{'resources':{'accelerators':0,'accelerator_model':'H100'}}", "leave out one of the two"},
    {"{'resources':{'accelerator_memory':'lots'}}", "expected bytes"},
    {"{'resources':{'memory':-1}}", "$.spec.resources.memory: expected bytes"},
    {"{'resources':{'memory':'2000TiB'}}", "expected bytes"},
    {"{'resources':{'cpus':2},'cpu_slots':2}", "$.spec.cpu_slots, or"},
    {"{'resources':{'cpus':2},'cpus':2}", "$.spec.cpus, or"},
    {"{'resources':{'cpus':'half'}}", "$.spec.resources.cpus: expected processors"},
    {"{'resources':{'cpus':0.0001}}", "$.spec.resources.cpus: expected processors"},
    {"{'resources':{'cpus':5000}}", "outside 0 … 4096"},
    {"{'resources':{'memory':'1G'},'memory_max_bytes':1048576}", "$.spec.memory_max_bytes, or"},
    {"{'resources':{'memory':'4'}}", "$.spec.resources.memory: 4 bytes is too little"},
    {"{'resources':{'accelerator_memory':1048575}}", "give the unit"},
    {"{'memory_max_bytes':4}", "$.spec.memory_max_bytes: 4 bytes is too little"},
    {"{'priority':1001}", "$.spec.priority"},
    {"{'preemptible':'perhaps'}", "$.spec.preemptible"},
    {"{'time_limit':0}", "$.spec.time_limit"},
    {"{'time_limit':'soon'}", "$.spec.time_limit: expected seconds"},
    {"{'hold_on_failure':'2d'}",
     "$.spec.hold_on_failure: expected seconds, or a text as 90m, 12h or 2d, of 1 s to 24 hours"},
    {"{'hold_on_failure':0}", "$.spec.hold_on_failure"},
    {"{'save_signal':'KILL'}", "$.spec.save_signal"},
    {"{'save_signal':'USR1','save_within':'2h'}", "$.spec.save_within: expected seconds"},
    {"{'save_within':'1m'}", "$.spec.save_within: by which signal?"},
    {"{'save_signal':'none','save_within':'1m'}", "$.spec.save_within: by which signal?"},
    {"{'time_limit':9223372036854775807}", "$.spec.time_limit"},
    {"{'node_selector':{'zone':1}}", "$.spec.node_selector"},
    {"{'node_selector':{'':'a'}}", "$.spec.node_selector"},
    {"{'tolerations':{'key':'a'}}", "$.spec.tolerations: expected a list"},
    {"{'tolerations':[{'key':'a','effect':'x'}]}", "$.spec.tolerations[0]"},
    {"{'tolerations':[{'value':'a'}]}", "$.spec.tolerations[0]"},
    {"{'topology':'rack'}", "$.spec.topology"},
    {"{'topology':{}}", "$.spec.topology"},
    {"{'topology':{'required':'rack','nearby':'zone'}}", "$.spec.topology"},
    {"{'clusters':'hpc'}", "$.spec.clusters"},
    {"{'clusters':[]}", "$.spec.clusters: expected 1 to 64"},
    {"{'clusters':['hpc','a b']}", "$.spec.clusters[1]"},
    {"{'clusters':['hpc','local','hpc']}", "$.spec.clusters[2]"},
    {"{'overflow_after':'soon'}", "$.spec.overflow_after: expected seconds"},
    {"{'overflow_after':-1}", "$.spec.overflow_after"},
};

START_TEST(what_makes_no_sense_is_refused_where_it_stands)
{
    struct weir_job_request request;
    ck_assert_int_eq(read_request(bad[_i].spec, false, &request), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, bad[_i].said) != NULL, "%s: %s", bad[_i].spec, err.message);
}

END_TEST

START_TEST(the_rest_is_read)
{
    struct weir_job_request request;
    const char *text = "{'priority':80,'preemptible':false,'time_limit':'90m',"
                       "'tasks':{'min':2,'max':4},'node_selector':{'zone':'a'},"
                       "'tolerations':[{'key':'team'}],'topology':{'required':'rack'}}";
    ck_assert_int_eq(read_request(text, false, &request), WEIR_OK);
    ck_assert_int_eq(request.priority, 80);
    ck_assert(!request.is_preemptible);
    ck_assert_int_eq(request.time_limit_ms, 5400000);
    ck_assert_int_eq(request.min_tasks, 2);
    json_t *placement = json_loads(request.placement, 0, NULL);
    json_t *expected = spec_of("{'node_selector':{'zone':'a'},'tolerations':[{'key':'team'}],"
                               "'topology':{'required':'rack'}}");
    ck_assert(json_equal(placement, expected));
    json_decref(placement);
    json_decref(expected);
    ck_assert_int_eq(read_request("{'time_limit':60}", false, &request), WEIR_OK);
    ck_assert_int_eq(request.time_limit_ms, 60000);
    text = "{'node_selector':{'zone':'a'},'image':'x'}"; /* where images are started */
    ck_assert_int_eq(read_request(text, false, &request), WEIR_OK);
    placement = json_loads(request.placement, 0, NULL);
    expected = spec_of("{'node_selector':{'zone':'a','weir/images':'crun'}}");
    ck_assert(json_equal(placement, expected));
    json_decref(placement);
    json_decref(expected);
}

END_TEST

static const char *const wheres[][2] = {
    {"{'clusters':['local','hpc'],'overflow_after':'10m'}",
     "{'clusters':['local','hpc'],'overflow_after_ms':600000}"},
    {"{'overflow_after':90}", "{'overflow_after_ms':90000}"},
    {"{'overflow_after':0}", "{'overflow_after_ms':0}"},
    {"{'overflow_after':'0s','topology':{'required':'rack'}}",
     "{'overflow_after_ms':0,'topology':{'required':'rack'}}"},
};

START_TEST(clusters_and_the_wait_for_them_are_read)
{
    struct weir_job_request request;
    ck_assert_int_eq(read_request(wheres[_i][0], true, &request), WEIR_OK);
    json_t *placement = json_loads(request.placement, 0, NULL);
    json_t *expected = spec_of(wheres[_i][1]);
    ck_assert(json_equal(placement, expected));
    json_decref(placement);
    json_decref(expected);
}

END_TEST

START_TEST(who_says_nothing_gets_what_the_kind_has)
{
    struct weir_job_request request;
    ck_assert_int_eq(read_request("{}", false, &request), WEIR_OK);
    ck_assert_int_eq(request.priority, WEIR_REQUEST_PRIORITY_JOB);
    ck_assert(request.is_preemptible);
    ck_assert_int_lt(request.cpu_millis, 0);
    ck_assert_ptr_null(request.placement);
    ck_assert_int_eq(read_request("{}", true, &request), WEIR_OK);
    ck_assert_int_eq(request.priority, WEIR_REQUEST_PRIORITY_SERVICE);
    ck_assert_int_eq(read_request("{'time_limit':60}", true, &request), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(request.hold_ms, 0);
    ck_assert_int_eq(read_request("{'hold_on_failure':'30m'}", true, &request),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(read_request("{'hold_on_failure':'30m'}", false, &request), WEIR_OK);
    ck_assert_int_eq(request.hold_ms, 1800000);
    ck_assert_int_eq(read_request("{'hold_on_failure':'30m','image':'x'}", false, &request),
                     WEIR_ERR_UNSUPPORTED);
}

END_TEST

START_TEST(a_job_is_asked_to_save_as_it_or_its_kind_says_and_a_service_never)
{
    struct weir_job_request request;
    ck_assert_int_eq(read_request("{}", false, &request), WEIR_OK);
    ck_assert_ptr_null(request.save_signal);
    ck_assert_int_eq(request.save_within_ms, 0);
    ck_assert_int_eq(read_request("{'save_signal':'HUP'}", false, &request), WEIR_OK);
    ck_assert_str_eq(request.save_signal, "HUP");
    ck_assert_int_eq(request.save_within_ms, WEIR_REQUEST_SAVE_MS);
    ck_assert_int_eq(read_request("{'save_signal':'USR1'}", true, &request), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(read_request("{'save_within':60}", true, &request), WEIR_ERR_UNSUPPORTED);

    json_t *spec = spec_of("{'save_within':'5m'}"), *none = spec_of("{'save_signal':'none'}");
    ck_assert_int_eq(weir_job_request_read(spec, false, "USR1", &arena, &request, &err), WEIR_OK);
    ck_assert_str_eq(request.save_signal, "USR1");
    ck_assert_int_eq(request.save_within_ms, 300000);
    ck_assert_int_eq(weir_job_request_read(none, false, "USR1", &arena, &request, &err), WEIR_OK);
    ck_assert_ptr_null(request.save_signal);
    ck_assert_int_eq(request.save_within_ms, 0);
    json_decref(spec);
    json_decref(none);
}

END_TEST

START_TEST(every_kind_takes_it_and_its_tasks_get_it_but_parameter_servers)
{
    static const char *const specs[][2] = {
        {"command", "{'argv':['x'],'tasks':{'min':1,'max':3}"},
        {"train", "{'model':'lenet','data':'/d','workers':2,'parameter_servers':1"},
        {"predict", "{'ion':'i','pipeline':'p','source':{'kind':'http'},'replicas':2"},
    };
    struct weir_job_request request;
    struct weir_launch *launches;
    size_t n;
    json_t *spec = spec_of(weir_arena_printf(&arena,
                                             "%s,'resources':{'accelerators':2,'cpus':3,"
                                             "'memory':'1GiB'},'priority':7}",
                                             specs[_i][1]));
    weir_status status = weir_framework_check(specs[_i][0], spec, &arena, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    const struct weir_launch_job job = {
        .id = "j", .kind = specs[_i][0], .spec = spec, .shared_dir = "/s", .secret = "ab"};
    status = weir_framework_plan(&job, &arena, &launches, &n, &request, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(request.priority, 7);
    ck_assert_uint_eq(n, _i == 2 ? 2 : 3);
    for (size_t i = 0; i < n; i++) {
        bool computes = strcmp(launches[i].role, "parameter_server") != 0;
        ck_assert_int_eq(launches[i].accelerators.n, computes ? 2 : 0);
        ck_assert_int_eq(launches[i].cpu_millis, computes ? 3000 : 0);
        ck_assert_int_eq(launches[i].memory_bytes, computes ? 1 << 30 : 0);
        ck_assert_ptr_null(strstr(launches[i].definition, "priority"));
    }
    json_decref(spec);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("request");
    TCase *tcase = tcase_create("request");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, resources_are_read, 0, (int)WEIR_ARRAY_LEN(good));
    tcase_add_loop_test(tcase, what_makes_no_sense_is_refused_where_it_stands, 0,
                        (int)WEIR_ARRAY_LEN(bad));
    tcase_add_test(tcase, the_rest_is_read);
    tcase_add_loop_test(tcase, clusters_and_the_wait_for_them_are_read, 0,
                        (int)WEIR_ARRAY_LEN(wheres));
    tcase_add_test(tcase, who_says_nothing_gets_what_the_kind_has);
    tcase_add_test(tcase, a_job_is_asked_to_save_as_it_or_its_kind_says_and_a_service_never);
    tcase_add_loop_test(tcase, every_kind_takes_it_and_its_tasks_get_it_but_parameter_servers, 0,
                        3);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
