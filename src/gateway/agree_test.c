#include "gateway/agree.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *a, *b;
    bool do_agree;
} cases[] = {
    {"{\"outputs\":[{\"data\":[1,2,3]}]}", "{\"outputs\":[{\"data\":[1.0005,2,3.0001]}]}", true},
    {"{\"predictions\":[[0.1,0.9],[0.8,0.2]]}", "{\"predictions\":[[0.3,0.7],[0.6,0.4]]}", true},
    {"{\"predictions\":[[0.1,0.9],[0.8,0.2]]}", "{\"predictions\":[[0.3,0.7],[0.4,0.6]]}", false},
    {"{\"predictions\":[1.0]}", "{\"predictions\":[1.1]}", false},
    {"{\"predictions\":[1,2]}", "{\"predictions\":[1,2,3]}", false},
    {"{\"id\":\"x\",\"model_version\":\"1\",\"y\":1}",
     "{\"id\":\"z\",\"model_version\":\"2\",\"y\":1}", true},
    {"{\"y\":\"cat\"}", "{\"y\":\"dog\"}", false},
    {"{\"y\":1}", "{\"y\":1,\"z\":2}", false},
    {"{\"y\":1}", "{\"z\":1}", false},
    {"{\"labels\":[{\"label\":\"cat\",\"probability\":0.9},{\"label\":\"dog\"}]}",
     "{\"labels\":[{\"label\":\"cat\",\"probability\":0.5},{\"label\":\"cow\"}]}", true},
    {"{\"labels\":[{\"label\":\"cat\"}]}", "{\"labels\":[{\"label\":\"dog\"}]}", false},
    {"no json", "no json", true},
    {"no json", "{}", false},
    {"[]", "[]", true},
};

static struct agree_answer answer_of(const char *body)
{
    return (struct agree_answer){200, body, strlen(body), -1};
}

START_TEST(answers_agree_as_the_header_says)
{
    struct agree_answer a = answer_of(cases[_i].a), b = answer_of(cases[_i].b);
    ck_assert_msg(agree(&a, &b) == cases[_i].do_agree, "%s, %s", cases[_i].a, cases[_i].b);
    ck_assert_int_eq(agree(&b, &a), cases[_i].do_agree);
    b.http_status = 500;
    ck_assert(!agree(&a, &b));
}

END_TEST

/* JSON that describes tensors of n bytes each, and the tensors. */
static struct agree_answer binary(char *out, const char *type, int row, const void *bytes, size_t n)
{
    int len = snprintf(out, 160,
                       "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"%s\",\"shape\":[1,%d],"
                       "\"parameters\":{\"binary_data_size\":%zu}}]}",
                       type, row, n);
    memcpy(out + len, bytes, n);
    return (struct agree_answer){200, out, (size_t)len + n, len};
}

START_TEST(binary_tensors_are_compared_row_by_row)
{
    char x[256], y[256];
    const float a[] = {0.1f, 0.9f, 0.8f, 0.2f}, near[] = {0.1f, 0.9001f, 0.8f, 0.2f},
                same_top[] = {0.4f, 0.6f, 0.7f, 0.3f}, other[] = {0.4f, 0.6f, 0.3f, 0.7f};
    struct agree_answer first = binary(x, "FP32", 2, a, sizeof a);
    struct agree_answer second = binary(y, "FP32", 2, near, sizeof near);
    ck_assert(agree(&first, &second));
    second = binary(y, "FP32", 2, same_top, sizeof same_top);
    ck_assert(agree(&first, &second));
    second = binary(y, "FP32", 2, other, sizeof other);
    ck_assert(!agree(&first, &second));
    second = binary(y, "FP32", 2, a, sizeof a / 2);
    ck_assert(!agree(&first, &second));
    first = binary(x, "INT32", 2, a, sizeof a);
    second = binary(y, "INT32", 2, near, sizeof near);
    ck_assert(!agree(&first, &second));
    second = binary(y, "INT32", 2, a, sizeof a);
    ck_assert(agree(&first, &second));
    first.header_bytes = second.header_bytes = 1 << 20; /* a lie */
    ck_assert(agree(&first, &second));
}

END_TEST

WEIR_TEST_LOOPS_MAIN("agree", {answers_agree_as_the_header_says, WEIR_ARRAY_LEN(cases)},
                     {binary_tensors_are_compared_row_by_row, 1})
