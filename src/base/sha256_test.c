#include "base/sha256.h"

#include "base/test_main.h"

#include <sodium.h>
#include <stdlib.h>
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

/* The processor's instructions, where it has them, against the library. */
START_TEST(any_pieces_hash_as_the_library_hashes_the_whole)
{
    enum { SIZE = 5000 };

    static unsigned char bytes[SIZE];
    unsigned seed = 11;
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (unsigned char)rand_r(&seed);
    }
    for (int round = 0; round < 2000; round++) {
        size_t len = (size_t)rand_r(&seed) % SIZE, n = 0;
        unsigned char hash[crypto_hash_sha256_BYTES];
        char expected[WEIR_SHA256_TEXT_BYTES], text[WEIR_SHA256_TEXT_BYTES];
        struct weir_sha256_stream stream;
        (void)crypto_hash_sha256(hash, bytes, len);
        (void)sodium_bin2hex(expected, sizeof expected, hash, sizeof hash);
        weir_sha256_begin(&stream);
        while (n < len) {
            size_t piece = 1 + (size_t)rand_r(&seed) % (round % 2 == 0 ? 700 : 90);
            piece = WEIR_MIN(piece, len - n);
            weir_sha256_add(&stream, bytes + n, piece);
            n += piece;
        }
        weir_sha256_end(&stream, text);
        ck_assert_msg(strcmp(text, expected) == 0, "seed 11, round %d, %zu bytes", round, len);
    }
}

END_TEST

WEIR_TEST_MAIN("sha256", pieces_hash_as_sha256sum_prints_the_whole,
               any_pieces_hash_as_the_library_hashes_the_whole)
