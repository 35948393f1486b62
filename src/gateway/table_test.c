#include "gateway/table.h"

#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static const struct weir_gateway_version two[] = {{3, 900000}, {4, 100000}};
static const struct weir_gateway_replica one[] = {{"r-0", "http://127.0.0.1:8001", 3, false}};

static struct weir_gateway_deployment example(const char *name)
{
    return (struct weir_gateway_deployment){.name = name,
                                            .project = "vision",
                                            .secret = "s",
                                            .versions = two,
                                            .n_versions = 2,
                                            .replicas = one,
                                            .n_replicas = 1};
}

START_TEST(deployments_are_found_by_name_in_whatever_order_they_came)
{
    struct weir_gateway_table *table = weir_gateway_table_create();
    char name[16];
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "d-%d", i * 83 % 200);
        struct weir_gateway_deployment d = example(name);
        ck_assert_int_eq(weir_gateway_table_add(table, &d, NULL), WEIR_OK);
    }
    ck_assert_uint_eq(weir_gateway_table_count(table), 200);
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "d-%d", i);
        const struct weir_gateway_deployment *found = weir_gateway_table_find(table, name);
        ck_assert_ptr_nonnull(found);
        ck_assert_str_eq(found->name, name);
        ck_assert_int_eq(found->versions[1].version, 4);
        ck_assert_str_eq(found->replicas[0].url, "http://127.0.0.1:8001");
        ck_assert(i == 0 || strcmp(weir_gateway_table_at(table, (size_t)i - 1)->name,
                                   weir_gateway_table_at(table, (size_t)i)->name) < 0);
    }
    ck_assert_ptr_null(weir_gateway_table_find(table, "d-200"));
    weir_gateway_table_unref(table);
}

END_TEST

START_TEST(what_makes_no_sense_is_refused_and_changes_nothing)
{
    struct weir_gateway_table *table = weir_gateway_table_create();
    struct weir_error err;
    struct weir_gateway_deployment d = example("a");
    ck_assert_int_eq(weir_gateway_table_add(table, &d, &err), WEIR_OK);
    ck_assert_int_eq(weir_gateway_table_add(table, &d, &err), WEIR_ERR_INVALID);
    d = example("b");
    d.mirror = 9;
    ck_assert_int_eq(weir_gateway_table_add(table, &d, &err), WEIR_ERR_INVALID);
    const struct weir_gateway_version twice[] = {{3, 1}, {3, 1}},
                                      over[] = {{3, 900000}, {4, 100001}};
    d = example("b");
    d.versions = twice;
    ck_assert_int_eq(weir_gateway_table_add(table, &d, &err), WEIR_ERR_INVALID);
    d.versions = over;
    ck_assert_int_eq(weir_gateway_table_add(table, &d, &err), WEIR_ERR_INVALID);
    const struct weir_gateway_replica bad[] = {{"r-0", "https://x:1", 0, false}};
    d = example("b");
    d.replicas = bad;
    ck_assert_int_eq(weir_gateway_table_add(table, &d, &err), WEIR_ERR_INVALID);
    ck_assert_uint_eq(weir_gateway_table_count(table), 1);
    weir_gateway_table_unref(table);
}

END_TEST

START_TEST(urls_are_taken_apart)
{
    char host[WEIR_GATEWAY_HOST_BYTES];
    uint16_t port;
    ck_assert(weir_gateway_url_split("http://10.0.0.1:80", host, &port));
    ck_assert_str_eq(host, "10.0.0.1");
    ck_assert_uint_eq(port, 80);
    ck_assert(weir_gateway_url_split("http://[::1]:8080/", host, &port));
    ck_assert_str_eq(host, "::1");
    ck_assert_uint_eq(port, 8080);
    static const char *const bad[] = {
        "",           "http://",          "http://a",      "http://a:",
        "http://a:0", "http://a:65536",   "http://a:1/x",  "ftp://a:1",
        "http://:1",  "http://u@host:80", "http://[::1:1", "http://a:-1"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(!weir_gateway_url_split(bad[i], host, &port), "%s", bad[i]);
    }
}

END_TEST

WEIR_TEST_MAIN("table", deployments_are_found_by_name_in_whatever_order_they_came,
               what_makes_no_sense_is_refused_and_changes_nothing, urls_are_taken_apart)
