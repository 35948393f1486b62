/** Weir's own CSV against rows made here. */
#include "sim/trace.h"

#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

static void parse(const char *text, const struct weir_sim_format *format,
                  struct weir_sim_trace *out)
{
    struct weir_error err = {0};
    weir_status status = weir_sim_trace_parse(text, strlen(text), "rows", format, out, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

static void refuse(const char *text, const struct weir_sim_format *format, const char *part)
{
    struct weir_error err = {0};
    struct weir_sim_trace trace;
    ck_assert_int_eq(weir_sim_trace_parse(text, strlen(text), "rows", format, &trace, &err),
                     WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, part) != NULL, "\"%s\" has no \"%s\"", err.message, part);
}

START_TEST(own_columns_come_in_any_order_and_may_be_quoted)
{
    struct weir_sim_trace trace;
    parse("accelerators,submit,name,duration,tasks,min_tasks,priority,share\r\n"
          "2,10,\"a \"\"b\"\", c\",5,3,2,100,\r\n"
          "0.25,1.5,small,,,,,\r\n"
          "2,20,halves,5,,,,0.5\r\n"
          "12,30,whole,5,,,,\r\n",
          &weir_sim_csv, &trace);
    ck_assert_int_eq(trace.n_jobs, 4);
    ck_assert_str_eq(trace.jobs[0].name, "small");
    ck_assert_int_eq(trace.jobs[0].submit_ms, 1500);
    ck_assert_int_eq(trace.jobs[0].device_milli, 250);
    ck_assert_int_eq(trace.jobs[0].duration_ms, WEIR_SIM_UNKNOWN);
    ck_assert(trace.jobs[0].is_preemptible);
    ck_assert_str_eq(trace.jobs[1].name, "a \"b\", c");
    ck_assert_int_eq(trace.jobs[1].n_tasks, 3);
    ck_assert_int_eq(trace.jobs[1].min_tasks, 2);
    ck_assert(!trace.jobs[1].is_preemptible);
    ck_assert_int_eq(trace.jobs[2].n_devices, 2);
    ck_assert_int_eq(trace.jobs[2].device_milli, 500);
    ck_assert_int_eq(trace.jobs[3].n_tasks, 0);
    weir_sim_trace_fini(&trace);
}

END_TEST

START_TEST(wrong_input_is_refused_with_line_and_column)
{
    refuse("", &weir_sim_csv, "rows: line 1: the file is empty");
    refuse("submit,durration\n1,2\n", &weir_sim_csv,
           "line 1, column 2: no column is called \"durration\"");
    refuse("duration\n1\n", &weir_sim_csv, "no column is called \"submit\"");
    refuse("submit,accelerators\n1,1\n\n2,1.5\n", &weir_sim_csv,
           "line 4, column 2 (accelerators): expected a share of one device");
    refuse("submit,tasks\nsoon,1\n", &weir_sim_csv, "line 2, column 1 (submit): expected seconds");
    refuse("submit,tasks\n1\n", &weir_sim_csv, "line 2: 1 fields, but the header names 2 columns");
    refuse("submit,tasks,min_tasks,cpu\n1,2,3,1\n", &weir_sim_csv, "no more than tasks");
    refuse("submit,cpu\n1,nan\n", &weir_sim_csv, "got \"nan\"");
    refuse("submit,preemptible,cpu\n1,maybe,1\n", &weir_sim_csv,
           "expected yes or no, got \"maybe\"");
    refuse("submit\n\"1\n", &weir_sim_csv, "a quoted field does not end");
}

END_TEST

WEIR_TEST_MAIN("trace", own_columns_come_in_any_order_and_may_be_quoted,
               wrong_input_is_refused_with_line_and_column)
