/** Reports as people and programs get them: numbers of a schedule known by hand, nothing loaded. */
#include "sim/report.h"

#include "base/test_main.h"

#include <string.h>

static void make_report(struct weir_sim_report *out)
{
    static const char rows[] = "name,submit,duration,accelerators,queue\n"
                               "a,0,100,4,<b>&\"q\"\nb,0,100,4,<b>&\"q\"\n";
    struct weir_error err = {0};
    struct weir_sim_trace trace;
    struct weir_sim_cluster cluster;
    struct weir_sim_options options;
    weir_sim_options_init(&options);
    options.profile = "fifo";
    ck_assert_int_eq(weir_sim_trace_parse(rows, strlen(rows), "rows", &weir_sim_csv, &trace, &err),
                     WEIR_OK);
    ck_assert_int_eq(weir_sim_cluster_uniform(4, 4, &cluster, &err), WEIR_OK);
    ck_assert_int_eq(weir_sim_run(&trace, &cluster, &options, out, &err), WEIR_OK);
    weir_sim_trace_fini(&trace);
    weir_sim_cluster_fini(&cluster);
}

START_TEST(json_holds_the_figures)
{
    struct weir_sim_report report;
    make_report(&report);
    json_t *value = weir_sim_report_json(&report);
    json_t *all = json_array_get(json_object_get(value, "sizes"), 0);
    json_t *waiting = json_object_get(all, "waiting_s");
    ck_assert(json_equal(waiting, json_object_get(all, "first_start_s"))); /* Nobody is evicted. */
    ck_assert_double_eq_tol(json_real_value(json_object_get(waiting, "mean")), 50, 1e-9);
    ck_assert_double_eq_tol(json_real_value(json_object_get(waiting, "p50")), 50, 1e-9);
    ck_assert_double_eq_tol(json_real_value(json_object_get(waiting, "p90")), 90, 1e-9);
    ck_assert_double_eq_tol(json_real_value(json_object_get(value, "span_s")), 200, 1e-9);
    ck_assert_double_eq_tol(json_real_value(json_object_get(value, "allocation_all_pct")), 100,
                            1e-9);
    ck_assert_int_eq(json_integer_value(json_object_get(value, "finished")), 2);
    json_decref(value);
    weir_sim_report_fini(&report);
}

END_TEST

START_TEST(the_page_loads_nothing_and_escapes_names)
{
    struct weir_sim_report report;
    struct weir_buf page;
    make_report(&report);
    weir_buf_init(&page, 1 << 20);
    weir_sim_report_html(&report, "a <title>", &page);
    ck_assert_int_eq(page.status, WEIR_OK);
    ck_assert_ptr_null(strstr(page.data, "http"));
    ck_assert_ptr_null(strstr(page.data, "<script"));
    ck_assert_ptr_null(strstr(page.data, "src="));
    ck_assert_ptr_null(strstr(page.data, "url("));
    ck_assert_ptr_null(strstr(page.data, "<b>&\"q\""));
    ck_assert_ptr_nonnull(strstr(page.data, "&lt;b&gt;&amp;&quot;q&quot;"));
    ck_assert_ptr_nonnull(strstr(page.data, "a &lt;title&gt;"));
    ck_assert_ptr_null(strstr(page.data, "nan"));
    weir_buf_fini(&page);
    weir_sim_report_fini(&report);
}

END_TEST

START_TEST(text_lines_fit_a_terminal)
{
    struct weir_sim_report report;
    struct weir_buf text;
    make_report(&report);
    weir_buf_init(&text, 1 << 20);
    weir_sim_report_text(&report, &text);
    for (const char *line = text.data; *line != '\0'; line += strcspn(line, "\n") + 1) {
        ck_assert_int_le(strcspn(line, "\n"), 100);
    }
    ck_assert_ptr_nonnull(strstr(text.data, "2 finished in 3.33 min"));
    weir_buf_fini(&text);
    weir_sim_report_fini(&report);
}

END_TEST

START_TEST(spans_are_told_in_the_unit_that_fits)
{
    // clang-format off
    static const struct { double seconds; const char *text; } spans[] = {
        {0, "0"}, {0.25, "250 ms"}, {42, "42 s"}, {90, "1.5 min"}, {3600, "1 h"}, {37080, "10.3 h"},
        {172800, "2 d"}, {864000, "10 d"}, {1e9, "11574 d"},
    };

    // clang-format on
    char text[WEIR_SIM_SPAN_BYTES];
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        ck_assert_str_eq(weir_sim_span_text(spans[i].seconds, text), spans[i].text);
    }
}

END_TEST

WEIR_TEST_MAIN("report", json_holds_the_figures, the_page_loads_nothing_and_escapes_names,
               text_lines_fit_a_terminal, spans_are_told_in_the_unit_that_fits)
