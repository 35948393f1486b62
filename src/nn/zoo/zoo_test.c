/*
 * The zoo against parameter counts that others published (torchvision, PyTorch users, the federated
 * averaging paper) or that are worked by hand here, and over many shapes.
 */
#include "nn/zoo.h"

#include "base/test_main.h"
#include "nn/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static struct weir_graph *built(const char *name, const struct weir_shape *shape, int32_t n_classes)
{
    struct weir_graph *graph = NULL;
    struct weir_error err;
    ck_assert_msg(weir_zoo_build(name, shape, n_classes, &graph, &err) == WEIR_OK, "%s",
                  err.message);
    return graph;
}

static const struct count {
    const char *name;
    struct weir_shape shape;
    int32_t n_classes;
    int64_t n_parameters, n_macs; /**< n_macs 0: not known. */
} counts[] = {
    /* torchvision.models.resnet18: 11,689,512 parameters; 1.814 GMAC, worked from the paper's
     * table: stem 64*3*49*112^2, stage 1 4*64*64*9*56^2, stages 2-4 each (1/2 + 3) * 64*64*9*56^2
     * and a projection of 1/18 of it, 512*1000. */
    {"resnet18",
     {3, 224, 224},
     1000,
     11689512,
     118013952 + 4 * 115605504LL + 3 * (7 * 115605504LL / 2 + 115605504 / 18) + 512000},
    /* torchvision's published counts (without auxiliary heads); timm's for inception_v4 and
     * resnet50_v2 (its resnetv2_50); Keras' for mobilenet_v1. */
    {"alexnet", {3, 224, 224}, 1000, 61100840, 0},
    {"vgg11", {3, 224, 224}, 1000, 132863336, 0},
    {"vgg13", {3, 224, 224}, 1000, 133047848, 0},
    {"vgg16", {3, 224, 224}, 1000, 138357544, 0},
    {"vgg19", {3, 224, 224}, 1000, 143667240, 0},
    {"resnet34", {3, 224, 224}, 1000, 21797672, 0},
    {"resnet50", {3, 224, 224}, 1000, 25557032, 0},
    {"resnet101", {3, 224, 224}, 1000, 44549160, 0},
    {"resnet152", {3, 224, 224}, 1000, 60192808, 0},
    {"resnet50_v1", {3, 224, 224}, 1000, 25557032, 0},
    {"resnet50_v2", {3, 224, 224}, 1000, 25549352, 0},
    {"densenet121", {3, 224, 224}, 1000, 7978856, 0},
    {"googlenet", {3, 224, 224}, 1000, 6624904, 0},
    {"inception_v3", {3, 299, 299}, 1000, 23834568, 0},
    {"inception_v4", {3, 299, 299}, 1000, 42679816, 0},
    {"mobilenet_v1", {3, 224, 224}, 1000, 4231976, 0},
    {"mobilenet_v2", {3, 224, 224}, 1000, 3504872, 0},
    /* 227 * 227 * 3 + 1, 2 * 4096, 4096 * 1000 + 1000. */
    {"trivial", {3, 227, 227}, 1000, 154588 + 8192 + 4097000, 0},
    /* kuangliu/pytorch-cifar ResNet18: 11,173,962. */
    {"resnet18", {3, 32, 32}, 10, 11173962, 0},
    /* McMahan et al., AISTATS 2017: "a CNN … 1,663,370 total parameters". */
    {"lenet", {1, 28, 28}, 10, 1663370, 25 * 32 * 784 + 25 * 32 * 64 * 196 + 3136 * 512 + 5120},
    /* LeNet-5 as it is taught, with full connections: 61,706. */
    {"lenet-5", {1, 28, 28}, 10, 61706, 25 * 6 * 784 + 25 * 96 * 100 + 400 * 120 + 10080 + 840},
    {"mlp",
     {1, 28, 28},
     10,
     784 * 256 + 256 + 256 * 128 + 128 + 1290,
     784 * 256 + 256 * 128 + 1280},
    /* By hand: convolutions 400, 4608, 18432, 55296; two numbers a channel in their batch norms,
     * one in their rectifiers (3 * 208); 96*7*5*128 + 256; 40 classes of 128 + 14*11 numbers. */
    {"face-embed",
     {1, 56, 46},
     40,
     400 + 4608 + 18432 + 55296 + 624 + 430080 + 256 + 40 * (128 + 154),
     400 * 28 * 23 + 4608 * 28 * 23 + 18432 * 14 * 11 + 55296 * 7 * 5 + 430080},
    /* By hand: nine convolutions without bias and two numbers a channel of their norms; heads of 15 numbers with bias. */
    {"face-detect",
     {1, 192, 320},
     1,
     144 + 4608 + 9216 + 18432 + 2 * 36864 + 55296 + 2 * 82944 +
         2 * (16 + 2 * 32 + 3 * 64 + 3 * 96) + 15 * 9 * (64 + 96) + 30,
     144 * 15360 + (4608 + 9216) * 3840 + (18432 + 2 * 36864 + 15 * 9 * 64) * 960 +
         (55296 + 2 * 82944 + 15 * 9 * 96) * 240},
    {"face-embed",
     {1, 112, 112},
     40,
     400 + 4608 + 18432 + 55296 + 624 + 96 * 14 * 14 * 128 + 256 + 40 * (128 + 144),
     400 * 3136 + 4608 * 3136 + 18432 * 784 + 55296 * 196 + 96 * 14 * 14 * 128},
};

START_TEST(parameters_and_work_are_the_published_ones)
{
    const struct count *count = &counts[_i];
    struct weir_graph *graph = built(count->name, &count->shape, count->n_classes);
    ck_assert_int_eq(weir_graph_n_parameters(graph), count->n_parameters);
    if (count->n_macs != 0) {
        ck_assert_int_eq(weir_graph_n_macs(graph), count->n_macs);
    }
    ck_assert_int_eq(weir_graph_n_classes(graph), count->n_classes);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(the_face_network_keeps_its_budget)
{
    struct weir_graph *graph = built("face-embed", NULL, 1000);
    int64_t n_network = weir_graph_n_parameters(graph) - 1000 * 282;
    ck_assert(n_network > 300000 && n_network < 1000000);
    ck_assert(weir_graph_n_macs(graph) > 5000000 && weir_graph_n_macs(graph) < 20000000);
    ck_assert(weir_graph_is_embedding(graph));
    ck_assert_int_eq(weir_graph_output_shape(graph).c, 282);
    weir_graph_destroy(graph);
}

END_TEST

static int32_t layer_index(const struct weir_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->n_layers; i++) {
        if (strcmp(graph->layers[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

START_TEST(resnet18_has_the_layer_names_and_shapes_of_torchvision)
{
    struct weir_graph *graph = built("resnet18", NULL, 1000);

    const struct {
        const char *name;
        struct weir_shape shape;
    } expected[] = {
        {"conv1", {64, 112, 112}},
        {"bn1", {64, 112, 112}},
        {"maxpool", {64, 56, 56}},
        {"layer1.0.conv1", {64, 56, 56}},
        {"layer1.1.bn2", {64, 56, 56}},
        {"layer2.0.downsample.0", {128, 28, 28}},
        {"layer2.0.downsample.1", {128, 28, 28}},
        {"layer3.0.conv1", {256, 14, 14}},
        {"layer4.0.downsample.0", {512, 7, 7}},
        {"layer4.1.conv2", {512, 7, 7}},
        {"fc", {1000, 1, 1}},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(expected); i++) {
        int32_t i_layer = layer_index(graph, expected[i].name);
        ck_assert_msg(i_layer >= 0, "%s", expected[i].name);
        ck_assert_msg(
            memcmp(&graph->layers[i_layer].out, &expected[i].shape, sizeof expected[i].shape) == 0,
            "%s", expected[i].name);
    }
    ck_assert_int_lt(layer_index(graph, "layer1.0.downsample.0"), 0);
    /* The projection takes what the block was given, and the sum takes both. */
    const struct graph_layer *add = &graph->layers[layer_index(graph, "layer2.0.add")];
    ck_assert_int_eq(add->in[0], layer_index(graph, "layer2.0.bn2"));
    ck_assert_int_eq(add->in[1], layer_index(graph, "layer2.0.downsample.1"));
    const struct graph_layer *down = &graph->layers[layer_index(graph, "layer2.0.downsample.0")];
    ck_assert_int_eq(down->in[0], layer_index(graph, "layer1.1.relu2"));
    const struct graph_layer *plain = &graph->layers[layer_index(graph, "layer1.1.add")];
    ck_assert_int_eq(plain->in[1], layer_index(graph, "layer1.0.relu2"));
    weir_graph_destroy(graph);
}

END_TEST

/* Layers as torchvision's (timm's for inception_v4) summaries of the models give them. */
static const struct known_layer {
    const char *model, *layer;
    struct weir_shape shape;
} known_layers[] = {
    {"alexnet", "features.0", {64, 55, 55}},
    {"alexnet", "features.12", {256, 6, 6}},
    {"alexnet", "classifier.1", {4096, 1, 1}},
    {"vgg11", "features.18", {512, 14, 14}},
    {"vgg16", "features.28", {512, 14, 14}},
    {"vgg19", "features.36", {512, 7, 7}},
    {"vgg19", "classifier.6", {1000, 1, 1}},
    {"resnet34", "layer3.5.conv2", {256, 14, 14}},
    {"resnet50", "layer1.0.downsample.0", {256, 56, 56}},
    {"resnet50", "layer2.0.conv1", {128, 56, 56}},
    {"resnet50_v1", "layer2.0.conv1", {128, 28, 28}},
    {"resnet50_v2", "layer2.0.bn1", {256, 56, 56}},
    {"resnet152", "layer3.35.bn3", {1024, 14, 14}},
    {"densenet121", "features.denseblock3.denselayer24.norm1", {992, 14, 14}},
    {"densenet121", "features.transition3.conv", {512, 14, 14}},
    {"densenet121", "features.norm5", {1024, 7, 7}},
    {"googlenet", "maxpool2", {192, 28, 28}},
    {"googlenet", "inception4e.branch3.1.conv", {128, 14, 14}},
    {"googlenet", "inception5b.branch4.1.bn", {128, 7, 7}},
    {"inception_v3", "Conv2d_4a_3x3.conv", {192, 71, 71}},
    {"inception_v3", "Mixed_5d.branch3x3dbl_3.bn", {96, 35, 35}},
    {"inception_v3", "Mixed_6e.branch7x7dbl_5.conv", {192, 17, 17}},
    {"inception_v3", "Mixed_7c.branch3x3dbl_3b.conv", {384, 8, 8}},
    {"inception_v4", "features.4.branch1.3.conv", {96, 71, 71}},
    {"inception_v4", "features.17.branch2.4.conv", {256, 17, 17}},
    {"inception_v4", "features.21.concat", {1536, 8, 8}},
    {"mobilenet_v1", "block13.pointwise", {1024, 7, 7}},
    {"mobilenet_v2", "features.1.conv.1", {16, 112, 112}},
    {"mobilenet_v2", "features.2.conv.1.0", {96, 56, 56}},
    {"mobilenet_v2", "features.18.0", {1280, 7, 7}},
};

START_TEST(layers_have_the_published_names_and_shapes)
{
    const struct known_layer *known = &known_layers[_i];
    struct weir_graph *graph = built(known->model, NULL, 1000);
    int32_t i = layer_index(graph, known->layer);
    ck_assert_msg(i >= 0, "%s has no %s", known->model, known->layer);
    const struct weir_shape *is = &graph->layers[i].out;
    ck_assert_msg(memcmp(is, &known->shape, sizeof *is) == 0, "%s: %s is %d x %d x %d",
                  known->model, known->layer, is->c, is->h, is->w);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(every_model_builds_for_every_reasonable_shape)
{
    static const int32_t sides[] = {28, 32, 47, 64, 92, 112};
    size_t n_models = 0;
    const struct weir_zoo_model *models = weir_zoo_models(&n_models);
    for (size_t i = 0; i < n_models; i++) {
        ck_assert_ptr_eq(weir_zoo_find(models[i].name), &models[i]);
        ck_assert(*models[i].doc != '\0' && strchr(models[i].doc, '\n') == NULL);
        weir_graph_destroy(built(models[i].name, NULL, 2));
        for (size_t h = 0; h < WEIR_ARRAY_LEN(sides); h++) {
            for (size_t w = 0; w < WEIR_ARRAY_LEN(sides); w++) {
                struct weir_shape shape = {1 + (int32_t)(h + w) % 3, sides[h], sides[w]};
                if (WEIR_MIN(shape.h, shape.w) < models[i].min_side) {
                    continue;
                }
                struct weir_graph *graph = built(models[i].name, &shape, 7);
                struct weir_shape input = weir_graph_input_shape(graph);
                ck_assert_int_eq(memcmp(&input, &shape, sizeof shape), 0);
                ck_assert_int_eq(weir_graph_n_classes(graph),
                                 weir_graph_is_detector(graph) ? 1 : 7);
                weir_graph_destroy(graph);
            }
        }
    }
}

END_TEST

START_TEST(a_spec_of_the_zoo_is_a_model_file_that_builds_the_same_graph)
{
    size_t n_models = 0;
    const struct weir_zoo_model *models = weir_zoo_models(&n_models);
    for (size_t i = 0; i < n_models; i++) {
        struct weir_model_spec *spec = NULL;
        struct weir_graph *again = NULL;
        ck_assert_int_eq(weir_zoo_resolve(models[i].name, NULL, &spec, NULL), WEIR_OK);
        ck_assert_int_eq(weir_model_build(weir_model_spec_text(spec), 9, &again, NULL), WEIR_OK);
        struct weir_graph *graph = built(models[i].name, NULL, 9);
        ck_assert_int_eq(graph->n_layers, again->n_layers);
        for (int32_t j = 0; j < graph->n_layers; j++) {
            ck_assert_str_eq(graph->layers[j].name, again->layers[j].name);
            ck_assert_int_eq(graph->layers[j].kind, again->layers[j].kind);
        }
        weir_graph_destroy(graph);
        weir_graph_destroy(again);
        weir_model_spec_destroy(spec);
    }
}

END_TEST

START_TEST(inputs_too_small_and_unknown_names_are_refused)
{
    struct weir_graph *graph = NULL;
    struct weir_model_spec *spec = NULL;
    struct weir_error err;
    const struct weir_shape tiny = {1, 3, 3}, none = {1, 0, 28};
    ck_assert_int_eq(weir_zoo_build("lenet", &tiny, 10, &graph, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, "lenet: $.layers[5]: layer pool2") != NULL, "%s",
                  err.message);
    ck_assert_int_eq(weir_zoo_build("mlp", &none, 10, &graph, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "mlp: $.input"));
    ck_assert_int_eq(weir_zoo_spec("vgg", NULL, &spec, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_msg(strstr(err.message, "lenet-5, mlp, resnet18, face-embed") != NULL, "%s",
                  err.message);
    ck_assert_int_eq(weir_zoo_resolve("vgg", NULL, &spec, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_zoo_resolve("./vgg.yaml", NULL, &spec, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "vgg.yaml"));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("zoo");
    TCase *tcase = tcase_create("zoo");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, parameters_and_work_are_the_published_ones, 0,
                        (int)WEIR_ARRAY_LEN(counts));
    tcase_add_test(tcase, the_face_network_keeps_its_budget);
    tcase_add_test(tcase, resnet18_has_the_layer_names_and_shapes_of_torchvision);
    tcase_add_loop_test(tcase, layers_have_the_published_names_and_shapes, 0,
                        (int)WEIR_ARRAY_LEN(known_layers));
    tcase_add_test(tcase, every_model_builds_for_every_reasonable_shape);
    tcase_add_test(tcase, a_spec_of_the_zoo_is_a_model_file_that_builds_the_same_graph);
    tcase_add_test(tcase, inputs_too_small_and_unknown_names_are_refused);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
