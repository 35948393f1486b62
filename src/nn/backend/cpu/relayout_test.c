/*
 * Each element of a blocked copy where the layout's strides say, to the last bit; what pads a block
 * and what lies behind it untouched.
 */
#include "nn/backend/op.h"
#include "relayout.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

struct relayout_case {
    size_t k, c, kernel_h, kernel_w, k_block;
};

/* The last block may be partly padding, as oneDNN's of 48 of 512 channels. The last case is large
 * enough to bypass the caches. */
static const struct relayout_case forms[] = {
    {16, 16, 1, 1, 16},  {64, 32, 1, 1, 64}, {32, 48, 3, 3, 32}, {80, 16, 1, 1, 48},
    {112, 32, 3, 1, 48}, {96, 16, 2, 4, 64}, {32, 48, 5, 5, 32}, {128, 64, 3, 3, 48}};

/* Blocks of output channels, rows, taps, input channels: oneDNN's order. */
static struct relayout make_layout(const struct relayout_case *f, bool is_bf16)
{
    struct relayout r = {.k = f->k,
                         .c = f->c,
                         .kernel_h = f->kernel_h,
                         .kernel_w = f->kernel_w,
                         .k_block = f->k_block,
                         .is_bf16 = is_bf16};
    r.c_stride = f->k_block * (is_bf16 ? 2 : 1);
    r.c_block_stride = (is_bf16 ? 8 : 16) * r.c_stride;
    r.w_stride = f->c * f->k_block;
    r.h_stride = r.w_stride * f->kernel_w;
    r.k_stride = r.h_stride * f->kernel_h;
    return r;
}

/* Blocks of 16 x 16 channels, the taps of a pair of blocks one behind the other. */
static struct relayout make_squares(const struct relayout_case *f, bool is_c_inner)
{
    struct relayout r = {.k = f->k,
                         .c = f->c,
                         .kernel_h = f->kernel_h,
                         .kernel_w = f->kernel_w,
                         .k_block = 16,
                         .c_stride = 16,
                         .is_c_inner = is_c_inner};
    r.w_stride = 256;
    r.h_stride = r.w_stride * f->kernel_w;
    r.c_block_stride = r.h_stride * f->kernel_h;
    r.k_stride = r.c_block_stride * (f->c / 16);
    return r;
}

static size_t place(const struct relayout *r, size_t k, size_t c, size_t h, size_t w)
{
    if (r->c_stride == 16 && r->k_block == 16 && r->w_stride == 256) {
        size_t fast = r->is_c_inner ? c % 16 : k % 16, slow = r->is_c_inner ? k % 16 : c % 16;
        return k / 16 * r->k_stride + c / 16 * r->c_block_stride + h * r->h_stride +
               w * r->w_stride + slow * 16 + fast;
    }
    size_t n_beside = r->is_bf16 ? 2 : 1;
    return k / r->k_block * r->k_stride + c / n_beside * r->c_stride + h * r->h_stride +
           w * r->w_stride + k % r->k_block * n_beside + c % n_beside;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint32_t at(const struct relayout *r, const void *to, size_t i)
{
    return r->is_bf16 ? ((const uint16_t *)to)[i] : ((const uint32_t *)to)[i];
}

/* Eight layouts of each form: f32, bf16, squares of either order, and the first two transposed, and
 * mirrored too. */
enum { LAYOUTS = 8, FIRST_TRANSPOSED = 4, FIRST_MIRRORED = 6 };

static struct relayout layout_of(int i)
{
    const struct relayout_case *form = &forms[i / LAYOUTS];
    int which = i % LAYOUTS;
    struct relayout r = which == 2 || which == 3 ? make_squares(form, which == 3)
                                                 : make_layout(form, which % 2 == 1);
    r.is_transposed = which >= FIRST_TRANSPOSED;
    r.is_mirrored = which >= FIRST_MIRRORED;
    return r;
}

/* Where element i of the row-major kernels goes. */
static size_t place_of(const struct relayout *r, size_t i)
{
    size_t w = i % r->kernel_w, h = i / r->kernel_w % r->kernel_h;
    size_t rest = i / (r->kernel_w * r->kernel_h);
    if (r->is_mirrored) {
        h = r->kernel_h - 1 - h;
        w = r->kernel_w - 1 - w;
    }
    if (r->is_transposed) {
        return place(r, rest % r->k, rest / r->k, h, w);
    }
    return place(r, rest / r->c, rest % r->c, h, w);
}

START_TEST(elements_go_where_the_strides_say)
{
    struct relayout r = layout_of(_i);
    size_t n = r.k * r.c * r.kernel_h * r.kernel_w;
    size_t n_to = (r.k + r.k_block - 1) / r.k_block * r.k_stride, n_padding = n_to;
    size_t elem_bytes = r.is_bf16 ? 2 : 4;
    float *from = calloc(n, sizeof(float));
    char *to = aligned_alloc(64, (n_to * elem_bytes + 64 + 63) / 64 * 64);
    struct weir_rng rng;
    weir_rng_init(&rng, 5, (uint64_t)_i);
    for (size_t i = 0; i < n; i++) {
        from[i] = (float)weir_rng_normal(&rng);
    }
    from[n / 2] = NAN;
    from[n / 3] = INFINITY;
    memset(to, 0x5a, n_to * elem_bytes + 64);
    ck_assert(relayout_for(&r) == relayout_v4);
    relayout_v4(&r, from, to);
    for (size_t i = 0; i < n; i++) {
        size_t where = place_of(&r, i);
        uint32_t expected = r.is_bf16 ? bf16_from_f32(from[i]) : bits_of(from[i]);
        if (at(&r, to, where) != expected) { /* an assertion of each would take longer than all */
            ck_abort_msg("element %zu: %#x, expected %#x", i, at(&r, to, where), expected);
        }
        memset(to + where * elem_bytes, 0x5a, elem_bytes);
        n_padding--;
    }
    ck_assert_uint_eq(n_padding, n_to - n);
    for (size_t i = 0; i < n_to * elem_bytes + 64; i++) {
        if (to[i] != 0x5a) {
            ck_abort_msg("byte %zu, of no element, is %#x", i, (unsigned)to[i]);
        }
    }
    free(from);
    free(to);
}

END_TEST

START_TEST(what_comes_back_is_what_went_there)
{
    struct relayout r = layout_of(_i);
    size_t n = r.k * r.c * r.kernel_h * r.kernel_w;
    size_t n_to = (r.k + r.k_block - 1) / r.k_block * r.k_stride;
    float *from = calloc(n, sizeof(float)), *back = calloc(n, sizeof(float));
    float *to = aligned_alloc(64, (n_to * sizeof(float) + 63) / 64 * 64);
    for (size_t i = 0; i < n; i++) {
        from[i] = (float)i;
    }
    if (!r.is_bf16 && !r.is_c_inner && !r.is_transposed) {
        ck_assert(relayout_back_for(&r) == relayout_back_v4);
        relayout_v4(&r, from, to);
        relayout_back_v4(&r, to, back);
        ck_assert_mem_eq(from, back, n * sizeof(float));
    } else {
        ck_assert(relayout_back_for(&r) == NULL);
    }
    free(from);
    free(back);
    free(to);
}

END_TEST

START_TEST(other_layouts_are_left_to_onednn)
{
    struct relayout r = make_layout(&forms[0], true);
    ck_assert(relayout_for(&r) != NULL);
    r.k = 24;
    ck_assert(relayout_for(&r) == NULL);
    r.k = 16;
    r.c = 3;
    ck_assert(relayout_for(&r) == NULL);
    r.c = 16;
    r.kernel_h = r.kernel_w = 6;
    ck_assert(relayout_for(&r) == NULL);
    r.kernel_h = r.kernel_w = 1;
    r.k_block = 8;
    ck_assert(relayout_for(&r) == NULL);
    r = make_squares(&forms[0], true);
    r.is_transposed = true;
    ck_assert(relayout_for(&r) == NULL);
    r = make_layout(&forms[0], true);
    r.is_mirrored = true;
    ck_assert(relayout_for(&r) == NULL);
}

END_TEST

int main(void)
{
    const struct relayout any = make_layout(&forms[0], true);
    if (!relayout_for(&any)) {
        return 77; /* no AVX-512 */
    }
    Suite *suite = suite_create("relayout");
    TCase *tests = tcase_create("relayout");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, elements_go_where_the_strides_say, 0,
                        LAYOUTS * (int)WEIR_ARRAY_LEN(forms));
    tcase_add_loop_test(tests, what_comes_back_is_what_went_there, 0,
                        LAYOUTS * (int)WEIR_ARRAY_LEN(forms));
    tcase_add_test(tests, other_layouts_are_left_to_onednn);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
