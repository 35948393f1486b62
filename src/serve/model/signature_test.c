#include "probe.h"
#include "serve/signature.h"
#include "serve/test_model.h"

#include "base/file.h"
#include "base/test_main.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static char folder[WEIR_DIR_TEMPORARY_BYTES];
static char path[WEIR_DIR_TEMPORARY_BYTES + 32];
static struct weir_error err;
static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("signature", folder, &err), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/model", folder);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(folder, &err), WEIR_OK);
}

static const char whole[] =
    "{\"format\":\"onnx\",\"executor\":\"onnx\",\"why\":\"It can.\","
    "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,3,224,224]}],"
    "\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,2]},"
    "{\"name\":\"z\",\"datatype\":\"BYTES\",\"shape\":[-1]}],"
    "\"is_batched\":true,"
    "\"picture\":{\"input\":\"x\",\"width\":224,\"height\":224,\"channels\":3,\"layout\":\"NCHW\","
    "\"datatype\":\"FP32\",\"fit\":\"crop\",\"shorter\":256,\"order\":\"BGR\",\"scale\":255,"
    "\"mean\":[1.5,2.5,3.5],\"std\":[1.0,2.0,4.0]},"
    "\"output_kind\":\"probabilities\",\"labels\":[\"cat\",\"d\\u00f6g\"]}";

START_TEST(a_signature_is_printed_as_it_was_read)
{
    struct weir_signature signature;
    ck_assert_msg(weir_signature_parse(whole, strlen(whole), "s", &arena, &signature, &err) ==
                      WEIR_OK,
                  "%s", err.message);
    ck_assert(signature.picture.is_crop && signature.picture.is_bgr && !signature.picture.is_nhwc);
    ck_assert_int_eq(signature.outputs[1].dtype, WEIR_DTYPE_STRING);
    json_t *json = weir_signature_json(&signature), *expected = json_loads(whole, 0, NULL);
    ck_assert_msg(json_equal(json, expected), "%s", weir_json_text(json, &arena));
    json_decref(json);
    json_decref(expected);
}

END_TEST

/* What is put in place of what, and what the message must then say. */
static const struct {
    const char *from, *to, *message;
} wrong[] = {
    {"\"format\":\"onnx\"", "\"format\":\"tf\"", "$.format: expected weir or onnx"},
    {"\"FP32\",\"shape\":[-1,3", "\"FP99\",\"shape\":[-1,3", "$.inputs[0].datatype"},
    {"[-1,3,224,224]", "[-1,3,\"a\",224]", "$.inputs[0].shape[2]: expected an integer"},
    {"[-1,3,224,224]", "[-1,3,-2,224]", "$.inputs[0].shape[2]"},
    {"[-1,3,224,224]", "[1,3,224,224]", "$.is_batched: the first dimension of \"x\""},
    {"[-1,3,224,224]", "[-1,3,225,224]", "$.picture: 3 channels, 224 rows"},
    {"[-1,3,224,224]", "[-1,3]", "$.picture: input \"x\" has 2 dimensions"},
    {"[-1,3,224,224]", "[-1,1,1,1,1,1,1,1,1,1]", "$.inputs[0].shape: expected an array of at most"},
    {"\"name\":\"z\"", "\"name\":\"y\"", "$.outputs[1].name: \"y\" is there twice"},
    {"\"input\":\"x\"", "\"input\":\"q\"", "$.picture.input: the model has no input \"q\""},
    {"\"shorter\":256", "\"shorter\":200", "$.picture.shorter: expected at least 224"},
    {"\"fit\":\"crop\"", "\"fit\":\"pad\"", "$.picture.fit: expected stretch or crop"},
    {"\"scale\":255", "\"scale\":7", "$.picture.scale: expected 1 or 255"},
    {"[1.0,2.0,4.0]", "[1.0,0,4.0]", "$.picture.std[1]: expected a number > 0"},
    {"[1.0,2.0,4.0]", "[1.0,2.0]", "$.picture.std: expected 3 numbers, got 2"},
    {"[1.5,2.5,3.5]", "[1.5,true,3.5]", "$.picture.mean[1]: expected a number"},
    {"\"channels\":3", "\"channels\":2", "$.picture.channels: expected 1 or 3"},
    {"\"width\":224", "\"width\":99999", "$.picture.width"},
    {"\"layout\":\"NCHW\"", "\"layout\":\"CHWN\"", "$.picture.layout: expected NCHW or NHWC"},
    {"\"probabilities\"", "\"odds\"", "$.output_kind: expected tensor"},
    {",\"d\\u00f6g\"", "", "$.labels: 1 names, but output \"y\" has 2 values"},
    {"\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,2]",
     "\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,3,1,1]",
     "$.labels: 2 names, but output \"y\" has 3 values"},
    {"\"cat\"", "7", "$.labels: expected an array of strings"},
    {"\"is_batched\":true", "\"is_bached\":true", "did you mean is_batched"},
    {"\"executor\":\"onnx\",", "", "$.executor: missing"},
};

START_TEST(what_is_wrong_in_a_signature_is_named)
{
    struct weir_signature signature;
    const char *at = strstr(whole, wrong[_i].from);
    ck_assert_ptr_nonnull(at);
    char *text = weir_arena_printf(&arena, "%.*s%s%s", (int)(at - whole), whole, wrong[_i].to,
                                   at + strlen(wrong[_i].from));
    weir_status status = weir_signature_parse(text, strlen(text), "s", &arena, &signature, &err);
    ck_assert_int_eq(status, WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, wrong[_i].message) != NULL, "%s", err.message);
}

END_TEST

static weir_status make(const char *labels, const char *preprocess, struct weir_signature *out)
{
    struct serve_model *model;
    char why[EXECUTOR_WHY_BYTES];
    const struct signature_extras extras = {.labels = labels,
                                            .labels_len = labels != NULL ? strlen(labels) : 0,
                                            .preprocess = preprocess,
                                            .preprocess_len =
                                                preprocess != NULL ? strlen(preprocess) : 0};
    ck_assert_int_eq(executor_choose(path, NULL, &model, why, &err), WEIR_OK);
    weir_status status =
        weir_signature_make(model, WEIR_MODEL_FORMAT_WEIR, why, &extras, &arena, out, &err);
    serve_model_unload(model);
    return status;
}

START_TEST(a_net_file_says_itself_what_it_takes)
{
    struct weir_signature s;
    test_model_save(path, TEST_CLASSIFIER, 1);
    ck_assert_msg(make(NULL, NULL, &s) == WEIR_OK, "%s", err.message);
    ck_assert(s.is_batched && s.has_picture && s.output_kind == SIGNATURE_LOGITS);
    ck_assert_uint_eq(s.n_labels, 3);
    ck_assert_str_eq(s.labels[2], "eel");
    ck_assert_int_eq(s.picture.width, 6);
    ck_assert_int_eq(s.picture.height, 8);
    ck_assert(s.picture.mean[2] == 0.125 && s.picture.std[2] == 0.75 && s.picture.scale == 1);
    test_model_save(path, TEST_EMBEDDING, 1);
    ck_assert_int_eq(make(NULL, NULL, &s), WEIR_OK);
    ck_assert(s.output_kind == SIGNATURE_EMBEDDING && s.labels == NULL);
    ck_assert_int_eq(s.picture.channels, 1);
}

END_TEST

START_TEST(people_may_say_it_otherwise)
{
    struct weir_signature s;
    test_model_save(path, TEST_CLASSIFIER, 1);
    ck_assert_msg(make("a\r\nb\nc\n", "mean: 0.5\nfit: crop\noutput_kind: tensor\n", &s) == WEIR_OK,
                  "%s", err.message);
    ck_assert_str_eq(s.labels[0], "a");
    ck_assert_str_eq(s.labels[2], "c");
    ck_assert(s.picture.mean[0] == 0.5 && s.picture.mean[2] == 0.5 && s.picture.std[1] == 0.5);
    ck_assert(s.picture.is_crop && s.picture.shorter == 8 && s.output_kind == SIGNATURE_TENSOR);
    ck_assert_int_eq(make("[\"p\",\"q\",\"r\"]", NULL, &s), WEIR_OK);
    ck_assert_str_eq(s.labels[1], "q");
    ck_assert_int_eq(make("a\nb", NULL, &s), WEIR_ERR_INVALID);
    ck_assert_int_eq(make(NULL, "width: 7", &s), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "do not fit"));
    ck_assert_int_eq(make(NULL, "- 7", &s), WEIR_ERR_INVALID);
    ck_assert_int_eq(make(NULL, "colour: red", &s), WEIR_ERR_INVALID);
    ck_assert_int_eq(make(NULL, "output_kind: 7", &s), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_file_of_onnx_says_little)
{
    unsigned char bytes[512];
    struct weir_signature s;
    ck_assert_int_eq(weir_file_write(path, bytes, test_onnx_write("Neg", bytes), 0600, &err),
                     WEIR_OK);
    ck_assert_msg(make(NULL, NULL, &s) == WEIR_OK, "%s", err.message);
    ck_assert(!s.has_picture && s.labels == NULL && s.output_kind == SIGNATURE_TENSOR);
    ck_assert_int_eq(make("a\nb\nc\nd", NULL, &s), WEIR_OK);
    ck_assert_int_eq(s.output_kind, SIGNATURE_LOGITS);
    ck_assert_int_eq(make(NULL, "width: 4", &s), WEIR_ERR_INVALID);
}

END_TEST

/* Softmax over four values of zeros is 1/4 each; Neg of zeros is zeros. */
START_TEST(a_run_on_zeros_tells_probabilities_from_logits)
{
    static const char *const operators[] = {"Softmax", "Neg"};

    static const enum signature_output_kind kinds[] = {SIGNATURE_PROBABILITIES, SIGNATURE_LOGITS};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(operators); i++) {
        unsigned char bytes[512];
        struct weir_signature s;
        struct serve_model *model;
        const struct signature_extras extras = {.labels = "a\nb\nc\nd", .labels_len = 7};
        ck_assert_int_eq(
            weir_file_write(path, bytes, test_onnx_write(operators[i], bytes), 0600, &err),
            WEIR_OK);
        ck_assert_int_eq(executor_load("onnx", path, NULL, &model, &err), WEIR_OK);
        ck_assert_int_eq(
            weir_signature_make(model, WEIR_MODEL_FORMAT_ONNX, "so", &extras, &arena, &s, &err),
            WEIR_OK);
        ck_assert_msg(weir_signature_probe(model, &s, NULL, &arena, NULL, &err) == WEIR_OK, "%s",
                      err.message);
        ck_assert_int_eq(s.output_kind, kinds[i]);
        ck_assert(s.is_batched && s.outputs[0].dims[0] == -1 && s.outputs[0].dims[1] == 4);
        serve_model_unload(model);
    }
}

END_TEST

/* Shape gives 2 numbers for any batch; and 4 labels do not fit them. */
START_TEST(a_run_on_zeros_tells_whether_the_batch_is_one)
{
    unsigned char bytes[512];
    struct weir_signature s;
    struct serve_model *model;
    const struct signature_extras extras = {0};
    ck_assert_int_eq(weir_file_write(path, bytes, test_onnx_write("Shape", bytes), 0600, &err),
                     WEIR_OK);
    ck_assert_int_eq(executor_load("onnx", path, NULL, &model, &err), WEIR_OK);
    ck_assert_int_eq(
        weir_signature_make(model, WEIR_MODEL_FORMAT_ONNX, "so", &extras, &arena, &s, &err),
        WEIR_OK);
    ck_assert(s.is_batched);
    ck_assert_msg(weir_signature_probe(model, &s, NULL, &arena, NULL, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert(!s.is_batched && s.outputs[0].dtype == WEIR_DTYPE_INT64);
    ck_assert(s.outputs[0].rank == 1 && s.outputs[0].dims[0] == 2);
    serve_model_unload(model);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("signature");
    TCase *tcase = tcase_create("signature");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_signature_is_printed_as_it_was_read);
    tcase_add_loop_test(tcase, what_is_wrong_in_a_signature_is_named, 0, WEIR_ARRAY_LEN(wrong));
    tcase_add_test(tcase, a_net_file_says_itself_what_it_takes);
    tcase_add_test(tcase, people_may_say_it_otherwise);
    tcase_add_test(tcase, a_file_of_onnx_says_little);
    tcase_add_test(tcase, a_run_on_zeros_tells_probabilities_from_logits);
    tcase_add_test(tcase, a_run_on_zeros_tells_whether_the_batch_is_one);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
