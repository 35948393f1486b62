/* A rank of the benchmark: warm up, measure, add up, print. */
#include "bench/training.h"

#include "base/clock.h"
#include "base/rss.h"
#include "nn/peak.h"
#include "nn/profile.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define JOIN_TIMEOUT_MS 120000
#define PEAK_BUDGET_S   0.3
#define ALONE_STEPS     5 /* to know how fast a step is without exchange; after as many to warm up */

/** What a worker tells worker 0. */
enum { REPORTED_SPEED, REPORTED_FAULTS, REPORTED_CPU, REPORTED_RSS, REPORTED_PEAK, N_REPORTED };

/* ---- the group ------------------------------------------------------------------------------ */

static weir_status join(const struct training_plan *plan, const struct weir_spawn_rank *me,
                        struct weir_comm **out, struct weir_error *err)
{
    const struct weir_comm_config config = {.rendezvous = me->rendezvous,
                                            .secret = me->secret,
                                            .rank = me->rank,
                                            .size = me->size,
                                            .n_servers = plan->n_servers,
                                            .timeout_ms = JOIN_TIMEOUT_MS,
                                            .transport = plan->options.transport,
                                            .algorithm = training_algorithm(plan),
                                            .wire = plan->options.wire};
    return weir_comm_create(&config, out, err);
}

static weir_status join_nobody(struct weir_comm **out, struct weir_error *err)
{
    const struct weir_comm_config config = {.size = 1};
    return weir_comm_create(&config, out, err);
}

static weir_status group_error(const struct training_worker *bench, weir_status status,
                               struct weir_error *err)
{
    weir_status failure = weir_comm_failure(bench->group, NULL, err);
    return failure != WEIR_OK ? failure
                              : weir_error_set(err, status, "exchange with the other workers: %s",
                                               weir_status_text(status));
}

static weir_status meet(const struct training_worker *bench, struct weir_error *err)
{
    weir_status status = weir_comm_barrier(bench->group);
    return status == WEIR_OK ? WEIR_OK : group_error(bench, status, err);
}

/** The numbers of all workers, in their order. */
static weir_status share_all(const struct training_worker *bench, const double own[N_REPORTED],
                             double *all, struct weir_error *err)
{
    size_t n = (size_t)weir_comm_n_workers(bench->group) * N_REPORTED;
    memset(all, 0, n * sizeof *all);
    memcpy(all + (size_t)weir_comm_rank(bench->group) * N_REPORTED, own, N_REPORTED * sizeof *all);
    weir_status status = weir_comm_allreduce(bench->group, all, n, WEIR_COMM_F64);
    return status == WEIR_OK ? WEIR_OK : group_error(bench, status, err);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static weir_status take_steps(struct training_worker *bench, size_t n, double *out_times,
                              struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t begin_ns = weir_mono_ns();
        WEIR_TRY(training_worker_step(bench, err));
        if (out_times != NULL) {
            out_times[i] = (double)(weir_mono_ns() - begin_ns) / 1e9;
        }
    }
    return WEIR_OK;
}

/** The mean step without exchange, of the slowest worker: all compute at the same time. */
static weir_status measure_alone(struct training_worker *bench, double *out_s,
                                 struct weir_error *err)
{
    double own[N_REPORTED] = {0}, all[WEIR_COMM_MAX_RANKS * N_REPORTED];
    WEIR_TRY(take_steps(bench, ALONE_STEPS, NULL, err));
    WEIR_TRY(meet(bench, err));
    uint64_t begin_ns = weir_mono_ns();
    WEIR_TRY(take_steps(bench, ALONE_STEPS, NULL, err));
    own[REPORTED_SPEED] = (double)(weir_mono_ns() - begin_ns) / 1e9 / ALONE_STEPS;
    WEIR_TRY(share_all(bench, own, all, err));
    *out_s = 0;
    for (int r = 0; r < weir_comm_n_workers(bench->group); r++) {
        *out_s = WEIR_MAX(*out_s, all[r * N_REPORTED + REPORTED_SPEED]);
    }
    return WEIR_OK;
}

/** Measured steps, with tf_cnn_benchmarks' lines on the way. */
static weir_status take_shown_steps(struct training_worker *bench, struct training_result *result,
                                    bool is_shown, struct weir_error *err)
{
    size_t every = (size_t)bench->plan->options.display_every;
    for (size_t i = 0; i < result->n_times; i++) {
        WEIR_TRY(take_steps(bench, 1, result->times + i, err));
        if (is_shown && (i == 0 || (i + 1) % every == 0)) {
            const struct training_timing timing = training_timing_of(
                result->global_batch / result->scale, result->times, i + 1, result->scratch);
            training_print_step(i + 1, &timing, result->scale, bench->loss, stdout);
        }
    }
    return WEIR_OK;
}

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/** What all threads of this process have used so far. */
static void read_usage(double *out_faults, double *out_cpu_s)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    *out_faults = (double)usage.ru_minflt;
    *out_cpu_s = seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
}

static weir_status measure(struct training_worker *bench, struct training_result *result,
                           bool is_shown, struct weir_error *err)
{
    double own[N_REPORTED] = {0}, all[WEIR_COMM_MAX_RANKS * N_REPORTED];
    const double images = result->global_batch / bench->plan->n_workers * (double)result->n_times;
    if (is_shown) {
        (void)fputs("Running warm up\n", stdout);
        (void)fflush(stdout);
    }
    WEIR_TRY(take_steps(bench, (size_t)bench->plan->options.num_warmup_batches, NULL, err));
    WEIR_TRY(meet(bench, err));
    if (is_shown) {
        training_print_titles(stdout);
    }
    double faults_before, cpu_s_before;
    read_usage(&faults_before, &cpu_s_before);
    uint64_t begin_ns = weir_mono_ns();
    WEIR_TRY(take_shown_steps(bench, result, is_shown, err));
    own[REPORTED_SPEED] = images / ((double)(weir_mono_ns() - begin_ns) / 1e9);
    read_usage(&own[REPORTED_FAULTS], &own[REPORTED_CPU]);
    own[REPORTED_FAULTS] -= faults_before;
    own[REPORTED_CPU] -= cpu_s_before;
    own[REPORTED_RSS] = (double)weir_peak_rss_bytes();
    WEIR_TRY(meet(bench, err)); /* all at once, as the steps were */
    enum weir_peak_type type = bench->plan->options.uses_bf16 ? WEIR_PEAK_BF16 : WEIR_PEAK_F32;
    weir_status status =
        weir_peak_measure(type, bench->task.n_threads, PEAK_BUDGET_S, &own[REPORTED_PEAK], err);
    if (status == WEIR_ERR_UNSUPPORTED) { /* the reference back-end computes bf16 anywhere */
        own[REPORTED_PEAK] = 0;
    } else if (status != WEIR_OK) {
        return status;
    }
    WEIR_TRY(share_all(bench, own, all, err));
    for (int r = 0; r < weir_comm_n_workers(bench->group); r++) {
        const double *reported = all + r * N_REPORTED;
        result->total += reported[REPORTED_SPEED];
        result->page_faults += reported[REPORTED_FAULTS];
        result->cpu_s += reported[REPORTED_CPU];
        result->peak_flops += reported[REPORTED_PEAK];
        result->total_rss_bytes += reported[REPORTED_RSS];
        result->peak_rss_bytes = WEIR_MAX(result->peak_rss_bytes, reported[REPORTED_RSS]);
    }
    result->loss = bench->loss;
    return WEIR_OK;
}

/** After the measured steps: some more, on the record of worker 0. */
static weir_status take_trace(struct training_worker *bench, const struct training_result *result,
                              struct weir_error *err)
{
    const struct training_options *o = &bench->plan->options;
    struct weir_profile *profile = NULL;
    int rank = weir_comm_rank(bench->group);
    if (o->trace_file == NULL) {
        return WEIR_OK;
    }
    if (rank == 0) {
        WEIR_TRY(weir_profile_create(bench->worker.net, (int32_t)o->profile_steps, &profile, err));
    }
    bench->worker.trace.profile = profile;
    weir_status status = WEIR_OK;
    for (int64_t i = 0; status == WEIR_OK && i < o->profile_steps; i++) {
        uint64_t begin_ns = weir_mono_ns();
        status = training_worker_step(bench, err);
        if (profile != NULL) {
            weir_profile_span(profile, "step", begin_ns, weir_mono_ns());
        }
    }
    bench->worker.trace.profile = NULL;
    if (status == WEIR_OK && profile != NULL) {
        int n_threads = bench->plan->n_workers * bench->task.n_threads;
        status =
            weir_profile_write(profile, o->trace_file, rank, result->peak_flops / n_threads, err);
    }
    weir_profile_destroy(profile);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/** Slow the exchange down to what the emulated network would make of it. */
static weir_status emulate_fabric(struct training_worker *bench, struct training_result *result,
                                  struct weir_error *err)
{
    const struct training_plan *plan = bench->plan;
    const struct training_options *o = &plan->options;
    double step_s = 0;
    if (o->emulate_fabric == 0) {
        return WEIR_OK;
    }
    double bytes =
        training_busiest_bytes(plan->exchange, (double)bench->worker.n_gradients * sizeof(float),
                               plan->n_workers, plan->n_servers);
    if (bytes <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "emulate-fabric: one worker sends nothing; say --workers");
    }
    WEIR_TRY(training_accelerator_step_s(o->accelerator, &plan->model, 3 * result->flop_per_image,
                                         &step_s, err));
    WEIR_TRY(measure_alone(bench, &result->alone_step_s, err));
    result->ratio = bytes / ((double)o->emulate_fabric * 1e9 / 8) / step_s;
    result->link_bytes_s = bytes / (result->ratio * result->alone_step_s);
    WEIR_TRY(training_worker_set_alone(bench, false, err));
    weir_comm_emulate_link(bench->group, result->link_bytes_s);
    return WEIR_OK;
}

static void print_result(const struct training_result *result)
{
    if (!result->plan->is_json) {
        training_print_total(result, stdout);
        return;
    }
    WEIR_AUTO(weir_json_auto_free) json_t *object = training_result_json(result);
    if (object != NULL) {
        (void)json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        (void)fputs("\n", stdout);
    }
}

static size_t count_steps(const struct training_plan *plan, const struct train_task *task)
{
    if (plan->options.num_epochs <= 0) {
        return (size_t)plan->options.num_batches;
    }
    double n = plan->options.num_epochs * (double)task->order.n_samples / task->order.batch;
    return (size_t)WEIR_MAX(n, 1.0);
}

static weir_status run_worker(struct training_worker *bench, struct weir_error *err)
{
    const struct training_plan *plan = bench->plan;
    const struct weir_graph *graph = bench->task.graph;
    bool is_independent = plan->exchange == TRAINING_INDEPENDENT;
    bool is_printing = weir_comm_rank(bench->group) == 0, is_shown = is_printing && !plan->is_json;
    struct training_result result = {
        .plan = plan,
        .task = &bench->task,
        .transport = weir_comm_transport(bench->group),
        .global_batch = (double)bench->task.order.batch * (is_independent ? plan->n_workers : 1),
        .scale = is_independent ? plan->n_workers : 1,
        .flop_per_image = 2 * (double)weir_graph_n_macs(graph),
        .step_flop_per_image =
            2 * (double)(plan->options.is_forward_only ? weir_graph_n_macs(graph)
                                                       : weir_graph_n_step_macs(graph)),
        .n_times = count_steps(plan, &bench->task)};
    WEIR_AUTO(weir_auto_free) double *times = calloc(2 * result.n_times, sizeof *times);
    if (times == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %zu times", result.n_times);
    }
    result.times = times;
    result.scratch = times + result.n_times;
    if (is_shown) {
        training_print_header(&result, stdout);
    }
    WEIR_TRY(training_worker_open(bench, err));
    WEIR_TRY(emulate_fabric(bench, &result, err));
    WEIR_TRY(measure(bench, &result, is_shown, err));
    WEIR_TRY(take_trace(bench, &result, err));
    if (!plan->options.is_forward_only) {
        WEIR_TRY(worker_exchange_wait_weights(&bench->worker, err));
    }
    if (is_printing) {
        print_result(&result);
    }
    return WEIR_OK;
}

/** The processors of this host, shared by the workers on it. */
static void share_threads(struct training_plan *plan, const struct weir_spawn_rank *me)
{
    cpu_set_t set;
    int n_cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int n_here = WEIR_MIN(me->n_here, plan->n_workers); /* servers compute next to nothing */
    if (plan->options.threads == 0) {
        plan->config.group.threads = WEIR_MAX(n_cpus / WEIR_MAX(n_here, 1), 1);
    }
}

static void leave(struct training_worker *bench)
{
    training_worker_close(bench);
    weir_comm_destroy(bench->alone);
    weir_comm_destroy(bench->group);
}

weir_status training_rank_run(const struct training_plan *given, const struct weir_spawn_rank *me,
                              struct weir_error *err)
{
    struct training_plan plan = *given;
    WEIR_AUTO(leave) struct training_worker bench = {.plan = &plan};
    share_threads(&plan, me);
    WEIR_TRY(training_task_open(&plan, &bench.task, err));
    WEIR_TRY(join(&plan, me, &bench.group, err));
    WEIR_TRY(join_nobody(&bench.alone, err));
    if (me->rank >= plan.n_workers) {
        return train_server_run(&bench.task, bench.group, NULL, err);
    }
    WEIR_TRY(run_worker(&bench, err));
    return plan.n_servers > 0 && weir_ps_stop(bench.group) != WEIR_OK
               ? group_error(&bench, WEIR_ERR_PEER, err)
               : WEIR_OK;
}
