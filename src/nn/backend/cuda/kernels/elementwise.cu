/* Layers that take each element by itself, and copies. */

KERNEL(input_forward, struct gpu_copy_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS;
        for (u64 row = (u64)BLOCK * BLOCK_THREADS + THREAD; row < a.n_rows; row += step) {
            u64 image = row / (u64)a.hw, pixel = row % (u64)a.hw;
            for (int c = 0; c < a.c_from; c++) {
                float value =
                    ((const float *)a.from)[(image * (u64)a.c_from + (u64)c) * (u64)a.hw + pixel];
                ((elem *)a.to)[row * (u64)a.c_to + (u64)c] = from_f32(value);
            }
        }
    }
}

INLINE void cast_to_f32_at(const struct gpu_flat_args *a, u64 i, int w)
{
    float x[VEC], *out = (float *)a->out + i;
    load(a->x, i, w, x);
    for (int j = 0; j < w; j++) {
        out[j] = a->adds ? out[j] + x[j] : x[j];
    }
}

FLAT_KERNEL(cast_to_f32, cast_to_f32_at)

INLINE void cast_from_f32_at(const struct gpu_flat_args *a, u64 i, int w)
{
    float x[VEC];
    for (int j = 0; j < w; j++) {
        x[j] = ((const float *)a->x)[i + (u64)j];
    }
    put(a->out, i, w, x, a->adds);
}

FLAT_KERNEL(cast_from_f32, cast_from_f32_at)

/* ReLU; with a limit > 0 also min(x, limit). "Not negative" so that NaN passes. */
INLINE void clip_forward_at(const struct gpu_flat_args *a, u64 i, int w)
{
    float x[VEC];
    load(a->x, i, w, x);
    UNROLL
    for (int j = 0; j < w; j++) {
        float floored = x[j] < 0 ? 0 : x[j];
        x[j] = a->limit > 0 && floored > a->limit ? a->limit : floored;
    }
    store(a->out, i, w, x);
}

FLAT_KERNEL(clip_forward, clip_forward_at)

INLINE void clip_backward_at(const struct gpu_flat_args *a, u64 i, int w)
{
    float y[VEC], dy[VEC];
    load(a->y, i, w, y);
    load(a->dy, i, w, dy);
    UNROLL
    for (int j = 0; j < w; j++) {
        dy[j] = y[j] > 0 && (a->limit <= 0 || y[j] < a->limit) ? dy[j] : 0;
    }
    put(a->out, i, w, dy, a->adds);
}

FLAT_KERNEL(clip_backward, clip_backward_at)

INLINE void scale_at(const struct gpu_flat_args *a, u64 i, int w)
{
    float x[VEC];
    load(a->x, i, w, x);
    UNROLL
    for (int j = 0; j < w; j++) {
        x[j] *= a->scale;
    }
    put(a->out, i, w, x, a->adds);
}

FLAT_KERNEL(scale, scale_at)

INLINE void add_forward_at(const struct gpu_flat_args *a, u64 i, int w)
{
    float x[VEC], y[VEC];
    load(a->x, i, w, x);
    load(a->y, i, w, y);
    UNROLL
    for (int j = 0; j < w; j++) {
        x[j] += y[j];
    }
    store(a->out, i, w, x);
}

FLAT_KERNEL(add_forward, add_forward_at)

/* Philox 4x32-10, as base/rng.c: word at % 4 of block at / 4. */
INLINE unsigned philox_word(u64 key, u64 counter_hi, u64 at)
{
    unsigned c0 = (unsigned)(at / 4), c1 = (unsigned)(at / 4 >> 32);
    unsigned c2 = (unsigned)counter_hi, c3 = (unsigned)(counter_hi >> 32);
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
    for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        unsigned n0 = (unsigned)(p1 >> 32) ^ c1 ^ k0, n2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
        c1 = (unsigned)p1;
        c3 = (unsigned)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    switch (at % 4) {
    case 0:
        return c0;
    case 1:
        return c1;
    case 2:
        return c2;
    default:
        return c3;
    }
}

/* The mask is a function of the element's place in C, H, W order. */
INLINE void dropout_at(const struct gpu_flat_args *a, u64 i, int w)
{
    float x[VEC];
    load(a->x, i, w, x);
    for (int j = 0; j < w; j++) {
        u64 image = (i + (u64)j) / a->image_elems, rest = (i + (u64)j) % a->image_elems;
        u64 in_image = rest % (u64)a->c * (u64)a->hw + rest / (u64)a->c;
        u64 at = (a->step->first_image + image) * a->image_elems + in_image;
        float uniform = (float)(philox_word(a->key, a->step->step, at) >> 8) * 0x1p-24f;
        x[j] = uniform < a->rate ? 0 : x[j] * a->scale;
    }
    put(a->out, i, w, x, a->adds);
}

FLAT_KERNEL(dropout, dropout_at)

/* n_c channels of each row, from channel at_from on, to channels from at_to on. */
INLINE void copy_channels_of(const struct gpu_copy_args *a, u64 i, int w)
{
    u64 n_vectors = (u64)(a->n_c / w), row = i / n_vectors;
    int c = (int)(i % n_vectors) * w;
    float x[VEC];
    load(a->from, row * (u64)a->c_from + (u64)(a->at_from + c), w, x);
    put(a->to, row * (u64)a->c_to + (u64)(a->at_to + c), w, x, a->adds);
}

#define COPY_KERNEL(name, w)                                                                       \
    KERNEL(name, struct gpu_copy_args)                                                             \
    {                                                                                              \
        EACH_THREAD                                                                                \
        {                                                                                          \
            u64 step = (u64)BLOCKS * BLOCK_THREADS;                                                \
            u64 n = a.n_rows * (u64)(a.n_c / w);                                                   \
            for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {                  \
                copy_channels_of(&a, i, w);                                                        \
            }                                                                                      \
        }                                                                                          \
    }

COPY_KERNEL(copy_channels, VEC)
COPY_KERNEL(copy_channels_1, 1)

/* Rows with more channels, a vector of which a thread writes: those behind c_from are 0. */
KERNEL(pad_channels, struct gpu_copy_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n_vectors = (u64)(a.c_to / VEC);
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < a.n_rows * n_vectors; i += step) {
            u64 row = i / n_vectors;
            int c = (int)(i % n_vectors) * VEC;
            float x[VEC];
            UNROLL
            for (int j = 0; j < VEC; j++) {
                x[j] = c + j < a.c_from
                           ? to_f32(((const elem *)a.from)[row * (u64)a.c_from + (u64)(c + j)])
                           : 0;
            }
            store(a.to, i * VEC, VEC, x);
        }
    }
}

/* Element i of the vector (C, H, W order) and its index in the image's memory (H, W, C). */
INLINE u64 unflattened(const struct gpu_copy_args *a, u64 i)
{
    u64 len = (u64)a->c_from * (u64)a->hw, image = i / len, rest = i % len;
    return image * len + rest % (u64)a->hw * (u64)a->c_from + rest / (u64)a->hw;
}

KERNEL(flatten_forward, struct gpu_copy_args)
{
    EACH_THREAD
    {
        u64 n = a.n_rows * (u64)a.c_from, step = (u64)BLOCKS * BLOCK_THREADS;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            ((elem *)a.to)[i] = ((const elem *)a.from)[unflattened(&a, i)];
        }
    }
}

KERNEL(flatten_backward, struct gpu_copy_args)
{
    EACH_THREAD
    {
        u64 n = a.n_rows * (u64)a.c_from, step = (u64)BLOCKS * BLOCK_THREADS;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            float value[VEC];
            load(a.from, i, 1, value);
            put(a.to, unflattened(&a, i), 1, value, a.adds);
        }
    }
}
