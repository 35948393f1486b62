/* Models on the emulated GPU: what holds of every GPU (test_gpu.h), which device is chosen, and what
 * becomes of a model whose GPU fails. */
#include "emulated_backend.h"
#include "serve/model/test_gpu.h"

#include <unistd.h>

static void load_at(enum executor_device device, const struct weir_backend *gpu,
                    const char *visible, const char *place)
{
    struct weir_error err;
    struct serve_model *model;
    const struct executor_options options = {.n_threads = 1, .device = device, .gpu = gpu};
    if (visible != NULL) {
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    } else {
        unsetenv("CUDA_VISIBLE_DEVICES");
    }
    ck_assert_msg(executor_load("weir", test_gpu_path, &options, &model, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_str_eq(model->place, place);
    serve_model_unload(model);
}

START_TEST(a_model_is_on_the_gpu_that_the_process_was_given)
{
    const struct weir_backend *gpu = emulated_backend(), *missing = emulated_backend_missing();
    test_model_save(test_gpu_path, TEST_CLASSIFIER, 3);
    load_at(EXECUTOR_AUTO, gpu, NULL, "the processor");
    load_at(EXECUTOR_AUTO, gpu, "", "the processor");
    load_at(EXECUTOR_AUTO, gpu, "-1", "the processor");
    load_at(EXECUTOR_AUTO, gpu, "GPU-8f3a", "the GPU");
    load_at(EXECUTOR_AUTO, gpu, "0", "the GPU");
    load_at(EXECUTOR_AUTO, missing, "0", "the processor");
    load_at(EXECUTOR_PROCESSOR, gpu, "0", "the processor");
    load_at(EXECUTOR_GPU, gpu, NULL, "the GPU");
}

END_TEST

START_TEST(what_cannot_be_done_as_asked_is_refused_by_a_sentence)
{
    struct weir_error err;
    struct serve_model *model;
    enum executor_device device;
    unsigned char onnx[512];
    char why[EXECUTOR_WHY_BYTES];
    struct executor_options options = {.n_threads = 1,
                                       .device = EXECUTOR_GPU,
                                       .gpu = emulated_backend_missing(),
                                       .onnxruntime_path = "/nowhere/at/all"};
    test_model_save(test_gpu_path, TEST_CLASSIFIER, 3);
    ck_assert_int_eq(executor_load("weir", test_gpu_path, &options, &model, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "the driver is not there"));
    options = (struct executor_options){.n_threads = 1, .precision = "tf32"};
    ck_assert_int_eq(executor_load("weir", test_gpu_path, &options, &model, &err),
                     WEIR_ERR_UNSUPPORTED);
    size_t n = test_onnx_write("Neg", onnx);
    ck_assert_int_eq(weir_file_write(test_gpu_path, onnx, n, 0600, &err), WEIR_OK);
    ck_assert_int_eq(executor_load("onnx", test_gpu_path, &options, &model, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "not in tf32"));
    options = (struct executor_options){
        .n_threads = 1, .device = EXECUTOR_GPU, .onnxruntime_path = "/nowhere/at/all"};
    ck_assert_int_eq(executor_choose(test_gpu_path, &options, &model, why, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "not on a GPU") && strstr(err.message, "onnxruntime"), "%s",
                  err.message);
    ck_assert_int_eq(executor_device_parse("cuda", &device, &err), WEIR_ERR_INVALID);
    for (int i = 0; executor_device_words[i] != NULL; i++) {
        ck_assert_int_eq(executor_device_parse(executor_device_words[i], &device, &err), WEIR_OK);
        ck_assert_int_eq(device, i);
    }
}

END_TEST

START_TEST(a_gpu_that_fails_breaks_its_models_and_no_other)
{
    struct weir_error err;
    struct weir_tensor *out = NULL;
    const struct executor_options on_gpu = test_gpu_options(EXECUTOR_GPU, 4);
    const struct executor_options on_processor = test_gpu_options(EXECUTOR_PROCESSOR, 4);
    test_model_save(test_gpu_path, TEST_RESIDUAL, 81);
    struct serve_model *gpu = test_gpu_load(&on_gpu), *processor = test_gpu_load(&on_processor);
    test_gpu_compare(gpu, processor, 3, 82, test_gpu_tolerance);
    struct weir_tensor *in = test_gpu_input(gpu, 3, 83);
    emulated_set_failed(true);
    ck_assert_int_eq(serve_model_run(gpu, &in, &out, &err), WEIR_ERR_INTERNAL);
    ck_assert_msg(strstr(err.message, "the GPU failed") != NULL, "%s", err.message);
    ck_assert(gpu->is_broken);
    emulated_set_failed(false); /* what came through now would be of a GPU in an unknown state */
    ck_assert_int_eq(serve_model_run(gpu, &in, &out, &err), WEIR_ERR_INTERNAL);
    weir_tensor_release(test_gpu_run(processor, in));
    ck_assert(!processor->is_broken);
    weir_tensor_release(in);
    serve_model_unload(gpu);
    serve_model_unload(processor);
}

END_TEST

START_TEST(a_gpu_that_fails_while_a_model_is_loaded_is_said)
{
    struct weir_error err;
    struct serve_model *model;
    const struct executor_options options = test_gpu_options(EXECUTOR_GPU, 4);
    test_model_save(test_gpu_path, TEST_CLASSIFIER, 91);
    emulated_set_failed(true);
    ck_assert_int_eq(executor_load("weir", test_gpu_path, &options, &model, &err),
                     WEIR_ERR_INTERNAL);
    ck_assert_msg(strstr(err.message, "on the GPU failed") != NULL, "%s", err.message);
    emulated_set_failed(false);
    serve_model_unload(test_gpu_load(&options));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("executor on an emulated GPU");
    TCase *tcase = tcase_create("executor on an emulated GPU");
    test_gpu = emulated_backend();
    test_gpu_tolerance = 1e-5;
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, test_gpu_set_up, test_gpu_tear_down);
    TEST_GPU_CASES(tcase);
    tcase_add_test(tcase, a_model_is_on_the_gpu_that_the_process_was_given);
    tcase_add_test(tcase, what_cannot_be_done_as_asked_is_refused_by_a_sentence);
    tcase_add_test(tcase, a_gpu_that_fails_breaks_its_models_and_no_other);
    tcase_add_test(tcase, a_gpu_that_fails_while_a_model_is_loaded_is_said);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
