/*
 * ONNX's own test cases: models, inputs, and the outputs that ONNX's reference implementation gives.
 * Cases that need what is not there are named in `missing`; each must be refused as such.
 */
#include "onnx/onnx.h"

#include "model.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/test_main.h"
#include "tensor/convert.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The runner's own tolerances (onnx/backend/test/runner). */
#define RELATIVE 1e-3
#define ABSOLUTE 1e-7

#define PORTS_MAX   16
#define FILE_MAX    ((size_t)64 << 20)
#define LEAST_CASES 600
#define WHY_BYTES   (WEIR_ERROR_MESSAGE_BYTES + 64)

static const char *const missing[] = {
    "test_identity_sequence",            /* sequences */
    "test_image_decoder_decode_bmp_rgb", /* encoded pictures inside of models */
    "test_image_decoder_decode_jpeg2k_rgb",
    "test_image_decoder_decode_jpeg_grayscale",
    "test_image_decoder_decode_jpeg_rgb",
    "test_image_decoder_decode_pnm_rgb",
    "test_image_decoder_decode_tiff_rgb",
};

/* Cases whose expected outputs are those of numpy's generator. ONNX leaves the generator to who
 * implements Dropout, and another one is here: the cases must run, and come out otherwise.
 * training_test.c says what holds instead. */
static const char *const drawn[] = {
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_expected(const char *name, bool is_right, weir_status status)
{
    if (is_one_of(name, missing, WEIR_ARRAY_LEN(missing))) {
        return status == WEIR_ERR_UNSUPPORTED;
    }
    if (is_one_of(name, drawn, WEIR_ARRAY_LEN(drawn))) {
        return status == WEIR_OK && !is_right;
    }
    return is_right;
}

/* ---- files ------------------------------------------------------------------------------------ */

static bool read_file(struct weir_arena *arena, const char *path, char **data, size_t *n)
{
    return weir_path_exists(path) &&
           weir_file_read(path, FILE_MAX, arena, data, n, NULL) == WEIR_OK;
}

/* Tensors input_0.pb, input_1.pb … of a folder. */
static size_t read_tensors(struct weir_arena *arena, const char *folder, const char *kind,
                           struct weir_tensor **out)
{
    size_t n = 0;
    for (; n < PORTS_MAX; n++) {
        char path[1024], *data;
        size_t len;
        struct weir_error err;
        (void)snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, kind, n);
        if (!read_file(arena, path, &data, &len)) {
            break;
        }
        ck_assert_msg(onnx_tensor_read(data, len, &out[n], &err) == WEIR_OK, "%s: %s", path,
                      err.message);
    }
    return n;
}

static void release(struct weir_tensor **tensors)
{
    for (size_t i = 0; i < PORTS_MAX; i++) {
        weir_tensor_release(tensors[i]);
    }
}

/* ---- comparing -------------------------------------------------------------------------------- */

static bool are_close(double got, double expected)
{
    return isnan(expected)
               ? isnan(got)
               : got == expected || fabs(got - expected) <= ABSOLUTE + RELATIVE * fabs(expected);
}

static bool is_same_text(const struct weir_tensor *a, const struct weir_tensor *b, size_t i)
{
    const struct weir_tensor_string *x = a->data, *y = b->data;
    return x[i].len == y[i].len && (x[i].len == 0 || memcmp(x[i].bytes, y[i].bytes, x[i].len) == 0);
}

static bool is_same(const struct weir_tensor *got, const struct weir_tensor *expected,
                    char why[WHY_BYTES])
{
    char a[WEIR_TENSOR_TEXT_BYTES], b[WEIR_TENSOR_TEXT_BYTES];
    bool fits = got->dtype == expected->dtype && got->rank == expected->rank &&
                memcmp(got->dims, expected->dims, (size_t)got->rank * sizeof *got->dims) == 0;
    if (!fits) {
        (void)snprintf(why, WHY_BYTES, "is %s of %s, expected %s of %s",
                       weir_tensor_dims_text(got->rank, got->dims, a), weir_dtype_name(got->dtype),
                       weir_tensor_dims_text(expected->rank, expected->dims, b),
                       weir_dtype_name(expected->dtype));
        return false;
    }
    size_t elem_bytes = weir_dtype_bytes(got->dtype);
    for (size_t i = 0; i < got->n_elems; i++) {
        double x = 0, y = 0;
        if (got->dtype == WEIR_DTYPE_STRING) {
            fits = is_same_text(got, expected, i);
        } else {
            weir_elems_to_f64(got->dtype, (char *)got->data + i * elem_bytes, &x, 1);
            weir_elems_to_f64(got->dtype, (char *)expected->data + i * elem_bytes, &y, 1);
            fits = weir_dtype_class(got->dtype) == WEIR_DTYPE_IS_FLOAT
                       ? are_close(x, y)
                       : memcmp((char *)got->data + i * elem_bytes,
                                (char *)expected->data + i * elem_bytes, elem_bytes) == 0;
        }
        if (!fits) {
            (void)snprintf(why, WHY_BYTES, "element %zu of %zu is %.9g, expected %.9g", i,
                           got->n_elems, x, y);
            return false;
        }
    }
    return true;
}

/* ---- one case --------------------------------------------------------------------------------- */

static bool play_set(struct weir_onnx *onnx, const char *folder, weir_status *out_status,
                     char why[WHY_BYTES])
{
    struct weir_tensor *in[PORTS_MAX] = {NULL}, *expected[PORTS_MAX] = {NULL};
    struct weir_tensor *out[PORTS_MAX] = {NULL};
    struct weir_arena arena;
    struct weir_error err;
    size_t n_in, n_out;
    weir_arena_init(&arena, 0);
    size_t n_given = read_tensors(&arena, folder, "input", in);
    size_t n_expected = read_tensors(&arena, folder, "output", expected);
    (void)weir_onnx_inputs(onnx, &n_in);
    (void)weir_onnx_outputs(onnx, &n_out);
    bool is_right = n_given >= n_in && n_expected <= n_out;
    (void)snprintf(why, WHY_BYTES, "%zu inputs of %zu, %zu outputs of %zu", n_given, n_in,
                   n_expected, n_out);
    *out_status = is_right ? weir_onnx_run(onnx, in, out, &err) : WEIR_OK;
    if (*out_status != WEIR_OK) {
        (void)snprintf(why, WHY_BYTES, "%s", err.message);
        is_right = false;
    }
    for (size_t i = 0; is_right && i < n_expected; i++) {
        is_right = is_same(out[i], expected[i], why);
    }
    release(in);
    release(out);
    release(expected);
    weir_arena_fini(&arena);
    return is_right;
}

/** Loads the case's model and plays its sets, each of them twice: the second run of a shape repeats
 *  what the first has planned. */
static bool play_case(const char *folder, bool only_interprets, weir_status *out_status,
                      char why[WHY_BYTES])
{
    const struct weir_onnx_limits limits = {.n_threads = 2, .only_interprets = only_interprets};
    char path[1100], *data;
    size_t n;
    struct weir_arena arena;
    struct weir_onnx *onnx;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
    ck_assert_msg(read_file(&arena, path, &data, &n), "%s", path);
    *out_status = weir_onnx_load(data, n, &limits, &onnx, &err);
    weir_arena_fini(&arena);
    if (*out_status != WEIR_OK) {
        (void)snprintf(why, WHY_BYTES, "%s", err.message);
        return false;
    }
    bool is_right = true;
    for (int set = 0; is_right; set++) {
        (void)snprintf(path, sizeof path, "%s/test_data_set_%d", folder, set);
        if (!weir_path_is_dir(path)) {
            ck_assert_msg(set > 0, "%s has no data", folder);
            break;
        }
        is_right = play_set(onnx, path, out_status, why) && play_set(onnx, path, out_status, why);
    }
    weir_onnx_free(onnx);
    return is_right;
}

/* ---- all cases -------------------------------------------------------------------------------- */

static const char *const groups[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

static int play_group(const char *root, const char *group, bool only_interprets, int *out_n)
{
    char folder[512], path[1024], why[WHY_BYTES];
    int n_wrong = 0;
    (void)snprintf(folder, sizeof folder, "%s/onnx/%s", root, group);
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        weir_status status = WEIR_OK;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.') {
            continue;
        }
        ++*out_n;
        bool is_right = play_case(path, only_interprets, &status, why);
        if (!is_expected(entry->d_name, is_right, status)) {
            n_wrong++;
            printf("%s/%s: %s\n", group, entry->d_name, why);
        }
    }
    (void)closedir(dir);
    return n_wrong;
}

static void play_all(bool only_interprets)
{
    int n = 0, n_wrong = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(groups); i++) {
        n_wrong += play_group(getenv("WEIR_SHARED_DATA"), groups[i], only_interprets, &n);
    }
    printf("%d cases, %d wrong, %zu refused, %zu with other random numbers\n", n, n_wrong,
           WEIR_ARRAY_LEN(missing), WEIR_ARRAY_LEN(drawn));
    (void)fflush(stdout); /* a failed check ends the process */
    ck_assert_int_ge(n, LEAST_CASES);
    ck_assert_int_eq(n_wrong, 0);
}

START_TEST(onnxs_own_cases_come_out_as_there)
{
    play_all(false);
}

END_TEST

START_TEST(onnxs_own_cases_are_interpreted_as_there)
{
    play_all(true);
}

END_TEST

/* Inputs of the light models, as ONNX's runner makes them: 0, 1/n, 2/n … */
static struct weir_tensor *count_up(const struct weir_onnx_port *port)
{
    struct weir_tensor *x;
    struct weir_error err;
    ck_assert_msg(weir_tensor_create(port->dtype, port->rank, port->dims, &x, &err) == WEIR_OK,
                  "%s", err.message);
    for (size_t i = 0; i < x->n_elems; i++) {
        ((float *)x->data)[i] = (float)((double)i / (double)x->n_elems);
    }
    return x;
}

static void play_light(const char *root, const char *name)
{
    const struct weir_onnx_limits limits = {.n_threads = 2};
    char path[512], *data, why[WHY_BYTES];
    size_t n;
    struct weir_arena arena;
    struct weir_onnx *onnx;
    struct weir_error err;
    struct weir_tensor *expected, *out;
    weir_arena_init(&arena, 0);
    (void)snprintf(path, sizeof path, "%s/onnx/light/light_%s.onnx", root, name);
    ck_assert_msg(read_file(&arena, path, &data, &n), "%s", path);
    ck_assert_msg(weir_onnx_load(data, n, &limits, &onnx, &err) == WEIR_OK, "%s", err.message);
    (void)snprintf(path, sizeof path, "%s/onnx/light/light_%s_output_0.pb", root, name);
    ck_assert_msg(read_file(&arena, path, &data, &n), "%s", path);
    ck_assert_int_eq(onnx_tensor_read(data, n, &expected, &err), WEIR_OK);
    struct weir_tensor *x = count_up(weir_onnx_inputs(onnx, &n));
    ck_assert_msg(weir_onnx_run(onnx, &x, &out, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(is_same(out, expected, why), "%s: %s", name, why);
    weir_tensor_release(x);
    weir_tensor_release(out);
    weir_tensor_release(expected);
    weir_onnx_free(onnx);
    weir_arena_fini(&arena);
}

static const char *const light[] = {"bvlc_alexnet", "inception_v2", "resnet50",
                                    "squeezenet",   "vgg19",        "zfnet512"};

START_TEST(light_models_come_out_as_there)
{
    play_light(getenv("WEIR_SHARED_DATA"), light[_i]);
}

END_TEST

int main(void)
{
    const char *root = getenv("WEIR_SHARED_DATA");
    char path[512];
    (void)snprintf(path, sizeof path, "%s/onnx/node", root != NULL ? root : "");
    if (!weir_path_is_dir(path)) {
        printf("skipped: no ONNX cases under WEIR_SHARED_DATA\n");
        return 77;
    }
    Suite *suite = suite_create("conformance");
    TCase *tests = tcase_create("conformance");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, onnxs_own_cases_come_out_as_there);
    tcase_add_test(tests, onnxs_own_cases_are_interpreted_as_there);
    tcase_add_loop_test(tests, light_models_come_out_as_there, 0, (int)WEIR_ARRAY_LEN(light));
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
