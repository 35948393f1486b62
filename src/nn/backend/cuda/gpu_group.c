/*
 * A group of GPUs by NCCL. Its calls do not block: each is waited for here, up to the group's deadline
 * and as long as nobody says that a rank is lost, so that a rank that never comes is an error and no
 * hang.
 *
 * The group has a stream of its own, into which all-reduces are recorded as everything else is. Records
 * are forgotten before the communicator goes, which waits for those that it is part of.
 */
#include "gpu_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/macros.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Between two looks at a GPU that others are waited for: short first, as most waits are. */
#define POLL_FIRST_NS 5000
#define POLL_MOST_NS  100000

struct poll {
    int64_t end_ms;
    long pause_ns;
};

static struct poll poll_begin(const struct cuda_gpu *gpu)
{
    return (struct poll){weir_mono_ms() + gpu->group.timeout_ms, POLL_FIRST_NS};
}

/* OK: it is worth looking again. */
static weir_status poll_pause(const struct cuda_gpu *gpu, struct poll *poll, struct weir_error *err)
{
    weir_status checked = gpu->group.check != NULL ? gpu->group.check(gpu->group.context) : WEIR_OK;
    if (checked != WEIR_OK) {
        return weir_error_set(err, checked, "another rank was lost while GPUs summed gradients");
    }
    if (weir_mono_ms() >= poll->end_ms) {
        return weir_error_set(err, WEIR_ERR_TIMEOUT,
                              "GPUs waited %d ms for the sums of another rank's",
                              gpu->group.timeout_ms);
    }
    const struct timespec pause = {.tv_nsec = poll->pause_ns};
    (void)nanosleep(&pause, NULL);
    poll->pause_ns = WEIR_MIN(2 * poll->pause_ns, (long)POLL_MOST_NS);
    return WEIR_OK;
}

static weir_status explain(const struct cuda_gpu *gpu, nccl_result result, const char *call,
                           struct weir_error *err)
{
    const char *last = gpu->nccl.last_error(gpu->comm);
    return weir_error_set(err, result == ncclRemoteError ? WEIR_ERR_PEER : WEIR_ERR_INTERNAL,
                          "NCCL: %s: %s (error %u)%s%s", call, gpu->nccl.error_string(result),
                          result, last != NULL && last[0] != '\0' ? ": " : "",
                          last != NULL ? last : "");
}

/* Waits until a call that may go on behind the scenes has done its part. */
static weir_status wait_call(const struct cuda_gpu *gpu, nccl_result result, const char *call,
                             struct weir_error *err)
{
    struct poll poll = poll_begin(gpu);
    while (result == ncclInProgress) {
        nccl_result asked = gpu->nccl.async_error(gpu->comm, &result);
        if (asked != ncclSuccess) {
            result = asked;
            break;
        }
        if (result == ncclInProgress) {
            WEIR_TRY(poll_pause(gpu, &poll, err));
        }
    }
    return result == ncclSuccess ? WEIR_OK : explain(gpu, result, call, err);
}

/* ---- before a group --------------------------------------------------------------------------- */

/* The host's boot has a number, which its containers see too. */
static weir_status host_text(char *out, size_t size, struct weir_error *err)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool is_read = file != NULL && fgets(out, (int)size, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    if (!is_read) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "/proc/sys/kernel/random/boot_id: cannot be read, so nobody knows "
                              "which GPUs are of one host");
    }
    out[strcspn(out, "\n")] = '\0';
    return WEIR_OK;
}

weir_status cuda_probe(int32_t index, struct gpu_probe *out, struct weir_error *err)
{
    struct cuda_driver cu;
    struct nccl nccl;
    cu_device device = 0;
    char host[40], slot[32];
    WEIR_TRY(library_load_driver(&cu, err));
    WEIR_TRY(cuda_find_device(&cu, index, &device, err));
    WEIR_TRY(library_load_nccl(&nccl, err));
    cu_result result = cu.device_pci(slot, sizeof slot, device);
    if (result != CUDA_SUCCESS) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "which slot is the GPU in? %s (error %u)",
                              cuda_words(&cu, result), result);
    }
    WEIR_TRY(host_text(host, sizeof host, err));
    memset(out, 0, sizeof *out);
    (void)snprintf(out->place, sizeof out->place, "%s/%s", host, slot);
    return WEIR_OK;
}

weir_status cuda_make_group_id(struct gpu *base, struct gpu_group_id *out, struct weir_error *err)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    nccl_id id;
    _Static_assert(sizeof id == sizeof *out, "both hold NCCL's");
    WEIR_TRY(library_load_nccl(&gpu->nccl, err));
    nccl_result result = gpu->nccl.make_id(&id);
    if (result != ncclSuccess) {
        return explain(gpu, result, "ncclGetUniqueId", err);
    }
    memcpy(out->bytes, id.internal, sizeof out->bytes);
    return WEIR_OK;
}

/* ---- its life --------------------------------------------------------------------------------- */

static weir_status open_stream(struct cuda_gpu *gpu)
{
    WEIR_TRY(cuda_check(gpu, gpu->cu.stream_create(&gpu->group_stream, CU_STREAM_NON_BLOCKING),
                        "cuStreamCreate"));
    WEIR_TRY(cuda_check(gpu, gpu->cu.event_create(&gpu->before_group, CU_EVENT_DISABLE_TIMING),
                        "cuEventCreate"));
    return cuda_check(gpu, gpu->cu.event_create(&gpu->behind_group, CU_EVENT_DISABLE_TIMING),
                      "cuEventCreate");
}

static void close_stream(struct cuda_gpu *gpu)
{
    cu_event *events[] = {&gpu->before_group, &gpu->behind_group};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(events); i++) {
        if (*events[i] != NULL) {
            (void)cuda_check(gpu, gpu->cu.event_destroy(*events[i]), "cuEventDestroy");
            *events[i] = NULL;
        }
    }
    if (gpu->group_stream != NULL) {
        (void)cuda_check(gpu, gpu->cu.stream_destroy(gpu->group_stream), "cuStreamDestroy");
        gpu->group_stream = NULL;
    }
}

static weir_status meet(struct cuda_gpu *gpu, struct weir_error *err)
{
    struct nccl_config_2_14 config = {
        .size = sizeof config, .magic = NCCL_API_MAGIC, .version = NCCL_VERSION_MIN, .blocking = 0};
    nccl_id id;
    memcpy(id.internal, gpu->group.id.bytes, sizeof id.internal);
    nccl_result result = gpu->nccl.init(&gpu->comm, gpu->group.size, id, gpu->group.rank, &config);
    if (gpu->comm == NULL) {
        return explain(gpu, result, "ncclCommInitRankConfig", err);
    }
    return wait_call(gpu, result, "ncclCommInitRankConfig", err);
}

weir_status cuda_open_group(struct gpu *base, const struct gpu_group *group, struct weir_error *err)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    cuda_close_group(base);
    WEIR_TRY(library_load_nccl(&gpu->nccl, err));
    gpu->group = *group;
    gpu->has_queued = false;
    base->group_failure = (struct weir_error){.status = WEIR_OK};
    weir_status status = open_stream(gpu);
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "cannot open a stream for the exchange of gradients");
    } else {
        status = meet(gpu, err);
    }
    if (status != WEIR_OK) {
        cuda_close_group(base);
    }
    return status;
}

/* All leave by aborting, which waits for no rank: who has waited for the GPU has all sums, and between
 * the last wait and here nothing was queued, or it is given up. */
void cuda_close_group(struct gpu *base)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (gpu->comm != NULL) {
        cuda_forget_records(gpu);
        nccl_result result = gpu->nccl.abort(gpu->comm);
        gpu->comm = NULL;
        if (result != ncclSuccess && result != ncclInProgress) {
            weir_log(WEIR_LOG_WARN, "gpu_group_not_left",
                     WEIR_KV_STR("reason", gpu->nccl.error_string(result)));
        }
    }
    close_stream(gpu);
}

/* ---- sums ------------------------------------------------------------------------------------- */

weir_status cuda_all_reduce(struct gpu *base, float *at, size_t n_elems)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    struct weir_error err = {.status = WEIR_OK};
    if (gpu->comm == NULL) {
        return base->group_failure.status != WEIR_OK ? base->group_failure.status
                                                     : WEIR_ERR_INVALID;
    }
    WEIR_TRY(
        cuda_check(gpu, gpu->cu.event_record(gpu->before_group, gpu->stream), "cuEventRecord"));
    WEIR_TRY(cuda_check(gpu, gpu->cu.stream_wait_event(gpu->group_stream, gpu->before_group, 0),
                        "cuStreamWaitEvent"));
    gpu->has_queued = true;
    nccl_result result =
        gpu->nccl.all_reduce(at, at, n_elems, ncclFloat32, ncclSum, gpu->comm, gpu->group_stream);
    weir_status status = wait_call(gpu, result, "ncclAllReduce", &err);
    if (status != WEIR_OK) {
        base->group_failure = err; /* the group is given up by the next wait */
    }
    return status;
}

weir_status cuda_join_group(struct gpu *base)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (gpu->comm == NULL || !gpu->has_queued) {
        return WEIR_OK;
    }
    gpu->has_queued = false;
    WEIR_TRY(cuda_check(gpu, gpu->cu.event_record(gpu->behind_group, gpu->group_stream),
                        "cuEventRecord"));
    return cuda_check(gpu, gpu->cu.stream_wait_event(gpu->stream, gpu->behind_group, 0),
                      "cuStreamWaitEvent");
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static weir_status look(const struct cuda_gpu *gpu, bool *out_is_done)
{
    cu_stream streams[GPU_LANES + 1];
    memcpy(streams, gpu->lanes, sizeof gpu->lanes);
    streams[GPU_LANES] = gpu->group_stream;
    *out_is_done = true;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(streams); i++) {
        cu_result result = gpu->cu.stream_query(streams[i]);
        if (result == CUDA_IS_BUSY) {
            *out_is_done = false;
        } else {
            WEIR_TRY(cuda_check(gpu, result, "cuStreamQuery"));
        }
    }
    return WEIR_OK;
}

/* Has NCCL found out that the sums will not come? */
static weir_status ask_nccl(const struct cuda_gpu *gpu, struct weir_error *err)
{
    nccl_result result = ncclSuccess;
    nccl_result asked = gpu->nccl.async_error(gpu->comm, &result);
    result = asked != ncclSuccess ? asked : result;
    return result == ncclSuccess || result == ncclInProgress
               ? WEIR_OK
               : explain(gpu, result, "sum of gradients", err);
}

/* After it what is queued ends. */
static weir_status give_up(struct cuda_gpu *gpu, const struct weir_error *reason)
{
    gpu->gpu.group_failure = *reason;
    weir_log(WEIR_LOG_WARN, "gpu_group_given_up", WEIR_KV_STR("reason", reason->message));
    cuda_close_group(&gpu->gpu);
    for (int i = 0; i < GPU_LANES; i++) {
        WEIR_TRY(cuda_check(gpu, gpu->cu.stream_wait(gpu->lanes[i]), "cuStreamSynchronize"));
    }
    return reason->status;
}

weir_status cuda_wait_group(struct cuda_gpu *gpu)
{
    struct poll poll = poll_begin(gpu);
    struct weir_error err = gpu->gpu.group_failure;
    bool is_done = false;
    if (err.status != WEIR_OK) {
        return give_up(gpu, &err);
    }
    WEIR_TRY(look(gpu, &is_done));
    while (!is_done) {
        weir_status status = ask_nccl(gpu, &err);
        status = status == WEIR_OK ? poll_pause(gpu, &poll, &err) : status;
        if (status != WEIR_OK) {
            return give_up(gpu, &err);
        }
        WEIR_TRY(look(gpu, &is_done));
    }
    return WEIR_OK;
}
