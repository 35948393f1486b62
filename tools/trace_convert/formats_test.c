/** Importers against the real files' known totals, counted elsewhere, and against rows made here.
 */
#include "trace_convert/formats.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "sim/test_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void load(const char *name, const struct weir_sim_format *format, struct weir_sim_trace *out)
{
    struct weir_error err = {0};
    weir_status status = weir_sim_trace_load(data_path(name), format, out, &err);
    ck_assert_msg(status == WEIR_OK, "%s: %s", name, err.message);
}

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

START_TEST(philly_has_the_published_number_of_jobs_and_gpu_hours)
{
    struct weir_sim_trace trace;
    load("philly/sia_philly.csv", &convert_philly_csv, &trace);
    double gpu_s = 0;
    int32_t n_single = 0, n_queues = 0;
    const char *queues[32];
    for (int32_t i = 0; i < trace.n_jobs; i++) {
        const struct weir_sim_job *job = &trace.jobs[i];
        gpu_s += (double)job->n_devices * (double)job->duration_ms / 1000;
        n_single += job->n_devices == 1;
        int32_t q = 0;
        while (q < n_queues && queues[q] != job->queue) {
            q++;
        }
        if (q == n_queues) {
            queues[n_queues++] = job->queue;
        }
        ck_assert(i == 0 || job->submit_ms >= trace.jobs[i - 1].submit_ms);
    }
    ck_assert_int_eq(trace.n_jobs, 82247);
    ck_assert_double_eq_tol(gpu_s / 3600, 978078, 1);
    ck_assert_double_eq_tol(100.0 * n_single / trace.n_jobs, 93.2, 0.05);
    ck_assert_int_eq(n_queues, 15);
    weir_sim_trace_fini(&trace);
}

END_TEST

START_TEST(alibaba_has_the_published_mix_of_tasks)
{
    struct weir_sim_trace trace;
    load("alibaba-gpu-v2023/openb_pod_list_default.csv", &convert_alibaba, &trace);
    int n_cpu = 0, n_shared = 0, n_single = 0, n_multi = 0;
    int64_t milli = 0;
    for (int32_t i = 0; i < trace.n_jobs; i++) {
        const struct weir_sim_job *job = &trace.jobs[i];
        n_cpu += job->n_devices == 0;
        n_shared += job->n_devices == 1 && job->device_milli < 1000;
        n_single += job->n_devices == 1 && job->device_milli == 1000;
        n_multi += job->n_devices > 1;
        milli += (int64_t)job->n_devices * job->device_milli;
    }
    ck_assert_int_eq(trace.n_jobs, 8152);
    ck_assert_int_eq(n_cpu, 1088);
    ck_assert_int_eq(n_shared, 3078);
    ck_assert_int_eq(n_single, 3911);
    ck_assert_int_eq(n_multi, 75);
    ck_assert_double_eq_tol((double)milli / 6212000, 0.980, 0.0005);
    weir_sim_trace_fini(&trace);
}

END_TEST

START_TEST(every_alibaba_list_is_read_also_those_with_five_columns)
{
    // clang-format off
    static const struct { const char *name; int32_t n; } lists[] = {
        {"cpu050", 7439}, {"cpu100", 7853}, {"cpu250", 9420}, {"gpushare40", 8152}, {"gpushare60", 8152},
        {"gpushare80", 8152}, {"gpuspec10", 8152}, {"gpuspec25", 8152}, {"gpuspec33", 8152},
        {"multigpu20", 8324}, {"multigpu30", 8508}, {"multigpu50", 9061},
    };

    // clang-format on
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char name[128];
        struct weir_sim_trace trace;
        (void)snprintf(name, sizeof name, "alibaba-gpu-v2023/openb_pod_list_%s.csv", lists[i].name);
        load(name, &convert_alibaba, &trace);
        ck_assert_int_eq(trace.n_jobs, lists[i].n);
        weir_sim_trace_fini(&trace);
    }
}

END_TEST

START_TEST(every_pollux_workload_has_160_jobs_without_run_times)
{
    for (int i = 1; i <= 8; i++) {
        char name[64];
        struct weir_sim_trace trace;
        (void)snprintf(name, sizeof name, "pollux/workload-%d.csv", i);
        load(name, &convert_pollux, &trace);
        ck_assert_int_eq(trace.n_jobs, 160);
        ck_assert_int_eq(trace.jobs[0].duration_ms, WEIR_SIM_UNKNOWN);
        weir_sim_trace_fini(&trace);
    }
}

END_TEST

START_TEST(philly_log_sums_attempts_and_takes_the_largest_size)
{
    struct weir_sim_trace trace;
    parse("[{\"vc\": \"v\", \"jobid\": \"late\", \"user\": \"u\", \"submitted_time\": \"2017-10-07 "
          "01:11:39\","
          " \"attempts\": [{\"start_time\": \"2017-10-07 01:12:00\", \"end_time\": \"2017-10-07 "
          "01:13:00\","
          " \"detail\": [{\"ip\": \"m\", \"gpus\": [\"gpu0\"]}]},"
          " {\"start_time\": \"2017-10-07 02:00:00\", \"end_time\": \"2017-10-07 03:00:00\","
          " \"detail\": [{\"ip\": \"m\", \"gpus\": [\"gpu0\", \"gpu1\"]}, {\"ip\": \"n\", "
          "\"gpus\": [\"gpu3\"]}]}]},"
          " {\"jobid\": \"never\", \"submitted_time\": \"2017-10-07 01:00:00\", \"attempts\": []},"
          " {\"jobid\": \"early\", \"submitted_time\": \"2017-10-07 01:11:00\", \"attempts\": ["
          " {\"start_time\": \"2017-10-07 01:12:00\", \"end_time\": \"2017-10-07 01:12:30\","
          " \"detail\": [{\"ip\": \"m\", \"gpus\": [\"gpu0\"]}]}]}]",
          &convert_philly_json, &trace);
    ck_assert_int_eq(trace.n_jobs, 2);
    ck_assert_int_eq(trace.n_left_out, 1);
    ck_assert_str_eq(trace.jobs[0].name, "early");
    ck_assert_int_eq(trace.jobs[1].duration_ms, 3660000);
    ck_assert_int_eq(trace.jobs[1].n_devices, 3);
    ck_assert_str_eq(trace.jobs[1].queue, "v");
    ck_assert_int_eq(trace.jobs[1].submit_ms - trace.jobs[0].submit_ms, 39000);
    weir_sim_trace_fini(&trace);
}

END_TEST

START_TEST(helios_and_acme_rows_are_read_by_their_column_names)
{
    struct weir_sim_trace trace;
    parse("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
          "queue\n"
          "71,uA,vcX,16,64,2,COMPLETED,2020-06-09 18:41:01,x,x,36848,0\n",
          &convert_helios, &trace);
    ck_assert_int_eq(trace.jobs[0].n_devices, 16);
    ck_assert_int_eq(trace.jobs[0].duration_ms, 36848000);
    ck_assert_str_eq(trace.jobs[0].queue, "vcX");
    ck_assert_str_eq(trace.jobs[0].user, "uA");
    weir_sim_trace_fini(&trace);
    parse("job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,"
          "duration,queue,"
          "gpu_time\n"
          "d1,u1,4,32,480,Pretrain,FAILED,2023-05-17 11:00:58+08:00,,,2700.5,10.0,86400.0\n"
          "d2,u1,1,0,0,Other,FAILED,2023-05-17 11:00:58+00:00,,,1,10.0,0\n",
          &convert_acme, &trace);
    ck_assert_int_eq(trace.n_jobs, 1);
    ck_assert_int_eq(trace.jobs[0].n_tasks, 4);
    ck_assert_int_eq(trace.jobs[0].n_devices, 8);
    ck_assert_int_eq(trace.jobs[0].cpu_milli, 120000);
    ck_assert_int_eq(trace.jobs[0].duration_ms, 2700500);
    ck_assert_int_eq(trace.jobs[0].submit_ms, 1684292458000); /* 03:00:58 UTC, by date(1) */
    weir_sim_trace_fini(&trace);
}

END_TEST

START_TEST(wrong_input_is_refused_with_line_and_column)
{
    refuse("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,2,1,0\n", &convert_alibaba,
           "line 2, column 5 (gpu_milli)");
    refuse("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,-1,1,1,a\n",
           &convert_philly_csv, "line 2, column 2 (duration): expected a number from 0");
    refuse("{}", &convert_philly_json, "expected a list of jobs");
    refuse("[{\"attempts\": 3}]", &convert_philly_json, "$[0].attempts: expected a list");
    struct weir_error err = {0};
    const struct weir_sim_format *format;
    ck_assert_int_eq(convert_format_named("slurm", &format, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_msg(strstr(err.message, "there are alibaba-2023, philly") != NULL, "%s", err.message);
}

END_TEST

static void check_same(const struct weir_sim_job *a, const struct weir_sim_job *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert_str_eq(a->queue, b->queue);
    ck_assert_pstr_eq(a->user, b->user);
    ck_assert_pstr_eq(a->model, b->model);
    ck_assert_int_eq(a->submit_ms, b->submit_ms);
    ck_assert_int_eq(a->duration_ms, b->duration_ms);
    ck_assert_int_eq(a->n_devices, b->n_devices);
    ck_assert_int_eq(a->device_milli, b->device_milli);
    /* What asks for no device is one task, stated or not. */
    ck_assert_int_eq(a->n_devices == 0 && a->n_tasks == 0 ? 1 : a->n_tasks, b->n_tasks);
    ck_assert_int_eq(a->cpu_milli, b->cpu_milli);
    ck_assert_int_eq(a->memory_bytes, b->memory_bytes);
    ck_assert_int_eq(a->time_limit_ms, b->time_limit_ms);
    ck_assert_int_eq(a->priority, b->priority);
    ck_assert_int_eq(a->busy_pct, b->busy_pct);
    ck_assert(a->is_preemptible == b->is_preemptible);
}

static void check_written(const struct weir_sim_trace *trace)
{
    struct weir_error err = {0};
    struct weir_sim_trace again;
    char *text;
    size_t len;
    FILE *file = open_memstream(&text, &len);
    ck_assert_int_eq(convert_write(trace, file, &err), WEIR_OK);
    (void)fclose(file);
    ck_assert_msg(weir_sim_trace_parse(text, len, "written", &weir_sim_csv, &again, &err) ==
                      WEIR_OK,
                  "%s", err.message);
    ck_assert_int_eq(again.n_jobs, trace->n_jobs);
    for (int32_t i = 0; i < trace->n_jobs; i++) {
        check_same(&trace->jobs[i], &again.jobs[i]);
    }
    weir_sim_trace_fini(&again);
    free(text);
}

START_TEST(what_is_written_is_read_again_as_it_was)
{
    struct weir_sim_trace trace;
    parse("job_id,user,node_num,gpu_num,cpu_num,type,submit_time,duration\n"
          "\"a, \"\"b\"\"\",u1,4,32,480,Pretrain,2023-05-17 11:00:58+08:00,2700.5\n"
          "c,u1,1,0,3,Other,2023-05-17 11:00:58+00:00,\n",
          &convert_acme, &trace);
    check_written(&trace);
    weir_sim_trace_fini(&trace);
    parse("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time\n"
          "x,12345,10001,1,460,V100|P100,LS,5,17\ny,1,3,2,1000,,BE,0,0\n",
          &convert_alibaba, &trace);
    check_written(&trace);
    weir_sim_trace_fini(&trace);
}

END_TEST

START_TEST(real_traces_are_read_again_as_they_were)
{
    static const struct {
        const char *name;
        const struct weir_sim_format *format;
    } files[] = {
        {"philly/sia_philly.csv", &convert_philly_csv},
        {"alibaba-gpu-v2023/openb_pod_list_default.csv", &convert_alibaba},
        {"pollux/workload-1.csv", &convert_pollux},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        struct weir_sim_trace trace;
        load(files[i].name, files[i].format, &trace);
        check_written(&trace);
        weir_sim_trace_fini(&trace);
    }
}

END_TEST

int main(void)
{
    const TTest *const made[] = {
        philly_log_sums_attempts_and_takes_the_largest_size,
        helios_and_acme_rows_are_read_by_their_column_names,
        what_is_written_is_read_again_as_it_was,
        wrong_input_is_refused_with_line_and_column,
    };
    const TTest *const real[] = {
        philly_has_the_published_number_of_jobs_and_gpu_hours,
        alibaba_has_the_published_mix_of_tasks,
        every_alibaba_list_is_read_also_those_with_five_columns,
        every_pollux_workload_has_160_jobs_without_run_times,
        real_traces_are_read_again_as_they_were,
    };
    if (weir_test_run(weir_test_suite("formats", made, sizeof made / sizeof made[0])) != 0) {
        return EXIT_FAILURE;
    }
    if (access(data_path("philly/sia_philly.csv"), R_OK) != 0) {
        (void)fprintf(stderr, "the traces are not there; their tests are skipped\n");
        return 77;
    }
    return weir_test_run(weir_test_suite("real traces", real, sizeof real / sizeof real[0]));
}
