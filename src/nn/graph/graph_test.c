/*
 * Builders: shapes against PyTorch's documented formulas worked by hand, parameter counts against
 * torchvision's published ones, and for every way to build nonsense a sentence that names the
 * layer.
 */
#include "nn/nn.h"

#include "base/test_main.h"

#include <math.h>
#include <string.h>

static const struct weir_conv_params conv3 = {
    .k = 8, .kernel_h = 3, .kernel_w = 3, .stride = 1, .pad_h = 1, .pad_w = 1, .has_bias = true};

static struct weir_graph *graph_with_input(weir_value_t *out_x)
{
    struct weir_graph *graph = weir_graph_create();
    *out_x = weir_graph_input(graph, (struct weir_shape){3, 13, 11});
    return graph;
}

static void expect_failure(struct weir_graph *graph, weir_status status, const char *mentions)
{
    struct weir_error err = {0};
    ck_assert_int_eq(weir_graph_check(graph, &err), status);
    ck_assert_msg(strstr(err.message, mentions) != NULL, "\"%s\" does not mention \"%s\"",
                  err.message, mentions);
    weir_graph_destroy(graph);
}

START_TEST(shapes_follow_the_documented_formulas)
{
    weir_value_t x;
    struct weir_graph *graph = graph_with_input(&x);
    x = weir_graph_conv(
        graph, "conv", x,
        &(struct weir_conv_params){
            .k = 17, .kernel_h = 5, .kernel_w = 3, .stride = 2, .pad_h = 2, .pad_w = 0});
    struct weir_shape s = weir_graph_output_shape(graph);
    ck_assert_int_eq(s.c, 17); /* (13 + 4 - 5) / 2 + 1 = 7, (11 - 3) / 2 + 1 = 5 */
    ck_assert_int_eq(s.h, 7);
    ck_assert_int_eq(s.w, 5);
    weir_value_t a = weir_graph_max_pool(
        graph, "max", x, &(struct weir_pool_params){.kernel = 3, .stride = 2, .pad = 1});
    weir_value_t b = weir_graph_avg_pool(
        graph, "avg", x, &(struct weir_pool_params){.kernel = 3, .stride = 2, .pad = 1});
    weir_value_t both = weir_graph_concat(graph, "both", (weir_value_t[]){a, b}, 2);
    s = weir_graph_output_shape(graph);
    ck_assert_int_eq(s.c, 34);
    ck_assert_int_eq(s.h, 4);
    ck_assert_int_eq(s.w, 3);
    x = weir_graph_linear(graph, "fc", both, 10, true);
    weir_graph_softmax_loss(graph, "loss", x);
    ck_assert_int_eq(weir_graph_check(graph, NULL), WEIR_OK);
    ck_assert_int_eq(weir_graph_n_classes(graph), 10);
    ck_assert_int_eq(weir_graph_output_shape(graph).c, 10);
    ck_assert(!weir_graph_is_embedding(graph));
    /* 17*3*5*3 + 34*4*3*10 + 10; one multiply-add per weight and position */
    ck_assert_int_eq(weir_graph_n_parameters(graph), 765 + 4080 + 10);
    ck_assert_int_eq(weir_graph_n_macs(graph), 765 * 35 + 4080);
    /* The image needs no gradient. */
    ck_assert_int_eq(weir_graph_n_step_macs(graph), 2 * 765 * 35 + 3 * 4080);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(a_flattened_picture_is_a_vector_that_can_be_concatenated)
{
    weir_value_t x;
    struct weir_graph *graph = graph_with_input(&x);
    weir_value_t low = weir_graph_layer_norm(graph, "norm", x);
    low = weir_graph_flatten(graph, "flat", low);
    low = weir_graph_scale(graph, "scaled", low, 0.5f);
    struct weir_shape s = weir_graph_output_shape(graph);
    ck_assert_int_eq(s.c, 3 * 13 * 11);
    ck_assert(s.h == 1 && s.w == 1);
    x = weir_graph_linear(graph, "fc", x, 16, false);
    x = weir_graph_concat(graph, "both", (weir_value_t[]){x, low}, 2);
    weir_graph_margin_loss(graph, "margin", x, 40, 16, 0.3f);
    ck_assert_int_eq(weir_graph_check(graph, NULL), WEIR_OK);
    ck_assert_int_eq(weir_graph_output_shape(graph).c, 16 + 429);
    /* flattening, scaling and normalising an image by itself learn nothing */
    ck_assert_int_eq(weir_graph_n_parameters(graph), 429 * 16 + 40 * (16 + 429));
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(margin_loss_puts_out_the_normalised_embedding)
{
    weir_value_t x;
    struct weir_graph *graph = graph_with_input(&x);
    x = weir_graph_linear(graph, "fc", x, 16, false);
    weir_graph_margin_loss(graph, "margin", x, 40, 16, 0.3f);
    ck_assert_int_eq(weir_graph_check(graph, NULL), WEIR_OK);
    ck_assert(weir_graph_is_embedding(graph));
    ck_assert_int_eq(weir_graph_output_shape(graph).c, 16);
    ck_assert_int_eq(weir_graph_n_classes(graph), 40);
    ck_assert_int_eq(weir_graph_n_parameters(graph), 3 * 13 * 11 * 16 + 40 * 16);
    weir_graph_destroy(graph);
}

END_TEST

/* PyTorch's formula, its results noted by hand: the last window begins inside or in the padding. */
START_TEST(partial_windows_count_where_it_is_asked_for)
{
    static const struct {
        int32_t in, kernel, stride, pad, floor, ceil;
    } cases[] = {{112, 3, 2, 0, 55, 56}, {13, 3, 2, 0, 6, 6}, {14, 2, 2, 0, 7, 7},
                 {7, 2, 2, 0, 3, 4},     {6, 2, 2, 1, 4, 4},  {5, 1, 3, 0, 2, 2}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_graph *graph = weir_graph_create();
        weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, cases[i].in, cases[i].in});
        struct weir_pool_params p = {
            .kernel = cases[i].kernel, .stride = cases[i].stride, .pad = cases[i].pad};
        weir_graph_max_pool(graph, "floor", x, &p);
        ck_assert_int_eq(weir_graph_output_shape(graph).h, cases[i].floor);
        p.is_ceil = true;
        weir_graph_avg_pool(graph, "ceil", x, &p);
        ck_assert_int_eq(weir_graph_output_shape(graph).w, cases[i].ceil);
        weir_graph_destroy(graph);
    }
}

END_TEST

START_TEST(groups_and_gaps_show_in_shapes_and_counts)
{
    weir_value_t x;
    struct weir_graph *graph = graph_with_input(&x);
    struct weir_conv_params p = {
        .k = 6, .kernel_h = 3, .kernel_w = 3, .stride = 1, .groups = 3, .dilation = 4};
    x = weir_graph_conv(graph, "conv", x, &p);
    struct weir_shape s = weir_graph_output_shape(graph);
    ck_assert_int_eq(s.h, 5); /* 13 - 4 * 2 */
    ck_assert_int_eq(s.w, 3);
    ck_assert_int_eq(weir_graph_n_parameters(graph), 6 * 9);
    ck_assert_int_eq(weir_graph_n_macs(graph), 6 * 9 * 15);
    p.groups = 4;
    weir_graph_conv(graph, "conv2", x, &p);
    expect_failure(graph, WEIR_ERR_INVALID, "conv2: 4 groups");
}

END_TEST

START_TEST(wrong_layers_are_named)
{
    weir_value_t x, y;
    struct weir_graph *graph = graph_with_input(&x);
    struct weir_conv_params wrong = conv3;
    wrong.stride = 0;
    weir_graph_conv(graph, "conv7", x, &wrong);
    expect_failure(graph, WEIR_ERR_INVALID, "conv7");

    graph = graph_with_input(&x);
    wrong = conv3;
    wrong.pad_w = 3;
    weir_graph_conv(graph, "conv8", x, &wrong);
    expect_failure(graph, WEIR_ERR_INVALID, "conv8");

    graph = graph_with_input(&x);
    wrong = conv3;
    wrong.kernel_h = 17; /* larger than the padded image */
    weir_graph_conv(graph, "conv9", x, &wrong);
    expect_failure(graph, WEIR_ERR_INVALID, "conv9");

    graph = graph_with_input(&x);
    weir_graph_max_pool(graph, "pool1", x,
                        &(struct weir_pool_params){.kernel = 2, .stride = 2, .pad = 2});
    expect_failure(graph, WEIR_ERR_INVALID, "pool1");

    graph = graph_with_input(&x);
    y = weir_graph_conv(graph, "conv1", x, &conv3);
    weir_graph_add(graph, "sum", x, y);
    expect_failure(graph, WEIR_ERR_INVALID, "sum");

    graph = graph_with_input(&x);
    y = weir_graph_max_pool(graph, "half", x,
                            &(struct weir_pool_params){.kernel = 2, .stride = 2, .pad = 0});
    weir_graph_concat(graph, "join", (weir_value_t[]){x, y}, 2);
    expect_failure(graph, WEIR_ERR_INVALID, "join");

    graph = graph_with_input(&x);
    weir_graph_softmax_loss(graph, "loss", x);
    expect_failure(graph, WEIR_ERR_INVALID, "loss");

    graph = graph_with_input(&x);
    weir_graph_dropout(graph, "drop", x, 1);
    expect_failure(graph, WEIR_ERR_INVALID, "drop");

    graph = graph_with_input(&x);
    weir_graph_scale(graph, "boundless", x, INFINITY);
    expect_failure(graph, WEIR_ERR_INVALID, "boundless");

    graph = weir_graph_create();
    x = weir_graph_input(graph, (struct weir_shape){2, 1024, 1024});
    weir_graph_flatten(graph, "long", x);
    expect_failure(graph, WEIR_ERR_LIMIT, "long");

    graph = graph_with_input(&x);
    weir_graph_linear(graph, "huge", x, 1 << 20, false);
    expect_failure(graph, WEIR_ERR_INVALID, "huge");
}

END_TEST

START_TEST(wrong_names_values_and_orders_are_named)
{
    weir_value_t x, y;
    struct weir_graph *graph = graph_with_input(&x);
    weir_graph_relu(graph, "twin", x);
    weir_graph_relu(graph, "twin", x);
    expect_failure(graph, WEIR_ERR_EXISTS, "twin");

    graph = graph_with_input(&x);
    weir_graph_relu(graph, "relu5", 77);
    expect_failure(graph, WEIR_ERR_INVALID, "relu5");

    graph = graph_with_input(&x);
    weir_graph_relu(graph, "", x);
    expect_failure(graph, WEIR_ERR_INVALID, "name");

    graph = graph_with_input(&x);
    weir_graph_relu(graph, "dead", x);
    y = weir_graph_linear(graph, "fc", x, 4, true);
    weir_graph_softmax_loss(graph, "loss", y);
    expect_failure(graph, WEIR_ERR_INVALID, "dead");

    graph = graph_with_input(&x);
    y = weir_graph_linear(graph, "fc", x, 4, true);
    weir_graph_softmax_loss(graph, "loss", y);
    weir_graph_relu(graph, "late", y);
    expect_failure(graph, WEIR_ERR_INVALID, "late");

    graph = graph_with_input(&x);
    weir_graph_input(graph, (struct weir_shape){1, 1, 1});
    expect_failure(graph, WEIR_ERR_EXISTS, "input");

    graph = weir_graph_create();
    expect_failure(graph, WEIR_ERR_INVALID, "no input");

    graph = weir_graph_create();
    weir_graph_input(graph, (struct weir_shape){3, 0, 11});
    expect_failure(graph, WEIR_ERR_INVALID, "input");
}

END_TEST

START_TEST(the_first_failure_is_the_one_that_is_told)
{
    weir_value_t x;
    struct weir_graph *graph = graph_with_input(&x);
    weir_value_t y = weir_graph_dropout(graph, "first", x, -1);
    ck_assert_int_eq(y, -1);
    ck_assert_int_eq(weir_graph_relu(graph, "second", y), -1);
    expect_failure(graph, WEIR_ERR_INVALID, "first");
}

END_TEST

START_TEST(nets_refuse_what_they_cannot_run)
{
    weir_value_t x;
    struct weir_net *net = NULL;
    struct weir_error err = {0};
    struct weir_graph *graph = graph_with_input(&x);
    weir_graph_conv(graph, "conv1", x, &conv3);
    struct weir_net_config config = {.batch = 4, .n_threads = 1};
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, "conv1") != NULL, "%s", err.message);
    weir_graph_destroy(graph);

    graph = graph_with_input(&x);
    weir_graph_linear(graph, "fc", x, 4, true);
    config.is_training = true;
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, "loss") != NULL, "%s", err.message);
    config = (struct weir_net_config){.batch = 0};
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_INVALID);
    config = (struct weir_net_config){.batch = 4, .n_slices = 5};
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_null(net);
    weir_graph_destroy(graph);
    ck_assert_ptr_null(weir_backend_find("rocm"));
    ck_assert_ptr_eq(weir_backend_find("onednn"), &weir_onednn_backend);
}

END_TEST

WEIR_TEST_MAIN("graph", shapes_follow_the_documented_formulas,
               a_flattened_picture_is_a_vector_that_can_be_concatenated,
               margin_loss_puts_out_the_normalised_embedding,
               partial_windows_count_where_it_is_asked_for,
               groups_and_gaps_show_in_shapes_and_counts, wrong_layers_are_named,
               wrong_names_values_and_orders_are_named, the_first_failure_is_the_one_that_is_told,
               nets_refuse_what_they_cannot_run)
