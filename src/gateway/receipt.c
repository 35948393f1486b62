#include "gateway/receipt.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAC_BYTES 16 /* of crypto_auth's 32: nobody can try 2^64 against a server */

_Static_assert(WEIR_RECEIPT_KEY_BYTES == crypto_auth_KEYBYTES, "the key is crypto_auth's");

void weir_receipt_make(const unsigned char key[WEIR_RECEIPT_KEY_BYTES],
                       const struct weir_receipt *receipt, char out[WEIR_RECEIPT_BYTES])
{
    unsigned char mac[crypto_auth_BYTES];
    int len = snprintf(out, WEIR_RECEIPT_BYTES - 2 * MAC_BYTES - 1,
                       "%.63s.%" PRId64 ".%" PRId64 ".%016" PRIx64, receipt->deployment,
                       receipt->version, receipt->time_ms, receipt->number);
    /* The purpose goes in, too: the key makes other things. */
    crypto_auth_hmacsha512256_state state;
    (void)crypto_auth_hmacsha512256_init(&state, key, WEIR_RECEIPT_KEY_BYTES);
    (void)crypto_auth_hmacsha512256_update(&state, (const unsigned char *)"weir request ", 13);
    (void)crypto_auth_hmacsha512256_update(&state, (const unsigned char *)out,
                                           (unsigned long long)len);
    (void)crypto_auth_hmacsha512256_final(&state, mac);
    out[len] = '.';
    (void)sodium_bin2hex(out + len + 1, 2 * MAC_BYTES + 1, mac, MAC_BYTES);
}

/** Cut the last part off. @return NULL: there is none. */
static char *cut(char *text)
{
    char *dot = strrchr(text, '.');
    if (dot == NULL) {
        return NULL;
    }
    *dot = '\0';
    return dot + 1;
}

weir_status weir_receipt_open(const unsigned char key[WEIR_RECEIPT_KEY_BYTES], const char *text,
                              struct weir_arena *arena, struct weir_receipt *out,
                              struct weir_error *err)
{
    if (strlen(text) < WEIR_RECEIPT_BYTES) {
        char good[WEIR_RECEIPT_BYTES], *name = weir_arena_strdup(arena, text);
        const char *mac = cut(name), *number = cut(name), *time = cut(name), *version = cut(name);
        if (mac != NULL && number != NULL && time != NULL && version != NULL) {
            const struct weir_receipt read = {.deployment = name,
                                              .version = strtoll(version, NULL, 10),
                                              .time_ms = strtoll(time, NULL, 10),
                                              .number = strtoull(number, NULL, 16)};
            /* What it must be is made again and compared whole, so no other form passes. */
            weir_receipt_make(key, &read, good);
            if (strlen(good) == strlen(text) && sodium_memcmp(good, text, strlen(good)) == 0) {
                *out = read;
                return WEIR_OK;
            }
        }
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "\"%.80s\" is no request that this server has answered: take the header "
                          "Weir-Request of the answer",
                          text);
}
