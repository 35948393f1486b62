#include "gateway/agree.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

#define TOLERANCE 1e-3
#define DEPTH_MAX 64

static bool is_close(double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b);
    }
    return a == b || fabs(a - b) <= TOLERANCE * fmax(1, fmax(fabs(a), fabs(b)));
}

/* A row, read one number at a time. */
typedef double (*number_fn)(const void *row, size_t i);

static bool rows_agree(const void *a, const void *b, size_t n, number_fn number)
{
    bool are_close = true;
    size_t top_a = 0, top_b = 0;
    for (size_t i = 0; i < n; i++) {
        are_close = are_close && is_close(number(a, i), number(b, i));
        top_a = number(a, i) > number(a, top_a) ? i : top_a;
        top_b = number(b, i) > number(b, top_b) ? i : top_b;
    }
    return are_close || (n > 1 && top_a == top_b);
}

static double json_row_number(const void *row, size_t i)
{
    return json_number_value(json_array_get(row, i));
}

static bool is_row(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!json_is_number(json_array_get(value, i))) {
            return false;
        }
    }
    return json_array_size(value) > 0;
}

static bool names_request(const char *key)
{
    return strcmp(key, "id") == 0 || strcmp(key, "model_name") == 0 ||
           strcmp(key, "model_version") == 0 || strcmp(key, "parameters") == 0;
}

static bool values_agree(const json_t *a, const json_t *b, int depth);

static bool objects_agree(const json_t *a, const json_t *b, int depth)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)a, key, value)
    {
        const json_t *other = json_object_get(b, key);
        if (strcmp(key, "labels") == 0) {
            value = json_object_get(json_array_get(value, 0), "label");
            other = json_object_get(json_array_get(other, 0), "label");
        }
        if (!names_request(key) && !values_agree(value, other, depth)) {
            return false;
        }
    }
    return true;
}

static bool values_agree(const json_t *a, const json_t *b, int depth)
{
    if (a == NULL || b == NULL || depth > DEPTH_MAX) {
        return a == b;
    }
    if (json_is_number(a) && json_is_number(b)) {
        return is_close(json_number_value(a), json_number_value(b));
    }
    if (json_is_object(a) && json_is_object(b)) {
        return json_object_size(a) == json_object_size(b) && objects_agree(a, b, depth + 1);
    }
    if (!json_is_array(a) || !json_is_array(b)) {
        return json_equal(a, b) == 1;
    }
    size_t n = json_array_size(a);
    if (n != json_array_size(b)) {
        return false;
    }
    if (is_row(a) && is_row(b)) {
        return rows_agree(a, b, n, json_row_number);
    }
    for (size_t i = 0; i < n; i++) {
        if (!values_agree(json_array_get(a, i), json_array_get(b, i), depth + 1)) {
            return false;
        }
    }
    return true;
}

/* Bytes of tensors need not be aligned. */
static double f32_row_number(const void *row, size_t i)
{
    float value;
    memcpy(&value, (const char *)row + i * sizeof value, sizeof value);
    return value;
}

static double f64_row_number(const void *row, size_t i)
{
    double value;
    memcpy(&value, (const char *)row + i * sizeof value, sizeof value);
    return value;
}

static bool tensors_agree(const json_t *output, const char *a, const char *b, size_t len)
{
    const char *type = json_string_value(json_object_get(output, "datatype"));
    const json_t *shape = json_object_get(output, "shape");
    bool is_f32 = type != NULL && strcmp(type, "FP32") == 0;
    bool is_f64 = type != NULL && strcmp(type, "FP64") == 0;
    size_t number_bytes = is_f64 ? sizeof(double) : sizeof(float);
    json_int_t row =
        json_integer_value(json_array_get(shape, WEIR_MAX(json_array_size(shape), (size_t)1) - 1));
    if (!is_f32 && !is_f64) {
        return memcmp(a, b, len) == 0;
    }
    size_t row_bytes =
        row > 0 && (size_t)row <= len / number_bytes ? (size_t)row * number_bytes : number_bytes;
    for (size_t at = 0; at + row_bytes <= len; at += row_bytes) {
        if (!rows_agree(a + at, b + at, row_bytes / number_bytes,
                        is_f32 ? f32_row_number : f64_row_number)) {
            return false;
        }
    }
    return true;
}

static size_t binary_bytes(const json_t *output)
{
    const json_t *parameters = json_object_get(output, "parameters");
    json_int_t n = json_integer_value(json_object_get(parameters, "binary_data_size"));
    return n > 0 ? (size_t)n : 0;
}

/* The tensors behind the JSON, which `head` describes; those of b have the same sizes. */
static bool binaries_agree(const json_t *head, const json_t *other, const char *a, const char *b,
                           size_t len)
{
    const json_t *outputs = json_object_get(head, "outputs");
    const json_t *others = json_object_get(other, "outputs");
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        size_t n = binary_bytes(output);
        if (n > len - at || n != binary_bytes(json_array_get(others, i)) ||
            !tensors_agree(output, a + at, b + at, n)) {
            return false;
        }
        at += n;
    }
    return true;
}

static json_t *parse(const struct agree_answer *answer)
{
    size_t len = answer->header_bytes >= 0 && (uint64_t)answer->header_bytes <= answer->len
                     ? (size_t)answer->header_bytes
                     : answer->len;
    return json_loadb(answer->body, len, JSON_DECODE_ANY, NULL);
}

bool agree_is_refusal(const struct agree_answer *answer)
{
    return answer->http_status >= 400 && answer->http_status < 500;
}

bool agree(const struct agree_answer *a, const struct agree_answer *b)
{
    if (agree_is_refusal(a) && agree_is_refusal(b)) {
        return true; /* what they say of it may differ */
    }
    if (a->http_status != b->http_status) {
        return false;
    }
    if (a->http_status != 200) {
        return true;
    }
    json_t *head_a = parse(a), *head_b = parse(b);
    bool do_agree;
    if (head_a == NULL || head_b == NULL) {
        do_agree = a->len == b->len && memcmp(a->body, b->body, a->len) == 0;
    } else {
        do_agree = values_agree(head_a, head_b, 0);
        bool are_binary = a->header_bytes >= 0 && b->header_bytes >= 0 &&
                          (uint64_t)a->header_bytes <= a->len &&
                          (uint64_t)b->header_bytes <= b->len;
        if (do_agree && are_binary) {
            size_t n = a->len - (size_t)a->header_bytes;
            do_agree = n == b->len - (size_t)b->header_bytes &&
                       binaries_agree(head_a, head_b, a->body + a->header_bytes,
                                      b->body + b->header_bytes, n);
        }
    }
    json_decref(head_a);
    json_decref(head_b);
    return do_agree;
}
