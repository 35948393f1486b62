#include "comm/core/sum.h"

enum { SLICE_UNIT = 16 };

struct comm_slice comm_slice(size_t n_elems, int n_parts, int i_part)
{
    size_t n_units = n_elems / SLICE_UNIT + (n_elems % SLICE_UNIT != 0);
    size_t parts = (size_t)n_parts, part = (size_t)i_part;
    /* units * part / parts without overflow: quotient and remainder apart. */
    size_t per_part = n_units / parts, rest = n_units % parts;
    size_t first = (per_part * part + rest * part / parts) * SLICE_UNIT;
    size_t end = (per_part * (part + 1) + rest * (part + 1) / parts) * SLICE_UNIT;
    first = WEIR_MIN(first, n_elems);
    end = WEIR_MIN(end, n_elems);
    return (struct comm_slice){.first = first, .n = end - first};
}

size_t weir_comm_type_size(enum weir_comm_type type)
{
    return type == WEIR_COMM_F32 ? sizeof(float) : sizeof(double);
}

/* 64 bytes of floats at any address; the compiler lowers it to what the target has. */
typedef float vec __attribute__((vector_size(64), aligned(4), may_alias));

enum { VEC_ELEMS = 16, UNROLL = 4, BLOCK = VEC_ELEMS * UNROLL };

struct f32_job {
    float *const *targets;
    const float *const *sources;
    int n_targets, n_sources;
    size_t n_elems;
};

/* All loads of a block come before its stores, so a target may be a source. */
static inline __attribute__((always_inline)) void sum_f32_body(const struct f32_job *job)
{
    size_t i = 0;
    for (; i + BLOCK <= job->n_elems; i += BLOCK) {
        const vec *source = (const vec *)(job->sources[0] + i);
        vec a = source[0], b = source[1], c = source[2], d = source[3];
        for (int k = 1; k < job->n_sources; k++) {
            source = (const vec *)(job->sources[k] + i);
            a += source[0];
            b += source[1];
            c += source[2];
            d += source[3];
        }
        for (int k = 0; k < job->n_targets; k++) {
            vec *target = (vec *)(job->targets[k] + i);
            target[0] = a;
            target[1] = b;
            target[2] = c;
            target[3] = d;
        }
    }
    for (; i < job->n_elems; i++) {
        float sum = job->sources[0][i];
        for (int k = 1; k < job->n_sources; k++) {
            sum += job->sources[k][i];
        }
        for (int k = 0; k < job->n_targets; k++) {
            job->targets[k][i] = sum;
        }
    }
}

static void sum_f32_any(const struct f32_job *job)
{
    sum_f32_body(job);
}

#if defined(__x86_64__)
static __attribute__((target("avx512f"))) void sum_f32_avx512(const struct f32_job *job)
{
    sum_f32_body(job);
}

static __attribute__((target("avx2"))) void sum_f32_avx2(const struct f32_job *job)
{
    sum_f32_body(job);
}

static void sum_f32(const struct f32_job *job)
{
    if (__builtin_cpu_supports("avx512f")) {
        sum_f32_avx512(job);
    } else if (__builtin_cpu_supports("avx2")) {
        sum_f32_avx2(job);
    } else {
        sum_f32_any(job);
    }
}
#else
static void sum_f32(const struct f32_job *job)
{
    sum_f32_any(job);
}
#endif

static void sum_f64(double *const *targets, int n_targets, const double *const *sources,
                    int n_sources, size_t n_elems)
{
    for (size_t i = 0; i < n_elems; i++) {
        double sum = sources[0][i];
        for (int k = 1; k < n_sources; k++) {
            sum += sources[k][i];
        }
        for (int k = 0; k < n_targets; k++) {
            targets[k][i] = sum;
        }
    }
}

/* Unsigned arithmetic: wraps around without undefined behaviour. */
static void sum_u64(uint64_t *const *targets, int n_targets, const uint64_t *const *sources,
                    int n_sources, size_t n_elems)
{
    for (size_t i = 0; i < n_elems; i++) {
        uint64_t sum = sources[0][i];
        for (int k = 1; k < n_sources; k++) {
            sum += sources[k][i];
        }
        for (int k = 0; k < n_targets; k++) {
            targets[k][i] = sum;
        }
    }
}

void comm_sum(enum weir_comm_type type, void *const *targets, int n_targets,
              const void *const *sources, int n_sources, size_t n_elems)
{
    switch (type) {
    case WEIR_COMM_F32:
        sum_f32(&(struct f32_job){.targets = (float *const *)targets,
                                  .sources = (const float *const *)sources,
                                  .n_targets = n_targets,
                                  .n_sources = n_sources,
                                  .n_elems = n_elems});
        break;
    case WEIR_COMM_F64:
        sum_f64((double *const *)targets, n_targets, (const double *const *)sources, n_sources,
                n_elems);
        break;
    case WEIR_COMM_I64:
        sum_u64((uint64_t *const *)targets, n_targets, (const uint64_t *const *)sources, n_sources,
                n_elems);
        break;
    }
}
