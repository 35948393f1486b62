#include "message.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <string.h>

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

START_TEST(one_whole_message_is_read_and_nothing_else)
{
    const uint8_t *message;
    size_t len;
    ck_assert_int_eq(grpc_message_read(BYTES("\0\0\0\0\3abc"), 100, &message, &len, NULL), WEIR_OK);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(message, "abc", 3);
    ck_assert_int_eq(grpc_message_read(BYTES("\0\0\0\0\0"), 100, &message, &len, NULL), WEIR_OK);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(grpc_message_read(BYTES("\0\0\0\0\3ab"), 100, &message, &len, NULL),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(grpc_message_read(BYTES("\0\0\0\0\3abcd"), 100, &message, &len, NULL),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(grpc_message_read(BYTES("\0\0\0"), 100, &message, &len, NULL),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(grpc_message_read(BYTES("\1\0\0\0\1a"), 100, &message, &len, NULL),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(grpc_message_read(BYTES("\7\0\0\0\1a"), 100, &message, &len, NULL),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(grpc_message_check_prefix(BYTES("\0\xff\0\0\0"), 100, NULL), WEIR_ERR_LIMIT);
    uint8_t prefix[MESSAGE_PREFIX_BYTES];
    grpc_message_prefix(0x01020304, prefix);
    ck_assert_mem_eq(prefix, "\0\1\2\3\4", 5);
}

END_TEST

START_TEST(timeouts_are_read_in_every_unit)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: none */
    } cases[] = {{"100m", 100},
                 {"1S", 1000},
                 {"2M", 120000},
                 {"1H", 3600000},
                 {"5000u", 5},
                 {"999n", 0},
                 {"99999999H", 86400000},
                 {"", -1},
                 {"S", -1},
                 {"1", -1},
                 {"1s", -1},
                 {"-1S", -1},
                 {"123456789S", -1},
                 {"1Sx", -1}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        weir_status status = grpc_message_read_timeout(cases[i].text, &ms);
        ck_assert_msg(ms == cases[i].ms && (status == WEIR_OK) == (ms >= 0), "%s: %lld",
                      cases[i].text, (long long)ms);
    }
}

END_TEST

START_TEST(texts_are_encoded_and_cut)
{
    char out[64], small[8];
    grpc_message_encode_text("a 100% \xc3\xa4\n", out, sizeof out);
    ck_assert_str_eq(out, "a 100%25 %C3%A4%0A");
    grpc_message_encode_text("abcdefghijk", small, sizeof small);
    ck_assert_str_eq(small, "abcde");
}

END_TEST

WEIR_TEST_MAIN("message", one_whole_message_is_read_and_nothing_else,
               timeouts_are_read_in_every_unit, texts_are_encoded_and_cut)
