/* Clusters, their pools and allocations, as people handle them. Their driver is a script. */
#include "api/caller_fixture.h"
#include "api/driver_fixture.h"

#include "base/test_main.h"
#include "job/cluster.h"

static weir_status fill(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_project blue = {.name = "blue", .description = "", .created_ms = 1};
    struct weir_allocation allocations[] = {{.id = "hpc-1",
                                             .cluster = "hpc",
                                             .pool = "gpu",
                                             .job = "j1",
                                             .project = "blue",
                                             .n_nodes = 3},
                                            {.id = "hpc-2",
                                             .cluster = "hpc",
                                             .pool = "gpu",
                                             .job = "j2",
                                             .project = "default",
                                             .n_nodes = 2},
                                            {.id = "hpc-3",
                                             .cluster = "hpc",
                                             .pool = "gpu",
                                             .job = "j2",
                                             .project = "default",
                                             .n_nodes = 9}};
    const struct weir_pool pool = {
        .id = "hpc/gpu", .cluster = "hpc", .name = "gpu", .cpu_slots = 64, .max_nodes = 8};
    (void)context;
    WEIR_TRY(weir_txn_insert(txn, &weir_project_resource, &blue, err));
    WEIR_TRY(weir_pools_put(txn, "hpc", &pool, 1, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(allocations); i++) {
        WEIR_TRY(weir_allocation_insert(txn, &allocations[i], 1000, err));
    }
    allocations[1].state = (char *)WEIR_ALLOCATION_RUNS;
    allocations[1].asked_ms = allocations[1].started_ms = 2000;
    allocations[1].nodes = (char *)"[\"n7\",\"n8\"]";
    allocations[1].created_ms = 1000;
    WEIR_TRY(weir_allocation_save(txn, &allocations[1], err));
    return weir_allocation_release(txn, "hpc-3", "over", 3000, err);
}

#define HPC                                                                                        \
    "{\"name\":\"hpc\",\"driver\":\"scripted\",\"options\":{\"partition\":\"gpu\",\"token\":"      \
    "\"right\"}}"

static void set_up(void)
{
    struct weir_error err;
    callers_drivers = &scripted_drivers;
    callers_open();
    EXPECT(200, "POST " API "/clusters\n\n" HPC);
    must(weir_store_write(callers.fixture.store, fill, NULL, &err), &err);
}

static int64_t number(const char *path)
{
    return json_integer_value(said(path));
}

START_TEST(a_cluster_is_added_changed_drained_and_removed_and_each_is_told)
{
    EXPECT(409, "POST " API "/clusters\n\n" HPC);
    EXPECT(200, "GET " API "/clusters/hpc");
    ck_assert_str_eq(said_text("state"), "new");
    ck_assert_str_eq(said_text("created_by"), "ann");
    ck_assert_int_eq(number("idle_ms"), 60000);
    ck_assert_int_eq(number("n_nodes"), 2);
    ck_assert_int_eq(number("n_wanted"), 3);
    ck_assert_int_eq(number("n_allocations"), 2);
    EXPECT(200, "PUT " API "/clusters/hpc\n\n{\"driver\":\"scripted\",\"after_ms\":5,"
                "\"options\":{\"partition\":\"gpu\",\"token\":\"***\"}}");
    ck_assert_int_eq(number("after_ms"), 5);
    EXPECT(200, "PATCH " API "/clusters/hpc\n\n{\"is_draining\":true}");
    ck_assert(json_is_true(said("is_draining")));
    ck_assert_int_eq(number("after_ms"), 5);
    EXPECT(200, "PATCH " API "/clusters/hpc\n\n{\"is_draining\":true}"); /* Nothing new. */
    EXPECT(200, "PATCH " API "/clusters/hpc\n\n{\"is_draining\":false}");
    EXPECT_ERROR(409, "2 allocations", "DELETE " API "/clusters/hpc");
    EXPECT(200, "POST " API "/allocations/hpc-1/release\n\n{}");
    EXPECT(200, "POST " API "/clusters\n\n{\"name\":\"b\",\"driver\":\"scripted\",\"options\":"
                "{\"partition\":\"gpu\"}}");
    EXPECT(200, "GET " API "/clusters?name=b");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(204, "DELETE " API "/clusters/b");
    EXPECT(404, "GET " API "/clusters/b");
    EXPECT(200, "GET " API "/events?topic=nodes&limit=10");
    static const char *const told[] = {"cluster_removed", "cluster_added",   "allocation_released",
                                       "cluster_resumed", "cluster_drained", "cluster_changed",
                                       "cluster_added"};
    ck_assert_uint_eq(json_array_size(said("items")), WEIR_ARRAY_LEN(told));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(told); i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "items.%zu.kind", i);
        ck_assert_str_eq(said_text(path), told[i]);
    }
    ck_assert_ptr_nonnull(strstr(said_text("items.5.message"), "cluster hpc: after_ms."));
}

END_TEST

static const struct {
    int status;
    const char *body, *says;
} refused[] = {
    {400, "{\"name\":\"c\"}", "driver"},
    {400, "{\"name\":\"c\",\"driver\":\"local\"}", "this machine is a node already"},
    {501, "{\"name\":\"c\",\"driver\":\"nomad\"}", "$.driver"},
    {400, "{\"name\":\"c\",\"driver\":\"scrip\"}", "scripted"},
    {400, "{\"name\":\"local\",\"driver\":\"scripted\"}", "$.name"},
    {400, "{\"name\":\"a.b\",\"driver\":\"scripted\"}", "$.name"},
    {400, "{\"name\":\"c\",\"driver\":\"scripted\"}", "$.options.partition"},
    {400, "{\"name\":\"c\",\"driver\":\"scripted\",\"options\":[]}", "$.options"},
    {400, "{\"name\":\"c\",\"driver\":\"scripted\",\"options\":{\"partition\":\"p\",\"port\":0}}",
     "$.options.port"},
    {400, "{\"name\":\"c\",\"driver\":\"scripted\",\"options\":{\"partion\":\"p\"}}", "partition"},
    {400,
     "{\"name\":\"c\",\"driver\":\"scripted\",\"options\":{\"partition\":\"p\",\"token\":\"***\"}}",
     "$.options.token"},
    {400,
     "{\"name\":\"c\",\"driver\":\"scripted\",\"options\":{\"partition\":\"p\"},\"idle_ms\":-1}",
     "$.idle_ms"},
    {400,
     "{\"name\":\"c\",\"driver\":\"scripted\",\"options\":{\"partition\":\"p\"},\"state\":\"x\"}",
     "$.state"},
};

START_TEST(what_is_wrong_is_named)
{
    EXPECT_ERROR(refused[_i].status, refused[_i].says, "POST " API "/clusters\n\n%s",
                 refused[_i].body);
}

END_TEST

START_TEST(a_cluster_keeps_its_driver_and_its_name)
{
    EXPECT(400, "PUT " API "/clusters/hpc\n\n{\"name\":\"x\",\"driver\":\"scripted\"}");
    EXPECT(404, "PUT " API "/clusters/x\n\n{\"driver\":\"scripted\"}");
    EXPECT(400, "PATCH " API "/clusters/hpc\n\n{\"after_ms\":1}");
}

END_TEST

START_TEST(a_driver_is_asked_aside_and_what_lacks_is_said)
{
    callers.may_wait = true;
    EXPECT(0, "POST " API "/clusters/hpc/check\n\n{}"); /* The handler has not asked by itself. */
    callers.may_wait = false;
    EXPECT(200, "POST " API "/clusters/hpc/check\n\n{}");
    ck_assert(json_is_true(said("is_ready")));
    ck_assert_str_eq(said_text("pools.0.id"), "hpc/gpu");
    ck_assert_int_eq(number("pools.0.n_accelerators"), 8);
    ck_assert_ptr_nonnull(strstr(said_text("notice"), "http://127.0.0.1:1, which other machines"));
    EXPECT(200, "POST " API "/clusters/check\n\n{\"driver\":\"scripted\",\"options\":"
                "{\"partition\":\"gpu\",\"server\":\"https://weir.example:8470\"}}");
    ck_assert(json_is_null(said("notice")));
    EXPECT(200, "POST " API "/clusters/check\n\n{\"driver\":\"scripted\",\"options\":"
                "{\"partition\":\"none\"}}");
    ck_assert(!json_is_true(said("is_ready")));
    ck_assert_str_eq(said_text("missing"), "partition: there is no none");
    EXPECT(200, "POST " API "/clusters/check\n\n{\"driver\":\"scripted\",\"options\":"
                "{\"partition\":\"away\"}}");
    ck_assert_str_eq(said_text("missing"), "it does not answer");
    EXPECT(400, "POST " API "/clusters/check\n\n{\"driver\":\"scripted\"}");
    EXPECT(404, "POST " API "/clusters/none/check\n\n{}");
    EXPECT(200,
           "POST " API "/clusters/guess\n\n{\"driver\":\"scripted\",\"options\":{\"port\":3}}");
    ck_assert_str_eq(said_text("options.partition"), "gpu");
    ck_assert_int_eq(number("options.port"), 3);
    ck_assert_ptr_null(said("options.kind"));
}

END_TEST

START_TEST(a_secret_goes_in_and_never_out)
{
    EXPECT(200, "GET " API "/clusters");
    ck_assert_str_eq(said_text("items.0.options.token"), "***");
    ck_assert_str_eq(said_text("items.0.options.partition"), "gpu");
    EXPECT(200, "GET " API "/clusters/hpc");
    ck_assert_str_eq(said_text("options.token"), "***");
    /* The stored one stands for what is hidden, of this cluster alone. */
    EXPECT(200, "POST " API "/clusters/check\n\n{\"name\":\"hpc\",\"driver\":\"scripted\","
                "\"options\":{\"partition\":\"gpu\",\"token\":\"***\"}}");
    ck_assert(json_is_true(said("is_ready")));
    EXPECT(200, "POST " API "/clusters/check\n\n{\"driver\":\"scripted\","
                "\"options\":{\"partition\":\"gpu\",\"token\":\"left\"}}");
    ck_assert_str_eq(said_text("missing"), "token: it is wrong");
    EXPECT(200, "POST " API "/clusters/guess\n\n{\"name\":\"hpc\",\"driver\":\"scripted\","
                "\"options\":{\"token\":\"***\"}}");
    ck_assert_str_eq(said_text("options.token"), "***");
}

END_TEST

START_TEST(allocations_are_seen_by_their_projects_and_given_back_by_operators)
{
    char member[BEARER_BYTES], operator[BEARER_BYTES];
    make_caller("mia", "member", "", member);
    make_caller("oto", "operator", "", operator);
    EXPECT(200, "PUT " API "/projects/blue/members/user/mia\n\n{\"role\":\"data-scientist\"}");
    EXPECT(200, "GET " API "/allocations");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    EXPECT(200, "GET " API "/allocations?view=ended");
    ck_assert_str_eq(said_text("items.0.id"), "hpc-3");
    EXPECT(200, "GET " API "/allocations?view=all&job=j2&limit=1");
    ck_assert_str_eq(said_text("items.0.id"), "hpc-2");
    ck_assert_str_eq(said_text("items.0.nodes.1"), "n8");
    ck_assert_ptr_nonnull(said("next"));
    EXPECT(400, "GET " API "/allocations?state=runing");
    EXPECT_STATUS(200, ask_as(member, "GET " API "/allocations?view=all"));
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.id"), "hpc-1");
    EXPECT_STATUS(404, ask_as(member, "GET " API "/allocations/hpc-2"));
    EXPECT_STATUS(403, ask_as(member, "POST " API "/allocations/hpc-1/release\n\n{}"));
    EXPECT_STATUS(403, ask_as(operator, "POST " API "/clusters/check\n\n{}"));
    EXPECT_STATUS(403, ask_as(operator, "PUT " API "/clusters/hpc\n\n{}"));
    EXPECT_STATUS(200, ask_as(operator, "PATCH " API "/clusters/hpc\n\n{\"is_draining\":true}"));
    EXPECT_STATUS(200, ask_as(operator, "POST " API "/allocations/hpc-2/release\n\n{}"));
    ck_assert_str_eq(said_text("state"), "releasing");
    ck_assert_str_eq(said_text("why"), "released by oto");
    EXPECT(200, "POST " API "/allocations/hpc-2/release\n\n{}"); /* It is going already. */
    ck_assert_str_eq(said_text("why"), "released by oto");
    EXPECT(404, "POST " API "/allocations/none/release\n\n{}");
}

END_TEST

START_TEST(pools_say_what_of_them_is_ours)
{
    EXPECT(200, "GET " API "/pools?cluster=hpc");
    ck_assert_str_eq(said_text("items.0.name"), "gpu");
    ck_assert_int_eq(number("items.0.n_nodes"), 2);
    ck_assert_int_eq(number("items.0.n_wanted"), 3);
    EXPECT(200, "GET " API "/pools?cluster=none");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_routes");
    TCase *tcase = tcase_create("cluster_routes");
    tcase_add_checked_fixture(tcase, set_up, callers_close);
    tcase_add_test(tcase, a_cluster_is_added_changed_drained_and_removed_and_each_is_told);
    tcase_add_loop_test(tcase, what_is_wrong_is_named, 0, (int)WEIR_ARRAY_LEN(refused));
    tcase_add_test(tcase, a_cluster_keeps_its_driver_and_its_name);
    tcase_add_test(tcase, a_driver_is_asked_aside_and_what_lacks_is_said);
    tcase_add_test(tcase, a_secret_goes_in_and_never_out);
    tcase_add_test(tcase, allocations_are_seen_by_their_projects_and_given_back_by_operators);
    tcase_add_test(tcase, pools_say_what_of_them_is_ours);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
