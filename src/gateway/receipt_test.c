#include "gateway/receipt.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static struct weir_arena arena;
static struct weir_error err;
static unsigned char key[WEIR_RECEIPT_KEY_BYTES], other_key[WEIR_RECEIPT_KEY_BYTES];
static char text[WEIR_RECEIPT_BYTES];

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    memset(key, 7, sizeof key);
    memset(other_key, 8, sizeof other_key);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static weir_status open(const char *receipt)
{
    struct weir_receipt out;
    return weir_receipt_open(key, receipt, &arena, &out, &err);
}

START_TEST(what_was_made_is_read)
{
    uint64_t seed = 11;
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 1000; i++) {
        char name[64];
        size_t len = 1 + weir_rng_below(&rng, 63);
        for (size_t k = 0; k < len; k++) {
            name[k] = "abc09._-"[weir_rng_below(&rng, k == 0 ? 5 : 8)];
        }
        name[len] = '\0';
        const struct weir_receipt made = {name, (int64_t)weir_rng_below(&rng, 1u << 30),
                                          (int64_t)(weir_rng_u64(&rng) >> 8), weir_rng_u64(&rng)};
        struct weir_receipt read;
        weir_receipt_make(key, &made, text);
        ck_assert_uint_lt(strlen(text), sizeof text);
        ck_assert_int_eq(weir_receipt_open(key, text, &arena, &read, &err), WEIR_OK);
        ck_assert_str_eq(read.deployment, name);
        ck_assert_int_eq(read.version, made.version);
        ck_assert_int_eq(read.time_ms, made.time_ms);
        ck_assert_uint_eq(read.number, made.number);
    }
}

END_TEST

/* The MAC is RFC 2104's with SHA-512, cut, as libsodium's one-call form computes it. */
START_TEST(the_mac_is_of_the_purpose_and_the_text)
{
    unsigned char mac[crypto_auth_BYTES];
    char hex[2 * sizeof mac + 1];
    const struct weir_receipt made = {"digits", 3, 1790000000000, 0xabc};
    weir_receipt_make(key, &made, text);
    const char *said = "weir request digits.3.1790000000000.0000000000000abc";
    (void)crypto_auth(mac, (const unsigned char *)said, strlen(said), key);
    (void)sodium_bin2hex(hex, sizeof hex, mac, sizeof mac);
    hex[32] = '\0';
    ck_assert_str_eq(strrchr(text, '.') + 1, hex);
}

END_TEST

START_TEST(what_another_made_or_somebody_changed_is_refused)
{
    const struct weir_receipt made = {"digits", 3, 1790000000000, 5};
    weir_receipt_make(other_key, &made, text);
    ck_assert_int_eq(open(text), WEIR_ERR_NOT_FOUND);
    weir_receipt_make(key, &made, text);
    ck_assert_int_eq(open(text), WEIR_OK);
    for (size_t i = 0; i < strlen(text); i++) {
        char changed[WEIR_RECEIPT_BYTES + 1];
        memcpy(changed, text, sizeof text);
        changed[i] ^= 1;
        ck_assert_int_eq(open(changed), WEIR_ERR_NOT_FOUND);
        changed[i] = '\0';
        ck_assert_int_eq(open(changed), WEIR_ERR_NOT_FOUND);
    }
    char longer[2 * WEIR_RECEIPT_BYTES];
    memset(longer, '.', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ck_assert_int_eq(open(longer), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(open(""), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(open("...."), WEIR_ERR_NOT_FOUND);
}

END_TEST

WEIR_TEST_MAIN_WITH("receipt", set_up, tear_down, what_was_made_is_read,
                    the_mac_is_of_the_purpose_and_the_text,
                    what_another_made_or_somebody_changed_is_refused)
