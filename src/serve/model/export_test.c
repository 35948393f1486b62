/*
 * Models as ONNX: Weir's own reader of ONNX must give what the net gives. (That other programs do is
 * tests/serve/export_test.py.)
 */
#include "serve/export.h"
#include "serve/signature.h"
#include "serve/test_model.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "nn/onnx_file.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static char folder[WEIR_DIR_TEMPORARY_BYTES];
static char net_path[WEIR_DIR_TEMPORARY_BYTES + 32], onnx_path[WEIR_DIR_TEMPORARY_BYTES + 32];
static struct weir_error err;

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("export", folder, &err), WEIR_OK);
    (void)snprintf(net_path, sizeof net_path, "%s/model.safetensors", folder);
    (void)snprintf(onnx_path, sizeof onnx_path, "%s/model.onnx", folder);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(folder, &err), WEIR_OK);
}

static struct weir_tensor *run(struct serve_model *model, struct weir_tensor *in)
{
    struct weir_tensor *out;
    ck_assert_msg(serve_model_run(model, &in, &out, &err) == WEIR_OK, "%s", err.message);
    return out;
}

static struct weir_tensor *random_input(const struct serve_model *model, int64_t batch)
{
    struct weir_tensor *in;
    struct weir_rng rng;
    test_model_zeros(model, batch, &in);
    weir_rng_init(&rng, 5, 0);
    for (size_t i = 0; i < in->n_elems; i++) {
        ((float *)in->data)[i] = (float)weir_rng_normal(&rng);
    }
    return in;
}

/* The file at net_path and its ONNX form, on the same batch. */
static void expect_same(int64_t batch)
{
    struct serve_model *net, *onnx;
    ck_assert_msg(weir_serve_export(net_path, onnx_path, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(executor_load("weir", net_path, NULL, &net, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(executor_load("onnx", onnx_path, NULL, &onnx, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert(serve_model_is_batched(onnx));
    struct weir_tensor *in = random_input(net, batch);
    struct weir_tensor *expected = run(net, in), *got = run(onnx, in);
    ck_assert_uint_eq(got->n_elems, expected->n_elems);
    double most = 0;
    for (size_t i = 0; i < got->n_elems; i++) {
        most = fmax(most, (double)fabsf(((float *)expected->data)[i]));
    }
    for (size_t i = 0; i < got->n_elems; i++) {
        double difference =
            fabs((double)((float *)got->data)[i] - (double)((float *)expected->data)[i]);
        ck_assert_msg(difference <= 1e-4 * fmax(1, most), "output %zu: %g, expected %g", i,
                      (double)((float *)got->data)[i], (double)((float *)expected->data)[i]);
    }
    weir_tensor_release(in);
    weir_tensor_release(got);
    weir_tensor_release(expected);
    serve_model_unload(net);
    serve_model_unload(onnx);
}

#define MODEL(input, layers, loss)                                                                 \
    "{\"input\": " input ", \"layers\": [" layers "], \"loss\": {\"type\": \"" loss "\"}}"
#define HEAD "{\"name\": \"head\", \"type\": \"linear\", \"k\": \"classes\"}"

/* Each layer in the forms that its ONNX operator distinguishes. */
static const char *const specs[] = {
    TEST_CLASSIFIER,
    TEST_EMBEDDING,
    MODEL("[3, 9, 7]",
          "{\"name\": \"c\", \"type\": \"conv\", \"k\": 6, \"kernel\": [3, 2], "
          "\"stride\": 2, \"pad\": [1, 0], \"groups\": 3, \"bias\": false},"
          "{\"name\": \"d\", \"type\": \"conv\", \"k\": 4, \"kernel\": 2, "
          "\"dilation\": 2, \"pad\": 1},"
          "{\"name\": \"p\", \"type\": \"prelu\"}," HEAD,
          "softmax"),
    MODEL("[3, 8, 8]",
          "{\"name\": \"b\", \"type\": \"batch_norm\", \"eps\": 0.001},"
          "{\"name\": \"r\", \"type\": \"relu6\"},"
          "{\"name\": \"s\", \"type\": \"scale\", \"factor\": -1.5},"
          "{\"name\": \"n\", \"type\": \"layer_norm\"},"
          "{\"name\": \"g\", \"type\": \"global_pool\"}," HEAD,
          "softmax"),
    MODEL("[3, 8, 9]",
          "{\"name\": \"m\", \"type\": \"max_pool\", \"kernel\": 3, \"stride\": 2, "
          "\"pad\": 1, \"ceil\": true},"
          "{\"name\": \"a\", \"type\": \"avg_pool\", \"kernel\": 3, \"stride\": 2, "
          "\"pad\": 1, \"ceil\": true}," HEAD,
          "softmax"),
    MODEL("[1, 8, 10]",
          "{\"name\": \"a\", \"type\": \"avg_pool\", \"kernel\": 3, \"stride\": 3, "
          "\"ceil\": true},"
          "{\"name\": \"b\", \"type\": \"avg_pool\", \"kernel\": 3, \"stride\": 1, "
          "\"pad\": 1, \"count_pad\": false},"
          "{\"name\": \"m\", \"type\": \"max_pool\", \"kernel\": 2}," HEAD,
          "softmax"),
    MODEL("[3, 4, 4]",
          "{\"name\": \"g\", \"type\": \"global_pool\"},"
          "{\"name\": \"f\", \"type\": \"linear\", \"k\": 3},"
          "{\"name\": \"n\", \"type\": \"batch_norm\"},"
          "{\"name\": \"p\", \"type\": \"prelu\"},"
          "{\"name\": \"a\", \"type\": \"add\", \"from\": [\"p\", \"g\"]},"
          "{\"name\": \"c\", \"type\": \"concat\", \"from\": [\"a\", \"f\", \"a\"]},"
          "{\"name\": \"v\", \"type\": \"conv\", \"k\": 4, \"kernel\": 1},"
          "{\"name\": \"l\", \"type\": \"layer_norm\"},"
          "{\"name\": \"d\", \"type\": \"dropout\", \"rate\": 0.5}," HEAD,
          "softmax"),
    MODEL("[1, 4, 4]",
          "{\"name\": \"axes\", \"type\": \"flatten\"},"
          "{\"name\": \"output\", \"type\": \"layer_norm\"},"
          "{\"name\": \"x\", \"type\": \"relu\"},"
          "{\"name\": \"e\", \"type\": \"l2_normalise\"}",
          "margin"),
};

START_TEST(every_layer_is_exported)
{
    test_model_save(net_path, specs[_i], 3);
    expect_same(1);
    expect_same(3);
}

END_TEST

static const struct {
    const char *name;
    int32_t side; /* 0: the model's own */
} models[] = {
    {"lenet", 0},     {"mlp", 0},           {"face-embed", 0},     {"resnet18", 64},
    {"resnet50", 64}, {"mobilenet_v2", 64}, {"inception_v3", 139}, {"googlenet", 64},
};

START_TEST(models_of_the_zoo_are_exported)
{
    const struct weir_zoo_model *model = weir_zoo_find(models[_i].name);
    struct weir_shape shape = model->shape;
    struct weir_model_spec *spec;
    if (models[_i].side > 0) {
        shape.h = shape.w = models[_i].side;
    }
    ck_assert_msg(weir_zoo_spec(model->name, &shape, &spec, &err) == WEIR_OK, "%s", err.message);
    test_model_save(net_path, weir_model_spec_text(spec), 3);
    weir_model_spec_destroy(spec);
    expect_same(2);
}

END_TEST

START_TEST(what_comes_back_has_the_same_signature)
{
    struct weir_arena arena;
    struct weir_signature signatures[2];
    const struct signature_extras extras = {0};
    static const char *const kinds[] = {"weir", "onnx"};
    const char *paths[] = {net_path, onnx_path};
    weir_arena_init(&arena, 0);
    test_model_save(net_path, TEST_CLASSIFIER, 3);
    ck_assert_int_eq(weir_serve_export(net_path, onnx_path, &err), WEIR_OK);
    for (int i = 0; i < 2; i++) {
        struct serve_model *model;
        ck_assert_int_eq(executor_load(kinds[i], paths[i], NULL, &model, &err), WEIR_OK);
        ck_assert_msg(weir_signature_make(model, WEIR_MODEL_FORMAT_ONNX, "so", &extras, &arena,
                                          &signatures[i], &err) == WEIR_OK,
                      "%s", err.message);
        signatures[i].executor = "any";
        serve_model_unload(model);
    }
    json_t *a = weir_signature_json(&signatures[0]), *b = weir_signature_json(&signatures[1]);
    ck_assert_str_eq(weir_json_text(a, &arena), weir_json_text(b, &arena));
    json_decref(a);
    json_decref(b);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_file_beyond_the_bound_is_refused)
{
    struct weir_net_file *file;
    struct weir_buf buf;
    test_model_save(net_path, TEST_CLASSIFIER, 3);
    ck_assert_int_eq(weir_net_file_open(net_path, &file, &err), WEIR_OK);
    for (size_t most = 0; most < 2000; most += 137) {
        weir_buf_init(&buf, most);
        ck_assert_int_eq(weir_net_file_export_onnx(file, NULL, 0, &buf, &err), WEIR_ERR_LIMIT);
        weir_buf_fini(&buf);
    }
    weir_net_file_close(file);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("export");
    TCase *tcase = tcase_create("export");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, every_layer_is_exported, 0, WEIR_ARRAY_LEN(specs));
    tcase_add_loop_test(tcase, models_of_the_zoo_are_exported, 0, WEIR_ARRAY_LEN(models));
    tcase_add_test(tcase, what_comes_back_has_the_same_signature);
    tcase_add_test(tcase, a_file_beyond_the_bound_is_refused);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
