/* What of the GPU's libraries can be looked at without a GPU. Where they are not installed, the tests
 * pass over them. */
#include "conv_graph.h"
#include "gpu_modules.h"

#include "base/file.h"
#include "base/test_main.h"

#include <dirent.h>
#include <string.h>

/* A GPU as cuDNN describes it (an H100): with it, graphs are looked at where there is none. */
static const char h100[] =
    "{\"version\":1,\"deviceVer\":900,\"driverVer\":13000,\"multiProcessorCount\":132,"
    "\"cudaDeviceId\":0,\"isTccDriver\":0,\"l2CacheSize\":52428800,\"maxCtasPerSM\":32,"
    "\"maxRegistersPerSM\":65536,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"oversizedSharedMemoryPerBlock\":0,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"memClockRateKHz\":2619000,"
    "\"memoryBusWidth\":5120,\"pciDeviceId\":9008,\"regsPerBlock\":65536,"
    "\"reservedSharedMemoryPerBlock\":1024,\"smClockRateKHz\":1980000,\"supportCoopLaunch\":1,"
    "\"totalGlobalMem\":85000000000,\"warpSize\":32,\"deviceName\":\"NVIDIA H100\","
    "\"smCountOrigin\":0,\"maxGridSize\":[2147483647,65535,65535],"
    "\"maxBlockSize\":[1024,1024,64]}";

/* False under sanitizers too, whose dlopen does not find what lies beside a library. */
static bool has_nvrtc(struct nvrtc *out)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    *out = (struct nvrtc){0};
    return false;
#else
    return library_load_nvrtc(out, NULL) == WEIR_OK;
#endif
}

static char folder[WEIR_DIR_TEMPORARY_BYTES];

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("gpu-cache", folder, NULL), WEIR_OK);
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(folder, NULL), WEIR_OK);
}

/* ---- loading --------------------------------------------------------------------------------- */

START_TEST(a_missing_library_is_named_with_what_to_do)
{
    struct cuda_driver driver;
    struct weir_error err = {.status = WEIR_OK};
    if (library_load_driver(&driver, &err) == WEIR_OK) {
        return;
    }
    ck_assert_int_eq(err.status, WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "libcuda.so.1"));
    ck_assert_ptr_nonnull(strstr(err.message, "WEIR_CUDA_LIBRARIES"));
    ck_assert_ptr_nonnull(strstr(err.message, "install"));
}

END_TEST

START_TEST(a_library_of_a_named_folder_is_not_taken_for_what_it_is_not)
{
    char path[WEIR_DIR_TEMPORARY_BYTES + 32];
    struct nvrtc nvrtc;
    struct weir_error err = {.status = WEIR_OK};
    (void)snprintf(path, sizeof path, "%s/libnvrtc.so.13", folder);
    ck_assert_int_eq(weir_file_write(path, "no library", 10, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(setenv("WEIR_CUDA_LIBRARIES", folder, 1), 0);
    if (library_load_nvrtc(&nvrtc, &err) != WEIR_OK) {
        ck_assert_int_eq(err.status, WEIR_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.message, path));
    }
}

END_TEST

START_TEST(nccl_is_found_in_a_named_folder_and_must_be_young_enough)
{
    struct nccl nccl;
    struct weir_error err = {.status = WEIR_OK};
    unsetenv("WEIR_CUDA_LIBRARIES");
    if (library_load_nccl(&nccl, &err) != WEIR_OK) {
        ck_assert_int_eq(err.status, WEIR_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.message, "libnccl.so.2"));
        ck_assert_ptr_nonnull(strstr(err.message, "WEIR_CUDA_LIBRARIES"));
    }
    ck_assert_int_eq(setenv("WEIR_CUDA_LIBRARIES", "/nowhere:" FAKE_NCCL_FOLDER, 1), 0);
    weir_status status = library_load_nccl(&nccl, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(nccl.error_string(ncclRemoteError), "remote process exited");
    ck_assert_int_eq(setenv("FAKE_NCCL_VERSION", "21399", 1), 0);
    ck_assert_int_eq(library_load_nccl(&nccl, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "21399"));
    ck_assert_ptr_nonnull(strstr(err.message, "2.14"));
    unsetenv("FAKE_NCCL_VERSION");
}

END_TEST

/* ---- modules --------------------------------------------------------------------------------- */

static const char *const header = "#define VALUE 3\n";
static const char *const header_name = "kernels.h";

static struct module_source source_of(const char *code)
{
    return (struct module_source){code, &header, &header_name, 1, 90, NULL};
}

static const char good[] = "#include \"kernels.h\"\n"
                           "extern \"C\" __global__ void k(float *x) { x[threadIdx.x] = VALUE; }\n";

static int n_cached(void)
{
    char path[WEIR_DIR_TEMPORARY_BYTES + 8];
    int n = 0;
    (void)snprintf(path, sizeof path, "%s/weir", folder);
    DIR *dir = opendir(path);
    for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        n += strstr(entry->d_name, ".cubin") != NULL;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

START_TEST(a_module_is_compiled_once)
{
    struct nvrtc nvrtc;
    void *image = NULL, *again = NULL;
    size_t n = 0, n_again = 0;
    struct module_source source = source_of(good), bf16 = source;
    if (!has_nvrtc(&nvrtc)) {
        return;
    }
    ck_assert_int_eq(module_image(NULL, &source, true, &image, &n, NULL), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(module_image(&nvrtc, &source, true, &image, &n, NULL), WEIR_OK);
    ck_assert_int_eq(memcmp(image, "\177ELF", 4), 0);
    ck_assert_int_eq(n_cached(), 1);
    /* Without NVRTC now: it comes from the cache. */
    ck_assert_int_eq(module_image(NULL, &source, true, &again, &n_again, NULL), WEIR_OK);
    ck_assert_uint_eq(n, n_again);
    ck_assert_int_eq(memcmp(image, again, n), 0);
    bf16.option = "-DWEIR_GPU_BF16";
    free(again);
    ck_assert_int_eq(module_image(NULL, &bf16, true, &again, &n_again, NULL), WEIR_ERR_NOT_FOUND);
    free(image);
}

END_TEST

START_TEST(a_module_that_does_not_compile_says_why)
{
    struct nvrtc nvrtc;
    void *image = NULL;
    size_t n = 0;
    struct weir_error err = {.status = WEIR_OK};
    struct module_source source = source_of("extern \"C\" __global__ void k() { nonsense; }\n");
    if (!has_nvrtc(&nvrtc)) {
        return;
    }
    ck_assert_int_eq(module_image(&nvrtc, &source, true, &image, &n, &err), WEIR_ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(err.message, "nonsense"));
    ck_assert_int_eq(n_cached(), 0);
}

END_TEST

static const char *const kernel_names[] = {
#define GPU_KERNEL(name) #name,
#include "kernels.def"
#undef GPU_KERNEL
};

START_TEST(all_kernels_are_in_the_modules_of_this_program)
{
    struct nvrtc nvrtc;
    if (!has_nvrtc(&nvrtc)) {
        return;
    }
    static const char *const options[] = {NULL, "-DWEIR_GPU_BF16", "-DWEIR_GPU_F16"};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(options); i++) {
        struct module_source source = module_source_of_kernels(90, options[i]);
        struct weir_error err = {.status = WEIR_OK};
        void *image = NULL;
        size_t n = 0;
        ck_assert_msg(module_image(&nvrtc, &source, true, &image, &n, &err) == WEIR_OK, "%s",
                      err.message);
        for (size_t k = 0; k < WEIR_ARRAY_LEN(kernel_names); k++) {
            char section[96];
            int len = snprintf(section, sizeof section, ".text.%s", kernel_names[k]);
            ck_assert_msg(memmem(image, n, section, (size_t)len + 1) != NULL, "no kernel %s",
                          kernel_names[k]);
        }
        free(image);
    }
}

END_TEST

/* ---- convolutions ---------------------------------------------------------------------------- */

/* False: cuDNN is not there, or too old to do without a GPU. */
static bool cudnn_of(struct cudnn *out, struct conv_device *out_device)
{
    struct nvrtc nvrtc;
    struct cuda_driver driver;
    cudnn_descriptor properties = NULL;
    if (!has_nvrtc(&nvrtc) || library_load_driver(&driver, NULL) != WEIR_OK ||
        library_load_cudnn(out, NULL) != WEIR_OK || out->version() < 90800 ||
        out->descriptor_create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties) !=
            CUDNN_STATUS_SUCCESS ||
        out->set(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 sizeof h100 - 1, h100) != CUDNN_STATUS_SUCCESS ||
        out->finalize(properties) != CUDNN_STATUS_SUCCESS) {
        return false;
    }
    *out_device = (struct conv_device){.dnn = out, .device_properties = properties};
    return true;
}

static void must_have_engines(const struct conv_device *device, const struct gpu_conv_shape *shape)
{
    struct conv_graph graph;
    struct conv_configs configs;
    ck_assert_int_eq(conv_graph_build(device, shape, &graph), WEIR_OK);
    weir_status status = conv_graph_configs(&graph, CUDNN_HEUR_MODE_A, shape->type, &configs);
    if (status != WEIR_OK) {
        status = conv_graph_configs(&graph, CUDNN_HEUR_MODE_FALLBACK, shape->type, &configs);
    }
    ck_assert_msg(status == WEIR_OK, "no engine: direction %d, type %d, %d>%d, k%d, %d%d%d%d",
                  (int)shape->direction, (int)shape->type, (int)shape->c, (int)shape->k,
                  (int)shape->kernel_h, shape->adds, shape->has_bias, shape->has_residual,
                  shape->has_relu);
    conv_configs_free(device->dnn, &configs);
    conv_graph_free(&graph);
}

/* All that a direction may be asked for beside. */
static void must_have_engines_in_all_forms(const struct conv_device *device,
                                           struct gpu_conv_shape shape)
{
    for (int form = 0; form < 8; form++) {
        shape.direction = GPU_CONV_FORWARD;
        shape.has_bias = (form & 1) != 0;
        shape.has_residual = (form & 2) != 0;
        shape.has_relu = (form & 4) != 0;
        must_have_engines(device, &shape);
    }
    shape.has_bias = shape.has_residual = shape.has_relu = false;
    shape.direction = GPU_CONV_WEIGHT_GRADIENT;
    must_have_engines(device, &shape);
    shape.direction = GPU_CONV_INPUT_GRADIENT;
    must_have_engines(device, &shape);
    shape.adds = true;
    must_have_engines(device, &shape);
}

START_TEST(every_form_of_a_convolution_has_engines)
{
    static const struct {
        int n, c, size, k, kernel, stride, pad, dilation, groups;
    } cases[] = {
        {64, 64, 56, 64, 3, 1, 1, 1, 1},   {64, 256, 56, 64, 1, 1, 0, 1, 1},
        {64, 8, 224, 64, 7, 2, 3, 1, 1},   {64, 256, 56, 512, 1, 2, 0, 1, 1},
        {64, 128, 28, 128, 3, 2, 1, 1, 1}, {64, 512, 1, 1000, 1, 1, 0, 1, 1},
        {8, 32, 17, 40, 3, 1, 2, 2, 1},    {64, 128, 56, 128, 3, 1, 1, 1, 32},
    };
    struct cudnn dnn;
    struct conv_device device;
    if (!cudnn_of(&dnn, &device)) {
        return;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        int out =
            (cases[i].size + 2 * cases[i].pad - cases[i].dilation * (cases[i].kernel - 1) - 1) /
                cases[i].stride +
            1;
        struct gpu_conv_shape shape = {
            .n = cases[i].n,
            .c = cases[i].c,
            .h = cases[i].size,
            .w = cases[i].size,
            .k = cases[i].k,
            .out_h = out,
            .out_w = out,
            .kernel_h = cases[i].kernel,
            .kernel_w = cases[i].kernel,
            .stride = cases[i].stride,
            .pad_h = cases[i].pad,
            .pad_w = cases[i].pad,
            .dilation = cases[i].dilation,
            .groups = cases[i].groups,
        };
        for (int type = 0; type < GPU_TYPE_COUNT; type++) {
            shape.type = (enum gpu_type)type;
            must_have_engines_in_all_forms(&device, shape);
        }
    }
    (void)dnn.descriptor_destroy(device.device_properties);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_missing_library_is_named_with_what_to_do,
        a_library_of_a_named_folder_is_not_taken_for_what_it_is_not,
        nccl_is_found_in_a_named_folder_and_must_be_young_enough,
        a_module_is_compiled_once,
        a_module_that_does_not_compile_says_why,
        all_kernels_are_in_the_modules_of_this_program,
        every_form_of_a_convolution_has_engines,
    };
    return weir_test_run(
        weir_test_suite_with("library", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
