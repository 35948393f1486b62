/*
 * Model files against graphs built by hand with the builders of nn.h, the documented example
 * against the zoo, and mistakes against the place that the message must name.
 */
#include "nn/model_file.h"

#include "nn/zoo.h"

#include "base/json.h"
#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

static struct weir_model_spec *parsed(const char *text)
{
    struct weir_model_spec *spec = NULL;
    struct weir_error err;
    ck_assert_msg(weir_model_spec_parse(text, strlen(text), "m", &spec, &err) == WEIR_OK, "%s",
                  err.message);
    return spec;
}

static struct weir_graph *built(const char *text, int32_t n_classes)
{
    struct weir_graph *graph = NULL;
    struct weir_error err;
    ck_assert_msg(weir_model_build(text, n_classes, &graph, &err) == WEIR_OK, "%s", err.message);
    return graph;
}

/* Every type of layer at least once, and both forms of kernel and pad. */
static const char all_types[] =
    "input: [2, 12, 16]\n"
    "layers:\n"
    "  - {name: a, type: conv, k: 8, kernel: [3, 5], pad: [1, 2], bias: false}\n"
    "  - {name: b, type: batch_norm}\n"
    "  - {name: c, type: prelu}\n"
    "  - {name: d, type: conv, from: c, k: 8, kernel: 1}\n"
    "  - {name: e, type: relu}\n"
    "  - {name: f, type: add, from: [e, c]}\n"
    "  - {name: g, type: max_pool, kernel: 2}\n"
    "  - {name: h, type: avg_pool, from: f, kernel: 4, stride: 2, pad: 1}\n"
    "  - {name: i, type: concat, from: [g, h, g]}\n"
    "  - {name: j, type: dropout, rate: 0.25}\n"
    "  - {name: k, type: linear, k: 6}\n"
    "  - {name: n, type: layer_norm, from: input}\n"
    "  - {name: o, type: avg_pool, kernel: 4}\n"
    "  - {name: p, type: flatten}\n"
    "  - {name: q, type: scale, factor: -0.5}\n"
    "  - {name: r, type: concat, from: [k, q]}\n"
    "  - {name: l, type: l2_normalise}\n"
    "loss: {type: margin, name: m, scale: 8, margin: 0}\n";

START_TEST(every_type_of_layer_has_the_parameters_and_work_counted_by_hand)
{
    struct weir_graph *graph = built(all_types, 5);
    /* a 8*2*15 = 240; b 16; c 8; d 8*8 + 8 = 72; k 24*6*8 * 6 + 6 = 6918; m 5 * (6 + 2*3*4)
     * = 150 */
    ck_assert_int_eq(weir_graph_n_parameters(graph), 240 + 16 + 8 + 72 + 6918 + 150);
    /* a 240 and d 64 per pixel of 12*16; k 6912 */
    ck_assert_int_eq(weir_graph_n_macs(graph), (240 + 64) * 192 + 6912);
    ck_assert_int_eq(weir_graph_n_classes(graph), 5);
    ck_assert(weir_graph_is_embedding(graph));
    ck_assert_int_eq(weir_graph_output_shape(graph).c, 6 + 24);
    struct weir_shape input = weir_graph_input_shape(graph);
    ck_assert(input.c == 2 && input.h == 12 && input.w == 16);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(a_file_makes_the_graph_that_the_builders_make)
{
    struct weir_graph *file = built("{\"input\":[3,17,19],\"layers\":["
                                    "{\"type\":\"conv\",\"k\":7,\"kernel\":3,\"stride\":2},"
                                    "{\"type\":\"global_pool\"},"
                                    "{\"type\":\"linear\",\"k\":\"classes\",\"bias\":false}],"
                                    "\"loss\":{\"type\":\"softmax\"}}",
                                    4);
    struct weir_graph *hand = weir_graph_create();
    weir_value_t x = weir_graph_input(hand, (struct weir_shape){3, 17, 19});
    x = weir_graph_conv(hand, "a", x,
                        &(struct weir_conv_params){
                            .k = 7, .kernel_h = 3, .kernel_w = 3, .stride = 2, .has_bias = true});
    x = weir_graph_global_pool(hand, "b", x);
    x = weir_graph_linear(hand, "c", x, 4, false);
    weir_graph_softmax_loss(hand, "d", x);
    ck_assert_int_eq(weir_graph_check(hand, NULL), WEIR_OK);
    ck_assert_int_eq(weir_graph_n_parameters(file), weir_graph_n_parameters(hand));
    ck_assert_int_eq(weir_graph_n_macs(file), weir_graph_n_macs(hand));
    ck_assert_int_eq(weir_graph_n_classes(file), 4);
    ck_assert(!weir_graph_is_embedding(file));
    weir_graph_destroy(file);
    weir_graph_destroy(hand);
}

END_TEST

START_TEST(the_text_of_a_spec_parses_to_the_same_text)
{
    struct weir_model_spec *spec = parsed(all_types);
    struct weir_model_spec *again = parsed(weir_model_spec_text(spec));
    ck_assert_str_eq(weir_model_spec_text(spec), weir_model_spec_text(again));
    ck_assert_int_eq(weir_model_spec_text(spec)[0], '{');
    ck_assert_ptr_nonnull(
        strstr(weir_model_spec_text(spec), "\n  {\"name\":\"b\",\"type\":\"batch_norm\"},\n"));
    ck_assert_int_eq(weir_model_spec_input(again).w, 16);
    weir_model_spec_destroy(again);
    weir_model_spec_destroy(spec);
}

END_TEST

START_TEST(the_documented_example_is_the_lenet_of_the_zoo)
{
    struct weir_model_spec *file = NULL, *zoo = NULL;
    struct weir_error err;
    ck_assert_msg(weir_model_spec_load(WEIR_EXAMPLES "/models/lenet.yaml", &file, &err) == WEIR_OK,
                  "%s", err.message);
    ck_assert_int_eq(weir_zoo_spec("lenet", NULL, &zoo, &err), WEIR_OK);
    json_t *a = json_loads(weir_model_spec_text(file), 0, NULL);
    json_t *b = json_loads(weir_model_spec_text(zoo), 0, NULL);
    ck_assert(a != NULL && json_equal(a, b));
    json_decref(a);
    json_decref(b);
    weir_model_spec_destroy(file);
    weir_model_spec_destroy(zoo);
}

END_TEST

/* Counted by hand: kernels, then two parameters a channel of each norm, then the classifier. */
static const struct {
    const char *path;
    int64_t n_parameters;
} counted[] = {
    {WEIR_EXAMPLES "/models/small-resnet.yaml", 3 * 16 * 9 + 32 + 16 * 16 * 9 + 32 + 16 * 10 + 10},
    {WEIR_EXAMPLES "/models/photographs.yaml",
     3 * 32 * 9 + 2 * 32 * 32 * 9 + (32 + 64) * 64 * 9 + 32 * 64 + (64 + 128) * 128 * 9 + 64 * 128 +
         (128 + 256) * 256 * 9 + 128 * 256 + 2 * (3 * 32 + 3 * 64 + 3 * 128 + 3 * 256) + 256 * 10 +
         10},
};

START_TEST(the_branching_examples_have_the_parameters_counted_by_hand)
{
    struct weir_model_spec *spec = NULL;
    struct weir_graph *graph = NULL;
    struct weir_error err;
    ck_assert_msg(weir_zoo_resolve(counted[_i].path, NULL, &spec, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_msg(weir_model_spec_build(spec, 10, &graph, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(weir_graph_n_parameters(graph), counted[_i].n_parameters);
    weir_graph_destroy(graph);
    weir_model_spec_destroy(spec);
}

END_TEST

struct mistake {
    const char *text;
    const char *message; /**< Begins with. */
};

#define MODEL(layers) "{\"input\":[1,8,8],\"layers\":[" layers "],\"loss\":{\"type\":\"softmax\"}}"
#define FC            "{\"type\":\"linear\",\"k\":\"classes\"}"

static const struct mistake mistakes[] = {
    {"", "m: expected one document, found 0"},
    {"[1]", "m: $: expected an object"},
    {"{", "m: line 1"},
    {"a: [1", "m: line 2, column 1: did not find"},
    {"{\"layers\":[]}", "m: $.input is missing: expected [C, H, W]"},
    {"{\"input\":[1,8],\"layers\":[]}", "m: $.input: expected [C, H, W], integers > 0, got [1,8]"},
    {"{\"input\":[1,8,0],\"layers\":[]}", "m: $.input: expected"},
    {"{\"input\":[1,8,\"8\"],\"layers\":[]}", "m: $.input: expected"},
    {"{\"input\":[1,8,8]}", "m: $.layers is missing"},
    {"{\"input\":[1,8,8],\"layers\":[]}", "m: $.layers: expected a list of layers, got []"},
    {"{\"input\":[1,8,8],\"layers\":[" FC "]}", "m: $.loss is missing"},
    {"{\"input\":[1,8,8],\"layers\":[" FC "],\"los\":1}", "m: $.los: a model has"},
    {"{\"name\":3,\"input\":[1,8,8],\"layers\":[" FC "]}", "m: $.name: expected text, got 3"},
    {MODEL("7"), "m: $.layers[0]: expected an object with type and settings, got 7"},
    {MODEL("{}"), "m: $.layers[0].type is missing: expected one of conv linear"},
    {MODEL("{\"type\":\"softmax\"}"), "m: $.layers[0].type: expected one of conv"},
    {MODEL("{\"type\":\"dense\"}"), "m: $.layers[0].type: expected one of conv"},
    {MODEL("{\"type\":\"conv\",\"k\":4}"),
     "m: $.layers[0].kernel is missing: expected integer > 0"},
    {MODEL("{\"type\":\"relu\"},{\"type\":\"conv\",\"k\":4,\"kernel\":-1}"),
     "m: $.layers[1].kernel: expected integer > 0, got -1"},
    {MODEL("{\"type\":\"conv\",\"k\":4,\"kernel\":[3]}"),
     "m: $.layers[0].kernel: expected an integer or [h, w], got [3]"},
    {MODEL("{\"type\":\"conv\",\"k\":4,\"kernel\":[3,2.5]}"),
     "m: $.layers[0].kernel: expected integer > 0, got 2.5"},
    {MODEL("{\"type\":\"conv\",\"k\":\"four\",\"kernel\":3}"),
     "m: $.layers[0].k: expected integer > 0 or \"classes\", got \"four\""},
    {MODEL("{\"type\":\"conv\",\"k\":9999999,\"kernel\":3}"),
     "m: $.layers[0].k: expected integer up to 1048576"},
    {MODEL("{\"type\":\"conv\",\"k\":4,\"kernel\":3,\"bias\":1}"),
     "m: $.layers[0].bias: expected true or false, got 1"},
    {MODEL("{\"type\":\"conv\",\"k\":4,\"kernal\":3,\"kernel\":3}"),
     "m: $.layers[0].kernal: conv takes type, name, from, k, kernel, stride, pad, groups, "
     "dilation, bias, initial, initial_bias and"},
    {MODEL("{\"type\":\"relu\",\"k\":4}"), "m: $.layers[0].k: relu takes type, name, from and"},
    {MODEL("{\"type\":\"dropout\",\"rate\":1}"),
     "m: $.layers[0].rate: expected number in [0, 1), got 1"},
    {MODEL("{\"type\":\"relu\",\"name\":\"a b\"}"), "m: $.layers[0].name: expected 1 to 80"},
    {MODEL("{\"type\":\"relu\",\"name\":\"input\"}"), "m: $.layers[0].name: \"input\" is already"},
    {MODEL("{\"type\":\"relu\",\"name\":\"a\"},{\"type\":\"relu\",\"name\":\"a\"}"),
     "m: $.layers[1].name: \"a\" is already"},
    {MODEL("{\"type\":\"relu\",\"from\":\"x\"}"),
     "m: $.layers[0].from: there is no layer \"x\" before this one"},
    {MODEL("{\"type\":\"relu\",\"name\":\"a\",\"from\":\"a\"}"),
     "m: $.layers[0].from: there is no"},
    {MODEL("{\"type\":\"relu\",\"from\":[\"input\"]}"), "m: $.layers[0].from: expected the name"},
    {MODEL("{\"type\":\"add\"}"), "m: $.layers[0].from is missing: expected a list of 2 layer"},
    {MODEL("{\"type\":\"add\",\"from\":[\"input\",\"input\",\"input\"]}"),
     "m: $.layers[0].from: expected a list of 2 layer names, got"},
    {MODEL("{\"type\":\"concat\",\"from\":[\"input\",3]}"),
     "m: $.layers[0].from: expected the name"},
    {"{\"input\":[1,8,8],\"layers\":[" FC "],\"loss\":{\"type\":\"hinge\"}}",
     "m: $.loss.type: expected one of softmax margin detect, got \"hinge\""},
    {"{\"input\":[1,8,8],\"layers\":[" FC "],\"loss\":{\"type\":\"margin\",\"scale\":0}}",
     "m: $.loss.scale: expected number in [0.001, 10000), got 0"},
    /* From here on the form is good and the shapes are not. */
    {MODEL("{\"type\":\"conv\",\"k\":4,\"kernel\":9}," FC), "model: $.layers[0]: layer conv_0"},
    {MODEL("{\"type\":\"max_pool\",\"kernel\":2,\"pad\":2}," FC), "model: $.layers[0]: layer"},
    {MODEL("{\"type\":\"relu\"},{\"type\":\"global_pool\"},"
           "{\"type\":\"add\",\"from\":[\"relu_0\",\"global_pool_1\"]}," FC),
     "model: $.layers[2]: layer add_2: cannot add"},
    {MODEL("{\"type\":\"relu\"}"), "model: $: layer softmax"},
    {MODEL("{\"type\":\"relu\"},{\"type\":\"linear\",\"from\":\"input\",\"k\":\"classes\"}"),
     "model: $: layer relu_0: nothing uses its value"},
    {MODEL("{\"type\":\"linear\",\"k\":10}"),
     "model: the model tells 10 classes apart, the data has 3"},
    {"{\"input\":[1048576,1048576,2],\"layers\":[" FC "],\"loss\":{\"type\":\"softmax\"}}",
     "model: $.input: "},
};

START_TEST(a_mistake_is_refused_with_its_place)
{
    const struct mistake *mistake = &mistakes[_i];
    struct weir_model_spec *spec = NULL;
    struct weir_graph *graph = NULL;
    struct weir_error err = {0};
    weir_status status =
        strncmp(mistake->message, "m: ", 3) == 0
            ? weir_model_spec_parse(mistake->text, strlen(mistake->text), "m", &spec, &err)
            : weir_model_build(mistake->text, 3, &graph, &err);
    ck_assert_msg(status == WEIR_ERR_INVALID, "%s: %s", mistake->text, weir_status_name(status));
    ck_assert_int_eq(err.status, status);
    ck_assert_msg(strncmp(err.message, mistake->message, strlen(mistake->message)) == 0,
                  "wanted %s\n   got %s", mistake->message, err.message);
    ck_assert(spec == NULL && graph == NULL);
}

END_TEST

START_TEST(what_depends_on_the_classes_is_not_built_without_them)
{
    struct weir_graph *graph = NULL;
    struct weir_error err;
    ck_assert_int_eq(weir_model_build(MODEL(FC), 0, &graph, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "linear_0"));
    ck_assert_int_eq(weir_model_build(all_types, 0, &graph, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_model_build(MODEL(FC), -1, &graph, &err), WEIR_ERR_INVALID);
    graph = built(MODEL("{\"type\":\"linear\",\"k\":10}"), 0);
    ck_assert_int_eq(weir_graph_n_classes(graph), 10);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(files_and_models_too_large_are_refused)
{
    struct weir_model_spec *spec = NULL;
    struct weir_error err;
    size_t len = WEIR_MODEL_FILE_MAX_BYTES + 1;
    char *text = malloc(len);
    memset(text, ' ', len);
    ck_assert_int_eq(weir_model_spec_parse(text, len, "m", &spec, &err), WEIR_ERR_LIMIT);
    char *at = text + snprintf(text, len, "{\"input\":[1,8,8],\"layers\":[");
    for (int i = 0; i <= WEIR_MODEL_FILE_LAYERS_MAX; i++) {
        at += snprintf(at, len - (size_t)(at - text), "%s{\"type\":\"relu\"}", i == 0 ? "" : ",");
    }
    at += snprintf(at, len - (size_t)(at - text), "],\"loss\":{\"type\":\"softmax\"}}");
    ck_assert_int_eq(weir_model_spec_parse(text, (size_t)(at - text), "m", &spec, &err),
                     WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "$.layers"));
    ck_assert_int_eq(weir_model_spec_load("/nonexistent.yaml", &spec, &err), WEIR_ERR_NOT_FOUND);
    free(text);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("model_file");
    TCase *tcase = tcase_create("model_file");
    tcase_add_test(tcase, every_type_of_layer_has_the_parameters_and_work_counted_by_hand);
    tcase_add_test(tcase, a_file_makes_the_graph_that_the_builders_make);
    tcase_add_test(tcase, the_text_of_a_spec_parses_to_the_same_text);
    tcase_add_test(tcase, the_documented_example_is_the_lenet_of_the_zoo);
    tcase_add_loop_test(tcase, the_branching_examples_have_the_parameters_counted_by_hand, 0,
                        (int)WEIR_ARRAY_LEN(counted));
    tcase_add_loop_test(tcase, a_mistake_is_refused_with_its_place, 0,
                        (int)WEIR_ARRAY_LEN(mistakes));
    tcase_add_test(tcase, what_depends_on_the_classes_is_not_built_without_them);
    tcase_add_test(tcase, files_and_models_too_large_are_refused);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
