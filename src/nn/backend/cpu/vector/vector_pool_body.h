/* The pools of vector_body.h, of one image: forward and backward give every element once, from the
 * windows it has or is in, so that sums stay in registers. */

/* [first, end): the pixels of a window, or the windows that hold a pixel. */
struct pool_range {
    int32_t first, end;
};

/* Pixels that window `o` covers, of `limit`. */
static inline struct pool_range pixels_of(int32_t o, const struct weir_pool_params *p,
                                          int32_t limit)
{
    int32_t first = o * p->stride - p->pad;
    return (struct pool_range){WEIR_MAX(first, 0), WEIR_MIN(first + p->kernel, limit)};
}

/* Windows, of `limit`, that cover pixel `i`. */
static inline struct pool_range windows_of(int32_t i, const struct weir_pool_params *p,
                                           int32_t limit)
{
    int32_t last = (i + p->pad) / p->stride, before = i + p->pad - p->kernel;
    return (struct pool_range){before < 0 ? 0 : before / p->stride + 1, WEIR_MIN(last + 1, limit)};
}

/* Few channels: one channel of a window after the other, because vectors would be mostly empty. */
static void max_pool_few(const elem *x, size_t c, int32_t width, struct pool_range rows,
                         struct pool_range columns, elem *y, int32_t *argmax)
{
    for (size_t k = 0; k < c; k++) {
        int32_t best_at = rows.first * width + columns.first;
        float best = get(x[(size_t)best_at * c + k]);
        for (int32_t h = rows.first; h < rows.end; h++) {
            for (int32_t w = columns.first; w < columns.end; w++) {
                int32_t at = h * width + w;
                float v = get(x[(size_t)at * c + k]);
                bool wins = (v > best) | (v != v);
                best = wins ? v : best;
                best_at = wins ? at : best_at;
            }
        }
        y[k] = put(best);
        if (argmax) {
            argmax[k] = best_at;
        }
    }
}

/* LANES channels; `x` is at the first of them. */
static inline __attribute__((always_inline)) void
max_pool_lanes(const elem *x, size_t c, int32_t width, struct pool_range rows,
               struct pool_range columns, elem *y, int32_t *argmax, size_t n)
{
    int32_t first = rows.first * width + columns.first;
    vec best = load(x + (size_t)first * c, n);
    veci best_at = first - (veci){0};
    for (int32_t h = rows.first; h < rows.end; h++) {
        const elem *row = x + (size_t)(h * width) * c;
        for (int32_t w = columns.first; w < columns.end; w++) {
            vec v = load(row + (size_t)w * c, n);
            /* larger, or not a number: NaN must come through */
            veci wins = (v > best) | (v != v);
            best = choose(wins, v, best);
            if (argmax) {
                best_at = ((h * width + w) & wins) | (best_at & ~wins);
            }
        }
    }
    store(y, best, n);
    if (argmax) {
        memcpy(argmax, &best_at, WEIR_MIN(n, (size_t)LANES) * sizeof(*argmax));
    }
}

/* The channels of one window, whole vectors first, so that they are loaded and stored as such. */
static inline __attribute__((always_inline)) void
max_pool_window(const elem *x, size_t c, int32_t width, struct pool_range rows,
                struct pool_range columns, elem *y, int32_t *argmax)
{
    size_t k = 0;
    for (; k + LANES <= c; k += LANES) {
        max_pool_lanes(x + k, c, width, rows, columns, y + k, argmax ? argmax + k : NULL, LANES);
    }
    if (k < c) {
        max_pool_lanes(x + k, c, width, rows, columns, y + k, argmax ? argmax + k : NULL, c - k);
    }
}

static void max_pool(const struct op *op, const void *x_, void *y_, int32_t *argmax)
{
    const elem *x = x_;
    elem *y = y_;
    size_t c = (size_t)op->in[0].c;
    for (int32_t oh = 0; oh < op->out.h; oh++) {
        struct pool_range rows = pixels_of(oh, &op->pool, op->in[0].h);
        for (int32_t ow = 0; ow < op->out.w; ow++) {
            struct pool_range columns = pixels_of(ow, &op->pool, op->in[0].w);
            if (c < LANES) {
                max_pool_few(x, c, op->in[0].w, rows, columns, y, argmax);
            } else if (argmax) {
                max_pool_window(x, c, op->in[0].w, rows, columns, y, argmax);
            } else {
                max_pool_window(x, c, op->in[0].w, rows, columns, y, NULL);
            }
            y += c;
            argmax += argmax ? c : 0;
        }
    }
}

/* The gradient of LANES channels of pixel `at`: from the windows whose maximum it is. */
static inline vec won_gradient(const elem *dy, const int32_t *argmax, size_t c, int32_t out_w,
                               int32_t at, struct pool_range rows, struct pool_range columns,
                               size_t n)
{
    vec sum = {0};
    for (int32_t oh = rows.first; oh < rows.end; oh++) {
        for (int32_t ow = columns.first; ow < columns.end; ow++) {
            size_t from = (size_t)(oh * out_w + ow) * c;
            veci at_max = {0};
            if (n >= LANES) {
                memcpy(&at_max, argmax + from, sizeof(at_max));
            } else {
                memcpy(&at_max, argmax + from, n * sizeof(*argmax));
            }
            sum += keep(at_max == at, load(dy + from, n));
        }
    }
    return sum;
}

static void max_pool_backward(const struct op *op, const void *dy_, const int32_t *argmax,
                              void *dx_, bool adds)
{
    const elem *dy = dy_;
    elem *dx = dx_;
    size_t c = (size_t)op->in[0].c;
    for (int32_t h = 0; h < op->in[0].h; h++) {
        struct pool_range rows = windows_of(h, &op->pool, op->out.h);
        for (int32_t w = 0; w < op->in[0].w; w++, dx += c) {
            struct pool_range columns = windows_of(w, &op->pool, op->out.w);
            for (size_t k = 0; k < c; k += LANES) {
                give(dx + k,
                     won_gradient(dy + k, argmax + k, c, op->out.w, h * op->in[0].w + w, rows,
                                  columns, c - k),
                     adds, c - k);
            }
        }
    }
}

static void avg_pool(const struct op *op, const void *x_, void *y_)
{
    const elem *x = x_;
    elem *y = y_;
    size_t c = (size_t)op->in[0].c;
    for (int32_t oh = 0; oh < op->out.h; oh++) {
        struct pool_range rows = pixels_of(oh, &op->pool, op->in[0].h);
        for (int32_t ow = 0; ow < op->out.w; ow++, y += c) {
            struct pool_range columns = pixels_of(ow, &op->pool, op->in[0].w);
            float share = (float)(1 / op_pool_divisor(op, oh, ow));
            for (size_t k = 0; k < c; k += LANES) {
                vec sum = {0};
                for (int32_t h = rows.first; h < rows.end; h++) {
                    for (int32_t w = columns.first; w < columns.end; w++) {
                        sum += load(x + (size_t)(h * op->in[0].w + w) * c + k, c - k);
                    }
                }
                store(y + k, share * sum, c - k);
            }
        }
    }
}

/* Every pixel has an equal share of every window that covers it. */
static void avg_pool_backward(const struct op *op, const void *dy_, void *dx_, bool adds)
{
    const elem *dy = dy_;
    elem *dx = dx_;
    size_t c = (size_t)op->in[0].c;
    for (int32_t h = 0; h < op->in[0].h; h++) {
        struct pool_range rows = windows_of(h, &op->pool, op->out.h);
        for (int32_t w = 0; w < op->in[0].w; w++, dx += c) {
            struct pool_range columns = windows_of(w, &op->pool, op->out.w);
            for (size_t k = 0; k < c; k += LANES) {
                vec sum = {0};
                for (int32_t oh = rows.first; oh < rows.end; oh++) {
                    for (int32_t ow = columns.first; ow < columns.end; ow++) {
                        float share = (float)(1 / op_pool_divisor(op, oh, ow));
                        sum += share * load(dy + (size_t)(oh * op->out.w + ow) * c + k, c - k);
                    }
                }
                give(dx + k, sum, adds, c - k);
            }
        }
    }
}

static void global_pool(const void *x_, size_t hw, size_t c, void *y_)
{
    const elem *x = x_;
    elem *y = y_;
    for (size_t k = 0; k < c; k += LANES) {
        size_t n = WEIR_MIN(c - k, (size_t)LANES);
        double sums[LANES] = {0};
        for (size_t first = 0; first < hw; first += VECTOR_CHUNK) {
            vec sum = {0};
            for (size_t p = first; p < WEIR_MIN(first + VECTOR_CHUNK, hw); p++) {
                sum += load(x + p * c + k, n);
            }
            flush(sums, sum, LANES);
        }
        for (size_t i = 0; i < n; i++) {
            y[k + i] = put((float)(sums[i] / (double)hw));
        }
    }
}

static void global_pool_backward(const void *dy_, size_t hw, size_t c, void *dx_, bool adds)
{
    const elem *dy = dy_;
    elem *dx = dx_;
    float share = 1 / (float)hw;
    for (size_t p = 0; p < hw; p++) {
        for (size_t k = 0; k < c; k += LANES) {
            give(dx + p * c + k, share * load(dy + k, c - k), adds, c - k);
        }
    }
}
