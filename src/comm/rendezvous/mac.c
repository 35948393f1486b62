#include "comm/rendezvous/mac.h"

#include <sodium.h>

_Static_assert(crypto_auth_KEYBYTES == MAC_KEY_BYTES, "key size");
_Static_assert(crypto_auth_BYTES == WIRE_MAC_BYTES, "MAC size");

/* Every MAC starts with what it is for, NUL included: one can never serve as another. */
static void mac_start(crypto_auth_hmacsha512256_state *state, const struct mac_key *key,
                      const char *purpose)
{
    (void)crypto_auth_hmacsha512256_init(state, key->bytes, sizeof key->bytes);
    (void)crypto_auth_hmacsha512256_update(state, (const uint8_t *)purpose, strlen(purpose) + 1);
}

static void mac_add(crypto_auth_hmacsha512256_state *state, const void *bytes, size_t len)
{
    (void)crypto_auth_hmacsha512256_update(state, bytes, len);
}

weir_status mac_key_from_secret(const char *secret, struct mac_key *out)
{
    if (sodium_init() < 0) {
        return WEIR_ERR_UNAVAILABLE;
    }
    (void)crypto_generichash(out->bytes, sizeof out->bytes, (const uint8_t *)secret, strlen(secret),
                             (const uint8_t *)"weir job secret", 15);
    return WEIR_OK;
}

static void mac_nonces(const struct mac_key *key, const char *purpose, const uint8_t server_nonce[],
                       const uint8_t client_nonce[], uint8_t out[WIRE_MAC_BYTES])
{
    crypto_auth_hmacsha512256_state state;
    mac_start(&state, key, purpose);
    mac_add(&state, server_nonce, WIRE_NONCE_BYTES);
    mac_add(&state, client_nonce, WIRE_NONCE_BYTES);
    (void)crypto_auth_hmacsha512256_final(&state, out);
}

void mac_key_for_connection(const struct mac_key *key, const uint8_t server_nonce[],
                            const uint8_t client_nonce[], struct mac_key *out)
{
    mac_nonces(key, "weir connection", server_nonce, client_nonce, out->bytes);
}

void mac_of_accept(const struct mac_key *key, const uint8_t server_nonce[],
                   const uint8_t client_nonce[], uint8_t out[WIRE_MAC_BYTES])
{
    mac_nonces(key, "weir accept", server_nonce, client_nonce, out);
}

void mac_of_join(const struct mac_key *key, const uint8_t server_nonce[],
                 const struct wire_join *join, uint8_t out[WIRE_MAC_BYTES])
{
    uint8_t fields[WIRE_MAX_HELLO];
    struct wire_writer writer = {.data = fields, .cap = sizeof fields};
    wire_join_write(&writer, join);
    crypto_auth_hmacsha512256_state state;
    mac_start(&state, key, "weir join");
    mac_add(&state, server_nonce, WIRE_NONCE_BYTES);
    mac_add(&state, fields, writer.len);
    (void)crypto_auth_hmacsha512256_final(&state, out);
}

void mac_of_frame(const struct mac_key *connection_key, bool is_server, uint64_t counter,
                  enum wire_type type, const void *body, size_t len, uint8_t out[WIRE_MAC_BYTES])
{
    uint8_t fields[16];
    struct wire_writer writer = {.data = fields, .cap = sizeof fields};
    wire_put_u64(&writer, counter);
    wire_put_u32(&writer, (uint32_t)type);
    crypto_auth_hmacsha512256_state state;
    mac_start(&state, connection_key, is_server ? "weir frame from server" : "weir frame");
    mac_add(&state, fields, writer.len);
    mac_add(&state, body, len);
    (void)crypto_auth_hmacsha512256_final(&state, out);
}

bool mac_is_equal(const uint8_t a[WIRE_MAC_BYTES], const uint8_t b[WIRE_MAC_BYTES])
{
    return sodium_memcmp(a, b, WIRE_MAC_BYTES) == 0;
}
