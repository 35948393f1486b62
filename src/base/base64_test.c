#include "base/base64.h"

#include "base/test_main.h"

#include <string.h>

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
};

START_TEST(the_vectors_of_the_rfc_hold_both_ways)
{
    char text[32], bytes[32];
    size_t len, n = strlen(vectors[_i][0]);
    ck_assert_str_eq(weir_base64_encode(vectors[_i][0], n, text), vectors[_i][1]);
    ck_assert_uint_eq(strlen(text) + 1, WEIR_BASE64_TEXT_BYTES(n));
    ck_assert_int_eq(weir_base64_decode(text, bytes, n, &len), WEIR_OK); /* no byte to spare */
    ck_assert_uint_eq(len, n);
    ck_assert_int_eq(memcmp(bytes, vectors[_i][0], n), 0);
}

END_TEST

START_TEST(other_text_is_refused)
{
    static const char *const texts[] = {
        "Zg=", "Zg", "Z", "Zm9v Zg==", "Zm9-", "Zg==x", "\xff", "Zm9vYmFyZm9vYmFy"};
    char bytes[5];
    size_t len;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        ck_assert_int_eq(weir_base64_decode(texts[i], bytes, sizeof bytes, &len), WEIR_ERR_INVALID);
    }
}

END_TEST

WEIR_TEST_LOOPS_MAIN("base64", {the_vectors_of_the_rfc_hold_both_ways, 7},
                     {other_text_is_refused, 0})
