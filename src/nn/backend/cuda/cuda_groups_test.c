/*
 * Convolutions in groups, depthwise ones among them, of random shapes: with a batch norm, a ReLU and a
 * residual behind them, whose gradient is added to another. In f32 against the reference, and in halves
 * against the reference's rounding.
 */
#include "cuda_fixture.h"

struct form {
    int32_t c;
    struct weir_conv_params conv;
    bool has_norm, has_relu, has_residual;
};

static int32_t draw(struct weir_rng *rng, int32_t low, int32_t high)
{
    return low + (int32_t)weir_rng_below(rng, (uint32_t)(high - low + 1));
}

/* A third are depthwise, in whole vectors or not; of the others some have vectors of channels. */
static struct form form_of(uint64_t seed)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 91);
    bool is_depthwise = seed % 3 != 0, is_vector = weir_rng_below(&rng, 4) != 0;
    int32_t groups = is_depthwise ? draw(&rng, 1, 7) * (is_vector ? 8 : 3) : draw(&rng, 2, 4);
    int32_t of_group = is_vector ? 8 : draw(&rng, 1, 5);
    struct form form = {.c = is_depthwise ? groups : groups * of_group};
    int32_t kernel_h = draw(&rng, 1, 5), kernel_w = draw(&rng, 1, 4), dilation = draw(&rng, 1, 2);
    form.conv = (struct weir_conv_params){.k = is_depthwise                   ? groups
                                               : weir_rng_below(&rng, 2) == 0 ? form.c
                                                                              : groups * 8,
                                          .kernel_h = kernel_h,
                                          .kernel_w = kernel_w,
                                          .stride = draw(&rng, 1, 3),
                                          .pad_h = draw(&rng, 0, WEIR_MIN(kernel_h - 1, 2)),
                                          .pad_w = draw(&rng, 0, WEIR_MIN(kernel_w - 1, 2)),
                                          .groups = groups,
                                          .dilation = dilation};
    if (weir_rng_below(&rng, 2) == 0) { /* the picture's size stays */
        form.conv.kernel_h = form.conv.kernel_w = 3;
        form.conv.stride = 1;
        form.conv.pad_h = form.conv.pad_w = dilation;
        form.has_residual = form.conv.k == form.c;
    }
    form.has_norm = weir_rng_below(&rng, 2) == 0;
    form.conv.has_bias = !form.has_norm; /* a norm would leave it no gradient but rounding */
    form.has_relu = weir_rng_below(&rng, 2) == 0;
    return form;
}

static struct weir_graph *graph_of(const struct form *form)
{
    struct weir_graph *graph = weir_graph_create();
    struct weir_conv_params first = {
        .k = form->c, .kernel_h = 3, .kernel_w = 3, .stride = 1, .pad_h = 1, .pad_w = 1};
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 13, 11});
    x = weir_graph_conv(graph, "first", x, &first);
    weir_value_t y = weir_graph_conv(graph, "groups", x, &form->conv);
    y = form->has_norm ? weir_graph_batch_norm(graph, "norm", y) : y;
    y = form->has_residual ? weir_graph_add(graph, "add", y, x) : y;
    y = form->has_relu ? weir_graph_relu(graph, "relu", y) : y;
    y = weir_graph_linear(graph, "fc", y, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", y);
    return graph;
}

static void describe(const struct form *f, uint64_t seed, char out[128])
{
    snprintf(out, 128, "seed %d: c %d, k %d, groups %d, kernel %dx%d, stride %d, dilation %d",
             (int)seed, f->c, f->conv.k, f->conv.groups, f->conv.kernel_h, f->conv.kernel_w,
             f->conv.stride, f->conv.dilation);
}

START_TEST(groups_of_random_shapes)
{
    for (uint64_t seed = 0; seed < WEIR_TEST_TIMES(36, 9); seed++) {
        const struct form form = form_of(seed);
        struct weir_graph *graph = graph_of(&form);
        char what[128];
        describe(&form, seed, what);
        for (int i_gpu = 0; i_gpu < n_gpus(); i_gpu++) {
            if (!is_passed_over(i_gpu, seed)) {
                compare_on_gpu(graph, i_gpu, 5, 2e-5, seed % 2 == 0, what);
            }
        }
        weir_graph_destroy(graph);
    }
}

END_TEST

START_TEST(groups_of_random_shapes_in_halves)
{
    static const double tolerances[] = {2e-2, 5e-3};

    for (uint64_t seed = 100; seed < 100 + WEIR_TEST_TIMES(24, 6); seed++) {
        const struct form form = form_of(seed);
        struct weir_graph *graph = graph_of(&form);
        bool is_fp16 = seed / 2 % 2 == 0;
        char what[128];
        describe(&form, seed, what);
        for (int i_gpu = 0; i_gpu < n_gpus(); i_gpu++) {
            if (!is_passed_over(i_gpu, seed)) {
                compare_in_halves(graph, i_gpu, is_fp16 ? WEIR_PRECISION_F16 : WEIR_PRECISION_BF16,
                                  tolerances[is_fp16], what);
            }
        }
        weir_graph_destroy(graph);
    }
}

END_TEST

size_t cuda_groups_tests(const TTest **out)
{
    out[0] = groups_of_random_shapes;
    out[1] = groups_of_random_shapes_in_halves;
    return 2;
}
