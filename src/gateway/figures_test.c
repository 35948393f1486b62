#include "gateway/figures_private.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static struct figures_registry registry;

static void set_up(void)
{
    figures_registry_init(&registry);
}

static void tear_down(void)
{
    figures_registry_fini(&registry);
}

START_TEST(every_time_lies_in_its_bucket_which_is_narrow)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 1, 0);
    int64_t begin = 0;
    for (int i = 0; i < FIGURES_BUCKETS; i++) {
        ck_assert_int_eq(figures_bucket(begin), i);
        ck_assert_int_eq(figures_bucket(figures_bucket_end(i) - 1), i);
        ck_assert_int_le((figures_bucket_end(i) - 1 - begin) * FIGURES_PARTS, begin);
        begin = figures_bucket_end(i);
    }
    ck_assert_int_gt(begin, 240 * 1000000LL);
    ck_assert_int_eq(figures_bucket(INT64_MAX), FIGURES_BUCKETS - 1);
    ck_assert_int_eq(figures_bucket(-5), 0);
}

END_TEST

/* Of buckets as they are: those that begin at the limit, or above. */
START_TEST(what_is_surely_slow_is_counted)
{
    struct weir_gateway_bucket buckets[FIGURES_BUCKETS];
    const struct weir_gateway_figures figures = {.buckets = buckets, .n_buckets = FIGURES_BUCKETS};
    for (int i = 0; i < FIGURES_BUCKETS; i++) {
        buckets[i] = (struct weir_gateway_bucket){figures_bucket_end(i), 1};
    }
    for (int i = 0; i + 1 < FIGURES_BUCKETS; i++) {
        int64_t end_us = figures_bucket_end(i);
        ck_assert_int_eq(weir_gateway_figures_slow(&figures, end_us), FIGURES_BUCKETS - 1 - i);
        ck_assert_int_eq(weir_gateway_figures_slow(&figures, end_us + 1), FIGURES_BUCKETS - 2 - i);
    }
}

END_TEST

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(quantiles_are_those_of_the_sorted_times_to_within_a_sixteenth)
{
    enum { N = 5000 };

    static int64_t times[N];
    struct weir_rng rng;
    struct figures *figures = figures_get(&registry, "d", "p", 1);
    weir_rng_init(&rng, 2, 0);
    ck_assert_int_eq(figures_quantile_us(figures, 0.5), 0);
    for (int i = 0; i < N; i++) {
        times[i] = (int64_t)(weir_rng_u64(&rng) >> (38 + weir_rng_below(&rng, 20)));
        figures_add_us(figures, times[i]);
    }
    qsort(times, N, sizeof *times, compare);
    const double shares[] = {0.01, 0.5, 0.9, 0.99};
    for (size_t i = 0; i < 4; i++) {
        int64_t truth = times[(int)(N * shares[i])];
        int64_t found = figures_quantile_us(figures, shares[i]);
        ck_assert_int_ge(found, truth);
        ck_assert_int_le((found - truth) * FIGURES_PARTS,
                         WEIR_MAX(truth, (int64_t)1) + FIGURES_PARTS);
    }
    figures_unref(figures);
}

END_TEST

static void add_up(void *context, const struct weir_gateway_figures *figures)
{
    int64_t *n = context;
    for (size_t i = 0; i < figures->n_buckets; i++) {
        ck_assert_int_gt(figures->buckets[i].n, 0);
        ck_assert(i == 0 || figures->buckets[i].end_us > figures->buckets[i - 1].end_us);
        *n += figures->buckets[i].n;
    }
}

START_TEST(buckets_told_hold_every_time_once)
{
    struct figures *figures = figures_get(&registry, "d", "p", 1);
    int64_t n = 0;
    for (int64_t us = 0; us < 100000; us += 7) {
        figures_add_us(figures, us);
        n--;
    }
    figures_each(&registry, add_up, &n);
    ck_assert_int_eq(n, 0);
    figures_unref(figures);
}

END_TEST

START_TEST(the_same_names_give_the_same_figures_and_those_without_a_row_go)
{
    struct figures *a = figures_get(&registry, "d", "p", 1);
    struct figures *b = figures_get(&registry, "d", "p", 1);
    ck_assert_ptr_eq(a, b);
    figures_unref(b);
    figures_add(&a->n_requests, 7);
    const struct weir_gateway_version versions[] = {{2, 1000000}};
    struct weir_gateway_deployment d = {
        .name = "d", .project = "p", .secret = "", .versions = versions, .n_versions = 1};
    struct weir_gateway_table *table = weir_gateway_table_create();
    ck_assert_int_eq(weir_gateway_table_add(table, &d, NULL), WEIR_OK);
    figures_unref(figures_get(&registry, "d", "p", 2));
    figures_unref(figures_get(&registry, "d", "p", 0));
    figures_unref(figures_get(&registry, "e", "p", 0));
    figures_keep(&registry, table);
    int n = 0;
    for (struct figures *f = registry.head; f != NULL; f = f->next) {
        ck_assert_str_eq(f->deployment, "d");
        ck_assert_int_ne(f->version, 1);
        n++;
    }
    ck_assert_int_eq(n, 2);
    b = figures_get(&registry, "d", "p", 1); /* it is there again, and counts from 0 */
    ck_assert_int_eq(b->n_requests, 0);
    ck_assert_int_ne(b->made, a->made);
    figures_unref(b);
    figures_unref(a);
    weir_gateway_table_unref(table);
}

END_TEST

START_TEST(the_text_for_prometheus_is_escaped_and_adds_up)
{
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    figures_prometheus(&registry, &buf);
    ck_assert_uint_eq(buf.len, 0);
    struct figures *figures = figures_get(&registry, "a\"b\\c\n", "p", 3);
    figures_add_us(figures, 100);
    figures_add_us(figures, 100000);
    figures_add_us(figures, INT64_C(1) << 40);
    figures_prometheus(&registry, &buf);
    static const char *const parts[] = {
        "total{deployment=\"a\\\"b\\\\c\\n\",project=\"p\",version=\"3\"} 0\n",
        "le=\"0.000128\"} 1\n",
        "le=\"0.131072\"} 2\n",
        "le=\"+Inf\"} 3\n",
        "# TYPE weir_deployment_duration_seconds histogram\n",
        "nv_inference_request_success{model=\""};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        ck_assert_msg(strstr(buf.data, parts[i]) != NULL, "%s in %s", parts[i], buf.data);
    }
    figures_unref(figures);
    weir_buf_fini(&buf);
}

END_TEST

WEIR_TEST_MAIN_WITH("figures", set_up, tear_down, every_time_lies_in_its_bucket_which_is_narrow,
                    what_is_surely_slow_is_counted,
                    quantiles_are_those_of_the_sorted_times_to_within_a_sixteenth,
                    buckets_told_hold_every_time_once,
                    the_same_names_give_the_same_figures_and_those_without_a_row_go,
                    the_text_for_prometheus_is_escaped_and_adds_up)
