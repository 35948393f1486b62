#include "nn/peak.h"

#include "base/clock.h"
#include "primitive.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_WINDOWS  6
#define ROUNDS_MAX 4
#define CHANNELS   256
#define SIDE       14
#define IMAGES     2
#define KERNEL     3

/** One convolution with memory of its own for one thread. */
struct probe {
    dnnl_stream_t stream;
    dnnl_memory_t memory[3];
    pthread_t thread;
    bool has_thread;
    struct peak *peak;
    struct weir_peak_window *windows; /**< N_WINDOWS. */
};

struct peak {
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    struct probe *probes;
    struct weir_peak_window *windows; /**< Of all probes. */
    int32_t n_threads;
    uint64_t begin_ns, window_ns;
    sem_t are_running;    /**< Counts threads that have begun. */
    pthread_mutex_t gate; /**< Held until all have. */
    bool is_called_off;
    _Atomic bool has_failed;
};

static const int arg_numbers[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
static const dnnl_query_t arg_queries[3] = {dnnl_query_src_md, dnnl_query_weights_md,
                                            dnnl_query_dst_md};

static weir_status describe(struct peak *peak, dnnl_data_type_t type, struct weir_error *err)
{
    const dnnl_dims_t image = {IMAGES, CHANNELS, SIDE, SIDE};
    const dnnl_dims_t weights = {CHANNELS, CHANNELS, KERNEL, KERNEL};
    const dnnl_dims_t strides = {1, 1}, pads = {1, 1}, none = {0, 0};
    struct weir_dnn_layout image_layout, weight_layout;
    WEIR_TRY(dnn_check(weir_dnn_layout_named(&image_layout, 4, image, type, dnnl_format_tag_any),
                       "describing a tensor", err));
    WEIR_TRY(dnn_check(weir_dnn_layout_named(&weight_layout, 4, weights, type, dnnl_format_tag_any),
                       "describing a tensor", err));
    const struct weir_dnn_op conv = {.kind = WEIR_DNN_CONV_FORWARD,
                                     .src = &image_layout,
                                     .weights = &weight_layout,
                                     .dst = &image_layout,
                                     .strides = strides,
                                     .dilates = none,
                                     .pads = pads,
                                     .end_pads = pads};
    const char *name = NULL;
    dnnl_status_t status = weir_dnn_describe(&conv, peak->engine, NULL, NULL, &peak->desc);
    if (status == dnnl_success) {
        status = dnnl_primitive_desc_query(peak->desc, dnnl_query_impl_info_str, 0, &name);
    }
    if (status == dnnl_unimplemented || (name && strstr(name, "ref"))) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "this processor has no fast convolutions of this type");
    }
    WEIR_TRY(dnn_check(status, "describing a convolution", err));
    return dnn_check(dnnl_primitive_create(&peak->primitive, peak->desc), "creating a convolution",
                     err);
}

static weir_status make_probe(struct peak *peak, struct probe *probe, struct weir_error *err)
{
    probe->peak = peak;
    probe->windows = peak->windows + (probe - peak->probes) * N_WINDOWS;
    WEIR_TRY(dnn_check(dnnl_stream_create(&probe->stream, peak->engine, dnnl_stream_default_flags),
                       "creating a stream", err));
    for (int i = 0; i < 3; i++) {
        const struct weir_dnn_layout layout = weir_dnn_layout_of(peak->desc, arg_queries[i]);
        void *data = NULL;
        WEIR_TRY(dnn_check(
            weir_dnn_memory(&probe->memory[i], &layout, peak->engine, DNNL_MEMORY_ALLOCATE),
            "creating a tensor", err));
        WEIR_TRY(dnn_check(dnnl_memory_get_data_handle(probe->memory[i], &data), "a tensor", err));
        memset(data, 0, layout.n_bytes); /* zeros are as fast as any number */
    }
    return WEIR_OK;
}

static bool convolve(struct probe *probe)
{
    dnnl_exec_arg_t args[3];
    for (int i = 0; i < 3; i++) {
        args[i] = (dnnl_exec_arg_t){.arg = arg_numbers[i], .memory = probe->memory[i]};
    }
    return dnnl_primitive_execute(probe->peak->primitive, probe->stream, 3, args) == dnnl_success;
}

static uint64_t cpu_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/** Convolve until the windows are over; each convolution counts in the window it begins in. */
static bool fill_windows(struct probe *probe)
{
    const struct peak *peak = probe->peak;
    uint64_t wall = weir_mono_ns(), cpu = cpu_ns();
    while (!peak->is_called_off) {
        uint64_t i = (wall - peak->begin_ns) / peak->window_ns;
        if (i >= N_WINDOWS) {
            break;
        }
        if (!convolve(probe)) {
            return false;
        }
        uint64_t wall_then = wall, cpu_then = cpu;
        wall = weir_mono_ns();
        cpu = cpu_ns();
        probe->windows[i].n_done++;
        probe->windows[i].wall_ns += wall - wall_then;
        probe->windows[i].cpu_ns += cpu - cpu_then;
    }
    return true;
}

static void *run_thread(void *context)
{
    struct probe *probe = context;
    struct peak *peak = probe->peak;
    dnn_enter_thread();
    bool is_good = convolve(probe); /* compiled and in the cache */
    (void)sem_post(&peak->are_running);
    (void)pthread_mutex_lock(&peak->gate);
    (void)pthread_mutex_unlock(&peak->gate);
    if (!is_good || !fill_windows(probe)) {
        atomic_store(&peak->has_failed, true);
    }
    return NULL;
}

/** What all threads did in window w, a second of processor time; 0 if one of them did nothing. */
static double rate_in(const struct weir_peak_window *windows, int32_t n_threads, int32_t n_windows,
                      int32_t w, bool *out_good)
{
    double rate = 0;
    *out_good = true;
    for (int32_t t = 0; t < n_threads; t++) {
        const struct weir_peak_window *window = &windows[(size_t)t * n_windows + w];
        if (window->n_done == 0 || window->cpu_ns == 0) {
            *out_good = false;
            return 0;
        }
        rate += (double)window->n_done * 1e9 / (double)window->cpu_ns;
        *out_good = *out_good && window->cpu_ns >= window->wall_ns / 10 * 9;
    }
    return rate;
}

double weir_peak_best(const struct weir_peak_window *windows, int32_t n_threads, int32_t n_windows,
                      bool *out_good)
{
    double best = 0;
    *out_good = false;
    for (int32_t w = 0; w < n_windows; w++) {
        bool is_good;
        double rate = rate_in(windows, n_threads, n_windows, w, &is_good);
        if (is_good > *out_good || (is_good == *out_good && rate > best)) {
            best = rate;
        }
        *out_good = *out_good || is_good;
    }
    return best;
}

/** FLOP of one convolution: pixels times kernel taps, without the taps in the padding, which oneDNN
 *  leaves out. With them this machine would seem to exceed its own peak. */
static double flop_of_one(void)
{
    const double n_met = (SIDE * KERNEL - 2.0) * (SIDE * KERNEL - 2.0);
    return 2.0 * IMAGES * CHANNELS * CHANNELS * n_met;
}

/** Starts all threads, lets them go at once when all are running, and waits for them. */
static int run_threads(struct peak *peak)
{
    int code = 0;
    (void)sem_init(&peak->are_running, 0, 0);
    (void)pthread_mutex_init(&peak->gate, NULL);
    (void)pthread_mutex_lock(&peak->gate);
    for (int32_t t = 0; t < peak->n_threads && code == 0; t++) {
        code = pthread_create(&peak->probes[t].thread, NULL, run_thread, &peak->probes[t]);
        peak->probes[t].has_thread = code == 0;
    }
    for (int32_t t = 0; t < peak->n_threads && peak->probes[t].has_thread;) {
        t += sem_wait(&peak->are_running) == 0; /* Else a signal came. */
    }
    peak->is_called_off = code != 0;
    peak->begin_ns = weir_mono_ns();
    (void)pthread_mutex_unlock(&peak->gate);
    for (int32_t t = 0; t < peak->n_threads && peak->probes[t].has_thread; t++) {
        (void)pthread_join(peak->probes[t].thread, NULL);
        peak->probes[t].has_thread = false;
    }
    (void)pthread_mutex_destroy(&peak->gate);
    (void)sem_destroy(&peak->are_running);
    return code;
}

static weir_status run(struct peak *peak, double *out_flops, struct weir_error *err)
{
    double best = 0;
    bool is_good = false;
    for (int round = 0; round < ROUNDS_MAX && !is_good; round++) {
        memset(peak->windows, 0, (size_t)peak->n_threads * N_WINDOWS * sizeof(*peak->windows));
        int code = run_threads(peak);
        if (code != 0) {
            return weir_error_set_errno(err, code, "cannot start %d threads", peak->n_threads);
        }
        if (atomic_load(&peak->has_failed)) {
            return weir_error_set(err, WEIR_ERR_INTERNAL, "oneDNN: a convolution failed");
        }
        double rate = weir_peak_best(peak->windows, peak->n_threads, N_WINDOWS, &is_good);
        best = is_good ? rate : WEIR_MAX(best, rate);
    }
    *out_flops = best * flop_of_one();
    return WEIR_OK;
}

static void fini(struct peak *peak)
{
    for (int32_t t = 0; peak->probes && t < peak->n_threads; t++) {
        for (int i = 0; i < 3; i++) {
            if (peak->probes[t].memory[i]) {
                dnnl_memory_destroy(peak->probes[t].memory[i]);
            }
        }
        if (peak->probes[t].stream) {
            dnnl_stream_destroy(peak->probes[t].stream);
        }
    }
    if (peak->primitive) {
        dnnl_primitive_destroy(peak->primitive);
    }
    if (peak->desc) {
        dnnl_primitive_desc_destroy(peak->desc);
    }
    if (peak->engine) {
        dnnl_engine_destroy(peak->engine);
    }
    free(peak->probes);
    free(peak->windows);
}

weir_status weir_peak_measure(enum weir_peak_type type, int32_t n_threads, double budget_s,
                              double *out_flops, struct weir_error *err)
{
    struct peak peak = {.n_threads = n_threads,
                        .window_ns = (uint64_t)(budget_s * 1e9 / N_WINDOWS) + 1};
    if (n_threads < 1 || n_threads > 1024 || !(budget_s > 0 && budget_s <= 60)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "n_threads must be 1 to 1024, not %d",
                              n_threads);
    }
    dnn_enter_thread();
    peak.probes = calloc((size_t)n_threads, sizeof(*peak.probes));
    peak.windows = calloc((size_t)n_threads * N_WINDOWS, sizeof(*peak.windows));
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(
        peak.probes && peak.windows
            ? dnn_check(dnnl_engine_create(&peak.engine, dnnl_cpu, 0), "creating an engine", err)
            : weir_error_set(err, WEIR_ERR_NOMEM, "out of memory"),
        status, fini);
    WEIR_TRY_GOTO(describe(&peak, type == WEIR_PEAK_BF16 ? dnnl_bf16 : dnnl_f32, err), status,
                  fini);
    for (int32_t t = 0; t < n_threads; t++) {
        WEIR_TRY_GOTO(make_probe(&peak, &peak.probes[t], err), status, fini);
    }
    status = run(&peak, out_flops, err);
fini:
    fini(&peak);
    return status;
}
