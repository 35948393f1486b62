/*
 * The writer against a file assembled by hand, byte by byte; the reader against every truncation of
 * it, against headers that lie, and against an independent half-precision conversion; both against
 * each other over random tensors.
 */
#include "nn/safetensors.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-safetensors-XXXXXX";

/* Data: 2.0f, -0.5f (a), 1.0f (b). */
#define HAND_JSON                                                                                  \
    "{\"__metadata__\":{\"k\":\"v\"},"                                                             \
    "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"                            \
    "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}"
static const char hand_data[] = "\x00\x00\x00\x40\x00\x00\x00\xbf\x00\x00\x80\x3f";

/** Length, header, data, as one block; freed by the caller. */
static unsigned char *assembled(const char *json, size_t n_pad, const void *data, size_t n_data,
                                size_t *out_len)
{
    size_t n_json = strlen(json), n_header = n_json + n_pad;
    unsigned char *bytes = malloc(8 + n_header + n_data + 1);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(n_header >> (8 * i));
    }
    memcpy(bytes + 8, json, n_json);
    memset(bytes + 8 + n_json, ' ', n_pad);
    memcpy(bytes + 8 + n_header, data, n_data);
    *out_len = 8 + n_header + n_data;
    return bytes;
}

static unsigned char *hand_file(size_t *out_len)
{
    return assembled(HAND_JSON, (8 - strlen(HAND_JSON) % 8) % 8, hand_data, 12, out_len);
}

START_TEST(a_file_assembled_by_hand_is_written_byte_for_byte)
{
    const float a[] = {2.0f, -0.5f}, b[] = {1.0f};
    const struct weir_safetensors_tensor tensors[] = {
        {.name = "a", .dims = {1, 2}, .n_dims = 2, .data = a},
        {.name = "b", .n_dims = 0, .data = b},
    };
    const struct weir_safetensors_text metadata[] = {{"k", "v"}};
    void *bytes;
    size_t len, hand_len;
    ck_assert_int_eq(weir_safetensors_encode(tensors, 2, metadata, 1, &bytes, &len, NULL), WEIR_OK);
    unsigned char *hand = hand_file(&hand_len);
    ck_assert_uint_eq(len, hand_len);
    ck_assert_mem_eq(bytes, hand, len);
    free(bytes);
    free(hand);
}

END_TEST

START_TEST(a_file_assembled_by_hand_is_read)
{
    size_t len, n = 0;
    unsigned char *hand = hand_file(&len);
    struct weir_safetensors *file;
    ck_assert_int_eq(weir_safetensors_open_memory(hand, len, "hand", &file, NULL), WEIR_OK);
    const struct weir_safetensors_entry *entries = weir_safetensors_entries(file, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(entries[0].name, "a");
    ck_assert_int_eq(entries[0].n_dims, 2);
    ck_assert_int_eq(entries[0].dims[1], 2);
    ck_assert_int_eq(entries[1].n_dims, 0);
    ck_assert_uint_eq(entries[1].n_elems, 1);
    ck_assert_str_eq(weir_safetensors_metadata(file, "k"), "v");
    ck_assert_ptr_null(weir_safetensors_metadata(file, "a"));
    ck_assert_ptr_null(weir_safetensors_find(file, "__metadata__"));
    float values[2];
    ck_assert_int_eq(weir_safetensors_read_f32(file, "a", values, 2, NULL), WEIR_OK);
    ck_assert_float_eq(values[0], 2.0f);
    ck_assert_float_eq(values[1], -0.5f);
    ck_assert_int_eq(weir_safetensors_read_f32(file, "a", values, 1, NULL), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_safetensors_read_f32(file, "c", values, 1, NULL), WEIR_ERR_NOT_FOUND);
    weir_safetensors_close(file);
    free(hand);
}

END_TEST

START_TEST(every_truncation_and_every_longer_file_is_refused)
{
    size_t len;
    unsigned char *hand = hand_file(&len);
    hand[len] = 0; /* assembled() leaves one byte more. */
    for (size_t cut = 0; cut <= len + 1; cut++) {
        struct weir_safetensors *file = NULL;
        struct weir_error err;
        weir_status status = weir_safetensors_open_memory(hand, cut, "cut", &file, &err);
        ck_assert_msg(status == (cut == len ? WEIR_OK : WEIR_ERR_CORRUPT), "%zu: %s", cut,
                      weir_status_name(status));
        weir_safetensors_close(file);
    }
    free(hand);
}

END_TEST

/** Everything a random file is made of, and the same read back. */
static void round_trip(struct weir_rng *rng, const char *path)
{
    enum { TENSORS_MAX = 20 };
    struct weir_safetensors_tensor tensors[TENSORS_MAX];
    float *data[TENSORS_MAX];
    char names[TENSORS_MAX][40];
    size_t n_elems[TENSORS_MAX], n_tensors = weir_rng_below(rng, TENSORS_MAX + 1);
    for (size_t i = 0; i < n_tensors; i++) {
        (void)snprintf(names[i], sizeof names[i], "t\"%zu\\/\n\xc3\xa9.%u", i, weir_rng_u32(rng));
        tensors[i] = (struct weir_safetensors_tensor){.name = names[i],
                                                      .n_dims = (int32_t)weir_rng_below(rng, 5)};
        n_elems[i] = 1;
        for (int32_t d = 0; d < tensors[i].n_dims; d++) {
            tensors[i].dims[d] = (int64_t)weir_rng_below(rng, 7); /* Empty ones too. */
            n_elems[i] *= (size_t)tensors[i].dims[d];
        }
        data[i] = malloc((n_elems[i] + 1) * sizeof(float));
        for (size_t j = 0; j < n_elems[i]; j++) {
            uint32_t bits = weir_rng_u32(rng); /* NaNs with payloads as well. */
            memcpy(&data[i][j], &bits, sizeof bits);
        }
        tensors[i].data = data[i];
    }
    const struct weir_safetensors_text metadata[] = {{"", ""}, {"weir.graph", "{\"a\": [1]}\n"}};
    struct weir_error err = {0};
    ck_assert_msg(weir_safetensors_write(path, tensors, n_tensors, metadata, 2, &err) == WEIR_OK,
                  "%s", err.message);
    struct weir_safetensors *file;
    ck_assert_msg(weir_safetensors_open(path, &file, &err) == WEIR_OK, "%s", err.message);
    size_t n_entries = 0;
    (void)weir_safetensors_entries(file, &n_entries);
    ck_assert_uint_eq(n_entries, n_tensors);
    ck_assert_str_eq(weir_safetensors_metadata(file, "weir.graph"), "{\"a\": [1]}\n");
    for (size_t i = 0; i < n_tensors; i++) {
        const struct weir_safetensors_entry *entry = weir_safetensors_find(file, names[i]);
        ck_assert_ptr_nonnull(entry);
        ck_assert_int_eq(entry->n_dims, tensors[i].n_dims);
        ck_assert_mem_eq(entry->dims, tensors[i].dims, sizeof(int64_t) * (size_t)entry->n_dims);
        float *values = malloc((n_elems[i] + 1) * sizeof(float));
        ck_assert_int_eq(weir_safetensors_read_f32(file, names[i], values, n_elems[i], NULL),
                         WEIR_OK);
        ck_assert(n_elems[i] == 0 || memcmp(values, data[i], n_elems[i] * sizeof(float)) == 0);
        free(values);
        free(data[i]);
    }
    weir_safetensors_close(file);
}

START_TEST(random_tensors_come_back_bit_for_bit)
{
    struct weir_rng rng;
    uint64_t seed;
    weir_random_bytes(&seed, sizeof seed);
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/random.safetensors", folder);
    for (int i = 0; i < 60; i++) {
        round_trip(&rng, path);
    }
}

END_TEST

struct lie {
    const char *json;
    size_t n_data;
    const char *part; /**< Of the message. */
    weir_status status;
};

#define TENSOR(name, dtype, shape, offsets)                                                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct lie lies[] = {
    {"", 0, "begin with", WEIR_ERR_CORRUPT},
    {" {}", 0, "begin with", WEIR_ERR_CORRUPT},
    {"[]", 0, "begin with", WEIR_ERR_CORRUPT},
    {"{", 0, "line 1", WEIR_ERR_CORRUPT},
    {"{} x", 0, "line 1", WEIR_ERR_CORRUPT},
    {"{\"a\":\"\xff\"}", 0, "line 1", WEIR_ERR_CORRUPT},
    {"{}", 4, "behind the last", WEIR_ERR_CORRUPT},
    {"{\"a\":1}", 0, "dtype, shape", WEIR_ERR_CORRUPT},
    {"{\"a\":{}}", 0, "dtype, shape", WEIR_ERR_CORRUPT},
    {"{\"__metadata__\":[]}", 0, "not an object", WEIR_ERR_CORRUPT},
    {"{\"__metadata__\":{\"k\":1}}", 0, "__metadata__.k", WEIR_ERR_CORRUPT},
    {"{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0, "duplicate", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("a", "F32", "[1]", "[4,8]") "}", 8,
     "duplicate", WEIR_ERR_CORRUPT},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4, "only",
     WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[2]", "[0,4]") "}", 4, "do not fill", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F16", "[1]", "[0,4]") "}", 4, "do not fill", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "{}", "[0,4]") "}", 4, "not an array", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[-1,-1]", "[0,4]") "}", 4, "shape[0]", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1,1.0]", "[0,4]") "}", 4, "shape[1]", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[4294967296,4294967296,1]", "[0,0]") "}", 0, "shape[1]",
     WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[4294967296,1073741824]", "[0,0]") "}", 0, "do not fill",
     WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[99999999999999999999]", "[0,0]") "}", 0, "line 1", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[0]") "}", 4, "[begin, end]", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[0,4,4]") "}", 4, "[begin, end]", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[4,0]") "}", 4, "[begin, end]", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[-4,0]") "}", 4, "[begin, end]", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[0,8]") "}", 4, "ends at byte 8", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[9223372036854775803,9223372036854775807]") "}", 4,
     "ends at byte", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[2]", "[0,8]") "," TENSOR("b", "F32", "[1]", "[4,8]") "}", 8,
     "before byte 8", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[0,4]") "}", 4,
     "before byte 4", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[8,12]") "}", 12,
     "behind byte 4", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[1]", "[4,8]") "}", 8, "behind byte 0", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "F32", "[0]", "[1,1]") "," TENSOR("b", "F32", "[1]", "[0,4]") "}", 4,
     "before byte 4", WEIR_ERR_CORRUPT},
    {"{" TENSOR("a", "C128", "[1]", "[0,16]") "}", 16, "C128", WEIR_ERR_UNSUPPORTED},
    {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "9 dimensions",
     WEIR_ERR_UNSUPPORTED},
};

START_TEST(a_header_that_lies_is_refused_with_what_and_where)
{
    const struct lie *lie = &lies[_i];
    const unsigned char data[16] = {0};
    size_t len;
    unsigned char *bytes = assembled(lie->json, 0, data, lie->n_data, &len);
    struct weir_safetensors *file = NULL;
    struct weir_error err = {0};
    weir_status status = weir_safetensors_open_memory(bytes, len, "liar.st", &file, &err);
    ck_assert_msg(status == lie->status, "%s: %s", lie->json, weir_status_name(status));
    ck_assert_int_eq(err.status, status);
    ck_assert_msg(strstr(err.message, lie->part) != NULL && strstr(err.message, "liar.st") != NULL,
                  "%s: %s", lie->json, err.message);
    ck_assert_ptr_null(file);
    free(bytes);
}

END_TEST

START_TEST(a_header_length_beyond_the_file_or_the_limit_is_refused)
{
    unsigned char bytes[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'};
    struct weir_safetensors *file = NULL;
    struct weir_error err;
    ck_assert_int_eq(weir_safetensors_open_memory(bytes, sizeof bytes, "x", &file, &err),
                     WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, "18446744073709551615"));
    /* A sparse file, so that its size is no lie. */
    char path[128];
    (void)snprintf(path, sizeof path, "%s/huge.safetensors", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    uint64_t n_header = WEIR_SAFETENSORS_HEADER_MAX + 1;
    ck_assert_int_eq(pwrite(fd, &n_header, 8, 0), 8);
    ck_assert_int_eq(ftruncate(fd, (off_t)n_header + 8), 0);
    ck_assert_int_eq(weir_safetensors_open(path, &file, &err), WEIR_ERR_LIMIT);
    (void)close(fd);
}

END_TEST

START_TEST(a_file_that_shrinks_after_opening_is_an_error_not_a_crash)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/shrinks.safetensors", folder);
    size_t len;
    unsigned char *hand = hand_file(&len);
    ck_assert_int_eq(weir_file_write_atomic(path, hand, len, 0600, NULL), WEIR_OK);
    struct weir_safetensors *file = NULL;
    ck_assert_int_eq(weir_safetensors_open(path, &file, NULL), WEIR_OK);
    ck_assert_int_eq(truncate(path, (off_t)len - 6), 0);
    float values[2];
    struct weir_error err;
    ck_assert_int_eq(weir_safetensors_read_f32(file, "b", values, 1, &err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, "shorter"));
    weir_safetensors_close(file);
    free(hand);
}

END_TEST

/* IEEE 754 binary16 by its definition, not by its bits. */
static double half_value(unsigned bits)
{
    unsigned exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    double magnitude = exponent == 0    ? ldexp(mantissa, -24)
                       : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                        : ldexp(1024 + mantissa, (int)exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

START_TEST(all_half_and_brain_float_values_are_converted_exactly)
{
    enum { ALL = 65536 };

    static uint16_t bits[2 * ALL];
    static float values[ALL];
    for (size_t i = 0; i < ALL; i++) {
        bits[i] = bits[ALL + i] = (uint16_t)i;
    }
    size_t len;
    unsigned char *bytes = assembled("{" TENSOR("h", "F16", "[256,256]", "[0,131072]") "," TENSOR(
                                         "b", "BF16", "[65536]", "[131072,262144]") "}",
                                     0, bits, sizeof bits, &len);
    struct weir_safetensors *file;
    ck_assert_int_eq(weir_safetensors_open_memory(bytes, len, "halves", &file, NULL), WEIR_OK);
    ck_assert_int_eq(weir_safetensors_read_f32(file, "h", values, ALL, NULL), WEIR_OK);
    for (unsigned i = 0; i < ALL; i++) {
        double expected = half_value(i);
        ck_assert(isnan(expected) ? isnan(values[i]) != 0
                                  : values[i] == expected &&
                                        (signbit(values[i]) != 0) == (signbit(expected) != 0));
    }
    ck_assert_int_eq(weir_safetensors_read_f32(file, "b", values, ALL, NULL), WEIR_OK);
    ck_assert_float_eq(values[0x3f80], 1.0f);
    ck_assert_float_eq(values[0xc049], -3.140625f);
    ck_assert(isinf(values[0x7f80]) && isnan(values[0x7fc0]));
    weir_safetensors_close(file);
    free(bytes);
}

END_TEST

START_TEST(other_dtypes_are_listed_but_refused_by_name_when_read)
{
    size_t len;
    const int64_t counter = 7;
    unsigned char *bytes = assembled(
        "{" TENSOR("bn1.num_batches_tracked", "I64", "[]", "[0,8]") "}", 0, &counter, 8, &len);
    struct weir_safetensors *file;
    ck_assert_int_eq(weir_safetensors_open_memory(bytes, len, "counter", &file, NULL), WEIR_OK);
    ck_assert_str_eq(weir_safetensors_find(file, "bn1.num_batches_tracked")->dtype, "I64");
    float value;
    struct weir_error err;
    ck_assert_int_eq(weir_safetensors_read_f32(file, "bn1.num_batches_tracked", &value, 1, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "I64"));
    weir_safetensors_close(file);
    free(bytes);
}

END_TEST

START_TEST(what_cannot_be_written_is_refused_and_leaves_the_old_file)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/kept.safetensors", folder);
    const float one[] = {1};
    const struct weir_safetensors_tensor good = {
        .name = "a", .dims = {1}, .n_dims = 1, .data = one};
    ck_assert_int_eq(weir_safetensors_write(path, &good, 1, NULL, 0, NULL), WEIR_OK);
    const struct weir_safetensors_tensor bad[][2] = {
        {good, good},
        {good, {.name = "", .data = one}},
        {good, {.name = "__metadata__", .data = one}},
        {good, {.name = "\xff", .data = one}},
        {good, {.name = "b", .dims = {-1}, .n_dims = 1, .data = one}},
        {good, {.name = "b", .n_dims = 9, .data = one}},
        {good, {.name = "b", .dims = {INT64_MAX, INT64_MAX}, .n_dims = 2, .data = one}},
    };
    struct weir_error err;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(weir_safetensors_write(path, bad[i], 2, NULL, 0, &err), WEIR_ERR_INVALID);
    }
    const struct weir_safetensors_text twice[] = {{"k", "1"}, {"k", "2"}};
    ck_assert_int_eq(weir_safetensors_write(path, &good, 1, twice, 2, &err), WEIR_ERR_INVALID);
    const struct weir_safetensors_text latin[] = {{"k", "caf\xe9"}};
    ck_assert_int_eq(weir_safetensors_write(path, &good, 1, latin, 1, &err), WEIR_ERR_INVALID);
    struct weir_safetensors *file;
    ck_assert_int_eq(weir_safetensors_open(path, &file, NULL), WEIR_OK);
    ck_assert_ptr_nonnull(weir_safetensors_find(file, "a"));
    weir_safetensors_close(file);
    ck_assert_int_eq(weir_safetensors_open("/nonexistent/x", &file, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_safetensors_open(folder, &file, &err), WEIR_ERR_INVALID);
}

END_TEST

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("safetensors");
    TCase *tcase = tcase_create("safetensors");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_file_assembled_by_hand_is_written_byte_for_byte);
    tcase_add_test(tcase, a_file_assembled_by_hand_is_read);
    tcase_add_test(tcase, every_truncation_and_every_longer_file_is_refused);
    tcase_add_test(tcase, random_tensors_come_back_bit_for_bit);
    tcase_add_loop_test(tcase, a_header_that_lies_is_refused_with_what_and_where, 0,
                        (int)WEIR_ARRAY_LEN(lies));
    tcase_add_test(tcase, a_header_length_beyond_the_file_or_the_limit_is_refused);
    tcase_add_test(tcase, a_file_that_shrinks_after_opening_is_an_error_not_a_crash);
    tcase_add_test(tcase, all_half_and_brain_float_values_are_converted_exactly);
    tcase_add_test(tcase, other_dtypes_are_listed_but_refused_by_name_when_read);
    tcase_add_test(tcase, what_cannot_be_written_is_refused_and_leaves_the_old_file);
    suite_add_tcase(suite, tcase);
    int result = weir_test_run(suite);
    return weir_dir_remove(folder, NULL) == WEIR_OK ? result : EXIT_FAILURE;
}
