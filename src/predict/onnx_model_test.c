/*
 * A model from outside: an ONNX file y = flatten(x) · W with known weights, run as a signature says.
 * The oracle computes the same from the picture's bytes, in double precision.
 */
#include "predict/model.h"

#include "base/buf.h"
#include "base/protobuf.h"
#include "base/rng.h"
#include "predict/test_support.h"
#include "serve/executor.h"

#include <math.h>
#include <string.h>

#define N_PIXELS (TEST_SIDE * TEST_SIDE)
#define N_OUT    3

static struct test_dir dir;
static struct weir_arena arena;
static struct weir_error err;
static float weights[N_PIXELS][N_OUT];

/* ---- the file: fields by their numbers in onnx.proto ------------------------------------------ */

static void put_node(struct weir_buf *buf, const char *type, const char *a, const char *b,
                     const char *out)
{
    size_t node = weir_protobuf_begin(buf, 1);
    weir_protobuf_put_text(buf, 1, a);
    if (b != NULL) {
        weir_protobuf_put_text(buf, 1, b);
    }
    weir_protobuf_put_text(buf, 2, out);
    weir_protobuf_put_text(buf, 4, type);
    weir_protobuf_end(buf, node);
}

/* A ValueInfo of floats; the first dimension is free. */
static void put_port(struct weir_buf *buf, uint32_t field, const char *name, size_t n_dims,
                     const uint64_t *dims)
{
    size_t value = weir_protobuf_begin(buf, field);
    weir_protobuf_put_text(buf, 1, name);
    size_t type = weir_protobuf_begin(buf, 2), tensor = weir_protobuf_begin(buf, 1);
    weir_protobuf_put_varint(buf, 1, 1); /* FLOAT */
    size_t shape = weir_protobuf_begin(buf, 2);
    for (size_t i = 0; i < n_dims; i++) {
        size_t dim = weir_protobuf_begin(buf, 1);
        if (i == 0) {
            weir_protobuf_put_text(buf, 2, "N");
        } else {
            weir_protobuf_put_varint(buf, 1, dims[i]);
        }
        weir_protobuf_end(buf, dim);
    }
    weir_protobuf_end(buf, shape);
    weir_protobuf_end(buf, tensor);
    weir_protobuf_end(buf, type);
    weir_protobuf_end(buf, value);
}

static const char *write_model(void)
{
    const char *path = weir_arena_strdup(&arena, test_path(&dir, "model.onnx"));
    struct weir_buf buf;
    struct weir_rng rng;
    weir_rng_init(&rng, 7, 0);
    for (size_t i = 0; i < N_PIXELS * N_OUT; i++) {
        (&weights[0][0])[i] = (float)(0.05 * weir_rng_normal(&rng));
    }
    weir_buf_init(&buf, 1 << 20);
    weir_protobuf_put_varint(&buf, 1, 7); /* ir_version */
    size_t graph = weir_protobuf_begin(&buf, 7);
    put_node(&buf, "Flatten", "x", NULL, "f");
    put_node(&buf, "MatMul", "f", "w", "y");
    weir_protobuf_put_text(&buf, 2, "g");
    size_t w = weir_protobuf_begin(&buf, 5);
    weir_protobuf_put_varint(&buf, 1, N_PIXELS);
    weir_protobuf_put_varint(&buf, 1, N_OUT);
    weir_protobuf_put_varint(&buf, 2, 1); /* FLOAT */
    weir_protobuf_put_text(&buf, 8, "w");
    weir_protobuf_put_bytes(&buf, 9, weights, sizeof weights);
    weir_protobuf_end(&buf, w);
    put_port(&buf, 11, "x", 4, (const uint64_t[]){0, 1, TEST_SIDE, TEST_SIDE});
    put_port(&buf, 12, "y", 2, (const uint64_t[]){0, N_OUT});
    weir_protobuf_end(&buf, graph);
    size_t opset = weir_protobuf_begin(&buf, 8);
    weir_protobuf_put_varint(&buf, 2, 13);
    weir_protobuf_end(&buf, opset);
    ck_assert_int_eq(buf.status, WEIR_OK);
    test_write_file(path, buf.data, buf.len);
    weir_buf_fini(&buf);
    return path;
}

/* As the server finds it when somebody pushes the file with these texts. */
static json_t *signature_of(const char *path, const char *labels, const char *preprocess)
{
    struct serve_model *model;
    struct weir_signature made;
    char why[EXECUTOR_WHY_BYTES];
    const struct signature_extras extras = {.labels = labels,
                                            .labels_len = labels != NULL ? strlen(labels) : 0,
                                            .preprocess = preprocess,
                                            .preprocess_len = strlen(preprocess)};
    ck_assert_msg(executor_choose(path, NULL, &model, why, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(weir_signature_make(model, WEIR_MODEL_FORMAT_ONNX, why, &extras, &arena, &made,
                                      &err) == WEIR_OK,
                  "%s", err.message);
    serve_model_unload(model);
    return weir_signature_json(&made);
}

/* Pixels of test_picture: the last of its bytes. */
static double pixel(const char *bytes, size_t len, size_t y, size_t x, bool is_mirrored)
{
    size_t at = y * TEST_SIDE + (is_mirrored ? TEST_SIDE - 1 - x : x);
    return (unsigned char)bytes[len - N_PIXELS + at] / 255.0;
}

static void logits_of(const char *bytes, size_t len, bool is_mirrored, double out[N_OUT])
{
    for (size_t k = 0; k < N_OUT; k++) {
        out[k] = 0;
        for (size_t i = 0; i < N_PIXELS; i++) {
            double value =
                (pixel(bytes, len, i / TEST_SIDE, i % TEST_SIDE, is_mirrored) - 0.4) / 0.2;
            out[k] += value * (double)weights[i][k];
        }
    }
}

static const char rule[] = "{mean: 0.4, std: 0.2, scale: 1}";

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    test_dir_make(&dir);
}

static void tear_down(void)
{
    test_dir_drop(&dir);
    weir_arena_fini(&arena);
}

static struct model *load(const char *path, const json_t *signature, size_t batch)
{
    struct model *model;
    const struct model_name name = {"sorter", "id", "blob", 1, NULL, signature};
    ck_assert_msg(model_load(path, &name, batch, &model, &err) == WEIR_OK, "%s", err.message);
    return model;
}

static size_t put(struct model *model, size_t i, int i_picture, char bytes[1024])
{
    struct weir_image image = {0};
    double brightness, sum = 0;
    size_t len = test_picture(i_picture, 3, bytes);
    ck_assert_int_eq(weir_image_decode_within(bytes, len, &weir_image_limits_frame, &image, &err),
                     WEIR_OK);
    ck_assert_msg(model_put(model, i, &image, &brightness, &err) == WEIR_OK, "%s", err.message);
    for (size_t k = 0; k < N_PIXELS; k++) {
        sum += pixel(bytes, len, k / TEST_SIDE, k % TEST_SIDE, false);
    }
    ck_assert_double_eq_tol(brightness, sum / N_PIXELS, 1e-6);
    weir_image_fini(&image);
    return len;
}

START_TEST(logits_become_probabilities_of_the_pushed_labels)
{
    const char *path = write_model();
    json_t *signature = signature_of(path, "a\nb\nc\n", rule);
    struct model *model = load(path, signature, 1);
    ck_assert_int_eq(model->gives, WEIR_STAGE_MODEL_CLASSIFIES);
    ck_assert_uint_eq(model->dim, N_OUT);
    ck_assert_str_eq(model->labels[2], "c");
    for (int p = 0; p < 20; p++) {
        char bytes[1024];
        double logits[N_OUT], sum = 0;
        const float *found;
        size_t len = put(model, 0, p, bytes);
        ck_assert_int_eq(model_run(model, 1, &found, &err), WEIR_OK);
        logits_of(bytes, len, false, logits);
        for (size_t k = 0; k < N_OUT; k++) {
            sum += exp(logits[k]);
        }
        for (size_t k = 0; k < N_OUT; k++) {
            ck_assert_double_eq_tol((double)found[k], exp(logits[k]) / sum, 1e-5);
        }
    }
    model_unref(model);
    json_decref(signature);
}

END_TEST

START_TEST(embeddings_are_unit_vectors_of_both_sides_whatever_the_batch)
{
    const char *path = write_model();
    json_t *signature =
        signature_of(path, NULL, "{mean: 0.4, std: 0.2, scale: 1, output_kind: embedding}");
    struct model *model = load(path, signature, 4);
    const float *found;
    ck_assert_int_eq(model->gives, WEIR_STAGE_MODEL_EMBEDS);
    for (int n = 1; n <= 4; n++) {
        char bytes[4][1024];
        size_t len = 0;
        for (int i = 0; i < n; i++) {
            len = put(model, (size_t)i, 10 * n + i, bytes[i]);
        }
        ck_assert_int_eq(model_run(model, (size_t)n, &found, &err), WEIR_OK);
        for (int i = 0; i < n; i++) {
            double a[N_OUT], b[N_OUT], squares = 0;
            logits_of(bytes[i], len, false, a);
            logits_of(bytes[i], len, true, b);
            for (size_t k = 0; k < N_OUT; k++) {
                squares += (a[k] + b[k]) * (a[k] + b[k]);
            }
            for (size_t k = 0; k < N_OUT; k++) {
                ck_assert_double_eq_tol((double)found[(size_t)i * N_OUT + k],
                                        (a[k] + b[k]) / sqrt(squares), 1e-4);
            }
        }
    }
    model_unref(model);
    json_decref(signature);
}

END_TEST

/* ---- what cannot serve ------------------------------------------------------------------------ */

static void refuse(const char *path, const json_t *signature, weir_status wanted, const char *said)
{
    struct model *model;
    const struct model_name name = {"sorter", "id", "blob", 4, NULL, signature};
    weir_status status = model_load(path, &name, 1, &model, &err);
    ck_assert_msg(status == wanted, "%d: %s", status, err.message);
    ck_assert_msg(strstr(err.message, said) != NULL, "%s", err.message);
}

START_TEST(a_model_that_cannot_decide_about_pictures_says_why)
{
    const char *path = write_model();
    refuse(path, NULL, WEIR_ERR_UNSUPPORTED, "model sorter version 4 takes no picture");
    json_t *signature = signature_of(path, NULL, rule);
    refuse(path, signature, WEIR_ERR_UNSUPPORTED, "gives numbers that its signature does not");
    json_object_set_new(signature, "output_kind", json_string("logits"));
    refuse(path, signature, WEIR_ERR_UNSUPPORTED, "has no labels: push it with --labels");
    json_decref(signature);
    signature = signature_of(path, "a\nb\nc", rule);
    json_t *labels = json_object_get(signature, "labels");
    json_array_set_new(labels, 1, json_string("\x1b[31m"));
    refuse(path, signature, WEIR_ERR_UNSUPPORTED, "label 1 is empty, longer than 256");
    json_object_set_new(signature, "executor", json_string("torch"));
    refuse(path, signature, WEIR_ERR_INVALID, "torch");
    json_decref(signature);
}

END_TEST

/* A signature of another model: its picture does not fit the input, and nothing is run with it. */
START_TEST(a_signature_of_another_model_is_refused)
{
    const char *path = write_model();
    json_t *signature = signature_of(path, "a\nb\nc", rule);
    json_object_set_new(json_object_get(signature, "picture"), "width", json_integer(8));
    struct model *model;
    const struct model_name name = {"sorter", "id", "blob", 4, NULL, signature};
    ck_assert_int_ne(model_load(path, &name, 1, &model, &err), WEIR_OK);
    json_t *shape =
        json_object_get(json_array_get(json_object_get(signature, "inputs"), 0), "shape");
    json_array_set_new(shape, 3, json_integer(8));
    ck_assert_int_ne(model_load(path, &name, 1, &model, &err), WEIR_OK);
    json_decref(signature);
}

END_TEST

/* The file takes any batch; the signature says one picture, as was said when the version was pushed. */
START_TEST(the_shapes_of_inputs_are_those_of_the_signature)
{
    json_t *signature = signature_of(write_model(), "a\nb\nc", rule);
    json_t *shape =
        json_object_get(json_array_get(json_object_get(signature, "inputs"), 0), "shape");
    ck_assert_int_eq(json_integer_value(json_array_get(shape, 0)), -1);
    json_array_set_new(shape, 0, json_integer(1));
    json_object_set_new(signature, "is_batched", json_false());
    struct model *model = load(write_model(), signature, 4);
    ck_assert_int_eq(model->serve->inputs[0].dims[0], 1);
    ck_assert_uint_eq(model->n_rows, 1);
    model_unref(model);
    json_decref(signature);
}

END_TEST

/* ---- in service ------------------------------------------------------------------------------- */

static char url[128];

static bool answers(void *context)
{
    static int64_t frame;
    char bytes[1024];
    (void)context;
    return test_post_frame(NULL, url, "probe", frame++, bytes, test_picture(0, 100, bytes), NULL,
                           NULL) == 200;
}

START_TEST(a_replica_decides_by_a_model_from_outside)
{
    static const char *const labels[] = {"a", "b", "c"};
    const char *path = write_model();
    struct test_server *server = test_server_start(&dir, 0);
    struct replica *replica =
        test_replica_start(&dir, test_server_port(server), "{\"kind\":\"http\"}", NULL);
    (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
    json_t *deployment = test_classifier_deployment(server, path, 2, NULL);
    json_object_set_new(json_object_get(deployment, "model"), "signature",
                        signature_of(path, "a\nb\nc", rule));
    test_server_deploy(server, deployment);
    ck_assert(test_wait(answers, NULL));
    for (int p = 0; p < 20; p++) {
        char bytes[1024];
        double logits[N_OUT], sum = 0;
        size_t best = 0;
        json_t *decision;
        size_t len = test_picture(p, 3, bytes);
        logits_of(bytes, len, false, logits);
        for (size_t k = 0; k < N_OUT; k++) {
            sum += exp(logits[k]);
            best = logits[k] > logits[best] ? k : best;
        }
        ck_assert_int_eq(test_post_frame(NULL, url, "cam", p, bytes, len, NULL, &decision), 200);
        double score = exp(logits[best]) / sum;
        ck_assert_str_eq(test_text(decision, "label"), score >= 0.5 ? labels[best] : "");
        ck_assert_double_eq_tol(json_number_value(json_object_get(decision, "score")), score, 1e-5);
        json_decref(decision);
    }
    test_replica_stop(replica);
    test_server_stop(server);
}

END_TEST

WEIR_TEST_MAIN_WITH("onnx_model", set_up, tear_down,
                    logits_become_probabilities_of_the_pushed_labels,
                    embeddings_are_unit_vectors_of_both_sides_whatever_the_batch,
                    a_model_that_cannot_decide_about_pictures_says_why,
                    a_signature_of_another_model_is_refused,
                    the_shapes_of_inputs_are_those_of_the_signature,
                    a_replica_decides_by_a_model_from_outside)
