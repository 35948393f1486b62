#include "base/sha256.h"

#include "base/test_main.h"

#include <string.h>

START_TEST(pieces_hash_as_sha256sum_prints_the_whole)
{
    char text[WEIR_SHA256_TEXT_BYTES];
    struct weir_sha256_stream stream;
    weir_sha256_begin(&stream);
    weir_sha256_end(&stream, text);
    ck_assert_str_eq(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    weir_sha256_begin(&stream);
    weir_sha256_add(&stream, "a", 1);
    weir_sha256_add(&stream, "", 0);
    weir_sha256_add(&stream, "bc", 2);
    weir_sha256_end(&stream, text);
    ck_assert_str_eq(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

END_TEST

WEIR_TEST_MAIN("sha256", pieces_hash_as_sha256sum_prints_the_whole)
