/*
 * The benchmark: its numbers against NumPy's, its lines byte for byte against what
 * tf_cnn_benchmarks prints, its flags, and small runs with one worker and several. Ranks are copies
 * of this program.
 */
#include "bench/training.h"

#include "base/file.h"
#include "base/json.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct weir_arena arena;
static struct weir_error err;
static char dir[64];

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    (void)snprintf(dir, sizeof dir, "/tmp/weir-bench-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

/** A command line as one text, without quotes. */
static int split(const char *line, char **argv)
{
    int n = 0;
    char *copy = weir_arena_strdup(&arena, line), *rest = NULL;
    for (char *arg = strtok_r(copy, " ", &rest); arg != NULL; arg = strtok_r(NULL, " ", &rest)) {
        argv[n++] = arg;
    }
    argv[n] = NULL;
    return n;
}

static weir_status parse(const char *line, struct training_plan *out)
{
    char *argv[64];
    int n = split(line, argv);
    return training_plan_parse(n, argv, 0, &arena, out, &err);
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* times = np.array([.5,.25,.4,.8,.2]); speeds = 64/times; 64/times.mean(), speeds.std(),
 * speeds.std()/5**.5, 1.4826*np.median(abs(speeds-np.median(speeds))) */
static const double times[] = {0.5, 0.25, 0.4, 0.8, 0.2};

START_TEST(speed_uncertainty_and_jitter_are_numpys)
{
    double scratch[5];
    struct training_timing timing = training_timing_of(64, times, 5, scratch);
    ck_assert_double_eq_tol(timing.mean, 148.8372093023256, 1e-9);
    ck_assert_double_eq_tol(timing.stddev, 87.28436286070948, 1e-9);
    ck_assert_double_eq_tol(timing.uncertainty, 39.034753745860876, 1e-9);
    ck_assert_double_eq_tol(timing.jitter, 118.608, 1e-9);
    timing = training_timing_of(64, times, 1, scratch);
    ck_assert_double_eq(timing.mean, 128);
    ck_assert_double_eq(timing.uncertainty, 0);
    ck_assert_double_eq(timing.jitter, 0);
}

END_TEST

START_TEST(percentiles_are_steps_that_there_were)
{
    double scratch[5];
    const struct training_step_ms ms = training_step_ms_of(times, 5, scratch);
    ck_assert_double_eq_tol(ms.mean, 430, 1e-9);
    ck_assert_double_eq_tol(ms.p50, 400, 1e-9);
    ck_assert_double_eq_tol(ms.p90, 800, 1e-9);
    ck_assert_double_eq_tol(ms.p99, 800, 1e-9);
    ck_assert_double_eq_tol(ms.least, 200, 1e-9);
    ck_assert_double_eq_tol(ms.most, 800, 1e-9);
}

END_TEST

/* training.md's table: a P100 with batch 64, 102 MB of gradients. */
START_TEST(ratios_of_communication_are_those_of_the_published_system)
{
    static const struct {
        enum training_exchange exchange;
        double gbit, ratio;
    } rows[] = {{TRAINING_ALL_REDUCE, 10, 0.42},   {TRAINING_ALL_REDUCE, 25, 0.17},
                {TRAINING_ALL_REDUCE, 100, 0.042}, {TRAINING_SERVERS, 10, 1.12},
                {TRAINING_SERVERS, 25, 0.45},      {TRAINING_SERVERS, 100, 0.11}};
    const struct training_model model = training_model_find("resnet50");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        double step_s = 0;
        ck_assert_int_eq(training_accelerator_step_s("p100", &model, 24e9, &step_s, &err), WEIR_OK);
        ck_assert_double_eq_tol(step_s, 0.292, 0.001);
        double ratio = training_busiest_bytes(rows[i].exchange, 102e6, 4, 1) /
                       (rows[i].gbit / 8 * 1e9) / step_s;
        ck_assert_double_eq_tol(ratio, rows[i].ratio, 0.02 * rows[i].ratio);
    }
    ck_assert_double_eq(training_busiest_bytes(TRAINING_SERVERS, 8, 4, 8), 8);
    ck_assert_double_eq(training_busiest_bytes(TRAINING_INDEPENDENT, 8, 4, 0), 0);
    double published = 0, derived = 0;
    const struct training_model unknown = training_model_find("no-such");
    ck_assert_int_eq(training_accelerator_step_s("p100", &model, 1, &published, &err), WEIR_OK);
    ck_assert_int_eq(training_accelerator_step_s("p100", &unknown, 6 * 4.089e9, &derived, &err),
                     WEIR_OK);
    ck_assert_double_eq_tol(derived, published, 1e-3);
    ck_assert_int_eq(training_accelerator_step_s("h100", &model, 1, &derived, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

/* ---- lines ---------------------------------------------------------------------------------- */

static const char expected[] =
    "Model:       resnet50\n"
    "Dataset:     imagenet (synthetic)\n"
    "Mode:        training\n"
    "SingleSess:  False\n"
    "Batch size:  128 global\n"
    "             64 per device\n"
    "Num batches: 100\n"
    "Num epochs:  0.01\n"
    "Devices:     ['job:worker/replica:0/task0/cpu:0', 'job:worker/replica:0/task1/cpu:0']\n"
    "NUMA bind:   False\n"
    "Data format: NHWC\n"
    "Optimizer:   sgd\n"
    "Variables:   replicated\n"
    "AllReduce:   auto\n"
    "Sync:        True\n"
    "==========\n"
    "Done warm up\n"
    "Step\tImg/sec\ttotal_loss\n"
    "5\timages/sec: 148.8 +/- 39.0 (jitter = 118.6)\t7.972\n"
    "----------------------------------------------------------------\n"
    "total images/sec: 219.17\n"
    "----------------------------------------------------------------\n";

START_TEST(lines_are_tf_cnn_benchmarks_byte_for_byte)
{
    struct training_plan plan;
    struct train_task task;
    char *text = NULL;
    size_t len = 0;
    double scratch[5];
    ck_assert_int_eq(parse("--model=resnet50 --workers=2", &plan), WEIR_OK);
    ck_assert_int_eq(training_task_open(&plan, &task, &err), WEIR_OK);
    const struct training_result result = {
        .plan = &plan, .task = &task, .global_batch = 128, .scale = 1, .total = 219.1683};
    const struct training_timing timing = training_timing_of(64, times, 5, scratch);
    FILE *file = open_memstream(&text, &len);
    training_print_header(&result, file);
    training_print_titles(file);
    training_print_step(5, &timing, 1, 7.9721, file);
    training_print_total(&result, file);
    (void)fclose(file);
    ck_assert_str_eq(text, expected);
    free(text);
    train_task_close(&task);
}

END_TEST

/* ---- flags ---------------------------------------------------------------------------------- */

START_TEST(flags_are_understood_in_both_spellings)
{
    struct training_plan plan;
    ck_assert_int_eq(parse("--batch_size=7 --num_batches 3 --forward_only=True --device=cpu "
                           "--num_gpus=0 --cross_replica_sync --server_protocol grpc "
                           "--num_intra_threads=3 --model inception3 --nouse_fp16 "
                           "--nodistortions --data_name=imagenet",
                           &plan),
                     WEIR_OK);
    ck_assert_int_eq(plan.config.loop.batch_size, 7);
    ck_assert_int_eq(plan.options.num_batches, 3);
    ck_assert(plan.options.is_forward_only);
    ck_assert_int_eq(plan.options.threads, 3);
    ck_assert_str_eq(plan.config.model.name, "inception_v3");
    ck_assert_int_eq(parse("--batch-size 7 --num-batches=3 --model resnet50_v1.5", &plan), WEIR_OK);
    ck_assert_str_eq(plan.config.model.name, "resnet50");
    ck_assert_int_eq(plan.config.loop.batch_size, 7);
    ck_assert_int_eq(parse("--model alexnet", &plan), WEIR_OK);
    ck_assert_int_eq(plan.config.loop.batch_size, 512);
    ck_assert_double_eq(plan.config.optimizer.momentum, 0);
    ck_assert_int_eq(parse("--optimizer=momentum", &plan), WEIR_OK);
    ck_assert_str_eq(plan.config.optimizer.name, "sgd");
    ck_assert_double_eq(plan.config.optimizer.momentum, 0.9);
}

END_TEST

START_TEST(what_has_no_meaning_is_refused_with_what_to_take)
{
    static const struct {
        const char *line, *advice;
    } rows[] = {{"--num_gpus=2", "--workers"},
                {"--server_protocol=grpc+verbs", "--transport"},
                {"--server_protocol grpc+gdr", "--transport"},
                {"--device=gpu", "CPU"},
                {"--use_fp16", "--use-bf16"},
                {"--use_fp16=True", "--use-bf16"},
                {"--nocross_replica_sync", "independent"},
                {"--ps_hosts=a:1,b:1", "--hosts"},
                {"--data_format=NCHW", "NHWC"},
                {"--model=nasnet", "inception4"},
                {"--all_reduce_spec=nccl/xring", "ring"},
                {"--eval", "weir evaluate"}};
    struct training_plan plan;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_msg(parse(rows[i].line, &plan) == WEIR_ERR_UNSUPPORTED, "%s", rows[i].line);
        ck_assert_msg(strncmp(err.message, "not supported: ", 15) == 0, "%s", err.message);
        ck_assert_msg(strstr(err.message, rows[i].advice) != NULL, "%s", err.message);
    }
    static const char *const wrong[] = {"--variable_update=magic",
                                        "--no_such_flag",
                                        "--emulate_fabric=10 --accelerator=abacus --workers=2",
                                        "--emulate_fabric=10 --forward_only",
                                        "--num_epochs=1",
                                        "word",
                                        "--batch_size=0x"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_msg(parse(wrong[i], &plan) == WEIR_ERR_INVALID, "%s", wrong[i]);
    }
}

END_TEST

START_TEST(every_update_mode_has_its_ranks)
{
    static const struct {
        const char *line, *algorithm;
        enum training_exchange exchange;
        int n_servers;
    } rows[] = {{"--variable_update=replicated", "auto", TRAINING_ALL_REDUCE, 0},
                {"--variable_update=distributed_all_reduce", "auto", TRAINING_ALL_REDUCE, 0},
                {"--variable_update=collective_all_reduce --all_reduce_spec=xring", "ring",
                 TRAINING_ALL_REDUCE, 0},
                {"--variable_update=horovod", "ring", TRAINING_ALL_REDUCE, 0},
                {"--variable_update=parameter_server --num_ps=2", "auto", TRAINING_SERVERS, 2},
                {"--variable_update=distributed_replicated", "auto", TRAINING_SERVERS, 1},
                {"--variable_update=parameter_server --num_ps=0", "auto", TRAINING_SHARED, 0},
                {"--variable_update=independent", "auto", TRAINING_INDEPENDENT, 0}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        struct training_plan plan;
        char *line = weir_arena_printf(&arena, "--workers=3 --batch_size=4 %s", rows[i].line);
        ck_assert_msg(parse(line, &plan) == WEIR_OK, "%s", err.message);
        ck_assert_int_eq(plan.exchange, rows[i].exchange);
        ck_assert_int_eq(plan.n_workers, 3);
        ck_assert_int_eq(plan.n_servers, rows[i].n_servers);
        ck_assert_str_eq(training_algorithm(&plan), rows[i].algorithm);
        ck_assert_int_eq(plan.config.loop.batch_size,
                         rows[i].exchange == TRAINING_INDEPENDENT ? 4 : 12);
    }
}

END_TEST

/* ---- runs ----------------------------------------------------------------------------------- */

/** The whole command, with its standard output as text. */
static char *run(const char *line)
{
    char path[96], *argv[64] = {weir_arena_strdup(&arena, "bench-train")}, *text = NULL;
    int n = split(line, argv + 1) + 1;
    (void)snprintf(path, sizeof path, "%s/out", dir);
    (void)fflush(stdout);
    int kept = dup(STDOUT_FILENO), fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    (void)dup2(fd, STDOUT_FILENO);
    int exit_status = weir_bench_training_main(n, argv);
    (void)fflush(stdout);
    (void)dup2(kept, STDOUT_FILENO);
    (void)close(kept);
    (void)close(fd);
    ck_assert_msg(exit_status == 0, "%s: %d", line, exit_status);
    ck_assert_int_eq(weir_file_read(path, 1 << 20, &arena, &text, NULL, &err), WEIR_OK);
    return text;
}

static json_t *run_json(const char *line)
{
    json_t *out = NULL;
    char *text = run(weir_arena_printf(&arena, "%s -o json", line));
    ck_assert_msg(weir_json_parse(text, strlen(text), "output", &out, &err) == WEIR_OK, "%s", text);
    return out;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_number(value), "%s", key);
    return json_number_value(value);
}

/** What every run's numbers must fulfil among themselves. */
static void assert_consistent(const json_t *out, double batch, double n_workers)
{
    const json_t *ms = json_object_get(out, "step_ms");
    ck_assert_double_eq(number(out, "global_batch_size"), batch * n_workers);
    ck_assert_double_gt(number(out, "images_per_second"), 0);
    ck_assert_double_ge(number(out, "images_per_second_stddev"), 0);
    ck_assert_double_eq_tol(number(out, "images_per_second_mean"),
                            batch * n_workers / number(ms, "mean") * 1e3,
                            1e-6 * number(out, "images_per_second_mean"));
    ck_assert_double_le(number(ms, "p50"), number(ms, "p90"));
    ck_assert_double_le(number(ms, "p90"), number(ms, "p99"));
    /* How large the share is depends on who else computes while the peak is measured. */
    double gflop_s = number(out, "step_flop_per_image") * number(out, "images_per_second") / 1e9;
    ck_assert_double_gt(number(out, "peak_gflop_s"), 0);
    ck_assert_double_eq_tol(number(out, "peak_fraction") * number(out, "peak_gflop_s"), gflop_s,
                            1e-6 * gflop_s);
    ck_assert_double_gt(number(out, "peak_rss_bytes"), 1 << 20);
    ck_assert_double_ge(number(out, "page_faults_per_step"), 0);
    /* No more than all processors give, and a tick of each process. */
    double cpu_ms = number(out, "cpu_ms_per_step");
    ck_assert_double_gt(cpu_ms, 0);
    ck_assert_double_le(cpu_ms, (double)sysconf(_SC_NPROCESSORS_ONLN) * 2 * number(ms, "mean") +
                                    10 * n_workers);
    ck_assert(isfinite(number(out, "loss")));
}

START_TEST(one_worker_is_measured_and_shown)
{
    const char *text = run("--model lenet --batch_size 8 --num_batches 4 --display_every=2 "
                           "--num_warmup_batches=1");
    ck_assert_ptr_nonnull(strstr(text, "Model:       lenet\n"));
    ck_assert_ptr_nonnull(strstr(text, "==========\nRunning warm up\nDone warm up\nStep\tImg/sec"));
    ck_assert_ptr_nonnull(strstr(text, "\n1\timages/sec: "));
    ck_assert_ptr_nonnull(strstr(text, "\n2\timages/sec: "));
    ck_assert_ptr_null(strstr(text, "\n3\timages/sec: "));
    ck_assert_ptr_nonnull(strstr(text, "\n4\timages/sec: "));
    ck_assert_ptr_nonnull(strstr(text, "\ntotal images/sec: "));
    json_t *out = run_json("--model lenet --batch_size 8 --num_batches 4 --num_warmup_batches 1");
    assert_consistent(out, 8, 1);
    /* Forward, and twice as much back, but nobody makes the gradient of the picture: 32 channels
     * of 5x5 at 28x28 places. */
    ck_assert_double_eq(number(out, "step_flop_per_image"),
                        3 * number(out, "flop_per_image") - 2 * 25 * 32 * 784);
    json_decref(out);
}

END_TEST

START_TEST(two_workers_exchange_in_every_mode)
{
    static const char *const modes[] = {"replicated", "parameter_server",
                                        "distributed_replicated --num_ps=0", "independent"};
    double losses[4];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(modes); i++) {
        json_t *out = run_json(weir_arena_printf(
            &arena,
            "--model lenet-5 --batch_size 4 --num_batches 5 --num_warmup_batches 2 "
            "--init_learning_rate 0.5 --workers 2 --threads 1 --variable_update %s",
            modes[i]));
        assert_consistent(out, 4, 2);
        losses[i] = number(out, "loss");
        json_decref(out);
    }
    /* Servers make the same steps as all-reduce, up to rounding; without exchange they differ. */
    ck_assert_double_eq_tol(losses[0], losses[1], 1e-4);
    ck_assert_double_eq_tol(losses[0], losses[2], 1e-4);
    ck_assert(fabs(losses[0] - losses[3]) > 1e-3);
}

END_TEST

START_TEST(inference_is_measured_with_any_model_file)
{
    char path[96];
    static const char text[] = "input: [1, 28, 28]\nlayers:\n"
                               "  - {name: fc1, type: linear, k: 128}\n"
                               "  - {name: relu, type: relu}\n"
                               "  - {name: fc2, type: linear, k: classes}\n"
                               "loss: {type: softmax}\n";
    (void)snprintf(path, sizeof path, "%s/mlp.yaml", dir);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0600, NULL), WEIR_OK);
    json_t *out = run_json(weir_arena_printf(
        &arena, "--model %s --batch_size 1 --num_batches 50 --forward_only", path));
    assert_consistent(out, 1, 1);
    ck_assert_double_eq(number(out, "flop_per_image"), 2 * (784 * 128 + 128 * 10));
    ck_assert_double_eq(number(out, "step_flop_per_image"), number(out, "flop_per_image"));
    ck_assert_str_eq(json_string_value(json_object_get(out, "mode")), "forward-only");
    json_decref(out);
}

END_TEST

START_TEST(an_imagined_fabric_has_the_accelerators_share_of_sending)
{
    json_t *out = run_json("--model lenet-5 --batch_size 16 --num_batches 4 --num_warmup_batches 1 "
                           "--workers 2 --threads 1 --emulate_fabric 10 --accelerator v100");
    const json_t *fabric = json_object_get(out, "emulated_fabric");
    double step_s = 0, n_params = 61706;
    const struct training_model model = training_model_find("lenet-5");
    ck_assert_int_eq(training_accelerator_step_s("v100", &model, 3 * number(out, "flop_per_image"),
                                                 &step_s, &err),
                     WEIR_OK);
    /* Two workers send as many bytes as there are gradients. The slab has gaps of up to 60 bytes.
     */
    ck_assert_double_eq_tol(number(fabric, "ratio"), 4 * n_params / 1.25e9 / step_s,
                            0.01 * number(fabric, "ratio"));
    double sent_s = 4 * n_params / (number(fabric, "link_gbit_s") / 8 * 1e9);
    ck_assert_double_eq_tol(sent_s * 1e3 / number(fabric, "independent_step_ms"),
                            number(fabric, "ratio"), 0.01 * number(fabric, "ratio"));
    ck_assert_double_gt(number(fabric, "efficiency"), 0);
    json_decref(out);
}

END_TEST

START_TEST(a_trace_holds_the_parts_of_a_step_and_its_operations)
{
    char path[96];
    json_t *trace = NULL;
    (void)snprintf(path, sizeof path, "%s/trace.json", dir);
    (void)run(weir_arena_printf(&arena,
                                "--model lenet-5 --batch_size 16 --num_batches 1 --threads 1 "
                                "--num_warmup_batches 1 --profile_steps 2 --trace_file %s",
                                path));
    ck_assert_msg(weir_json_load(path, 16 << 20, &trace, &err) == WEIR_OK, "%s", err.message);
    double parts_us = 0, steps_us = 0, operations_us = 0;
    size_t i = 0;
    json_t *event = NULL;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) {
            continue;
        }
        double us = number(event, "dur");
        bool is_part = json_object_get(event, "args") == NULL;
        steps_us += is_part && strcmp(name, "step") == 0 ? us : 0;
        parts_us += is_part && strcmp(name, "step") != 0 ? us : 0;
        operations_us += is_part ? 0 : us;
    }
    ck_assert_double_gt(operations_us, 0);
    ck_assert_double_le(operations_us, steps_us); /* one thread */
    ck_assert_double_le(parts_us, steps_us);
    ck_assert_double_ge(parts_us, 0.5 * steps_us);
    json_decref(trace);
}

END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {speed_uncertainty_and_jitter_are_numpys,
                                  percentiles_are_steps_that_there_were,
                                  ratios_of_communication_are_those_of_the_published_system,
                                  lines_are_tf_cnn_benchmarks_byte_for_byte,
                                  flags_are_understood_in_both_spellings,
                                  what_has_no_meaning_is_refused_with_what_to_take,
                                  every_update_mode_has_its_ranks,
                                  one_worker_is_measured_and_shown,
                                  two_workers_exchange_in_every_mode,
                                  inference_is_measured_with_any_model_file,
                                  an_imagined_fabric_has_the_accelerators_share_of_sending,
                                  a_trace_holds_the_parts_of_a_step_and_its_operations};
    if (weir_spawn_is_rank()) {
        return weir_bench_training_main(argc - 1, argv + 1);
    }
    return weir_test_run_here(
        weir_test_suite_with("bench", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
