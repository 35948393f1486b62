#include "api/attempt_token.h"

#include "base/uuid.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "weir_task.";

#define MAC_HEX_LEN     (2 * crypto_auth_BYTES)
#define ATTEMPT_DIGITS  19
#define TOKEN_MAX_BYTES (sizeof prefix + WEIR_UUID_BYTES + 1 + ATTEMPT_DIGITS + 1 + MAC_HEX_LEN)

_Static_assert(ATTEMPT_TOKEN_KEY_BYTES == crypto_auth_KEYBYTES, "the key is crypto_auth's");

char *attempt_token_make(const unsigned char *key, const char *task, int64_t attempt,
                         struct weir_arena *arena)
{
    unsigned char mac[crypto_auth_BYTES];
    char hex[MAC_HEX_LEN + 1];
    char *text = weir_arena_printf(arena, "%s%s.%lld", prefix, task, (long long)attempt);
    (void)crypto_auth(mac, (const unsigned char *)text, strlen(text), key);
    (void)sodium_bin2hex(hex, sizeof hex, mac, sizeof mac);
    return weir_arena_printf(arena, "%s.%s", text, hex);
}

bool attempt_token_is(const char *token)
{
    return strncmp(token, prefix, strlen(prefix)) == 0;
}

weir_status attempt_token_open(const unsigned char *key, const char *token,
                               struct weir_arena *arena, char **out_task, int64_t *out_attempt,
                               struct weir_error *err)
{
    const char *mac = strrchr(token, '.');
    if (attempt_token_is(token) && strlen(token) < TOKEN_MAX_BYTES && mac != NULL) {
        char *text = weir_arena_strdup(arena, token + strlen(prefix));
        char *dot = strchr(text, '.');
        if (dot != NULL) {
            *dot = '\0';
            int64_t attempt = strtoll(dot + 1, NULL, 10);
            /* What it must be is made anew and compared whole, so no other form passes. */
            const char *good = attempt_token_make(key, text, attempt, arena);
            if (strlen(good) == strlen(token) && sodium_memcmp(good, token, strlen(good)) == 0) {
                *out_task = text;
                *out_attempt = attempt;
                return WEIR_OK;
            }
        }
    }
    return weir_error_set(err, WEIR_ERR_UNAUTH, "this task's token is not valid");
}
