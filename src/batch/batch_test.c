/* Batch predictions in folders, without a server: blob and manifest are files. */
#include "batch/batch.h"

#include "base/file.h"
#include "base/test_main.h"
#include "batch/input.h"
#include "serve/executor.h"
#include "serve/preprocess.h"
#include "serve/test_model.h"

#include <unistd.h>

#define N_FILES    37
#define SHARD_SIZE 5
#define N_SHARDS   8 /* the last of 2 files */
#define PATH_BYTES (WEIR_DIR_TEMPORARY_BYTES + 64)

static char root[WEIR_DIR_TEMPORARY_BYTES], blob[PATH_BYTES], manifest[PATH_BYTES],
    data[PATH_BYTES];
static struct weir_arena arena;
static struct weir_error err;
static json_t *signature, *files;

static const char *in_root(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", root, name);
}

static void put(const char *class_name, const char *file, const void *bytes, size_t n)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    const char *folder = weir_arena_printf(&arena, "%s/%s", data, class_name);
    weir_sha256(bytes, n, digest);
    ck_assert_int_eq(weir_dir_make(folder, 0700, &err), WEIR_OK);
    ck_assert_int_eq(
        weir_file_write(weir_arena_printf(&arena, "%s/%s", folder, file), bytes, n, 0600, &err),
        WEIR_OK);
    json_array_append_new(files, json_pack("{s:s,s:s,s:s,s:I}", "class", class_name, "file", file,
                                           "sha256", digest, "bytes", (json_int_t)n));
}

static void write_json(const char *path, json_t *value)
{
    char *text = weir_json_text(value, &arena);
    json_decref(value);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0600, &err), WEIR_OK);
}

static void put_picture(int i, struct weir_rng *rng)
{
    struct weir_image image;
    struct weir_buf bytes;
    char name[16];
    ck_assert_int_eq(weir_image_init(&image, 5 + i % 7, 9, i % 3 == 0 ? 1 : 3, &err), WEIR_OK);
    for (int k = 0; k < image.width * image.height * image.channels; k++) {
        image.pixels[k] = (uint8_t)weir_rng_below(rng, 256);
    }
    weir_buf_init(&bytes, 1 << 20);
    ck_assert_int_eq(weir_image_encode(&image,
                                       i % 2 ? WEIR_IMAGE_FORMAT_PNG : WEIR_IMAGE_FORMAT_PNM, 90,
                                       &bytes, &err),
                     WEIR_OK);
    (void)snprintf(name, sizeof name, "%03d", i);
    put(i < 20 ? "a" : "b", name, bytes.data, i == 11 ? bytes.len / 2 : bytes.len);
    weir_buf_fini(&bytes);
    weir_image_fini(&image);
}

static void make_signature(void)
{
    struct serve_model *model;
    struct weir_signature made;
    static const struct signature_extras none;
    char why[EXECUTOR_WHY_BYTES];
    test_model_save(blob, TEST_CLASSIFIER, 5);
    ck_assert_int_eq(executor_choose(blob, NULL, &model, why, &err), WEIR_OK);
    ck_assert_int_eq(
        weir_signature_make(model, WEIR_MODEL_FORMAT_WEIR, why, &none, &arena, &made, &err),
        WEIR_OK);
    signature = weir_signature_json(&made);
    serve_model_unload(model);
}

static void set_up(void)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 29, 0);
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("batch", root, &err), WEIR_OK);
    (void)snprintf(blob, sizeof blob, "%s/model", root);
    (void)snprintf(manifest, sizeof manifest, "%s/files.json", root);
    (void)snprintf(data, sizeof data, "%s/data", root);
    files = json_array();
    for (int i = 0; i < N_FILES - 1; i++) {
        put_picture(i, &rng);
    }
    put("b", "text", "no picture", 10);
    write_json(manifest, json_pack("{s:s,s:O}", "dataset", "d", "files", files));
    make_signature();
}

static void tear_down(void)
{
    json_decref(files);
    json_decref(signature);
    ck_assert_int_eq(weir_dir_remove(root, &err), WEIR_OK);
    weir_arena_fini(&arena);
}

static struct batch_spec spec_of(const char *output, int64_t tasks, int64_t rank)
{
    return (struct batch_spec){.model = "m@v1",
                               .dataset = "d@v1",
                               .split = "train",
                               .format = "jsonl",
                               .output = (char *)in_root(output),
                               .tasks = tasks,
                               .rank = rank,
                               .top = 3,
                               .batch_size = 4,
                               .shard_size = SHARD_SIZE,
                               .threads = 1,
                               .blob = blob,
                               .manifest = manifest,
                               .data = data,
                               .dataset_kind = "folder",
                               .signature = signature};
}

static void run(const struct batch_spec *spec)
{
    ck_assert_msg(batch_task_run(spec, &err) == WEIR_OK, "%s", err.message);
}

static const char *path_of(const char *output, const char *name)
{
    return weir_arena_printf(&arena, "%s/%s/%s", root, output, name);
}

static char *text_of(const char *output, const char *name)
{
    char *text;
    size_t len;
    ck_assert_msg(weir_file_read(path_of(output, name), 1 << 20, &arena, &text, &len, &err) ==
                      WEIR_OK,
                  "%s", err.message);
    return text;
}

static const char *shard_name(int i)
{
    return weir_arena_printf(&arena, "shard-%05d.jsonl", i);
}

static void expect_same(const char *a, const char *b)
{
    for (int i = 0; i < N_SHARDS; i++) {
        ck_assert_str_eq(text_of(a, shard_name(i)), text_of(b, shard_name(i)));
    }
    ck_assert_str_eq(text_of(a, "manifest.json"), text_of(b, "manifest.json"));
}

START_TEST(any_number_of_tasks_makes_the_same_files)
{
    static const char *const outputs[] = {"one", "two", "three"};
    for (int64_t n_tasks = 1; n_tasks <= 3; n_tasks++) {
        const char *output = outputs[n_tasks - 1];
        for (int64_t rank = n_tasks - 1; rank >= 0; rank--) {
            struct batch_spec spec = spec_of(output, n_tasks, rank);
            ck_assert(!weir_path_exists(path_of(output, "manifest.json")));
            run(&spec);
        }
        expect_same("one", output);
    }
}

END_TEST

/* The likeliest label of a picture by itself, through the functions of serving. */
static const char *label_of(struct serve_model *model, const struct weir_signature *made,
                            const char *file)
{
    char *bytes;
    size_t len, best = 0;
    struct weir_tensor *in, *out;
    if (weir_file_read(weir_arena_printf(&arena, "%s/%s", data, file), 1 << 20, &arena, &bytes,
                       &len, &err) != WEIR_OK ||
        weir_picture_tensor(made, bytes, len, &in, &err) != WEIR_OK) {
        return NULL;
    }
    ck_assert_int_eq(serve_model_run(model, &in, &out, &err), WEIR_OK);
    for (size_t i = 1; i < 3; i++) {
        best = ((float *)out->data)[i] > ((float *)out->data)[best] ? i : best;
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    return test_labels[best];
}

START_TEST(rows_say_what_the_model_says_of_each_picture)
{
    struct serve_model *model;
    struct weir_signature made;
    struct batch_spec spec = spec_of("out", 1, 0);
    int n_rows = 0, n_errors = 0;
    run(&spec);
    ck_assert_int_eq(executor_load("weir", blob, NULL, &model, &err), WEIR_OK);
    ck_assert_int_eq(weir_signature_read(signature, "$", &arena, &made, &err), WEIR_OK);
    for (int i = 0; i < N_SHARDS; i++) {
        char *end, *line = text_of("out", shard_name(i));
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1, n_rows++) {
            json_t *row;
            const json_t *entry = json_array_get(files, (size_t)n_rows);
            ck_assert_int_eq(weir_json_parse(line, (size_t)(end - line), "row", &row, &err),
                             WEIR_OK);
            const char *file = json_string_value(json_object_get(row, "file"));
            ck_assert_str_eq(file,
                             weir_arena_printf(&arena, "%s/%s",
                                               json_string_value(json_object_get(entry, "class")),
                                               json_string_value(json_object_get(entry, "file"))));
            const char *label = label_of(model, &made, file);
            n_errors += label == NULL;
            ck_assert((label == NULL) == json_is_string(json_object_get(row, "error")));
            if (label != NULL) {
                ck_assert_str_eq(json_string_value(json_object_get(row, "label")), label);
                ck_assert_uint_eq(json_array_size(json_object_get(row, "top")), 3);
            }
            json_decref(row);
        }
    }
    serve_model_unload(model);
    ck_assert_int_eq(n_rows, N_FILES);
    ck_assert_int_eq(n_errors, 2);
    ck_assert_ptr_nonnull(strstr(text_of("out", "manifest.json"), "\"n_errors\": 2"));
}

END_TEST

START_TEST(what_is_there_stays_and_what_is_missing_is_made_again)
{
    struct batch_spec whole = spec_of("whole", 1, 0), spec = spec_of("out", 1, 0);
    run(&whole);
    run(&spec);
    /* As after a kill: no manifest, a shard that is missing, half a one under another name. */
    ck_assert_int_eq(unlink(path_of("out", "manifest.json")), 0);
    ck_assert_int_eq(rename(path_of("out", shard_name(3)), path_of("out", "half.tmp")), 0);
    char *other = text_of("out", shard_name(2));
    other[2] = 'F'; /* it would be "file" if it were made again */
    ck_assert_int_eq(
        weir_file_write(path_of("out", shard_name(2)), other, strlen(other), 0600, &err), WEIR_OK);
    run(&spec);
    ck_assert_str_eq(text_of("out", shard_name(3)), text_of("whole", shard_name(3)));
    ck_assert_str_eq(text_of("out", shard_name(2)), other);
    /* One that was cut off is found by the manifest. */
    ck_assert_int_eq(unlink(path_of("out", "manifest.json")), 0);
    ck_assert_int_eq(truncate(path_of("out", shard_name(2)), 70), 0);
    ck_assert_int_eq(batch_task_run(&spec, &err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, "shard-00002.jsonl"));
}

END_TEST

START_TEST(results_of_another_prediction_are_not_added_to)
{
    struct batch_spec spec = spec_of("out", 1, 0);
    run(&spec);
    spec.tasks = 2; /* which is no other */
    run(&spec);
    spec.top = 2;
    ck_assert_int_eq(batch_task_run(&spec, &err), WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.message, "\"top\""));
}

END_TEST

START_TEST(what_cannot_be_done_is_refused_with_a_sentence)
{
    struct batch_spec spec = spec_of("out", 1, 0);
    spec.data = (char *)in_root("nowhere");
    ck_assert_int_eq(batch_task_run(&spec, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "not on this machine"));
    spec = spec_of("out", 1, 0);
    spec.format = "csv";
    spec.values = true;
    ck_assert_int_eq(batch_task_run(&spec, &err), WEIR_ERR_UNSUPPORTED);
    spec = spec_of("out2", 1, 0);
    json_object_set_new(signature, "picture", json_null());
    ck_assert_int_eq(batch_task_run(&spec, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "takes tensors"));
    spec.manifest = (char *)in_root("bad.json");
    write_json(spec.manifest, json_pack("{s:[{s:s,s:s,s:s}]}", "files", "class", "..", "file", "x",
                                        "sha256", "0"));
    ck_assert_int_eq(batch_task_run(&spec, &err), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(each_picture_of_an_idx_file_is_a_row)
{
    unsigned char images[16 + 3 * 48] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0, 6};
    static const unsigned char labels[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 2};
    struct batch_spec spec = spec_of("out", 1, 0);
    for (size_t i = 16; i < sizeof images; i++) {
        images[i] = (unsigned char)(i * 37);
    }
    json_array_clear(files);
    (void)snprintf(data, sizeof data, "%s/idx", root);
    put("", "train-images-idx3-ubyte", images, sizeof images);
    put("", "train-labels-idx1-ubyte", labels, sizeof labels);
    write_json(manifest, json_pack("{s:O}", "files", files));
    spec.dataset_kind = "idx";
    run(&spec);
    ck_assert_ptr_nonnull(
        strstr(text_of("out", "shard-00000.jsonl"), "\"train-images-idx3-ubyte[2]\""));
    images[20]++;
    ck_assert_int_eq(
        weir_file_write(in_root("idx/train-images-idx3-ubyte"), images, sizeof images, 0600, &err),
        WEIR_OK);
    ck_assert_int_eq(batch_task_run(&spec, &err), WEIR_ERR_CORRUPT);
}

END_TEST

WEIR_TEST_MAIN_WITH("batch", set_up, tear_down, any_number_of_tasks_makes_the_same_files,
                    rows_say_what_the_model_says_of_each_picture,
                    what_is_there_stays_and_what_is_missing_is_made_again,
                    results_of_another_prediction_are_not_added_to,
                    what_cannot_be_done_is_refused_with_a_sentence,
                    each_picture_of_an_idx_file_is_a_row)
