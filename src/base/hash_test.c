#include "base/hash.h"

#include "base/test_main.h"

#include <string.h>

/* From the test vectors of the authors' reference code (http://www.isthe.com/chongo/tech/comp/fnv). */
static const struct {
    const char *text;
    uint64_t hash;
} vectors[] = {
    {"", 0xcbf29ce484222325u},
    {"a", 0xaf63dc4c8601ec8cu},
    {"b", 0xaf63df4c8601f1a5u},
    {"foobar", 0x85944171f73967e8u},
};

START_TEST(the_vectors_of_the_authors_hold)
{
    const char *text = vectors[_i].text;
    ck_assert_uint_eq(weir_hash_text(WEIR_HASH_BEGIN, text), vectors[_i].hash);
    ck_assert_uint_eq(weir_hash_bytes(WEIR_HASH_BEGIN, text, strlen(text)), vectors[_i].hash);
}

END_TEST

START_TEST(parts_hash_as_the_whole)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, "foo");
    ck_assert_uint_eq(weir_hash_bytes(hash, "bar", 3), 0x85944171f73967e8u);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("hash", {the_vectors_of_the_authors_hold, 4}, {parts_hash_as_the_whole, 0})
