#include "emulated.h"

#include "base/hash.h"
#include "nn/backend/op.h"

#include <stdlib.h>
#include <sys/mman.h>

_Thread_local struct emulated_place emulated_place;
_Atomic bool emulated_has_failed;

#define ARENA_BYTES   ((size_t)1 << 32)
#define ARGS_MAX      256
#define PLANS_MAX     256
#define FREED_PATTERN 0xa5

enum call_kind { CALL_KERNEL, CALL_CONV, CALL_LANE, CALL_MARK, CALL_WAIT, CALL_SUM, CALL_JOIN };

struct call {
    enum call_kind kind;
    int number; /* of a lane or mark */
    enum gpu_kernel kernel;
    enum gpu_type type;
    uint32_t grid_x, grid_y;
    size_t args_bytes;
    char args[ARGS_MAX];
    const struct gpu_plan *plan;
    struct gpu_conv_tensors tensors;
    float *at; /* of a sum */
    size_t n_elems, n_late;
};

struct record {
    struct call *calls;
    size_t n, cap;
    bool is_made;
};

struct gpu_plan {
    struct gpu_conv_shape shape;
};

struct emulated_gpu {
    struct gpu gpu;
    char *arena;
    size_t used_bytes, given_bytes, limit_bytes;
    struct record records[GPU_RECORDS], open;
    bool is_recording;
    /* Lane 1 runs as late as it may: when lane 0 waits for it. */
    int lane;
    struct record late;
    size_t n_late_done;

    struct {
        int lane;
        size_t n_late; /* calls of lane 1 in front of it */
    } marks[GPU_MARKS];

    /* The upload ahead: it runs when it must have. Its memory of the processor is lent until a wait, and
     * may not change. */
    struct {
        void *to;
        const void *from;
        size_t size_bytes;
        bool is_due, is_lent;
        uint64_t hash;
    } ahead;
    struct gpu_plan plans[PLANS_MAX];
    size_t n_plans;
    struct emulated_group *group;
    bool is_eager; /* all-reduces run at once, else when they are joined */
    struct record sums;
    size_t n_sums_done;
};

static struct emulated_gpu *of(struct gpu *gpu)
{
    return (struct emulated_gpu *)(void *)gpu;
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* Each allocation has its size in front, a block of 256 bytes. */
#define HEAD_BYTES 256

static void set_access(struct emulated_gpu *self, int access)
{
    size_t used = (self->used_bytes + 4095) / 4096 * 4096;
    if (used > 0 && mprotect(self->arena, used, access) != 0) {
        abort();
    }
}

static weir_status emulated_alloc(struct gpu *gpu, size_t size_bytes, void **out,
                                  struct weir_error *err)
{
    struct emulated_gpu *self = of(gpu);
    size_t taken = HEAD_BYTES + (size_bytes + 255) / 256 * 256;
    *out = NULL;
    if (size_bytes == 0) {
        return WEIR_OK;
    }
    if (self->used_bytes + taken > ARENA_BYTES ||
        (self->limit_bytes > 0 && self->given_bytes + size_bytes > self->limit_bytes)) {
        return weir_error_set(err, WEIR_ERR_NOMEM,
                              "GPU: %zu bytes wanted, %zu given out, the limit is %zu", size_bytes,
                              self->given_bytes, self->limit_bytes);
    }
    char *at = self->arena + self->used_bytes;
    self->used_bytes += taken;
    self->given_bytes += size_bytes;
    set_access(self, PROT_READ | PROT_WRITE);
    memcpy(at, &size_bytes, sizeof size_bytes);
    set_access(self, PROT_NONE);
    *out = at + HEAD_BYTES;
    return WEIR_OK;
}

static void emulated_free(struct gpu *gpu, void *at)
{
    struct emulated_gpu *self = of(gpu);
    size_t size_bytes;
    if (!at) {
        return;
    }
    set_access(self, PROT_READ | PROT_WRITE);
    memcpy(&size_bytes, (char *)at - HEAD_BYTES, sizeof size_bytes);
    memset(at, FREED_PATTERN, size_bytes);
    set_access(self, PROT_NONE);
    self->given_bytes -= size_bytes;
}

static weir_status emulated_alloc_pinned(struct gpu *gpu, size_t size_bytes, void **out,
                                         struct weir_error *err)
{
    (void)gpu;
    *out = size_bytes > 0 ? calloc(1, (size_bytes + 63) / 64 * 64) : NULL;
    return *out || size_bytes == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the GPU's copies");
}

static void emulated_free_pinned(struct gpu *gpu, void *at)
{
    (void)gpu;
    free(at);
}

static weir_status copy(struct gpu *gpu, void *to, const void *from, size_t size_bytes)
{
    struct emulated_gpu *self = of(gpu);
    /* In a record the caller's memory may be another when it is run. */
    if (self->is_recording || self->n_late_done < self->late.n ||
        self->n_sums_done < self->sums.n || emulated_has_failed) {
        return WEIR_ERR_INTERNAL;
    }
    set_access(self, PROT_READ | PROT_WRITE);
    memcpy(to, from, size_bytes);
    set_access(self, PROT_NONE);
    return WEIR_OK;
}

static void run_ahead(struct emulated_gpu *self)
{
    set_access(self, PROT_READ | PROT_WRITE);
    if (self->ahead.is_due) {
        memcpy(self->ahead.to, self->ahead.from, self->ahead.size_bytes);
    }
    self->ahead.is_due = false;
    set_access(self, PROT_NONE);
}

/* @return INTERNAL: the caller has written what a copy was still to read. */
static weir_status end_loan(struct emulated_gpu *self)
{
    bool is_broken = self->ahead.is_lent &&
                     self->ahead.hash !=
                         weir_hash_bytes(WEIR_HASH_BEGIN, self->ahead.from, self->ahead.size_bytes);
    self->ahead.is_lent = false;
    return is_broken ? WEIR_ERR_INTERNAL : WEIR_OK;
}

static weir_status emulated_upload_ahead(struct gpu *gpu, void *to, const void *from,
                                         size_t size_bytes)
{
    struct emulated_gpu *self = of(gpu);
    if (self->is_recording || emulated_has_failed) {
        return WEIR_ERR_INTERNAL;
    }
    run_ahead(self); /* in order */
    WEIR_TRY(end_loan(self));
    self->ahead.to = to;
    self->ahead.from = from;
    self->ahead.size_bytes = size_bytes;
    self->ahead.is_due = self->ahead.is_lent = true;
    self->ahead.hash = weir_hash_bytes(WEIR_HASH_BEGIN, from, size_bytes);
    return WEIR_OK;
}

static weir_status emulated_take_ahead(struct gpu *gpu, void *to, const void *from,
                                       size_t size_bytes)
{
    struct emulated_gpu *self = of(gpu);
    if (self->is_recording || emulated_has_failed) {
        return WEIR_ERR_INTERNAL;
    }
    run_ahead(self);
    set_access(self, PROT_READ | PROT_WRITE);
    memcpy(to, from, size_bytes);
    set_access(self, PROT_NONE);
    return WEIR_OK;
}

/* ---- convolutions: plain loops ------------------------------------------------------------------ */

static float get(const struct gpu_conv_shape *s, const void *from, size_t at)
{
    return s->type == GPU_BF16  ? bf16_to_f32(((const uint16_t *)from)[at])
           : s->type == GPU_F16 ? weir_half_to_f32(((const uint16_t *)from)[at])
                                : ((const float *)from)[at];
}

static void set(const struct gpu_conv_shape *s, const void *to, size_t at, double value)
{
    void *writable = (void *)(uintptr_t)to;
    if (s->type == GPU_BF16) {
        ((uint16_t *)writable)[at] = bf16_from_f32((float)value);
    } else if (s->type == GPU_F16) {
        ((uint16_t *)writable)[at] = weir_half_from_f32((float)value);
    } else {
        ((float *)writable)[at] = (float)value;
    }
}

static size_t at4(int32_t i, int32_t j, int32_t nj, int32_t k, int32_t nk, int32_t l, int32_t nl)
{
    return (((size_t)i * (size_t)nj + (size_t)j) * (size_t)nk + (size_t)k) * (size_t)nl + (size_t)l;
}

/* Adds the products of one pixel of y, output channel and tap to the direction's sums. */
static void add_tap(const struct gpu_conv_shape *s, const struct gpu_conv_tensors *t, double *sums,
                    const int32_t *y, int32_t r, int32_t q)
{
    int32_t h = y[1] * s->stride - s->pad_h + r * s->dilation;
    int32_t w = y[2] * s->stride - s->pad_w + q * s->dilation;
    size_t at_y = at4(y[0], y[1], s->out_h, y[2], s->out_w, y[3], s->k);
    int32_t n_c = s->c / s->groups, first_c = y[3] / (s->k / s->groups) * n_c;
    for (int32_t c = 0; h >= 0 && h < s->h && w >= 0 && w < s->w && c < n_c; c++) {
        size_t at_x = at4(y[0], h, s->h, w, s->w, first_c + c, s->c);
        size_t at_w = at4(y[3], r, s->kernel_h, q, s->kernel_w, c, n_c);
        switch (s->direction) {
        case GPU_CONV_FORWARD:
            sums[at_y] += (double)get(s, t->x, at_x) * (double)get(s, t->w, at_w);
            break;
        case GPU_CONV_INPUT_GRADIENT:
            sums[at_x] += (double)get(s, t->y, at_y) * (double)get(s, t->w, at_w);
            break;
        default:
            sums[at_w] += (double)get(s, t->y, at_y) * (double)get(s, t->x, at_x);
        }
    }
}

static void store(const struct gpu_conv_shape *s, const struct gpu_conv_tensors *t, size_t n,
                  const double *sums)
{
    const void *to = s->direction == GPU_CONV_FORWARD          ? t->y
                     : s->direction == GPU_CONV_INPUT_GRADIENT ? t->x
                                                               : t->w;
    for (size_t i = 0; i < n; i++) {
        double sum = sums[i];
        sum += s->has_bias ? (double)get(s, t->bias, i % (size_t)s->k) : 0;
        sum += s->has_residual ? (double)get(s, t->residual, i) : 0;
        sum += s->adds ? (double)get(s, to, i) : 0;
        set(s, to, i, s->has_relu && sum < 0 ? 0 : sum);
    }
}

static void convolve(const struct gpu_conv_shape *s, const struct gpu_conv_tensors *t)
{
    size_t n_x = (size_t)s->n * (size_t)s->h * (size_t)s->w * (size_t)s->c;
    size_t n_y = (size_t)s->n * (size_t)s->out_h * (size_t)s->out_w * (size_t)s->k;
    size_t n_w =
        (size_t)s->k * (size_t)s->kernel_h * (size_t)s->kernel_w * (size_t)(s->c / s->groups);
    size_t n = s->direction == GPU_CONV_FORWARD          ? n_y
               : s->direction == GPU_CONV_INPUT_GRADIENT ? n_x
                                                         : n_w;
    double *sums = calloc(n, sizeof *sums);
    if (!sums) {
        abort();
    }
    for (size_t i = 0; i < n_y; i++) {
        size_t pixel = i / (size_t)s->k;
        int32_t y[] = {(int32_t)(pixel / (size_t)s->out_w / (size_t)s->out_h),
                       (int32_t)(pixel / (size_t)s->out_w % (size_t)s->out_h),
                       (int32_t)(pixel % (size_t)s->out_w), (int32_t)(i % (size_t)s->k)};
        for (int32_t tap = 0; tap < s->kernel_h * s->kernel_w; tap++) {
            add_tap(s, t, sums, y, tap / s->kernel_w, tap % s->kernel_w);
        }
    }
    store(s, t, n, sums);
    free(sums);
}

/* As a library that adds only in f32, so that both ways are tried. */
static weir_status emulated_plan_conv(struct gpu *gpu, const struct gpu_conv_shape *shape,
                                      struct gpu_plan **out, size_t *out_workspace_bytes,
                                      struct weir_error *err)
{
    struct emulated_gpu *self = of(gpu);
    int32_t vec = gpu_is_half(shape->type) ? 8 : 4;
    if (shape->c % vec != 0 || shape->k % vec != 0 || self->n_plans == PLANS_MAX ||
        (shape->adds && gpu_is_half(shape->type))) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "no such convolution");
    }
    self->plans[self->n_plans].shape = *shape;
    *out = &self->plans[self->n_plans++];
    *out_workspace_bytes = 64;
    return WEIR_OK;
}

static weir_status bare_plan_conv(struct gpu *gpu, const struct gpu_conv_shape *shape,
                                  struct gpu_plan **out, size_t *out_workspace_bytes,
                                  struct weir_error *err)
{
    (void)gpu;
    (void)shape;
    (void)out;
    (void)out_workspace_bytes;
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "no library");
}

/* ---- calls ------------------------------------------------------------------------------------ */

static void run_kernel(const struct call *call)
{
    const emulated_kernel *table = call->type == GPU_BF16  ? emulated_kernels_bf16
                                   : call->type == GPU_F16 ? emulated_kernels_f16
                                                           : emulated_kernels_f32;
    for (uint32_t y = 0; y < call->grid_y; y++) {
        for (uint32_t x = 0; x < call->grid_x; x++) {
            emulated_place = (struct emulated_place){0, x, y, call->grid_x};
            table[call->kernel](call->args, call->args_bytes);
        }
    }
}

static void append(struct record *record, const struct call *call)
{
    if (record->n == record->cap) {
        record->cap = 2 * record->cap + 64;
        record->calls = realloc(record->calls, record->cap * sizeof *record->calls);
        if (!record->calls) {
            abort();
        }
    }
    record->calls[record->n++] = *call;
}

static void compute(struct emulated_gpu *self, const struct call *call)
{
    set_access(self, PROT_READ | PROT_WRITE);
    if (call->kind == CALL_CONV) {
        convolve(&call->plan->shape, &call->tensors);
    } else {
        run_kernel(call);
    }
    set_access(self, PROT_NONE);
}

/* The first n calls of lane 1 run now, if they have not. */
static void run_late(struct emulated_gpu *self, size_t n)
{
    while (self->n_late_done < n) {
        compute(self, &self->late.calls[self->n_late_done++]);
    }
}

/* Lane 0 waits: the calls of lane 1 in front of the mark run now. */
static void wait_for(struct emulated_gpu *self, int i_mark)
{
    if (self->lane == 0 && self->marks[i_mark].lane == 1) {
        run_late(self, self->marks[i_mark].n_late);
    }
}

/* After a failure the rest is skipped: their sums are undefined. */
static void run_sum(struct emulated_gpu *self, const struct call *call)
{
    struct weir_error err = {.status = WEIR_OK};
    run_late(self, call->n_late);
    if (!self->group || self->gpu.group_failure.status != WEIR_OK) {
        return;
    }
    set_access(self, PROT_READ | PROT_WRITE);
    if (emulated_group_sum(self->group, call->at, call->n_elems, &err) != WEIR_OK) {
        self->gpu.group_failure = err;
    }
    set_access(self, PROT_NONE);
}

/* It comes behind what is queued in the current lane: all of lane 0 is done at once. */
static void queue_sum(struct emulated_gpu *self, const struct call *call)
{
    struct call sum = *call;
    sum.n_late = self->lane == 1 ? self->late.n : 0;
    append(&self->sums, &sum);
    if (self->is_eager) {
        run_sum(self, &self->sums.calls[self->n_sums_done++]);
    }
}

static void join_sums(struct emulated_gpu *self)
{
    while (self->n_sums_done < self->sums.n) {
        run_sum(self, &self->sums.calls[self->n_sums_done++]);
    }
    self->n_sums_done = self->sums.n = 0;
}

/* Between programs no mark counts any more. */
static weir_status forget_lanes(struct emulated_gpu *self)
{
    if (self->n_late_done < self->late.n || self->n_sums_done < self->sums.n) {
        return WEIR_ERR_INTERNAL; /* lane 0 has not waited for all of lane 1, or of the group's */
    }
    self->n_late_done = self->late.n = 0;
    memset(self->marks, 0, sizeof self->marks);
    return WEIR_OK;
}

static weir_status queue(struct emulated_gpu *self, const struct call *call)
{
    if (self->is_recording) {
        append(&self->open, call);
        return WEIR_OK;
    }
    switch (call->kind) {
    case CALL_LANE:
        self->lane = call->number;
        break;
    case CALL_MARK:
        self->marks[call->number].lane = self->lane;
        self->marks[call->number].n_late = self->late.n;
        break;
    case CALL_WAIT:
        wait_for(self, call->number);
        break;
    case CALL_SUM:
        queue_sum(self, call);
        break;
    case CALL_JOIN:
        join_sums(self);
        break;
    default:
        if (self->lane == 1) {
            append(&self->late, call);
        } else {
            compute(self, call);
        }
    }
    return WEIR_OK;
}

static void emulated_close_group(struct gpu *gpu)
{
    struct emulated_gpu *self = of(gpu);
    for (int i = 0; self->group && i < GPU_RECORDS; i++) {
        free(self->records[i].calls);
        self->records[i] = (struct record){0};
    }
    emulated_group_close(self->group);
    self->group = NULL;
}

static weir_status emulated_wait(struct gpu *gpu)
{
    struct emulated_gpu *self = of(gpu);
    if (self->is_recording || emulated_has_failed) {
        return WEIR_ERR_INTERNAL;
    }
    run_late(self, self->late.n);
    join_sums(self);
    if (self->group && gpu->group_failure.status != WEIR_OK) {
        emulated_close_group(gpu);
        return gpu->group_failure.status;
    }
    run_ahead(self);
    return end_loan(self);
}

static weir_status emulated_open_group(struct gpu *gpu, const struct gpu_group *group,
                                       struct weir_error *err)
{
    emulated_close_group(gpu);
    gpu->group_failure = (struct weir_error){.status = WEIR_OK};
    return emulated_group_open(group, &of(gpu)->group, err);
}

static weir_status emulated_all_reduce(struct gpu *gpu, float *at, size_t n_elems)
{
    struct call call = {.kind = CALL_SUM, .at = at, .n_elems = n_elems};
    if (!of(gpu)->group) {
        return gpu->group_failure.status != WEIR_OK ? gpu->group_failure.status : WEIR_ERR_INVALID;
    }
    return queue(of(gpu), &call);
}

static weir_status emulated_join_group(struct gpu *gpu)
{
    struct call call = {.kind = CALL_JOIN};
    return queue(of(gpu), &call);
}

static void emulated_set_lane(struct gpu *gpu, int lane)
{
    struct call call = {.kind = CALL_LANE, .number = lane};
    weir_status status = queue(of(gpu), &call);
    (void)status;
}

static weir_status emulated_mark(struct gpu *gpu, int i_mark)
{
    struct call call = {.kind = CALL_MARK, .number = i_mark};
    return queue(of(gpu), &call);
}

static weir_status emulated_wait_mark(struct gpu *gpu, int i_mark)
{
    struct call call = {.kind = CALL_WAIT, .number = i_mark};
    return queue(of(gpu), &call);
}

static weir_status emulated_launch(struct gpu *gpu, enum gpu_kernel kernel, enum gpu_type type,
                                   uint32_t grid_x, uint32_t grid_y, const void *args,
                                   size_t args_bytes)
{
    struct call call = {.kind = CALL_KERNEL,
                        .kernel = kernel,
                        .type = type,
                        .grid_x = grid_x,
                        .grid_y = grid_y,
                        .args_bytes = args_bytes};
    if (args_bytes > ARGS_MAX || grid_x == 0 || grid_y == 0) {
        return WEIR_ERR_INTERNAL;
    }
    memcpy(call.args, args, args_bytes);
    return queue(of(gpu), &call);
}

static weir_status emulated_run_conv(struct gpu *gpu, const struct gpu_plan *plan,
                                     const struct gpu_conv_tensors *tensors)
{
    struct call call = {.kind = CALL_CONV, .plan = plan, .tensors = *tensors};
    return queue(of(gpu), &call);
}

static weir_status emulated_begin_record(struct gpu *gpu)
{
    of(gpu)->is_recording = true;
    of(gpu)->open = (struct record){0};
    return WEIR_OK;
}

static weir_status emulated_end_record(struct gpu *gpu, int slot)
{
    struct emulated_gpu *self = of(gpu);
    free(self->records[slot].calls);
    self->records[slot] = self->open;
    self->records[slot].is_made = true;
    self->is_recording = false;
    return WEIR_OK;
}

static weir_status emulated_replay(struct gpu *gpu, int slot)
{
    struct emulated_gpu *self = of(gpu);
    if (!self->records[slot].is_made) {
        return WEIR_ERR_NOT_FOUND;
    }
    for (size_t i = 0; i < self->records[slot].n; i++) {
        WEIR_TRY(queue(self, &self->records[slot].calls[i]));
    }
    return forget_lanes(self);
}

/* ---- the GPU ---------------------------------------------------------------------------------- */

static weir_status open_as(const struct gpu_ops *ops, size_t memory_limit, struct gpu **out,
                           struct weir_error *err)
{
    struct emulated_gpu *self = calloc(1, sizeof *self);
    void *arena =
        mmap(NULL, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!self || arena == MAP_FAILED) {
        free(self);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for an emulated GPU");
    }
    self->gpu.ops = ops;
    self->arena = arena;
    self->limit_bytes = memory_limit;
    *out = &self->gpu;
    return WEIR_OK;
}

static weir_status emulated_open(int32_t index, size_t memory_limit, struct gpu **out,
                                 struct weir_error *err)
{
    (void)index;
    return open_as(&gpu_emulated_ops, memory_limit, out, err);
}

static weir_status bare_open(int32_t index, size_t memory_limit, struct gpu **out,
                             struct weir_error *err)
{
    (void)index;
    WEIR_TRY(open_as(&gpu_emulated_bare_ops, memory_limit, out, err));
    of(*out)->is_eager = true;
    return WEIR_OK;
}

static void emulated_close(struct gpu *gpu)
{
    struct emulated_gpu *self = of(gpu);
    for (int i = 0; i < GPU_RECORDS; i++) {
        free(self->records[i].calls);
    }
    emulated_group_close(self->group);
    free(self->late.calls);
    free(self->sums.calls);
    munmap(self->arena, ARENA_BYTES);
    free(self);
}

static void emulated_enter(struct gpu *gpu)
{
    (void)gpu;
}

static size_t emulated_memory_bytes(const struct gpu *gpu)
{
    return ((const struct emulated_gpu *)(const void *)gpu)->given_bytes;
}

static void emulated_describe(struct gpu *gpu, char *out, size_t size)
{
    (void)gpu;
    snprintf(out, size, "emulated");
}

#define EMULATED(open_fn, plan_fn)                                                                 \
    {                                                                                              \
        .name = "emulated", .open = (open_fn), .close = emulated_close, .enter = emulated_enter,   \
        .alloc = emulated_alloc, .free = emulated_free, .alloc_pinned = emulated_alloc_pinned,     \
        .free_pinned = emulated_free_pinned, .upload = copy, .download = copy,                     \
        .upload_ahead = emulated_upload_ahead, .take_ahead = emulated_take_ahead,                  \
        .wait = emulated_wait, .wait_uploads = emulated_wait, .set_lane = emulated_set_lane,       \
        .mark = emulated_mark, .wait_mark = emulated_wait_mark, .launch = emulated_launch,         \
        .plan_conv = (plan_fn), .run_conv = emulated_run_conv,                                     \
        .begin_record = emulated_begin_record, .end_record = emulated_end_record,                  \
        .replay = emulated_replay, .probe = emulated_probe,                                        \
        .make_group_id = emulated_make_group_id, .open_group = emulated_open_group,                \
        .close_group = emulated_close_group, .all_reduce = emulated_all_reduce,                    \
        .join_group = emulated_join_group, .memory_bytes = emulated_memory_bytes,                  \
        .describe = emulated_describe,                                                             \
    }

const struct gpu_ops gpu_emulated_ops = EMULATED(emulated_open, emulated_plan_conv);
const struct gpu_ops gpu_emulated_bare_ops = EMULATED(bare_open, bare_plan_conv);
