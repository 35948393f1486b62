/* What a layout says of itself is where oneDNN puts the elements: random tensors are reordered into named layouts, and each
 * element is looked for at the place that strides and blocks tell. */
#include "dnn.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 60, SIDE_MAX = 21 };

struct named {
    int ndims;
    dnnl_format_tag_t tag;
};

static const struct named names[] = {
    {1, dnnl_x},       {2, dnnl_nc},        {2, dnnl_oi},         {2, dnnl_io},
    {3, dnnl_nCw8c},   {4, dnnl_nhwc},      {4, dnnl_oihw},       {4, dnnl_nChw8c},
    {4, dnnl_nChw16c}, {4, dnnl_OIhw8i8o},  {4, dnnl_OIhw16i16o}, {4, dnnl_OIhw16o16i},
    {5, dnnl_goihw},   {5, dnnl_gOIhw8i8o}, {5, dnnl_nCdhw8c},    {4, dnnl_Oihw16o}};

/* Where an element lies, in elements. */
static size_t place_of(const struct weir_dnn_layout *layout, const int64_t *index)
{
    int64_t outer[DNNL_MAX_NDIMS], at = 0, size = 1;
    memcpy(outer, index, (size_t)layout->ndims * sizeof *outer);
    for (int b = layout->n_blocks - 1; b >= 0; b--) { /* from the innermost */
        int64_t dim = layout->block_indexes[b];
        at += outer[dim] % layout->block_sizes[b] * size;
        outer[dim] /= layout->block_sizes[b];
        size *= layout->block_sizes[b];
    }
    for (int i = 0; i < layout->ndims; i++) {
        at += outer[i] * layout->strides[i];
    }
    return (size_t)at;
}

static struct weir_dnn_layout plain_of(int ndims, const int64_t *dims)
{
    struct weir_dnn_layout layout;
    int64_t strides[DNNL_MAX_NDIMS], stride = 1;
    for (int i = ndims - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
    ck_assert_int_eq(weir_dnn_layout_strided(&layout, ndims, dims, dnnl_f32, strides),
                     dnnl_success);
    return layout;
}

static void reorder(const struct weir_dnn_layout *from, float *values,
                    const struct weir_dnn_layout *to, float *out)
{
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    const struct weir_dnn_op op = {.kind = WEIR_DNN_REORDER, .src = from, .dst = to};
    ck_assert_int_eq(dnnl_engine_create(&engine, dnnl_cpu, 0), dnnl_success);
    ck_assert_int_eq(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), dnnl_success);
    ck_assert_int_eq(weir_dnn_describe(&op, engine, NULL, NULL, &desc), dnnl_success);
    ck_assert_int_eq(weir_dnn_memory(&args[0].memory, from, engine, values), dnnl_success);
    ck_assert_int_eq(weir_dnn_memory(&args[1].memory, to, engine, out), dnnl_success);
    ck_assert_int_eq(dnnl_primitive_create(&primitive, desc), dnnl_success);
    ck_assert_int_eq(dnnl_primitive_execute(primitive, stream, 2, args), dnnl_success);
    dnnl_primitive_destroy(primitive);
    dnnl_memory_destroy(args[0].memory);
    dnnl_memory_destroy(args[1].memory);
    dnnl_primitive_desc_destroy(desc);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
}

START_TEST(elements_lie_where_the_layout_says)
{
    struct weir_rng random;
    (void)test_seed(&random);
    for (int round = 0; round < ROUNDS; round++) {
        const struct named *name = &names[weir_rng_below(&random, sizeof names / sizeof names[0])];
        int64_t dims[DNNL_MAX_NDIMS] = {0}, index[DNNL_MAX_NDIMS] = {0};
        size_t n = 1;
        for (int i = 0; i < name->ndims; i++) {
            dims[i] = 1 + (int64_t)weir_rng_below(&random, i < 3 ? SIDE_MAX : 4);
            n *= (size_t)dims[i];
        }
        struct weir_dnn_layout layout, plain = plain_of(name->ndims, dims);
        ck_assert_int_eq(weir_dnn_layout_named(&layout, name->ndims, dims, dnnl_f32, name->tag),
                         dnnl_success);
        ck_assert(layout.is_blocked && !layout.has_extra && plain.n_blocks == 0);
        ck_assert_uint_ge(layout.n_bytes, n * sizeof(float));
        float *values = malloc(n * sizeof *values), *out = calloc(1, layout.n_bytes);
        for (size_t i = 0; i < n; i++) {
            values[i] = (float)(i + 1);
        }
        reorder(&plain, values, &layout, out);
        for (size_t i = 0; i < n; i++) {
            size_t rest = i;
            for (int d = name->ndims - 1; d >= 0; d--) {
                index[d] = (int64_t)(rest % (size_t)dims[d]);
                rest /= (size_t)dims[d];
            }
            size_t at = place_of(&layout, index);
            ck_assert_uint_lt(at, layout.n_bytes / sizeof *out);
            ck_assert_float_eq(out[at], values[i]);
        }
        free(values);
        free(out);
    }
}

END_TEST

START_TEST(layouts_are_equal_by_what_they_say)
{
    const int64_t dims[] = {2, 16, 3, 5};
    struct weir_dnn_layout a, b, bytes;
    ck_assert_int_eq(weir_dnn_layout_named(&a, 4, dims, dnnl_f32, dnnl_nhwc), dnnl_success);
    ck_assert_int_eq(weir_dnn_layout_named(&b, 4, dims, dnnl_f32, dnnl_nChw8c), dnnl_success);
    ck_assert(weir_dnn_layout_equal(&a, &a));
    ck_assert(!weir_dnn_layout_equal(&a, &b));
    ck_assert_int_eq(weir_dnn_layout_retyped(&bytes, &a, dnnl_u8), dnnl_success);
    ck_assert_uint_eq(bytes.n_bytes * sizeof(float), a.n_bytes);
    ck_assert_mem_eq(bytes.strides, a.strides, 4 * sizeof *a.strides);
    ck_assert_int_eq(weir_dnn_layout_retyped(&bytes, &b, dnnl_u8), dnnl_unimplemented);
    const int turn[] = {0, 3, 1, 2};
    ck_assert_int_eq(weir_dnn_layout_permuted(&b, &a, turn), dnnl_success);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(b.dims[turn[i]], a.dims[i]);
        ck_assert_int_eq(b.strides[turn[i]], a.strides[i]);
    }
    ck_assert_int_eq(weir_dnn_layout_named(&b, 4, dims, dnnl_f32, dnnl_format_tag_any),
                     dnnl_success);
    ck_assert(!b.is_blocked);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("dnn");
    TCase *tcase = tcase_create("dnn");
    tcase_add_test(tcase, elements_lie_where_the_layout_says);
    tcase_add_test(tcase, layouts_are_equal_by_what_they_say);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
