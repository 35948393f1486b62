/* One GPU by NVIDIA's driver: its stream, memory, kernels and records. Libraries: library.h. */
#include "gpu_modules.h"
#include "gpu_private.h"

#include "base/log.h"
#include "base/macros.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernel_names[GPU_KERNEL_COUNT] = {
#define GPU_KERNEL(name) #name,
#include "kernels.def"
#undef GPU_KERNEL
};

/* ---- errors ---------------------------------------------------------------------------------- */

const char *cuda_words(const struct cuda_driver *cu, cu_result result)
{
    const char *text = NULL;
    return cu->error_string(result, &text) == CUDA_SUCCESS && text != NULL ? text : "unknown error";
}

weir_status cuda_check(const struct cuda_gpu *gpu, cu_result result, const char *call)
{
    if (result == CUDA_SUCCESS) {
        return WEIR_OK;
    }
    weir_log(WEIR_LOG_WARN, "gpu_call_failed", WEIR_KV_STR("call", call),
             WEIR_KV_INT("error", result), WEIR_KV_STR("reason", cuda_words(&gpu->cu, result)));
    return WEIR_ERR_INTERNAL;
}

/* The same, with a sentence for the person at the screen. */
static weir_status check_open(const struct cuda_gpu *gpu, cu_result result, const char *call,
                              struct weir_error *err)
{
    return result == CUDA_SUCCESS
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INTERNAL, "cannot open the GPU: %s: %s (error %u)",
                                call, cuda_words(&gpu->cu, result), result);
}

/* ---- opening --------------------------------------------------------------------------------- */

weir_status cuda_find_device(const struct cuda_driver *cu, int32_t index, cu_device *out,
                             struct weir_error *err)
{
    cu_result result = cu->init(0);
    int n = 0;
    if (result == CUDA_SUCCESS) {
        result = cu->device_count(&n);
    }
    if (result != CUDA_SUCCESS) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "NVIDIA's driver does not start: %s (error %u); look at nvidia-smi",
                              cuda_words(cu, result), result);
    }
    if (index < 0 || n == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "there is no GPU that this process may use (CUDA_VISIBLE_DEVICES)");
    }
    result = cu->device_get(out, index % n);
    return result == CUDA_SUCCESS
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INTERNAL,
                                "cannot open the GPU: cuDeviceGet: %s (error %u)",
                                cuda_words(cu, result), result);
}

static weir_status open_context(struct cuda_gpu *gpu, int32_t index, struct weir_error *err)
{
    WEIR_TRY(cuda_find_device(&gpu->cu, index, &gpu->device, err));
    cu_result result = gpu->cu.context_retain(&gpu->context, gpu->device);
    WEIR_TRY(check_open(gpu, result, "cuDevicePrimaryCtxRetain", err));
    result = gpu->cu.context_set(gpu->context);
    return check_open(gpu, result, "cuCtxSetCurrent", err);
}

static weir_status open_stream(struct cuda_gpu *gpu, struct weir_error *err)
{
    const struct cuda_driver *cu = &gpu->cu;
    cu_result result = CUDA_SUCCESS;
    for (int i = 0; i < GPU_LANES; i++) {
        result = cu->stream_create(&gpu->lanes[i], CU_STREAM_NON_BLOCKING);
        WEIR_TRY(check_open(gpu, result, "cuStreamCreate", err));
    }
    gpu->stream = gpu->lanes[0];
    for (int i = 0; i < GPU_MARKS; i++) {
        result = cu->event_create(&gpu->marks[i], CU_EVENT_DISABLE_TIMING);
        WEIR_TRY(check_open(gpu, result, "cuEventCreate", err));
    }
    result = cu->stream_create(&gpu->ahead, CU_STREAM_NON_BLOCKING);
    WEIR_TRY(check_open(gpu, result, "cuStreamCreate", err));
    cu_event *const plain[] = {&gpu->uploaded, &gpu->arrived, &gpu->taken};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(plain); i++) {
        result = cu->event_create(plain[i], CU_EVENT_DISABLE_TIMING);
        WEIR_TRY(check_open(gpu, result, "cuEventCreate", err));
    }
    result = cu->event_create(&gpu->begin, CU_EVENT_DEFAULT);
    WEIR_TRY(check_open(gpu, result, "cuEventCreate", err));
    result = cu->event_create(&gpu->end, CU_EVENT_DEFAULT);
    return check_open(gpu, result, "cuEventCreate", err);
}

/* By module. */
static const char *const module_options[GPU_MODULES] = {NULL, "-DWEIR_GPU_BF16", "-DWEIR_GPU_F16"};

static int module_of(enum gpu_type type)
{
    return type == GPU_BF16 ? 1 : type == GPU_F16 ? 2 : 0;
}

/* An image that another driver cannot load, or a damaged one, is made again, once. */
static weir_status load_module(struct cuda_gpu *gpu, const struct nvrtc *nvrtc, int arch,
                               int i_module, struct weir_error *err)
{
    struct module_source source = module_source_of_kernels(arch, module_options[i_module]);
    cu_result result = CUDA_SUCCESS;
    for (int is_anew = 0; is_anew < 2; is_anew++) {
        void *image = NULL;
        size_t n_bytes = 0;
        WEIR_TRY(module_image(nvrtc, &source, is_anew == 0, &image, &n_bytes, err));
        result = gpu->cu.module_load(&gpu->modules[i_module], image);
        free(image);
        if (result == CUDA_SUCCESS || nvrtc == NULL) {
            break;
        }
    }
    return check_open(gpu, result, "cuModuleLoadData", err);
}

/* All functions at once: none is loaded later, in the middle of a record. */
static weir_status load_kernels(struct cuda_gpu *gpu, const struct nvrtc *nvrtc, int arch,
                                struct weir_error *err)
{
    for (int m = 0; m < GPU_MODULES; m++) {
        WEIR_TRY(load_module(gpu, nvrtc, arch, m, err));
        for (int k = 0; k < GPU_KERNEL_COUNT; k++) {
            cu_result result =
                gpu->cu.module_function(&gpu->functions[m][k], gpu->modules[m], kernel_names[k]);
            if (result != CUDA_SUCCESS) {
                return weir_error_set(err, WEIR_ERR_INTERNAL, "the GPU's kernel %s: %s",
                                      kernel_names[k], cuda_words(&gpu->cu, result));
            }
        }
    }
    return WEIR_OK;
}

static weir_status open_kernels(struct cuda_gpu *gpu, struct weir_error *err)
{
    struct nvrtc nvrtc;
    struct weir_error missing = {.status = WEIR_OK};
    int major = 0, minor = 0;
    cu_result result =
        gpu->cu.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->device);
    WEIR_TRY(check_open(gpu, result, "cuDeviceGetAttribute", err));
    result =
        gpu->cu.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu->device);
    WEIR_TRY(check_open(gpu, result, "cuDeviceGetAttribute", err));
    if (major < 8) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the GPU is of an architecture (sm_%d%d) without bf16: sm_80 or "
                              "later is needed",
                              major, minor);
    }
    bool has_nvrtc = library_load_nvrtc(&nvrtc, &missing) == WEIR_OK;
    weir_status status = load_kernels(gpu, has_nvrtc ? &nvrtc : NULL, major * 10 + minor, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s", missing.message);
    }
    return status;
}

/* Without cuDNN, convolutions are kernels of ours. */
static void open_cudnn(struct cuda_gpu *gpu)
{
    struct weir_error err = {.status = WEIR_OK};
    if (library_load_cudnn(&gpu->dnn, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "gpu_without_cudnn", WEIR_KV_STR("reason", err.message));
        return;
    }
    cudnn_status status = gpu->dnn.create(&gpu->cudnn);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = gpu->dnn.set_stream(gpu->cudnn, gpu->stream);
    }
    gpu->has_cudnn = status == CUDNN_STATUS_SUCCESS;
    if (!gpu->has_cudnn) {
        weir_log(WEIR_LOG_WARN, "gpu_without_cudnn", WEIR_KV_INT("error", status),
                 WEIR_KV_STR("reason", gpu->dnn.error_string(status)));
    }
}

static void forget_record(struct cuda_gpu *gpu, int slot)
{
    if (gpu->records[slot] != NULL) {
        (void)cuda_check(gpu, gpu->cu.graph_exec_destroy(gpu->records[slot]), "cuGraphExecDestroy");
        gpu->records[slot] = NULL;
    }
}

void cuda_forget_records(struct cuda_gpu *gpu)
{
    for (int slot = 0; slot < GPU_RECORDS; slot++) {
        forget_record(gpu, slot);
    }
}

static void close_events(struct cuda_gpu *gpu)
{
    cu_event events[5 + GPU_MARKS] = {gpu->uploaded, gpu->arrived, gpu->taken, gpu->begin,
                                      gpu->end};
    memcpy(events + 5, gpu->marks, sizeof gpu->marks);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(events); i++) {
        if (events[i] != NULL) {
            (void)cuda_check(gpu, gpu->cu.event_destroy(events[i]), "cuEventDestroy");
        }
    }
}

/* Also of a half-opened one. */
static void gpu_close(struct gpu *base)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (gpu == NULL) {
        return;
    }
    if (gpu->context != NULL) {
        (void)cuda_check(gpu, gpu->cu.context_set(gpu->context), "cuCtxSetCurrent");
        cuda_close_group(base);
        if (gpu->stream != NULL) {
            (void)cuda_check(gpu, gpu->cu.stream_wait(gpu->stream), "cuStreamSynchronize");
        }
        cuda_forget_records(gpu);
        cuda_plans_free(gpu);
        if (gpu->cudnn != NULL) {
            (void)gpu->dnn.destroy(gpu->cudnn);
        }
        for (int m = 0; m < GPU_MODULES; m++) {
            if (gpu->modules[m] != NULL) {
                (void)cuda_check(gpu, gpu->cu.module_unload(gpu->modules[m]), "cuModuleUnload");
            }
        }
        close_events(gpu);
        for (int i = 0; i < GPU_LANES; i++) {
            if (gpu->lanes[i] != NULL) {
                (void)cuda_check(gpu, gpu->cu.stream_destroy(gpu->lanes[i]), "cuStreamDestroy");
            }
        }
        if (gpu->ahead != NULL) {
            (void)cuda_check(gpu, gpu->cu.stream_destroy(gpu->ahead), "cuStreamDestroy");
        }
        (void)gpu->cu.context_set(NULL);
        (void)cuda_check(gpu, gpu->cu.context_release(gpu->device), "cuDevicePrimaryCtxRelease");
    }
    free(gpu);
}

static weir_status gpu_open(int32_t index, size_t memory_limit, struct gpu **out,
                            struct weir_error *err)
{
    struct cuda_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the GPU's state");
    }
    gpu->gpu.ops = &gpu_cuda_ops;
    gpu->memory_limit_bytes = memory_limit;
    weir_status status;
    WEIR_TRY_GOTO(library_load_driver(&gpu->cu, err), status, close);
    WEIR_TRY_GOTO(open_context(gpu, index, err), status, close);
    WEIR_TRY_GOTO(open_stream(gpu, err), status, close);
    WEIR_TRY_GOTO(open_kernels(gpu, err), status, close);
    open_cudnn(gpu);
    *out = &gpu->gpu;
    return WEIR_OK;

close:
    gpu_close(&gpu->gpu);
    return status;
}

static void gpu_enter(struct gpu *base)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    (void)cuda_check(gpu, gpu->cu.context_set(gpu->context), "cuCtxSetCurrent");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static weir_status no_memory(const struct cuda_gpu *gpu, size_t size_bytes, struct weir_error *err)
{
    size_t n_free = 0, n_total = 0;
    (void)gpu->cu.memory_info(&n_free, &n_total);
    return weir_error_set(err, WEIR_ERR_NOMEM,
                          "no memory on the GPU for %zu bytes: %zu are given out, and %zu of the "
                          "GPU's %zu are free",
                          size_bytes, gpu->memory_bytes, n_free, n_total);
}

static weir_status gpu_alloc(struct gpu *base, size_t size_bytes, void **out,
                             struct weir_error *err)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    size_t limit = gpu->memory_limit_bytes;
    if (size_bytes == 0) {
        *out = NULL;
        return WEIR_OK;
    }
    if (limit != 0 && (gpu->memory_bytes > limit || size_bytes > limit - gpu->memory_bytes)) {
        return weir_error_set(err, WEIR_ERR_NOMEM,
                              "no memory on the GPU for %zu bytes: %zu are given out, and the "
                              "limit is %zu",
                              size_bytes, gpu->memory_bytes, limit);
    }
    struct gpu_allocation *allocation = malloc(sizeof *allocation);
    if (allocation == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to remember the GPU's");
    }
    cu_address at = 0;
    cu_result result = gpu->cu.alloc(&at, size_bytes);
    if (result == CUDA_SUCCESS) {
        result = gpu->cu.set_8(at, 0, size_bytes, gpu->stream);
    }
    if (result != CUDA_SUCCESS) {
        if (at != 0) {
            (void)gpu->cu.free(at);
        }
        free(allocation);
        return result == CUDA_ERROR_OUT_OF_MEMORY
                   ? no_memory(gpu, size_bytes, err)
                   : weir_error_set(err, WEIR_ERR_INTERNAL, "memory of the GPU: %s (error %u)",
                                    cuda_words(&gpu->cu, result), result);
    }
    *allocation = (struct gpu_allocation){gpu->allocations, (void *)(uintptr_t)at, size_bytes};
    gpu->allocations = allocation;
    gpu->memory_bytes += size_bytes;
    *out = allocation->at;
    return WEIR_OK;
}

static void gpu_free(struct gpu *base, void *at)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    for (struct gpu_allocation **link = &gpu->allocations; at != NULL && *link != NULL;
         link = &(*link)->next) {
        struct gpu_allocation *allocation = *link;
        if (allocation->at == at) {
            *link = allocation->next;
            gpu->memory_bytes -= allocation->size_bytes;
            free(allocation);
            (void)cuda_check(gpu, gpu->cu.stream_wait(gpu->stream), "cuStreamSynchronize");
            (void)cuda_check(gpu, gpu->cu.free(cuda_address(at)), "cuMemFree");
            return;
        }
    }
}

static weir_status gpu_alloc_pinned(struct gpu *base, size_t size_bytes, void **out,
                                    struct weir_error *err)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    void *at = NULL;
    if (size_bytes != 0) {
        cu_result result = gpu->cu.host_alloc(&at, size_bytes, 0);
        if (result != CUDA_SUCCESS) {
            return weir_error_set(
                err, result == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_ERR_NOMEM : WEIR_ERR_INTERNAL,
                "no pinned memory for %zu bytes: %s (error %u)", size_bytes,
                cuda_words(&gpu->cu, result), result);
        }
        memset(at, 0, size_bytes);
    }
    *out = at;
    return WEIR_OK;
}

static void gpu_free_pinned(struct gpu *base, void *at)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (at != NULL) {
        (void)cuda_check(gpu, gpu->cu.host_free(at), "cuMemFreeHost");
    }
}

static size_t gpu_memory_bytes(const struct gpu *base)
{
    return ((const struct cuda_gpu *)base)->memory_bytes;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static weir_status gpu_upload(struct gpu *base, void *to, const void *from, size_t size_bytes)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (size_bytes == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(cuda_check(gpu, gpu->cu.upload(cuda_address(to), from, size_bytes, gpu->stream),
                        "cuMemcpyHtoDAsync"));
    /* An event within a record cannot be waited for. */
    return gpu->is_recording
               ? WEIR_OK
               : cuda_check(gpu, gpu->cu.event_record(gpu->uploaded, gpu->stream), "cuEventRecord");
}

static weir_status gpu_download(struct gpu *base, void *to, const void *from, size_t size_bytes)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    return size_bytes == 0
               ? WEIR_OK
               : cuda_check(gpu, gpu->cu.download(to, cuda_address(from), size_bytes, gpu->stream),
                            "cuMemcpyDtoHAsync");
}

static weir_status gpu_wait(struct gpu *base)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    WEIR_TRY(gpu->comm != NULL ? cuda_wait_group(gpu) : WEIR_OK);
    for (int i = 0; i < GPU_LANES; i++) {
        WEIR_TRY(cuda_check(gpu, gpu->cu.stream_wait(gpu->lanes[i]), "cuStreamSynchronize"));
    }
    return cuda_check(gpu, gpu->cu.stream_wait(gpu->ahead), "cuStreamSynchronize");
}

/* An event that was never recorded counts as past. */
static weir_status gpu_upload_ahead(struct gpu *base, void *to, const void *from, size_t size_bytes)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    WEIR_TRY(
        cuda_check(gpu, gpu->cu.stream_wait_event(gpu->ahead, gpu->taken, 0), "cuStreamWaitEvent"));
    WEIR_TRY(cuda_check(gpu, gpu->cu.upload(cuda_address(to), from, size_bytes, gpu->ahead),
                        "cuMemcpyHtoDAsync"));
    return cuda_check(gpu, gpu->cu.event_record(gpu->arrived, gpu->ahead), "cuEventRecord");
}

static weir_status gpu_take_ahead(struct gpu *base, void *to, const void *from, size_t size_bytes)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    cu_stream stream = gpu->lanes[0];
    WEIR_TRY(
        cuda_check(gpu, gpu->cu.stream_wait_event(stream, gpu->arrived, 0), "cuStreamWaitEvent"));
    WEIR_TRY(cuda_check(gpu, gpu->cu.copy(cuda_address(to), cuda_address(from), size_bytes, stream),
                        "cuMemcpyDtoDAsync"));
    return cuda_check(gpu, gpu->cu.event_record(gpu->taken, stream), "cuEventRecord");
}

static weir_status gpu_wait_uploads(struct gpu *base)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    WEIR_TRY(cuda_check(gpu, gpu->cu.event_wait(gpu->arrived), "cuEventSynchronize"));
    return cuda_check(gpu, gpu->cu.event_wait(gpu->uploaded), "cuEventSynchronize");
}

static weir_status gpu_launch(struct gpu *base, enum gpu_kernel kernel, enum gpu_type type,
                              uint32_t grid_x, uint32_t grid_y, const void *args, size_t args_bytes)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    /* The driver knows the argument's size from the kernel, and only reads it. */
    (void)args_bytes;
    void *parameters[1];
    memcpy(parameters, &args, sizeof args);
    if (grid_x == 0 || grid_y == 0) {
        return WEIR_OK;
    }
    cu_result result = gpu->cu.launch(gpu->functions[module_of(type)][kernel], grid_x, grid_y, 1,
                                      GPU_BLOCK, 1, 1, 0, gpu->stream, parameters, NULL);
    return cuda_check(gpu, result, kernel_names[kernel]);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void gpu_set_lane(struct gpu *base, int lane)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (gpu->stream == gpu->lanes[lane]) {
        return;
    }
    gpu->stream = gpu->lanes[lane];
    if (gpu->has_cudnn) {
        (void)gpu->dnn.set_stream(gpu->cudnn, gpu->stream);
    }
}

static weir_status gpu_mark(struct gpu *base, int i_mark)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    return cuda_check(gpu, gpu->cu.event_record(gpu->marks[i_mark], gpu->stream), "cuEventRecord");
}

static weir_status gpu_wait_mark(struct gpu *base, int i_mark)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    return cuda_check(gpu, gpu->cu.stream_wait_event(gpu->stream, gpu->marks[i_mark], 0),
                      "cuStreamWaitEvent");
}

/* ---- records --------------------------------------------------------------------------------- */

/* "Relaxed": a library may do what a record does not hold, such as load a kernel. */
static weir_status gpu_begin_record(struct gpu *base)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    WEIR_TRY(cuda_check(gpu, gpu->cu.capture_begin(gpu->stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                        "cuStreamBeginCapture"));
    gpu->is_recording = true;
    return WEIR_OK;
}

static weir_status gpu_end_record(struct gpu *base, int slot)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    cu_graph graph = NULL;
    gpu->is_recording = false;
    forget_record(gpu, slot);
    WEIR_TRY(cuda_check(gpu, gpu->cu.capture_end(gpu->stream, &graph), "cuStreamEndCapture"));
    cu_graph_exec exec = NULL;
    weir_status status =
        cuda_check(gpu, gpu->cu.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
    (void)cuda_check(gpu, gpu->cu.graph_destroy(graph), "cuGraphDestroy");
    WEIR_TRY(status);
    gpu->records[slot] = exec;
    return WEIR_OK;
}

static weir_status gpu_replay(struct gpu *base, int slot)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (gpu->records[slot] == NULL) {
        return WEIR_ERR_NOT_FOUND;
    }
    return cuda_check(gpu, gpu->cu.graph_launch(gpu->records[slot], gpu->stream), "cuGraphLaunch");
}

/* ---- describing ------------------------------------------------------------------------------ */

/* The kernel's module has it as a file; without it, the CUDA version that the driver knows. */
static void driver_text(const struct cuda_gpu *gpu, char *out, size_t size)
{
    char release[32] = "";
    int version = 0;
    FILE *file = fopen("/sys/module/nvidia/version", "re");
    if (file != NULL) {
        if (fgets(release, sizeof release, file) != NULL) {
            release[strcspn(release, "\n")] = '\0';
        }
        (void)fclose(file);
    }
    if (release[0] != '\0') {
        (void)snprintf(out, size, "driver %s", release);
    } else {
        (void)gpu->cu.driver_version(&version);
        (void)snprintf(out, size, "driver of CUDA %d.%d", version / 1000, version % 1000 / 10);
    }
}

static void gpu_describe(struct gpu *base, char *out, size_t size)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    char name[128] = "GPU", driver[64];
    (void)gpu->cu.device_name(name, sizeof name, gpu->device);
    name[sizeof name - 1] = '\0';
    driver_text(gpu, driver, sizeof driver);
    if (gpu->has_cudnn) {
        size_t version = gpu->dnn.version();
        (void)snprintf(out, size, "%s, %s, cuDNN %zu.%zu.%zu", name, driver, version / 10000,
                       version % 10000 / 100, version % 100);
    } else {
        (void)snprintf(out, size, "%s, %s, no cuDNN", name, driver);
    }
}

const struct gpu_ops gpu_cuda_ops = {
    .name = "cuda",
    .open = gpu_open,
    .close = gpu_close,
    .enter = gpu_enter,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .alloc_pinned = gpu_alloc_pinned,
    .free_pinned = gpu_free_pinned,
    .upload = gpu_upload,
    .download = gpu_download,
    .upload_ahead = gpu_upload_ahead,
    .take_ahead = gpu_take_ahead,
    .wait = gpu_wait,
    .wait_uploads = gpu_wait_uploads,
    .launch = gpu_launch,
    .plan_conv = cuda_plan_conv,
    .run_conv = cuda_run_conv,
    .set_lane = gpu_set_lane,
    .mark = gpu_mark,
    .wait_mark = gpu_wait_mark,
    .begin_record = gpu_begin_record,
    .end_record = gpu_end_record,
    .replay = gpu_replay,
    .probe = cuda_probe,
    .make_group_id = cuda_make_group_id,
    .open_group = cuda_open_group,
    .close_group = cuda_close_group,
    .all_reduce = cuda_all_reduce,
    .join_group = cuda_join_group,
    .memory_bytes = gpu_memory_bytes,
    .describe = gpu_describe,
};
